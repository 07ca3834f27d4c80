/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_NIC_SERVICES_H
#define VB_NIC_SERVICES_H

/* The choice of a QP's service, which control makes when it creates the QP. */

#include "nic/data/service.h"

/* dc: the attributes of a QP of IBV_QPT_DRIVER, otherwise NULL. Returns NULL: no such service. */
const struct vb_service *vb_service_of(enum ibv_qp_type type, const struct vb_dc_attr *dc);

/* The same on the device of this PD, which may be NULL. */
const struct vb_service *vb_service_at(const struct ibv_pd *pd, enum ibv_qp_type type,
				       const struct vb_dc_attr *dc);

#endif
