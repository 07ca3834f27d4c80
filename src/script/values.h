/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_SCRIPT_VALUES_H
#define VB_SCRIPT_VALUES_H

/*
 * Numbers, times and addresses as a script has them. Each reads all of a word of so many octets;
 * false: it is no such thing, or too large. Pure.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/path.h"

enum { VB_SCRIPT_SECONDS_MAX = 86400 };

/* Decimal, or with 0x. */
bool vb_script_number(const char *word, size_t bytes, uint64_t *number);

/* A whole number of ns, us, ms or s, at most a day: 250us. */
bool vb_script_time(const char *word, size_t bytes, uint64_t *ns);

/* IPv4 or IPv6, as people write them. */
bool vb_script_address(const char *word, size_t bytes, uint8_t gid[VB_GID_BYTES]);

#endif
