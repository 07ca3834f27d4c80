/* SPDX-License-Identifier: BSD-2-Clause */
#include "lib.h"

#include <fcntl.h>
#include <unistd.h>

/*
 * ibv_close_device(3), NOTES: "ibv_close_device() does not release all the resources allocated
 * using context". They can be released afterwards, in whatever order they allow, and the context is
 * there until the last of them has gone; but nobody reaches the application's memory any more.
 */

static struct ibv_context *context_open(void)
{
	return vt_made(ibv_open_device(vt.ctx->device));
}

/* Two numbers that no other file of the process gets meanwhile. */
static bool is_there(int async_fd, int cmd_fd)
{
	bool async = fcntl(async_fd, F_GETFD) >= 0, cmd = fcntl(cmd_fd, F_GETFD) >= 0;

	assert_int_equal(async, cmd);
	return async;
}

/* --- one object --- */

struct kind {
	const char *name;
	void *(*make)(struct ibv_context *context);
	int (*end)(void *object);
};

static void *pd_make(struct ibv_context *context)
{
	return ibv_alloc_pd(context);
}

static int pd_end(void *pd)
{
	return ibv_dealloc_pd(pd);
}

static void *cq_make(struct ibv_context *context)
{
	return ibv_create_cq(context, 1, NULL, NULL, 0);
}

static void *cq_ex_make(struct ibv_context *context)
{
	return ibv_create_cq_ex(context, &(struct ibv_cq_init_attr_ex){ .cqe = 1 });
}

static int cq_end(void *cq)
{
	return ibv_destroy_cq(cq);
}

static void *channel_make(struct ibv_context *context)
{
	return ibv_create_comp_channel(context);
}

static int channel_end(void *channel)
{
	return ibv_destroy_comp_channel(channel);
}

static void *td_make(struct ibv_context *context)
{
	return ibv_alloc_td(context, &(struct ibv_td_init_attr){ 0 });
}

static int td_end(void *td)
{
	return ibv_dealloc_td(td);
}

static void *dm_make(struct ibv_context *context)
{
	return ibv_alloc_dm(context, &(struct ibv_alloc_dm_attr){ .length = 64 });
}

static int dm_end(void *dm)
{
	return ibv_free_dm(dm);
}

static void *xrcd_make(struct ibv_context *context)
{
	struct ibv_xrcd_init_attr attr = {
		.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS,
		.fd = -1,
		.oflags = O_CREAT,
	};

	return ibv_open_xrcd(context, &attr);
}

static int xrcd_end(void *xrcd)
{
	return ibv_close_xrcd(xrcd);
}

static void *counters_make(struct ibv_context *context)
{
	return ibv_create_counters(context, &(struct ibv_counters_init_attr){ 0 });
}

static int counters_end(void *counters)
{
	return ibv_destroy_counters(counters);
}

/* What is made of a context and nothing else; all other objects need one of these. */
static const struct kind kinds[] = {
	{ "a PD", pd_make, pd_end },
	{ "a CQ", cq_make, cq_end },
	{ "an extended CQ", cq_ex_make, cq_end },
	{ "a channel", channel_make, channel_end },
	{ "a thread domain", td_make, td_end },
	{ "device memory", dm_make, dm_end },
	{ "an XRC domain", xrcd_make, xrcd_end },
	{ "counters", counters_make, counters_end },
};

vt_test(whatever_is_left_keeps_the_context)
{
	for (size_t i = 0; i < VT_COUNT(kinds); i++) {
		struct ibv_context *context = context_open();
		int async_fd = context->async_fd, cmd_fd = context->cmd_fd;
		void *object = kinds[i].make(context), *second = kinds[i].make(context);

		print_message("# %s\n", kinds[i].name);
		assert_non_null(object);
		assert_non_null(second);
		assert_int_equal(ibv_close_device(context), 0);
		assert_int_equal(kinds[i].end(second), 0);
		assert_true(is_there(async_fd, cmd_fd));
		assert_int_equal(kinds[i].end(object), 0);
		assert_false(is_there(async_fd, cmd_fd));
	}
}

/* Refused is not destroyed. */
vt_test(what_is_in_use_keeps_it_on)
{
	struct ibv_context *context = context_open();
	struct ibv_pd *pd = ibv_alloc_pd(context);
	int async_fd = context->async_fd, cmd_fd = context->cmd_fd;
	uint8_t octet = 0;
	struct ibv_mr *mr = vt_made(ibv_reg_mr(pd, &octet, 1, 0));

	assert_int_equal(ibv_close_device(context), 0);
	assert_int_equal(ibv_dealloc_pd(pd), EBUSY);
	assert_true(is_there(async_fd, cmd_fd));
	assert_int_equal(ibv_dereg_mr(mr), 0);
	assert_int_equal(ibv_dealloc_pd(pd), 0);
	assert_false(is_there(async_fd, cmd_fd));
}

vt_test(the_last_of_a_process_is_closed_so_as_well)
{
	struct ibv_device *device = vt.ctx->device;

	for (int i = 0; i < 3; i++) {
		int async_fd = vt.ctx->async_fd, cmd_fd = vt.ctx->cmd_fd;

		assert_int_equal(ibv_close_device(vt.ctx), 0);
		assert_true(is_there(async_fd, cmd_fd));
		assert_int_equal(ibv_dealloc_pd(vt.pd), 0);
		assert_false(is_there(async_fd, cmd_fd));
		vt.ctx = vt_made(ibv_open_device(device));
		vt.pd = vt_made(ibv_alloc_pd(vt.ctx));
	}
}

/* --- a connection --- */

vt_test(nobody_reaches_what_was_closed)
{
	const struct vt_options opt = { .retry_cnt = 1 };
	struct vt_pair p;
	struct vt other;

	vt_pair_open_across(&p, &other, &opt);
	vt_fill(p.a.buf, 4096, 1);
	vt_fill(p.b.buf, 4096, 2);
	vt_recv(&p.b, 5);
	assert_int_equal(ibv_close_device(other.ctx), 0);
	vt_expect(p.b.cq, 5, IBV_WC_WR_FLUSH_ERR);
	assert_int_equal(vt_state(p.b.qp), IBV_QPS_ERR);
	vt_do(IBV_WR_RDMA_WRITE, &p.a, &p.b, 4096, IBV_WC_RETRY_EXC_ERR);
	assert_true(vt_is_filled(p.b.buf, 4096, 2));
	assert_int_equal(vt_state(p.a.qp), IBV_QPS_ERR);
	vt_end_close(&p.b);
	assert_int_equal(ibv_dealloc_pd(other.pd), 0);
	vt_end_close(&p.a);
	vt_no_event();
}

/* The other context's connections go on meanwhile. */
vt_test(others_do_not_notice)
{
	struct ibv_context *context = context_open();
	struct ibv_cq *cq = vt_made(ibv_create_cq(context, 1, NULL, NULL, 0));
	struct vt_pair p;

	vt_pair_open(&p, NULL);
	assert_int_equal(ibv_close_device(context), 0);
	vt_exchange(&p.a, &p.b);
	assert_int_equal(ibv_destroy_cq(cq), 0);
	vt_pair_close(&p);
}
