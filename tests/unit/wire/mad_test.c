/* SPDX-License-Identifier: BSD-2-Clause */
/* The header of management datagrams, octet by octet (IBTA 13.4.3). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <string.h>

#include "wire/mad.h"

static const uint8_t octets[VB_MAD_HEADER_BYTES] = {
	0x01, 0x07, 0x02, 0x83, /* base version, class, class version, method */
	0x11, 0x12, 0x21, 0x22, /* status, class specific */
	0x31, 0x32, 0x33, 0x34, 0x35, 0x36, 0x37, 0x38, /* transaction */
	0x41, 0x42, 0x00, 0x00,				/* attribute, reserved */
	0x51, 0x52, 0x53, 0x54,				/* modifier */
};

static const struct vb_mad fields = {
	.base_version = 1,
	.mgmt_class = 7,
	.class_version = 2,
	.method = 0x83,
	.status = 0x1112,
	.class_specific = 0x2122,
	.transaction_id = 0x3132333435363738,
	.attribute = 0x4142,
	.attribute_modifier = 0x51525354,
};

static void assert_fields(const struct vb_mad *mad)
{
	assert_int_equal(mad->base_version, fields.base_version);
	assert_int_equal(mad->mgmt_class, fields.mgmt_class);
	assert_int_equal(mad->class_version, fields.class_version);
	assert_int_equal(mad->method, fields.method);
	assert_int_equal(mad->status, fields.status);
	assert_int_equal(mad->class_specific, fields.class_specific);
	assert_true(mad->transaction_id == fields.transaction_id);
	assert_int_equal(mad->attribute, fields.attribute);
	assert_int_equal(mad->attribute_modifier, fields.attribute_modifier);
}

static void test_parse(void **state)
{
	struct vb_mad mad;

	vb_mad_parse(&mad, octets);
	assert_fields(&mad);
}

static void test_reserved_octets_do_not_matter(void **state)
{
	uint8_t in[VB_MAD_HEADER_BYTES];
	struct vb_mad mad;

	memcpy(in, octets, sizeof(in));
	in[18] = in[19] = 0xff;
	vb_mad_parse(&mad, in);
	assert_fields(&mad);
}

static void test_emit(void **state)
{
	uint8_t out[VB_MAD_HEADER_BYTES + 1];

	memset(out, 0xa5, sizeof(out));
	vb_mad_emit(&fields, out);
	assert_memory_equal(out, octets, sizeof(octets));
	assert_int_equal(out[VB_MAD_HEADER_BYTES], 0xa5);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_parse),
		cmocka_unit_test(test_reserved_octets_do_not_matter),
		cmocka_unit_test(test_emit),
	};

	return cmocka_run_group_tests_name("wire/mad", tests, NULL, NULL);
}
