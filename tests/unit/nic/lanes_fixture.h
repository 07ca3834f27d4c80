/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_TESTS_LANES_FIXTURE_H
#define VB_TESTS_LANES_FIXTURE_H

/*
 * NICs of one host in one process, with rings between them: what the host does for them is a few
 * lines here, bells are counted, and time stands still unless a test moves it. What goes to the
 * wire is counted, and lost.
 */

#include <stdlib.h>
#include <sys/mman.h>

#include "fake_host.h"
#include "nic/way/peer.h"

enum { SLOT_FIRST = 3, MEM_BYTES = 1 << 20, QKEY = 0x1111 };

static struct side side[SIDES_MAX];
static unsigned sides;
static vb_lock reach_lock = VB_LOCK_INIT(VB_RANK_RINGS);

/* --- what NICs ask of their host --- */

static struct side *side_of_slot(uint16_t slot)
{
	for (unsigned i = 0; i < sides; i++) {
		if (side[i].slot == slot && !side[i].dead)
			return &side[i];
	}
	return NULL;
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

	assert_true(sides <= SIDES_MAX);
	*s = (struct side){
		.slot = slot, .next_index = next_index, .frame_bytes = 5000, .queue_wrs = 512,
		.peers = { lanes_reach, idle_await, lanes_bell, lanes_release },
	};
	side_open(s, slot, 5000);
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
	fake_ns = 1;
	side_make(SLOT_FIRST, 100);
	side_make(SLOT_FIRST + 1, 200);
	return 0;
}

/* Whatever a test left behind says EBUSY here. */
static int lanes_end(void **state)
{
	for (unsigned i = 0; i < sides; i++) {
		struct side *s = &side[i];

		drop_cq(s->cq);
		assert_int_equal(vb_mr_dereg(s->mr), 0);
		side_close(s);
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

static inline struct vb_qp *qp_make(struct side *s, enum ibv_qp_type type)
{
	return qp_make_on(s, type, s->cq, NULL);
}

/* One step towards RTS, or to what is said; dqpn: of the other end. */
static inline int qp_step(struct vb_qp *qp, enum ibv_qp_state to, uint32_t dqpn)
{
	return qp_move(qp, qp_attr_to(own_gid, dqpn), to);
}

/* From RESET to RTS. */
static inline void qp_ready(struct vb_qp *qp, uint32_t dqpn)
{
	qp_climb(qp, qp_attr_to(own_gid, dqpn), IBV_QPS_RTS);
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

#define LANES(name) TEST_BETWEEN(name, lanes_begin, lanes_end)

/* Scan until nothing comes: a scan takes a few frames of each lane at a time. Their number. */
static inline unsigned scan_all(struct side *s)
{
	unsigned all = 0, got;

	while ((got = vb_nic_lanes_scan(s->nic)))
		all += got;
	return all;
}

#endif
