/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * XRC within one process: domains, SRQs, QPs and what they do, as the manual pages ibv_open_xrcd,
 * ibv_create_srq_ex, ibv_create_qp_ex, ibv_open_qp, ibv_get_srq_num and IBTA Annex A14 have it.
 */
#include "xrc.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

/* All there is, connected to itself: two SRQs of two PDs. */
struct all {
	struct ibv_xrcd *xrcd;
	struct vx_srq srq[2];
	struct ibv_qp *rcv;
	struct vx_snd snd;
};

static struct all *all_open(uint64_t ops)
{
	struct all *all = vt_made(calloc(1, sizeof(*all)));

	all->xrcd = vt_made(vx_domain(-1, O_CREAT));
	vx_srq_open(&all->srq[0], all->xrcd);
	vx_srq_open(&all->srq[1], all->xrcd);
	all->rcv = vt_made(vx_rcv_make(all->xrcd));
	vx_snd_open(&all->snd, ops);
	assert_int_equal(vx_climb(all->rcv, all->snd.qp->qp_num, IBV_QPS_RTR), 0);
	assert_int_equal(vx_climb(all->snd.qp, all->rcv->qp_num, IBV_QPS_RTS), 0);
	return all;
}

static void all_close(struct all *all)
{
	vx_snd_close(&all->snd);
	assert_int_equal(ibv_destroy_qp(all->rcv), 0);
	vx_srq_close(&all->srq[0]);
	vx_srq_close(&all->srq[1]);
	assert_int_equal(ibv_close_xrcd(all->xrcd), 0);
	free(all);
}

#define all_test(f, ops)                                                                          \
	vt_with_made(vt_test, f, struct all, all, all_open(ops), all_close(all))

static int file_make(void)
{
	int fd = memfd_create("domain", MFD_CLOEXEC);

	assert_true(fd >= 0);
	return fd;
}

/* --- ibv_open_xrcd(3) --- */

static void expect_no_domain(int fd, int oflags, int err)
{
	vt_refused(err, vx_domain(fd, oflags));
}

/* "If fd equals -1, no inode is associated with the XRCD" */
vt_test(without_a_file_a_domain_is_one_s_own)
{
	struct ibv_xrcd *a = vt_made(vx_domain(-1, O_CREAT));
	struct ibv_xrcd *b = vt_made(vx_domain(-1, O_CREAT | O_EXCL));
	struct ibv_qp_open_attr attr = {
		.comp_mask = IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD | IBV_QP_OPEN_ATTR_TYPE,
		.qp_type = IBV_QPT_XRC_RECV,
	};
	struct ibv_qp *qp;

	qp = vt_made(vx_rcv_make(a));
	attr.qp_num = qp->qp_num;
	attr.xrcd = b;
	vt_refused(EINVAL, ibv_open_qp(vt.ctx, &attr));
	assert_int_equal(ibv_destroy_qp(qp), 0);
	assert_int_equal(ibv_close_xrcd(a), 0);
	assert_int_equal(ibv_close_xrcd(b), 0);
	expect_no_domain(-1, 0, EINVAL);
}

/* "O_CREAT Indicates that a new XRCD should be created", "O_EXCL ... open will fail" */
vt_test(a_file_has_one_domain)
{
	int fd = file_make(), again = dup(fd), other = file_make();
	struct ibv_xrcd *a, *b, *c;
	struct ibv_qp *qp, *opened;
	struct ibv_qp_open_attr attr = {
		.comp_mask = IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD | IBV_QP_OPEN_ATTR_TYPE,
		.qp_type = IBV_QPT_XRC_RECV,
	};

	expect_no_domain(fd, 0, ENOENT);
	a = vt_made(vx_domain(fd, O_CREAT | O_EXCL));
	expect_no_domain(again, O_CREAT | O_EXCL, EEXIST);
	b = vt_made(vx_domain(again, 0));
	c = vt_made(vx_domain(other, O_CREAT));
	/* The first two are one: what belongs to it belongs to both. */
	qp = vt_made(vx_rcv_make(a));
	attr.qp_num = qp->qp_num;
	attr.xrcd = b;
	opened = vt_made(ibv_open_qp(vt.ctx, &attr));
	assert_int_equal(ibv_destroy_qp(opened), 0);
	attr.xrcd = c;
	assert_null(ibv_open_qp(vt.ctx, &attr));
	assert_int_equal(ibv_destroy_qp(qp), 0);
	assert_int_equal(ibv_close_xrcd(a), 0);
	assert_int_equal(ibv_close_xrcd(c), 0);
	expect_no_domain(other, 0, ENOENT);
	expect_no_domain(fd, O_CREAT | O_EXCL, EEXIST);
	assert_int_equal(ibv_close_xrcd(b), 0);
	expect_no_domain(fd, 0, ENOENT);
	close(fd);
	close(again);
	close(other);
}

vt_test(what_is_wrong_opens_no_domain)
{
	static const uint32_t masks[] = { 0, IBV_XRCD_INIT_ATTR_FD, IBV_XRCD_INIT_ATTR_OFLAGS };
	struct ibv_xrcd_init_attr attr = { .fd = -1, .oflags = O_CREAT };

	for (unsigned i = 0; i < 3; i++) {
		attr.comp_mask = masks[i];
		vt_refused(EINVAL, ibv_open_xrcd(vt.ctx, &attr));
	}
	attr.comp_mask = IBV_XRCD_INIT_ATTR_RESERVED | 3;
	vt_refused(EOPNOTSUPP, ibv_open_xrcd(vt.ctx, &attr));
	expect_no_domain(9999, O_CREAT, EBADF);
}

/* "It is an error to close a domain that has objects" */
vt_test(what_is_in_use_stays)
{
	struct ibv_xrcd *xrcd = vx_domain(-1, O_CREAT);
	struct vx_srq srq;
	struct ibv_qp *qp;

	vx_srq_open(&srq, xrcd);
	assert_int_equal(ibv_close_xrcd(xrcd), EBUSY);
	assert_int_equal(ibv_destroy_cq(srq.cq), EBUSY);
	vx_srq_close(&srq);
	qp = vx_rcv_make(xrcd);
	assert_int_equal(ibv_close_xrcd(xrcd), EBUSY);
	assert_int_equal(ibv_destroy_qp(qp), 0);
	assert_int_equal(ibv_close_xrcd(xrcd), 0);
}

/* --- ibv_create_srq_ex(3), ibv_get_srq_num(3) --- */

vt_test(an_srq_needs_a_domain_and_a_cq)
{
	static const uint32_t bits[] = { IBV_SRQ_INIT_ATTR_PD, IBV_SRQ_INIT_ATTR_CQ,
					 IBV_SRQ_INIT_ATTR_XRCD };
	struct ibv_xrcd *xrcd = vx_domain(-1, O_CREAT);
	struct ibv_cq *cq = vt_cq(8, NULL);
	struct ibv_srq_init_attr_ex good = {
		.attr = { .max_wr = 8, .max_sge = 1 },
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD |
			     IBV_SRQ_INIT_ATTR_CQ | IBV_SRQ_INIT_ATTR_XRCD,
		.srq_type = IBV_SRQT_XRC,
		.pd = vt.pd,
		.cq = cq,
		.xrcd = xrcd,
	}, attr;

	for (unsigned i = 0; i < 3; i++) {
		attr = good;
		attr.comp_mask &= ~bits[i];
		vt_refused(EINVAL, ibv_create_srq_ex(vt.ctx, &attr));
	}
	attr = good;
	attr.xrcd = NULL;
	assert_null(ibv_create_srq_ex(vt.ctx, &attr));
	attr = good;
	attr.cq = NULL;
	assert_null(ibv_create_srq_ex(vt.ctx, &attr));
	assert_int_equal(ibv_destroy_cq(cq), 0);
	assert_int_equal(ibv_close_xrcd(xrcd), 0);
}

vt_test(each_srq_has_a_number_of_its_own)
{
	struct ibv_xrcd *xrcd = vx_domain(-1, O_CREAT);
	struct vx_srq srq[2];

	vx_srq_open(&srq[0], xrcd);
	vx_srq_open(&srq[1], xrcd);
	assert_int_not_equal(srq[0].number, srq[1].number);
	assert_true(srq[0].number && !(srq[0].number >> 24));
	vx_srq_close(&srq[0]);
	vx_srq_close(&srq[1]);
	assert_int_equal(ibv_close_xrcd(xrcd), 0);
}

/* --- what they do --- */

static void check_data(struct all *all, unsigned i, uint32_t bytes)
{
	assert_true(vt_is_filled(all->srq[i].buf, bytes, bytes + i));
	memset(all->srq[i].buf, 0, sizeof(all->srq[i].buf));
}

all_test(a_send_goes_to_the_srq_it_names, 0)
{
	static const uint32_t sizes[] = { 0, 1, 1023, 1024, 1025, 8192 };
	struct ibv_wc wc;

	for (unsigned n = 0; n < 12; n++) {
		unsigned i = n & 1;
		uint32_t bytes = sizes[n / 2];
		bool imm = n % 3 == 0;

		vt_fill(all->snd.buf, bytes, bytes + i);
		vx_recv(&all->srq[i], n, 0, VX_BYTES);
		assert_int_equal(vx_post(&all->snd, imm ? IBV_WR_SEND_WITH_IMM : IBV_WR_SEND,
					 all->srq[i].number, n, bytes, NULL),
				 0);
		vt_expect(all->snd.cq, n, IBV_WC_SUCCESS);
		wc = vt_expect(all->srq[i].cq, n, IBV_WC_SUCCESS);
		assert_int_equal(wc.byte_len, bytes);
		assert_int_equal(wc.opcode, IBV_WC_RECV);
		assert_int_equal(wc.qp_num, all->rcv->qp_num);
		assert_int_equal(wc.wc_flags, imm ? IBV_WC_WITH_IMM : 0);
		check_data(all, i, bytes);
	}
}

all_test(a_stream_arrives_in_order, 0)
{
	uint32_t sent = 0, done = 0, got[2] = { 0, 0 };
	struct ibv_wc wc;

	while (got[0] + got[1] < 400) {
		/* A message may be here before its sender knows that, and has its place back. */
		if (sent < 400 && sent - got[0] - got[1] < VX_WR / 2 && sent - done < VX_WR) {
			vx_recv(&all->srq[sent & 1], sent, 0, VX_BYTES);
			assert_int_equal(vx_post(&all->snd, IBV_WR_SEND, all->srq[sent & 1].number,
						 sent, sent * 5, NULL),
					 0);
			sent++;
		}
		for (unsigned i = 0; i < 2; i++) {
			while (ibv_poll_cq(all->srq[i].cq, 1, &wc) == 1) {
				assert_int_equal(wc.status, IBV_WC_SUCCESS);
				assert_int_equal(wc.byte_len, (2 * got[i]++ + i) * 5);
			}
		}
		for (; ibv_poll_cq(all->snd.cq, 1, &wc) == 1; done++)
			assert_int_equal(wc.status, IBV_WC_SUCCESS);
	}
}

/* A14: "R_Keys are checked against the PD of the XRC SRQ" */
all_test(rdma_goes_by_the_keys_of_the_srq_s_pd, 0)
{
	uint64_t word;

	vt_fill(all->snd.buf, 5000, 5000);
	assert_int_equal(vx_post(&all->snd, IBV_WR_RDMA_WRITE, all->srq[0].number, 1, 5000,
				 all->srq[0].mr),
			 0);
	vt_expect(all->snd.cq, 1, IBV_WC_SUCCESS);
	assert_true(vt_is_filled(all->srq[0].buf, 5000, 5000));
	memset(all->snd.buf, 0, VX_BYTES);
	assert_int_equal(vx_post(&all->snd, IBV_WR_RDMA_READ, all->srq[0].number, 2, 5000,
				 all->srq[0].mr),
			 0);
	vt_expect(all->snd.cq, 2, IBV_WC_SUCCESS);
	assert_true(vt_is_filled(all->snd.buf, 5000, 5000));
	word = 5;
	memcpy(all->srq[1].buf, &word, sizeof(word));
	assert_int_equal(vx_post(&all->snd, IBV_WR_ATOMIC_CMP_AND_SWP, all->srq[1].number, 3, 8,
				 all->srq[1].mr),
			 0);
	vt_expect(all->snd.cq, 3, IBV_WC_SUCCESS);
	assert_int_equal(vx_post(&all->snd, IBV_WR_ATOMIC_FETCH_AND_ADD, all->srq[1].number, 4, 8,
				 all->srq[1].mr),
			 0);
	vt_expect(all->snd.cq, 4, IBV_WC_SUCCESS);
	memcpy(&word, all->srq[1].buf, sizeof(word));
	assert_int_equal(word, 14);
	memcpy(&word, all->snd.buf, sizeof(word));
	assert_int_equal(word, 9);
	vx_recv(&all->srq[1], 5, 0, 8);
	assert_int_equal(vx_post(&all->snd, IBV_WR_RDMA_WRITE_WITH_IMM, all->srq[1].number, 5, 100,
				 all->srq[1].mr),
			 0);
	vt_expect(all->snd.cq, 5, IBV_WC_SUCCESS);
	assert_int_equal(vt_expect(all->srq[1].cq, 5, IBV_WC_SUCCESS).opcode,
			 IBV_WC_RECV_RDMA_WITH_IMM);
	/* Another PD's key. */
	assert_int_equal(vx_post(&all->snd, IBV_WR_RDMA_WRITE, all->srq[0].number, 6, 8,
				 all->srq[1].mr),
			 0);
	vt_expect(all->snd.cq, 6, IBV_WC_REM_ACCESS_ERR);
	vt_event_acked(IBV_EVENT_QP_ACCESS_ERR);
	assert_int_equal(vt_state(all->rcv), IBV_QPS_ERR);
}

/*
 * READs of both are under way together, and each is answered with its own SRQ's keys: the same
 * address, of two PDs.
 */
all_test(what_is_read_goes_by_its_own_srq_s_keys, 0)
{
	struct ibv_wc wc;
	unsigned posted = 0, done = 0;

	while (done < 300) {
		unsigned i = posted & 1;

		if (posted < 300 && posted - done < 8) {
			vx_recv(&all->srq[1 - i], posted, 0, 8);
			assert_int_equal(vx_post(&all->snd, IBV_WR_RDMA_READ, all->srq[i].number,
						 posted, 3000, all->srq[i].mr),
					 0);
			assert_int_equal(vx_post(&all->snd, IBV_WR_SEND, all->srq[1 - i].number,
						 posted, 8, NULL),
					 0);
			posted++;
		}
		while (ibv_poll_cq(all->snd.cq, 1, &wc) == 1) {
			assert_int_equal(wc.status, IBV_WC_SUCCESS);
			done += wc.opcode == IBV_WC_RDMA_READ;
		}
	}
}

/* A14: what is no SRQ of the QP's domain is an invalid request; whether it ever was is the same. */
vt_test(an_srq_of_another_domain_is_refused)
{
	enum { ANOTHER_S, NEVER_MADE, DESTROYED, CASES };

	for (unsigned which = 0; which < CASES; which++) {
		struct all *all = all_open(0);
		struct ibv_xrcd *other = vx_domain(-1, O_CREAT);
		struct vx_srq stranger, gone;
		uint32_t number;

		vx_srq_open(&stranger, other);
		vx_srq_open(&gone, all->xrcd);
		number = which == ANOTHER_S ? stranger.number : gone.number;
		vx_srq_close(&gone);
		if (which == NEVER_MADE)
			number++;
		assert_int_equal(vx_post(&all->snd, IBV_WR_SEND, number, 1, 8, NULL), 0);
		vt_expect(all->snd.cq, 1, IBV_WC_REM_INV_REQ_ERR);
		vt_event_acked(IBV_EVENT_QP_REQ_ERR);
		assert_int_equal(vt_state(all->rcv), IBV_QPS_ERR);
		assert_int_equal(vt_state(all->snd.qp), IBV_QPS_ERR);
		vx_srq_close(&stranger);
		assert_int_equal(ibv_close_xrcd(other), 0);
		all_close(all);
	}
}

/* Slot 0 has the receive QPs, and no SRQs: it is no process's, and nobody else takes requests. */
all_test(an_srq_in_nobody_s_slot_is_not_answered_for, 0)
{
	assert_int_equal(vx_post(&all->snd, IBV_WR_SEND, 1, 1, 8, NULL), 0);
	vt_expect(all->snd.cq, 1, IBV_WC_RETRY_EXC_ERR);
	assert_int_equal(vt_state(all->rcv), IBV_QPS_RTR);
}

all_test(without_a_receive_the_sender_waits, 0)
{
	assert_int_equal(vx_post(&all->snd, IBV_WR_SEND, all->srq[0].number, 1, 8, NULL), 0);
	assert_int_equal(vx_post(&all->snd, IBV_WR_SEND, all->srq[1].number, 2, 8, NULL), 0);
	vt_expect_none(all->snd.cq);
	vx_recv(&all->srq[0], 1, 0, 8);
	vt_expect(all->snd.cq, 1, IBV_WC_SUCCESS);
	vt_expect(all->srq[0].cq, 1, IBV_WC_SUCCESS);
	vx_recv(&all->srq[1], 2, 0, 8);
	vt_expect(all->snd.cq, 2, IBV_WC_SUCCESS);
}

all_test(a_receive_too_short_is_an_error_of_both, 0)
{
	vx_recv(&all->srq[0], 1, 0, 8);
	assert_int_equal(vx_post(&all->snd, IBV_WR_SEND, all->srq[0].number, 1, 9, NULL), 0);
	vt_expect(all->snd.cq, 1, IBV_WC_REM_INV_REQ_ERR);
	vt_expect(all->srq[0].cq, 1, IBV_WC_LOC_LEN_ERR);
}

/* ibv_modify_srq(3): the limit counts what any QP takes. */
all_test(an_srq_tells_of_its_limit, 0)
{
	struct ibv_srq_attr attr = { .srq_limit = 2 };

	vx_recv(&all->srq[0], 1, 0, 8);
	vx_recv(&all->srq[0], 2, 0, 8);
	assert_int_equal(ibv_modify_srq(all->srq[0].srq, &attr, IBV_SRQ_LIMIT), 0);
	assert_int_equal(vx_post(&all->snd, IBV_WR_SEND, all->srq[0].number, 1, 8, NULL), 0);
	vt_expect(all->snd.cq, 1, IBV_WC_SUCCESS);
	vt_event_acked(IBV_EVENT_SRQ_LIMIT_REACHED);
}

/* ibv_wr_set_xrc_srqn(3) */
all_test(the_builder_names_srqs_too, IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_RDMA_WRITE)
{
	struct ibv_qp_ex *qp = ibv_qp_to_qp_ex(all->snd.qp);

	vt_fill(all->snd.buf, 2000, 3);
	vx_recv(&all->srq[1], 7, 0, VX_BYTES);
	ibv_wr_start(qp);
	qp->wr_id = 7;
	ibv_wr_send(qp);
	ibv_wr_set_xrc_srqn(qp, all->srq[1].number);
	ibv_wr_set_sge(qp, all->snd.mr->lkey, (uintptr_t)all->snd.buf, 2000);
	qp->wr_id = 8;
	ibv_wr_rdma_write(qp, all->srq[0].mr->rkey, (uintptr_t)all->srq[0].buf);
	ibv_wr_set_xrc_srqn(qp, all->srq[0].number);
	ibv_wr_set_sge(qp, all->snd.mr->lkey, (uintptr_t)all->snd.buf, 2000);
	assert_int_equal(ibv_wr_complete(qp), 0);
	vt_expect(all->snd.cq, 7, IBV_WC_SUCCESS);
	vt_expect(all->snd.cq, 8, IBV_WC_SUCCESS);
	vt_expect(all->srq[1].cq, 7, IBV_WC_SUCCESS);
	assert_true(vt_is_filled(all->srq[0].buf, 2000, 3));
	assert_true(vt_is_filled(all->srq[1].buf, 2000, 3));
}

/* --- ibv_open_qp(3) --- */

/* "shareable": who opened it can change it and ask it, and it lives as long as anybody has it. */
all_test(a_qp_that_is_open_twice_is_one, 0)
{
	struct ibv_qp_open_attr attr = {
		.comp_mask = IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD |
			     IBV_QP_OPEN_ATTR_CONTEXT | IBV_QP_OPEN_ATTR_TYPE,
		.qp_num = all->rcv->qp_num,
		.xrcd = all->xrcd,
		.qp_context = all,
		.qp_type = IBV_QPT_XRC_RECV,
	};
	struct ibv_qp *again = vt_made(ibv_open_qp(vt.ctx, &attr));

	assert_ptr_equal(again->qp_context, all);
	assert_int_equal(again->qp_num, all->rcv->qp_num);
	assert_int_equal(vt_state(again), IBV_QPS_RTR);
	assert_int_equal(ibv_destroy_qp(all->rcv), 0);
	all->rcv = again;
	vx_recv(&all->srq[0], 1, 0, 8);
	assert_int_equal(vx_post(&all->snd, IBV_WR_SEND, all->srq[0].number, 1, 8, NULL), 0);
	vt_expect(all->snd.cq, 1, IBV_WC_SUCCESS);
	assert_int_equal(vt_modify(again, IBV_QPS_ERR), 0);
	assert_int_equal(vx_post(&all->snd, IBV_WR_SEND, all->srq[0].number, 2, 8, NULL), 0);
	vt_expect(all->snd.cq, 2, IBV_WC_RETRY_EXC_ERR);
}

all_test(what_is_wrong_opens_no_qp, 0)
{
	static const uint32_t bits[] = { IBV_QP_OPEN_ATTR_NUM, IBV_QP_OPEN_ATTR_XRCD,
					 IBV_QP_OPEN_ATTR_TYPE };
	struct ibv_qp_open_attr good = {
		.comp_mask = IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD | IBV_QP_OPEN_ATTR_TYPE,
		.qp_num = all->rcv->qp_num,
		.xrcd = all->xrcd,
		.qp_type = IBV_QPT_XRC_RECV,
	}, attr;

	for (unsigned i = 0; i < 3; i++) {
		attr = good;
		attr.comp_mask &= ~bits[i];
		vt_refused(EINVAL, ibv_open_qp(vt.ctx, &attr));
	}
	attr = good;
	attr.comp_mask |= IBV_QP_OPEN_ATTR_RESERVED;
	vt_refused(EOPNOTSUPP, ibv_open_qp(vt.ctx, &attr));
	attr = good;
	attr.qp_type = IBV_QPT_RC;
	assert_null(ibv_open_qp(vt.ctx, &attr));
	attr = good;
	attr.qp_num = all->snd.qp->qp_num;
	assert_null(ibv_open_qp(vt.ctx, &attr));
	attr.qp_num = all->rcv->qp_num + 1;
	assert_null(ibv_open_qp(vt.ctx, &attr));
}

/* --- ibv_post_send(3), ibv_post_recv(3) --- */

all_test(each_end_does_its_half_only, 0)
{
	struct ibv_recv_wr recv = { .wr_id = 1 }, *bad_recv;
	struct ibv_send_wr send = { .opcode = IBV_WR_SEND }, *bad_send;

	assert_int_equal(ibv_post_recv(all->rcv, &recv, &bad_recv), EINVAL);
	assert_int_equal(ibv_post_recv(all->snd.qp, &recv, &bad_recv), EINVAL);
	assert_int_equal(ibv_post_send(all->rcv, &send, &bad_send), EINVAL);
	assert_int_equal(vx_climb(all->rcv, 1, IBV_QPS_INIT), EINVAL);
}

/* With the last who had it open it goes, and nobody answers. */
all_test(with_its_last_holder_the_qp_goes, 0)
{
	vx_recv(&all->srq[0], 1, 0, 8);
	assert_int_equal(ibv_destroy_qp(all->rcv), 0);
	assert_int_equal(vx_post(&all->snd, IBV_WR_SEND, all->srq[0].number, 1, 8, NULL), 0);
	vt_expect(all->snd.cq, 1, IBV_WC_RETRY_EXC_ERR);
	vt_expect_none(all->srq[0].cq);
	all->rcv = vt_made(vx_rcv_make(all->xrcd));
}

/* In RESET and connected anew, nothing is left of what was before. */
all_test(it_can_be_used_again, 0)
{
	for (unsigned i = 0; i < 3; i++) {
		vx_recv(&all->srq[i & 1], i, 0, 8);
		assert_int_equal(vx_post(&all->snd, IBV_WR_SEND, all->srq[i & 1].number, i, 8,
					 NULL),
				 0);
		vt_expect(all->snd.cq, i, IBV_WC_SUCCESS);
		vt_expect(all->srq[i & 1].cq, i, IBV_WC_SUCCESS);
		assert_int_equal(vt_modify(all->snd.qp, IBV_QPS_RESET), 0);
		assert_int_equal(vt_modify(all->rcv, IBV_QPS_RESET), 0);
		assert_int_equal(vx_climb(all->rcv, all->snd.qp->qp_num, IBV_QPS_RTS), 0);
		assert_int_equal(vx_climb(all->snd.qp, all->rcv->qp_num, IBV_QPS_RTS), 0);
	}
}
