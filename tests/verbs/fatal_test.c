/* SPDX-License-Identifier: BSD-2-Clause */
#include "lib.h"

#include <limits.h>
#include <sys/wait.h>
#include <unistd.h>

/*
 * A device that fails, which `verbatim fail PID` makes it do: IBV_EVENT_DEVICE_FATAL, as
 * ibv_get_async_event(3) has it, and then there is nothing to be had but what was begun.
 */

enum { NOBODY = 0x3fff };

/* The command of the build that this test belongs to, BUILD/tests/verbs/TEST. Its exit status. */
static int fail_process(pid_t pid)
{
	char command[PATH_MAX + 64], self[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
	int status;

	assert_true(n > 0);
	self[n] = 0;
	for (unsigned up = 0; up < 3; up++)
		*strrchr(self, '/') = 0;
	snprintf(command, sizeof(command), "%s/verbatim fail %d >/dev/null 2>&1", self, (int)pid);
	status = system(command);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

/* The next event, which a failing QP may have told of before. */
static void expect_fatal(struct ibv_context *context)
{
	struct ibv_async_event event;

	do {
		if (!vt_readable(context->async_fd, VT_WAIT_MS))
			fail_msg("no event");
		assert_int_equal(ibv_get_async_event(context, &event), 0);
		ibv_ack_async_event(&event);
	} while (event.event_type == IBV_EVENT_QP_LAST_WQE_REACHED);
	assert_int_equal(event.event_type, IBV_EVENT_DEVICE_FATAL);
}

static void fail_ourselves(void)
{
	assert_int_equal(fail_process(getpid()), 0);
	expect_fatal(vt.ctx);
}

vt_test(there_is_a_process_or_there_is_none)
{
	assert_int_equal(fail_process(getppid()), 1);
	assert_int_equal(fail_process(0), 2);
	vt_no_event();
}

/* All that is outstanding completes, and all that is posted. */
vt_test(what_was_begun_is_flushed)
{
	struct vt_options opt[3] = { { .timeout = 18 } };
	struct vt_end end[3];

	for (unsigned i = 0; i < 3; i++) {
		opt[i].type = vt_types[i];
		vt_end_open(&end[i], &opt[i]);
		vt_climb(end[i].qp, &opt[i], IBV_QPS_RTS, (end[i].qp->qp_num & ~0x3fffu) | NOBODY);
		if (i)
			assert_int_equal(vt_modify(end[i].qp, IBV_QPS_SQD), 0);
		vt_recv(&end[i], 1);
		vt_send(&end[i], &end[i], 2);
		vt_send(&end[i], &end[i], 3);
	}
	fail_ourselves();
	for (unsigned i = 0; i < 3; i++) {
		vt_expect(end[i].cq, 2, IBV_WC_WR_FLUSH_ERR);
		vt_expect(end[i].cq, 3, IBV_WC_WR_FLUSH_ERR);
		vt_expect(end[i].cq, 1, IBV_WC_WR_FLUSH_ERR);
		vt_send(&end[i], &end[i], 4);
		vt_expect(end[i].cq, 4, IBV_WC_WR_FLUSH_ERR);
		vt_recv(&end[i], 5);
		vt_expect(end[i].cq, 5, IBV_WC_WR_FLUSH_ERR);
		vt_expect_none(end[i].cq);
		vt_end_close(&end[i]);
	}
}

/* Whatever the application asks for now: EIO. */
vt_pair_test(nothing_more_is_to_be_had)
{
	struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_RC };
	struct ibv_srq_init_attr srq = { .attr = { .max_wr = 1, .max_sge = 1 } };
	struct ibv_port_attr port;
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RESET };
	struct ibv_alloc_dm_attr dm = { .length = 64 };
	union ibv_gid gid = { .raw = { 0xff } };
	uint8_t octet;

	fail_ourselves();
	init.send_cq = init.recv_cq = p->a.cq;
#define expect_eio(call)                                                                          \
	do {                                                                                      \
		errno = 0;                                                                        \
		assert_null(call);                                                                \
		assert_int_equal(errno, EIO);                                                     \
	} while (0)
	expect_eio(ibv_alloc_pd(vt.ctx));
	expect_eio(ibv_reg_mr(vt.pd, &octet, 1, 0));
	expect_eio(ibv_create_cq(vt.ctx, 1, NULL, NULL, 0));
	expect_eio(ibv_create_comp_channel(vt.ctx));
	expect_eio(ibv_create_qp(vt.pd, &init));
	expect_eio(ibv_create_srq(vt.pd, &srq));
	expect_eio(ibv_open_device(vt.ctx->device));
	expect_eio(ibv_alloc_dm(vt.ctx, &dm));
	expect_eio(ibv_alloc_mw(vt.pd, IBV_MW_TYPE_2));
	assert_int_equal(ibv_attach_mcast(p->a.qp, &gid, 0), EIO);
	assert_int_equal(ibv_modify_qp(p->a.qp, &attr, IBV_QP_STATE), EIO);
	assert_int_equal(ibv_query_qp(p->a.qp, &attr, IBV_QP_STATE, &init), EIO);
	assert_int_equal(ibv_resize_cq(p->a.cq, 2), EIO);
	assert_int_equal(ibv_query_port(vt.ctx, 1, &port), EIO);
	assert_int_equal(ibv_query_gid(vt.ctx, 1, 0, &gid), -1);
	/* What there is can be destroyed: vt_teardown() sees to the rest of it. */
}

vt_test(every_context_hears_of_it_once)
{
	struct ibv_context *other = vt_made(ibv_open_device(vt.ctx->device));

	fail_ourselves();
	expect_fatal(other);
	assert_int_equal(fail_process(getpid()), 0);
	vt_no_event();
	assert_int_equal(ibv_close_device(other), 0);
}

/* When all have closed it, whoever opens it has a device that works. */
vt_test(the_next_device_is_good)
{
	struct vt_pair p;

	for (unsigned i = 0; i < 3; i++) {
		fail_ourselves();
		vt_teardown(state);
		vt_setup(state);
		vt_pair_open(&p, NULL);
		vt_exchange(&p.a, &p.b);
		vt_no_event();
		vt_pair_close(&p);
	}
}
