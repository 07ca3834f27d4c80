/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_TESTS_LANES_FIXTURE_H
#define VB_TESTS_LANES_FIXTURE_H

/*
 * NICs of one host in one process, with rings between them: what the host does for them is a few
 * lines here, bells are counted, and time stands still unless a test moves it. What goes to the
 * wire is counted, and lost.
 */

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

#include "base/check.h"
#include "nic/control/qp.h"
#include "nic/control/qp_modify.h"
#include "nic/control/srq.h"
#include "nic/core/ah.h"
#include "nic/core/internal.h"
#include "nic/data/post.h"
#include "nic/mem/mem.h"
#include "nic/queue/cq.h"
#include "nic/way/peer.h"

enum { SIDES_MAX = 24, SLOT_FIRST = 3, MEM_BYTES = 1 << 20, QKEY = 0x1111 };

struct side {
	struct vb_nic *nic;
	struct vb_ctx *ctx;
	struct vb_pd *pd;
	struct vb_cq *cq;
	struct vb_mr *mr;
	uint8_t *mem;
	uint16_t slot;
	uint32_t next_index;
	_Atomic bool dead; /* nobody reaches it any more */
	int refuses;	   /* what reaching it says */
	_Atomic unsigned bells;	   /* rung here */
	_Atomic unsigned reaches;  /* asked for by it */
	_Atomic unsigned releases; /* of its peers */
	_Atomic unsigned wire;	   /* frames that it sent there */
	_Atomic unsigned events;
	struct vb_ring_area *area[SIDES_MAX]; /* to others */
};

static struct side side[SIDES_MAX];
static unsigned sides;
static _Atomic uint64_t lanes_now_ns;
static vb_lock reach_lock = VB_LOCK_INIT;

static const uint8_t host_gid[VB_GID_BYTES] = { [10] = 0xff, 0xff, 10, 0, 0, 1 };

/* --- what NICs ask of their host --- */

static struct side *side_of_slot(uint16_t slot)
{
	for (unsigned i = 0; i < sides; i++) {
		if (side[i].slot == slot && !side[i].dead)
			return &side[i];
	}
	return NULL;
}

/* Called whenever somebody asks what time it is. */
static void (*lanes_now_hook)(void);

static uint64_t lanes_now(void *arg)
{
	if (lanes_now_hook)
		lanes_now_hook();
	return lanes_now_ns;
}

static int lanes_tx(void *arg, uint16_t src_slot, const struct vb_burst *burst)
{
	((struct side *)arg)->wire += burst->frames;
	return 0;
}

static unsigned lanes_burst_frames_max(void *arg)
{
	return VB_LINK_BURST_FRAMES_MAX;
}

static uint32_t lanes_frame_bytes_max(void *arg, const struct vb_path *path)
{
	return 5000;
}

static void lanes_kick(void *arg)
{
}

static void lanes_signal(void *arg, int fd)
{
	((struct side *)arg)->events++;
}

static void lanes_unsignal(void *arg, int fd)
{
}

static int lanes_lease(void *arg, uint16_t *slot, uint32_t *next_index)
{
	*slot = ((struct side *)arg)->slot;
	*next_index = ((struct side *)arg)->next_index;
	return 0;
}

static int lanes_probe(void *arg, const void *addr, size_t bytes, bool write)
{
	return 0;
}

static void *zeros(size_t bytes)
{
	void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	assert_true(at != MAP_FAILED);
	return at;
}

static int reach_locked(struct side *from, uint16_t own_slot, uint16_t slot)
{
	struct side *to = side_of_slot(slot);
	struct vb_ring_area **area;
	struct vb_peer *peer;

	from->reaches++;
	peer = vb_peer_find(from->nic, own_slot, slot);
	if (peer && peer->run != to)
		vb_peer_unlist(peer);
	if (!to)
		return ENOENT;
	if (to->refuses)
		return to->refuses;
	area = &from->area[to - side];
	if (*area && vb_peer_find(from->nic, own_slot, slot))
		return 0;
	if (*area)
		munmap(*area, sizeof(**area));
	*area = zeros(sizeof(**area));
	peer = vb_peer_get(to->nic, slot, own_slot);
	assert_non_null(peer);
	peer->run = from;
	vb_peer_rx_pause(peer);
	vb_peer_rx_set(peer, *area, from->nic->export);
	vb_peer_rx_resume(peer);
	peer = vb_peer_get(from->nic, own_slot, slot);
	assert_non_null(peer);
	peer->run = to;
	vb_peer_tx_set(peer, *area, to->nic->export);
	return 0;
}

static int lanes_reach(void *arg, uint16_t own_slot, uint16_t slot)
{
	int rc;

	vb_lock_take(&reach_lock);
	rc = reach_locked(arg, own_slot, slot);
	vb_lock_drop(&reach_lock);
	return rc;
}

static void lanes_bell(void *arg, struct vb_peer *peer)
{
	struct side *to = side_of_slot(peer->slot);

	if (to)
		to->bells++;
}

static void lanes_release(void *arg, struct vb_peer *peer)
{
	((struct side *)arg)->releases++;
}

/* --- birth and death --- */

static struct side *side_make(uint16_t slot, uint32_t next_index)
{
	struct side *s = &side[sides++];
	const struct vb_nic_host host = {
		.arg = s, .now_ns = lanes_now, .tx = lanes_tx,
		.burst_frames_max = lanes_burst_frames_max,
		.frame_bytes_max = lanes_frame_bytes_max, .kick = lanes_kick,
		.signal = lanes_signal, .unsignal = lanes_unsignal, .lease = lanes_lease,
		.probe_memory = lanes_probe, .reach = lanes_reach, .ring_bell = lanes_bell,
		.release = lanes_release,
	};
	struct vb_gid_entry entry = { .ifindex = 1, .mtu_bytes = 5000 };

	assert_true(sides <= SIDES_MAX);
	*s = (struct side){ .slot = slot, .next_index = next_index };
	memcpy(entry.gid, host_gid, VB_GID_BYTES);
	assert_int_equal(vb_nic_create(&s->nic, &host, slot), 0);
	vb_nic_gids_set(s->nic, &entry, 1);
	assert_int_equal(vb_ctx_create(s->nic, 0, &s->ctx), 0);
	assert_int_equal(vb_pd_create(s->ctx, &s->pd), 0);
	assert_int_equal(vb_cq_create(s->ctx, 4096, NULL, 0, NULL, &s->cq), 0);
	s->mem = zeros(MEM_BYTES);
	assert_int_equal(vb_mr_reg(s->pd, s->mem, MEM_BYTES, (uintptr_t)s->mem,
				   IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
					   IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC,
				   &s->mr), 0);
	return s;
}

/* Its process is gone: it does nothing more, and nobody reaches it. */
static inline void side_die(struct side *s)
{
	s->dead = true;
}

static int lanes_begin(void **state)
{
	sides = 0;
	lanes_now_ns = 1;
	side_make(SLOT_FIRST, 100);
	side_make(SLOT_FIRST + 1, 200);
	return 0;
}

static inline void cq_drop(struct vb_cq *cq)
{
	assert_int_equal(vb_cq_destroy(cq), 0);
	vb_cq_free(cq);
}

/* Whatever a test left behind says EBUSY here. */
static int lanes_end(void **state)
{
	for (unsigned i = 0; i < sides; i++) {
		struct side *s = &side[i];

		cq_drop(s->cq);
		assert_int_equal(vb_mr_dereg(s->mr), 0);
		assert_int_equal(vb_pd_destroy(s->pd), 0);
		vb_ctx_destroy(s->ctx);
		vb_nic_destroy(s->nic);
		munmap(s->mem, MEM_BYTES);
	}
	for (unsigned i = 0; i < sides; i++) {
		for (unsigned k = 0; k < sides; k++) {
			if (side[i].area[k])
				munmap(side[i].area[k], sizeof(struct vb_ring_area));
		}
	}
	return 0;
}

/* --- QPs --- */

static inline struct vb_qp *qp_make_on(struct side *s, enum ibv_qp_type type, struct vb_cq *cq)
{
	struct ibv_qp_init_attr init = {
		.send_cq = &cq->ibv.cq, .recv_cq = &cq->ibv.cq, .qp_type = type,
		.cap = { .max_send_wr = 512, .max_recv_wr = 512, .max_send_sge = 2,
			 .max_recv_sge = 2, .max_inline_data = 32 },
	};
	struct vb_qp *qp;

	assert_int_equal(vb_qp_create(s->pd, &init, &qp), 0);
	return qp;
}

static inline struct vb_qp *qp_make(struct side *s, enum ibv_qp_type type)
{
	return qp_make_on(s, type, s->cq);
}

static inline void qp_drop(struct vb_qp *qp)
{
	assert_int_equal(vb_qp_destroy(qp), 0);
	vb_qp_free(qp);
}

/* One step towards RTS, or to what is said; dqpn: of the other end. */
static inline int qp_step(struct vb_qp *qp, enum ibv_qp_state to, uint32_t dqpn)
{
	enum ibv_qp_type type = qp->ibv.qp.qp_type;
	struct ibv_qp_attr attr = {
		.qp_state = to, .port_num = 1, .qkey = QKEY, .path_mtu = IBV_MTU_1024,
		.dest_qp_num = dqpn,
		.qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
				   IBV_ACCESS_REMOTE_ATOMIC,
		.rq_psn = 0x100, .sq_psn = 0x100, .max_dest_rd_atomic = 4, .max_rd_atomic = 4,
		.min_rnr_timer = 12, .timeout = 14, .retry_cnt = 7, .rnr_retry = 7,
		.ah_attr = { .is_global = 1, .port_num = 1 },
	};
	int mask = IBV_QP_STATE;

	memcpy(attr.ah_attr.grh.dgid.raw, host_gid, VB_GID_BYTES);
	if (to == IBV_QPS_INIT)
		mask |= IBV_QP_PORT | IBV_QP_PKEY_INDEX |
			(type == IBV_QPT_UD ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS);
	if (to == IBV_QPS_RTR && type != IBV_QPT_UD)
		mask |= IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
	if (to == IBV_QPS_RTR && type == IBV_QPT_RC)
		mask |= IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
	if (to == IBV_QPS_RTS && vb_qp_state(qp) == IBV_QPS_RTR)
		mask |= IBV_QP_SQ_PSN;
	if (to == IBV_QPS_RTS && vb_qp_state(qp) == IBV_QPS_RTR && type == IBV_QPT_RC)
		mask |= IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
			IBV_QP_MAX_QP_RD_ATOMIC;
	return vb_qp_modify(qp, &attr, mask);
}

/* From RESET to RTS. */
static inline void qp_ready(struct vb_qp *qp, uint32_t dqpn)
{
	assert_int_equal(qp_step(qp, IBV_QPS_INIT, dqpn), 0);
	assert_int_equal(qp_step(qp, IBV_QPS_RTR, dqpn), 0);
	assert_int_equal(qp_step(qp, IBV_QPS_RTS, dqpn), 0);
}

static inline void qp_connect(struct vb_qp *a, struct vb_qp *b)
{
	qp_ready(a, b->ibv.qp.qp_num);
	qp_ready(b, a->ibv.qp.qp_num);
}

static inline struct ibv_sge sge_of(const struct side *s, uint32_t at, uint32_t bytes)
{
	assert_true(at + bytes <= MEM_BYTES);
	return (struct ibv_sge){ (uintptr_t)s->mem + at, bytes, s->mr->ibv.lkey };
}

static inline int qp_send(struct side *s, struct vb_qp *qp, uint64_t wr_id, uint32_t bytes)
{
	struct ibv_sge sge = sge_of(s, 0, bytes);
	struct ibv_send_wr wr = { .wr_id = wr_id, .sg_list = &sge, .num_sge = 1,
				  .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED }, *bad;

	return vb_qp_post_send(qp, &wr, &bad);
}

static inline void qp_recv(struct side *s, struct vb_qp *qp, uint64_t wr_id, uint32_t at,
			   uint32_t bytes)
{
	struct ibv_sge sge = sge_of(s, at, bytes);
	struct ibv_recv_wr wr = { .wr_id = wr_id, .sg_list = &sge, .num_sge = 1 }, *bad;

	assert_int_equal(vb_qp_post_recv(qp, &wr, &bad), 0);
}

/* The next completion must be this one. */
static inline void assert_wc(struct vb_cq *cq, uint64_t wr_id, enum ibv_wc_status status)
{
	struct ibv_wc wc;

	assert_int_equal(vb_cq_poll(cq, 1, &wc), 1);
	assert_int_equal(wc.wr_id, wr_id);
	assert_int_equal(wc.status, status);
}

static inline void assert_no_wc(struct vb_cq *cq)
{
	struct ibv_wc wc;

	assert_int_equal(vb_cq_poll(cq, 1, &wc), 0);
}

static inline unsigned poll_all(void)
{
	unsigned got = 0;

	for (unsigned i = 0; i < sides; i++) {
		if (!side[i].dead)
			got += vb_nic_lanes_scan(side[i].nic);
	}
	return got;
}

/* Until nobody has anything to do. */
static inline void settle(void)
{
	unsigned quiet = 0;

	for (unsigned i = 0; quiet < 3; i++) {
		assert_true(i < 100000);
		quiet = poll_all() ? 0 : quiet + 1;
	}
}

static inline uint64_t stat_of(const struct side *s, enum vb_stat stat)
{
	return atomic_load(&vb_nic_stats(s->nic)->count[stat]);
}

#define LANES(name) cmocka_unit_test_setup_teardown(name, lanes_begin, lanes_end)

/* Scan until nothing comes: a scan takes a few frames of each lane at a time. Their number. */
static inline unsigned scan_all(struct side *s)
{
	unsigned all = 0, got;

	while ((got = vb_nic_lanes_scan(s->nic)))
		all += got;
	return all;
}

#endif
