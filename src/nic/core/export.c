/* SPDX-License-Identifier: BSD-2-Clause */
#include "nic/core/export.h"

bool vb_export_says_wire(const struct vb_export *export, uint32_t qpn, uint32_t dqpn)
{
	for (unsigned i = 0; i < VB_SLOTS_PER_NIC_MAX; i++) {
		const struct vb_export_qp *entry = &export->qp[i][qpn & (VB_INDICES - 1)];

		if (VB_EXPORT_GET(entry->wire_qpn) == qpn &&
		    VB_EXPORT_GET(entry->wire_dqpn) == dqpn)
			return true;
	}
	return false;
}
