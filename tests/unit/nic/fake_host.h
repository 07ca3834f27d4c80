/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_TESTS_FAKE_HOST_H
#define VB_TESTS_FAKE_HOST_H

/*
 * One side: a NIC with its context and PD, and the host that it has here. What the NIC asks of that
 * host is counted, and answered as the test says; time stands unless a test moves it. What goes to
 * the wire vanishes. A test that is about one of these functions sets its own in nic->host.
 */

#include <errno.h>

#include "base/check.h"
#include "group.h"
#include "idle_host.h"
#include "nic/control/nic.h"
#include "nic/control/qp.h"
#include "nic/control/qp_dv.h"
#include "nic/control/qp_modify.h"
#include "nic/control/srq.h"
#include "nic/core/ah.h"
#include "nic/core/internal.h"
#include "nic/core/timer.h"
#include "nic/data/qp.h"
#include "nic/data/qp_error.h"
#include "nic/mem/mem.h"
#include "nic/queue/cq.h"
#include "nic/queue/srq.h"
#include "nic/service/eth/segment_table.h"
#include "nic/service/xrc/xrc_store.h"

enum { FD_ASYNC, FD_CHANNEL, FDS, SIDES_MAX = 24 };

struct side {
	struct vb_nic *nic;
	struct vb_ctx *ctx;
	struct vb_pd *pd;
	struct vb_cq *cq; /* these two where the fixture connects a QP, or has sides */
	struct vb_qp *qp;
	struct vb_mr *mr;
	uint8_t *mem;

	/* What the host says. */
	uint16_t slot;
	uint32_t next_index, frame_bytes;
	uint32_t queue_wrs; /* of each of its QPs */
	uint64_t raw_ns, wall_ns;
	int probe;

	/* What it was asked, by any thread. */
	_Atomic unsigned clocks_read, kicks;
	_Atomic bool probed_write;
	_Atomic int signals[FDS];
	_Atomic unsigned sent; /* frames, to the wire */
	uint8_t last[64];      /* the first piece that was sent last, or its beginning */

	/* Rings to other sides (lanes_fixture.h). */
	struct vb_host_peers peers;
	struct vb_host_direct direct;
	_Atomic bool dead; /* nobody reaches it any more */
	int refuses;	   /* what reaching it says */
	_Atomic unsigned bells;	   /* rung here */
	_Atomic unsigned reaches;  /* asked for by it */
	_Atomic unsigned releases; /* of its peers */
	struct vb_ring_area *area[SIDES_MAX]; /* to others */
};

static const uint8_t own_gid[VB_GID_BYTES] = { [10] = 0xff, 0xff, 10, 0, 0, 1 };

/* What time it is for all sides; and what is called whenever somebody asks. */
static _Atomic uint64_t fake_ns;
static void (*fake_ns_hook)(void);

static uint64_t fake_now_ns(void *arg)
{
	if (fake_ns_hook)
		fake_ns_hook();
	return fake_ns;
}

static uint64_t fake_raw_ns(void *arg)
{
	struct side *s = arg;

	s->clocks_read++;
	return s->raw_ns;
}

static uint64_t fake_wall_ns(void *arg)
{
	struct side *s = arg;

	s->clocks_read++;
	return s->wall_ns;
}

static const struct vb_host_stamps fake_stamps = {
	.raw_ns = fake_raw_ns, .wall_ns = fake_wall_ns,
};

static void fake_kick(void *arg)
{
	((struct side *)arg)->kicks++;
}

static int fake_lease(void *arg, uint16_t *slot, uint32_t *next_index)
{
	*slot = ((struct side *)arg)->slot;
	*next_index = ((struct side *)arg)->next_index;
	return 0;
}

static int fake_tx(void *arg, uint16_t src_slot, const struct vb_burst *burst)
{
	size_t bytes = burst->iov[0].iov_len;
	struct side *s = arg;

	s->sent += burst->frames;
	if (!s->nic->host.peers) /* with them there may be several threads */
		memcpy(s->last, burst->iov[0].iov_base,
		       bytes < sizeof(s->last) ? bytes : sizeof(s->last));
	return 0;
}

static uint32_t fake_frame_bytes_max(void *arg, const struct vb_path *path)
{
	return ((struct side *)arg)->frame_bytes;
}

static void fake_signal(void *arg, int fd)
{
	((struct side *)arg)->signals[fd]++;
}

static void fake_unsignal(void *arg, int fd)
{
	((struct side *)arg)->signals[fd]--;
}

static int fake_probe(void *arg, const void *addr, size_t bytes, bool write)
{
	((struct side *)arg)->probed_write = write;
	return ((struct side *)arg)->probe;
}

/* The rest of it stands in *s: what the host says, and peers, if there are any. */
static inline void side_open(struct side *s, uint64_t seed, uint32_t mtu_bytes)
{
	struct vb_gid_entry entry = { .ifindex = 1, .mtu_bytes = mtu_bytes };
	struct vb_nic_host host = idle_host(s);

	host.clock = (struct vb_host_clock){ fake_now_ns, fake_kick, idle_pause };
	host.wire.lease = fake_lease;
	host.wire.tx = fake_tx;
	host.wire.frame_bytes_max = fake_frame_bytes_max;
	host.process = (struct vb_host_process){ fake_signal, fake_unsignal, fake_probe };
	host.stamps = &fake_stamps;
	host.peers = s->peers.reach ? &s->peers : NULL;
	host.direct = s->direct.read ? &s->direct : NULL;
	memcpy(entry.gid, own_gid, VB_GID_BYTES);
	assert_int_equal(vb_nic_create(&s->nic, &host, seed), 0);
	vb_nic_gids_set(s->nic, &entry, 1);
	assert_int_equal(vb_ctx_create(s->nic, FD_ASYNC, &s->ctx), 0);
	assert_int_equal(vb_pd_create(s->ctx, &s->pd), 0);
}

/* Whatever a test left behind says EBUSY here. */
static inline void side_close(struct side *s)
{
	assert_int_equal(vb_pd_destroy(s->pd), 0);
	vb_ctx_destroy(s->ctx);
	vb_nic_destroy(s->nic);
}

/* --- what some sides share: a store for XRC, an Ethernet segment --- */

static struct vb_xrc_store *fake_store(void *arg)
{
	static struct vb_xrc_store store;

	return &store;
}

/* Empty, for sides that use it from now on. */
static inline struct vb_xrc_store *store_begin(void)
{
	struct vb_xrc_store *store = fake_store(NULL);

	memset(store, 0, sizeof(*store));
	vb_xrc_store_init(store);
	return store;
}

/* Another process holds the store's lock, and does not get on. */
static bool store_busy;

static inline bool fake_store_try_lock(void *arg)
{
	return !store_busy;
}

static inline void side_use_store(struct side *s)
{
	static const struct vb_host_xrc fake_xrc = {
		.store = fake_store, .lock = idle_xrc, .try_lock = fake_store_try_lock,
		.unlock = idle_xrc, .tell = idle_xrc,
	};

	s->nic->host.xrc = &fake_xrc;
}

static struct vb_segment_table *fake_segment_table(void *arg)
{
	static struct vb_segment_table table;

	return &table;
}

static int reach_nobody(void *arg, uint16_t own_slot, uint16_t slot)
{
	return ENOENT;
}

/* It is the first there. */
static inline void side_use_segment(struct side *s)
{
	static const struct vb_host_segment fake_segment = {
		.table = fake_segment_table, .uplink_open = idle_uplink_open,
		.uplink_tx = idle_uplink_tx,
	};
	static const struct vb_host_peers fake_nobody = {
		.reach = reach_nobody, .await = idle_await, .bell = idle_peer,
		.release = idle_peer,
	};

	memset(fake_segment_table(s), 0, sizeof(struct vb_segment_table));
	s->nic->host.segment = &fake_segment;
	s->nic->host.peers = &fake_nobody;
}

/* --- QPs --- */

#define QP_INIT (IBV_QP_PORT | IBV_QP_PKEY_INDEX)
#define QP_TO (IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN)
#define QP_TAKES (IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER)
#define QP_RETRIES                                                             \
	(IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | \
	 IBV_QP_MAX_QP_RD_ATOMIC)

/* What a QP has to be told on its way to INIT, RTR and RTS. */
static inline int qp_needs(const struct vb_qp *qp, enum ibv_qp_state to)
{
	static const int rows[][3] = {
		[IBV_QPT_RC] = { QP_INIT | IBV_QP_ACCESS_FLAGS, QP_TO | QP_TAKES, QP_RETRIES },
		[IBV_QPT_UC] = { QP_INIT | IBV_QP_ACCESS_FLAGS, QP_TO, IBV_QP_SQ_PSN },
		[IBV_QPT_UD] = { QP_INIT | IBV_QP_QKEY, 0, IBV_QP_SQ_PSN },
		[IBV_QPT_XRC_SEND] = { QP_INIT | IBV_QP_ACCESS_FLAGS, QP_TO, QP_RETRIES },
		[IBV_QPT_XRC_RECV] = { QP_INIT | IBV_QP_ACCESS_FLAGS, QP_TO | QP_TAKES,
				       IBV_QP_SQ_PSN | IBV_QP_TIMEOUT },
	};
	static const int dc[2][3] = {
		{ QP_INIT, IBV_QP_PATH_MTU, QP_RETRIES },
		{ QP_INIT | IBV_QP_ACCESS_FLAGS,
		  IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_MIN_RNR_TIMER },
	};
	bool is_target = qp->ibv.qp.srq;

	if (to < IBV_QPS_INIT || to > IBV_QPS_RTS ||
	    (to == IBV_QPS_RTS && vb_qp_state(qp) != IBV_QPS_RTR))
		return 0;
	return qp->ibv.qp.qp_type == IBV_QPT_DRIVER ? dc[is_target][to - IBV_QPS_INIT]
						    : rows[qp->ibv.qp.qp_type][to - IBV_QPS_INIT];
}

/* Towards this QP there. */
static inline struct ibv_qp_attr qp_attr_to(const uint8_t gid[VB_GID_BYTES], uint32_t dqpn)
{
	struct ibv_qp_attr attr = {
		.port_num = 1, .qkey = 0x1111, .path_mtu = IBV_MTU_1024, .dest_qp_num = dqpn,
		.qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
				   IBV_ACCESS_REMOTE_ATOMIC,
		.rq_psn = 0x100, .sq_psn = 0x100, .max_dest_rd_atomic = 4, .max_rd_atomic = 4,
		.min_rnr_timer = 12, .timeout = 14, .retry_cnt = 7, .rnr_retry = 7,
		.ah_attr = { .is_global = 1, .port_num = 1 },
	};

	memcpy(attr.ah_attr.grh.dgid.raw, gid, VB_GID_BYTES);
	return attr;
}

/* One step, which may fail. */
static inline int qp_move(struct vb_qp *qp, struct ibv_qp_attr attr, enum ibv_qp_state to)
{
	attr.qp_state = to;
	return vb_qp_modify(qp, &attr, IBV_QP_STATE | qp_needs(qp, to));
}

/* To INIT, RTR or RTS, one step after another from where it is. */
static inline void qp_climb(struct vb_qp *qp, struct ibv_qp_attr attr, enum ibv_qp_state to)
{
	for (unsigned state = vb_qp_state(qp) + 1u; state <= to; state++)
		assert_int_equal(qp_move(qp, attr, (enum ibv_qp_state)state), 0);
}

static inline struct vb_qp *qp_make_on(struct side *s, enum ibv_qp_type type, struct vb_cq *cq,
				       struct vb_srq *srq)
{
	struct ibv_qp_init_attr init = {
		.send_cq = &cq->ibv.cq, .recv_cq = &cq->ibv.cq, .qp_type = type,
		.srq = srq ? &srq->ibv : NULL,
		.cap = { .max_send_wr = s->queue_wrs, .max_recv_wr = s->queue_wrs,
			 .max_send_sge = 2, .max_recv_sge = 2, .max_inline_data = 32 },
	};
	struct vb_qp *qp;

	assert_int_equal(vb_qp_create(s->pd, &init, &qp), 0);
	return qp;
}

/* Of DC, at work: a target if it has an SRQ, else an initiator. */
static inline struct vb_qp *dc_make_on(struct side *s, struct vb_cq *cq, struct vb_srq *srq,
				       uint64_t key, uint32_t sq_psn)
{
	struct vb_dc_attr dc = { .target = srq != NULL, .access_key = key };
	struct vb_qp_dv_attr dv = { .dc = &dc };
	struct ibv_qp_init_attr_ex init = {
		.send_cq = &cq->ibv.cq, .recv_cq = &cq->ibv.cq, .srq = srq ? &srq->ibv : NULL,
		.cap = { .max_send_wr = srq ? 0 : 8, .max_send_sge = srq ? 0 : 1 },
		.qp_type = IBV_QPT_DRIVER, .comp_mask = IBV_QP_INIT_ATTR_PD, .pd = &s->pd->ibv,
		.sq_sig_all = 1,
	};
	struct ibv_qp_attr attr = qp_attr_to(own_gid, 0);
	struct vb_qp *qp;

	assert_int_equal(vb_qp_create_dv(&init, &dv, &qp), 0);
	attr.sq_psn = sq_psn;
	attr.min_rnr_timer = 5;
	attr.qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;
	qp_climb(qp, attr, srq ? IBV_QPS_RTR : IBV_QPS_RTS);
	return qp;
}

static inline void drop_qp(struct vb_qp *qp)
{
	assert_int_equal(vb_qp_destroy(qp), 0);
	vb_qp_free(qp);
}

static inline void drop_srq(struct vb_srq *srq)
{
	assert_int_equal(vb_srq_destroy(srq), 0);
	vb_srq_free(srq);
}

static inline void drop_cq(struct vb_cq *cq)
{
	assert_int_equal(vb_cq_destroy(cq), 0);
	vb_cq_free(cq);
}

#endif
