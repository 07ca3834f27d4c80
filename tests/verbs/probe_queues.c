/* SPDX-License-Identifier: BSD-2-Clause */
/* Probes of channels, completion queues and shared receive queues. */
#include "probe.h"

#include <fcntl.h>

/* --- channels and plain queues --- */

static int channel(uint64_t unused)
{
	struct ibv_comp_channel *made = ibv_create_comp_channel(vt.ctx);

	return made ? ibv_destroy_comp_channel(made) : errno;
}

static int cq(uint64_t unused)
{
	struct ibv_cq *made = ibv_create_cq(vt.ctx, 1, NULL, NULL, 0);

	return made ? ibv_destroy_cq(made) : errno;
}

static int destroyed(struct ibv_cq *made, int rc)
{
	return probe_first(rc, ibv_destroy_cq(made));
}

static int cq_resize(uint64_t unused)
{
	struct ibv_cq *made = vt_cq(1, NULL);

	return destroyed(made, ibv_resize_cq(made, 100));
}

static int cq_poll(uint64_t unused)
{
	struct ibv_cq *made = vt_cq(1, NULL);
	struct ibv_wc wc;

	return destroyed(made, probe_counted(ibv_poll_cq(made, 1, &wc)));
}

static int cq_notify(uint64_t unused)
{
	struct ibv_cq *made = vt_cq(1, NULL);

	return destroyed(made, ibv_req_notify_cq(made, 0));
}

/* None waits, which a channel that does not block says. */
static int cq_event(uint64_t unused)
{
	struct ibv_comp_channel *made = vt_made(ibv_create_comp_channel(vt.ctx));
	struct ibv_cq *from;
	void *context;
	int rc;

	fcntl(made->fd, F_SETFL, fcntl(made->fd, F_GETFL) | O_NONBLOCK);
	rc = ibv_get_cq_event(made, &from, &context) == -1 && errno == EAGAIN ? 0 : EPROTO;
	ibv_destroy_comp_channel(made);
	return rc;
}

static int cq_ack(uint64_t unused)
{
	struct ibv_cq *made = vt_cq(1, NULL);

	ibv_ack_cq_events(made, 0);
	return destroyed(made, 0);
}

static int cq_modify(uint64_t mask)
{
	struct ibv_cq *made = vt_cq(1, NULL);
	struct ibv_modify_cq_attr attr = {
		.attr_mask = (uint32_t)mask,
		.moderate = { .cq_count = 4, .cq_period = 100 },
	};

	return destroyed(made, ibv_modify_cq(made, &attr));
}

/* --- extended queues --- */

static struct ibv_cq_ex *cq_ex_new(uint64_t wc_flags, uint32_t mask, uint32_t flags)
{
	struct ibv_cq_init_attr_ex attr = {
		.cqe = 16,
		.wc_flags = wc_flags,
		.comp_mask = mask,
		.flags = flags,
	};

	return ibv_create_cq_ex(vt.ctx, &attr);
}

static int cq_ex_done(struct ibv_cq_ex *made)
{
	return made ? ibv_destroy_cq(ibv_cq_ex_to_cq(made)) : probe_made(made);
}

static int cq_ex(uint64_t wc_flags)
{
	return cq_ex_done(cq_ex_new(wc_flags, 0, 0));
}

static int cq_ex_flag(uint64_t flag)
{
	return cq_ex_done(cq_ex_new(0, IBV_CQ_INIT_ATTR_MASK_FLAGS, (uint32_t)flag));
}

/* The domain is one with a thread domain, or at least a PD where there can be none. */
static int cq_ex_in_domain(uint64_t unused)
{
	struct ibv_parent_domain_init_attr parent = { .pd = vt.pd };
	struct ibv_pd *domain = ibv_alloc_parent_domain(vt.ctx, &parent);
	struct ibv_cq_init_attr_ex attr = {
		.cqe = 16,
		.comp_mask = IBV_CQ_INIT_ATTR_MASK_PD,
		.parent_domain = domain ? domain : vt.pd,
	};
	int rc;

	errno = 0;
	rc = cq_ex_done(ibv_create_cq_ex(vt.ctx, &attr));
	if (domain)
		ibv_dealloc_pd(domain);
	return rc;
}

static int start_poll(uint64_t unused)
{
	struct ibv_poll_cq_attr attr = { .comp_mask = 0 };
	struct ibv_cq_ex *made = cq_ex_new(0, 0, 0);
	int rc = ibv_start_poll(made, &attr);

	return probe_first(rc == ENOENT ? 0 : rc, cq_ex_done(made));
}

/* A SEND to itself: two completions, the second one of the receive. */
static int two_polls(uint64_t unused)
{
	struct ibv_poll_cq_attr attr = { .comp_mask = 0 };
	struct ibv_cq_ex *made = vt_made(cq_ex_new(IBV_WC_EX_WITH_BYTE_LEN, 0, 0));
	struct ibv_cq *plain;
	struct vt_wr w;
	struct vt_end end;
	int rc;

	end = (struct vt_end){ .bytes = 64, .buf = calloc(1, 64), .cq = ibv_cq_ex_to_cq(made) };
	plain = end.cq;
	end.mr = vt_mr(vt.pd, end.buf, end.bytes, VT_ALL_ACCESS);
	end.qp = vt_made(ibv_create_qp(vt.pd, &(struct ibv_qp_init_attr){.send_cq = plain,
									 .recv_cq = plain,
									 .cap = {2, 2, 1, 1, 0},
									 .qp_type = IBV_QPT_RC}));
	vt_modify(end.qp, IBV_QPS_ERR);
	vt_wr(&w, IBV_WR_SEND, &end, &end, 8);
	vt_post(&end, &w); /* flushed, both of them */
	vt_post(&end, &w);
	rc = ibv_start_poll(made, &attr);
	if (!rc) {
		rc = made->status == IBV_WC_WR_FLUSH_ERR ? ibv_next_poll(made) : EPROTO;
		ibv_end_poll(made);
	}
	vt_end_close(&end);
	return rc;
}

/* A reader is there if the flag was accepted; without it, the queue cannot be made. */
#define READER(field, flag)                                                                       \
	static int reader_##field(uint64_t unused)                                                \
	{                                                                                         \
		struct ibv_cq_ex *made = cq_ex_new(flag, 0, 0);                                   \
		int rc = made && !made->read_##field ? EOPNOTSUPP : 0;                            \
												  \
		return probe_first(rc, cq_ex_done(made));                                         \
	}
READER(opcode, 0)
READER(vendor_err, 0)
READER(wc_flags, 0)
READER(byte_len, IBV_WC_EX_WITH_BYTE_LEN)
READER(imm_data, IBV_WC_EX_WITH_IMM)
READER(qp_num, IBV_WC_EX_WITH_QP_NUM)
READER(src_qp, IBV_WC_EX_WITH_SRC_QP)
READER(slid, IBV_WC_EX_WITH_SLID)
READER(sl, IBV_WC_EX_WITH_SL)
READER(dlid_path_bits, IBV_WC_EX_WITH_DLID_PATH_BITS)
READER(completion_ts, IBV_WC_EX_WITH_COMPLETION_TIMESTAMP)
READER(completion_wallclock_ns, IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK)
READER(cvlan, IBV_WC_EX_WITH_CVLAN)
READER(flow_tag, IBV_WC_EX_WITH_FLOW_TAG)
READER(tm_info, IBV_WC_EX_WITH_TM_INFO)

/* --- shared receive queues --- */

static struct ibv_srq *srq_new(void)
{
	struct ibv_srq_init_attr attr = { .attr = { .max_wr = 8, .max_sge = 1 } };
	struct ibv_srq *made = vt_made(ibv_create_srq(vt.pd, &attr));

	errno = 0;
	return made;
}

static int srq_done(struct ibv_srq *made, int rc)
{
	return probe_first(rc, ibv_destroy_srq(made));
}

static int srq(uint64_t unused)
{
	return srq_done(srq_new(), 0);
}

static int srq_ex(uint32_t mask, enum ibv_srq_type type)
{
	struct ibv_cq *other = vt_cq(16, NULL);
	struct ibv_xrcd *xrcd = mask & IBV_SRQ_INIT_ATTR_XRCD ? probe_xrcd() : NULL;
	struct ibv_srq_init_attr_ex attr = {
		.attr = { .max_wr = 8, .max_sge = 1 },
		.comp_mask = mask,
		.srq_type = type,
		.pd = vt.pd,
		.xrcd = xrcd,
		.cq = other,
		.tm_cap = { .max_num_tags = 4, .max_ops = 4 },
	};
	int rc;

	rc = PROBE_ONCE(ibv_create_srq_ex(vt.ctx, &attr), ibv_destroy_srq);
	if (xrcd)
		ibv_close_xrcd(xrcd);
	ibv_destroy_cq(other);
	return rc;
}

/* Each type with all that it needs. */
static int srq_type(uint64_t type)
{
	static const uint32_t masks[] = {
		[IBV_SRQT_BASIC] = 0,
		[IBV_SRQT_XRC] = IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ,
		[IBV_SRQT_TM] = IBV_SRQ_INIT_ATTR_CQ | IBV_SRQ_INIT_ATTR_TM,
	};

	return srq_ex(IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_TYPE | masks[type],
		      (enum ibv_srq_type)type);
}

static int srq_modify(uint64_t mask)
{
	struct ibv_srq *made = srq_new();
	struct ibv_srq_attr attr = { .max_wr = 16, .srq_limit = 2 };

	return srq_done(made, ibv_modify_srq(made, &attr, (int)mask));
}

static int srq_query(uint64_t unused)
{
	struct ibv_srq *made = srq_new();
	struct ibv_srq_attr attr;

	return srq_done(made, ibv_query_srq(made, &attr));
}

static int srq_number(uint64_t unused)
{
	struct ibv_srq *made = srq_new();
	uint32_t number;

	return srq_done(made, ibv_get_srq_num(made, &number));
}

static int srq_post(uint64_t unused)
{
	struct ibv_srq *made = srq_new();
	struct ibv_recv_wr wr = { .wr_id = 1 }, *bad;

	return srq_done(made, ibv_post_srq_recv(made, &wr, &bad));
}

/* --- tag matching --- */

/* To a tag-matching queue, or a basic one where there can be none of those. */
static int srq_op(enum ibv_ops_wr_opcode opcode, int flags)
{
	struct ibv_cq *other = vt_cq(16, NULL);
	struct ibv_srq_init_attr_ex attr = {
		.attr = { .max_wr = 8, .max_sge = 1 },
		.comp_mask = IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_TYPE |
			     IBV_SRQ_INIT_ATTR_CQ | IBV_SRQ_INIT_ATTR_TM,
		.srq_type = IBV_SRQT_TM,
		.pd = vt.pd,
		.cq = other,
		.tm_cap = { .max_num_tags = 4, .max_ops = 4 },
	};
	struct ibv_srq *made = ibv_create_srq_ex(vt.ctx, &attr);
	struct ibv_ops_wr op = { .wr_id = 1, .opcode = IBV_WR_TAG_ADD, .flags = flags }, *bad;
	int rc;

	made = made ? made : srq_new();
	rc = ibv_post_srq_ops(made, &op, &bad);
	if (!rc && opcode != IBV_WR_TAG_ADD) {
		op.opcode = opcode;
		rc = ibv_post_srq_ops(made, &op, &bad);
	}
	ibv_destroy_srq(made);
	ibv_destroy_cq(other);
	return rc;
}

static int srq_opcode(uint64_t opcode)
{
	return srq_op((enum ibv_ops_wr_opcode)opcode, 0);
}

static int srq_op_flag(uint64_t flag)
{
	return srq_op(IBV_WR_TAG_ADD, (int)flag);
}

static int srq_op_any(uint64_t unused)
{
	return srq_op(IBV_WR_TAG_ADD, 0);
}

/* clang-format off */
const struct probe probe_queues[] = {
	PROBE(ibv_create_comp_channel, channel),
	PROBE(ibv_destroy_comp_channel, channel),
	PROBE(ibv_create_cq, cq),
	PROBE(ibv_destroy_cq, cq),
	PROBE(ibv_resize_cq, cq_resize),
	PROBE(ibv_poll_cq, cq_poll),
	PROBE(ibv_req_notify_cq, cq_notify),
	PROBE(ibv_get_cq_event, cq_event),
	PROBE(ibv_ack_cq_events, cq_ack),
	PROBE_OF(ibv_modify_cq, cq_modify, IBV_CQ_ATTR_MODERATE),
	PROBE_FLAG(IBV_CQ_ATTR_MODERATE, cq_modify),

	PROBE(ibv_create_cq_ex, cq_ex),
	PROBE(ibv_cq_ex_to_cq, cq_ex),
	PROBE_FLAG(IBV_WC_EX_WITH_BYTE_LEN, cq_ex),
	PROBE_FLAG(IBV_WC_EX_WITH_IMM, cq_ex),
	PROBE_FLAG(IBV_WC_EX_WITH_QP_NUM, cq_ex),
	PROBE_FLAG(IBV_WC_EX_WITH_SRC_QP, cq_ex),
	PROBE_FLAG(IBV_WC_EX_WITH_SLID, cq_ex),
	PROBE_FLAG(IBV_WC_EX_WITH_SL, cq_ex),
	PROBE_FLAG(IBV_WC_EX_WITH_DLID_PATH_BITS, cq_ex),
	PROBE_FLAG(IBV_WC_EX_WITH_COMPLETION_TIMESTAMP, cq_ex),
	PROBE_FLAG(IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK, cq_ex),
	PROBE_FLAG(IBV_WC_EX_WITH_CVLAN, cq_ex),
	PROBE_FLAG(IBV_WC_EX_WITH_FLOW_TAG, cq_ex),
	PROBE_FLAG(IBV_WC_EX_WITH_TM_INFO, cq_ex),
	PROBE_FLAG(IBV_WC_STANDARD_FLAGS, cq_ex),
	PROBE_FLAG(IBV_CREATE_CQ_SUP_WC_FLAGS, cq_ex),
	PROBE_OF(IBV_CQ_INIT_ATTR_MASK_FLAGS, cq_ex_flag, 0),
	PROBE(IBV_CQ_INIT_ATTR_MASK_PD, cq_ex_in_domain),
	PROBE_FLAG(IBV_CREATE_CQ_ATTR_SINGLE_THREADED, cq_ex_flag),
	PROBE_FLAG(IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN, cq_ex_flag),
	PROBE(ibv_start_poll, start_poll),
	PROBE(ibv_next_poll, two_polls),
	PROBE(ibv_end_poll, two_polls),
	PROBE(ibv_wc_read_opcode, reader_opcode),
	PROBE(ibv_wc_read_vendor_err, reader_vendor_err),
	PROBE(ibv_wc_read_wc_flags, reader_wc_flags),
	PROBE(ibv_wc_read_byte_len, reader_byte_len),
	PROBE(ibv_wc_read_imm_data, reader_imm_data),
	PROBE(ibv_wc_read_invalidated_rkey, reader_imm_data),
	PROBE(ibv_wc_read_qp_num, reader_qp_num),
	PROBE(ibv_wc_read_src_qp, reader_src_qp),
	PROBE(ibv_wc_read_slid, reader_slid),
	PROBE(ibv_wc_read_sl, reader_sl),
	PROBE(ibv_wc_read_dlid_path_bits, reader_dlid_path_bits),
	PROBE(ibv_wc_read_completion_ts, reader_completion_ts),
	PROBE(ibv_wc_read_completion_wallclock_ns, reader_completion_wallclock_ns),
	PROBE(ibv_wc_read_cvlan, reader_cvlan),
	PROBE(ibv_wc_read_flow_tag, reader_flow_tag),
	PROBE(ibv_wc_read_tm_info, reader_tm_info),

	PROBE(ibv_create_srq, srq),
	PROBE(ibv_destroy_srq, srq),
	PROBE_OF(ibv_create_srq_ex, srq_type, IBV_SRQT_BASIC),
	PROBE_OF(ibv_modify_srq, srq_modify, IBV_SRQ_LIMIT),
	PROBE(ibv_query_srq, srq_query),
	PROBE(ibv_get_srq_num, srq_number),
	PROBE(ibv_post_srq_recv, srq_post),
	PROBE_FLAG(IBV_SRQ_MAX_WR, srq_modify),
	PROBE_FLAG(IBV_SRQ_LIMIT, srq_modify),
	PROBE_FLAG(IBV_SRQT_BASIC, srq_type),
	PROBE_FLAG(IBV_SRQT_XRC, srq_type),
	PROBE_FLAG(IBV_SRQT_TM, srq_type),
	PROBE_OF(IBV_SRQ_INIT_ATTR_TYPE, srq_type, IBV_SRQT_BASIC),
	PROBE_OF(IBV_SRQ_INIT_ATTR_PD, srq_type, IBV_SRQT_BASIC),
	PROBE_OF(IBV_SRQ_INIT_ATTR_XRCD, srq_type, IBV_SRQT_XRC),
	PROBE_OF(IBV_SRQ_INIT_ATTR_CQ, srq_type, IBV_SRQT_TM),
	PROBE_OF(IBV_SRQ_INIT_ATTR_TM, srq_type, IBV_SRQT_TM),

	PROBE(ibv_post_srq_ops, srq_op_any),
	PROBE_FLAG(IBV_WR_TAG_ADD, srq_opcode),
	PROBE_FLAG(IBV_WR_TAG_DEL, srq_opcode),
	PROBE_FLAG(IBV_WR_TAG_SYNC, srq_opcode),
	PROBE_FLAG(IBV_OPS_SIGNALED, srq_op_flag),
	PROBE_FLAG(IBV_OPS_TM_SYNC, srq_op_flag),
	{ NULL },
};
