/* SPDX-License-Identifier: BSD-2-Clause */
/* The messages of communication management: each bit alone, all fields together, and Linux's. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "cm_members.h"
#include "cm_vectors.h"

enum { ROUNDS = 200 };

static bool has_info(unsigned attr)
{
	return attr == VB_CM_REJ || attr == VB_CM_APR || attr == VB_CM_SIDR_REP;
}

static void assert_member(const struct vb_cm_msg *a, const struct vb_cm_msg *b,
			  const struct cm_member *m)
{
	if (memcmp((const uint8_t *)a + m->at, (const uint8_t *)b + m->at, m->bytes))
		fail_msg("%s of %s differs", m->name, vb_cm_attr_name(m->attr));
}

static void assert_members(const struct vb_cm_msg *a, const struct vb_cm_msg *b)
{
	const struct cm_member *m;

	assert_int_equal(a->attr, b->attr);
	assert_true(a->transaction_id == b->transaction_id);
	assert_int_equal(a->ece_options, b->ece_options);
	for (m = cm_member_next(a->attr, NULL); m; m = cm_member_next(a->attr, m))
		assert_member(a, b, m);
}

/* What is shorter than its room is followed by zeros. */
static void assert_padded(const uint8_t *room, size_t room_bytes, const uint8_t *data, size_t bytes)
{
	assert_memory_equal(room, data, bytes);
	for (size_t i = bytes; i < room_bytes; i++)
		assert_int_equal(room[i], 0);
}

static void test_round_trip(void **state)
{
	uint64_t seed = 1;

	for (size_t i = 0; i < VB_ARRAY_LEN(cm_attrs) * ROUNDS; i++) {
		unsigned attr = cm_attrs[i / ROUNDS];
		uint8_t mad[VB_MAD_BYTES + 1], octets[2 * VB_MAD_BYTES];
		struct vb_cm_msg msg = cm_msg_random(attr, &seed, octets), back;

		memset(mad, 0xa5, sizeof(mad));
		vb_cm_emit(&msg, mad);
		assert_int_equal(mad[VB_MAD_BYTES], 0xa5);
		assert_true(vb_cm_parse(&back, mad));
		assert_members(&msg, &back);
		assert_int_equal(back.private_bytes, vb_cm_private_bytes(msg.attr));
		assert_ptr_equal(back.private_data + back.private_bytes, mad + VB_MAD_BYTES);
		assert_padded(back.private_data, back.private_bytes, msg.private_data,
			      msg.private_bytes);
		assert_int_equal(back.info != NULL, has_info(attr));
		if (back.info)
			assert_padded(back.info, VB_CM_INFO_BYTES, msg.info, msg.info_bytes);
	}
}

/* The member that a bit of a MAD belongs to, NULL if to none; never to two. */
static const struct cm_member *bit_member(unsigned attr, unsigned bit)
{
	struct vb_cm_msg msg = cm_msg_empty(attr), empty = msg;
	const struct cm_member *m, *found = NULL;
	uint8_t mad[VB_MAD_BYTES];

	vb_cm_emit(&msg, mad);
	assert_int_equal(mad[bit / 8], 0);
	mad[bit / 8] = (uint8_t)(0x80 >> bit % 8);
	if (!vb_cm_parse(&msg, mad))
		msg.info_bytes = 1; /* more than there is room for, then */
	for (m = cm_member_next(attr, NULL); m; m = cm_member_next(attr, m)) {
		if (memcmp((uint8_t *)&msg + m->at, (uint8_t *)&empty + m->at, m->bytes) == 0)
			continue;
		assert_null(found);
		found = m;
	}
	return found;
}

/* Ones where a message has neither a member nor room for data. */
static void reserved_bits(unsigned attr, uint8_t reserved[VB_MAD_BYTES])
{
	unsigned widths[VB_ARRAY_LEN(cm_members)] = { 0 };
	unsigned room = vb_cm_private_bytes((enum vb_cm_attr)attr);
	const struct cm_member *m;

	memset(reserved, 0, VB_MAD_BYTES);
	room += has_info(attr) ? VB_CM_INFO_BYTES : 0;
	for (unsigned bit = VB_MAD_HEADER_BYTES * 8; bit < VB_MAD_BYTES * 8; bit++) {
		bool in_room = bit >= (VB_MAD_BYTES - room) * 8;

		m = bit_member(attr, bit);
		if (m) {
			assert_false(in_room);
			widths[m - cm_members]++;
		} else if (!in_room) {
			reserved[bit / 8] |= (uint8_t)(0x80 >> bit % 8);
		}
	}
	for (m = cm_member_next(attr, NULL); m; m = cm_member_next(attr, m))
		assert_int_equal(widths[m - cm_members], m->width);
}

static void test_reserved_bits(void **state)
{
	uint64_t seed = 2;

	for (size_t i = 0; i < VB_ARRAY_LEN(cm_attrs); i++) {
		uint8_t reserved[VB_MAD_BYTES], mad[VB_MAD_BYTES], octets[2 * VB_MAD_BYTES];
		struct vb_cm_msg msg = cm_msg_random(cm_attrs[i], &seed, octets), back;

		reserved_bits(cm_attrs[i], reserved);
		vb_cm_emit(&msg, mad);
		for (unsigned at = 0; at < VB_MAD_BYTES; at++) {
			assert_int_equal(mad[at] & reserved[at], 0);
			mad[at] |= reserved[at];
		}
		assert_true(vb_cm_parse(&back, mad));
		assert_members(&msg, &back);
	}
}

/* What Linux sent is read as it was meant, and written as it wrote it. */
static void test_linux(void **state)
{
	for (size_t i = 0; i < VB_ARRAY_LEN(cm_vectors); i++) {
		const struct cm_vector *v = &cm_vectors[i];
		uint8_t mad[VB_MAD_BYTES], out[VB_MAD_BYTES], data[VB_MAD_BYTES];
		struct vb_cm_msg msg;

		memset(mad, 0, sizeof(mad));
		cm_octets(mad, v->hex);
		assert_true(vb_cm_parse(&msg, mad));
		assert_members(&v->msg, &msg);
		msg = v->msg;
		msg.private_data = data;
		msg.private_bytes = (uint8_t)cm_vector_private(v, data);
		vb_cm_emit(&msg, out);
		assert_memory_equal(out, mad, VB_MAD_BYTES);
	}
}

/*
 * What neither tshark nor those octets show: a field alone, and the octets that it has by the
 * tables of IBTA 12.6 to 12.8 and 12.11. All others are zero.
 */
/* clang-format off */
#define TWELVES 0x1212121212121212
static const struct placed {
	unsigned attr;
	const char *name;
	uint64_t value;
	unsigned at; /* behind the MAD's header */
	const char *hex;
} placed[] = {
	{ VB_CM_REQ, "req.primary.packet_rate", 0x2a, 91, "2a" },
	{ VB_CM_REQ, "req.alternate.flow_label", 0x12345, 132, "123450" },
	{ VB_CM_REQ, "req.alternate.packet_rate", 0x2a, 135, "2a" },
	{ VB_CM_REQ, "req.sap_supported", 1, 139, "04" },
	{ VB_CM_MRA, "mra.message_mraed", 2, 8, "80" },
	{ VB_CM_SIDR_REP, "info_bytes", 72, 5, "48" },
	{ VB_CM_SIDR_REP, "ece_vendor_id", 0x123456, 6, "123400000056" },
	{ VB_CM_LAP, "local_comm_id", 0x12345678, 0, "12345678" },
	{ VB_CM_LAP, "remote_comm_id", 0x12345678, 4, "12345678" },
	{ VB_CM_LAP, "lap.remote_qpn", 0x123456, 12, "123456" },
	{ VB_CM_LAP, "lap.remote_cm_response_timeout", 0x15, 15, "a8" },
	{ VB_CM_LAP, "lap.alternate.local_lid", 0x1234, 20, "1234" },
	{ VB_CM_LAP, "lap.alternate.remote_lid", 0x1234, 22, "1234" },
	{ VB_CM_LAP, "lap.alternate.local_gid", TWELVES, 24, "12121212121212121212121212121212" },
	{ VB_CM_LAP, "lap.alternate.remote_gid", TWELVES, 40, "12121212121212121212121212121212" },
	{ VB_CM_LAP, "lap.alternate.flow_label", 0x12345, 56, "123450" },
	{ VB_CM_LAP, "lap.alternate.traffic_class", 0x12, 59, "12" },
	{ VB_CM_LAP, "lap.alternate.hop_limit", 0x12, 60, "12" },
	{ VB_CM_LAP, "lap.alternate.packet_rate", 0x2a, 61, "2a" },
	{ VB_CM_LAP, "lap.alternate.sl", 0x9, 62, "90" },
	{ VB_CM_LAP, "lap.alternate.subnet_local", 1, 62, "08" },
	{ VB_CM_LAP, "lap.alternate.local_ack_timeout", 0x15, 63, "a8" },
	{ VB_CM_APR, "local_comm_id", 0x12345678, 0, "12345678" },
	{ VB_CM_APR, "remote_comm_id", 0x12345678, 4, "12345678" },
	{ VB_CM_APR, "info_bytes", 72, 8, "48" },
	{ VB_CM_APR, "apr.status", 0x0d, 9, "0d" },
};
/* clang-format on */

static void test_placed(void **state)
{
	static const uint8_t info[VB_CM_INFO_BYTES];

	for (size_t i = 0; i < VB_ARRAY_LEN(placed); i++) {
		struct vb_cm_msg msg = cm_msg_empty(placed[i].attr);
		uint8_t expected[VB_MAD_BYTES], mad[VB_MAD_BYTES];
		const struct cm_member *m = cm_member_next(placed[i].attr, NULL);

		while (m && strcmp(m->name, placed[i].name) != 0)
			m = cm_member_next(placed[i].attr, m);
		assert_non_null(m);
		vb_cm_emit(&msg, expected);
		cm_octets(expected + VB_MAD_HEADER_BYTES + placed[i].at, placed[i].hex);
		cm_member_set(&msg, m, placed[i].value);
		msg.info = info;
		vb_cm_emit(&msg, mad);
		assert_memory_equal(mad, expected, VB_MAD_BYTES);
	}
}

static void assert_refused(const uint8_t mad[VB_MAD_BYTES])
{
	struct vb_cm_msg untouched, msg;

	memset(&untouched, 0x5a, sizeof(untouched));
	msg = untouched;
	assert_false(vb_cm_parse(&msg, mad));
	assert_memory_equal(&msg, &untouched, sizeof(msg));
}

/* Base version, class, class version and method: any other value. */
static void test_other_headers(void **state)
{
	for (unsigned at = 0; at < 4; at++) {
		for (unsigned value = 0; value < 256; value++) {
			struct vb_cm_msg msg = cm_msg_empty(VB_CM_RTU);
			uint8_t mad[VB_MAD_BYTES];
			unsigned right;

			vb_cm_emit(&msg, mad);
			right = mad[at];
			mad[at] = (uint8_t)value;
			if (value == right)
				assert_true(vb_cm_parse(&msg, mad));
			else
				assert_refused(mad);
		}
	}
}

static void test_other_attributes(void **state)
{
	for (unsigned attr = 0; attr <= UINT16_MAX; attr++) {
		struct vb_cm_msg msg = cm_msg_empty(VB_CM_RTU);
		uint8_t mad[VB_MAD_BYTES];

		vb_cm_emit(&msg, mad);
		mad[16] = (uint8_t)(attr >> 8);
		mad[17] = (uint8_t)attr;
		if (attr >= 0x10 && attr <= 0x1a)
			assert_true(vb_cm_parse(&msg, mad));
		else
			assert_refused(mad);
	}
}

/* The length of additional information, as each message has it, up to its room and beyond. */
static void test_too_much_info(void **state)
{
	static const struct {
		unsigned attr, at, shift, max;
	} lengths[] = {
		{ VB_CM_REJ, 9, 1, 127 },
		{ VB_CM_APR, 8, 0, 255 },
		{ VB_CM_SIDR_REP, 5, 0, 255 },
	};

	for (size_t i = 0; i < VB_ARRAY_LEN(lengths); i++) {
		for (unsigned bytes = 0; bytes <= lengths[i].max; bytes++) {
			struct vb_cm_msg msg = cm_msg_empty(lengths[i].attr);
			uint8_t mad[VB_MAD_BYTES];

			vb_cm_emit(&msg, mad);
			mad[VB_MAD_HEADER_BYTES + lengths[i].at] =
				(uint8_t)(bytes << lengths[i].shift);
			if (bytes > 72) {
				assert_refused(mad);
				continue;
			}
			assert_true(vb_cm_parse(&msg, mad));
			assert_int_equal(msg.info_bytes, bytes);
		}
	}
}

/* IBTA 12.6 to 12.8, 12.11. */
static void test_private_bytes(void **state)
{
	static const struct {
		unsigned attr, bytes;
	} rooms[] = {
		{ VB_CM_REQ, 92 },
		{ VB_CM_MRA, 222 },
		{ VB_CM_REJ, 148 },
		{ VB_CM_REP, 196 },
		{ VB_CM_RTU, 224 },
		{ VB_CM_DREQ, 220 },
		{ VB_CM_DREP, 224 },
		{ VB_CM_SIDR_REQ, 216 },
		{ VB_CM_SIDR_REP, 136 },
		{ VB_CM_LAP, 168 },
		{ VB_CM_APR, 148 },
	};

	assert_int_equal(VB_ARRAY_LEN(rooms), VB_ARRAY_LEN(cm_attrs));
	for (size_t i = 0; i < VB_ARRAY_LEN(rooms); i++)
		assert_int_equal(vb_cm_private_bytes((enum vb_cm_attr)rooms[i].attr),
				 rooms[i].bytes);
	assert_int_equal(VB_CM_REQ_PRIVATE_BYTES, 92);
	assert_int_equal(VB_CM_SIDR_REP_PRIVATE_BYTES, 136);
}

/* True if emitting this ends the process. */
static bool is_our_bug(const struct vb_cm_msg *msg)
{
	uint8_t mad[VB_MAD_BYTES];
	pid_t child = fork();
	int status = 0;

	assert_true(child >= 0);
	if (child == 0) {
		/* cmocka catches this signal, and would go on with the next test in the child. */
		signal(SIGILL, SIG_DFL);
		vb_cm_emit(msg, mad);
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	return WIFSIGNALED(status);
}

static void test_what_does_not_fit(void **state)
{
	static const uint8_t octets[VB_MAD_BYTES];
	struct vb_cm_msg msg = cm_msg_empty(VB_CM_REQ);

	msg.private_data = msg.info = octets;
	msg.private_bytes = VB_CM_REQ_PRIVATE_BYTES;
	msg.req.retry_count = 7;
	assert_false(is_our_bug(&msg));
	msg.req.retry_count = 8;
	assert_true(is_our_bug(&msg));
	msg.req.retry_count = 7;
	msg.ece_vendor_id = 1 << 24;
	assert_true(is_our_bug(&msg));
	msg.ece_vendor_id = 0;
	msg.info_bytes = 1;
	assert_true(is_our_bug(&msg));
	msg.info_bytes = 0;
	msg.private_bytes++;
	assert_true(is_our_bug(&msg));
	msg = cm_msg_empty(0x1b);
	assert_true(is_our_bug(&msg));
}

static void test_names(void **state)
{
	assert_string_equal(vb_cm_attr_name(0x10), "REQ");
	assert_string_equal(vb_cm_attr_name(0x18), "SIDR_REP");
	assert_string_equal(vb_cm_attr_name(0x1a), "APR");
	assert_string_equal(vb_cm_attr_name(0x0f), "unknown");
	assert_string_equal(vb_cm_attr_name(0x1b), "unknown");
	assert_string_equal(vb_cm_rej_text(8), "nobody listens for this service id");
	assert_string_equal(vb_cm_rej_text(28), "rejected by the application");
	assert_string_equal(vb_cm_rej_text(0), "unknown");
	assert_string_equal(vb_cm_rej_text(34), "unknown");
	assert_string_equal(vb_cm_rej_text(UINT16_MAX), "unknown");
	assert_string_equal(vb_cm_sidr_text(1), "nobody listens for this service id");
	assert_string_equal(vb_cm_sidr_text(6), "unknown");
	assert_string_equal(vb_cm_apr_text(5), "this is the path in use");
	assert_string_equal(vb_cm_apr_text(14), "unknown");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_round_trip),
		cmocka_unit_test(test_reserved_bits),
		cmocka_unit_test(test_linux),
		cmocka_unit_test(test_placed),
		cmocka_unit_test(test_other_headers),
		cmocka_unit_test(test_other_attributes),
		cmocka_unit_test(test_too_much_info),
		cmocka_unit_test(test_private_bytes),
		cmocka_unit_test(test_what_does_not_fit),
		cmocka_unit_test(test_names),
	};

	return cmocka_run_group_tests_name("wire/cm_msg", tests, NULL, NULL);
}
