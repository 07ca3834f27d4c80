/* SPDX-License-Identifier: BSD-2-Clause */
#include "nic/core/quiesce.h"

static void pass(vb_lock *right)
{
	vb_lock_take(right);
	vb_lock_drop(right);
}

void vb_nic_quiesce(struct vb_nic *nic)
{
	pass(&nic->rx);
	pass(&nic->peering.resume_lock);
	nic->insiders->quiesce(nic);
}
