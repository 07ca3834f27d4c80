/* SPDX-License-Identifier: BSD-2-Clause */
#include "lib.h"

#include <sys/mman.h>

/*
 * Remote operations that are not allowed: the requester's status, the responder's event, both QPs
 * in the error state, what waited behind flushed, and not an octet written.
 */

enum { GRANT_AT = 8192, GRANT = 8192, CANARY = 0xcc };

static const enum ibv_wr_opcode remote_ops[] = {
	IBV_WR_RDMA_WRITE,	    IBV_WR_RDMA_WRITE_WITH_IMM,  IBV_WR_RDMA_READ,
	IBV_WR_ATOMIC_CMP_AND_SWP, IBV_WR_ATOMIC_FETCH_AND_ADD,
};
enum { REMOTE_OPS = 5 };

static bool is_atomic(enum ibv_wr_opcode op)
{
	return op == IBV_WR_ATOMIC_CMP_AND_SWP || op == IBV_WR_ATOMIC_FETCH_AND_ADD;
}

static bool is_write(enum ibv_wr_opcode op)
{
	return op == IBV_WR_RDMA_WRITE || op == IBV_WR_RDMA_WRITE_WITH_IMM;
}

static int right_of(enum ibv_wr_opcode op)
{
	if (is_atomic(op))
		return IBV_ACCESS_REMOTE_ATOMIC;
	return is_write(op) ? IBV_ACCESS_REMOTE_WRITE : IBV_ACCESS_REMOTE_READ;
}

static void aim(struct vt_wr *w, uint64_t va, uint32_t rkey)
{
	if (is_atomic(w->wr.opcode)) {
		w->wr.wr.atomic.remote_addr = va;
		w->wr.wr.atomic.rkey = rkey;
		w->wr.wr.atomic.compare_add = 0xccccccccccccccccull;
		w->wr.wr.atomic.swap = 1;
	} else {
		w->wr.wr.rdma.remote_addr = va;
		w->wr.wr.rdma.rkey = rkey;
	}
}

/* What is wrong with a request. */
enum wrong {
	KEY_LOW,
	KEY_HIGH,
	KEY_ZERO,
	KEY_ONES,
	OTHER_PD,
	PAST_END,
	BEFORE_START,
	AROUND_THE_END_OF_TIME,
	NO_RIGHT,
	NO_RIGHT_OF_QP,
	DEREGISTERED,
	WRONGS
};

/* The peer that grants GRANT octets of its buffer, and to whom something wrong is sent. */
struct scene {
	struct vt_pair p;
	struct ibv_pd *other_pd;
	struct ibv_mr *grant;
};

static void scene_open(struct scene *s, enum ibv_qp_type type, enum ibv_wr_opcode op,
		       enum wrong wrong)
{
	struct vt_options opt = { .type = type };
	int access = VT_ALL_ACCESS;

	if (wrong == NO_RIGHT)
		access &= ~right_of(op);
	if (wrong == NO_RIGHT_OF_QP)
		opt.qp_access = VT_ALL_ACCESS & ~(unsigned)right_of(op);
	vt_pair_open(&s->p, &opt);
	memset(s->p.b.buf, CANARY, s->p.b.bytes);
	s->other_pd = vt_made(ibv_alloc_pd(vt.ctx));
	s->grant = vt_mr(wrong == OTHER_PD ? s->other_pd : vt.pd, s->p.b.buf + GRANT_AT, GRANT,
			 access);
}

static void scene_close(struct scene *s)
{
	if (s->grant)
		assert_int_equal(ibv_dereg_mr(s->grant), 0);
	vt_pair_close(&s->p);
	assert_int_equal(ibv_dealloc_pd(s->other_pd), 0);
}

static void make_wrong(struct scene *s, struct vt_wr *w, enum wrong wrong)
{
	uint64_t start = (uintptr_t)s->p.b.buf + GRANT_AT, va = start;
	uint32_t key = s->grant->rkey;

	switch (wrong) {
	case KEY_LOW:
		key ^= 1;
		break;
	case KEY_HIGH:
		key ^= 0x80000000;
		break;
	case KEY_ZERO:
		key = 0;
		break;
	case KEY_ONES:
		key = UINT32_MAX;
		break;
	case PAST_END:
		va = start + GRANT - w->sge.length + 8;
		break;
	case BEFORE_START:
		va = start - 8;
		break;
	case AROUND_THE_END_OF_TIME:
		va = -(uint64_t)8;
		break;
	case DEREGISTERED:
		assert_int_equal(ibv_dereg_mr(s->grant), 0);
		s->grant = NULL;
		break;
	default:
		break;
	}
	aim(w, va, key);
}

static void expect_untouched(const struct vt_end *b)
{
	if (!vt_is_octet(b->buf, b->bytes, CANARY))
		fail_msg("an octet was written");
}

/*
 * IBA 9.9.3, class C: what needs a receive request has taken it before it is found wrong, and ends
 * it. Of a longer WRITE the first packet is found wrong, and only the last would need one.
 */
static enum ibv_wc_status recv_status(enum ibv_wr_opcode op, uint32_t bytes)
{
	uint32_t packet = vt_by_udp() ? 1024 : 8192; /* at least */

	return op == IBV_WR_RDMA_WRITE_WITH_IMM && bytes <= packet ? IBV_WC_LOC_ACCESS_ERR
								   : IBV_WC_WR_FLUSH_ERR;
}

static void rc_case(enum ibv_wr_opcode op, enum wrong wrong, uint32_t bytes)
{
	struct ibv_async_event event;
	struct vt_wr w, behind;
	struct scene s;

	scene_open(&s, IBV_QPT_RC, op, wrong);
	vt_recv(&s.p.b, 50);
	vt_recv(&s.p.a, 51);
	vt_wr(&w, op, &s.p.a, &s.p.b, bytes);
	make_wrong(&s, &w, wrong);
	behind = w;
	behind.wr.wr_id = 11;
	behind.wr.send_flags = 0;
	behind.wr.sg_list = &behind.sge;
	w.wr.wr_id = 10;
	w.wr.next = &behind.wr;
	vt_post(&s.p.a, &w);
	vt_expect(s.p.a.cq, 10, IBV_WC_REM_ACCESS_ERR);
	vt_expect(s.p.a.cq, 11, IBV_WC_WR_FLUSH_ERR);
	vt_expect(s.p.a.cq, 51, IBV_WC_WR_FLUSH_ERR);
	vt_expect(s.p.b.cq, 50, recv_status(op, bytes));
	assert_int_equal(vt_state(s.p.a.qp), IBV_QPS_ERR);
	assert_int_equal(vt_state(s.p.b.qp), IBV_QPS_ERR);
	event = vt_event(IBV_EVENT_QP_ACCESS_ERR);
	assert_ptr_equal(event.element.qp, s.p.b.qp);
	ibv_ack_async_event(&event);
	expect_untouched(&s.p.b);
	scene_close(&s);
}

vt_test(rc_refuses_every_wrong_access_with_every_operation)
{
	for (int i = 0; i < REMOTE_OPS * WRONGS; i++) {
		enum ibv_wr_opcode op = remote_ops[i / WRONGS];
		enum wrong wrong = i % WRONGS;

		rc_case(op, wrong, 8);
		if (!is_atomic(op))
			rc_case(op, wrong, 8192);
	}
	vt_no_event();
}

/* The last octet too many, and the message is many packets long: not even the first is written. */
vt_pair_test(a_long_write_past_the_end_writes_nothing, .mtu = IBV_MTU_256)
{
	struct ibv_mr *grant;
	struct vt_wr w;

	memset(p->b.buf, CANARY, p->b.bytes);
	grant = vt_mr(vt.pd, p->b.buf + 100, 10000, VT_ALL_ACCESS);
	vt_wr(&w, IBV_WR_RDMA_WRITE, &p->a, &p->b, 10001);
	aim(&w, (uintptr_t)p->b.buf + 100, grant->rkey);
	vt_done(&p->a, &w, IBV_WC_REM_ACCESS_ERR);
	vt_event_acked(IBV_EVENT_QP_ACCESS_ERR);
	expect_untouched(&p->b);
	assert_int_equal(ibv_dereg_mr(grant), 0);
}

/* UC: nobody is told, the message is dropped, and the QP goes on (IBA 9.8.3). */
vt_test(uc_drops_every_wrong_access)
{
	for (int i = 0; i < 2 * WRONGS; i++) {
		enum ibv_wr_opcode op = remote_ops[i / WRONGS];
		struct scene s;
		struct vt_wr w;

		scene_open(&s, IBV_QPT_UC, op, i % WRONGS);
		vt_recv(&s.p.b, 50);
		vt_wr(&w, op, &s.p.a, &s.p.b, 4096);
		make_wrong(&s, &w, i % WRONGS);
		vt_done(&s.p.a, &w, IBV_WC_SUCCESS);
		vt_expect_none(s.p.b.cq);
		expect_untouched(&s.p.b);
		assert_int_equal(vt_state(s.p.b.qp), IBV_QPS_RTS);
		vt_send(&s.p.a, &s.p.b, 2);
		vt_expect(s.p.b.cq, 50, IBV_WC_SUCCESS);
		vt_expect(s.p.a.cq, 2, IBV_WC_SUCCESS);
		vt_no_event();
		scene_close(&s);
	}
}

/* Every operation x every set of rights: it works exactly if its right is there. */
vt_pairs_test(each_right_allows_its_operations_only, i, 0, REMOTE_OPS * 8)
{
	enum ibv_wr_opcode op = remote_ops[i / 8];
	int rights = (i & 1 ? IBV_ACCESS_REMOTE_WRITE : 0) |
		     (i & 2 ? IBV_ACCESS_REMOTE_READ : 0) |
		     (i & 4 ? IBV_ACCESS_REMOTE_ATOMIC : 0);
	bool allowed = rights & right_of(op);
	struct ibv_mr *mr;
	struct vt_wr w;

	mr = vt_mr(vt.pd, p->b.buf, 64, IBV_ACCESS_LOCAL_WRITE | rights);
	vt_recv(&p->b, 50);
	vt_wr(&w, op, &p->a, &p->b, 8);
	aim(&w, (uintptr_t)p->b.buf, mr->rkey);
	vt_done(&p->a, &w, allowed ? IBV_WC_SUCCESS : IBV_WC_REM_ACCESS_ERR);
	if (!allowed)
		vt_event_acked(IBV_EVENT_QP_ACCESS_ERR);
	assert_int_equal(ibv_dereg_mr(mr), 0);
}

/* IBA 9.7.4.1.6: nothing is touched, so no key is looked at. */
vt_pair_test(zero_octets_need_no_key)
{
	struct vt_wr w;

	memset(p->b.buf, CANARY, p->b.bytes);
	vt_wr(&w, IBV_WR_RDMA_WRITE, &p->a, &p->b, 0);
	aim(&w, 0, 0);
	vt_post(&p->a, &w);
	w.wr.opcode = IBV_WR_RDMA_READ;
	vt_done(&p->a, &w, IBV_WC_SUCCESS);
	vt_expect(p->a.cq, 1, IBV_WC_SUCCESS);
	expect_untouched(&p->b);
}

/* --- requests that are wrong in themselves --- */

static void expect_invalid_request(struct vt_pair *p)
{
	vt_expect(p->a.cq, 1, IBV_WC_REM_INV_REQ_ERR);
	vt_event_acked(IBV_EVENT_QP_REQ_ERR);
	assert_int_equal(vt_state(p->a.qp), IBV_QPS_ERR);
	assert_int_equal(vt_state(p->b.qp), IBV_QPS_ERR);
	vt_no_event();
}

vt_pairs_test(an_atomic_off_its_boundary_is_an_invalid_request, off, 1, 8)
{
	struct vt_wr w;

	vt_wr(&w, remote_ops[3 + (off & 1)], &p->a, &p->b, 8);
	aim(&w, (uintptr_t)p->b.buf + (unsigned)off, p->b.mr->rkey);
	vt_post(&p->a, &w);
	expect_invalid_request(p);
	assert_true(vt_is_octet(p->b.buf, 64, 0));
}

/* max_dest_rd_atomic of the responder is 0: it has no place for a READ. */
vt_pairs_test(a_read_without_resources_is_an_invalid_request, i, 2, REMOTE_OPS, .type = IBV_QPT_RC,
	      .in_reset = true)
{
	vt_climb(p->a.qp, &p->opt, IBV_QPS_RTS, p->b.qp->qp_num);
	p->opt.no_rd_atomic = true;
	vt_climb(p->b.qp, &p->opt, IBV_QPS_RTS, p->a.qp->qp_num);
	vt_start(remote_ops[i], &p->a, &p->b, 8);
	expect_invalid_request(p);
}

/* max_rd_atomic of the requester is 0: it may not even ask. */
vt_pairs_test(a_read_that_the_requester_may_not_make_fails_locally, i, 2, REMOTE_OPS,
	      .type = IBV_QPT_RC, .no_rd_atomic = true)
{
	vt_do(remote_ops[i], &p->a, &p->b, 8, IBV_WC_LOC_QP_OP_ERR);
	assert_int_equal(vt_state(p->a.qp), IBV_QPS_ERR);
	assert_int_equal(vt_state(p->b.qp), IBV_QPS_RTS);
}

vt_pairs_test(a_message_longer_than_its_receive_request, i, 0, 2)
{
	static const uint32_t sizes[] = { 65, 5000 };

	memset(p->b.buf, CANARY, p->b.bytes);
	assert_int_equal(vt_recv_at(&p->b, 7, 0, sizes[i] - 1), 0);
	vt_recv(&p->b, 8);
	vt_start(IBV_WR_SEND, &p->a, &p->b, sizes[i]);
	vt_expect(p->b.cq, 7, IBV_WC_LOC_LEN_ERR);
	vt_expect(p->b.cq, 8, IBV_WC_WR_FLUSH_ERR);
	vt_expect(p->a.cq, 1, IBV_WC_REM_INV_REQ_ERR);
	assert_int_equal(vt_state(p->b.qp), IBV_QPS_ERR);
	assert_true(vt_is_octet(p->b.buf + sizes[i] - 1, 10000, CANARY));
	vt_no_event(); /* the completion told */
}

/* --- the receiver's own faults --- */

static void recv_with(struct vt_end *end, uint64_t id, uint64_t addr, uint32_t bytes, uint32_t lkey)
{
	struct ibv_sge sge = { addr, bytes, lkey };
	struct ibv_recv_wr wr = { .wr_id = id, .sg_list = &sge, .num_sge = 1 }, *bad;

	assert_int_equal(end->srq ? ibv_post_srq_recv(end->srq, &wr, &bad)
				  : ibv_post_recv(end->qp, &wr, &bad), 0);
}

/* A receive request that lies in a bad place: local protection error there, remote here. */
static void bad_receive(bool srq, uint64_t addr, uint32_t lkey, struct vt_pair *p)
{
	recv_with(&p->b, 7, addr, 64, lkey);
	vt_send(&p->a, &p->b, 1);
	vt_expect(p->b.cq, 7, IBV_WC_LOC_PROT_ERR);
	vt_expect(p->a.cq, 1, IBV_WC_REM_OP_ERR);
	assert_int_equal(vt_state(p->a.qp), IBV_QPS_ERR);
	assert_int_equal(vt_state(p->b.qp), IBV_QPS_ERR);
	if (srq)
		vt_event_acked(IBV_EVENT_QP_LAST_WQE_REACHED);
	vt_no_event();
}

vt_test(receive_requests_in_bad_places)
{
	for (int i = 0; i < 2 * 5; i++) {
		struct vt_options opt = { .type = IBV_QPT_RC, .srq = i / 5 };
		struct ibv_pd *other = ibv_alloc_pd(vt.ctx);
		struct ibv_mr *read_only, *elsewhere;
		struct vt_pair p;
		uint64_t at;

		vt_pair_open(&p, &opt);
		read_only = vt_mr(vt.pd, p.b.buf, 64, IBV_ACCESS_REMOTE_READ);
		elsewhere = vt_mr(other, p.b.buf, 64, IBV_ACCESS_LOCAL_WRITE);
		at = (uintptr_t)p.b.buf;
		switch (i % 5) {
		case 0:
			bad_receive(opt.srq, at, p.b.mr->lkey ^ 1, &p);
			break;
		case 1:
			bad_receive(opt.srq, at, read_only->lkey, &p);
			break;
		case 2:
			bad_receive(opt.srq, at, elsewhere->lkey, &p);
			break;
		case 3:
			bad_receive(opt.srq, at + p.b.bytes - 7, p.b.mr->lkey, &p);
			break;
		default:
			bad_receive(opt.srq, at - 1, p.b.mr->lkey, &p);
			break;
		}
		assert_true(vt_is_octet(p.b.buf, p.b.bytes, 0));
		assert_int_equal(ibv_dereg_mr(read_only), 0);
		assert_int_equal(ibv_dereg_mr(elsewhere), 0);
		vt_pair_close(&p);
		assert_int_equal(ibv_dealloc_pd(other), 0);
	}
}

/* --- memory that went away under a registered region --- */

enum { HOLE = 16384 };

/* Registered like any other, and then taken away. */
static struct ibv_mr *hole_open(uint8_t **hole)
{
	struct ibv_mr *mr;

	*hole = mmap(NULL, HOLE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(*hole, MAP_FAILED);
	memset(*hole, 1, HOLE);
	mr = vt_mr(vt.pd, *hole, HOLE, VT_ALL_ACCESS);
	/* Nobody else shall be put there meanwhile. */
	assert_int_equal(mprotect(*hole, HOLE, PROT_NONE), 0);
	return mr;
}

static void hole_close(struct ibv_mr *mr, uint8_t *hole)
{
	assert_int_equal(ibv_dereg_mr(mr), 0);
	assert_int_equal(munmap(hole, HOLE), 0);
}

static const uint32_t hole_sizes[] = { 8, 200, 4096, 16384 };

vt_test(sending_from_vanished_memory)
{
	vt_faults_to_library();
	for (int i = 0; i < 3 * 4; i++) {
		struct vt_options opt = { .type = vt_types[i / 4], .mtu = IBV_MTU_4096 };
		struct ibv_mr *mr;
		struct vt_pair p;
		struct vt_wr w;
		uint8_t *hole;

		if (opt.type == IBV_QPT_UD && hole_sizes[i % 4] > 4096)
			continue;
		vt_pair_open(&p, &opt);
		mr = hole_open(&hole);
		vt_recv(&p.b, 7);
		vt_wr(&w, IBV_WR_SEND, &p.a, &p.b, hole_sizes[i % 4]);
		w.sge.addr = (uintptr_t)hole;
		w.sge.lkey = mr->lkey;
		vt_done(&p.a, &w, IBV_WC_LOC_PROT_ERR);
		assert_int_equal(vt_state(p.a.qp),
				 opt.type == IBV_QPT_RC ? IBV_QPS_ERR : IBV_QPS_SQE);
		hole_close(mr, hole);
		vt_pair_close(&p);
	}
}

enum { PART = 131072, PART_THERE = 65536 };

/* What lies before the hole leaves as ever, and arrives; then the work request fails for it. */
static void send_part(const struct vt_options *opt)
{
	static uint8_t ones[PART_THERE];
	uint8_t *part = mmap(NULL, PART, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
			     0);
	time_t end = time(NULL) + 20;
	struct ibv_mr *mr;
	struct vt_pair p;
	struct vt_wr w;

	assert_ptr_not_equal(part, MAP_FAILED);
	memset(part, 1, PART);
	memset(ones, 1, sizeof(ones));
	mr = vt_mr(vt.pd, part, PART, VT_ALL_ACCESS);
	assert_int_equal(mprotect(part + PART_THERE, PART - PART_THERE, PROT_NONE), 0);
	vt_pair_open(&p, opt);
	vt_wr(&w, IBV_WR_RDMA_WRITE, &p.a, &p.b, PART);
	w.sge.addr = (uintptr_t)part;
	w.sge.lkey = mr->lkey;
	vt_done(&p.a, &w, IBV_WC_LOC_PROT_ERR);
	while (memcmp((void *)(uintptr_t)w.wr.wr.rdma.remote_addr, ones, PART_THERE) != 0)
		assert_true(time(NULL) < end);
	vt_pair_close(&p);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	assert_int_equal(munmap(part, PART), 0);
}

vt_test(sending_from_memory_that_vanished_in_part)
{
	vt_faults_to_library();
	for (enum ibv_mtu mtu = IBV_MTU_1024; mtu <= IBV_MTU_4096; mtu++) {
		send_part(&(struct vt_options){ .type = IBV_QPT_RC, .mtu = mtu, .bytes = PART });
		send_part(&(struct vt_options){ .type = IBV_QPT_UC, .mtu = mtu, .bytes = PART });
	}
}

vt_pair_test(receiving_into_vanished_memory)
{
	struct ibv_mr *mr;
	uint8_t *hole;

	vt_faults_to_library();
	mr = hole_open(&hole);
	recv_with(&p->b, 7, (uintptr_t)hole, HOLE, mr->lkey);
	vt_send(&p->a, &p->b, 1);
	vt_expect(p->b.cq, 7, IBV_WC_LOC_PROT_ERR);
	vt_expect(p->a.cq, 1, IBV_WC_REM_OP_ERR);
	hole_close(mr, hole);
}

/* ThreadSanitizer holds a lock of its own around an atomic, and keeps it if that faults. */
#ifdef __SANITIZE_THREAD__
#define ATOMIC_FAULTS_KILL true
#else
#define ATOMIC_FAULTS_KILL false
#endif

vt_test(remote_operations_on_vanished_memory)
{
	vt_faults_to_library();
	for (int i = 0; i < REMOTE_OPS * 4; i++) {
		enum ibv_wr_opcode op = remote_ops[i / 4];
		struct ibv_mr *mr;
		struct vt_pair p;
		struct vt_wr w;
		uint8_t *hole;

		if (is_atomic(op) && (i % 4 || ATOMIC_FAULTS_KILL))
			continue;
		vt_pair_open(&p, NULL);
		mr = hole_open(&hole);
		vt_recv(&p.b, 7);
		vt_wr(&w, op, &p.a, &p.b, hole_sizes[i % 4]);
		aim(&w, (uintptr_t)hole, mr->rkey);
		vt_done(&p.a, &w, IBV_WC_REM_OP_ERR);
		assert_int_equal(vt_state(p.b.qp), IBV_QPS_ERR);
		vt_event_acked(IBV_EVENT_QP_FATAL);
		hole_close(mr, hole);
		vt_pair_close(&p);
	}
}

vt_pairs_test(reading_into_vanished_memory, i, 2, REMOTE_OPS)
{
	struct ibv_mr *mr;
	struct vt_wr w;
	uint8_t *hole;

	vt_faults_to_library();
	mr = hole_open(&hole);
	vt_wr(&w, remote_ops[i], &p->a, &p->b, 8);
	w.sge.addr = (uintptr_t)hole;
	w.sge.lkey = mr->lkey;
	vt_done(&p->a, &w, IBV_WC_LOC_PROT_ERR);
	assert_int_equal(vt_state(p->a.qp), IBV_QPS_ERR);
	hole_close(mr, hole);
}

/*
 * Nothing was there from the beginning: refused where it can be. The place is far from those where
 * allocators, a sanitizer's among them, would map something of theirs meanwhile.
 */
vt_test(nothing_cannot_be_registered)
{
	uint8_t *hole = mmap((void *)0x200000000000, HOLE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS,
			     -1, 0);

	assert_ptr_not_equal(hole, MAP_FAILED);
	assert_int_equal(munmap(hole, HOLE), 0);
	vt_refused(EFAULT, ibv_reg_mr(vt.pd, hole, HOLE, IBV_ACCESS_LOCAL_WRITE));
	vt_refused(EFAULT, ibv_reg_mr(vt.pd, NULL, HOLE, 0));
}
