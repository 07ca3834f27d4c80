/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_NIC_UC_H
#define VB_NIC_UC_H

/* The service table of UC (nic/data/service.h). */

#include "nic/data/service.h"

extern const struct vb_service vb_service_uc;

#endif
