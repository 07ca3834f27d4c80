/* SPDX-License-Identifier: BSD-2-Clause */
#include "tm.h"

struct ibv_cq_ex *tm_cq(void)
{
	struct ibv_cq_init_attr_ex init = {
		.cqe = 1024,
		.wc_flags = IBV_WC_STANDARD_FLAGS | IBV_WC_EX_WITH_TM_INFO,
	};
	return vt_made(ibv_create_cq_ex(vt.ctx, &init));
}

struct ibv_srq_init_attr_ex tm_srq_init(struct ibv_cq *cq)
{
	return (struct ibv_srq_init_attr_ex){
		.attr = { .max_wr = 64, .max_sge = 1 },
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_CQ |
			     IBV_SRQ_INIT_ATTR_TM,
		.srq_type = IBV_SRQT_TM,
		.pd = vt.pd,
		.cq = cq,
		.tm_cap = { .max_num_tags = TM_TAGS, .max_ops = TM_TAGS },
	};
}

struct ibv_qp *tm_receiver(struct ibv_srq *srq, uint32_t send_wr)
{
	struct ibv_cq *cq = vt_cq(64, NULL);
	struct ibv_qp_init_attr init = {
		.send_cq = cq, .recv_cq = cq, .srq = srq, .qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = send_wr, .max_send_sge = send_wr ? 1 : 0 },
	};
	return vt_made(ibv_create_qp(vt.pd, &init));
}

void tm_receiver_close(struct ibv_qp *qp)
{
	struct ibv_cq *cq = qp->recv_cq;

	assert_int_equal(ibv_destroy_qp(qp), 0);
	assert_int_equal(ibv_destroy_cq(cq), 0);
}

void tm_open_with(struct tm_scene *s, const struct vt_options *opt, uint32_t send_wr)
{
	struct ibv_srq_init_attr_ex init;

	s->opt = vt_options(opt);
	vt_end_open(&s->a, &s->opt);
	s->cq = tm_cq();
	init = tm_srq_init(ibv_cq_ex_to_cq(s->cq));
	s->b = (struct vt_end){ .bytes = s->opt.bytes, .cq = ibv_cq_ex_to_cq(s->cq) };
	s->b.srq = vt_made(ibv_create_srq_ex(vt.ctx, &init));
	s->b.buf = vt_made(calloc(1, s->b.bytes));
	s->b.mr = vt_mr(vt.pd, s->b.buf, s->b.bytes, VT_ALL_ACCESS);
	s->b.qp = tm_receiver(s->b.srq, send_wr);
	vt_climb(s->a.qp, &s->opt, IBV_QPS_RTS, s->b.qp->qp_num);
	vt_climb(s->b.qp, &s->opt, s->opt.state, s->a.qp->qp_num);
}

void tm_open(struct tm_scene *s)
{
	tm_open_with(s, NULL, 0);
}

void tm_close(struct tm_scene *s)
{
	vt_end_close(&s->a);
	tm_receiver_close(s->b.qp);
	s->b.qp = NULL;
	vt_end_close(&s->b);
}

/* --- completions --- */

bool tm_poll(struct ibv_cq_ex *cq, struct tm_done *done, int ms)
{
	struct ibv_poll_cq_attr attr = { .comp_mask = 0 };
	uint64_t end_ms = vt_now_ms() + (uint64_t)ms;
	struct ibv_wc_tm_info info;
	int err;

	while ((err = ibv_start_poll(cq, &attr)) == ENOENT && vt_now_ms() < end_ms)
		;
	if (err) {
		assert_int_equal(err, ENOENT);
		return false;
	}
	ibv_wc_read_tm_info(cq, &info);
	*done = (struct tm_done){
		.wr_id = cq->wr_id,
		.status = cq->status,
		.opcode = ibv_wc_read_opcode(cq),
		.flags = ibv_wc_read_wc_flags(cq),
		.bytes = ibv_wc_read_byte_len(cq),
		.qpn = ibv_wc_read_qp_num(cq),
		.imm = ibv_wc_read_imm_data(cq),
		.tag = info.tag,
		.priv = info.priv,
	};
	ibv_end_poll(cq);
	return true;
}

struct tm_done tm_expect(struct tm_scene *s, uint64_t wr_id, enum ibv_wc_opcode opcode,
			  unsigned flags)
{
	struct tm_done done;

	if (!tm_poll(s->cq, &done, VT_WAIT_MS))
		fail_msg("no completion of %llu", (unsigned long long)wr_id);
	if (done.status != IBV_WC_SUCCESS)
		fail_msg("%llu: %s", (unsigned long long)wr_id, ibv_wc_status_str(done.status));
	assert_int_equal(done.wr_id, wr_id);
	assert_int_equal(done.opcode, opcode);
	assert_int_equal(done.flags, flags);
	return done;
}

struct tm_done tm_expect_status(struct tm_scene *s, uint64_t wr_id, enum ibv_wc_status status)
{
	struct tm_done done;

	assert_true(tm_poll(s->cq, &done, VT_WAIT_MS));
	assert_int_equal(done.wr_id, wr_id);
	if (done.status != status)
		fail_msg("%s instead of %s", ibv_wc_status_str(done.status),
			 ibv_wc_status_str(status));
	return done;
}

void tm_expect_none(struct tm_scene *s)
{
	struct tm_done done;

	if (tm_poll(s->cq, &done, VT_QUIET_MS))
		fail_msg("a completion of %llu", (unsigned long long)done.wr_id);
}

/* --- operations --- */

void tm_op(struct tm_op *o, enum ibv_ops_wr_opcode opcode, uint64_t wr_id)
{
	*o = (struct tm_op){ .wr = { .wr_id = wr_id,
				  .opcode = opcode,
				  .flags = IBV_OPS_SIGNALED } };
}

int tm_post(struct tm_scene *s, struct tm_op *o)
{
	struct ibv_ops_wr *bad = NULL;
	int err;

	if (o->wr.opcode == IBV_WR_TAG_ADD && o->wr.tm.add.num_sge == 1 && !o->wr.tm.add.sg_list)
		o->wr.tm.add.sg_list = &o->sge;
	err = ibv_post_srq_ops(s->b.srq, &o->wr, &bad);
	if (err)
		assert_ptr_equal(bad, &o->wr);
	return err;
}

void tm_tag(struct tm_op *o, const struct tm_scene *s, uint64_t wr_id, uint64_t of, size_t offset,
		uint32_t bytes)
{
	tm_op(o, IBV_WR_TAG_ADD, wr_id);
	o->sge = (struct ibv_sge){ (uintptr_t)s->b.buf + offset, bytes, s->b.mr->lkey };
	o->wr.tm.add.recv_wr_id = wr_id;
	o->wr.tm.add.num_sge = 1;
	o->wr.tm.add.tag = of;
	o->wr.tm.add.mask = UINT64_MAX;
}

uint32_t tm_add_at(struct tm_scene *s, uint64_t wr_id, uint64_t of, size_t offset, uint32_t bytes)
{
	struct tm_op o;

	tm_tag(&o, s, wr_id, of, offset, bytes);
	assert_int_equal(tm_post(s, &o), 0);
	tm_expect(s, wr_id, IBV_WC_TM_ADD, 0);
	return o.wr.tm.handle;
}

uint32_t tm_add(struct tm_scene *s, uint64_t wr_id, uint64_t of)
{
	return tm_add_at(s, wr_id, of, 0, TM_ORDINARY);
}

void tm_add_counting(struct tm_scene *s, uint64_t wr_id, uint64_t of, uint32_t count,
			 unsigned flags)
{
	struct tm_op o;

	tm_tag(&o, s, wr_id, of, 0, TM_ORDINARY);
	o.wr.flags |= IBV_OPS_TM_SYNC;
	o.wr.tm.unexpected_cnt = count;
	assert_int_equal(tm_post(s, &o), 0);
	tm_expect(s, wr_id, IBV_WC_TM_ADD, flags);
}

void tm_sync(struct tm_scene *s, uint32_t count, unsigned flags)
{
	struct tm_op o;

	tm_op(&o, IBV_WR_TAG_SYNC, 777);
	o.wr.flags |= IBV_OPS_TM_SYNC;
	o.wr.tm.unexpected_cnt = count;
	assert_int_equal(tm_post(s, &o), 0);
	tm_expect(s, 777, IBV_WC_TM_SYNC, flags);
}

enum ibv_wc_status tm_del(struct tm_scene *s, uint32_t handle)
{
	struct tm_done done;
	struct tm_op o;

	tm_op(&o, IBV_WR_TAG_DEL, 555);
	o.wr.tm.handle = handle;
	assert_int_equal(tm_post(s, &o), 0);
	assert_true(tm_poll(s->cq, &done, VT_WAIT_MS));
	assert_int_equal(done.wr_id, 555);
	assert_int_equal(done.opcode, IBV_WC_TM_DEL);
	return done.status;
}

void tm_ordinary(struct tm_scene *s, uint64_t wr_id)
{
	uint32_t bytes = (uint32_t)s->b.bytes - TM_ORDINARY;

	assert_int_equal(vt_recv_at(&s->b, wr_id, TM_ORDINARY, bytes), 0);
}

/* --- messages --- */

void tm_put_header(uint8_t *at, enum ibv_tmh_op opcode, uint64_t of)
{
	struct ibv_tmh tmh = { .opcode = (uint8_t)opcode,
			       .app_ctx = htobe32(TM_CTX),
			       .tag = htobe64(of) };

	memcpy(at, &tmh, sizeof(tmh));
}

void tm_send_raw(struct tm_scene *s, uint32_t bytes)
{
	vt_start(IBV_WR_SEND, &s->a, &s->b, bytes);
}

void tm_send_header(struct tm_scene *s, enum ibv_tmh_op opcode, uint64_t of, uint32_t bytes)
{
	vt_fill(s->a.buf + TM_TMH, bytes, (unsigned)of);
	tm_put_header(s->a.buf, opcode, of);
	tm_send_raw(s, TM_TMH + bytes);
}

void tm_send_eager(struct tm_scene *s, uint64_t of, uint32_t bytes)
{
	tm_send_header(s, IBV_TMH_EAGER, of, bytes);
}

void tm_sent(struct tm_scene *s)
{
	vt_expect(s->a.cq, 1, IBV_WC_SUCCESS);
}

void tm_expect_matched(struct tm_scene *s, uint64_t wr_id, uint64_t of, uint32_t bytes)
{
	struct tm_done done = tm_expect(s, wr_id, IBV_WC_TM_RECV, TM_MATCHED);

	assert_int_equal(done.bytes, bytes);
	assert_true(done.tag == of);
	assert_int_equal(done.priv, TM_CTX);
	assert_int_equal(done.qpn, s->b.qp->qp_num);
	assert_true(vt_is_filled(s->b.buf, bytes, (unsigned)of));
	tm_sent(s);
}

void tm_expect_unexpected(struct tm_scene *s, uint64_t wr_id, uint64_t of, uint32_t bytes,
			      unsigned flags)
{
	struct tm_done done = tm_expect(s, wr_id, IBV_WC_TM_RECV, flags);

	assert_int_equal(done.bytes, TM_TMH + bytes);
	assert_true(done.tag == 0);
	assert_memory_equal(s->b.buf + TM_ORDINARY, s->a.buf, TM_TMH);
	assert_true(vt_is_filled(s->b.buf + TM_ORDINARY + TM_TMH, bytes, (unsigned)of));
	tm_sent(s);
}
