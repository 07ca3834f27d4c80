/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_NIC_RC_H
#define VB_NIC_RC_H

/* The service table of RC (nic/data/service.h). */

#include "nic/data/service.h"

extern const struct vb_service vb_service_rc;

#endif
