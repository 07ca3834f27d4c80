/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/prf.h"
#include "group.h"

/* The vector for eight octets, 00 to 07, under the key 00 to 0f (SipHash's reference code). */
TEST(it_is_siphash)
{
	const uint64_t key[2] = { 0x0706050403020100u, 0x0f0e0d0c0b0a0908u };

	assert_true(vb_prf(key, 0x0706050403020100u) == 0x93f5f5799a932462u);
}
