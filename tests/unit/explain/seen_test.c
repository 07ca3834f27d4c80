/* SPDX-License-Identifier: BSD-2-Clause */
/* What packets and comments say: those that Linux rdma_rxe sent, and damaged ones. */
#include "base/check.h"
#include "explain/seen.h"
#include "group.h"
#include "vectors.h"

enum { ETHERNET_BYTES = 14, VLAN_BYTES = 4 };

static uint8_t octets[ETHERNET_BYTES + VLAN_BYTES + VECTOR_BYTES_MAX + 64];

/* The packet behind headers of Ethernet and VLAN, and before what short frames end with. */
static struct vb_reader_packet ethernet(const struct vector *v)
{
	static const uint8_t head[] = { [12] = 0x81, 0, 0, 5, 0x08, 0 };
	uint32_t bytes = ETHERNET_BYTES + VLAN_BYTES;

	memcpy(octets, head, sizeof(head));
	if (!v->ipv4)
		memcpy(octets + 16, "\x86\xdd", 2);
	memcpy(octets + bytes, v->ip, v->ip_bytes);
	bytes += (uint32_t)v->ip_bytes;
	memset(octets + bytes, 0, 6);
	return (struct vb_reader_packet){ .octets = octets, .bytes = bytes + 6,
					  .whole = bytes + 6, .linktype = 1 };
}

TEST(packets_of_rxe_are_read_with_a_right_icrc)
{
	assert_int_equal(vectors_load(NULL), 0);
	for (size_t i = 0; i < vectors_count; i++) {
		struct vb_reader_packet packet = ethernet(&vectors[i]);
		struct vb_seen seen;

		assert_int_equal(vb_seen_read(&seen, &packet), VB_SIGHT_ROCE);
		assert_int_equal(seen.verdict, VB_PARSE_OK);
		assert_false(seen.icrc_wrong);
		assert_int_equal(seen.pkt.psn, vector_number(&vectors[i], "bth", "psn"));
		assert_int_equal(seen.path.sport, vectors[i].path.sport);
		assert_memory_equal(seen.path.src, vectors[i].path.src, VB_GID_BYTES);
		assert_memory_equal(seen.path.dst, vectors[i].path.dst, VB_GID_BYTES);
	}
}

TEST(a_bit_that_fell_over_is_noticed)
{
	for (size_t i = 0; i < vectors_count; i++) {
		struct vb_reader_packet packet = ethernet(&vectors[i]);
		struct vb_seen seen;

		octets[packet.bytes - 6 - VB_ICRC_BYTES - 1] ^= 1;
		vb_seen_read(&seen, &packet);
		assert_true(seen.icrc_wrong || seen.verdict != VB_PARSE_OK);
	}
}

/* As tcpdump -s has them. */
TEST(a_packet_that_was_cut_has_its_headers_yet)
{
	for (size_t i = 0; i < vectors_count; i++) {
		struct vb_reader_packet packet = ethernet(&vectors[i]);
		struct vb_seen whole, cut;

		vb_seen_read(&whole, &packet);
		if (!whole.pkt.payload_bytes)
			continue;
		packet.bytes -= 6 + VB_ICRC_BYTES + whole.pkt.payload_bytes + whole.pkt.pad;
		assert_int_equal(vb_seen_read(&cut, &packet), VB_SIGHT_ROCE);
		assert_int_equal(cut.verdict, VB_PARSE_OK);
		assert_true(cut.cut);
		assert_int_equal(cut.pkt.psn, whole.pkt.psn);
		assert_int_equal(cut.pkt.reth.rkey, whole.pkt.reth.rkey);
		assert_int_equal(cut.pkt.payload_bytes, whole.pkt.payload_bytes);
	}
}

TEST(other_datagrams_are_none_of_ours)
{
	struct vb_reader_packet packet = ethernet(&vectors[0]);
	struct vb_seen seen;

	octets[ETHERNET_BYTES + VLAN_BYTES + 22]++; /* the port */
	assert_int_equal(vb_seen_read(&seen, &packet), VB_SIGHT_OTHER);
	packet = ethernet(&vectors[0]);
	octets[ETHERNET_BYTES + VLAN_BYTES + 7] = 1;
	assert_int_equal(vb_seen_read(&seen, &packet), VB_SIGHT_FRAGMENT);
}

/* Of Linux's "any", with and without a VLAN, in either form. */
TEST(headers_of_any_may_have_a_vlan)
{
	static const struct {
		uint32_t linktype, bytes;
		uint8_t head[24];
	} heads[] = {
		{ 113, 16, { [14] = 0x08, 0 } },
		{ 113, 20, { [14] = 0x81, 0, 0, 5, 0x08, 0 } },
		{ 276, 20, { 0x08, 0 } },
		{ 276, 24, { 0x81, 0, [20] = 0, 5, 0x08, 0 } },
	};
	struct vb_reader_packet packet = { .octets = octets };
	struct vb_seen seen;

	for (unsigned i = 0; i < VB_ARRAY_LEN(heads); i++) {
		memcpy(octets, heads[i].head, heads[i].bytes);
		memcpy(octets + heads[i].bytes, vectors[0].ip, vectors[0].ip_bytes);
		packet.linktype = heads[i].linktype;
		packet.bytes = packet.whole = heads[i].bytes + (uint32_t)vectors[0].ip_bytes;
		assert_int_equal(vb_seen_read(&seen, &packet), VB_SIGHT_ROCE);
		assert_int_equal(seen.verdict, VB_PARSE_OK);
		assert_false(seen.icrc_wrong);
	}
	packet.linktype = 247;
	assert_int_equal(vb_seen_read(&seen, &packet), VB_SIGHT_FOREIGN);
}

static struct vb_comment comment;

static bool parse(const char *text)
{
	return vb_comment_parse(&comment, text, strlen(text));
}

TEST(a_comment_is_taken_apart)
{
	assert_true(parse("ib_send_bw (pid 10866), QPN 0x9f07, wr_id 0x3, sent again"));
	assert_string_equal(comment.program, "ib_send_bw");
	assert_int_equal(comment.pid, 10866);
	assert_int_equal(comment.qpn, 0x9f07);
	assert_true(comment.has_wr && comment.again && !comment.dropped);
	assert_int_equal(comment.wr_id, 3);
	assert_true(parse("a (b), c (pid 7), QPN 0x1, dropped: drop_icrc"));
	assert_string_equal(comment.program, "a (b), c");
	assert_true(comment.dropped);
	assert_string_equal(comment.fate, "drop_icrc");
	assert_true(parse("x (pid 1), QPN 0x1, not taken: no receive request, which a NAK says"));
	assert_false(comment.dropped);
	assert_string_equal(comment.fate, "not taken: no receive request, which a NAK says");
}

TEST(a_comment_of_somebody_else_is_left_alone)
{
	static const char *const texts[] = { "", "look here", "(pid 7)", " (pid ", "x (pid 7" };

	for (unsigned i = 0; i < VB_ARRAY_LEN(texts); i++) {
		parse(texts[i]);
		assert_int_equal(comment.program[0], 0);
	}
}
