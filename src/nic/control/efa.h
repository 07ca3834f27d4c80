/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_NIC_EFA_H
#define VB_NIC_EFA_H

/*
 * What a device that calls itself EFA says of itself, beside what its persona says (topology): that
 * persona is EFA's which offers SRD. Any thread.
 */

#include <infiniband/verbs.h>
#include <stdbool.h>

#include "base/lent.h"

struct vb_nic;

enum {
	VB_EFA_INLINE_BYTES_MAX = 32,
	VB_EFA_MESSAGE_BYTES_MAX = 8928,
	VB_EFA_RDMA_BYTES_MAX = 1 << 30,
};

/* Is the device of this NIC one? */
VB_LENT bool vb_nic_is_efa(const struct vb_nic *nic);

/* Lowers what the NIC says of itself; without effect on a device that is none. */
void vb_efa_device(const struct vb_nic *nic, struct ibv_device_attr *attr);
void vb_efa_device_ex(const struct vb_nic *nic, struct ibv_device_attr_ex *attr);
void vb_efa_port(const struct vb_nic *nic, struct ibv_port_attr *attr);

#endif
