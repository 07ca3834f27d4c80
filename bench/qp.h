/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_BENCH_QP_H
#define VB_BENCH_QP_H

/*
 * RC QPs between two processes of a host by libibverbs alone, for what perftest does not measure.
 * Any error ends the program.
 */
#include <errno.h>
#include <infiniband/verbs.h>
#include <stdbool.h>
#include <string.h>

#include "bench.h"

enum { END_BYTES = 4096, CHUNK_QPS = 64 };

/* One process's side. */
struct end {
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_mr *mr;
	uint8_t *buffer;
	union ibv_gid gid;
	uint8_t gid_index;
	enum ibv_mtu mtu;
};

/* What the other process has to know of a QP. */
struct qp_name {
	uint32_t qpn, rkey;
	uint64_t address;
};

static inline void need(bool good, const char *what)
{
	if (!good)
		die(what);
}

static inline void octets_send(int fd, const void *octets, size_t bytes)
{
	need(write(fd, octets, bytes) == (ssize_t)bytes, "write");
}

/* If the peer is gone, ends without a message: the peer has printed one. */
static inline void octets_receive(int fd, void *octets, size_t bytes)
{
	ssize_t n;

	for (size_t at = 0; at < bytes; at += (size_t)n) {
		n = read(fd, (uint8_t *)octets + at, bytes - at);
		if (n <= 0)
			_exit(1);
	}
}

/* The device, memory that the peer may write, and the GID of 127.0.0.1. */
static inline void end_open(struct end *end)
{
	static const uint8_t loopback[16] = {[10] = 0xff, 0xff, 127, 0, 0, 1};
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_port_attr port;

	need(list && list[0], "ibv_get_device_list");
	end->context = ibv_open_device(list[0]);
	need(end->context, "ibv_open_device");
	ibv_free_device_list(list);
	need(!ibv_query_port(end->context, 1, &port), "ibv_query_port");
	end->mtu = port.active_mtu;
	for (int i = 0; i < port.gid_tbl_len; i++) {
		if (!ibv_query_gid(end->context, 1, i, &end->gid) &&
		    !memcmp(end->gid.raw, loopback, sizeof(loopback)))
			break;
		end->gid_index = (uint8_t)(i + 1);
	}
	need(!memcmp(end->gid.raw, loopback, sizeof(loopback)), "no GID of 127.0.0.1");
	end->pd = ibv_alloc_pd(end->context);
	end->buffer = aligned_alloc(END_BYTES, END_BYTES);
	need(end->pd && end->buffer, "ibv_alloc_pd");
	memset(end->buffer, 0, END_BYTES);
	end->mr = ibv_reg_mr(end->pd, end->buffer, END_BYTES,
			     IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	need(end->mr, "ibv_reg_mr");
}

/* Attributes for the transitions, beside those that QPs of every type have. */
enum {
	QP_INIT = IBV_QP_ACCESS_FLAGS,
	QP_PEER = IBV_QP_AV | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN,
	QP_RESPONDER = IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER,
	QP_REQUESTER = IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC,
};

/* To RTS; rts 0: to RTR. timeout: as in struct ibv_qp_attr. */
static inline void qp_climb(const struct end *end, struct ibv_qp *qp, uint32_t peer,
			    uint8_t timeout, int init, int rtr, int rts)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT,
		.port_num = 1,
		.qp_access_flags = IBV_ACCESS_REMOTE_WRITE,
		.path_mtu = end->mtu,
		.dest_qp_num = peer,
		.min_rnr_timer = 1,
		.timeout = timeout,
		.retry_cnt = 7,
		.rnr_retry = 7,
		.ah_attr = {.is_global = 1, .port_num = 1},
	};

	attr.ah_attr.grh.dgid = end->gid;
	attr.ah_attr.grh.sgid_index = end->gid_index;
	attr.ah_attr.grh.hop_limit = 64;
	need(!ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | init),
	     "INIT");
	attr.qp_state = IBV_QPS_RTR;
	need(!ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PATH_MTU | rtr), "RTR");
	attr.qp_state = IBV_QPS_RTS;
	need(!rts || !ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_SQ_PSN | rts),
	     "RTS");
}

static inline void qp_connect(const struct end *end, struct ibv_qp *qp, uint32_t peer)
{
	qp_climb(end, qp, peer, 14, QP_INIT, QP_PEER | QP_RESPONDER, QP_REQUESTER);
}

/*
 * Both processes call this with the same count. Makes QPs and connects the n-th here with the n-th
 * there, meeting by fd every CHUNK_QPS. Leaves the name of the peer's last QP in peer.
 */
static inline void qps_make(const struct end *end, struct ibv_cq *cq, const struct ibv_qp_cap *cap,
			    int fd, struct ibv_qp **qp, size_t count, struct qp_name *peer)
{
	struct qp_name mine[CHUNK_QPS] = {0}, theirs[CHUNK_QPS];
	size_t n;

	for (size_t done = 0; done < count; done += n) {
		n = count - done < CHUNK_QPS ? count - done : CHUNK_QPS;
		for (size_t i = 0; i < n; i++) {
			struct ibv_qp_init_attr attr = {
				.send_cq = cq,
				.recv_cq = cq,
				.qp_type = IBV_QPT_RC,
				.cap = *cap,
			};

			qp[done + i] = ibv_create_qp(end->pd, &attr);
			need(qp[done + i], "ibv_create_qp");
			mine[i].qpn = qp[done + i]->qp_num;
			mine[i].rkey = end->mr->rkey;
			mine[i].address = (uintptr_t)end->buffer;
		}
		octets_send(fd, mine, n * sizeof(*mine));
		octets_receive(fd, theirs, n * sizeof(*theirs));
		for (size_t i = 0; i < n; i++)
			qp_connect(end, qp[done + i], theirs[i].qpn);
		*peer = theirs[n - 1];
	}
	/* No process sends before both are ready. */
	octets_send(fd, "", 1);
	octets_receive(fd, &mine, 1);
}

static inline void recv_post(const struct end *end, struct ibv_qp *qp)
{
	struct ibv_sge sge = {(uintptr_t)end->buffer, 64, end->mr->lkey};
	struct ibv_recv_wr wr = {.sg_list = &sge, .num_sge = 1}, *bad;

	need(!ibv_post_recv(qp, &wr, &bad), "ibv_post_recv");
}

/* Posts a few octets, inline. A WRITE goes to `peer`'s memory. */
static inline void send_post(const struct end *end, struct ibv_qp *qp, enum ibv_wr_opcode opcode,
			     unsigned flags, uint32_t bytes, const struct qp_name *peer)
{
	struct ibv_sge sge = {(uintptr_t)end->buffer, bytes, end->mr->lkey};
	struct ibv_send_wr wr = {
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = opcode,
		.send_flags = IBV_SEND_INLINE | flags,
		.wr.rdma = {.remote_addr = peer->address, .rkey = peer->rkey},
	};
	struct ibv_send_wr *bad;

	errno = ibv_post_send(qp, &wr, &bad);
	need(!errno, "ibv_post_send");
}

/* Completions polled, by kind; all must be successful. */
struct polled {
	unsigned sent, received;
};

static inline struct polled cq_poll(struct ibv_cq *cq)
{
	struct polled polled = {0, 0};
	struct ibv_wc wc[16];
	int n = ibv_poll_cq(cq, 16, wc);

	need(n >= 0, "ibv_poll_cq");
	for (int i = 0; i < n; i++) {
		if (wc[i].status != IBV_WC_SUCCESS) {
			fprintf(stderr, "completion: %s\n", ibv_wc_status_str(wc[i].status));
			_exit(1);
		}
		if (wc[i].opcode & IBV_WC_RECV)
			polled.received++;
		else
			polled.sent++;
	}
	return polled;
}

#endif
