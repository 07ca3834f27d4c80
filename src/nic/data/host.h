/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_NIC_HOST_H
#define VB_NIC_HOST_H

/* Of what the engine's host does (engine/host.h), what the ways do by themselves too. */

#include <stdbool.h>
#include <stdint.h>

#include "wire/opcode.h"

/*
 * Compare-and-swap, fetch-and-add or ATOMIC_WRITE on application memory, which is aligned: atomic
 * against any other of this host's. False: the memory is gone.
 */
bool vb_atomic_guarded(uint64_t *at, enum vb_kind kind, uint64_t swap_add, uint64_t compare,
		       uint64_t *orig);

#endif
