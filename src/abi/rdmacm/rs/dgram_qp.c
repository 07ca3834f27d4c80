/* SPDX-License-Identifier: BSD-2-Clause */
#include "abi/rdmacm/rs/dgram_qp.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "abi/check/check.h"
#include "abi/rdmacm/addr.h"
#include "abi/rdmacm/device.h"
#include "abi/rdmacm/rs/dgram_peer.h"
#include "base/check.h"
#include "wire/grh.h"
#include "wire/rs.h"

enum { RESOLVE_MS = 2000, BATCH = 16, SLOT_BYTES = VB_GRH_BYTES + VB_RS_DATAGRAM_BYTES };

/* The upper half of a receive's wr_id; the lower is the place or the receive. */
#define WR_RECEIVE (1ull << 63)

/* --- places --- */

static int places_make(struct vb_rs_dgram *d, struct ibv_pd *pd)
{
	unsigned n = d->rs.sizes.sends;

	d->out = calloc(n, VB_RS_DATAGRAM_BYTES);
	d->out_free = calloc(n, sizeof(*d->out_free));
	if (!d->out || !d->out_free)
		return ENOMEM;
	d->out_mr = ibv_reg_mr(pd, d->out, (size_t)n * VB_RS_DATAGRAM_BYTES,
			       IBV_ACCESS_LOCAL_WRITE);
	if (!d->out_mr)
		return errno;
	vb_check_is_ours(d->out_mr);
	for (unsigned i = 0; i < n; i++)
		d->out_free[i] = i;
	d->out_count = n;
	return 0;
}

uint8_t *vb_rs_place_take(struct vb_rs_dgram *d)
{
	return d->out + (size_t)d->out_free[--d->out_count] * VB_RS_DATAGRAM_BYTES;
}

int vb_rs_place_send(struct vb_rs_dgram *d, uint8_t *place, uint32_t bytes,
		     const struct vb_rs_peer *peer)
{
	uint32_t index = (uint32_t)((size_t)(place - d->out) / VB_RS_DATAGRAM_BYTES);
	struct ibv_sge sge = {(uintptr_t)place, bytes, d->out_mr->lkey};
	struct ibv_send_wr *bad, wr = {
		.wr_id = index,
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_SEND,
		.send_flags = bytes <= d->rs.sizes.inline_bytes ? IBV_SEND_INLINE : 0,
		.wr.ud = {.ah = peer->ah, .remote_qpn = peer->qpn, .remote_qkey = RDMA_UDP_QKEY},
	};
	int rc = ibv_post_send(peer->qp->id->qp, &wr, &bad);

	if (rc)
		d->out_free[d->out_count++] = index;
	return rc;
}

/* --- making --- */

static int receive_post(struct vb_rs_qp *qp, uint64_t index)
{
	struct ibv_sge sge = {
		(uintptr_t)(qp->in + index * SLOT_BYTES), SLOT_BYTES, qp->in_mr->lkey,
	};
	struct ibv_recv_wr *bad, wr = {
		.wr_id = WR_RECEIVE | index, .sg_list = &sge, .num_sge = 1,
	};

	return ibv_post_recv(qp->id->qp, &wr, &bad);
}

static int queue_make(struct vb_rs_dgram *d, struct vb_rs_qp *qp)
{
	struct vb_rs_sizes *sizes = &d->rs.sizes;
	struct ibv_qp_init_attr attr = {
		.qp_context = qp,
		.qp_type = IBV_QPT_UD,
		.sq_sig_all = 1,
		.cap = {
			.max_send_wr = sizes->sends,
			.max_recv_wr = sizes->receives,
			.max_send_sge = 1,
			.max_recv_sge = 1,
			.max_inline_data = sizes->inline_bytes,
		},
	};

	qp->cq = ibv_create_cq(qp->id->verbs, (int)(sizes->sends + sizes->receives), qp,
			       d->channel, 0);
	if (!qp->cq)
		return errno;
	attr.send_cq = attr.recv_cq = qp->cq;
	if (rdma_create_qp(qp->id, NULL, &attr))
		return errno;
	vb_check_is_ours(qp->cq);
	vb_check_is_ours(qp->id->qp);
	sizes->inline_bytes = (uint32_t)vb_min_u64(sizes->inline_bytes, attr.cap.max_inline_data);
	return 0;
}

static int receives_make(const struct vb_rs_dgram *d, struct vb_rs_qp *qp)
{
	unsigned n = d->rs.sizes.receives;
	int rc = 0;

	qp->in = calloc(n, SLOT_BYTES);
	qp->arrivals = calloc(n, sizeof(*qp->arrivals));
	if (!qp->in || !qp->arrivals)
		return ENOMEM;
	qp->in_mr = ibv_reg_mr(qp->id->pd, qp->in, (size_t)n * SLOT_BYTES,
			       IBV_ACCESS_LOCAL_WRITE);
	if (!qp->in_mr)
		return errno;
	vb_check_is_ours(qp->in_mr);
	for (unsigned i = 0; i < n && !rc; i++) {
		qp->arrivals[i].qp = qp;
		qp->arrivals[i].octets = qp->in + (size_t)i * SLOT_BYTES + VB_GRH_BYTES;
		rc = receive_post(qp, i);
	}
	return rc;
}

static void qp_free(struct vb_rs_qp *qp)
{
	if (qp->id->qp)
		rdma_destroy_qp(qp->id);
	if (qp->cq)
		ibv_destroy_cq(qp->cq);
	if (qp->in_mr)
		ibv_dereg_mr(qp->in_mr);
	free(qp->arrivals);
	free(qp->in);
	rdma_destroy_id(qp->id);
	free(qp);
}

static int port_learn(struct vb_rs_qp *qp)
{
	struct ibv_port_attr port;
	uint8_t gid[VB_GID_BYTES];
	uint32_t scope;
	int rc = ibv_query_port(qp->id->verbs, 1, &port), index;

	if (rc)
		return rc;
	qp->mtu_bytes = 128u << port.active_mtu;
	vb_cma_gid_of(&qp->id->route.addr.src_addr, gid, &scope);
	index = vb_cma_gid_index(gid);
	qp->sgid_index = (uint8_t)index;
	return index < 0 ? ENODEV : 0;
}

static int channel_make(struct vb_rs_dgram *d, struct ibv_context *verbs)
{
	if (d->channel)
		return 0;
	d->channel = ibv_create_comp_channel(verbs);
	if (!d->channel || fcntl(d->channel->fd, F_SETFL, O_NONBLOCK))
		return errno;
	vb_check_is_ours(d->channel);
	return 0;
}

static uint32_t places_of(uint32_t wanted, uint32_t bytes, uint32_t most)
{
	uint32_t room = (uint32_t)vb_max_u64(bytes / VB_RS_DATAGRAM_BYTES, 1);

	return (uint32_t)vb_min_u64(vb_max_u64(wanted, 1), vb_min_u64(room, most));
}

/* As many as the buffers have room for. */
static int sizes_settle(struct vb_rs_dgram *d, struct ibv_context *verbs)
{
	struct vb_rs_sizes *sizes = &d->rs.sizes;
	struct ibv_device_attr device;
	int rc = ibv_query_device(verbs, &device);

	if (rc)
		return rc;
	sizes->sends = places_of(sizes->sends, sizes->send_bytes, (uint32_t)device.max_qp_wr);
	sizes->receives = places_of(sizes->receives, sizes->receive_bytes,
				    (uint32_t)device.max_qp_wr);
	d->rs.has_buffers = true;
	return 0;
}

static int qp_equip(struct vb_rs_dgram *d, struct vb_rs_qp *qp)
{
	int rc = port_learn(qp);

	if (!rc && !d->rs.has_buffers)
		rc = sizes_settle(d, qp->id->verbs);
	if (!rc)
		rc = channel_make(d, qp->id->verbs);
	if (!rc && !d->out_mr)
		rc = places_make(d, qp->id->pd);
	if (!rc)
		rc = queue_make(d, qp);
	return rc ? rc : receives_make(d, qp);
}

static struct vb_rs_qp *find(const struct vb_rs_dgram *d, const struct rdma_cm_id *id)
{
	uint8_t gid[VB_GID_BYTES], own[VB_GID_BYTES];
	uint32_t scope;
	struct vb_rs_qp *qp;

	vb_cma_gid_of(&id->route.addr.src_addr, gid, &scope);
	LIST_FOREACH(qp, &d->qps, link) {
		vb_cma_gid_of(&qp->id->route.addr.src_addr, own, &scope);
		if (!memcmp(own, gid, VB_GID_BYTES))
			return qp;
	}
	return NULL;
}

/* The id of the way there: from the address that the socket is bound to, if to one. */
static int way_find(struct vb_rs_dgram *d, const struct sockaddr *to, struct rdma_cm_id **id)
{
	struct sockaddr_storage from = {.ss_family = AF_UNSPEC};
	struct sockaddr *src = (struct sockaddr *)&from;
	socklen_t bytes = sizeof(from);

	if (getsockname(d->rs.fd, src, &bytes))
		return errno;
	vb_cma_port_set(src, 0);
	if (to->sa_family == AF_INET)
		vb_cma_sockaddr_map(&from, false);
	if (rdma_create_id(NULL, id, d, RDMA_PS_UDP))
		return errno;
	if (rdma_resolve_addr(*id, vb_cma_is_any(src) ? NULL : src, (struct sockaddr *)to,
			      RESOLVE_MS)) {
		int rc = errno;

		rdma_destroy_id(*id);
		return rc;
	}
	return 0;
}

int vb_rs_qp_for(struct vb_rs_dgram *d, const struct sockaddr *to, struct vb_rs_qp **found)
{
	struct rdma_cm_id *id;
	struct vb_rs_qp *qp;
	int rc = way_find(d, to, &id);

	if (rc)
		return rc;
	*found = find(d, id);
	if (*found) {
		rdma_destroy_id(id);
		return 0;
	}
	qp = calloc(1, sizeof(*qp));
	if (!qp) {
		rdma_destroy_id(id);
		return ENOMEM;
	}
	qp->id = id;
	rc = qp_equip(d, qp);
	if (rc) {
		qp_free(qp);
		return rc;
	}
	LIST_INSERT_HEAD(&d->qps, qp, link);
	*found = qp;
	return 0;
}

void vb_rs_qps_free(struct vb_rs_dgram *d)
{
	while (!LIST_EMPTY(&d->qps)) {
		struct vb_rs_qp *qp = LIST_FIRST(&d->qps);

		LIST_REMOVE(qp, link);
		qp_free(qp);
	}
	if (d->channel)
		ibv_destroy_comp_channel(d->channel);
	if (d->out_mr)
		ibv_dereg_mr(d->out_mr);
	free(d->out_free);
	free(d->out);
}

/* --- completions --- */

void vb_rs_arrival_done(struct vb_rs_dgram *d, struct vb_rs_arrival *arrival)
{
	struct vb_rs_qp *qp = arrival->qp;

	if (qp) {
		receive_post(qp, (uint64_t)(arrival - qp->arrivals));
		return;
	}
	d->udp_arrivals--;
	free(arrival);
}

static void received(struct vb_rs_dgram *d, struct vb_rs_qp *qp, const struct ibv_wc *wc)
{
	struct vb_rs_arrival *arrival = &qp->arrivals[(uint32_t)wc->wr_id];
	struct vb_rs_from from;

	if (wc->status != IBV_WC_SUCCESS)
		return;
	arrival->bytes = wc->byte_len - VB_GRH_BYTES;
	if (vb_rs_from_parse(&from, arrival->octets, arrival->bytes))
		TAILQ_INSERT_TAIL(&d->arrivals, arrival, link);
	else
		vb_rs_arrival_done(d, arrival);
}

static void qp_turn(struct vb_rs_dgram *d, struct vb_rs_qp *qp)
{
	struct ibv_wc wcs[BATCH];
	int n;

	do {
		n = ibv_poll_cq(qp->cq, BATCH, wcs);
		for (int i = 0; i < n; i++) {
			if (wcs[i].wr_id & WR_RECEIVE)
				received(d, qp, &wcs[i]);
			else
				d->out_free[d->out_count++] = (uint32_t)wcs[i].wr_id;
		}
	} while (n == BATCH);
}

void vb_rs_qps_turn(struct vb_rs_dgram *d)
{
	struct vb_rs_qp *qp;

	LIST_FOREACH(qp, &d->qps, link)
		qp_turn(d, qp);
}

void vb_rs_qps_arm(struct vb_rs_dgram *d)
{
	struct vb_rs_qp *qp;

	LIST_FOREACH(qp, &d->qps, link) {
		if (!qp->armed)
			ibv_req_notify_cq(qp->cq, 0);
		qp->armed = true;
	}
}

void vb_rs_qps_news_take(struct vb_rs_dgram *d)
{
	struct ibv_cq *cq;
	void *context;

	if (!d->channel)
		return;
	while (!ibv_get_cq_event(d->channel, &cq, &context)) {
		ibv_ack_cq_events(cq, 1);
		((struct vb_rs_qp *)context)->armed = false;
		vb_rs_watches_wake(&d->watches);
	}
}
