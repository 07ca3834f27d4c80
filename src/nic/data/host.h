/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_NIC_HOST_H
#define VB_NIC_HOST_H

/* Parts of the engine's host (engine/host.h) that the ways also use directly. */

#include <stdbool.h>
#include <stdint.h>

#include "wire/opcode.h"

/*
 * Compare-and-swap, fetch-and-add or ATOMIC_WRITE on aligned application memory, atomic against all
 * others on this host. Returns false if the memory is unmapped.
 */
bool vb_atomic_guarded(uint64_t *at, enum vb_kind kind, uint64_t swap_add, uint64_t compare,
		       uint64_t *orig);

#endif
