/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_RUN_FAULTS_RINGS_H
#define VB_RUN_FAULTS_RINGS_H

/* Rings with a script in between. */

#include "run/faults/faults.h"

struct vb_peer;

/*
 * The rings that the NIC is to use in place of these (struct vb_ring_area), for sending to that
 * peer, and for receiving from it; without memory, the same. Under any lock.
 */
void *vb_faults_tx(struct vb_faults *faults, struct vb_peer *peer, void *area);
void *vb_faults_rx(struct vb_faults *faults, struct vb_peer *peer, void *area);

/* The peer's rings to us or (sent) from us are about to change, or to go. Under any lock. */
void vb_faults_part(struct vb_faults *faults, const struct vb_peer *peer, bool sent);

/* Moves what is in the rings. Rx right held. */
void vb_vias_run(struct vb_faults *faults);

/* All of them. */
void vb_vias_free(struct vb_faults *faults);

#endif
