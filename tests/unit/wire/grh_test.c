/* SPDX-License-Identifier: BSD-2-Clause */
/* The 40 octets before a datagram's data, against the IP headers that Linux rdma_rxe sent. */
#include "group.h"
#include "vectors.h"
#include "wire/grh.h"

#define IPV4_AT 20

static void check_path(const struct vb_grh *grh, const struct vector *v)
{
	assert_memory_equal(grh->sgid, v->path.src, VB_GID_BYTES);
	assert_memory_equal(grh->dgid, v->path.dst, VB_GID_BYTES);
	assert_int_equal(grh->flow_label, v->path.flow_label);
	assert_int_equal(grh->tclass, v->path.tclass);
	assert_int_equal(grh->hop_limit, v->path.hop_limit);
	assert_int_equal(grh->ipv4, v->ipv4);
}

/* Over IPv6 exactly the captured header; over IPv4 all but identification and checksum. */
TEST(test_build_as_captured)
{
	for (size_t i = 0; i < vectors_count; i++) {
		const struct vector *v = &vectors[i];
		uint8_t out[VB_GRH_BYTES + 1];
		struct vb_grh grh;

		memset(out, 0xa5, sizeof(out));
		vb_grh_build(out, &v->path, v->frame_bytes);
		assert_int_equal(out[VB_GRH_BYTES], 0xa5);
		assert_true(vb_grh_parse(&grh, out));
		check_path(&grh, v);
		if (!v->ipv4) {
			assert_memory_equal(out, v->ip, VB_GRH_BYTES);
			continue;
		}
		for (unsigned k = 0; k < IPV4_AT; k++)
			assert_int_equal(out[k], 0);
		assert_memory_equal(out + IPV4_AT, v->ip, 4);
		assert_memory_equal(out + IPV4_AT + 6, v->ip + 6, 4);
		assert_memory_equal(out + IPV4_AT + 12, v->ip + 12, 8);
	}
}

/* The header as it arrived, identification and all. */
TEST(test_parse_captured)
{
	for (size_t i = 0; i < vectors_count; i++) {
		const struct vector *v = &vectors[i];
		uint8_t in[VB_GRH_BYTES] = { 0 };
		struct vb_grh grh;

		if (v->ipv4)
			memcpy(in + IPV4_AT, v->ip, VB_GRH_BYTES - IPV4_AT);
		else
			memcpy(in, v->ip, VB_GRH_BYTES);
		assert_true(vb_grh_parse(&grh, in));
		check_path(&grh, v);
	}
}

TEST(test_fields)
{
	struct vb_path path = {
		.src = { 0xfe, 0x80, [15] = 1 },
		.dst = { 0xff, 0x02, [15] = 2 },
		.flow_label = 0xabcde,
		.tclass = 0xf1,
		.hop_limit = 3,
	};
	uint8_t out[VB_GRH_BYTES];
	struct vb_grh grh;

	vb_grh_build(out, &path, 1000);
	assert_int_equal(out[0] << 24 | out[1] << 16 | out[2] << 8 | out[3], 0x6f1abcde);
	assert_int_equal(out[4] << 8 | out[5], 1008);
	assert_int_equal(out[6], 17);
	assert_true(vb_grh_parse(&grh, out));
	assert_int_equal(grh.flow_label, 0xabcde);
	assert_int_equal(grh.tclass, 0xf1);
	assert_int_equal(grh.hop_limit, 3);
	assert_false(grh.ipv4);
	assert_memory_equal(grh.sgid, path.src, VB_GID_BYTES);
	assert_memory_equal(grh.dgid, path.dst, VB_GID_BYTES);

	/* A native GRH says that a BTH follows; no other protocol is ours. */
	out[6] = 0x1b;
	assert_true(vb_grh_parse(&grh, out));
	out[6] = 6;
	assert_false(vb_grh_parse(&grh, out));
}

/* The checksum guards all of an IPv4 header, and the octets before it are zero. */
TEST(test_ipv4_damage)
{
	struct vb_path path = {
		.src = { [10] = 0xff, 0xff, 192, 0, 2, 1 },
		.dst = { [10] = 0xff, 0xff, 192, 0, 2, 2 },
		.tclass = 0x28,
		.hop_limit = 64,
	};
	struct vb_grh untouched, grh;
	uint8_t octets[VB_GRH_BYTES];

	vb_grh_build(octets, &path, 1000);
	memset(&untouched, 0x5a, sizeof(untouched));
	grh = untouched;
	for (unsigned bit = 0; bit < VB_GRH_BYTES * 8; bit++) {
		octets[bit / 8] ^= (uint8_t)(1 << bit % 8);
		assert_false(vb_grh_parse(&grh, octets));
		assert_memory_equal(&grh, &untouched, sizeof(grh));
		octets[bit / 8] ^= (uint8_t)(1 << bit % 8);
	}
	assert_true(vb_grh_parse(&grh, octets));
	assert_int_equal(grh.tclass, 0x28);
	assert_true(grh.ipv4);
}

TEST(test_nonsense)
{
	uint8_t in[VB_GRH_BYTES] = { 0 };
	struct vb_grh grh;

	assert_false(vb_grh_parse(&grh, in));
	memset(in, 0xff, sizeof(in));
	assert_false(vb_grh_parse(&grh, in));
}

GROUP(vectors_load, NULL)
