/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_NIC_UD_H
#define VB_NIC_UD_H

/* The service table of UD (nic/data/service.h). */

#include "nic/data/service.h"

extern const struct vb_service vb_service_ud;

/*
 * The same on EFA, where programs keep 16 bits of a QPN (nic/core/slots.h), and completions name
 * their sender by the number of its address (nic/core/ahn.h).
 */
extern const struct vb_service vb_service_ud_efa;

#endif
