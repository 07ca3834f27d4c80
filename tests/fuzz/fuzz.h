/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_TESTS_FUZZ_H
#define VB_TESTS_FUZZ_H

/*
 * What a fuzz target is: one call per input, 0 returned. It must not keep anything of an input, and
 * states what must hold with vb_check(), so that a broken promise ends the run as a crash does.
 */

#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

#endif
