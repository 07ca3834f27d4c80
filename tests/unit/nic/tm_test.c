/* SPDX-License-Identifier: BSD-2-Clause */
/* Tags and the counts of phases, message by message; no packet is sent. */
#include "nic/service/tm/tm.h"
#include "nic_fixture.h"

struct scene {
	struct vb_cq *cq, *unused;
	struct vb_srq *srq;
	struct vb_qp *qp;
};

static void open_scene(struct scene *s, uint32_t tags)
{
	struct ibv_srq_init_attr_ex attr = {
		.attr = { .max_wr = 64, .max_sge = 1 },
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_CQ |
			     IBV_SRQ_INIT_ATTR_TM,
		.srq_type = IBV_SRQT_TM,
		.pd = &fix.pd->ibv,
		.tm_cap = { .max_num_tags = tags, .max_ops = 8 },
	};

	s->cq = make_cq(256, NULL);
	s->unused = make_cq(8, NULL);
	attr.cq = &s->cq->ibv.cq;
	assert_int_equal(vb_srq_create_ex(fix.ctx, &attr, &s->srq), 0);
	s->qp = make_qp(IBV_QPT_RC, s->unused, s->srq);
	bring(s->qp, IBV_QPS_RTS);
}

static void close_scene(struct scene *s)
{
	if (s->qp)
		drop_qp(s->qp);
	drop_srq(s->srq);
	drop_cq(s->unused);
	drop_cq(s->cq);
}

static struct vb_cqe next(struct scene *s)
{
	struct vb_cq_stamp stamp;
	struct vb_cqe cqe;

	assert_true(vb_cq_take(s->cq, &cqe, &stamp));
	return cqe;
}

static void assert_none(struct scene *s)
{
	struct ibv_wc wc;

	assert_int_equal(vb_cq_poll(s->cq, 1, &wc), 0);
	assert_int_equal(vb_cq_poll(s->unused, 1, &wc), 0);
}

static void post(struct scene *s, uint64_t wr_id)
{
	struct ibv_recv_wr wr = { .wr_id = wr_id }, *bad;

	assert_int_equal(vb_srq_post(s->srq, &wr, &bad), 0);
}

static void add(struct scene *s, uint64_t tag)
{
	struct ibv_sge sge = { .length = 1000 };
	struct ibv_ops_wr wr = { .opcode = IBV_WR_TAG_ADD, .tm.add = {
		.recv_wr_id = tag, .sg_list = &sge, .num_sge = 1,
		.tag = tag, .mask = UINT64_MAX } }, *bad;

	assert_int_equal(vb_tm_post(s->srq, &wr, &bad), 0);
}

static unsigned sync_count(struct scene *s, uint32_t count)
{
	struct ibv_ops_wr wr = { .opcode = IBV_WR_TAG_SYNC,
				 .flags = IBV_OPS_SIGNALED | IBV_OPS_TM_SYNC,
				 .tm.unexpected_cnt = count }, *bad;
	struct vb_cqe cqe;

	assert_int_equal(vb_tm_post(s->srq, &wr, &bad), 0);
	cqe = next(s);
	assert_int_equal(cqe.wc.opcode, IBV_WC_TM_SYNC);
	return cqe.wc.wc_flags;
}

/* The first packet of a message arrives; `only`: it is the last as well. */
static enum vb_tm_mark begin_message(struct scene *s, enum vb_tmh_op op, uint64_t tag, bool only)
{
	static uint8_t payload[VB_TMH_BYTES + VB_RVH_BYTES];
	struct vb_pkt pkt = { .payload = payload, .payload_bytes = sizeof(payload) };

	memset(payload, 0, sizeof(payload));
	vb_tmh_put(payload, op, 0x55, tag);
	if (!vb_tm_take(s->qp, &pkt, vb_op_info(only ? VB_OP_RC_SEND_ONLY : VB_OP_RC_SEND_FIRST)))
		return VB_TM_NOTHING;
	s->qp->resp.has_recv = true;
	return (enum vb_tm_mark)s->qp->resp.mark;
}

static void end_message(struct scene *s, enum ibv_wc_status status)
{
	struct vb_cqe cqe = { .wc = { .wr_id = s->qp->resp.recv.wr_id,
				      .status = status,
				      .byte_len = VB_TMH_BYTES + VB_RVH_BYTES } };

	s->qp->resp.has_recv = false;
	vb_tm_done(s->qp, &cqe);
}

/* So many that match nothing, and that software counts each. The flags of the last one. */
static unsigned unexpected(struct scene *s, uint32_t count)
{
	unsigned flags = 0;

	while (count--) {
		post(s, 9);
		assert_int_equal(begin_message(s, VB_TMH_EAGER, 9, true), VB_TM_UNEXPECTED);
		end_message(s, IBV_WC_SUCCESS);
		flags = next(s).wc.wc_flags;
	}
	return flags;
}

/* Programs count in 16 bits or in 32: both agree with us, round and round. */
NIC_TEST(counts_come_round)
{
	struct scene s;

	open_scene(&s, 4);
	for (uint32_t total = 0; total < 140000; total += 7000) {
		assert_int_equal(sync_count(&s, total), 0);
		assert_int_equal(sync_count(&s, total & 0xffff), 0);
		unexpected(&s, 7000);
		assert_int_equal(sync_count(&s, total + 6999), IBV_WC_TM_SYNC_REQ);
		assert_int_equal(sync_count(&s, total + 7001), IBV_WC_TM_SYNC_REQ);
	}
	close_scene(&s);
}

/* ibv_post_srq_ops(3): an unexpected receive may ask for a SYNC. */
NIC_TEST(too_far_ahead_asks_for_a_sync)
{
	struct scene s;

	open_scene(&s, 4);
	assert_int_equal(unexpected(&s, VB_TM_AHEAD_MAX), 0);
	assert_int_equal(unexpected(&s, 1), IBV_WC_TM_SYNC_REQ);
	assert_int_equal(unexpected(&s, 1), IBV_WC_TM_SYNC_REQ);
	assert_int_equal(sync_count(&s, VB_TM_AHEAD_MAX + 2), 0);
	assert_int_equal(unexpected(&s, 1), 0);
	close_scene(&s);
}

/* Software never sees it, so its count could never agree. */
NIC_TEST(what_failed_is_not_counted)
{
	struct scene s;

	open_scene(&s, 4);
	post(&s, 1);
	assert_int_equal(begin_message(&s, VB_TMH_EAGER, 9, false), VB_TM_UNEXPECTED);
	assert_int_equal(sync_count(&s, 0), IBV_WC_TM_SYNC_REQ);
	add(&s, 5); /* waits for the message to be seen */
	end_message(&s, IBV_WC_LOC_PROT_ERR);
	assert_int_equal(next(&s).wc.status, IBV_WC_LOC_PROT_ERR);
	/* In step again, and without any further operation. */
	assert_int_equal(begin_message(&s, VB_TMH_EAGER, 5, false), VB_TM_EAGER);
	end_message(&s, IBV_WC_SUCCESS);
	assert_int_equal(next(&s).wc.wr_id, 5);
	close_scene(&s);
}

/* Whichever way a QP goes, what it has of the queue's is told: a buffer, a request, a READ. */
NIC_TEST(a_qp_that_leaves_gives_back_what_it_has)
{
	for (int way = 0; way < 3; way++) {
		for (int tagged = 0; tagged < 2; tagged++) {
			struct vb_cqe cqe;
			struct scene s;

			open_scene(&s, 4);
			add(&s, 5);
			add(&s, 6);
			post(&s, 9);
			assert_int_equal(begin_message(&s, VB_TMH_RNDV, 6, true), VB_TM_RNDV);
			end_message(&s, IBV_WC_SUCCESS);
			cqe = next(&s);
			assert_int_equal(cqe.wc.wc_flags, IBV_WC_TM_MATCH);
			assert_int_equal(cqe.note, VB_CQE_TM);
			assert_int_equal(cqe.tm_tag, 6);
			assert_int_equal(cqe.tm_priv, 0x55);
			begin_message(&s, VB_TMH_EAGER, tagged ? 5 : 99, false);
			if (way == 0) {
				assert_int_equal(set_state(s.qp, IBV_QPS_RESET), 0);
			} else if (way == 1) {
				assert_int_equal(set_state(s.qp, IBV_QPS_ERR), 0);
				assert_event(IBV_EVENT_QP_LAST_WQE_REACHED);
			} else {
				drop_qp(s.qp);
				s.qp = NULL;
			}
			for (int i = 0; i < 2; i++) {
				cqe = next(&s);
				assert_int_equal(cqe.wc.status, IBV_WC_WR_FLUSH_ERR);
				assert_int_equal(cqe.wc.opcode, IBV_WC_TM_RECV);
				if (cqe.wc.wr_id != 6)
					assert_int_equal(cqe.wc.wr_id, tagged ? 5 : 9);
			}
			assert_none(&s);
			/* One that was unexpected is not: nobody saw it. */
			assert_int_equal(sync_count(&s, 0), 0);
			close_scene(&s);
		}
	}
}

/* As many rendezvous as there are places for; the next one has to ask again, and takes nothing. */
NIC_TEST(rendezvous_under_way_are_bounded)
{
	struct scene s;

	open_scene(&s, 64);
	for (uint64_t i = 0; i < VB_TM_RNDV_MAX; i++) {
		add(&s, i);
		assert_int_equal(begin_message(&s, VB_TMH_RNDV, i, true), VB_TM_RNDV);
		end_message(&s, IBV_WC_SUCCESS);
		assert_int_equal(next(&s).wc.wr_id, i);
	}
	assert_true(s.qp->req.tail <= s.qp->req.sq.mask + 1);
	assert_int_equal(s.qp->req.own.posted, 2 * VB_TM_RNDV_MAX);
	add(&s, 77);
	assert_int_equal(begin_message(&s, VB_TMH_RNDV, 77, true), VB_TM_NOTHING);
	/* The data of others needs no place, and one that nobody waits for is software's. */
	add(&s, 78);
	assert_int_equal(begin_message(&s, VB_TMH_EAGER, 78, true), VB_TM_EAGER);
	end_message(&s, IBV_WC_SUCCESS);
	assert_int_equal(next(&s).wc.wr_id, 78);
	post(&s, 9);
	assert_int_equal(begin_message(&s, VB_TMH_RNDV, 99, true), VB_TM_UNEXPECTED);
	end_message(&s, IBV_WC_SUCCESS);
	next(&s);
	/* The tag was kept. */
	vb_req_complete_head(&s.qp->req, IBV_WC_SUCCESS);
	assert_int_equal(next(&s).wc.wc_flags, IBV_WC_TM_DATA_VALID);
	assert_int_equal(begin_message(&s, VB_TMH_RNDV, 77, true), VB_TM_NOTHING);
	vb_req_complete_head(&s.qp->req, IBV_WC_SUCCESS); /* its FIN */
	assert_none(&s);
	assert_int_equal(begin_message(&s, VB_TMH_RNDV, 77, true), VB_TM_RNDV);
	s.qp->resp.has_recv = false;
	close_scene(&s);
}

/* The sender must not use its buffer before all of it was read. */
NIC_TEST(the_fin_waits_for_the_data)
{
	struct vb_wqe *read, *fin;
	struct scene s;

	open_scene(&s, 4);
	add(&s, 1);
	begin_message(&s, VB_TMH_RNDV, 1, true);
	end_message(&s, IBV_WC_SUCCESS);
	next(&s);
	read = vb_sq_at(&s.qp->req.sq, s.qp->req.tail - 2);
	fin = vb_sq_at(&s.qp->req.sq, s.qp->req.tail - 1);
	assert_int_equal(read->kind, VB_K_READ_REQ);
	assert_int_equal(fin->kind, VB_K_SEND);
	assert_true(fin->flags & IBV_SEND_FENCE);
	assert_true(s.qp->resp.ack_owed);
	close_scene(&s);
}
