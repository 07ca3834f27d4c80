/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_NIC_XRC_TELL_H
#define VB_NIC_XRC_TELL_H

/*
 * What one shadow finds out and all processes have to know. Another process, which may be stopped,
 * may hold the store's lock, so a locked shadow only tries. What cannot be told at once is told by
 * vb_xrc_on_time(), milliseconds later.
 */

#include "nic/data/migrate.h"

struct vb_qp;

/* The shadow has gone to the error state, and so does the QP, for all. Shadow locked. */
void vb_xrc_failed(struct vb_qp *qp);

/* An event of the QP. Handles of this process get it at once. Shadow locked. */
void vb_xrc_event(struct vb_qp *qp, enum ibv_event_type type);

/* A packet says how the QP's path migrates: so it does, for all. Shadow locked. */
void vb_xrc_migration(struct vb_qp *qp, enum vb_migration_step step);

/* Tells what could not be told before. Shadow locked. */
void vb_xrc_on_time(struct vb_qp *qp);

/* Writes an event of the QP to the store's log. The store's lock held. */
void vb_xrc_note(struct vb_qp *qp, enum ibv_event_type type);

#endif
