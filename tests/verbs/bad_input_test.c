/* SPDX-License-Identifier: BSD-2-Clause */
#include "lib.h"

/*
 * Work requests that are wrong: refused by the call, with bad_wr telling which of a chain and those
 * before it executed; or accepted and completed with the status that says what was wrong.
 */

enum { NOBODY = 0x3fff };

/* --- what ibv_post_send refuses --- */

/* LATER: the device finds out, and a completion tells. */
enum refusal { FITS, LATER = -1, NOT_HERE = EINVAL, NOWHERE = EOPNOTSUPP };

static const struct {
	int opcode;
	int answer[VT_TYPES];
} opcodes[] = {
	{ IBV_WR_RDMA_WRITE, { FITS, FITS, LATER } },
	{ IBV_WR_RDMA_WRITE_WITH_IMM, { FITS, FITS, LATER } },
	{ IBV_WR_SEND, { FITS, FITS, FITS } },
	{ IBV_WR_SEND_WITH_IMM, { FITS, FITS, FITS } },
	{ IBV_WR_RDMA_READ, { FITS, NOT_HERE, LATER } },
	{ IBV_WR_ATOMIC_CMP_AND_SWP, { FITS, NOT_HERE, LATER } },
	{ IBV_WR_ATOMIC_FETCH_AND_ADD, { FITS, NOT_HERE, LATER } },
	{ IBV_WR_ATOMIC_WRITE, { FITS, NOT_HERE, NOT_HERE } },
	{ IBV_WR_BIND_MW, { NOT_HERE, NOT_HERE, NOT_HERE } }, /* without a window */
	{ IBV_WR_TSO, { NOT_HERE, NOT_HERE, NOT_HERE } },
	{ IBV_WR_DRIVER1, { NOWHERE, NOWHERE, NOWHERE } },
	{ IBV_WR_DRIVER1 + 1, { NOT_HERE, NOT_HERE, NOT_HERE } },
	{ IBV_WR_ATOMIC_WRITE - 1, { NOT_HERE, NOT_HERE, NOT_HERE } },
	{ IBV_WR_ATOMIC_WRITE + 1, { NOT_HERE, NOT_HERE, NOT_HERE } },
	{ 200, { NOT_HERE, NOT_HERE, NOT_HERE } },
	{ -1, { NOT_HERE, NOT_HERE, NOT_HERE } },
};

/* It fails in its turn: what is before it leaves, what is behind it is flushed. */
static void expect_found_later(struct vt_pair *p, struct vt_wr *w)
{
	struct ibv_send_wr *bad = NULL;
	struct vt_wr before, behind;

	vt_wr(&before, IBV_WR_SEND, &p->a, &p->b, 8);
	behind = before;
	before.wr.wr_id = 2;
	behind.wr.wr_id = 3;
	before.wr.sg_list = &before.sge;
	behind.wr.sg_list = &behind.sge;
	before.wr.next = &w->wr;
	w->wr.next = &behind.wr;
	w->wr.send_flags = 0; /* what fails completes, asked for or not */
	assert_int_equal(ibv_post_send(p->a.qp, &before.wr, &bad), 0);
	vt_expect(p->a.cq, 2, IBV_WC_SUCCESS);
	vt_expect(p->a.cq, 1, IBV_WC_LOC_QP_OP_ERR);
	vt_expect(p->a.cq, 3, IBV_WC_WR_FLUSH_ERR);
	assert_int_equal(vt_state(p->a.qp), IBV_QPS_SQE);
	assert_int_equal(vt_modify(p->a.qp, IBV_QPS_RTS), 0);
	w->wr.next = NULL;
	vt_no_event();
}

vt_pairs_test(every_opcode_on_every_service, t, 0, VT_TYPES, .type = vt_types[t])
{
	struct vt_wr w;

	for (unsigned i = 0; i < VT_COUNT(opcodes); i++) {
		vt_recv(&p->b, 7);
		vt_wr(&w, (enum ibv_wr_opcode)opcodes[i].opcode, &p->a, &p->b, 8);
		if (opcodes[i].answer[t] == LATER) {
			expect_found_later(p, &w);
			continue;
		}
		assert_int_equal(vt_try(&p->a, &w), opcodes[i].answer[t]);
		if (!opcodes[i].answer[t])
			vt_expect(p->a.cq, 1, IBV_WC_SUCCESS);
	}
	assert_int_equal(vt_state(p->a.qp), IBV_QPS_RTS);
	vt_expect_none(p->a.cq);
}

vt_pair_test(unknown_flags_are_refused)
{
	struct vt_wr w;

	for (unsigned flag = 1; flag; flag <<= 1) {
		bool known = flag <= IBV_SEND_INLINE;

		vt_wr(&w, IBV_WR_RDMA_WRITE, &p->a, &p->b, 8);
		w.wr.send_flags = flag | IBV_SEND_SIGNALED;
		assert_int_equal(vt_try(&p->a, &w), known ? 0 : EINVAL);
		if (known)
			vt_expect(p->a.cq, 1, IBV_WC_SUCCESS);
	}
}

vt_test(lists_of_pieces_that_are_too_long_are_refused)
{
	static const int counts[] = { -1, 5, 33, 1 << 20, INT32_MIN, INT32_MAX };
	struct ibv_recv_wr recv = { .wr_id = 1 }, *bad_recv;
	struct ibv_sge sge[8] = { { 0 } };

	for (int t = 0; t < VT_TYPES; t++) {
		struct vt_options opt = { .type = vt_types[t], .srq = vt_types[t] != IBV_QPT_UC };
		struct vt_pair p;
		struct vt_wr w;

		vt_pair_open(&p, &opt);
		for (unsigned i = 0; i < VT_COUNT(counts); i++) {
			vt_wr(&w, IBV_WR_SEND, &p.a, &p.b, 8);
			w.wr.num_sge = counts[i];
			assert_int_equal(vt_try(&p.a, &w), EINVAL);
			recv.sg_list = sge;
			recv.num_sge = counts[i];
			assert_int_equal(ibv_post_recv(p.a.qp, &recv, &bad_recv), EINVAL);
			assert_ptr_equal(bad_recv, &recv);
			if (!p.b.srq)
				continue;
			assert_int_equal(ibv_post_srq_recv(p.b.srq, &recv, &bad_recv), EINVAL);
			assert_ptr_equal(bad_recv, &recv);
		}
		vt_pair_close(&p);
	}
}

vt_pairs_test(inline_data_that_is_too_much_is_refused, t, 0, VT_TYPES, .type = vt_types[t],
	      .inline_bytes = 100)
{
	struct ibv_qp_attr attr;
	struct vt_wr w;

	attr = vt_query(p->a.qp, IBV_QP_CAP);
	vt_wr(&w, IBV_WR_SEND, &p->a, &p->b, attr.cap.max_inline_data + 1);
	w.wr.send_flags |= IBV_SEND_INLINE;
	assert_int_equal(vt_try(&p->a, &w), EINVAL);
	w.sge.length = UINT32_MAX;
	assert_int_equal(vt_try(&p->a, &w), EINVAL);
}

/* ibv_post_send(3): inline is for SEND and RDMA WRITE. */
vt_pair_test(inline_goes_with_sends_and_writes_only)
{
	static const enum ibv_wr_opcode fetches[] = {
		IBV_WR_RDMA_READ, IBV_WR_ATOMIC_CMP_AND_SWP, IBV_WR_ATOMIC_FETCH_AND_ADD
	};
	struct vt_wr w;

	for (int i = 0; i < 3; i++) {
		vt_wr(&w, fetches[i], &p->a, &p->b, 8);
		w.wr.send_flags |= IBV_SEND_INLINE;
		assert_int_equal(vt_try(&p->a, &w), EINVAL);
	}
}

/* The application's own pointer leads nowhere: an error, no crash. */
vt_pair_test(inline_data_from_nowhere_is_refused)
{
	struct vt_wr w;

	vt_faults_to_library();
	vt_wr(&w, IBV_WR_SEND, &p->a, &p->b, 8);
	w.wr.send_flags |= IBV_SEND_INLINE;
	w.sge.addr = 64;
	assert_int_equal(vt_try(&p->a, &w), EFAULT);
	vt_recv(&p->b, 2);
	vt_send(&p->a, &p->b, 3);
	vt_expect(p->a.cq, 3, IBV_WC_SUCCESS);
}

/* The one that is none is refused at once, another PD's is for the device to find out (C10-10). */
vt_pair_test(a_datagram_needs_an_address_of_its_pd, .type = IBV_QPT_UD)
{
	struct ibv_pd *other = ibv_alloc_pd(vt.ctx), *own = vt.pd;
	struct ibv_ah *ah;
	struct vt_wr w;

	vt_wr(&w, IBV_WR_SEND, &p->a, &p->b, 8);
	w.wr.wr.ud.ah = NULL;
	assert_int_equal(vt_try(&p->a, &w), EINVAL);
	vt.pd = other;
	ah = vt_ah();
	vt.pd = own;
	vt_recv(&p->b, 7);
	vt_recv(&p->b, 8);
	w.wr.wr.ud.ah = ah;
	expect_found_later(p, &w);
	/* What is wrong with the work request itself is refused first. */
	w.wr.num_sge = 1000;
	assert_int_equal(vt_try(&p->a, &w), EINVAL);
	vt_expect(p->b.cq, 7, IBV_WC_SUCCESS);
	vt_expect_none(p->b.cq);
	vt_send(&p->a, &p->b, 4);
	vt_expect(p->a.cq, 4, IBV_WC_SUCCESS);
	vt_expect(p->b.cq, 8, IBV_WC_SUCCESS);
	assert_int_equal(ibv_destroy_ah(ah), 0);
	assert_int_equal(ibv_dealloc_pd(other), 0);
}

/* --- chains --- */

/* The third of five is wrong: two are executed, bad_wr is the third, two never were. */
vt_pair_test(a_chain_of_sends_stops_at_the_wrong_one)
{
	struct ibv_send_wr *bad = NULL;
	struct vt_wr w[5];

	for (unsigned i = 0; i < 5; i++) {
		vt_recv(&p->b, 100 + i);
		vt_wr(&w[i], IBV_WR_SEND, &p->a, &p->b, 8);
		w[i].wr.wr_id = i;
		w[i].wr.next = i < 4 ? &w[i + 1].wr : NULL;
	}
	w[2].wr.num_sge = 1000;
	assert_int_equal(ibv_post_send(p->a.qp, &w[0].wr, &bad), EINVAL);
	assert_ptr_equal(bad, &w[2].wr);
	for (uint64_t i = 0; i < 2; i++) {
		vt_expect(p->b.cq, 100 + i, IBV_WC_SUCCESS);
		vt_expect(p->a.cq, i, IBV_WC_SUCCESS);
	}
	vt_expect_none(p->a.cq);
	vt_expect_none(p->b.cq);
}

vt_pairs_test(a_chain_of_receives_stops_at_the_wrong_one, srq, 0, 2, .srq = srq)
{
	struct ibv_recv_wr wr[5], *bad = NULL;
	struct ibv_sge sge;

	sge = (struct ibv_sge){ (uintptr_t)p->b.buf, 64, p->b.mr->lkey };
	for (unsigned i = 0; i < 5; i++)
		wr[i] = (struct ibv_recv_wr){ .wr_id = i, .sg_list = &sge, .num_sge = 1,
					      .next = i < 4 ? &wr[i + 1] : NULL };
	wr[2].num_sge = 1000;
	assert_int_equal(srq ? ibv_post_srq_recv(p->b.srq, wr, &bad)
			     : ibv_post_recv(p->b.qp, wr, &bad), EINVAL);
	assert_ptr_equal(bad, &wr[2]);
	vt_recv(&p->b, 77);
	for (uint64_t i = 0; i < 3; i++) {
		vt_send(&p->a, &p->b, i);
		vt_expect(p->b.cq, i < 2 ? i : 77, IBV_WC_SUCCESS);
		vt_expect(p->a.cq, i, IBV_WC_SUCCESS);
	}
}

/* The queue ends amid a chain: what fits is executed, bad_wr is the first that did not. */
vt_pairs_test(a_full_send_queue_says_which_did_not_fit, t, 0, VT_TYPES, .type = vt_types[t],
	      .send_wr = 6)
{
	struct ibv_send_wr *bad = NULL;
	struct ibv_qp_attr attr;
	static struct vt_wr w[300];
	uint32_t room;

	attr = vt_query(p->a.qp, IBV_QP_CAP);
	room = attr.cap.max_send_wr;
	assert_in_range(room, 6, 298);
	for (unsigned i = 0; i < room + 2; i++) {
		vt_recv(&p->b, 0);
		vt_wr(&w[i], IBV_WR_SEND, &p->a, &p->b, 8);
		w[i].wr.wr_id = i;
		w[i].wr.next = i < room + 1 ? &w[i + 1].wr : NULL;
	}
	assert_int_equal(ibv_post_send(p->a.qp, &w[0].wr, &bad), ENOMEM);
	assert_ptr_equal(bad, &w[room].wr);
	for (uint64_t i = 0; i < room; i++)
		vt_expect(p->a.cq, i, IBV_WC_SUCCESS);
	vt_expect_none(p->a.cq);
	assert_int_equal(ibv_post_send(p->a.qp, bad, &bad), 0);
	vt_expect(p->a.cq, room, IBV_WC_SUCCESS);
	vt_expect(p->a.cq, room + 1, IBV_WC_SUCCESS);
}

vt_pairs_test(a_full_receive_queue_says_which_did_not_fit, srq, 0, 2, .type = IBV_QPT_RC,
	      .recv_wr = 6, .srq = srq)
{
	static struct ibv_recv_wr wr[300];
	struct ibv_recv_wr *bad = NULL;
	struct ibv_srq_attr srq_attr;
	struct ibv_qp_attr attr;
	uint32_t room;

	attr = vt_query(p->b.qp, IBV_QP_CAP);
	room = attr.cap.max_recv_wr;
	if (srq) {
		assert_int_equal(ibv_query_srq(p->b.srq, &srq_attr), 0);
		room = srq_attr.max_wr;
	}
	assert_in_range(room, 6, 298);
	for (unsigned i = 0; i < room + 2; i++)
		wr[i] = (struct ibv_recv_wr){ .wr_id = i, .next = i < room + 1 ? &wr[i + 1]
									       : NULL };
	assert_int_equal(srq ? ibv_post_srq_recv(p->b.srq, wr, &bad)
			     : ibv_post_recv(p->b.qp, wr, &bad), ENOMEM);
	assert_ptr_equal(bad, &wr[room]);
	if (!srq) {
		assert_int_equal(vt_modify(p->b.qp, IBV_QPS_ERR), 0);
		for (uint64_t i = 0; i < room; i++)
			vt_expect(p->b.cq, i, IBV_WC_WR_FLUSH_ERR);
		vt_expect_none(p->b.cq);
	}
}

/* --- what only the device finds wrong --- */

static void expect_local_fault(struct vt_pair *p, struct vt_wr *w, enum ibv_wc_status status)
{
	struct vt_wr behind = *w;

	behind.wr.wr_id = 2;
	behind.wr.send_flags = 0; /* what fails completes, asked for or not */
	behind.wr.sg_list = &behind.sge;
	w->wr.next = &behind.wr;
	vt_post(&p->a, w);
	vt_expect(p->a.cq, 1, status);
	vt_expect(p->a.cq, 2, IBV_WC_WR_FLUSH_ERR);
	assert_int_equal(vt_state(p->a.qp),
			 p->opt.type == IBV_QPT_RC ? IBV_QPS_ERR : IBV_QPS_SQE);
	assert_int_equal(vt_state(p->b.qp), IBV_QPS_RTS);
	assert_true(vt_is_octet(p->b.buf, p->b.bytes, 0));
	vt_no_event();
}

enum where { KEY_LOW, KEY_HIGH, KEY_ZERO, OTHER_PD, PAST_END, BEFORE_START, WRAPPED, WHERES };

static void spoil(struct vt_wr *w, const struct vt_end *end, enum where where, uint32_t other_lkey)
{
	switch (where) {
	case KEY_LOW:
		w->sge.lkey ^= 1;
		break;
	case KEY_HIGH:
		w->sge.lkey ^= 0x80000000;
		break;
	case KEY_ZERO:
		w->sge.lkey = 0;
		break;
	case OTHER_PD:
		w->sge.lkey = other_lkey;
		break;
	case PAST_END:
		w->sge.addr += end->bytes - w->sge.length + 1;
		break;
	case BEFORE_START:
		w->sge.addr--;
		break;
	default:
		w->sge.addr = -(uint64_t)4;
		break;
	}
}

vt_test(local_pieces_in_bad_places)
{
	struct ibv_pd *other = ibv_alloc_pd(vt.ctx);

	for (int i = 0; i < VT_TYPES * WHERES; i++) {
		struct vt_options opt = { .type = vt_types[i / WHERES] };
		struct ibv_mr *elsewhere;
		struct vt_pair p;
		struct vt_wr w;

		vt_pair_open(&p, &opt);
		elsewhere = vt_mr(other, p.a.buf, p.a.bytes, VT_ALL_ACCESS);
		vt_recv(&p.b, 9);
		vt_wr(&w, IBV_WR_SEND, &p.a, &p.b, 1000);
		spoil(&w, &p.a, i % WHERES, elsewhere->lkey);
		expect_local_fault(&p, &w, IBV_WC_LOC_PROT_ERR);
		vt_expect_none(p.b.cq);
		assert_int_equal(ibv_dereg_mr(elsewhere), 0);
		vt_pair_close(&p);
	}
	assert_int_equal(ibv_dealloc_pd(other), 0);
}

/* READs and atomics write locally: the region must allow that. */
vt_pairs_test(fetching_into_memory_that_may_not_be_written, i, 0, 3)
{
	static const enum ibv_wr_opcode fetches[] = {
		IBV_WR_RDMA_READ, IBV_WR_ATOMIC_CMP_AND_SWP, IBV_WR_ATOMIC_FETCH_AND_ADD
	};
	struct ibv_mr *read_only;
	struct vt_wr w;

	read_only = vt_mr(vt.pd, p->a.buf, 64, 0);
	memset(p->b.buf, 1, 64);
	memset(p->a.buf, 2, 64);
	vt_wr(&w, fetches[i], &p->a, &p->b, 8);
	w.sge.lkey = read_only->lkey;
	vt_done(&p->a, &w, IBV_WC_LOC_PROT_ERR);
	assert_true(vt_is_octet(p->a.buf, 64, 2));
	assert_int_equal(vt_state(p->a.qp), IBV_QPS_ERR);
	assert_int_equal(ibv_dereg_mr(read_only), 0);
}

vt_test(an_atomic_of_another_size)
{
	static const uint32_t sizes[] = { 0, 1, 4, 7, 9, 16, 4096 };

	for (unsigned i = 0; i < VT_COUNT(sizes); i++) {
		struct vt_pair p;
		struct vt_wr w;

		vt_pair_open(&p, NULL);
		vt_wr(&w, IBV_WR_ATOMIC_FETCH_AND_ADD, &p.a, &p.b, sizes[i]);
		w.wr.wr.atomic.compare_add = 1;
		expect_local_fault(&p, &w, IBV_WC_LOC_LEN_ERR);
		vt_pair_close(&p);
	}
}

/* IBA 9.7.7.1: 2^31 octets is the longest message. The keys are good, it is only too long. */
vt_test(a_message_of_more_than_two_gibibytes)
{
	struct ibv_recv_wr recv = { .wr_id = 1, .num_sge = 4 }, *bad_recv = NULL;
	struct ibv_send_wr *bad = NULL;

	for (int t = 0; t < 2; t++) {
		struct vt_options opt = { .type = vt_types[t] };
		struct ibv_sge sge[4];
		struct vt_pair p;
		struct vt_wr w;

		vt_pair_open(&p, &opt);
		for (int i = 0; i < 4; i++)
			sge[i] = (struct ibv_sge){ (uintptr_t)p.a.buf, 1u << 30, p.a.mr->lkey };
		vt_wr(&w, IBV_WR_SEND, &p.a, &p.b, 8);
		w.wr.sg_list = sge;
		w.wr.num_sge = 3;
		assert_int_equal(ibv_post_send(p.a.qp, &w.wr, &bad), 0);
		vt_expect(p.a.cq, 1, IBV_WC_LOC_LEN_ERR);
		recv.sg_list = sge;
		assert_int_equal(ibv_post_recv(p.b.qp, &recv, &bad_recv), EINVAL);
		assert_ptr_equal(bad_recv, &recv);
		vt_pair_close(&p);
	}
}

/* A datagram is one packet. */
vt_test(a_datagram_longer_than_the_mtu)
{
	struct vt_options opt = { .type = IBV_QPT_UD };
	struct ibv_port_attr port;
	struct vt_pair p;
	struct vt_wr w;
	uint32_t mtu;

	assert_int_equal(ibv_query_port(vt.ctx, 1, &port), 0);
	mtu = 128u << port.active_mtu;
	vt_pair_open(&p, &opt);
	vt_recv(&p.b, 5);
	vt_start(IBV_WR_SEND, &p.a, &p.b, mtu);
	assert_int_equal(vt_expect(p.b.cq, 5, IBV_WC_SUCCESS).byte_len, mtu + 40);
	vt_expect(p.a.cq, 1, IBV_WC_SUCCESS);
	memset(p.b.buf, 0, p.b.bytes);
	vt_wr(&w, IBV_WR_SEND, &p.a, &p.b, mtu + 1);
	expect_local_fault(&p, &w, IBV_WC_LOC_LEN_ERR);
	vt_pair_close(&p);
}

/* --- datagrams that are not for us --- */

vt_pair_test(a_wrong_q_key_is_dropped, .type = IBV_QPT_UD)
{
	static const uint32_t keys[] = { 0, VT_QKEY ^ 1, VT_QKEY ^ 0x40000000 };
	struct vt_wr w;

	vt_recv(&p->b, 5);
	for (int i = 0; i < 3; i++) {
		vt_wr(&w, IBV_WR_SEND, &p->a, &p->b, 100);
		w.wr.wr.ud.remote_qkey = keys[i];
		vt_done(&p->a, &w, IBV_WC_SUCCESS);
	}
	vt_expect_none(p->b.cq);
	assert_true(vt_is_octet(p->b.buf, 200, 0));
	/* IBA 10.2.5: with the high bit set, the sender's own key goes. */
	w.wr.wr.ud.remote_qkey = 0x80000000;
	vt_post(&p->a, &w);
	vt_expect(p->b.cq, 5, IBV_WC_SUCCESS);
}

/*
 * IBA 9.9.3, class D: it is dropped, nothing is consumed, and the QP stays as it is. So nobody who
 * knows a Q_Key stops a QP, or takes requests off a queue that others share. Room for the 40 octets
 * in front is needed as well.
 */
vt_pairs_test(a_datagram_that_does_not_fit_its_receive_request, i, 0, 2 * 4, .type = IBV_QPT_UD,
	      .srq = i / 4)
{
	static const uint32_t rooms[] = { 0, 10, 40, 139 };
	uint32_t room = rooms[i % 4];
	struct vt_wr w;

	memset(p->b.buf, 0xcc, p->b.bytes);
	assert_int_equal(vt_recv_at(&p->b, 5, 0, room), 0);
	vt_wr(&w, IBV_WR_SEND, &p->a, &p->b, 100);
	for (int k = 0; k < 3; k++) {
		vt_done(&p->a, &w, IBV_WC_SUCCESS);
	}
	vt_expect_none(p->b.cq);
	assert_int_equal(vt_state(p->b.qp), IBV_QPS_RTS);
	assert_true(vt_is_octet(p->b.buf, 1000, 0xcc));
	vt_no_event();
	if (room >= 40) {
		/* It is still there, for one that is short enough. */
		vt_start(IBV_WR_SEND, &p->a, &p->b, room - 40);
		assert_int_equal(vt_expect(p->b.cq, 5, IBV_WC_SUCCESS).byte_len, room);
	}
}

/* UC the same: the message is lost, and the next one has the receive request. */
vt_pairs_test(a_message_of_uc_that_does_not_fit_is_lost, i, 0, 3, .type = IBV_QPT_UC)
{
	static const uint32_t sizes[] = { 65, 5000, 60000 };

	assert_int_equal(vt_recv_at(&p->b, 5, 0, sizes[i] - 1), 0);
	vt_do(IBV_WR_SEND, &p->a, &p->b, sizes[i], IBV_WC_SUCCESS);
	vt_expect_none(p->b.cq);
	assert_int_equal(vt_state(p->b.qp), IBV_QPS_RTS);
	vt_start(IBV_WR_SEND, &p->a, &p->b, sizes[i] - 1);
	assert_int_equal(vt_expect(p->b.cq, 5, IBV_WC_SUCCESS).byte_len, sizes[i] - 1);
	vt_no_event();
}

/* Nobody waits for it: lost, and nothing else happens. */
vt_pairs_test(an_unreliable_message_without_a_receive_request_is_lost, t, 1, VT_TYPES,
	      .type = vt_types[t])
{
	struct ibv_wc wc;

	vt_send(&p->a, &p->b, 1);
	vt_expect(p->a.cq, 1, IBV_WC_SUCCESS);
	vt_sleep_ms(VT_QUIET_MS);
	vt_recv(&p->b, 5);
	assert_false(vt_poll_ms(p->b.cq, &wc, VT_QUIET_MS));
	vt_send(&p->a, &p->b, 2);
	vt_expect(p->b.cq, 5, IBV_WC_SUCCESS);
	vt_no_event();
}

/* --- a peer that does not answer, or is not ready --- */

vt_pairs_test(rnr_retry_exceeded, retries, 0, 3, .rnr_retry = (uint8_t)retries,
	      .no_rnr_retry = !retries, .rnr_timer = 20 /* 10.24 ms */)
{
	uint64_t start_ms;

	start_ms = vt_now_ms();
	vt_send(&p->a, &p->b, 1);
	vt_send(&p->a, &p->b, 2);
	vt_expect(p->a.cq, 1, IBV_WC_RNR_RETRY_EXC_ERR);
	vt_expect(p->a.cq, 2, IBV_WC_WR_FLUSH_ERR);
	assert_true(vt_now_ms() - start_ms + 1 >= 10 * (uint64_t)retries);
	assert_int_equal(vt_state(p->a.qp), IBV_QPS_ERR);
	assert_int_equal(vt_state(p->b.qp), IBV_QPS_RTS);
	vt_no_event();
}

/* 7 is for ever: it waits as long as it takes. */
vt_pair_test(rnr_retry_of_seven_waits, .rnr_timer = 14 /* 1.28 ms */)
{
	struct ibv_wc wc;

	vt_send(&p->a, &p->b, 1);
	assert_false(vt_poll_ms(p->a.cq, &wc, 100));
	vt_recv(&p->b, 2);
	vt_expect(p->a.cq, 1, IBV_WC_SUCCESS);
	vt_expect(p->b.cq, 2, IBV_WC_SUCCESS);
}

/* ibv_modify_qp(3): (retry_cnt + 1) timeouts, then it fails, and all the rest with it. */
vt_ends_test(retry_exceeded, i, 0, 4, .timeout = 13, .retry_cnt = 2)
{
	static const enum ibv_wr_opcode ops[] = { IBV_WR_SEND, IBV_WR_RDMA_WRITE,
						  IBV_WR_RDMA_READ, IBV_WR_ATOMIC_FETCH_AND_ADD };
	uint64_t start_ms;
	struct vt_wr w;

	vt_climb(end->qp, &end->opt, IBV_QPS_RTS, (end->qp->qp_num & ~0x3fffu) | NOBODY);
	start_ms = vt_now_ms();
	vt_wr(&w, ops[i], end, end, 8);
	vt_post(end, &w);
	w.wr.wr_id = 2;
	vt_post(end, &w);
	vt_recv(end, 3);
	vt_expect(end->cq, 1, IBV_WC_RETRY_EXC_ERR);
	vt_expect(end->cq, 2, IBV_WC_WR_FLUSH_ERR);
	vt_expect(end->cq, 3, IBV_WC_WR_FLUSH_ERR);
	/* 33.6 ms, three times; at least the timeouts are not shorter than asked. */
	assert_true(vt_now_ms() - start_ms >= 90);
	assert_int_equal(vt_state(end->qp), IBV_QPS_ERR);
	vt_no_event();
}

/* --- what control functions refuse --- */

/* rc is EINVAL, EBUSY ...: what it says, errno says. */
static int said_twice(int rc)
{
	assert_int_equal(errno, rc);
	errno = 0;
	return rc;
}

vt_end_test(errno_says_it_too)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RTS };
	union ibv_gid no_group = { .raw = { 1 } };
	struct ibv_port_attr port;

	errno = 0;
	assert_int_equal(said_twice(ibv_modify_qp(end->qp, &attr, IBV_QP_STATE)), EINVAL);
	assert_int_equal(said_twice(ibv_attach_mcast(end->qp, &no_group, 0)), EINVAL);
	assert_int_equal(said_twice(ibv_resize_cq(end->cq, -1)), EINVAL);
	assert_int_equal(said_twice(ibv_destroy_cq(end->cq)), EBUSY);
	assert_int_equal(said_twice(ibv_dealloc_pd(vt.pd)), EBUSY);
	assert_int_equal(said_twice(ibv_query_port(vt.ctx, 9, &port)), EINVAL);
}
