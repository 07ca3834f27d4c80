/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_NIC_MIGRATE_H
#define VB_NIC_MIGRATE_H

/*
 * Automatic path migration (IBA 17.2.8): a connected QP with an alternate path changes to it when
 * its application says so, when the peer's packets say so, or when its retries are used up.
 *
 *	MIGRATED  initial state; MigReq is set in all packets sent
 *	REARM     the application has asked for it; MigReq is clear. A clear one from the peer arms
 *	ARMED     a MigReq from the peer, on the alternate path, makes us migrate
 *
 * All functions are called with the QP locked.
 */

#include "nic/data/migration.h"
#include "nic/data/qp.h"

/* Checks path_mig_state for ibv_modify_qp(3). 0 or EINVAL. has_alt: a path was loaded once. */
int vb_migration_check(enum ibv_mig_state from, enum ibv_mig_state to, bool has_alt);

/* The attributes now say REARM: waits for the peer. */
void vb_migration_rearm(struct vb_qp *qp);

/* The former primary path was replaced by other means. */
void vb_migration_forget_old(struct vb_qp *qp);

/* Changes to the alternate path. The QP is ARMED, or its requester was. */
void vb_migrate_locked(struct vb_qp *qp);

/* The resulting change of attributes and paths, in any memory. */
void vb_migration_change(struct ibv_qp_attr *attr, struct vb_path *path,
			 struct vb_migration *migration);

/*
 * Handles a packet for a QP with an alternate path: did it come on an allowed path, and what does
 * it say of migration? from: NULL for shared memory, where there is one path. Returns false if it
 * is from elsewhere.
 */
bool vb_migration_admit(struct vb_qp *qp, const struct vb_path *from, const struct vb_pkt *pkt,
			const struct vb_op_info *info);

/* Drops the alternate path (RESET, destruction). */
void vb_migration_end(struct vb_qp *qp);

#endif
