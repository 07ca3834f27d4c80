/* SPDX-License-Identifier: BSD-2-Clause */

/* One-sided operations without the target's help: what is not allowed, and what ends them. */
#include <pthread.h>

#include "direct_fixture.h"
#include "nic/data/window.h"

/* --- what does not fit is judged by its owner --- */

DIRECT(where_there_is_no_way_in_the_ring_serves)
{
	host.refuses = true;
	post(IBV_WR_RDMA_WRITE, 64, 60);
	settle();
	assert_wc(side[0].cq, 64, IBV_WC_SUCCESS);
	post(IBV_WR_RDMA_READ, 64, 1000);
	settle();
	assert_wc(side[0].cq, 64, IBV_WC_SUCCESS);
	assert_memory_equal(side[1].mem + 64, side[0].mem + FROM, 60);
	assert_int_equal(host.writes + host.reads, 2);
	assert_int_equal(direct_ops(), 0);
}

static void expect_verdict(enum ibv_wr_opcode op, uint32_t to, uint32_t bytes,
			   struct ibv_mr *remote, enum ibv_wc_status status)
{
	assert_int_equal(post_with(op, to, bytes, IBV_SEND_SIGNALED, remote), 0);
	settle();
	assert_wc(side[0].cq, to, status);
	assert_int_equal(host.writes + host.reads, 0);
	assert_int_equal(direct_ops(), 0);
}

DIRECT(a_wrong_key_is_refused)
{
	struct ibv_mr wrong = side[1].mr->ibv;

	wrong.rkey ^= 1;
	expect_verdict(IBV_WR_RDMA_WRITE, 0, 8, &wrong, IBV_WC_REM_ACCESS_ERR);
}

DIRECT(what_is_out_of_bounds_is_refused)
{
	expect_verdict(IBV_WR_RDMA_READ, MEM_BYTES - 7, 8, &side[1].mr->ibv,
		       IBV_WC_REM_ACCESS_ERR);
}

DIRECT(another_pd_s_key_is_refused)
{
	struct vb_pd *pd;
	struct vb_mr *mr;

	assert_int_equal(vb_pd_create(side[1].ctx, &pd), 0);
	assert_int_equal(vb_mr_reg(pd, side[1].mem, 4096, (uintptr_t)side[1].mem,
				   IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE, &mr), 0);
	expect_verdict(IBV_WR_RDMA_WRITE, 0, 8, &mr->ibv, IBV_WC_REM_ACCESS_ERR);
	assert_int_equal(vb_mr_dereg(mr), 0);
	assert_int_equal(vb_pd_destroy(pd), 0);
}

DIRECT(a_right_that_the_key_lacks_is_refused)
{
	struct vb_mr *mr;

	assert_int_equal(vb_mr_reg(side[1].pd, side[1].mem, 4096, (uintptr_t)side[1].mem,
				   IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ, &mr), 0);
	expect_verdict(IBV_WR_RDMA_WRITE, 0, 8, &mr->ibv, IBV_WC_REM_ACCESS_ERR);
	assert_int_equal(vb_mr_dereg(mr), 0);
}

static void change_rights(unsigned access)
{
	struct ibv_qp_attr attr = { .qp_access_flags = access };

	assert_int_equal(vb_qp_modify(b, &attr, IBV_QP_ACCESS_FLAGS), 0);
}

DIRECT(a_right_that_the_qp_lost_is_refused)
{
	change_rights(IBV_ACCESS_REMOTE_READ);
	expect_verdict(IBV_WR_RDMA_WRITE, 0, 8, &side[1].mr->ibv, IBV_WC_REM_ACCESS_ERR);
}

DIRECT(a_deregistered_region_is_refused)
{
	struct ibv_mr remote;
	struct vb_mr *mr;

	assert_int_equal(vb_mr_reg(side[1].pd, side[1].mem, 4096, (uintptr_t)side[1].mem,
				   IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE, &mr), 0);
	remote = mr->ibv;
	assert_int_equal(vb_mr_dereg(mr), 0);
	expect_verdict(IBV_WR_RDMA_WRITE, 0, 8, &remote, IBV_WC_REM_ACCESS_ERR);
}

static void to_state(struct vb_qp *qp, enum ibv_qp_state state)
{
	struct ibv_qp_attr attr = { .qp_state = state };

	assert_int_equal(vb_qp_modify(qp, &attr, IBV_QP_STATE), 0);
}

/* A QP that is no more, or not yet, answers nothing. */
DIRECT(a_qp_that_is_not_ready_is_left_alone)
{
	static const enum ibv_qp_state states[] = { IBV_QPS_ERR, IBV_QPS_RESET };

	for (int i = 0; i < 2; i++) {
		to_state(b, states[i]);
		post(IBV_WR_RDMA_WRITE, i, 8);
		settle();
		assert_no_wc(side[0].cq);
	}
	assert_int_equal(host.writes, 0);
	to_state(a, IBV_QPS_ERR);
	assert_wc(side[0].cq, 0, IBV_WC_WR_FLUSH_ERR);
	assert_wc(side[0].cq, 1, IBV_WC_WR_FLUSH_ERR);
}

/* IBA 11.6.3.1: the first request in RTR is an event, so its owner must see it. */
DIRECT(the_first_request_in_rtr_is_not_hidden)
{
	int events = side[1].signals[FD_ASYNC];

	to_state(b, IBV_QPS_RESET);
	to_state(a, IBV_QPS_RESET);
	assert_int_equal(qp_step(b, IBV_QPS_INIT, 0), 0);
	assert_int_equal(qp_step(b, IBV_QPS_RTR, a->ibv.qp.qp_num), 0);
	qp_ready(a, b->ibv.qp.qp_num);
	for (uint32_t i = 0; i < 2; i++) {
		post(IBV_WR_RDMA_WRITE, i, 8);
		settle();
		assert_wc(side[0].cq, i, IBV_WC_SUCCESS);
		assert_int_equal(side[1].signals[FD_ASYNC], events + 1);
		assert_int_equal(direct_ops(), i);
	}
}

DIRECT(without_resources_there_is_no_read)
{
	struct ibv_qp_attr attr = { .max_dest_rd_atomic = 0 };

	to_state(b, IBV_QPS_RESET);
	to_state(a, IBV_QPS_RESET);
	qp_connect(a, b);
	to_state(b, IBV_QPS_SQD);
	assert_int_equal(vb_qp_modify(b, &attr, IBV_QP_MAX_DEST_RD_ATOMIC), 0);
	expect_verdict(IBV_WR_RDMA_READ, 0, 8, &side[1].mr->ibv, IBV_WC_REM_INV_REQ_ERR);
}

/* Nobody but the QP that it is connected to. */
DIRECT(a_stranger_is_refused)
{
	struct vb_qp *c = qp_make(&side[0], IBV_QPT_RC);
	struct ibv_sge sge = sge_of(&side[0], FROM, 8);
	struct ibv_send_wr wr = { .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE,
				  .send_flags = IBV_SEND_SIGNALED }, *bad;

	qp_ready(c, b->ibv.qp.qp_num);
	wr.wr.rdma.remote_addr = (uintptr_t)side[1].mem;
	wr.wr.rdma.rkey = side[1].mr->ibv.rkey;
	assert_int_equal(vb_qp_post_send(c, &wr, &bad), 0);
	assert_int_equal(host.writes, 0);
	drop_qp(c);
}

/* Whoever changes an entry makes its number odd meanwhile. */
DIRECT(what_is_being_changed_is_not_believed)
{
	_Atomic uint32_t *const seqs[] = {
		&entry_of_b()->seq,
		&side[1].nic->export->key[vb_key_place(side[1].mr->ibv.rkey)].seq,
	};

	for (int i = 0; i < 2; i++) {
		atomic_fetch_add(seqs[i], 1);
		post(IBV_WR_RDMA_WRITE, i, 8);
		assert_int_equal(host.writes, 0);
		atomic_fetch_add(seqs[i], 1);
		settle();
		assert_wc(side[0].cq, i, IBV_WC_SUCCESS);
	}
	post(IBV_WR_RDMA_WRITE, 2, 8);
	assert_int_equal(host.writes, 1);
	assert_wc(side[0].cq, 2, IBV_WC_SUCCESS);
}

/* By calls there is no atomic. */
DIRECT(an_atomic_needs_a_pointer)
{
	uint64_t word = 7;

	memcpy(side[1].mem + 8, &word, 8);
	assert_int_equal(add_at(8, 1), 7);
	assert_int_equal(host.writes + host.reads, 0);
	assert_int_equal(direct_ops(), 0);
}

/* IBA 9.7.4.1.4: it is the address of the request that counts, wherever that is in memory. */
DIRECT(an_atomic_off_its_boundary_is_refused)
{
	struct ibv_mr askew;
	struct vb_mr *mr;

	share(FILE_NUMBER, 1, 0, 0);
	assert_int_equal(vb_mr_reg(side[1].pd, side[1].mem, 4096, (uintptr_t)side[1].mem + 4,
				   IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_ATOMIC, &mr), 0);
	askew = mr->ibv;
	askew.addr = (uint8_t *)askew.addr + 4;
	share_key(mr->ibv.rkey, FILE_NUMBER, 2, 0, 0);
	expect_verdict(IBV_WR_ATOMIC_FETCH_AND_ADD, 0, 8, &askew, IBV_WC_REM_INV_REQ_ERR);
	assert_int_equal(vb_mr_dereg(mr), 0);
}

DIRECT(local_memory_must_be_ours_to_change)
{
	struct ibv_sge sge;
	struct ibv_send_wr wr = { .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_RDMA_READ,
				  .send_flags = IBV_SEND_SIGNALED }, *bad;
	struct vb_mr *mr;

	assert_int_equal(vb_mr_reg(side[0].pd, side[0].mem, 4096, (uintptr_t)side[0].mem, 0, &mr),
			 0);
	sge = (struct ibv_sge){ (uintptr_t)side[0].mem, 8, mr->ibv.lkey };
	wr.wr.rdma.remote_addr = (uintptr_t)side[1].mem;
	wr.wr.rdma.rkey = side[1].mr->ibv.rkey;
	assert_int_equal(vb_qp_post_send(a, &wr, &bad), 0);
	settle();
	assert_wc(side[0].cq, 0, IBV_WC_LOC_PROT_ERR);
	assert_int_equal(host.reads, 0);
	assert_int_equal(vb_mr_dereg(mr), 0);
}

/* --- the end of it --- */

DIRECT(nothing_is_written_for_a_peer_that_is_gone)
{
	side_die(&side[1]);
	vb_peer_gone(vb_peer_find(side[0].nic, side[0].slot, side[1].slot));
	post(IBV_WR_RDMA_WRITE, 0, 8);
	assert_int_equal(host.writes, 0);
	assert_wc(side[0].cq, 0, IBV_WC_RETRY_EXC_ERR);
	side[1].dead = false;
}

DIRECT(a_peer_that_is_gone_is_unmapped)
{
	share(FILE_NUMBER, 1, 0, 0);
	post(IBV_WR_RDMA_WRITE, 0, 8);
	assert_wc(side[0].cq, 0, IBV_WC_SUCCESS);
	vb_peer_gone(vb_peer_find(side[0].nic, side[0].slot, side[1].slot));
	to_state(a, IBV_QPS_RESET);
	assert_int_equal(host.maps, 1);
	assert_int_equal(host.unmaps, 1);
}

/* Another region with the same key is another one. */
DIRECT(what_is_stale_is_swept)
{
	share(FILE_NUMBER, 1, 0, 0);
	post(IBV_WR_RDMA_WRITE, 0, 8);
	assert_wc(side[0].cq, 0, IBV_WC_SUCCESS);
	vb_direct_sweep(side[0].nic);
	assert_int_equal(host.unmaps, 0);
	share(FILE_NUMBER, 2, 0, 0);
	vb_direct_sweep(side[0].nic);
	assert_int_equal(host.unmaps, 1);
	vb_direct_sweep(side[0].nic);
	assert_int_equal(host.unmaps, 1);
}

/* What an entry grants ends with the QP, its good state and its peer. */
DIRECT(entries_end_with_what_they_tell_of)
{
	struct vb_qp *c = qp_make(&side[1], IBV_QPT_RC);
	struct vb_export_qp *entry =
		&side[1].nic->export->qp[0][c->ibv.qp.qp_num & (VB_INDICES - 1)];

	qp_ready(c, a->ibv.qp.qp_num);
	assert_int_equal(VB_EXPORT_GET(entry->qpn), c->ibv.qp.qp_num);
	drop_qp(c);
	assert_int_equal(VB_EXPORT_GET(entry->qpn), 0);
	/* b fails by a request that it refuses. */
	assert_int_equal(VB_EXPORT_GET(entry_of_b()->qpn), b->ibv.qp.qp_num);
	post(IBV_WR_RDMA_WRITE, MEM_BYTES, 8);
	settle();
	assert_wc(side[0].cq, MEM_BYTES, IBV_WC_REM_ACCESS_ERR);
	assert_int_equal(VB_EXPORT_GET(entry_of_b()->qpn), 0);
}

DIRECT(entries_end_with_the_peer)
{
	assert_int_equal(VB_EXPORT_GET(entry_of_b()->qpn), b->ibv.qp.qp_num);
	vb_peer_gone(vb_peer_find(side[1].nic, side[1].slot, side[0].slot));
	assert_int_equal(VB_EXPORT_GET(entry_of_b()->qpn), 0);
}

/* Nothing of the ring before holds for a new one. */
DIRECT(a_new_ring_begins_anew)
{
	struct vb_peer *peer = vb_peer_find(side[0].nic, side[0].slot, side[1].slot);
	struct vb_peer *back = vb_peer_find(side[1].nic, side[1].slot, side[0].slot);
	struct vb_ring_area *area = zeros(sizeof(*area)), *before = side[0].area[1];

	post(IBV_WR_RDMA_WRITE, 0, 8);
	assert_wc(side[0].cq, 0, IBV_WC_SUCCESS);
	vb_peer_tx_set(peer, area, side[1].nic->export);
	assert_int_equal(a->lane.tx->direct.count, 0);
	post(IBV_WR_RDMA_WRITE, 0, 8);
	assert_int_equal(host.writes, 1);
	vb_peer_rx_pause(back);
	vb_peer_rx_set(back, area, side[0].nic->export);
	vb_peer_rx_resume(back);
	settle();
	assert_wc(side[0].cq, 0, IBV_WC_SUCCESS);
	side[0].area[1] = area;
	munmap(before, sizeof(*before));
}

/* As long as the owner does not watch, it could not wait for us. */
DIRECT(an_owner_that_does_not_watch_is_asked)
{
	struct vb_ring_area *area = side[0].area[1];

	for (unsigned i = 0; i < VB_RING_LANES; i++)
		atomic_store(&area->lane[i].heeds_direct, 0);
	post(IBV_WR_RDMA_WRITE, 0, 8);
	assert_int_equal(host.writes, 0);
	settle();
	assert_wc(side[0].cq, 0, IBV_WC_SUCCESS);
	for (unsigned i = 0; i < VB_RING_LANES; i++)
		atomic_store(&area->lane[i].heeds_direct, 1);
	post(IBV_WR_RDMA_WRITE, 0, 8);
	assert_int_equal(host.writes, 1);
	assert_wc(side[0].cq, 0, IBV_WC_SUCCESS);
}

static _Atomic int step;
static struct vb_mr *ending;
static void (*revoke)(void);

static void deregister(void)
{
	assert_int_equal(vb_mr_dereg(ending), 0);
}

static void take_rights(void)
{
	change_rights(IBV_ACCESS_REMOTE_READ);
}

static void *revoker(void *arg)
{
	atomic_store(&step, 1);
	revoke();
	atomic_store(&step, 2);
	return NULL;
}

static pthread_t ender;

static void somebody_revokes(void)
{
	atomic_store(&step, 0);
	pthread_create(&ender, NULL, revoker, NULL);
	while (!atomic_load(&step))
		;
	for (unsigned i = 0; i < 100; i++) {
		sched_yield();
		assert_int_equal(atomic_load(&step), 1);
	}
}

/* Who comes after a peer that was given up is waited for again. */
DIRECT(the_next_peer_is_waited_for)
{
	struct vb_peer *peer = vb_peer_find(side[1].nic, side[1].slot, side[0].slot);
	struct vb_ring_area *area = side[0].area[1];

	atomic_store(&peer->lane[1].unsettled, 5);
	vb_peer_rx_pause(peer);
	vb_peer_rx_set(peer, area, side[0].nic->export);
	vb_peer_rx_resume(peer);
	assert_int_equal(atomic_load(&peer->lane[1].unsettled), 0);
}

/* Time stands still here, so they would wait for ever. */
DIRECT(revocation_waits_for_an_access_under_way)
{
	static void (*const ways[])(void) = { deregister, take_rights };

	assert_int_equal(vb_mr_reg(side[1].pd, side[1].mem, 4096, (uintptr_t)side[1].mem,
				   IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE, &ending), 0);
	host.meanwhile = somebody_revokes;
	for (int i = 0; i < 2; i++) {
		struct ibv_mr *mr = i ? &side[1].mr->ibv : &ending->ibv;

		revoke = ways[i];
		assert_int_equal(post_with(IBV_WR_RDMA_WRITE, 0, 8, IBV_SEND_SIGNALED, mr), 0);
		pthread_join(ender, NULL);
		assert_int_equal(atomic_load(&step), 2);
		assert_wc(side[0].cq, 0, IBV_WC_SUCCESS);
	}
	assert_int_equal(direct_ops(), 2);
}

static uint64_t racing_now(void *arg)
{
	return fake_ns += 100000000;
}

/* --- a peer that is stopped in the midst of it --- */

enum { STOPPED_S = 5 };

static struct vb_mr *reg_ending(void)
{
	assert_int_equal(vb_mr_reg(side[1].pd, side[1].mem, 4096, (uintptr_t)side[1].mem,
				   IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE, &ending), 0);
	return ending;
}

/* Side 0 says on this lane that it is inside by the key, or inside no more. */
static void mark(unsigned lane, uint32_t key, uint32_t count)
{
	atomic_store(&side[0].area[1]->lane[lane].direct, (uint64_t)key << 32 | count);
	side[1].nic->host.clock.now_ns = count & 1 ? racing_now : fake_now_ns;
}

static unsigned waited_s(int (*revocation)(void), int err)
{
	uint64_t begin_ns = fake_ns;

	assert_int_equal(revocation(), err);
	return (unsigned)((fake_ns - begin_ns) / 1000000000u);
}

static int dereg_ending(void)
{
	return vb_mr_dereg(ending);
}

static int rereg_ending(void)
{
	return vb_mr_rereg(ending, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, side[1].mem + 8192, 4096,
			   0);
}

/* One that died in the midst of it is not waited for. */
DIRECT(the_dead_are_not_waited_for)
{
	mark(1, reg_ending()->ibv.rkey, 3);
	vb_peer_gone(vb_peer_find(side[1].nic, side[1].slot, side[0].slot));
	assert_int_equal(waited_s(dereg_ending, 0), 0);
	mark(1, 0, 0);
}

static bool tells_of_death(void *arg, struct vb_peer *peer, uint64_t waited_ns)
{
	assert_int_equal(peer->slot, side[0].slot);
	return waited_ns < 1000000000u;
}

/* Nor is one of whose death only the host knows. */
DIRECT(the_host_knows_of_deaths)
{
	mark(1, reg_ending()->ibv.rkey, 3);
	side[1].direct.tarry = tells_of_death;
	assert_in_range(waited_s(dereg_ending, 0), 0, 2);
	mark(1, 0, 0);
}

/* A ring full of nonsense is no sign of death: who wrote that may still write elsewhere. */
DIRECT(one_that_is_broken_is_waited_for)
{
	mark(1, reg_ending()->ibv.rkey, 3);
	atomic_store(&vb_peer_find(side[1].nic, side[1].slot, side[0].slot)->marks, VB_PEER_BROKEN);
	assert_in_range(waited_s(dereg_ending, EBUSY), STOPPED_S, STOPPED_S + 1);
	mark(1, 0, 4);
	assert_int_equal(vb_mr_dereg(ending), 0);
}

/* It is waited for once, not for ever, and keeps what it is at. */
DIRECT(what_a_stopped_peer_is_at_stays_as_it_was)
{
	struct ibv_mr before;

	before = reg_ending()->ibv;
	mark(2, before.rkey, 5);
	assert_in_range(waited_s(dereg_ending, EBUSY), STOPPED_S, STOPPED_S + 1);
	assert_int_equal(waited_s(dereg_ending, EBUSY), 0);
	assert_int_equal(waited_s(rereg_ending, EBUSY), 0);
	assert_memory_equal(&before, &ending->ibv, sizeof(before));
	assert_ptr_equal(vb_mr_get(side[1].nic, &side[1].pd->ibv, before.rkey,
				   (uintptr_t)before.addr, 4096, IBV_ACCESS_REMOTE_WRITE),
			 before.addr);
	/* Through the ring and by itself. */
	assert_int_equal(post_with(IBV_WR_RDMA_WRITE, 0, 8, IBV_SEND_SIGNALED, &before), 0);
	settle();
	assert_wc(side[0].cq, 0, IBV_WC_SUCCESS);
	assert_int_equal(direct_ops(), 1);
	/* In the midst of another one, it has another 5 s. */
	mark(2, before.rkey, 7);
	assert_in_range(waited_s(rereg_ending, EBUSY), STOPPED_S, STOPPED_S + 1);
	mark(2, before.rkey, 8);
	assert_int_equal(rereg_ending(), 0);
	assert_ptr_equal(ending->ibv.addr, side[1].mem + 8192);
	assert_int_equal(vb_mr_dereg(ending), 0);
}

/* What it is not at can go at once: that it is stopped is nobody else's business. */
DIRECT(what_a_stopped_peer_is_not_at_goes_at_once)
{
	struct vb_qp *c = qp_make(&side[1], IBV_QPT_RC), *d = qp_make(&side[1], IBV_QPT_RC);

	reg_ending();
	/* c and d hear of QPs whose lanes are other ones. */
	qp_ready(c, a->ibv.qp.qp_num + 1);
	qp_ready(d, a->ibv.qp.qp_num + 2);
	mark(a->ibv.qp.qp_num % VB_RING_LANES, side[1].mr->ibv.rkey, 5);
	assert_int_equal(waited_s(dereg_ending, 0), 0);
	to_state(c, IBV_QPS_ERR);
	drop_qp(c);
	to_state(d, IBV_QPS_RESET);
	drop_qp(d);
	assert_in_range(fake_ns, 0, 4000000000u);
	mark(a->ibv.qp.qp_num % VB_RING_LANES, 0, 6);
}

static int err_b(void)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_ERR };

	return vb_qp_modify(b, &attr, IBV_QP_STATE);
}

static int reset_b(void)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RESET };

	return vb_qp_modify(b, &attr, IBV_QP_STATE);
}

static int read_only_b(void)
{
	struct ibv_qp_attr attr = { .qp_access_flags = IBV_ACCESS_REMOTE_READ };

	return vb_qp_modify(b, &attr, IBV_QP_ACCESS_FLAGS);
}

static int destroy_b(void)
{
	return vb_qp_destroy(b);
}

/* The same of the QP through which it goes. */
DIRECT(a_qp_through_which_one_is_inside_stays)
{
	static int (*const ways[])(void) = { destroy_b, err_b, reset_b, read_only_b };
	unsigned lane = a->ibv.qp.qp_num % VB_RING_LANES;

	for (uint32_t i = 0; i < VB_ARRAY_LEN(ways); i++) {
		mark(lane, side[1].mr->ibv.rkey, 2 * i + 5);
		assert_in_range(waited_s(ways[i], EBUSY), STOPPED_S, STOPPED_S + 1);
		assert_int_equal(waited_s(ways[i], EBUSY), 0);
		assert_int_equal(vb_qp_state(b), IBV_QPS_RTS);
		assert_int_equal(VB_EXPORT_GET(entry_of_b()->qpn), b->ibv.qp.qp_num);
		mark(lane, 0, 2 * i + 6);
		post(IBV_WR_RDMA_WRITE, i, 8);
		settle();
		assert_wc(side[0].cq, i, IBV_WC_SUCCESS);
	}
	assert_int_equal(direct_ops(), VB_ARRAY_LEN(ways));
	assert_int_equal(read_only_b(), 0);
	assert_int_equal(VB_EXPORT_GET(entry_of_b()->access), IBV_ACCESS_REMOTE_READ);
	assert_int_equal(err_b(), 0);
	assert_int_equal(VB_EXPORT_GET(entry_of_b()->qpn), 0);
}

/* As a program does that closes the device with all that is in it. */
DIRECT(a_context_stays_open)
{
	mark(3, 1234, 5);
	assert_false(vb_ctx_fail(side[1].ctx));
	mark(3, 1234, 6);
	assert_true(vb_ctx_fail(side[1].ctx));
}

/* What nobody reaches by himself is taken away whatever peers are about: windows, indirect keys. */
DIRECT(a_window_goes_at_once)
{
	struct vb_mw *mw;

	assert_int_equal(vb_mw_alloc(side[1].pd, IBV_MW_TYPE_1, &mw), 0);
	mark(0, mw->ibv.rkey, 5);
	assert_int_equal(vb_mw_dealloc(mw), 0);
	assert_in_range(fake_ns, 0, 1000000000u);
	mark(0, 0, 6);
}

static bool nobody(void *arg, struct vb_peer *peer)
{
	return false;
}

/* What the kernel would not let in does not hold us up, and is told not to try. */
DIRECT(one_that_cannot_reach_us_is_not_waited_for)
{
	struct vb_peer *back = vb_peer_find(side[1].nic, side[1].slot, side[0].slot);

	side[1].direct.may_reach = nobody;
	vb_peer_rx_pause(back);
	vb_peer_rx_set(back, side[0].area[1], side[0].nic->export);
	vb_peer_rx_resume(back);
	mark(2, reg_ending()->ibv.rkey, 5);
	assert_int_equal(waited_s(dereg_ending, 0), 0);
	mark(2, 0, 0);
	post(IBV_WR_RDMA_WRITE, 0, 8);
	settle();
	assert_wc(side[0].cq, 0, IBV_WC_SUCCESS);
	assert_int_equal(direct_ops(), 0);
}
