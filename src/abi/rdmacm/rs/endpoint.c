/* SPDX-License-Identifier: BSD-2-Clause */
#include "abi/rdmacm/rs/endpoint.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "abi/check/check.h"
#include "abi/rdmacm/rs/flow.h"
#include "base/check.h"

enum {
	PLACES_MIN = 16,
	PLACES_MAX = 0xfffe, /* as many as the hello can say */
	BYTES_MIN = 4096,
	ALIGNMENT = 64,
	RNR_TIMER = 10, /* 0.32 ms */
};

static uint32_t within(uint32_t value, uint32_t least, uint32_t most)
{
	return (uint32_t)vb_max_u64(vb_min_u64(value, most), least);
}

static int sizes_settle(struct vb_rs_stream *s)
{
	struct vb_rs_sizes *sizes = &s->rs.sizes;
	struct ibv_device_attr device;
	uint32_t most;
	int rc = ibv_query_device(s->id->verbs, &device);

	if (rc)
		return rc;
	most = within((uint32_t)device.max_qp_wr - VB_RS_CONTROLS, PLACES_MIN, PLACES_MAX);
	sizes->sends = within(sizes->sends, PLACES_MIN, most);
	sizes->receives = within(sizes->receives, PLACES_MIN, most);
	sizes->send_bytes = within(sizes->send_bytes, BYTES_MIN, UINT32_MAX / 4);
	sizes->receive_bytes = within(sizes->receive_bytes, BYTES_MIN, UINT32_MAX / 4) & ~1u;
	s->rs.has_buffers = true;
	return 0;
}

static int cq_make(struct vb_rs_stream *s)
{
	int places = (int)(s->rs.sizes.sends + s->rs.sizes.receives + VB_RS_CONTROLS);

	s->channel = ibv_create_comp_channel(s->id->verbs);
	if (!s->channel || fcntl(s->channel->fd, F_SETFL, O_NONBLOCK))
		return errno;
	s->cq = ibv_create_cq(s->id->verbs, places, s, s->channel, 0);
	if (!s->cq)
		return errno;
	vb_check_is_ours(s->channel);
	vb_check_is_ours(s->cq);
	return 0;
}

static int qp_make(struct vb_rs_stream *s)
{
	struct ibv_qp_init_attr attr = {
		.qp_context = s,
		.send_cq = s->cq,
		.recv_cq = s->cq,
		.qp_type = IBV_QPT_RC,
		.sq_sig_all = 1,
		.cap = {
			.max_send_wr = s->rs.sizes.sends,
			.max_recv_wr = s->rs.sizes.receives + VB_RS_CONTROLS,
			.max_send_sge = 2,
			.max_recv_sge = 1,
			.max_inline_data = s->rs.sizes.inline_bytes,
		},
	};

	if (rdma_create_qp(s->id, NULL, &attr))
		return errno;
	vb_check_is_ours(s->id->qp);
	s->rs.sizes.inline_bytes = attr.cap.max_inline_data;
	return 0;
}

static int buffer_make(struct vb_rs_stream *s, size_t bytes, int access, uint8_t **buffer,
		       struct ibv_mr **mr)
{
	*buffer = aligned_alloc(ALIGNMENT, (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT);
	if (!*buffer)
		return ENOMEM;
	memset(*buffer, 0, bytes);
	*mr = ibv_reg_mr(s->id->pd, *buffer, bytes, access);
	if (!*mr)
		return errno;
	vb_check_is_ours(*mr);
	return 0;
}

static int buffers_make(struct vb_rs_stream *s)
{
	const struct vb_rs_sizes *sizes = &s->rs.sizes;
	size_t targets = VB_RS_TARGETS * VB_RS_AREA_BYTES + (size_t)sizes->maps * VB_RS_MAP_BYTES;
	int written = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE;
	int rc;

	rc = buffer_make(s, sizes->send_bytes + VB_RS_CONTROLS * VB_RS_AREA_BYTES,
			 IBV_ACCESS_LOCAL_WRITE, &s->out.buffer, &s->out.mr);
	if (!rc)
		rc = buffer_make(s, targets, written, &s->out.targets, &s->out.targets_mr);
	return rc ? rc : buffer_make(s, sizes->receive_bytes, written, &s->in.buffer, &s->in.mr);
}

int vb_rs_endpoint_make(struct vb_rs_stream *s)
{
	const struct vb_rs_sizes *sizes = &s->rs.sizes;
	int rc = sizes_settle(s);

	if (!rc)
		rc = cq_make(s);
	if (!rc)
		rc = qp_make(s);
	if (!rc)
		rc = buffers_make(s);
	if (rc)
		return rc;
	s->out.bytes = s->out.free = sizes->send_bytes;
	s->out.wrs_free = sizes->sends - VB_RS_CONTROLS;
	s->in.bytes = sizes->receive_bytes;
	/* The hello tells the first half; the other is told as soon as one is connected. */
	s->in.spent = s->in.told_at = sizes->receive_bytes / 2;
	s->in.credit_due = (uint16_t)(sizes->receives / 2);
	return vb_rs_receives_post(s, sizes->receives + VB_RS_CONTROLS);
}

static void buffer_free(uint8_t **buffer, struct ibv_mr **mr)
{
	if (*mr)
		ibv_dereg_mr(*mr);
	free(*buffer);
	*mr = NULL;
	*buffer = NULL;
}

void vb_rs_endpoint_free(struct vb_rs_stream *s)
{
	if (s->id && s->id->qp)
		rdma_destroy_qp(s->id);
	if (s->cq) {
		ibv_ack_cq_events(s->cq, s->cq_events);
		ibv_destroy_cq(s->cq);
	}
	if (s->channel)
		ibv_destroy_comp_channel(s->channel);
	buffer_free(&s->out.buffer, &s->out.mr);
	buffer_free(&s->out.targets, &s->out.targets_mr);
	buffer_free(&s->in.buffer, &s->in.mr);
}

void vb_rs_endpoint_hello(const struct vb_rs_stream *s, uint8_t out[VB_RS_HELLO_BYTES])
{
	const struct vb_rs_hello hello = {
		.credits = (uint16_t)s->rs.sizes.receives,
		.maps = (uint16_t)s->rs.sizes.maps,
		.targets = {
			.addr = (uintptr_t)s->out.targets,
			.key = s->out.targets_mr->rkey,
			.length = VB_RS_TARGETS,
		},
		.buffer = {
			.addr = (uintptr_t)s->in.buffer,
			.key = s->in.mr->rkey,
			.length = s->in.bytes / 2,
		},
	};

	vb_rs_hello_emit(&hello, out);
}

int vb_rs_endpoint_heard(struct vb_rs_stream *s, const void *data, unsigned bytes)
{
	struct vb_rs_hello hello;

	if (bytes < VB_RS_HELLO_BYTES || !vb_rs_hello_parse(&hello, data) || !hello.targets.length)
		return EPROTO;
	s->out.may_send = hello.credits;
	s->out.piece = hello.buffer;
	s->in.swapped = hello.swapped;
	s->in.peer_targets = hello.targets;
	/* The hello was the first of them. */
	s->in.peer_target_next = 1 % hello.targets.length;
	s->out.target_next = 1;
	s->in.peer_maps = (struct vb_rs_area){
		.addr = hello.targets.addr + (uint64_t)hello.targets.length * VB_RS_AREA_BYTES,
		.key = hello.targets.key,
		.length = hello.maps,
	};
	return 0;
}

void vb_rs_endpoint_settle(struct vb_rs_stream *s)
{
	/* The connection manager's timer stands for 0.66 s. */
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTS, .min_rnr_timer = RNR_TIMER};

	ibv_modify_qp(s->id->qp, &attr, IBV_QP_STATE | IBV_QP_MIN_RNR_TIMER);
}

void vb_rs_endpoint_stop(struct vb_rs_stream *s)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};

	ibv_modify_qp(s->id->qp, &attr, IBV_QP_STATE);
}
