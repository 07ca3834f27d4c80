/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_NIC_XRC_TELL_H
#define VB_NIC_XRC_TELL_H

/*
 * What one shadow learns, and all processes are to know. The store's lock may be held by another
 * process, which may be stopped, so a locked shadow only tries. What cannot be told at once is told
 * by vb_xrc_on_time(), milliseconds later.
 */

#include "nic/data/migrate.h"

struct vb_qp;

/* The shadow has gone to the error state, and so does the QP, for all. Shadow locked. */
void vb_xrc_failed(struct vb_qp *qp);

/* Something happened to the QP. Handles of this process are told at once. Shadow locked. */
void vb_xrc_event(struct vb_qp *qp, enum ibv_event_type type);

/*
 * A packet says how the QP's path migrates: so it does, for all. Not if the store is busy: the
 * peer's next packet says the same. Shadow locked.
 */
void vb_xrc_migration(struct vb_qp *qp, enum vb_migration_step step);

/* Tell what waits to be told. Shadow locked. */
void vb_xrc_on_time(struct vb_qp *qp);

/* Note in the store's log what happened to the QP. The store's lock held. */
void vb_xrc_note(struct vb_qp *qp, enum ibv_event_type type);

#endif
