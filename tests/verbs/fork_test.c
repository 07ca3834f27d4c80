/* SPDX-License-Identifier: BSD-2-Clause */
#include "peer.h"
#include "skip.h"

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

/*
 * ibv_fork_init(3), ibv_is_fork_initialized(3), and what becomes of memory when a process forks:
 * nothing is pinned, so the parent goes on with its own pages, and the child has copies.
 */

enum { CHILD_S = 30, BYTES = 20000 };

/* ThreadSanitizer does not know threads that the child of a threaded process makes. */
#ifdef __SANITIZE_THREAD__
#define NO_THREADS_IN_CHILD 1
#else
#define NO_THREADS_IN_CHILD 0
#endif

/* In a child nothing can be asserted: its exit status is the line where it went wrong. */
#define expect(condition)                                                                         \
	do {                                                                                      \
		if (!(condition))                                                                 \
			_exit(__LINE__ % 250 + 1);                                                \
	} while (0)

/* "IBV_FORK_UNNEEDED ... regardless of whether ibv_fork_init() was called or not" */
vt_test(there_is_nothing_to_prepare)
{
	uint8_t memory[64];
	struct ibv_mr *mr;

	assert_int_equal(ibv_is_fork_initialized(), IBV_FORK_UNNEEDED);
	assert_int_equal(ibv_fork_init(), 0);
	assert_int_equal(ibv_is_fork_initialized(), IBV_FORK_UNNEEDED);
	/* EINVAL would say that it is "not safe anymore to fork": it is. */
	mr = vt_mr(vt.pd, memory, sizeof(memory), VT_ALL_ACCESS);
	assert_int_equal(ibv_fork_init(), 0);
	assert_int_equal(ibv_dereg_mr(mr), 0);
}

/* The parent's memory is what peers reach, whoever wrote to a page first after the fork. */
vp_test(parent_and_child_have_memory_of_their_own)
{
	struct vp *peer = vp_start(NULL);
	struct vp_order order = { .what = VP_SEND, .op = IBV_WR_RDMA_WRITE, .bytes = BYTES,
				  .wr_id = 1 };
	struct vp_pair p;
	int go[2];
	pid_t child;

	assert_int_equal(pipe(go), 0);
	vp_pair_open(&p, peer, NULL);
	vt_fill(p.a.buf, BYTES, 1);
	child = fork();
	if (!child) {
		alarm(CHILD_S);
		/* Unlike memory with MADV_DONTFORK, it is here. */
		expect(vt_is_filled(p.a.buf, BYTES, 1));
		expect(read(go[0], &(char){ 0 }, 1) == 1);
		expect(vt_is_filled(p.a.buf, BYTES, 1));
		memset(p.a.buf, 0xee, BYTES);
		_exit(0);
	}
	vp_fill(&p, BYTES, 2);
	order.end = p.end;
	order.addr = (uintptr_t)p.a.buf;
	order.rkey = p.a.mr->rkey;
	assert_int_equal(vp_do(peer, &order).rc, 0);
	vp_expect(&p, 1, IBV_WC_SUCCESS);
	assert_true(vt_is_filled(p.a.buf, BYTES, 2));
	assert_int_equal(write(go[1], "", 1), 1);
	vt_child_ended(child);
	assert_true(vt_is_filled(p.a.buf, BYTES, 2));
	vp_exchange(&p, 1000, 3);
	vp_pair_close(&p);
	vp_end(peer);
	close(go[0]);
	close(go[1]);
}

/* What the device can do has not changed; its port and addresses are its parent's business. */
vt_test(a_child_may_ask_what_the_device_can)
{
	struct ibv_device_attr_ex extended;
	struct ibv_device_attr attr;
	struct ibv_port_attr port;
	union ibv_gid gid;
	pid_t child = fork();

	if (!child) {
		alarm(CHILD_S);
		expect(ibv_query_device(vt.ctx, &attr) == 0);
		expect(ibv_query_device_ex(vt.ctx, NULL, &extended) == 0);
		expect(ibv_query_port(vt.ctx, 1, &port) == EIO);
		expect(ibv_query_gid(vt.ctx, 1, 0, &gid) == -1 && errno == EIO);
		_exit(0);
	}
	vt_child_ended(child);
}

/* Another thread of the parent may have been within when it forked. */
vt_test(no_lock_of_the_parents_keeps_the_child)
{
	struct ibv_comp_channel *channel = ibv_create_comp_channel(vt.ctx);
	struct vt_options opt = { .channel = channel };
	struct ibv_async_event event = { .event_type = IBV_EVENT_QP_FATAL };
	struct ibv_cq *cq;
	struct vt_pair p;
	void *context;
	pid_t child;

	vt_pair_open(&p, &opt);
	event.element.qp = p.a.qp;
	assert_int_equal(pthread_mutex_lock(&p.a.cq->mutex), 0);
	assert_int_equal(pthread_mutex_lock(&p.a.qp->mutex), 0);
	assert_int_equal(pthread_mutex_lock(&vt.ctx->mutex), 0);
	child = fork();
	if (!child) {
		alarm(CHILD_S);
		expect(ibv_get_cq_event(channel, &cq, &context) == -1 && errno == EIO);
		ibv_ack_cq_events(p.a.cq, 1);
		ibv_ack_async_event(&event);
		expect(ibv_destroy_qp(p.a.qp) == 0);
		expect(ibv_destroy_cq(p.a.cq) == 0);
		expect(ibv_close_device(vt.ctx) == 0);
		_exit(0);
	}
	vt_child_ended(child);
	pthread_mutex_unlock(&vt.ctx->mutex);
	pthread_mutex_unlock(&p.a.qp->mutex);
	pthread_mutex_unlock(&p.a.cq->mutex);
	vt_pair_close(&p);
	assert_int_equal(ibv_destroy_comp_channel(channel), 0);
}

/* What it inherited is its parent's; by the descriptor it can be imported as anybody's. */
vt_test(a_child_imports_what_its_parent_has)
{
	struct vt_options opt = { .memory = VT_MEMFD };
	struct vt_end end;
	pid_t child;

	if (NO_THREADS_IN_CHILD)
		SKIP("a sanitizer allows no thread in a child");
	vt_end_open(&end, &opt);
	vt_fill(end.buf, BYTES, 1);
	child = fork();
	if (!child) {
		struct ibv_context *context;
		struct ibv_pd *pd;
		struct ibv_mr *mr;

		alarm(CHILD_S);
		expect(!ibv_import_pd(vt.ctx, vt.pd->handle) && errno == EIO);
		context = ibv_import_device(dup(vt.ctx->cmd_fd));
		expect(context);
		pd = ibv_import_pd(context, vt.pd->handle);
		expect(pd);
		mr = ibv_import_mr(pd, end.mr->handle);
		expect(mr && mr->rkey == end.mr->rkey);
		ibv_unimport_mr(mr);
		ibv_unimport_pd(pd);
		expect(ibv_close_device(context) == 0);
		_exit(0);
	}
	vt_child_ended(child);
	assert_true(vt_is_filled(end.buf, BYTES, 1));
	vt_end_close(&end);
}

/* "whether fork() is called explicitly or implicitly (such as in system())" */
vt_pair_test(other_programs_are_executed)
{
	for (int i = 0; i < 3; i++) {
		assert_int_equal(system("true"), 0);
		vt_fill(p->a.buf, BYTES, i);
		vt_do(IBV_WR_RDMA_WRITE, &p->a, &p->b, BYTES, IBV_WC_SUCCESS);
		assert_true(vt_is_filled(p->b.buf, BYTES, i));
	}
}
