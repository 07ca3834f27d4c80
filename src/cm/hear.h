/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_CM_HEAR_H
#define VB_CM_HEAR_H

/*
 * What has come to QP 1. A message counts only if it is from the peer: by the source address, the
 * communication ids, the transaction, and the QPN where it has one. What does not fit changes
 * nothing.
 */

#include "cm/cm.h"

/*
 * A MAD that came by this path: src is the sender's address. The octets may be anything; they are
 * read before this returns.
 */
void vb_cm_hear(struct vb_cm *cm, uint64_t now_ns, const struct vb_path *path,
		const uint8_t mad[VB_MAD_BYTES]);

#endif
