/* SPDX-License-Identifier: BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/prf.h"

/* The vector for eight octets, 00 to 07, under the key 00 to 0f (SipHash's reference code). */
static void it_is_siphash(void **state)
{
	const uint64_t key[2] = { 0x0706050403020100u, 0x0f0e0d0c0b0a0908u };

	assert_true(vb_prf(key, 0x0706050403020100u) == 0x93f5f5799a932462u);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(it_is_siphash) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
