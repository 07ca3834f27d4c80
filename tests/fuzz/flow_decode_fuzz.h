/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_TESTS_FLOW_DECODE_FUZZ_H
#define VB_TESTS_FLOW_DECODE_FUZZ_H

/* An input: a flow rule, in so many octets, and a frame. What is missing is zeros. */
enum { FLOW_FUZZ_RULE_BYTES = 512 };

#endif
