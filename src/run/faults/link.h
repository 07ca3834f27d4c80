/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_RUN_FAULTS_LINK_H
#define VB_RUN_FAULTS_LINK_H

/* A link with a script in between. */

#include "link/link.h"
#include "run/faults/faults.h"

struct vb_faults_link;

/* Puts itself around a slot's link. 0 or ENOMEM. */
int vb_faults_link(struct vb_faults *faults, struct vb_link **link, uint16_t slot);

/* Sends what the NIC gave to it. Rx right held. */
void vb_faults_link_run(struct vb_faults_link *link);

#endif
