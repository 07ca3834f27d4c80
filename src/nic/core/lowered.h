/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_NIC_LOWERED_H
#define VB_NIC_LOWERED_H

/* What the NIC says that it is, and the limits that come with that. For src/nic only. */

#include "nic/core/internal.h"

/* Takes the persona over: its limits, and for those that it does not lower the NIC's own. */
void vb_lowered_set(struct vb_nic *nic, const struct vb_persona *persona);

static inline uint32_t vb_lowered(const struct vb_nic *nic, enum vb_limit limit)
{
	return (uint32_t)nic->identity.most[limit];
}

/* There are as many as there may be: returns ENOMEM, with words that name the limit. */
int vb_lowered_full(const struct vb_nic *nic, enum vb_limit limit);

/* Counts one more. Returns 0; or ENOMEM, where there are as many as there may be. */
int vb_lowered_count_up(struct vb_nic *nic, _Atomic uint32_t *count, enum vb_limit limit);

#endif
