/* SPDX-License-Identifier: BSD-2-Clause */
#include "peer.h"

#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

/*
 * What a program does with SIGSEGV and SIGBUS, and what the library makes of it: pages that it
 * opens when they are touched, and memory paged on demand, where there is no signal at all.
 */

enum { PAGE = 4096, PAGES = 8, BYTES = PAGES * PAGE, DEADLY = 99 };

static const uint32_t sizes[] = { 8, 200, 4000, 20000 };

/* --- pages that are tracked --- */

static uint8_t *tracked;
static volatile unsigned opened;

/* As a program has it that wants to know what is written to. */
static void track(int signum, siginfo_t *info, void *context)
{
	uintptr_t page = (uintptr_t)info->si_addr & -(uintptr_t)PAGE;

	if (!tracked || page - (uintptr_t)tracked >= BYTES) {
		signal(signum, SIG_DFL);
		return;
	}
	opened++;
	mprotect((void *)page, PAGE, PROT_READ | PROT_WRITE);
}

static void track_now(void)
{
	struct sigaction action = { .sa_sigaction = track, .sa_flags = SA_SIGINFO };

	assert_int_equal(sigaction(SIGSEGV, &action, NULL), 0);
}

static void protect(int protection)
{
	opened = 0;
	assert_int_equal(mprotect(tracked, BYTES, protection), 0);
}

static unsigned pages_of(uint32_t bytes)
{
	return (bytes + PAGE - 1) / PAGE;
}

/* b's buffer is tracked. What is there when it is over, and how many pages were opened. */
static void each_way(struct vt_pair *p, uint32_t bytes, unsigned seed)
{
	static const enum ibv_wr_opcode ops[] = { IBV_WR_SEND, IBV_WR_RDMA_WRITE,
						  IBV_WR_RDMA_READ };

	for (unsigned i = 0; i < VT_COUNT(ops); i++) {
		vt_fill(ops[i] == IBV_WR_RDMA_READ ? p->b.buf : p->a.buf, bytes, seed + i);
		if (ops[i] == IBV_WR_SEND)
			vt_recv(&p->b, 2);
		protect(ops[i] == IBV_WR_RDMA_READ ? PROT_NONE : PROT_READ);
		vt_do(ops[i], &p->a, &p->b, bytes, IBV_WC_SUCCESS);
		if (ops[i] == IBV_WR_SEND)
			vt_expect(p->b.cq, 2, IBV_WC_SUCCESS);
		assert_int_equal(opened, pages_of(bytes));
		assert_true(vt_is_filled(p->b.buf, bytes, seed + i));
		assert_true(vt_is_filled(p->a.buf, bytes, seed + i));
		protect(PROT_READ | PROT_WRITE);
	}
	/* From there, and what is read to there. */
	vt_fill(p->b.buf, bytes, seed + 9);
	vt_recv(&p->a, 3);
	protect(PROT_NONE);
	vt_do(IBV_WR_SEND, &p->b, &p->a, bytes, IBV_WC_SUCCESS);
	vt_expect(p->a.cq, 3, IBV_WC_SUCCESS);
	assert_int_equal(opened, pages_of(bytes));
	assert_true(vt_is_filled(p->a.buf, bytes, seed + 9));
	vt_fill(p->a.buf, bytes, seed + 10);
	protect(PROT_READ);
	vt_do(IBV_WR_RDMA_READ, &p->b, &p->a, bytes, IBV_WC_SUCCESS);
	assert_int_equal(opened, pages_of(bytes));
	assert_true(vt_is_filled(p->b.buf, bytes, seed + 10));
	protect(PROT_READ | PROT_WRITE);
}

static void tracked_pages_are_opened(void)
{
	struct vt_options opt = { .memory = VT_PAGES, .bytes = BYTES };
	struct vt_pair p;

	vt_pair_open(&p, &opt);
	tracked = p.b.buf;
	for (unsigned i = 0; i < VT_COUNT(sizes); i++)
		each_way(&p, sizes[i], i * 20);
	memset(p.b.buf, 0, 8);
	protect(PROT_READ);
	vt_do(IBV_WR_ATOMIC_FETCH_AND_ADD, &p.a, &p.b, 8, IBV_WC_SUCCESS);
	assert_int_equal(opened, 1);
	protect(PROT_READ | PROT_WRITE);
	tracked = NULL;
	vt_pair_close(&p);
}

/* main() installs it, so that it is there before the device is opened. */
vt_test(a_handler_from_before_opens_pages)
{
	vt_faults_to_library();
	tracked_pages_are_opened();
}

vt_test(a_handler_from_after_opens_pages)
{
	track_now();
	tracked_pages_are_opened();
}

/* --- memory that is paged on demand --- */

static void die(int signum)
{
	_exit(DEADLY);
}

/* From now on a fault is the program's own end. */
static void faults_kill(bool block)
{
	sigset_t faults;

	signal(SIGSEGV, die);
	signal(SIGBUS, die);
	sigemptyset(&faults);
	sigaddset(&faults, SIGSEGV);
	sigaddset(&faults, SIGBUS);
	assert_int_equal(sigprocmask(block ? SIG_BLOCK : SIG_UNBLOCK, &faults, NULL), 0);
}

/* One request from a to b, of which one has its memory at `at`. */
static void request(enum ibv_wr_opcode op, bool remote, uint32_t bytes, uint64_t at, uint32_t key,
		    enum ibv_wc_status status)
{
	struct vt_pair p;
	struct vt_wr w;

	vt_pair_open(&p, NULL);
	vt_recv(&p.b, 2);
	vt_wr(&w, op, &p.a, &p.b, bytes);
	if (!remote) {
		w.sge.addr = at;
		w.sge.lkey = key;
	} else if (op == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		w.wr.wr.atomic.remote_addr = at;
		w.wr.wr.atomic.rkey = key;
	} else {
		w.wr.wr.rdma.remote_addr = at;
		w.wr.wr.rdma.rkey = key;
	}
	vt_done(&p.a, &w, status);
	if (status == IBV_WC_REM_OP_ERR)
		vt_event_acked(IBV_EVENT_QP_FATAL);
	vt_pair_close(&p);
}

static void requests(uint64_t at, uint32_t key, uint32_t bytes, bool there)
{
	const enum ibv_wc_status ok = IBV_WC_SUCCESS;
	enum ibv_wc_status here = there ? ok : IBV_WC_LOC_PROT_ERR;
	enum ibv_wc_status far = there ? ok : IBV_WC_REM_OP_ERR;

	request(IBV_WR_RDMA_READ, true, bytes, at, key, far);
	request(IBV_WR_RDMA_WRITE, true, bytes, at, key, far);
	request(IBV_WR_RDMA_READ, false, bytes, at, key, here);
	request(IBV_WR_RDMA_WRITE, false, bytes, at, key, here);
	request(IBV_WR_SEND, false, bytes, at, key, here);
	if (bytes == 8)
		request(IBV_WR_ATOMIC_FETCH_AND_ADD, true, bytes, at, key, far);
}

static void receive(uint64_t at, uint32_t key, bool there)
{
	struct ibv_sge sge = { at, 64, key };
	struct ibv_recv_wr wr = { .wr_id = 7, .sg_list = &sge, .num_sge = 1 }, *bad;
	struct vt_pair p;

	vt_pair_open(&p, NULL);
	assert_int_equal(ibv_post_recv(p.b.qp, &wr, &bad), 0);
	vt_do(IBV_WR_SEND, &p.a, &p.b, 64, there ? IBV_WC_SUCCESS : IBV_WC_REM_OP_ERR);
	vt_expect(p.b.cq, 7, there ? IBV_WC_SUCCESS : IBV_WC_LOC_PROT_ERR);
	vt_pair_close(&p);
}

static void paged_memory_makes_no_signal(bool block)
{
	uint8_t *pages = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
			      0);
	const int access = VT_ALL_ACCESS | IBV_ACCESS_ON_DEMAND;
	struct ibv_mr *mr[] = { vt_mr(vt.pd, pages, BYTES, access),
				vt_mr(vt.pd, NULL, SIZE_MAX, access) };
	uint64_t at = (uintptr_t)pages;

	assert_true(pages != MAP_FAILED);
	faults_kill(block);
	for (unsigned there = 2; there-- > 0;) {
		if (!there)
			assert_int_equal(munmap(pages, BYTES), 0);
		for (unsigned i = 0; i < VT_COUNT(sizes); i++)
			requests(at, mr[i & 1]->lkey, sizes[i], there);
		receive(at, mr[0]->lkey, there);
		receive(at, mr[1]->lkey, there);
	}
	faults_kill(false);
	assert_int_equal(ibv_dereg_mr(mr[0]), 0);
	assert_int_equal(ibv_dereg_mr(mr[1]), 0);
}

vt_test(paging_heeds_no_handler)
{
	paged_memory_makes_no_signal(false);
}

vt_test(paging_heeds_no_mask)
{
	paged_memory_makes_no_signal(true);
}

/* Through a window of such a region, which has a key of its own. */
vt_pair_test(a_window_of_paged_memory_makes_no_signal)
{
	uint8_t *pages = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
			      0);
	struct ibv_mr *mr = vt_mr(vt.pd, pages, BYTES,
				  VT_ALL_ACCESS | IBV_ACCESS_ON_DEMAND | IBV_ACCESS_MW_BIND);
	struct ibv_mw *mw = vt_made(ibv_alloc_mw(vt.pd, IBV_MW_TYPE_1));
	struct ibv_mw_bind bind = {
		.wr_id = 5, .send_flags = IBV_SEND_SIGNALED,
		.bind_info = { mr, (uintptr_t)pages, BYTES,
			       IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
			       IBV_ACCESS_REMOTE_ATOMIC },
	};
	static const enum ibv_wr_opcode ops[] = { IBV_WR_RDMA_READ, IBV_WR_RDMA_WRITE,
						  IBV_WR_ATOMIC_FETCH_AND_ADD };

	assert_int_equal(ibv_bind_mw(p->b.qp, mw, &bind), 0);
	vt_expect(p->b.cq, 5, IBV_WC_SUCCESS);
	faults_kill(false);
	for (unsigned there = 2; there-- > 0;) {
		if (!there)
			assert_int_equal(munmap(pages, BYTES), 0);
		for (unsigned i = 0; i < VT_COUNT(ops); i++)
			request(ops[i], true, i < 2 ? 3000 : 8, (uintptr_t)pages, mw->rkey,
				there ? IBV_WC_SUCCESS : IBV_WC_REM_OP_ERR);
	}
	assert_int_equal(ibv_dealloc_mw(mw), 0);
	assert_int_equal(ibv_dereg_mr(mr), 0);
}

/* A peer reads what this process has unmapped: neither of the two notices but by the status. */
vp_test(another_process_cannot_kill_by_what_is_not_there)
{
	static const enum ibv_wr_opcode ops[] = { IBV_WR_RDMA_READ, IBV_WR_RDMA_WRITE,
						  IBV_WR_ATOMIC_FETCH_AND_ADD };
	struct vt_options opt = { .memory = VT_PAGES,
				  .mr_access = VT_ALL_ACCESS | IBV_ACCESS_ON_DEMAND };

	for (unsigned i = 0; i < 2 * VT_COUNT(ops); i++) {
		struct vp *peer = vp_start(NULL);
		struct vp_order hole = { .what = VP_HOLE, .bytes = PAGE };
		struct vp_order deadly = { .what = VP_DEADLY };
		struct vp_pair p;

		vp_pair_open(&p, peer, &opt);
		hole.end = p.end;
		vp_do(peer, &hole);
		vp_do(peer, &deadly);
		vt_sleep_ms(i & 1 ? 30 : 0); /* awake and asleep */
		vt_do(ops[i / 2], &p.a, &p.b, 8, IBV_WC_REM_OP_ERR);
		vp_pair_close(&p);
		vp_end(peer);
	}
}

int main(int argc, char **argv)
{
	track_now();
	return vp_main(argc);
}
