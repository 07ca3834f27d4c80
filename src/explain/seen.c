/* SPDX-License-Identifier: BSD-2-Clause */
#include "explain/seen.h"

#include <string.h>

#include "base/check.h"
#include "wire/icrc.h"

enum {
	IPV4_BYTES = 20,
	IPV6_BYTES = 40,
	UDP_BYTES = 8,
	PROTOCOL_UDP = 17,
	PROTOCOL_FRAGMENT = 44, /* IPv6's */
	IPV4_FRAGMENT = 0x3fff, /* offset, and that more come */
	ETHERTYPE_VLAN = 0x8100,
	ETHERTYPE_VLAN_OUTER = 0x88a8,
	ECN_MASK = 3, /* all of it: congestion experienced */
};

/* --- what stands before the IP header --- */

/* The link types that have a fixed number of octets there. */
static const struct {
	uint32_t linktype, bytes;
} links[] = {
	{0, 4},	    /* loopback of BSD */
	{12, 0},    /* IP */
	{101, 0},   /* IP */
	{108, 4},   /* loopback of OpenBSD */
	{113, 16},  /* Linux, "any" */
	{228, 0},   /* IPv4 */
	{229, 0},   /* IPv6 */
	{276, 20},  /* Linux, "any", version 2 */
};
enum { LINKTYPE_ETHERNET = 1, ETHERNET_BYTES = 14 };

/* Where the IP header begins; all of `bytes`, if there is none. */
static uint32_t ip_at(const struct vb_reader_packet *packet)
{
	uint32_t at = ETHERNET_BYTES;

	for (unsigned i = 0; i < VB_ARRAY_LEN(links); i++)
		if (links[i].linktype == packet->linktype)
			return links[i].bytes;
	if (packet->linktype != LINKTYPE_ETHERNET)
		return packet->bytes;
	while (at + 4 <= packet->bytes) {
		uint16_t type = vb_be16_get(packet->octets + at - 2);

		if (type != ETHERTYPE_VLAN && type != ETHERTYPE_VLAN_OUTER)
			break;
		at += 4;
	}
	return at;
}

/* --- IP and UDP --- */

static void address_put(uint8_t gid[VB_GID_BYTES], const uint8_t ipv4[4])
{
	memset(gid, 0, 10);
	memset(gid + 10, 0xff, 2);
	memcpy(gid + 12, ipv4, 4);
}

struct ip {
	const uint8_t *header;
	uint32_t header_bytes, whole_bytes;
};

static enum vb_sight ipv4_read(struct vb_seen *seen, struct ip *ip, uint32_t bytes)
{
	const uint8_t *at = ip->header;

	ip->header_bytes = (at[0] & 15u) * 4;
	ip->whole_bytes = vb_be16_get(at + 2);
	if (bytes < IPV4_BYTES || ip->header_bytes < IPV4_BYTES || at[9] != PROTOCOL_UDP)
		return VB_SIGHT_OTHER;
	if (vb_be16_get(at + 6) & IPV4_FRAGMENT)
		return VB_SIGHT_FRAGMENT;
	seen->path.tclass = at[1];
	seen->path.hop_limit = at[8];
	address_put(seen->path.src, at + 12);
	address_put(seen->path.dst, at + 16);
	return VB_SIGHT_ROCE;
}

static enum vb_sight ipv6_read(struct vb_seen *seen, struct ip *ip, uint32_t bytes)
{
	const uint8_t *at = ip->header;

	ip->header_bytes = IPV6_BYTES;
	if (bytes < IPV6_BYTES)
		return VB_SIGHT_OTHER;
	ip->whole_bytes = IPV6_BYTES + vb_be16_get(at + 4);
	if (at[6] != PROTOCOL_UDP)
		return at[6] == PROTOCOL_FRAGMENT ? VB_SIGHT_FRAGMENT : VB_SIGHT_OTHER;
	seen->path.tclass = (uint8_t)(vb_be16_get(at) >> 4);
	seen->path.hop_limit = at[7];
	memcpy(seen->path.src, at + 8, VB_GID_BYTES);
	memcpy(seen->path.dst, at + 24, VB_GID_BYTES);
	return VB_SIGHT_ROCE;
}

/* --- the ICRC, over the headers as they are: other NICs have options, or no DF --- */

enum { MASKED_BYTES_MAX = 8 + 60 + UDP_BYTES + VB_BTH_BYTES };

static bool icrc_is_right(const struct ip *ip, const uint8_t *frame, uint32_t bytes)
{
	static const uint8_t of_ipv4[] = {1, 8, 10, 11}, of_ipv6[] = {1, 2, 3, 7};
	uint32_t before = ip->header_bytes + UDP_BYTES, crc;
	bool is_ipv4 = ip->header[0] >> 4 == 4;
	const uint8_t *ones = is_ipv4 ? of_ipv4 : of_ipv6;
	uint8_t masked[MASKED_BYTES_MAX], *at = masked + 8;

	memset(masked, 0xff, 8);
	memcpy(at, ip->header, before + VB_BTH_BYTES);
	for (unsigned i = 0; i < VB_ARRAY_LEN(of_ipv4); i++)
		at[ones[i]] = 0xff;
	if (!is_ipv4)
		at[0] |= 15;
	memset(at + before - 2, 0xff, 2); /* UDP's checksum */
	at[before + 4] = 0xff;		  /* FECN, BECN */
	crc = vb_icrc_add(0, masked, 8 + before + VB_BTH_BYTES);
	crc = vb_icrc_add(crc, frame + VB_BTH_BYTES, bytes - VB_BTH_BYTES - VB_ICRC_BYTES);
	return vb_icrc_finish(crc) == vb_icrc_get(frame + bytes - VB_ICRC_BYTES);
}

/* --- the frame --- */

/* A packet that the capture has cut: its headers are all that is asked for. */
static enum vb_parse head_parse(struct vb_seen *seen, uint32_t captured)
{
	const struct vb_op_info *info;
	struct vb_pkt *pkt = &seen->pkt;

	if (captured < VB_BTH_BYTES)
		return VB_PARSE_SHORT;
	info = vb_op_info(seen->frame[0]);
	if (!info)
		return VB_PARSE_OPCODE;
	if (captured < info->header_bytes ||
	    seen->bytes < (uint32_t)info->header_bytes + VB_ICRC_BYTES ||
	    !vb_pkt_parse_head(pkt, seen->frame, captured))
		return VB_PARSE_SHORT;
	pkt->payload_bytes = seen->bytes - info->header_bytes - VB_ICRC_BYTES;
	pkt->payload_bytes -= (uint32_t)vb_min_u64(pkt->pad, pkt->payload_bytes);
	return VB_PARSE_OK;
}

static void frame_read(struct vb_seen *seen, const struct ip *ip, uint32_t captured)
{
	seen->cut = captured < seen->bytes;
	if (seen->cut) {
		seen->verdict = head_parse(seen, captured);
		return;
	}
	seen->verdict = vb_pkt_parse(&seen->pkt, seen->frame, seen->bytes);
	if (seen->verdict == VB_PARSE_OK)
		seen->icrc_wrong = !icrc_is_right(ip, seen->frame, seen->bytes);
}

enum vb_sight vb_seen_read(struct vb_seen *seen, const struct vb_reader_packet *packet)
{
	uint32_t at = ip_at(packet), left, headers;
	struct ip ip = {0};
	enum vb_sight sight;

	memset(seen, 0, sizeof(*seen));
	if (at >= packet->bytes || packet->bytes - at < IPV4_BYTES)
		return VB_SIGHT_OTHER;
	ip.header = packet->octets + at;
	left = packet->bytes - at;
	if (ip.header[0] >> 4 == 4)
		sight = ipv4_read(seen, &ip, left);
	else
		sight = ip.header[0] >> 4 == 6 ? ipv6_read(seen, &ip, left) : VB_SIGHT_OTHER;
	headers = ip.header_bytes + UDP_BYTES;
	if (sight != VB_SIGHT_ROCE)
		return sight;
	if (left < headers || vb_be16_get(ip.header + ip.header_bytes + 2) != VB_ROCE_PORT)
		return VB_SIGHT_OTHER;
	seen->path.sport = vb_be16_get(ip.header + ip.header_bytes);
	seen->marked = (seen->path.tclass & ECN_MASK) == ECN_MASK;
	seen->frame = ip.header + headers;
	seen->wire_bytes = ip.whole_bytes;
	/* UDP's length: behind it may be what Ethernet pads with. */
	seen->bytes = vb_be16_get(ip.header + ip.header_bytes + 4);
	/* A datagram that the kernel cuts into others later may have neither length. */
	seen->bytes = seen->bytes > UDP_BYTES ? seen->bytes - UDP_BYTES
					      : (uint32_t)vb_max_u64(packet->whole, packet->bytes) -
						at - headers;
	if (!seen->wire_bytes)
		seen->wire_bytes = seen->bytes + headers;
	frame_read(seen, &ip, (uint32_t)vb_min_u64(left - headers, seen->bytes));
	vb_comment_parse(&seen->comment, packet->comment, packet->comment_bytes);
	return VB_SIGHT_ROCE;
}

/* --- comments --- */

struct words {
	const char *at, *end;
};

static bool word_take(struct words *words, const char *text)
{
	size_t bytes = strlen(text);

	if ((size_t)(words->end - words->at) < bytes || memcmp(words->at, text, bytes))
		return false;
	words->at += bytes;
	return true;
}

/* Digits of that base; stops at the first other octet. */
static uint64_t number_take(struct words *words, unsigned base)
{
	uint64_t value = 0;

	for (; words->at < words->end; words->at++) {
		char c = *words->at;
		unsigned digit = c >= '0' && c <= '9'	? (unsigned)(c - '0')
				 : c >= 'a' && c <= 'f' ? (unsigned)(c - 'a' + 10)
							: 16;

		if (digit >= base)
			break;
		value = value * base + digit;
	}
	return value;
}

/* The words up to a comma; printable ones only. */
static void rest_take(struct words *words, char *to, size_t bytes)
{
	size_t used = 0;

	for (; words->at < words->end; words->at++)
		if (used + 1 < bytes)
			to[used++] = *words->at >= ' ' && *words->at != 0x7f ? *words->at : '?';
	to[used] = 0;
}

/* "NAME (pid 7)": a name may have anything but this within. */
static bool program_take(struct vb_comment *comment, struct words *words)
{
	struct words name = *words, pid = *words;
	size_t bytes;

	for (; words->at < words->end; words->at++) {
		pid = *words;
		if (word_take(&pid, " (pid "))
			break;
	}
	bytes = (size_t)(words->at - name.at);
	if (words->at == words->end || bytes >= VB_COMMENT_PROGRAM_BYTES)
		return false;
	comment->pid = (uint32_t)number_take(&pid, 10);
	if (!word_take(&pid, ")"))
		return false;
	*words = pid;
	name.end = name.at + bytes;
	rest_take(&name, comment->program, VB_COMMENT_PROGRAM_BYTES);
	return true;
}

bool vb_comment_parse(struct vb_comment *comment, const char *text, size_t bytes)
{
	struct words words = {text, text ? text + bytes : text};

	memset(comment, 0, sizeof(*comment));
	if (!text || !program_take(comment, &words))
		return false;
	while (word_take(&words, ", ")) {
		if (word_take(&words, "QPN 0x")) {
			comment->qpn = (uint32_t)number_take(&words, 16) & 0xffffff;
		} else if (word_take(&words, "wr_id 0x")) {
			comment->has_wr = true;
			comment->wr_id = number_take(&words, 16);
		} else if (word_take(&words, "sent again")) {
			comment->again = true;
		} else {
			comment->dropped = word_take(&words, "dropped: ");
			rest_take(&words, comment->fate, sizeof(comment->fate));
		}
	}
	return true;
}
