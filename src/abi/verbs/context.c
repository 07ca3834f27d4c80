/* SPDX-License-Identifier: BSD-2-Clause */
/* Opening and closing, and the tables of functions that the header's inline wrappers call. */
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "abi/verbs/abi.h"
#include "run/eventfd.h"

/*
 * What the inline wrappers call without looking must be a function even if it does nothing; an
 * entry of verbs_context that is NULL tells them "not supported".
 */
static struct ibv_mw *no_alloc_mw(struct ibv_pd *pd, enum ibv_mw_type type)
{
	errno = EOPNOTSUPP;
	return NULL;
}

static int no_bind_mw(struct ibv_qp *qp, struct ibv_mw *mw, struct ibv_mw_bind *bind)
{
	return EOPNOTSUPP;
}

static int no_dealloc_mw(struct ibv_mw *mw)
{
	return EOPNOTSUPP;
}

static int no_close_xrcd(struct ibv_xrcd *xrcd)
{
	return EOPNOTSUPP;
}

static const struct ibv_context_ops ops = {
	.alloc_mw = no_alloc_mw,
	.bind_mw = no_bind_mw,
	.dealloc_mw = no_dealloc_mw,
	.poll_cq = vb_abi_poll_cq,
	.req_notify_cq = vb_abi_req_notify_cq,
	.post_srq_recv = vb_abi_post_srq_recv,
	.post_send = vb_abi_post_send,
	.post_recv = vb_abi_post_recv,
};

static void fill_in(struct vb_ctx *ctx, struct ibv_device *device, int cmd_fd)
{
	struct verbs_context *verbs = &ctx->ibv;
	struct ibv_context *context = &verbs->context;

	verbs->sz = sizeof(*verbs);
	verbs->query_port = vb_abi_query_port;
	verbs->query_device_ex = vb_abi_query_device_ex;
	verbs->create_cq_ex = vb_abi_create_cq_ex;
	verbs->create_qp_ex = vb_abi_create_qp_ex;
	verbs->close_xrcd = no_close_xrcd;
	context->device = device;
	context->ops = ops;
	context->cmd_fd = cmd_fd;
	context->num_comp_vectors = VB_COMP_VECTORS;
	context->abi_compat = __VERBS_ABI_IS_EXTENDED;
	pthread_mutex_init(&context->mutex, NULL);
}

static int open_context(struct vb_device *dev, struct ibv_device *device, struct vb_ctx **out)
{
	struct vb_ctx *ctx = NULL;
	int async_fd, cmd_fd, rc;

	async_fd = vb_eventfd_create();
	if (async_fd < 0)
		return errno;
	/* There is no kernel to send commands to; an fd, because programs show and duplicate it. */
	cmd_fd = eventfd(0, EFD_CLOEXEC);
	rc = cmd_fd < 0 ? errno : vb_ctx_create(dev->nic, async_fd, &ctx);
	if (rc != 0) {
		if (cmd_fd >= 0)
			close(cmd_fd);
		close(async_fd);
		return rc;
	}
	ctx->run = dev;
	fill_in(ctx, device, cmd_fd);
	*out = ctx;
	return 0;
}

struct ibv_context *ibv_open_device(struct ibv_device *device)
{
	struct vb_ctx *ctx = NULL;
	struct vb_device *dev;
	int rc;

	if (device != vb_abi_device()) {
		errno = ENODEV;
		return NULL;
	}
	rc = vb_device_open(&dev);
	if (rc == 0) {
		rc = open_context(dev, device, &ctx);
		if (rc != 0)
			vb_device_close(dev);
	}
	if (rc != 0) {
		errno = rc;
		return NULL;
	}
	return &ctx->ibv.context;
}

int ibv_close_device(struct ibv_context *context)
{
	struct vb_device *dev = vb_device_of(context);
	int async_fd = context->async_fd, cmd_fd = context->cmd_fd;

	if (vb_device_is_gone(dev))
		return 0;
	pthread_mutex_destroy(&context->mutex);
	vb_ctx_destroy(vb_ctx_of(context));
	close(async_fd);
	close(cmd_fd);
	vb_device_close(dev);
	return 0;
}
