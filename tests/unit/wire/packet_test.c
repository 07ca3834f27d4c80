/* SPDX-License-Identifier: BSD-2-Clause */
/* Packets to structs and back: captured ones, random ones, cut ones, wrong ones. */
#include "base/check.h"
#include "base/prng.h"
#include "group.h"
#include "vectors.h"
#include "wire/packet.h"

#define RANDOM_ROUNDS 200000

/* --- what Linux rdma_rxe sent --- */

static void check_bth(const struct vb_pkt *pkt, const struct vector *v)
{
	assert_int_equal(pkt->opcode, vector_number(v, "bth", "opcode"));
	assert_int_equal(pkt->se, vector_number(v, "bth", "se"));
	assert_int_equal(pkt->migreq, vector_number(v, "bth", "migreq"));
	assert_int_equal(pkt->pad, vector_number(v, "bth", "pad"));
	assert_int_equal(pkt->tver, vector_number(v, "bth", "tver"));
	assert_int_equal(pkt->pkey, vector_number(v, "bth", "pkey"));
	assert_int_equal(pkt->fecn, vector_number(v, "bth", "fecn"));
	assert_int_equal(pkt->becn, vector_number(v, "bth", "becn"));
	assert_int_equal(pkt->dqpn, vector_number(v, "bth", "dqp"));
	assert_int_equal(pkt->ackreq, vector_number(v, "bth", "ackreq"));
	assert_int_equal(pkt->psn, vector_number(v, "bth", "psn"));
}

/* The number if the vector has that header, else 0, which parse then leaves behind. */
static uint64_t expected(const struct vector *v, const char *header, const char *key)
{
	return vector_has(v, header) ? vector_number(v, header, key) : 0;
}

static void check_extended(const struct vb_pkt *pkt, const struct vector *v)
{
	const char *target = vector_has(v, "atomiceth") ? "atomiceth" : "reth";

	assert_int_equal(pkt->reth.va, expected(v, target, "va"));
	assert_int_equal(pkt->reth.rkey, expected(v, target, "rkey"));
	assert_int_equal(pkt->reth.bytes, expected(v, "reth", "dmalen"));
	assert_int_equal(pkt->atomic.swap_add, expected(v, "atomiceth", "swap_add"));
	assert_int_equal(pkt->atomic.compare, expected(v, "atomiceth", "compare"));
	assert_int_equal(pkt->atomic.orig, expected(v, "atomicack", "orig"));
	assert_int_equal(pkt->aeth.syndrome, expected(v, "aeth", "syndrome"));
	assert_int_equal(pkt->aeth.msn, expected(v, "aeth", "msn"));
	assert_int_equal(pkt->qkey, expected(v, "deth", "qkey"));
	assert_int_equal(pkt->sqpn, expected(v, "deth", "srcqp"));
	assert_int_equal(pkt->inv_rkey, 0);
	assert_int_equal(pkt->srqn, 0);
	if (vector_has(v, "immdt")) {
		const char *line = strstr(v->text, "\nimmdt ");

		assert_int_equal(ntohl(pkt->imm_be), strtoul(line + 7, NULL, 0));
	} else {
		assert_int_equal(pkt->imm_be, 0);
	}
}

TEST(test_captured_fields)
{
	assert_int_equal(vectors_count, 69);
	for (size_t i = 0; i < vectors_count; i++) {
		const struct vector *v = &vectors[i];
		struct vb_pkt pkt;
		unsigned bytes, pad;

		assert_int_equal(vb_pkt_parse(&pkt, v->frame, v->frame_bytes), VB_PARSE_OK);
		check_bth(&pkt, v);
		check_extended(&pkt, v);
		/* The file counts the pad in the payload's length, as the packet does. */
		assert_int_equal(sscanf(strstr(v->text, "\npayload "),
					"\npayload %u bytes with %u pad", &bytes, &pad), 2);
		assert_int_equal(pkt.payload_bytes, bytes - pad);
		assert_int_equal(pkt.pad, pad);
		assert_ptr_equal(pkt.payload + bytes + VB_ICRC_BYTES, v->frame + v->frame_bytes);
	}
}

TEST(test_captured_octets_again)
{
	for (size_t i = 0; i < vectors_count; i++) {
		const struct vector *v = &vectors[i];
		uint8_t out[VB_PKT_HEADER_BYTES_MAX];
		struct vb_pkt pkt;
		size_t bytes;

		assert_int_equal(vb_pkt_parse(&pkt, v->frame, v->frame_bytes), VB_PARSE_OK);
		bytes = vb_pkt_emit(out, &pkt);
		assert_int_equal(bytes, pkt.payload - v->frame);
		assert_memory_equal(out, v->frame, bytes);
	}
}

TEST(test_captured_bth_alone)
{
	unsigned plain = 0;

	for (size_t i = 0; i < vectors_count; i++) {
		const struct vector *v = &vectors[i];
		struct vb_pkt pkt;
		uint8_t head[VB_BTH_BYTES];

		assert_int_equal(vb_pkt_parse(&pkt, v->frame, v->frame_bytes), VB_PARSE_OK);
		if (pkt.pad || pkt.tver || pkt.fecn || pkt.becn) {
			assert_false(vb_bth_get(&pkt, v->frame, pkt.pkey));
			continue;
		}
		assert_true(vb_bth_get(&pkt, v->frame, pkt.pkey));
		check_bth(&pkt, v);
		plain++;
		vb_bth_put(head, pkt.opcode, pkt.se, pkt.migreq, pkt.pkey, pkt.dqpn, pkt.ackreq,
			   pkt.psn);
		assert_true(vb_bth_get(&pkt, head, pkt.pkey));
		check_bth(&pkt, v);
		assert_false(vb_bth_get(&pkt, head, pkt.pkey ^ 1));
		head[1] |= 1; /* version */
		assert_false(vb_bth_get(&pkt, head, pkt.pkey));
		head[1] &= 0xfe;
		head[4] |= 0x80; /* FECN */
		assert_false(vb_bth_get(&pkt, head, pkt.pkey));
	}
	assert_true(plain > vectors_count / 2);
}

/* --- random packets --- */

static void random_bth(struct vb_pkt *pkt, uint64_t *seed)
{
	uint64_t r = vb_prng_next(seed);

	pkt->se = r & 1;
	pkt->migreq = r >> 1 & 1;
	pkt->ackreq = r >> 2 & 1;
	pkt->fecn = r >> 3 & 1;
	pkt->becn = r >> 4 & 1;
	pkt->pkey = (uint16_t)(r >> 16);
	pkt->dqpn = (uint32_t)(r >> 32) & 0xffffff;
	pkt->psn = (uint32_t)vb_prng_next(seed) & 0xffffff;
}

static void random_extended(struct vb_pkt *pkt, unsigned headers, uint64_t *seed)
{
	if (headers & (VB_H_RETH | VB_H_ATOMIC)) {
		pkt->reth.va = vb_prng_next(seed);
		pkt->reth.rkey = (uint32_t)vb_prng_next(seed);
	}
	if (headers & VB_H_RETH)
		pkt->reth.bytes = (uint32_t)vb_prng_next(seed);
	if (headers & VB_H_ATOMIC) {
		pkt->atomic.swap_add = vb_prng_next(seed);
		pkt->atomic.compare = vb_prng_next(seed);
	}
	if (headers & VB_H_AETH) {
		pkt->aeth.syndrome = (uint8_t)vb_prng_next(seed);
		pkt->aeth.msn = (uint32_t)vb_prng_next(seed) & 0xffffff;
	}
	if (headers & VB_H_ATOMICACK)
		pkt->atomic.orig = vb_prng_next(seed);
	if (headers & VB_H_IMM)
		pkt->imm_be = (uint32_t)vb_prng_next(seed);
	if (headers & VB_H_IETH)
		pkt->inv_rkey = (uint32_t)vb_prng_next(seed);
	if (headers & VB_H_DETH) {
		pkt->qkey = (uint32_t)vb_prng_next(seed);
		pkt->sqpn = (uint32_t)vb_prng_next(seed) & 0xffffff;
	}
	if (headers & VB_H_XRCETH)
		pkt->srqn = (uint32_t)vb_prng_next(seed) & 0xffffff;
	if (headers & VB_H_DCETH) {
		pkt->dceth.mtu_code = vb_prng_next(seed) & 7;
		pkt->sqpn = (uint32_t)vb_prng_next(seed) & 0xffffff;
		pkt->dceth.start_psn = (uint32_t)vb_prng_next(seed) & 0xffffff;
		pkt->dceth.connection = vb_prng_next(seed);
	}
	if (headers & VB_H_DCKEY)
		pkt->dceth.key = vb_prng_next(seed);
	if (headers & VB_H_SRDETH) {
		pkt->srd.qpn = (uint32_t)vb_prng_next(seed) & 0xffffff;
		pkt->srd.qkey = (uint32_t)vb_prng_next(seed);
		for (size_t i = 0; i < sizeof(pkt->srd.gid); i++)
			pkt->srd.gid[i] = (uint8_t)vb_prng_next(seed);
	}
	if (headers & VB_H_FETH) {
		pkt->flush.type = vb_prng_next(seed) & 15;
		pkt->flush.level = vb_prng_next(seed) & 3;
	}
}

/* Emitted and parsed again, every field of a random packet is back, and no other is set. */
TEST(test_random_round_trip)
{
	uint64_t seed = 1;

	for (unsigned round = 0; round < RANDOM_ROUNDS; round++) {
		uint8_t frame[VB_PKT_HEADER_BYTES_MAX + 256 + VB_ICRC_BYTES];
		struct vb_pkt in, out;
		const struct vb_op_info *op;
		size_t bytes;

		/* memset, as memcmp() below sees the padding of the struct as well. */
		memset(&in, 0, sizeof(in));
		do
			in.opcode = (uint8_t)vb_prng_next(&seed);
		while (!vb_op_info(in.opcode));
		op = vb_op_info(in.opcode);
		random_bth(&in, &seed);
		random_extended(&in, op->headers, &seed);
		if (op->payload)
			in.payload_bytes = vb_prng_next(&seed) % 253;
		in.pad = vb_pkt_pad(in.payload_bytes);
		memset(frame, 0xa5, sizeof(frame));
		bytes = vb_pkt_emit(frame, &in);
		assert_int_equal(bytes, op->header_bytes);
		assert_int_equal(frame[bytes], 0xa5);
		in.payload = frame + bytes;
		bytes += in.payload_bytes + in.pad + VB_ICRC_BYTES;
		assert_int_equal(vb_pkt_parse(&out, frame, bytes), VB_PARSE_OK);
		assert_memory_equal(&out, &in, sizeof(in));
	}
}

/* IBTA 9.2: reserved bits are ignored on receipt and sent as zero. */
TEST(test_reserved_bits)
{
	uint8_t frame[24] = { VB_OP_XRC_SEND_ONLY };
	uint8_t out[VB_PKT_HEADER_BYTES_MAX];
	struct vb_pkt pkt;

	frame[4] = 0x3f;
	frame[8] = 0x7f;
	frame[12] = 0xff;
	assert_int_equal(vb_pkt_parse(&pkt, frame, sizeof(frame)), VB_PARSE_OK);
	assert_int_equal(pkt.dqpn | pkt.psn | pkt.srqn, 0);
	assert_false(pkt.fecn || pkt.becn || pkt.ackreq);
	pkt.dqpn = pkt.psn = pkt.srqn = 0xff000000;
	pkt.tver = 0xf0;
	pkt.pad = 0xfc;
	assert_int_equal(vb_pkt_emit(out, &pkt), 16);
	for (unsigned i = 1; i < 16; i++)
		assert_int_equal(out[i], 0);
}

/* --- wrong packets --- */

TEST(test_verdicts)
{
	static const struct {
		uint8_t opcode;
		uint8_t flags; /* the BTH's second octet: pad and version */
		uint32_t bytes;
		enum vb_parse verdict;
	} rows[] = {
		{ VB_OP_RC_SEND_ONLY, 0x00, 0, VB_PARSE_SHORT },
		{ VB_OP_RC_SEND_ONLY, 0x00, 15, VB_PARSE_SHORT },
		{ VB_OP_RC_SEND_ONLY, 0x00, 16, VB_PARSE_OK },
		{ VB_OP_RC_SEND_ONLY, 0x00, 17, VB_PARSE_ALIGN },
		{ VB_OP_RC_SEND_ONLY, 0x10, 16, VB_PARSE_PAD },
		{ VB_OP_RC_SEND_ONLY, 0x30, 20, VB_PARSE_OK },
		{ VB_OP_RC_SEND_ONLY, 0x01, 20, VB_PARSE_VERSION },
		{ 0xff, 0x0f, 20, VB_PARSE_VERSION },
		{ 0xff, 0x00, 20, VB_PARSE_OPCODE },
		{ VB_OP_RC_WRITE_ONLY, 0x00, 28, VB_PARSE_SHORT },
		{ VB_OP_RC_WRITE_ONLY, 0x00, 32, VB_PARSE_OK },
		{ VB_OP_RC_ACK, 0x00, 20, VB_PARSE_OK },
		{ VB_OP_RC_ACK, 0x00, 24, VB_PARSE_LENGTH },
		{ VB_OP_RC_ACK, 0x10, 20, VB_PARSE_PAD },
		{ VB_OP_RC_READ_REQ, 0x00, 36, VB_PARSE_LENGTH },
		{ VB_OP_CNP, 0x00, 28, VB_PARSE_SHORT },
		{ VB_OP_CNP, 0x00, 32, VB_PARSE_OK },
		{ VB_OP_CNP, 0x00, 36, VB_PARSE_LENGTH },
		{ VB_OP_RC_SEND_ONLY, 0x00, 65504, VB_PARSE_OK },
		{ VB_OP_RC_SEND_ONLY, 0x00, 65508, VB_PARSE_LENGTH },
	};
	uint8_t *frame = calloc(1, 65536);

	for (size_t i = 0; i < VB_ARRAY_LEN(rows); i++) {
		struct vb_pkt pkt;
		bool has_bth = rows[i].bytes >= VB_FRAME_BYTES_MIN;

		frame[0] = rows[i].opcode;
		frame[1] = rows[i].flags;
		frame[7] = 0x42;
		assert_int_equal(vb_pkt_parse(&pkt, frame, rows[i].bytes), rows[i].verdict);
		assert_int_equal(pkt.dqpn, has_bth ? 0x42 : 0);
		if (rows[i].verdict != VB_PARSE_OK) {
			assert_null(pkt.payload);
			assert_int_equal(pkt.payload_bytes, 0);
		}
	}
	free(frame);
}

/* The copies fill their allocations exactly, for a sanitizer to see a read beyond. */
TEST(test_truncated)
{
	for (size_t i = 0; i < vectors_count; i++) {
		for (size_t bytes = 0; bytes < vectors[i].frame_bytes; bytes++) {
			uint8_t *copy = malloc(bytes ? bytes : 1);
			struct vb_pkt pkt;

			memcpy(copy, vectors[i].frame, bytes);
			if (vb_pkt_parse(&pkt, copy, bytes) == VB_PARSE_OK) {
				assert_true(pkt.payload >= copy + VB_BTH_BYTES);
				assert_ptr_equal(pkt.payload + pkt.payload_bytes + pkt.pad +
							 VB_ICRC_BYTES, copy + bytes);
			}
			free(copy);
		}
	}
}

/* Bare is what parses, has a payload and no header but the BTH, and nothing set that is none. */
static void assert_bare_as_parsed(const uint8_t *frame, size_t bytes)
{
	struct vb_bare bare;
	struct vb_pkt pkt;
	bool is_bare = vb_pkt_is_bare(&bare, frame, bytes, 0xffff);
	bool parses = vb_pkt_parse(&pkt, frame, bytes) == VB_PARSE_OK;
	const struct vb_op_info *info = vb_op_info(frame[0]);

	if (!is_bare) {
		assert_false(parses && !info->headers && info->payload && !pkt.se && !pkt.pad &&
			     !pkt.fecn && !pkt.becn && pkt.pkey == 0xffff && !frame[4]);
		return;
	}
	assert_true(parses);
	assert_false(info->headers || pkt.se || pkt.pad || pkt.fecn || pkt.becn);
	assert_int_equal(pkt.pkey, 0xffff);
	assert_int_equal(bare.opcode, pkt.opcode);
	assert_int_equal(bare.dqpn, pkt.dqpn);
	assert_int_equal(bare.psn, pkt.psn);
	assert_int_equal(bare.ackreq, pkt.ackreq);
	assert_ptr_equal(pkt.payload, frame + VB_BTH_BYTES);
	assert_int_equal(pkt.payload_bytes, bytes - VB_BTH_BYTES - VB_ICRC_BYTES);
}

TEST(test_bare)
{
	uint8_t frame[64];

	for (unsigned opcode = 0; opcode < 256; opcode++) {
		memset(frame, 0, sizeof(frame));
		frame[0] = (uint8_t)opcode;
		frame[2] = frame[3] = 0xff;
		frame[5] = 0x12;
		frame[8] = 0x80;
		frame[11] = 0x77;
		for (size_t bytes = 0; bytes <= sizeof(frame); bytes++)
			assert_bare_as_parsed(frame, bytes);
		for (unsigned bit = 0; bit < 8 * VB_BTH_BYTES; bit++) {
			frame[bit / 8] ^= (uint8_t)(1u << bit % 8);
			assert_bare_as_parsed(frame, sizeof(frame));
			frame[bit / 8] ^= (uint8_t)(1u << bit % 8);
		}
	}
}

TEST(test_verdict_names)
{
	for (unsigned verdict = 0; verdict < VB_PARSE_COUNT; verdict++)
		assert_string_not_equal(vb_parse_str((enum vb_parse)verdict), "unknown");
	assert_string_equal(vb_parse_str(VB_PARSE_COUNT), "unknown");
}

GROUP(vectors_load, NULL)
