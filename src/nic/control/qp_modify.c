/* SPDX-License-Identifier: BSD-2-Clause */

/* ibv_modify_qp: checks everything before it changes anything. */

#include "nic/control/qp_modify.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/probe.h"
#include "base/refusal.h"
#include "engine/rc_resp.h"
#include "nic/control/nic.h"
#include "nic/data/qp_error.h"
#include "nic/data/qp_extra.h"
#include "nic/core/ah.h"
#include "nic/core/names.h"
#include "nic/data/acks.h"
#include "nic/data/migrate.h"
#include "nic/data/tally.h"
#include "nic/data/pace.h"
#include "nic/data/qp.h"
#include "nic/data/window.h"
#include "nic/queue/rq.h"
#include "nic/service/tm/tm.h"
#include "nic/way/peer.h"
#include "nic/way/qp_export.h"
#include "nic/way/receive.h"
#include "nic/way/way.h"
#include "nic/core/lowered.h"

#define ACCESS_KNOWN                                                                              \
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |              \
	 IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_MW_BIND | IBV_ACCESS_ZERO_BASED |                  \
	 IBV_ACCESS_ON_DEMAND | IBV_ACCESS_HUGETLB | IBV_ACCESS_OPTIONAL_RANGE |                  \
	 VB_ACCESS_FLUSH_GLOBAL | VB_ACCESS_FLUSH_PERSISTENT)

/* What a packet may need beside its payload: BTH, RETH, ImmDt, ICRC. */
#define HEADERS_BYTES 36

/* The result of the checks, before anything changes. */
struct plan {
	enum ibv_qp_state from, to;
	struct vb_path path, alt_path;
	struct vb_resource *ring;
	struct vb_migration *migration; /* if it has none yet */
	struct vb_peer *peer; /* to be reached through shared memory */
	bool tells; /* reports when the queue is drained */
};

struct bound {
	int bit;
	const char *name;
	uint64_t value, min, max;
};

int vb_qp_values_check(const struct vb_nic *nic, const struct ibv_qp_attr *a, int mask)
{
#define BOUND(bit, field, min, max) { bit, #field, a->field, min, max }
	const struct bound bounds[] = {
		BOUND(IBV_QP_PKEY_INDEX, pkey_index, 0, VB_PKEYS - 1),
		BOUND(IBV_QP_PORT, port_num, 1, VB_PORTS),
		BOUND(IBV_QP_PATH_MTU, path_mtu, IBV_MTU_256, IBV_MTU_4096),
		BOUND(IBV_QP_DEST_QPN, dest_qp_num, 0, 0xffffff),
		BOUND(IBV_QP_MAX_QP_RD_ATOMIC, max_rd_atomic, 0,
		      vb_lowered(nic, VB_LIMIT_INIT_RD_ATOM)),
		BOUND(IBV_QP_MAX_DEST_RD_ATOMIC, max_dest_rd_atomic, 0,
		      vb_lowered(nic, VB_LIMIT_RD_ATOM)),
		BOUND(IBV_QP_MIN_RNR_TIMER, min_rnr_timer, 0, 31),
		BOUND(IBV_QP_TIMEOUT, timeout, 0, 31),
		BOUND(IBV_QP_RETRY_CNT, retry_cnt, 0, 7),
		BOUND(IBV_QP_RNR_RETRY, rnr_retry, 0, 7),
		BOUND(IBV_QP_ALT_PATH, alt_port_num, 1, VB_PORTS),
		BOUND(IBV_QP_ALT_PATH, alt_pkey_index, 0, VB_PKEYS - 1),
		BOUND(IBV_QP_ALT_PATH, alt_timeout, 0, 31),
		BOUND(IBV_QP_PATH_MIG_STATE, path_mig_state, 0, IBV_MIG_ARMED),
	};
#undef BOUND

	for (const struct bound *b = bounds; b < bounds + VB_ARRAY_LEN(bounds); b++)
		if ((mask & b->bit) && (b->value < b->min || b->value > b->max))
			return vb_refuse(EINVAL, "%s is %" PRIu64 "; it may be %" PRIu64
						 " to %" PRIu64, b->name, b->value, b->min, b->max);
	if ((mask & IBV_QP_ACCESS_FLAGS) && (a->qp_access_flags & ~(unsigned)ACCESS_KNOWN))
		return vb_refuse(EINVAL, "qp_access_flags has bits that are not known: 0x%x",
				 a->qp_access_flags & ~(unsigned)ACCESS_KNOWN);
	return mask & IBV_QP_RATE_LIMIT ? vb_pace_check(a->rate_limit) : 0;
}

/* Do packets of this path MTU pass without being fragmented? */
static int check_mtu(struct vb_qp *qp, const struct vb_path *path, enum ibv_mtu mtu)
{
	uint32_t frame = qp->nic->host.wire.frame_bytes_max(qp->nic->host.arg, path);

	uint32_t needed = (128u << mtu) + HEADERS_BYTES + qp->service->modify.header_bytes;

	if (!frame)
		return vb_refuse(ENETUNREACH, "there is no route to the peer's address");
	if (needed > frame)
		return vb_refuse(EINVAL, "path_mtu %u needs packets of %u octets; the interface's "
					 "MTU has room for %u", 128u << mtu, needed, frame);
	return 0;
}

int vb_qp_path_check(struct vb_qp *qp, const struct ibv_ah_attr *av, enum ibv_mtu mtu,
		     struct vb_path *path)
{
	int err = vb_path_resolve(qp->nic, av, path);

	if (!err)
		err = check_mtu(qp, path, mtu);
	if (!err && qp->nic->host.no_wire && !path->local)
		err = vb_refuse(ENETUNREACH, "the peer's GID is not of this host, and without the "
					     "wire (VERBATIM_LINK=shm) no other can be reached");
	return err;
}

/*
 * A DC target is not connected: only our own side of its address vector is checked. perftest leaves
 * the rest uninitialized in all but the first.
 */
static int check_av(struct vb_qp *qp, const struct ibv_ah_attr *av, enum ibv_mtu mtu,
		    struct vb_path *path)
{
	struct ibv_ah_attr own = *av;
	struct vb_gid_entry entry;

	if (vb_qp_is(qp, VB_HEARS_ANYBODY) &&
	    vb_nic_gid_get(qp->nic, own.grh.sgid_index, &entry) == 0)
		memcpy(own.grh.dgid.raw, entry.gid, VB_GID_BYTES);
	return vb_qp_path_check(qp, &own, mtu, path);
}

/* IBA 17.2.8: both paths have the same MTU. */
static int check_paths(struct vb_qp *qp, const struct ibv_qp_attr *attr, int mask,
		       struct plan *plan)
{
	enum ibv_mtu mtu = mask & IBV_QP_PATH_MTU ? attr->path_mtu : qp->attr.path_mtu;
	int err = 0;

	if (mask & IBV_QP_AV)
		err = check_av(qp, &attr->ah_attr, mtu, &plan->path);
	if (!err && (mask & IBV_QP_ALT_PATH))
		err = vb_qp_path_check(qp, &attr->alt_ah_attr, mtu, &plan->alt_path);
	return err;
}

/*
 * Does it use shared memory? That is decided once, when a QP is connected, since queued messages
 * were cut for it. So such a QP may get another path in SQD, but only on this host.
 */
static int check_peer(struct vb_qp *qp, const struct ibv_qp_attr *attr, int mask,
		      struct plan *plan)
{
	bool aims = vb_qp_is(qp, VB_AIMS);
	struct vb_nic *nic = qp->nic;

	if (!(mask & IBV_QP_AV))
		return 0;
	if (plan->from == IBV_QPS_SQD)
		return qp->to.peer && !plan->path.local && !aims
			       ? vb_refuse(EOPNOTSUPP, "a QP that uses shared memory stays on "
						       "this host")
			       : 0;
	/* XRC and DC: each work request names its destination. */
	if (plan->path.local && aims)
		return 0;
	if (plan->path.local)
		plan->peer = vb_peer_known(nic, qp->ibv.qp.qp_num, attr->dest_qp_num);
	else
		nic->host.wire.afar(nic->host.arg, plan->path.dst);
	if (!nic->host.no_wire || plan->peer)
		return 0;
	return vb_refuse(ENETUNREACH, "no process of this host has QPN 0x%x (dest_qp_num)",
			 attr->dest_qp_num);
}

static int check_migration(struct vb_qp *qp, const struct ibv_qp_attr *attr, int mask)
{
	if (!(mask & IBV_QP_PATH_MIG_STATE))
		return 0;
	return vb_migration_check(qp->attr.path_mig_state, attr->path_mig_state,
				  qp->to.migrates || (mask & IBV_QP_ALT_PATH));
}

/* Allocates what is new. Answers still owed to READs and atomics must fit. */
static int prepare(struct vb_qp *qp, const struct ibv_qp_attr *attr, int mask, struct plan *plan)
{
	if ((mask & IBV_QP_MAX_DEST_RD_ATOMIC) &&
	    !vb_resp_ring_fits(&qp->resp, attr->max_dest_rd_atomic))
		return vb_refuse(EBUSY, "more answers than max_dest_rd_atomic %u are still owed",
				 attr->max_dest_rd_atomic);
	if (mask & IBV_QP_MAX_DEST_RD_ATOMIC)
		plan->ring = calloc(attr->max_dest_rd_atomic + 1u, sizeof(*plan->ring));
	if ((mask & IBV_QP_ALT_PATH) && !qp->to.migration)
		plan->migration = calloc(1, sizeof(*plan->migration));
	if (((mask & IBV_QP_MAX_DEST_RD_ATOMIC) && !plan->ring) ||
	    ((mask & IBV_QP_ALT_PATH) && !qp->to.migration && !plan->migration))
		return ENOMEM;
	return 0;
}

static int refuse_attrs(int mask)
{
	char names[VB_REFUSAL_BYTES];

	return vb_refuse(EOPNOTSUPP, "a QP of this type cannot change %s",
			 vb_attr_mask_names(names, sizeof(names), mask));
}

static int check(struct vb_qp *qp, const struct ibv_qp_attr *attr, int mask, struct plan *plan)
{
	int err;

	plan->from = vb_qp_state(qp);
	plan->to = mask & IBV_QP_STATE ? attr->qp_state : plan->from;
	if ((mask & IBV_QP_CUR_STATE) && attr->cur_qp_state != plan->from)
		return vb_refuse(EINVAL, "cur_qp_state is %s, but the QP is in %s",
				 vb_state_name(attr->cur_qp_state), vb_state_name(plan->from));
	plan->tells = (mask & IBV_QP_EN_SQD_ASYNC_NOTIFY) && attr->en_sqd_async_notify;
	/* Queues keep their size. */
	if (mask & (IBV_QP_CAP | qp->service->modify.not_done))
		return refuse_attrs(mask & (IBV_QP_CAP | qp->service->modify.not_done));
	err = vb_service_transition_check(qp->service, plan->from, plan->to, mask);
	if (!err)
		err = vb_qp_values_check(qp->nic, attr, mask);
	if (!err)
		err = check_paths(qp, attr, mask, plan);
	if (!err)
		err = check_peer(qp, attr, mask, plan);
	if (!err)
		err = check_migration(qp, attr, mask);
	return err ? err : prepare(qp, attr, mask, plan);
}

/* Attributes that are only stored, to be queried: one row each. */
void vb_qp_attr_keep(struct ibv_qp_attr *to, const struct ibv_qp_attr *from, int mask)
{
#define KEEP(bit, field)                                                                          \
	do {                                                                                      \
		if (mask & (bit))                                                                 \
			to->field = from->field;                                                  \
	} while (0)
	KEEP(IBV_QP_EN_SQD_ASYNC_NOTIFY, en_sqd_async_notify);
	KEEP(IBV_QP_ACCESS_FLAGS, qp_access_flags);
	KEEP(IBV_QP_PKEY_INDEX, pkey_index);
	KEEP(IBV_QP_PORT, port_num);
	KEEP(IBV_QP_QKEY, qkey);
	KEEP(IBV_QP_AV, ah_attr);
	KEEP(IBV_QP_PATH_MTU, path_mtu);
	KEEP(IBV_QP_TIMEOUT, timeout);
	KEEP(IBV_QP_RETRY_CNT, retry_cnt);
	KEEP(IBV_QP_RNR_RETRY, rnr_retry);
	KEEP(IBV_QP_MAX_QP_RD_ATOMIC, max_rd_atomic);
	KEEP(IBV_QP_MAX_DEST_RD_ATOMIC, max_dest_rd_atomic);
	KEEP(IBV_QP_ALT_PATH, alt_ah_attr);
	KEEP(IBV_QP_ALT_PATH, alt_pkey_index);
	KEEP(IBV_QP_ALT_PATH, alt_port_num);
	KEEP(IBV_QP_ALT_PATH, alt_timeout);
	KEEP(IBV_QP_MIN_RNR_TIMER, min_rnr_timer);
	KEEP(IBV_QP_PATH_MIG_STATE, path_mig_state);
	KEEP(IBV_QP_DEST_QPN, dest_qp_num);
	KEEP(IBV_QP_RATE_LIMIT, rate_limit);
#undef KEEP
	/* Programs pass random numbers; as with mlx5 and rxe, the bits of a PSN are used. */
	if (mask & IBV_QP_RQ_PSN)
		to->rq_psn = from->rq_psn & 0xffffff;
	if (mask & IBV_QP_SQ_PSN)
		to->sq_psn = from->sq_psn & 0xffffff;
}

/* Datagrams have no path MTU; the port's is used. */
static enum ibv_mtu port_mtu(struct vb_qp *qp)
{
	struct ibv_port_attr port;

	vb_nic_query_port(qp->nic, 1, &port);
	return port.active_mtu;
}

static uint32_t mtu_bytes(struct vb_qp *qp, enum vb_transport transport)
{
	if (vb_qp_is(qp, VB_WHOLE))
		return VB_MESSAGE_BYTES_MAX;
	/* XRC and DC choose their way by the next request, and may have done so (send.c). */
	if (qp->to.peer && (!vb_transport_aims(transport) || qp->req.mtu == VB_LANE_MTU_BYTES))
		return VB_LANE_MTU_BYTES;
	return 128u << (transport == VB_UD ? port_mtu(qp) : qp->attr.path_mtu);
}

/*
 * With a wire: half of the peer's receive buffer, shared by all QPs as if all sent to that peer
 * now. For one QP more than `most` gains nothing, and a quarter of it costs a tenth, for ACKs and
 * pauses; less than `least` would be too little if it is alone after all.
 */
static uint32_t window_max(struct vb_qp *qp)
{
	const uint32_t most = 2u << 20, least = 512u << 10;
	const uint32_t psns = 1u << 22; /* far below half the space of PSNs */
	uint32_t half = atomic_load(&qp->nic->wire.rx_buffer_bytes) / 2;
	uint64_t share;

	qp->send.sharers = atomic_load_explicit(&qp->nic->counts.qps, memory_order_relaxed);
	if (qp->to.peer)
		return psns;
	share = vb_max_u64(half / vb_max_u64(qp->send.sharers, 1), least);
	return (uint32_t)vb_max_u64(vb_min_u64(vb_min_u64(share, most), half) / qp->req.mtu, 4);
}

void vb_qp_window_share(struct vb_qp *qp)
{
	if (qp->send.sharers != atomic_load_explicit(&qp->nic->counts.qps, memory_order_relaxed))
		vb_req_window_max_set(&qp->req, window_max(qp));
}

void vb_qp_pieces_set(struct vb_qp *qp)
{
	bool large = qp->to.peer && atomic_load(&qp->to.peer->has_rx);
	uint32_t mtu = large ? VB_LANE_MTU_BYTES : 128u << qp->attr.path_mtu;

	if (qp->req.mtu != mtu)
		vb_req_mtu_set(&qp->req, mtu);
}

void vb_qp_link_set(struct vb_qp *qp)
{
	vb_req_link_set(&qp->req, qp->to.peer != NULL, window_max(qp));
}

/* Configures the engines from the attributes, whenever those change. */
static void configure(struct vb_qp *qp, int mask)
{
	const struct vb_service_modify *modify = &qp->service->modify;
	const struct ibv_qp_attr *a = &qp->attr;
	struct vb_req *req = &qp->req;
	struct vb_resp *resp = &qp->resp;

	req->transport = resp->transport = qp->service->transport;
	req->mtu = resp->mtu = mtu_bytes(qp, req->transport);
	req->reliable = qp->to.peer != NULL;
	req->credits.of_packets = qp->made.dv_flags & VB_QP_PACKET_CREDITS;
	req->max_fetches = a->max_rd_atomic;
	if (modify->fetches_max)
		req->max_fetches = (uint32_t)vb_min_u64(
			vb_max_u64(req->max_fetches, modify->fetches_min), modify->fetches_max);
	req->flight.max = window_max(qp);
	req->retry.timeout = a->timeout;
	req->retry.count = a->retry_cnt;
	req->retry.rnr_count = a->rnr_retry;
	resp->min_rnr_timer = a->min_rnr_timer;
	resp->access = a->qp_access_flags;
	if (mask & IBV_QP_MAX_DEST_RD_ATOMIC)
		resp->resources_max = a->max_dest_rd_atomic;
	if (!vb_qp_is(qp, VB_CHOOSES_PEER))
		qp->to.dqpn = a->dest_qp_num;
	if (mask & (IBV_QP_AV | IBV_QP_DEST_QPN)) {
		vb_path_sport_set(qp->nic, &qp->to.path,
				  (uint16_t)(qp->ibv.qp.qp_num >> VB_INDEX_BITS),
				  req->transport == VB_XRC ? qp->special.aimed_slot << VB_INDEX_BITS
							   : qp->to.dqpn);
	}
	if (mask & (IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY)) {
		req->retry.left = req->retry.count;
		req->retry.rnr_left = req->retry.rnr_count;
	}
}

/* IBA 10.3.1: RESET clears everything, including completions. */
static void reset(struct vb_qp *qp)
{
	struct ibv_qp *ibv = &qp->ibv.qp;

	vb_cq_purge((struct vb_cq *)ibv->send_cq, ibv->qp_num);
	if (ibv->recv_cq)
		vb_cq_purge((struct vb_cq *)ibv->recv_cq, ibv->qp_num);
	if (qp->service->modify.reset)
		qp->service->modify.reset(qp);
	vb_qp_unbind_locked(qp);
	vb_windows_unbind(qp);
	vb_tm_leave(qp);
	vb_qp_tally_reset(qp);
	vb_req_reset(&qp->req);
	vb_resp_reset(&qp->resp);
	atomic_store(&qp->user.sq_released, 0);
	if (!ibv->srq)
		vb_rq_empty(&qp->recv.own_rq);
	memset(&qp->attr, 0, sizeof(qp->attr));
	qp->attr.path_mig_state = IBV_MIG_MIGRATED;
	vb_migration_end(qp);
	if (qp->user.has_parcels)
		vb_parcels_reset(qp);
	qp->congestion.line_kbps = 0;
	vb_pace_set(qp, 0, 0);
	qp->events.last_wqe = false;
	qp->events.comm_est = false;
	qp->send.drain_event = false;
	qp->send.link_full = false;
	qp->special.aimed_slot = 0;
}

static void set_alt_path(struct vb_qp *qp, struct plan *plan)
{
	if (!qp->to.migration) {
		qp->to.migration = plan->migration;
		plan->migration = NULL;
	}
	qp->to.migrates = true;
	qp->to.migration->alt = plan->alt_path;
	vb_path_sport_set(qp->nic, &qp->to.migration->alt,
			  (uint16_t)(qp->ibv.qp.qp_num >> VB_INDEX_BITS),
			  qp->req.transport == VB_XRC ? qp->special.aimed_slot << VB_INDEX_BITS
						      : qp->to.dqpn);
}

/* before: the previous state; `keep` has stored the requested one. */
static void set_migration(struct vb_qp *qp, enum ibv_mig_state before)
{
	if (qp->attr.path_mig_state == IBV_MIG_REARM && before == IBV_MIG_MIGRATED)
		vb_migration_rearm(qp);
	else if (qp->attr.path_mig_state == IBV_MIG_MIGRATED && before == IBV_MIG_ARMED)
		vb_migrate_locked(qp);
}

static void preset(struct vb_qp *qp, const struct vb_preset *preset)
{
	if (!preset->access)
		return;
	qp->attr.rnr_retry = preset->rnr_retry;
	qp->attr.min_rnr_timer = preset->min_rnr_timer;
	qp->attr.qp_access_flags = preset->access;
}

static void enter(struct vb_qp *qp, const struct plan *plan)
{
	bool moved = plan->from != plan->to;

	if (moved)
		qp->send.drain_event = plan->tells;
	VB_PROBE(qp_state, qp->ibv.qp.qp_num, plan->from, plan->to);
	atomic_store_explicit(&qp->state, plan->to, memory_order_release);
	qp->ibv.qp.state = plan->to;
	switch (plan->to) {
	case IBV_QPS_RTR:
		qp->resp.epsn = qp->attr.rq_psn;
		preset(qp, &qp->service->modify.preset);
		break;
	case IBV_QPS_RTS:
		if (plan->from == IBV_QPS_RTR)
			vb_req_start(&qp->req, qp->attr.sq_psn);
		if (plan->from == IBV_QPS_SQE)
			qp->req.fault_met.status = IBV_WC_SUCCESS;
		qp->req.sqd = false;
		break;
	case IBV_QPS_SQD:
		qp->req.sqd = true;
		break;
	case IBV_QPS_ERR:
		vb_qp_fail_locked(qp);
		break;
	default:
		break;
	}
}

/* Cannot fail. */
static void commit(struct vb_qp *qp, const struct ibv_qp_attr *attr, int mask, struct plan *plan)
{
	enum ibv_mig_state mig_state = qp->attr.path_mig_state;

	if (plan->to == IBV_QPS_RESET || plan->to == IBV_QPS_ERR)
		vb_ack_flush(qp);
	if (plan->to == IBV_QPS_RESET)
		reset(qp);
	vb_qp_attr_keep(&qp->attr, attr, mask);
	if (mask & IBV_QP_AV) {
		qp->to.path = plan->path;
		vb_migration_forget_old(qp);
	}
	if (mask & IBV_QP_MAX_DEST_RD_ATOMIC)
		plan->ring = vb_resp_ring_replace(&qp->resp, plan->ring, attr->max_dest_rd_atomic);
	if (plan->peer)
		vb_qp_bind_locked(qp, plan->peer, attr->dest_qp_num);
	if (mask & IBV_QP_AV)
		VB_PROBE(path_change, qp->ibv.qp.qp_num, qp->to.peer ? "ring" : "wire");
	configure(qp, mask);
	if (mask & IBV_QP_ALT_PATH)
		set_alt_path(qp, plan);
	if (mask & IBV_QP_PATH_MIG_STATE)
		set_migration(qp, mig_state);
	if (mask & IBV_QP_RATE_LIMIT)
		vb_pace_set(qp, attr->rate_limit, 0);
	enter(qp, plan);
}

/*
 * Takes in what has arrived through shared memory, which an adapter would have done long ago.
 * Programs hear from their peer by other means that it got their last message, and end the QP
 * before they poll; the peer's ACK may still be in the ring then. The host takes in what the wire
 * has brought; here we wait for a thread that is doing so.
 */
static void take_in(struct vb_qp *qp)
{
	struct vb_lane *lane = NULL;

	vb_lock_take(&qp->lock);
	if (qp->to.peer && atomic_load_explicit(&qp->to.peer->has_rx, memory_order_acquire))
		lane = qp->lane.rx;
	vb_lock_drop(&qp->lock);
	if (lane)
		vb_lane_drain(lane);
	vb_lock_take(&qp->nic->rx);
	vb_lock_drop(&qp->nic->rx);
}

/* Does it, or may it, take rights from the peer? Then no access must be under way afterwards. */
static bool may_revoke(const struct ibv_qp_attr *attr, int mask)
{
	return ((mask & IBV_QP_STATE) &&
		(attr->qp_state == IBV_QPS_RESET || attr->qp_state == IBV_QPS_ERR)) ||
	       (mask & (IBV_QP_ACCESS_FLAGS | IBV_QP_MAX_DEST_RD_ATOMIC));
}

/*
 * Reaches the peer to be connected to: the hub may have to be asked, and no lock is held for that.
 */
static void meet(struct vb_qp *qp, const struct ibv_qp_attr *attr, int mask)
{
	const int said = IBV_QP_STATE | IBV_QP_AV | IBV_QP_DEST_QPN;
	struct vb_path path;

	if ((mask & said) == said && attr->qp_state == IBV_QPS_RTR &&
	    vb_qp_state(qp) == IBV_QPS_INIT && !vb_qp_is(qp, VB_AIMS) &&
	    attr->dest_qp_num >> 24 == 0 && !vb_path_resolve(qp->nic, &attr->ah_attr, &path) &&
	    path.local)
		vb_peer_reach(qp->nic, qp->ibv.qp.qp_num, attr->dest_qp_num);
}

int vb_qp_modify(struct vb_qp *qp, const struct ibv_qp_attr *attr, int mask)
{
	struct plan plan = { .ring = NULL };
	bool revokes = may_revoke(attr, mask);
	int err;

	/* ibv_modify_qp(3): the mask may be 0, and then there is nothing to do. */
	if (!mask)
		return 0;
	if (qp->service->handle)
		return qp->service->handle->modify(qp, attr, mask);
	if ((mask & IBV_QP_STATE) && attr->qp_state == IBV_QPS_ERR)
		take_in(qp);
	if ((mask & IBV_QP_STATE) &&
	    (attr->qp_state == IBV_QPS_RESET || attr->qp_state == IBV_QPS_ERR))
		vb_ack_settle(qp);
	meet(qp, attr, mask);
	if (revokes && !vb_export_qp_withdraw(qp))
		return EBUSY;
	vb_lock_take(&qp->lock);
	err = vb_nic_has_failed(qp->nic) ? EIO : check(qp, attr, mask, &plan);
	if (err) {
		vb_refusal_about("QPN 0x%x, %s->%s", qp->ibv.qp.qp_num, vb_state_name(plan.from),
				 vb_state_name(plan.to));
		goto out;
	}
	qp->now_ns = vb_nic_now_ns(qp->nic);
	commit(qp, attr, mask, &plan);
	vb_export_qp_locked(qp);
	if (plan.to == IBV_QPS_RTS || plan.to == IBV_QPS_SQD)
		vb_qp_transmit_locked(qp);
out:
	vb_lock_drop(&qp->lock);
	free(plan.ring);
	free(plan.migration);
	if (revokes)
		vb_export_qp_restore(qp);
	return err;
}

int vb_qp_rate_limit(struct vb_qp *qp, const struct ibv_qp_rate_limit_attr *attr)
{
	int err = attr->comp_mask ? vb_refuse(EINVAL, "comp_mask is 0x%x, not 0", attr->comp_mask)
				  : vb_pace_check(attr->rate_limit);

	/* Without a limit there are no bursts. */
	if (!err && !attr->rate_limit && attr->max_burst_sz)
		err = vb_refuse(EINVAL, "max_burst_sz is %u without a rate_limit",
				attr->max_burst_sz);
	if (err)
		return err;
	vb_lock_take(&qp->lock);
	if (vb_nic_has_failed(qp->nic)) {
		err = EIO;
	} else if (vb_qp_state(qp) != IBV_QPS_RTS && vb_qp_state(qp) != IBV_QPS_SQD) {
		err = vb_refuse(EINVAL, "the QP is in %s, not in RTS or SQD",
				vb_state_name(vb_qp_state(qp)));
	} else {
		qp->attr.rate_limit = attr->rate_limit;
		vb_pace_set(qp, attr->rate_limit, attr->max_burst_sz);
		qp->now_ns = vb_nic_now_ns(qp->nic);
		vb_qp_transmit_locked(qp);
	}
	vb_lock_drop(&qp->lock);
	return err;
}
