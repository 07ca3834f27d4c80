/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_TAPE_HOST_H
#define VB_TAPE_HOST_H

/* The host of a NIC that is recorded: asks the usual one, and notes what it answers. */

#include "nic/core/nic_host.h"

/*
 * The host to give to the NIC. Of the optional groups it has those whose answers are noted, or that
 * answer nothing; the others are what a record does not have (docs/replay.md).
 */
struct vb_nic_host vb_tape_host(const struct vb_nic_host *host);

#endif
