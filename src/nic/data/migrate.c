/* SPDX-License-Identifier: BSD-2-Clause */
#include "nic/data/migrate.h"

#include <errno.h>
#include <stdlib.h>

#include "base/probe.h"
#include "base/psn.h"
#include "base/refusal.h"
#include "engine/rc_answer.h"
#include "nic/core/ah.h"

/*
 * What applications may ask for (IBA 17.2.8): to wait for the peer, and to migrate once it is
 * armed. Only the peer's packets arm. Asking for the current state is allowed where nothing is
 * under way.
 */
static const bool may_ask[IBV_MIG_ARMED + 1][IBV_MIG_ARMED + 1] = {
	[IBV_MIG_MIGRATED] = { [IBV_MIG_MIGRATED] = true, [IBV_MIG_REARM] = true },
	[IBV_MIG_REARM] = { [IBV_MIG_REARM] = true },
	[IBV_MIG_ARMED] = { [IBV_MIG_MIGRATED] = true },
};

int vb_migration_check(enum ibv_mig_state from, enum ibv_mig_state to, bool has_alt)
{
	if (from > IBV_MIG_ARMED || to > IBV_MIG_ARMED || !may_ask[from][to])
		return vb_refuse(EINVAL,
				 "path_mig_state is %d, which does not follow %d "
				 "(IBV_MIG_MIGRATED is 0, REARM 1, ARMED 2)",
				 (int)to, (int)from);
	return to == IBV_MIG_REARM && !has_alt
		       ? vb_refuse(EINVAL, "path_mig_state is IBV_MIG_REARM, but the QP has no "
					   "alternate path (IBV_QP_ALT_PATH)")
		       : 0;
}

void vb_migration_rearm(struct vb_qp *qp)
{
	qp->to.migreq = false;
	qp->to.migration->refused = false;
}

void vb_migration_forget_old(struct vb_qp *qp)
{
	if (qp->to.migration)
		qp->to.migration->has_old = false;
}

void vb_migration_change(struct ibv_qp_attr *attr, struct vb_path *path,
			 struct vb_migration *migration)
{
	migration->old = *path;
	migration->has_old = true;
	*path = migration->alt;
	attr->ah_attr = attr->alt_ah_attr;
	attr->port_num = attr->alt_port_num;
	attr->pkey_index = attr->alt_pkey_index;
	attr->timeout = attr->alt_timeout;
	attr->path_mig_state = IBV_MIG_MIGRATED;
}

void vb_migrate_locked(struct vb_qp *qp)
{
	vb_migration_change(&qp->attr, &qp->to.path, qp->to.migration);
	qp->req.retry.timeout = qp->attr.timeout;
	/* When it was loaded, requests may have been for another SRQ. */
	if (qp->req.transport == VB_XRC)
		vb_path_sport_set(qp->nic, &qp->to.path,
				  (uint16_t)(qp->ibv.qp.qp_num >> VB_INDEX_BITS),
				  qp->special.aimed_slot << VB_INDEX_BITS);
	vb_rc_new_path(&qp->req, vb_nic_now_ns(qp->nic));
	vb_timer_arm(qp->nic, qp, vb_rc_deadline_ns(&qp->req));
	qp->to.migreq = true;
	VB_PROBE(path_change, qp->ibv.qp.qp_num, "alternate");
	vb_qp_event(qp, IBV_EVENT_PATH_MIG);
}

static bool comes_by(const struct vb_path *from, const struct vb_path *path)
{
	return !from || (memcmp(from->src, path->dst, VB_GID_BYTES) == 0 &&
			 memcmp(from->dst, path->src, VB_GID_BYTES) == 0);
}

static uint32_t psn_awaited(const struct vb_qp *qp)
{
	return qp->service->fail.psn_awaited ? qp->service->fail.psn_awaited(qp) : qp->resp.epsn;
}

/* A late packet, which tells an earlier state, must not count. */
static bool is_news(const struct vb_qp *qp, const struct vb_pkt *pkt, const struct vb_op_info *info)
{
	switch (info->kind) {
	case VB_K_READ_RESP:
	case VB_K_ACK:
	case VB_K_ATOMIC_ACK:
		return vb_psn_diff(pkt->psn, qp->req.una_psn) >= 0;
	default:
		return pkt->psn == psn_awaited(qp);
	}
}

/*
 * We wait for the peer to arm. If its packet comes on the alternate path, it was armed and has
 * migrated, and the packet that told the former was lost: insisting on that, as in IBA 17.2.8,
 * would end the connection.
 */
static enum vb_migration_step step_waiting(bool primary, bool alt, bool migreq, bool news)
{
	if (migreq && alt && !primary)
		return VB_MIGRATION_MIGRATE;
	return primary && !migreq && news ? VB_MIGRATION_ARM : VB_MIGRATION_STAY;
}

/* IBA 11.6.3.2: the peer may have migrated to a path that we do not follow. */
static enum vb_migration_step step_armed(bool primary, bool alt, bool migreq, bool news)
{
	if (migreq && alt)
		return VB_MIGRATION_MIGRATE;
	return migreq && (news || !primary) ? VB_MIGRATION_REFUSE : VB_MIGRATION_STAY;
}

static void take_step(struct vb_qp *qp, enum vb_migration_step step)
{
	if (qp->service->fail.migrate) {
		qp->service->fail.migrate(qp, step);
		return;
	}
	switch (step) {
	case VB_MIGRATION_STAY:
		break;
	case VB_MIGRATION_ARM:
		qp->attr.path_mig_state = IBV_MIG_ARMED;
		qp->req.retry.armed = true;
		break;
	case VB_MIGRATION_MIGRATE:
		vb_migrate_locked(qp);
		break;
	case VB_MIGRATION_REFUSE:
		qp->to.migration->refused = true;
		vb_qp_event(qp, IBV_EVENT_PATH_MIG_ERR);
		break;
	}
}

bool vb_migration_admit(struct vb_qp *qp, const struct vb_path *from, const struct vb_pkt *pkt,
			const struct vb_op_info *info)
{
	const struct vb_migration *migration = qp->to.migration;
	bool primary = comes_by(from, &qp->to.path), alt = comes_by(from, &migration->alt);
	bool old = migration->has_old && comes_by(from, &migration->old);
	enum vb_migration_step step = VB_MIGRATION_STAY;

	switch (qp->attr.path_mig_state) {
	case IBV_MIG_REARM:
		step = step_waiting(primary, alt, pkt->migreq, is_news(qp, pkt, info));
		break;
	case IBV_MIG_ARMED:
		step = step_armed(primary, alt, pkt->migreq, is_news(qp, pkt, info));
		break;
	case IBV_MIG_MIGRATED:
		break;
	}
	/* Reported once. */
	if (step == VB_MIGRATION_REFUSE && migration->refused)
		step = VB_MIGRATION_STAY;
	if (step != VB_MIGRATION_STAY)
		take_step(qp, step);
	return primary || old || step == VB_MIGRATION_MIGRATE;
}

void vb_migration_end(struct vb_qp *qp)
{
	free(qp->to.migration);
	qp->to.migration = NULL;
	qp->to.migrates = false;
	qp->to.migreq = vb_qp_is(qp, VB_MIGREQ);
}
