/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_ABI_VERBS_AH_H
#define VB_ABI_VERBS_AH_H

/* Address handles, and hints about addresses. */

#include <infiniband/verbs.h>

#include "nic/core/nic.h"

/*
 * Called when a call with this address was refused: if the GIDs are the reason, gives a hint
 * (run/process/log.h). Programs that were given no GID index fail like this, since InfiniBand needs
 * none.
 */
void vb_abi_look_at_gids(const char *call, struct vb_nic *nic, const struct ibv_ah_attr *attr);

#endif
