/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Opens and closes contexts, and has the tables of functions that the header's inline wrappers
 * call.
 */
#include "abi/verbs/context.h"

#include <sched.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "abi/check/calls.h"
#include "abi/check/check.h"
#include "abi/verbs/abi.h"
#include "abi/verbs/device.h"
#include "abi/verbs/ops.h"
#include "abi/tape/taped.h"
#include "abi/trace/measured.h"
#include "abi/trace/traced.h"
#include "base/failure.h"
#include "nic/control/efa.h"
#include "nic/data/qp_error.h"
#include "nic/mem/import.h"
#include "nic/queue/shuffle.h"
#include "run/process/eventfd.h"
#include "run/foreign.h"
#include "run/progress.h"
#include "run/process/log.h"
#include "run/process/report.h"
#include "run/process/trail.h"
#include "tape/calls.h"
#include "tape/tape.h"

/*
 * With another order, one poll in so many turns the NIC, and one in so many lets its thread go
 * first: seldom, for where the machine is busy everybody else goes first as well.
 */
#define TURN_EVERY 4u
#define YIELD_EVERY 32u

/* A NULL entry of verbs_context tells the inline wrappers "not supported". */
static const struct ibv_context_ops ops = {
	.alloc_mw = vb_abi_alloc_mw,
	.bind_mw = vb_abi_bind_mw,
	.dealloc_mw = vb_abi_dealloc_mw,
	.poll_cq = vb_abi_poll_cq,
	.req_notify_cq = vb_abi_req_notify_cq,
	.post_srq_recv = vb_abi_post_srq_recv,
	.post_send = vb_abi_post_send,
	.post_recv = vb_abi_post_recv,
};

static const struct ibv_context_ops told_ops = {
	.alloc_mw = vb_abi_alloc_mw,
	.bind_mw = vb_abi_bind_mw,
	.dealloc_mw = vb_abi_dealloc_mw,
	.poll_cq = vb_told_poll_cq,
	.req_notify_cq = vb_abi_req_notify_cq,
	.post_srq_recv = vb_told_post_srq_recv,
	.post_send = vb_told_post_send,
	.post_recv = vb_told_post_recv,
};

bool vb_abi_poll_turns(void)
{
	static __thread unsigned polls __attribute__((tls_model("initial-exec")));

	if (++polls % YIELD_EVERY == 0)
		sched_yield();
	return polls % TURN_EVERY == 0;
}

/* With another order. */
static int poll_cq_disorder(struct ibv_cq *ibv, int num_entries, struct ibv_wc *wc)
{
	struct vb_cq *cq = (struct vb_cq *)ibv;
	int got;

	if (vb_abi_is_gone(ibv->context))
		return -EIO;
	vb_cq_shuffle(cq);
	got = vb_cq_poll(cq, num_entries, wc);
	if (got == 0 && vb_abi_poll_turns()) {
		vb_progress_poll(vb_device_of(ibv->context));
		got = vb_cq_poll(cq, num_entries, wc);
	}
	vb_report_found();
	return got;
}

/* What EFA does not have, its programs do not find. */
static void leave_out(struct verbs_context *verbs)
{
	verbs->query_rt_values = NULL;
	verbs->modify_cq = NULL;
	verbs->create_counters = NULL;
	verbs->ibv_create_flow = NULL;
	verbs->modify_qp_rate_limit = NULL;
	verbs->create_srq_ex = NULL;
	verbs->alloc_dm = NULL;
	verbs->reg_dm_mr = NULL;
	verbs->alloc_null_mr = NULL;
	verbs->advise_mr = NULL;
	verbs->open_xrcd = NULL;
	verbs->open_qp = NULL;
	verbs->create_wq = NULL;
	verbs->create_rwq_ind_table = NULL;
	verbs->context.ops.alloc_mw = NULL;
	verbs->context.ops.bind_mw = NULL;
}

static void fill_in(struct vb_ctx *ctx, struct ibv_device *device, int cmd_fd)
{
	struct verbs_context *verbs = &ctx->ibv;
	struct ibv_context *context = &verbs->context;

	verbs->sz = sizeof(*verbs);
	verbs->query_port = vb_abi_query_port;
	verbs->query_device_ex = vb_abi_query_device_ex;
	verbs->query_rt_values = vb_abi_query_rt_values;
	verbs->create_cq_ex = vb_abi_create_cq_ex;
	verbs->modify_cq = vb_abi_modify_cq;
	verbs->alloc_td = vb_abi_alloc_td;
	verbs->dealloc_td = vb_abi_dealloc_td;
	verbs->alloc_parent_domain = vb_abi_alloc_parent_domain;
	verbs->create_counters = vb_abi_create_counters;
	verbs->destroy_counters = vb_abi_destroy_counters;
	verbs->attach_counters_point_flow = vb_abi_attach_counters;
	verbs->read_counters = vb_abi_read_counters;
	verbs->ibv_create_flow = vb_abi_create_flow;
	verbs->ibv_destroy_flow = vb_abi_destroy_flow;
	verbs->create_qp_ex = vb_abi_create_qp_ex;
	verbs->modify_qp_rate_limit = vb_abi_modify_qp_rate_limit;
	verbs->create_srq_ex = vb_abi_create_srq_ex;
	verbs->get_srq_num = vb_abi_get_srq_num;
	verbs->post_srq_ops = vb_abi_post_srq_ops;
	verbs->alloc_dm = vb_abi_alloc_dm;
	verbs->free_dm = vb_abi_free_dm;
	verbs->reg_dm_mr = vb_abi_reg_dm_mr;
	verbs->alloc_null_mr = vb_abi_alloc_null_mr;
	verbs->advise_mr = vb_abi_advise_mr;
	verbs->open_xrcd = vb_abi_open_xrcd;
	verbs->close_xrcd = vb_abi_close_xrcd;
	verbs->open_qp = vb_abi_open_qp;
	verbs->create_wq = vb_abi_create_wq;
	verbs->modify_wq = vb_abi_modify_wq;
	verbs->destroy_wq = vb_abi_destroy_wq;
	verbs->create_rwq_ind_table = vb_abi_create_rwq_ind_table;
	verbs->destroy_rwq_ind_table = vb_abi_destroy_rwq_ind_table;
	context->device = device;
	context->ops = vb_check_is_on() ? vb_check_ops : vb_refusals_are_wanted() ? told_ops : ops;
	if (vb_trail_is_open()) {
		context->ops.post_send = vb_traced_post_send;
		context->ops.poll_cq = vb_traced_poll_cq;
	}
	if (ctx->nic->host.order && !vb_check_is_on())
		context->ops.poll_cq = poll_cq_disorder;
	if (vb_tape_is_on())
		vb_taped_ops_set(&context->ops);
	if (vb_nic_is_efa(ctx->nic))
		leave_out(verbs);
	ctx->plain.post_send = context->ops.post_send;
	ctx->plain.poll_cq = context->ops.poll_cq;
	ctx->measure = vb_measure;
	context->cmd_fd = cmd_fd;
	context->num_comp_vectors = VB_COMP_VECTORS;
	context->abi_compat = __VERBS_ABI_IS_EXTENDED;
	pthread_mutex_init(&context->mutex, NULL);
}

/*
 * There is no kernel to send commands to: the descriptor is a card, by which the context can be
 * imported. If no card can be made it is an eventfd, since programs display and duplicate it.
 */
static int make_cmd_fd(struct vb_ctx *ctx, int *cmd_fd)
{
	if (vb_card_make(ctx->run, ctx->family, cmd_fd) == 0)
		return 0;
	*cmd_fd = eventfd(0, EFD_CLOEXEC);
	return *cmd_fd < 0 ? vb_device_failed(vb_failed(errno, "eventfd")) : 0;
}

int vb_abi_context_make(struct vb_device *dev, int cmd_fd, struct vb_ctx **out)
{
	struct vb_ctx *ctx;
	int async_fd, rc;

	async_fd = vb_eventfd_create();
	if (async_fd < 0)
		return vb_device_failed(vb_failed(errno, "eventfd"));
	rc = vb_taped_ctx_create(dev->nic, async_fd, &ctx);
	if (rc != 0) {
		close(async_fd);
		return rc;
	}
	ctx->run = dev;
	atomic_store(&ctx->holders, 1);
	if (cmd_fd < 0)
		rc = make_cmd_fd(ctx, &cmd_fd);
	if (rc != 0) {
		vb_taped_ctx_destroy(ctx);
		close(async_fd);
		return rc;
	}
	fill_in(ctx, vb_abi_device_at(dev->said.row), cmd_fd);
	*out = ctx;
	return 0;
}

struct ibv_context *ibv_open_device(struct ibv_device *device)
{
	char reason[VB_LOG_LINE_BYTES] = "";
	struct vb_ctx *ctx = NULL;
	struct vb_device *dev;
	unsigned row;
	int rc;

	if (!vb_abi_device_row(device, &row)) {
		errno = ENODEV;
		return NULL;
	}
	vb_check_open();
	vb_log_keep(reason);
	rc = vb_device_open(row, &dev);
	vb_log_keep(NULL);
	if (rc == 0) {
		/* A failed device stays failed until every context of it is closed. */
		rc = vb_nic_has_failed(dev->nic) ? EIO : vb_abi_context_make(dev, -1, &ctx);
		if (rc != 0)
			vb_device_close(dev);
	}
	if (rc != 0) {
		vb_hint(VB_HINT_OPEN, "ibv_open_device: %s", *reason ? reason : strerror(rc));
		errno = rc; /* the log has said why */
		return NULL;
	}
	vb_known_add(VB_KNOWN_CONTEXT, &ctx->ibv.context);
	return &ctx->ibv.context;
}

static void end(struct ibv_context *context)
{
	struct vb_device *dev = vb_device_of(context);
	int async_fd = context->async_fd, cmd_fd = context->cmd_fd;

	pthread_mutex_destroy(&context->mutex);
	vb_ctx_disown(vb_ctx_of(context));
	vb_taped_ctx_destroy(vb_ctx_of(context));
	close(async_fd);
	close(cmd_fd);
	vb_device_close(dev);
}

int vb_abi_ended(struct ibv_context *context, int rc)
{
	if (rc == 0 && atomic_fetch_sub(&vb_ctx_of(context)->holders, 1) == 1)
		end(context);
	return rc;
}

/*
 * "It does not release all the resources": programs leave them, or release them later (a garbage
 * collector has no order). A kernel would take back what the file was open for, so that peers no
 * longer reach the application's memory. If that is not possible at present, the context stays
 * open.
 */
int ibv_close_device(struct ibv_context *context)
{
	struct vb_ctx *ctx = vb_ctx_of(context);
	int rc = vb_known_end(VB_KNOWN_CONTEXT, context);

	if (rc != 0)
		return vb_abi_minus_one(rc);
	if (vb_abi_is_gone(context))
		return 0;
	if (atomic_load(&ctx->holders) > 1 && !vb_taped_ctx_fail(ctx))
		return vb_abi_minus_one(vb_known_ended(VB_KNOWN_CONTEXT, context, EBUSY));
	vb_known_ended(VB_KNOWN_CONTEXT, context, 0);
	return vb_abi_ended(context, 0);
}
