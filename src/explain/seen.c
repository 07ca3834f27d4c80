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
	WIRE_BYTES_MAX = 4096 + 64, /* a frame of the longest path MTU */
};

/* --- what stands before the IP header --- */

enum { LINKTYPE_ETHERNET = 1, LINKTYPE_COOKED = 113, LINKTYPE_COOKED_2 = 276 };

/* How many octets do, and where among them the protocol is; 0: nowhere, so there are no VLANs. */
static const struct {
	uint32_t linktype, bytes, protocol;
} links[] = {
	{0, 4, 0},    /* loopback of BSD */
	{LINKTYPE_ETHERNET, 14, 12},
	{12, 0, 0},   /* IP */
	{101, 0, 0},  /* IP */
	{108, 4, 0},  /* loopback of OpenBSD */
	{LINKTYPE_COOKED, 16, 14},
	{228, 0, 0},  /* IPv4 */
	{229, 0, 0},  /* IPv6 */
	{LINKTYPE_COOKED_2, 20, 0},
};

static bool is_vlan(uint16_t type)
{
	return type == ETHERTYPE_VLAN || type == ETHERTYPE_VLAN_OUTER;
}

/* Where the IP header begins; false: it is not known. */
static bool ip_at(const struct vb_reader_packet *packet, uint32_t *at)
{
	const uint8_t *octets = packet->octets;
	uint32_t type_at;
	unsigned i = 0;

	while (i < VB_ARRAY_LEN(links) && links[i].linktype != packet->linktype)
		i++;
	if (i == VB_ARRAY_LEN(links))
		return false;
	*at = links[i].bytes;
	type_at = links[i].protocol;
	if (packet->linktype == LINKTYPE_COOKED_2 && packet->bytes >= 2 &&
	    is_vlan(vb_be16_get(octets)))
		type_at = (*at += 4) - 2;
	while (type_at && *at + 4 <= packet->bytes && is_vlan(vb_be16_get(octets + type_at))) {
		type_at += 4;
		*at += 4;
	}
	return true;
}

/* --- IP and UDP --- */

static void address_put(uint8_t gid[VB_GID_BYTES], const uint8_t ipv4[4])
{
	memset(gid, 0, 10);
	memset(gid + 10, 0xff, 2);
	memcpy(gid + 12, ipv4, 4);
}

static enum vb_sight ipv4_read(struct vb_seen *seen)
{
	struct vb_seen_datagram *datagram = &seen->datagram;
	const uint8_t *at = datagram->ip;

	datagram->ip_bytes = (at[0] & 15u) * 4;
	seen->wire_bytes = vb_be16_get(at + 2);
	if (datagram->ip_bytes < IPV4_BYTES || at[9] != PROTOCOL_UDP)
		return VB_SIGHT_OTHER;
	if (vb_be16_get(at + 6) & IPV4_FRAGMENT)
		return VB_SIGHT_FRAGMENT;
	seen->path.tclass = at[1];
	seen->path.hop_limit = at[8];
	address_put(seen->path.src, at + 12);
	address_put(seen->path.dst, at + 16);
	return VB_SIGHT_ROCE;
}

static enum vb_sight ipv6_read(struct vb_seen *seen)
{
	struct vb_seen_datagram *datagram = &seen->datagram;
	const uint8_t *at = datagram->ip;

	datagram->ip_bytes = IPV6_BYTES;
	if (datagram->left < IPV6_BYTES)
		return VB_SIGHT_OTHER;
	seen->wire_bytes = IPV6_BYTES + vb_be16_get(at + 4);
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

/* The headers that a segment will have: with its own lengths, and a number that counts on. */
static void segment_headers(const struct vb_seen *seen, uint8_t *ip, uint32_t bytes)
{
	uint32_t udp_at = seen->datagram.ip_bytes;

	vb_be16_put(ip + udp_at + 4, (uint16_t)(UDP_BYTES + bytes));
	if (ip[0] >> 4 == 6) {
		vb_be16_put(ip + 4, (uint16_t)(UDP_BYTES + bytes));
		return;
	}
	vb_be16_put(ip + 2, (uint16_t)(udp_at + UDP_BYTES + bytes));
	vb_be16_put(ip + 4, (uint16_t)(vb_be16_get(ip + 4) + seen->datagram.segment));
}

/* Of a whole datagram, or of a segment of one. */
static bool icrc_is_right(const struct vb_seen *seen, uint32_t bytes, bool is_segment)
{
	static const uint8_t of_ipv4[] = {1, 8, 10, 11}, of_ipv6[] = {1, 2, 3, 7};
	uint32_t before = seen->datagram.ip_bytes + UDP_BYTES, crc;
	bool is_ipv4 = seen->datagram.ip[0] >> 4 == 4;
	const uint8_t *ones = is_ipv4 ? of_ipv4 : of_ipv6, *frame = seen->frame;
	uint8_t masked[MASKED_BYTES_MAX], *at = masked + 8;

	memset(masked, 0xff, 8);
	memcpy(at, seen->datagram.ip, before);
	memcpy(at + before, frame, VB_BTH_BYTES);
	if (is_segment)
		segment_headers(seen, at, bytes);
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

bool vb_seen_head(struct vb_pkt *pkt, const uint8_t *frame, uint8_t head_bytes)
{
	uint8_t head[VB_PKT_HEADER_BYTES_MAX] = {0};

	memcpy(head, frame, head_bytes);
	memset(pkt, 0, sizeof(*pkt));
	return vb_pkt_parse_head(pkt, head, vb_op_infos[head[0]].header_bytes);
}

/* A packet that the capture has cut: its headers are all that is asked for, or the first one. */
static enum vb_parse head_parse(struct vb_seen *seen, uint32_t captured)
{
	const struct vb_op_info *info = vb_op_info(seen->frame[0]);
	struct vb_pkt *pkt = &seen->pkt;

	if (!info)
		return VB_PARSE_OPCODE;
	if (seen->bytes < (uint32_t)info->header_bytes + VB_ICRC_BYTES)
		return VB_PARSE_SHORT;
	seen->head_bytes = (uint8_t)vb_min_u64(captured, info->header_bytes);
	if (!vb_seen_head(pkt, seen->frame, seen->head_bytes))
		return VB_PARSE_SHORT;
	pkt->payload_bytes = seen->bytes - info->header_bytes - VB_ICRC_BYTES;
	pkt->payload_bytes -= (uint32_t)vb_min_u64(pkt->pad, pkt->payload_bytes);
	return VB_PARSE_OK;
}

/* May a packet begin with these octets? What is reserved is zero (IBTA 9.2). */
static bool may_begin(const uint8_t *bth)
{
	enum { VERSION = 15, RESERVED = 0x3f, RESERVED_OF_PSN = 0x7f };

	return vb_op_info(bth[0]) && !(bth[1] & VERSION) && !(bth[4] & RESERVED) &&
	       !(bth[8] & RESERVED_OF_PSN);
}

/*
 * How long its segments are, if it has several: all but the last have one length, which nothing in
 * the capture says. It is where another packet may begin, and the ICRC before that is right.
 */
static uint32_t segment_find(const struct vb_seen *seen)
{
	uint32_t last = (uint32_t)vb_min_u64(seen->bytes - VB_FRAME_BYTES_MIN, WIRE_BYTES_MAX);

	for (uint32_t bytes = VB_FRAME_BYTES_MIN; bytes <= last; bytes += 4)
		if (may_begin(seen->frame + bytes) && icrc_is_right(seen, bytes, true))
			return bytes;
	return 0;
}

static bool frame_is_good(struct vb_seen *seen, bool is_segment)
{
	memset(&seen->pkt, 0, sizeof(seen->pkt));
	seen->verdict = vb_pkt_parse(&seen->pkt, seen->frame, seen->bytes);
	if (seen->verdict != VB_PARSE_OK)
		return false;
	seen->head_bytes = vb_op_infos[seen->pkt.opcode].header_bytes;
	seen->icrc_wrong = !icrc_is_right(seen, seen->bytes, is_segment);
	return !seen->icrc_wrong;
}

static void segment_read(struct vb_seen *seen, uint32_t bytes)
{
	seen->bytes = bytes;
	seen->wire_bytes = seen->datagram.ip_bytes + UDP_BYTES + bytes;
	frame_is_good(seen, true);
}

static void frame_read(struct vb_seen *seen, uint32_t captured, bool shm)
{
	struct vb_seen_datagram *datagram = &seen->datagram;

	seen->merged = !shm && seen->bytes > WIRE_BYTES_MAX;
	seen->cut = captured < seen->bytes;
	if (seen->cut) {
		seen->verdict = head_parse(seen, captured);
		return;
	}
	if ((frame_is_good(seen, false) && !seen->merged) || shm ||
	    seen->bytes < 2 * VB_FRAME_BYTES_MIN)
		return;
	datagram->segment_bytes = segment_find(seen);
	if (!datagram->segment_bytes)
		return;
	seen->merged = false;
	datagram->left = seen->bytes;
	segment_read(seen, datagram->segment_bytes);
}

bool vb_seen_next(struct vb_seen *seen)
{
	struct vb_seen_datagram *datagram = &seen->datagram;

	if (!datagram->segment_bytes || datagram->left <= datagram->segment_bytes)
		return false;
	datagram->left -= datagram->segment_bytes;
	datagram->segment++;
	seen->frame += datagram->segment_bytes;
	segment_read(seen, (uint32_t)vb_min_u64(datagram->left, datagram->segment_bytes));
	return true;
}

static enum vb_sight ip_read(struct vb_seen *seen)
{
	switch (seen->datagram.ip[0] >> 4) {
	case 4:
		return ipv4_read(seen);
	case 6:
		return ipv6_read(seen);
	default:
		return VB_SIGHT_OTHER;
	}
}

enum vb_sight vb_seen_read(struct vb_seen *seen, const struct vb_reader_packet *packet)
{
	uint32_t at, headers;
	struct vb_seen_datagram *datagram = &seen->datagram;
	const uint8_t *udp;
	enum vb_sight sight;

	memset(seen, 0, sizeof(*seen));
	if (!ip_at(packet, &at))
		return VB_SIGHT_FOREIGN;
	if (at >= packet->bytes || packet->bytes - at < IPV4_BYTES)
		return VB_SIGHT_OTHER;
	datagram->ip = packet->octets + at;
	datagram->left = packet->bytes - at;
	sight = ip_read(seen);
	if (sight != VB_SIGHT_ROCE)
		return sight;
	udp = datagram->ip + datagram->ip_bytes;
	headers = datagram->ip_bytes + UDP_BYTES;
	if (datagram->left < headers || vb_be16_get(udp + 2) != VB_ROCE_PORT)
		return VB_SIGHT_OTHER;
	seen->path.sport = vb_be16_get(udp);
	seen->marked = (seen->path.tclass & ECN_MASK) == ECN_MASK;
	seen->frame = datagram->ip + headers;
	/* UDP's length: behind it may be what Ethernet pads with. */
	seen->bytes = vb_be16_get(udp + 4);
	/* A datagram that the kernel cuts into others later may have neither length. */
	seen->bytes = seen->bytes > UDP_BYTES ? seen->bytes - UDP_BYTES
					      : (uint32_t)vb_max_u64(packet->whole, packet->bytes) -
						at - headers;
	if (!seen->wire_bytes)
		seen->wire_bytes = seen->bytes + headers;
	datagram->left -= headers;
	if (datagram->left < VB_BTH_BYTES && datagram->left < seen->bytes)
		return VB_SIGHT_CUT;
	frame_read(seen, (uint32_t)vb_min_u64(datagram->left, seen->bytes), packet->shm);
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
