/* SPDX-License-Identifier: BSD-2-Clause */
/* The ICRC of captured packets, and that it notices what it must. */
#include "base/prng.h"
#include "group.h"
#include "vectors.h"
#include "wire/bytes.h"
#include "wire/icrc.h"
#include "wire/packet.h"

#define FRAME_BYTES_MAX 9000
#define RESV8A_AT 4

static struct vb_path path_ipv4 = {
	.src = { [10] = 0xff, 0xff, 192, 0, 2, 1 },
	.dst = { [10] = 0xff, 0xff, 192, 0, 2, 200 },
	.sport = 49152,
};

static struct vb_path path_ipv6 = {
	.src = { 0x20, 0x01, 0x0d, 0xb8, [15] = 1 },
	.dst = { 0x20, 0x01, 0x0d, 0xb8, [15] = 2 },
	.sport = 49152,
};

/* CRC-32 bit by bit, over the whole IP packet as Annex A17 words it: nothing shared with icrc.c. */
static uint32_t slow_icrc(const struct vector *v)
{
	static const uint8_t ipv4_masked[] = { 1, 8, 10, 11, 26, 27, 28 + RESV8A_AT };
	static const uint8_t ipv6_masked[] = { 1, 2, 3, 7, 46, 47, 48 + RESV8A_AT };
	const uint8_t *masked = v->ipv4 ? ipv4_masked : ipv6_masked;
	uint8_t octets[8 + VECTOR_BYTES_MAX];
	uint32_t crc = 0xffffffff;

	memset(octets, 0xff, 8);
	memcpy(octets + 8, v->ip, v->ip_bytes);
	for (unsigned i = 0; i < sizeof(ipv4_masked); i++)
		octets[8 + masked[i]] = 0xff;
	if (!v->ipv4)
		octets[8] |= 0x0f;
	for (size_t i = 0; i < 8 + v->ip_bytes - VB_ICRC_BYTES; i++) {
		crc ^= octets[i];
		for (unsigned bit = 0; bit < 8; bit++)
			crc = crc >> 1 ^ (crc & 1 ? 0xedb88320 : 0);
	}
	return ~crc;
}

TEST(test_captured)
{
	assert_int_equal(vectors_count, 69);
	for (size_t i = 0; i < vectors_count; i++) {
		const struct vector *v = &vectors[i];
		const uint8_t *wire = v->frame + v->frame_bytes - VB_ICRC_BYTES;
		uint8_t out[VB_ICRC_BYTES];

		assert_int_equal(slow_icrc(v), vb_icrc_get(wire));
		vb_icrc_put(out, vb_icrc_frame(&v->path, v->frame, v->frame_bytes, v->ip_id));
		assert_memory_equal(out, wire, sizeof(out));
	}
}

/* However a sender cuts the frame, the result is the same. */
TEST(test_pieces)
{
	for (size_t i = 0; i < vectors_count; i++) {
		const struct vector *v = &vectors[i];
		size_t rest = v->frame_bytes - VB_ICRC_BYTES;
		uint32_t right = vb_icrc_get(v->frame + rest);

		for (size_t header = VB_BTH_BYTES; header <= rest; header++) {
			size_t half = (rest - header) / 2;
			uint32_t crc = vb_icrc_start(&v->path, v->frame_bytes, v->ip_id);

			crc = vb_icrc_bth(crc, v->frame, header);
			assert_int_equal(crc, vb_icrc_header(&v->path, v->frame_bytes, v->ip_id,
							     v->frame, header));
			crc = vb_icrc_add(crc, v->frame + header, half);
			crc = vb_icrc_add(crc, v->frame + header + half, rest - header - half);
			assert_int_equal(vb_icrc_finish(crc), right);
		}
	}
}

/* Wherever a run begins, each frame of it has the sum that it has alone; numbers go round. */
TEST(test_run)
{
	static const uint32_t psns[] = { 0, 1, 0x7ff0, 0x123456, 0x7fffff, 0xffff80, 0xffffff };
	const struct vb_path *const paths[] = { &path_ipv4, &path_ipv6 };
	uint8_t bth[VB_BTH_BYTES] = { VB_OP_RC_SEND_ONLY, 0x40, 0xff, 0xff, 0, 1, 2, 3 };

	for (unsigned i = 0; i < 2 * sizeof(psns) / sizeof(psns[0]); i++) {
		const struct vb_path *path = paths[i % 2];
		uint16_t first = i % 3 ? 0 : 0xffa1;
		uint32_t psn = psns[i / 2];
		struct vb_icrc_memo memo = { .known = false };
		struct vb_icrc_run run;

		vb_be32_put(bth + 8, psn);
		vb_icrc_run_begin(&run, &memo, path, 1040, first, bth);
		for (uint16_t n = 0; n < 256; n++) {
			uint16_t id = (uint16_t)(first + n);

			vb_be32_put(bth + 8, psn);
			assert_int_equal(run.psn, psn);
			assert_int_equal(run.crc, vb_icrc_header(path, 1040, id, bth, sizeof(bth)));
			vb_icrc_run_next(&run);
			psn = (psn + 1) & 0xffffff;
		}
	}
	/* Every bit of a PSN is carried into once, and of an identification. */
	for (unsigned bit = 0; bit < 24; bit++) {
		uint32_t psn = (1u << bit) - 1;
		uint16_t id = (uint16_t)((1u << bit % 17) - 1);
		struct vb_icrc_memo memo = { .known = false };
		struct vb_icrc_run run;

		vb_be32_put(bth + 8, psn);
		vb_icrc_run_begin(&run, &memo, &path_ipv4, 4112, id, bth);
		vb_icrc_run_next(&run);
		vb_be32_put(bth + 8, psn + 1);
		assert_int_equal(run.crc, vb_icrc_header(&path_ipv4, 4112, (uint16_t)(id + 1), bth,
							 sizeof(bth)));
	}
}

/*
 * With a memo: the same sums, whatever path it was used with before, for each identification, each
 * length of frame and header, and each value of the masked octet.
 */
TEST(test_known)
{
	static uint8_t frame[FRAME_BYTES_MAX];
	struct vb_icrc_memo memo = { .known = false };
	const struct vb_path *path;
	uint64_t seed = 4;

	for (size_t i = 0; i < sizeof(frame); i++)
		frame[i] = (uint8_t)vb_prng_next(&seed);
	for (size_t bytes = VB_FRAME_BYTES_MIN; bytes <= sizeof(frame); bytes++) {
		uint64_t r = vb_prng_next(&seed);
		size_t header = VB_BTH_BYTES + r % (bytes - VB_FRAME_BYTES_MIN + 1);
		struct vb_path other = r >> 40 & 1 ? path_ipv4 : path_ipv6;
		uint16_t id = (uint16_t)(r >> 16);

		/* All but one of these are part of the sum. */
		other.src[15] = (uint8_t)(r >> 44 & 1);
		other.dst[15] = (uint8_t)(r >> 45 & 1);
		other.sport = (uint16_t)(r >> 46 & 1);
		other.tclass = (uint8_t)(r >> 47 & 1);
		path = r >> 48 & 3 ? &path_ipv4 : &other;
		frame[RESV8A_AT] = r >> 50 & 1 ? 0 : (uint8_t)(r >> 52);
		assert_int_equal(vb_icrc_known_frame(&memo, path, frame, bytes, id),
				 vb_icrc_frame(path, frame, bytes, id));
		assert_int_equal(vb_icrc_known_header(&memo, path, bytes, id, frame, header),
				 vb_icrc_header(path, bytes, id, frame, header));
	}
	for (unsigned id = 0; id < 65536; id++)
		assert_int_equal(vb_icrc_known_frame(&memo, &path_ipv4, frame, 80, (uint16_t)id),
				 vb_icrc_frame(&path_ipv4, frame, 80, (uint16_t)id));
}

TEST(test_known_check)
{
	struct vb_icrc_memo memo = { .known = false };

	for (size_t i = 0; i < vectors_count; i++) {
		const struct vector *v = &vectors[i];
		uint16_t id;

		assert_true(vb_icrc_known_check(&memo, &v->path, v->frame, v->frame_bytes,
						(uint16_t)(v->ip_id + 77), &id));
		assert_int_equal(id, v->ipv4 ? v->ip_id : (uint16_t)(v->ip_id + 77));
		for (size_t bytes = 0; bytes < v->frame_bytes; bytes++) {
			if (vb_icrc_known_check(&memo, &v->path, v->frame, bytes, v->ip_id, &id))
				assert_int_not_equal(id, v->ip_id);
		}
	}
}

/* A receiver does not know the identification, and finds it. */
TEST(test_captured_check)
{
	for (size_t i = 0; i < vectors_count; i++) {
		const struct vector *v = &vectors[i];
		uint16_t id;

		for (unsigned hint = 0; hint < 65536; hint += 257) {
			assert_true(vb_icrc_check(&v->path, v->frame, v->frame_bytes,
						  (uint16_t)hint, &id));
			assert_int_equal(id, v->ipv4 ? v->ip_id : hint);
		}
		assert_true(vb_icrc_check(&v->path, v->frame, v->frame_bytes, v->ip_id, NULL));
	}
}

TEST(test_every_identification)
{
	uint8_t frame[80] = { VB_OP_RC_SEND_ONLY };
	uint16_t id;

	for (unsigned i = 0; i < 65536; i++) {
		vb_icrc_put(frame + 76, vb_icrc_frame(&path_ipv4, frame, 80, (uint16_t)i));
		assert_true(vb_icrc_check(&path_ipv4, frame, 80, 0, &id));
		assert_int_equal(id, i);
	}
}

TEST(test_every_length)
{
	static uint8_t frame[FRAME_BYTES_MAX];
	uint64_t seed = 2;

	for (size_t i = 0; i < sizeof(frame); i++)
		frame[i] = (uint8_t)vb_prng_next(&seed);
	for (size_t bytes = VB_FRAME_BYTES_MIN; bytes <= sizeof(frame); bytes += 4) {
		uint16_t sent = (uint16_t)vb_prng_next(&seed);
		uint16_t id;

		vb_icrc_put(frame + bytes - 4, vb_icrc_frame(&path_ipv4, frame, bytes, sent));
		assert_true(vb_icrc_check(&path_ipv4, frame, bytes, 0, &id));
		assert_int_equal(id, sent);
		vb_icrc_put(frame + bytes - 4, vb_icrc_frame(&path_ipv6, frame, bytes, sent));
		assert_true(vb_icrc_check(&path_ipv6, frame, bytes, 0, &id));
		assert_int_equal(id, 0);
	}
}

/*
 * Each single bit of each captured frame. The masked octet may change; any other change is noticed,
 * but that over IPv4 another identification may happen to fit, once in 2^16 times. The caller sees
 * that it is not the expected one.
 */
TEST(test_flipped_bits)
{
	unsigned long flips = 0, foreign = 0;

	for (size_t i = 0; i < vectors_count; i++) {
		struct vector *v = &vectors[i];
		uint8_t *frame = v->ip + (v->frame - v->ip);

		for (size_t bit = 0; bit < v->frame_bytes * 8; bit++) {
			bool masked = bit / 8 == RESV8A_AT;
			uint16_t id;
			bool right;

			frame[bit / 8] ^= (uint8_t)(1 << bit % 8);
			right = vb_icrc_check(&v->path, frame, v->frame_bytes, v->ip_id, &id);
			frame[bit / 8] ^= (uint8_t)(1 << bit % 8);
			flips += !masked;
			if (masked) {
				assert_true(right && id == v->ip_id);
			} else if (right) {
				assert_true(v->ipv4);
				assert_int_not_equal(id, v->ip_id);
				foreign++;
			}
		}
	}
	assert_true(flips > 40000);
	assert_in_range(foreign, 0, 8);
}

/* The path is covered as well: another address or port is another ICRC. */
TEST(test_flipped_path)
{
	for (size_t i = 0; i < vectors_count; i++) {
		const struct vector *v = &vectors[i];

		for (unsigned bit = 0; bit < 128; bit++) {
			struct vb_path src = v->path, dst = v->path, sport = v->path;
			uint16_t id = v->ip_id;

			/* An IPv4 address is the last 32 bits of its GID. */
			if (v->ipv4 && bit < 96)
				continue;
			src.src[bit / 8] ^= (uint8_t)(1 << bit % 8);
			assert_false(vb_icrc_check(&src, v->frame, v->frame_bytes, id, &id) &&
				     id == v->ip_id);
			dst.dst[bit / 8] ^= (uint8_t)(1 << bit % 8);
			assert_false(vb_icrc_check(&dst, v->frame, v->frame_bytes, id, &id) &&
				     id == v->ip_id);
			sport.sport ^= (uint16_t)(1 << bit % 16);
			assert_false(vb_icrc_check(&sport, v->frame, v->frame_bytes, id, &id) &&
				     id == v->ip_id);
		}
	}
}

/* What a router may change does not count. */
TEST(test_masked_path)
{
	for (size_t i = 0; i < vectors_count; i++) {
		struct vector *v = &vectors[i];
		struct vb_path path = v->path;
		uint16_t id;

		path.tclass ^= 0xff;
		path.hop_limit ^= 0xff;
		path.flow_label ^= 0xfffff;
		path.ifindex = 7;
		assert_true(vb_icrc_check(&path, v->frame, v->frame_bytes, v->ip_id, &id));
		assert_int_equal(id, v->ip_id);
	}
}

/* Random damage passes the solver as often as 16 unknown bits allow, and never without it. */
TEST(test_random_damage)
{
	enum { ROUNDS = 1 << 21 };
	uint8_t frame[80] = { VB_OP_RC_SEND_ONLY };
	uint64_t seed = 3;
	unsigned passed = 0;

	for (unsigned round = 0; round < ROUNDS; round++) {
		uint64_t r = vb_prng_next(&seed);

		memcpy(frame + 72, &r, sizeof(r));
		passed += vb_icrc_check(&path_ipv4, frame, sizeof(frame), 0, NULL);
		assert_false(vb_icrc_check(&path_ipv6, frame, sizeof(frame), 0, NULL));
	}
	/* 32 are expected; five standard deviations around that. */
	assert_in_range(passed, 4, 60);
}

TEST(test_truncated)
{
	for (size_t i = 0; i < vectors_count; i++) {
		const struct vector *v = &vectors[i];

		for (size_t bytes = 0; bytes < v->frame_bytes; bytes++) {
			uint8_t *copy = malloc(bytes ? bytes : 1);
			uint16_t id;

			memcpy(copy, v->frame, bytes);
			if (vb_icrc_check(&v->path, copy, bytes, v->ip_id, &id))
				assert_int_not_equal(id, v->ip_id);
			free(copy);
		}
	}
}

TEST(test_impossible_lengths)
{
	uint8_t *frame = calloc(1, VB_FRAME_BYTES_MAX + 64);
	uint16_t id = 4711;

	for (size_t bytes = 0; bytes < VB_FRAME_BYTES_MIN; bytes++)
		assert_false(vb_icrc_check(&path_ipv4, frame, bytes, 0, &id));
	for (size_t bytes = VB_FRAME_BYTES_MAX - 8; bytes < VB_FRAME_BYTES_MAX + 64; bytes++)
		(void)vb_icrc_check(&path_ipv4, frame, bytes, 0, NULL);
	assert_false(vb_icrc_check(&path_ipv4, frame, 65508, 0, &id));
	assert_false(vb_icrc_check(&path_ipv4, frame, 81, 0, &id));
	assert_int_equal(id, 4711);
	free(frame);
}

GROUP(vectors_load, NULL)
