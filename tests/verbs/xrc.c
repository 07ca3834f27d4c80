/* SPDX-License-Identifier: BSD-2-Clause */
#include "xrc.h"

#include <fcntl.h>
#include <limits.h>
#include <unistd.h>

struct ibv_xrcd *vx_domain(int fd, int oflags)
{
	struct ibv_xrcd_init_attr attr = {
		.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS,
		.fd = fd,
		.oflags = oflags,
	};

	errno = 0;
	return ibv_open_xrcd(vt.ctx, &attr);
}

void vx_srq_open(struct vx_srq *srq, struct ibv_xrcd *xrcd)
{
	struct ibv_srq_init_attr_ex attr = {
		.attr = { .max_wr = VX_WR, .max_sge = 2 },
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD |
			     IBV_SRQ_INIT_ATTR_CQ | IBV_SRQ_INIT_ATTR_XRCD,
		.srq_type = IBV_SRQT_XRC,
		.xrcd = xrcd,
	};

	srq->cq = vt_cq(4 * VX_WR, NULL);
	srq->pd = vt_made(ibv_alloc_pd(vt.ctx));
	srq->mr = vt_mr(srq->pd, srq->buf, sizeof(srq->buf), VT_ALL_ACCESS);
	attr.pd = srq->pd;
	attr.cq = srq->cq;
	srq->srq = vt_made(ibv_create_srq_ex(vt.ctx, &attr));
	assert_int_equal(ibv_get_srq_num(srq->srq, &srq->number), 0);
}

void vx_srq_close(struct vx_srq *srq)
{
	assert_int_equal(ibv_destroy_srq(srq->srq), 0);
	assert_int_equal(ibv_dereg_mr(srq->mr), 0);
	assert_int_equal(ibv_dealloc_pd(srq->pd), 0);
	assert_int_equal(ibv_destroy_cq(srq->cq), 0);
}

void vx_recv(struct vx_srq *srq, uint64_t wr_id, size_t offset, uint32_t bytes)
{
	struct ibv_sge sge = { (uintptr_t)srq->buf + offset, bytes, srq->mr->lkey };
	struct ibv_recv_wr wr = { .wr_id = wr_id, .sg_list = &sge, .num_sge = 1 }, *bad;

	assert_int_equal(ibv_post_srq_recv(srq->srq, &wr, &bad), 0);
}

struct ibv_qp *vx_rcv_make(struct ibv_xrcd *xrcd)
{
	struct ibv_qp_init_attr_ex attr = {
		.qp_type = IBV_QPT_XRC_RECV,
		.comp_mask = IBV_QP_INIT_ATTR_XRCD,
		.xrcd = xrcd,
	};

	errno = 0;
	return ibv_create_qp_ex(vt.ctx, &attr);
}

void vx_snd_open(struct vx_snd *snd, uint64_t ops)
{
	struct ibv_qp_init_attr_ex attr = {
		.cap = { .max_send_wr = VX_WR, .max_send_sge = 2, .max_inline_data = 16 },
		.qp_type = IBV_QPT_XRC_SEND,
		.sq_sig_all = 1,
		.comp_mask = IBV_QP_INIT_ATTR_PD | (ops ? IBV_QP_INIT_ATTR_SEND_OPS_FLAGS : 0),
		.pd = vt.pd,
		.send_ops_flags = ops,
	};

	snd->cq = vt_cq(4 * VX_WR, NULL);
	snd->mr = vt_mr(vt.pd, snd->buf, sizeof(snd->buf), VT_ALL_ACCESS);
	attr.send_cq = snd->cq;
	snd->qp = vt_made(ibv_create_qp_ex(vt.ctx, &attr));
}

void vx_snd_close(struct vx_snd *snd)
{
	assert_int_equal(ibv_destroy_qp(snd->qp), 0);
	assert_int_equal(ibv_dereg_mr(snd->mr), 0);
	assert_int_equal(ibv_destroy_cq(snd->cq), 0);
}

/* Both types take all of these but for what each of them lacks (tests of the masks say what). */
static int mask_of(enum ibv_qp_type type, enum ibv_qp_state to)
{
	bool sends = type == IBV_QPT_XRC_SEND;

	switch (to) {
	case IBV_QPS_INIT:
		return IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;
	case IBV_QPS_RTR:
		return IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
		       IBV_QP_RQ_PSN |
		       (sends ? 0 : IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
	default:
		return IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_SQ_PSN |
		       (sends ? IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC : 0);
	}
}

struct ibv_qp_attr vx_attr(uint32_t peer_qpn)
{
	return (struct ibv_qp_attr){
		.qp_access_flags = VT_ALL_ACCESS,
		.port_num = 1,
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = peer_qpn,
		.rq_psn = VX_PSN,
		.sq_psn = VX_PSN,
		.max_dest_rd_atomic = VT_RD_ATOMIC,
		.max_rd_atomic = VT_RD_ATOMIC,
		.min_rnr_timer = 1,
		.timeout = 15, /* a second in all: nobody gets to run at once here */
		.retry_cnt = 7,
		.rnr_retry = 7,
		.ah_attr = { .is_global = 1,
			     .port_num = 1,
			     .grh = { .dgid = vt.gid, .sgid_index = (uint8_t)vt.gid_index,
				      .hop_limit = 64 } },
	};
}

int vx_climb(struct ibv_qp *qp, uint32_t peer_qpn, enum ibv_qp_state last)
{
	struct ibv_qp_attr attr = vx_attr(peer_qpn);
	int err = 0;

	for (enum ibv_qp_state to = IBV_QPS_INIT; to <= last && !err; to++) {
		attr.qp_state = to;
		err = ibv_modify_qp(qp, &attr, mask_of(qp->qp_type, to));
	}
	return err;
}

int vx_post(struct vx_snd *snd, enum ibv_wr_opcode op, uint32_t srqn, uint64_t wr_id,
	    uint32_t bytes, const struct ibv_mr *to)
{
	struct ibv_sge sge = { (uintptr_t)snd->buf, bytes, snd->mr->lkey };
	struct ibv_send_wr wr = {
		.wr_id = wr_id,
		.sg_list = &sge,
		.num_sge = bytes != 0,
		.opcode = op,
		.qp_type.xrc.remote_srqn = srqn,
	}, *bad;
	bool atomic = op == IBV_WR_ATOMIC_CMP_AND_SWP || op == IBV_WR_ATOMIC_FETCH_AND_ADD;

	if (op == IBV_WR_SEND_WITH_IMM || op == IBV_WR_RDMA_WRITE_WITH_IMM)
		wr.imm_data = 0x01020304;
	if (to && atomic) {
		wr.wr.atomic.remote_addr = (uintptr_t)to->addr;
		wr.wr.atomic.rkey = to->rkey;
		wr.wr.atomic.compare_add = 5;
		wr.wr.atomic.swap = 9;
	} else if (to) {
		wr.wr.rdma.remote_addr = (uintptr_t)to->addr;
		wr.wr.rdma.rkey = to->rkey;
	}
	return ibv_post_send(snd->qp, &wr, &bad);
}

bool vx_hub_tells(const char *what, char *text, size_t bytes)
{
	char command[PATH_MAX + 64], self[PATH_MAX], rest[4096];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
	FILE *pipe;

	assert_true(n > 0);
	self[n] = 0;
	for (unsigned up = 0; up < 3; up++)
		*strrchr(self, '/') = 0;
	snprintf(command, sizeof(command), "%s/verbatim hub %s", self, what);
	pipe = vt_made(popen(command, "r"));
	text[fread(text, 1, bytes - 1, pipe)] = 0;
	/* Else it would be killed by SIGPIPE, if it has more to tell and is not quick. */
	while (fread(rest, 1, sizeof(rest), pipe))
		;
	return pclose(pipe) == 0;
}

void vx_hub_says(const char *what, char *text, size_t bytes)
{
	assert_true(vx_hub_tells(what, text, bytes));
}
