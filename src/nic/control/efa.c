/* SPDX-License-Identifier: BSD-2-Clause */
#include "nic/control/efa.h"

#include "nic/core/internal.h"

bool vb_nic_is_efa(const struct vb_nic *nic)
{
	return vb_nic_offers_srd(nic);
}

void vb_efa_device(const struct vb_nic *nic, struct ibv_device_attr *attr)
{
	if (!vb_nic_is_efa(nic))
		return;
	attr->device_cap_flags = 0;
	attr->atomic_cap = IBV_ATOMIC_NONE;
	attr->max_srq_wr = attr->max_srq_sge = 0;
	attr->local_ca_ack_delay = 0;
}

void vb_efa_device_ex(const struct vb_nic *nic, struct ibv_device_attr_ex *attr)
{
	const struct ibv_device_attr orig = attr->orig_attr;

	if (!vb_nic_is_efa(nic))
		return;
	*attr = (struct ibv_device_attr_ex){
		.orig_attr = orig,
		.phys_port_cnt_ex = orig.phys_port_cnt,
	};
}

void vb_efa_port(const struct vb_nic *nic, struct ibv_port_attr *attr)
{
	if (!vb_nic_is_efa(nic))
		return;
	attr->gid_tbl_len = 1;
	attr->port_cap_flags = 0;
	attr->max_msg_sz = VB_EFA_MESSAGE_BYTES_MAX;
	attr->lmc = 1;
	attr->flags = 0;
}
