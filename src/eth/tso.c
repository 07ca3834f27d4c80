/* SPDX-License-Identifier: BSD-2-Clause */
#include "eth/tso.h"

#include <string.h>

#include "base/check.h"
#include "eth/checksum.h"
#include "wire/bytes.h"

enum {
	IPV4_LENGTH_AT = 2,
	IPV4_ID_AT = 4,
	IPV6_LENGTH_AT = 4,
	IPV6_BYTES = 40,
	UDP_LENGTH_AT = 4,
	GRE_CSUM_PRESENT = 0x80,
	GRE_KEY_PRESENT = 0x20,
	GRE_SEQ_PRESENT = 0x10,
	TCP_SEQ_AT = 4,
	TCP_FLAGS_AT = 13,
	TCP_FIN = 1,
	TCP_PSH = 8,
	TCP_CWR = 128,
	LENGTH_MAX = 65535,
};

/* Sets the lengths such that the packet ends at `end`. */
static void length_put(const struct vb_eth_headers *h, uint8_t *octets, uint32_t end)
{
	uint32_t bytes = end - h->l3_at;

	if (h->l3 == VB_L3_IPV4)
		vb_be16_put(octets + h->l3_at + IPV4_LENGTH_AT, (uint16_t)bytes);
	else if (h->l3 == VB_L3_IPV6)
		vb_be16_put(octets + h->l3_at + IPV6_LENGTH_AT, (uint16_t)(bytes - IPV6_BYTES));
	if (h->l3 != VB_L3_NONE && h->proto == VB_IPPROTO_UDP && h->l4_at)
		vb_be16_put(octets + h->l4_at + UDP_LENGTH_AT, (uint16_t)(end - h->l4_at));
}

/* The headers that end with TCP. */
static const struct vb_eth_headers *stream_of(const struct vb_tso *tso)
{
	return tso->frame.has_inner ? &tso->frame.inner : &tso->frame.outer;
}

bool vb_tso_begin(struct vb_tso *tso, const uint8_t *header, uint32_t header_bytes,
		  uint32_t payload_bytes, uint32_t mss)
{
	const struct vb_eth_headers *stream;

	if (header_bytes > VB_TSO_HEADER_BYTES_MAX || !mss)
		return false;
	memset(tso, 0, sizeof(*tso));
	memcpy(tso->header, header, header_bytes);
	tso->header_bytes = header_bytes;
	tso->payload_bytes = payload_bytes;
	tso->mss = mss;
	vb_eth_parse_template(&tso->frame, tso->header, header_bytes);
	tso->frame.octets = NULL;
	stream = stream_of(tso);
	/* An IP header follows an Ethernet header, so none exceeds its length field then. */
	return stream->l4_at && stream->proto == VB_IPPROTO_TCP && !stream->fragment &&
	       !tso->frame.outer.routed && !stream->routed &&
	       stream->payload_at == header_bytes &&
	       header_bytes - VB_ETH_HEADER_BYTES + vb_min_u64(mss, payload_bytes) <= LENGTH_MAX;
}

bool vb_tso_next(struct vb_tso *tso, struct vb_tso_cut *cut)
{
	if (tso->index && tso->offset == tso->payload_bytes)
		return false;
	*cut = (struct vb_tso_cut){
		.offset = tso->offset,
		.bytes = (uint32_t)vb_min_u64(tso->mss, tso->payload_bytes - tso->offset),
		.index = tso->index,
	};
	tso->offset += cut->bytes;
	tso->index++;
	return true;
}

static void id_add(const struct vb_eth_headers *h, uint8_t *octets, uint32_t more)
{
	uint8_t *id = octets + h->l3_at + IPV4_ID_AT;

	if (h->l3 == VB_L3_IPV4)
		vb_be16_put(id, (uint16_t)(vb_be16_get(id) + more));
}

/* RFC 2890, 2.2: counts up by one for each packet. */
static void gre_seq_add(const struct vb_eth_headers *h, uint8_t *octets, uint32_t more)
{
	uint8_t *gre = octets + h->l4_at, *seq = gre + 4;

	if (h->proto != VB_IPPROTO_GRE || !(gre[0] & GRE_SEQ_PRESENT))
		return;
	seq += gre[0] & GRE_CSUM_PRESENT ? 4 : 0;
	seq += gre[0] & GRE_KEY_PRESENT ? 4 : 0;
	vb_be32_put(seq, vb_be32_get(seq) + more);
}

void vb_tso_frame(const struct vb_tso *tso, const struct vb_tso_cut *cut, uint8_t *octets)
{
	uint32_t end = tso->header_bytes + cut->bytes;
	uint8_t *tcp = octets + stream_of(tso)->l4_at;

	memcpy(octets, tso->header, tso->header_bytes);
	length_put(&tso->frame.outer, octets, end);
	length_put(&tso->frame.inner, octets, end);
	id_add(&tso->frame.outer, octets, cut->index);
	id_add(&tso->frame.inner, octets, cut->index);
	gre_seq_add(&tso->frame.outer, octets, cut->index);
	vb_be32_put(tcp + TCP_SEQ_AT, vb_be32_get(tcp + TCP_SEQ_AT) + cut->offset);
	if (cut->index)
		tcp[TCP_FLAGS_AT] &= (uint8_t)~TCP_CWR;
	if (cut->offset + cut->bytes < tso->payload_bytes)
		tcp[TCP_FLAGS_AT] &= (uint8_t) ~(TCP_FIN | TCP_PSH);
	vb_eth_tx_checksums(octets, end, true);
}
