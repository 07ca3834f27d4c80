/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_NIC_MIGRATE_H
#define VB_NIC_MIGRATE_H

/*
 * Automatic path migration (IBA 17.2.8): a connected QP that has an alternate path goes over to it
 * when its application says so, when the peer's packets say so, or when its retries are used up.
 *
 *	MIGRATED  as at the beginning; MigReq is set in all that is sent
 *	REARM     the application has asked for it; MigReq is clear. The peer's clear one arms
 *	ARMED     the peer's MigReq, come by the alternate path, makes us migrate
 *
 * Every function wants the QP locked.
 */

#include "nic/data/migration.h"
#include "nic/data/qp.h"

/* path_mig_state as ibv_modify_qp(3) may set it. 0 or EINVAL. has_alt: a path was ever loaded. */
int vb_migration_check(enum ibv_mig_state from, enum ibv_mig_state to, bool has_alt);

/* After the attributes say REARM: wait for the peer. */
void vb_migration_rearm(struct vb_qp *qp);

/* The path that was the primary one has been replaced otherwise. */
void vb_migration_forget_old(struct vb_qp *qp);

/* Over to the alternate path. It is ARMED, or its requester was. */
void vb_migrate_locked(struct vb_qp *qp);

/* What becomes of the attributes and the paths then: of any memory. */
void vb_migration_change(struct ibv_qp_attr *attr, struct vb_path *path,
			 struct vb_migration *migration);

/*
 * A packet for a QP that has an alternate path: does it come by a way that it may come by, and what
 * does it say of migration? from: NULL, if it came through shared memory, where there is one way.
 * False: it is a stranger's.
 */
bool vb_migration_admit(struct vb_qp *qp, const struct vb_path *from, const struct vb_pkt *pkt,
			const struct vb_op_info *info);

/* It has no alternate path any more (RESET, destruction). */
void vb_migration_end(struct vb_qp *qp);

#endif
