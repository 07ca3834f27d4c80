/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_NIC_SERVICES_H
#define VB_NIC_SERVICES_H

/* All services there are: which one a QP gets. Control asks when it makes a QP. */

#include "nic/data/service.h"

/* dc: what a QP of IBV_QPT_DRIVER is to be, else NULL. NULL: there is no such service. */
const struct vb_service *vb_service_of(enum ibv_qp_type type, const struct vb_dc_attr *dc);

#endif
