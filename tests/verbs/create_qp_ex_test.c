/* SPDX-License-Identifier: BSD-2-Clause */
#include "lib.h"

/*
 * ibv_create_qp_ex(3), sentence by sentence: the words above a test are the manual's, and
 * SENTENCES.md lists them. More about XRC is in xrc_test.c, about RAW_PACKET, RSS and TSO in
 * raw_test.c, rss_test.c and tso_test.c; what is mlx5dv's is refused here.
 */

enum { ALL_TYPES = 7, RAW_BITS = 3, PAD_BYTES = 64 };

static struct ibv_qp_init_attr_ex init_of(struct ibv_cq *cq, enum ibv_qp_type type)
{
	struct ibv_qp_init_attr_ex init;

	memset(&init, 0, sizeof(init)); /* the gaps as well: it is compared octet by octet */
	init.send_cq = init.recv_cq = cq;
	init.cap = (struct ibv_qp_cap){ 4, 4, 1, 1, 0 };
	init.qp_type = type;
	init.comp_mask = IBV_QP_INIT_ATTR_PD;
	init.pd = vt.pd;
	return init;
}

static struct ibv_qp *made(struct ibv_qp_init_attr_ex *init)
{
	struct ibv_qp *qp = ibv_create_qp_ex(vt.ctx, init);

	if (!qp)
		fail_msg("mask %x: %s", init->comp_mask, strerror(errno));
	return qp;
}

static void expect_refused(struct ibv_qp_init_attr_ex *init, int err)
{
	struct ibv_qp_init_attr_ex before;

	memcpy(&before, init, sizeof(before));
	vt_refused(err, ibv_create_qp_ex(vt.ctx, init));
	assert_memory_equal(init, &before, sizeof(before));
}

static void expect_flag_refused(struct ibv_cq *cq, enum ibv_qp_type type, uint32_t flag, int err)
{
	struct ibv_qp_init_attr_ex init = init_of(cq, type);

	init.comp_mask |= IBV_QP_INIT_ATTR_CREATE_FLAGS;
	init.create_flags = flag;
	expect_refused(&init, err);
}

/* create_ex: "creates a queue pair (QP) associated with the protection domain pd" */
/* create_ex: "PD to be associated with the QP" */
/* create_ex: "The argument qp_init_attr_ex is an ibv_qp_init_attr_ex struct" */
vt_cq_test(it_belongs_to_the_pd_of_its_attributes, 4)
{
	for (int i = 0; i < 2 * VT_TYPES; i++) {
		struct ibv_qp_init_attr_ex init = init_of(cq, vt_types[i / 2]);
		struct ibv_pd *pd = ibv_alloc_pd(vt.ctx);
		struct ibv_qp *qp;

		/* With a PD alone <infiniband/verbs.h> calls ibv_create_qp(). */
		init.comp_mask |= i & 1 ? IBV_QP_INIT_ATTR_CREATE_FLAGS : 0;
		init.pd = pd;
		qp = made(&init);
		assert_ptr_equal(qp->pd, pd);
		assert_ptr_equal(qp->context, vt.ctx);
		assert_int_equal(ibv_dealloc_pd(pd), EBUSY);
		assert_int_equal(ibv_destroy_qp(qp), 0);
		assert_int_equal(ibv_dealloc_pd(pd), 0);
	}
}

vt_cq_test(without_a_pd_it_is_refused, 4)
{
	static const uint32_t masks[] = {
		0, IBV_QP_INIT_ATTR_CREATE_FLAGS, IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
	};
	struct ibv_context *other = vt_made(ibv_open_device(vt.ctx->device));
	struct ibv_pd *far_pd;

	far_pd = vt_made(ibv_alloc_pd(other));
	for (unsigned i = 0; i < VT_TYPES * VT_COUNT(masks); i++) {
		struct ibv_qp_init_attr_ex init = init_of(cq, vt_types[i % VT_TYPES]);

		/* The field is there, but no bit says so. */
		init.comp_mask = masks[i / VT_TYPES];
		expect_refused(&init, EINVAL);
		/* The bit is there, but no PD. */
		init.comp_mask |= IBV_QP_INIT_ATTR_PD;
		init.pd = NULL;
		expect_refused(&init, EINVAL);
		if (init.comp_mask == IBV_QP_INIT_ATTR_PD)
			continue; /* ibv_create_qp() does not see the context */
		init.pd = far_pd;
		expect_refused(&init, EINVAL);
	}
	assert_int_equal(ibv_dealloc_pd(far_pd), 0);
	assert_int_equal(ibv_close_device(other), 0);
}

/* create_ex: "Identifies valid fields" */
vt_cq_test(fields_without_their_bit_are_not_looked_at, 4)
{
	for (int i = 0; i < 2 * VT_TYPES; i++) {
		struct ibv_qp_init_attr_ex init = init_of(cq, vt_types[i / 2]);
		struct ibv_qp *qp;

		init.comp_mask |= i & 1 ? IBV_QP_INIT_ATTR_SEND_OPS_FLAGS : 0;
		init.xrcd = (struct ibv_xrcd *)8;
		init.create_flags = 0xffffffffu;
		init.max_tso_header = 64;
		init.rwq_ind_tbl = (struct ibv_rwq_ind_table *)8;
		memset(&init.rx_hash_conf, 0xff, sizeof(init.rx_hash_conf));
		init.source_qpn = 0xffffffff;
		init.send_ops_flags = i & 1 ? IBV_QP_EX_WITH_SEND : UINT64_MAX;
		qp = made(&init);
		assert_int_equal(ibv_qp_to_qp_ex(qp) != NULL, i & 1);
		assert_int_equal(ibv_destroy_qp(qp), 0);
	}
}

vt_cq_test(bits_that_nobody_knows_are_refused, 4)
{
	for (int bit = ALL_TYPES; bit < 32; bit++) {
		struct ibv_qp_init_attr_ex init = init_of(cq, vt_types[bit % VT_TYPES]);

		init.comp_mask |= 1u << bit;
		expect_refused(&init, EOPNOTSUPP);
	}
}

/* create_ex: "Associated context of the QP" */
vt_cq_test(it_carries_the_context_it_was_given, 4)
{
	struct ibv_qp_init_attr_ex init = init_of(cq, IBV_QPT_UD);
	struct ibv_qp_init_attr told;
	struct ibv_qp_attr attr;
	struct ibv_qp *qp;
	int mine;

	init.comp_mask |= IBV_QP_INIT_ATTR_CREATE_FLAGS;
	init.qp_context = &mine;
	qp = made(&init);
	assert_ptr_equal(qp->qp_context, &mine);
	assert_int_equal(ibv_query_qp(qp, &attr, IBV_QP_CAP, &told), 0);
	assert_ptr_equal(told.qp_context, &mine);
	assert_int_equal(ibv_destroy_qp(qp), 0);
}

/* An end whose QP was created with these attributes, in RTS, its own peer. */
static void end_open(struct vt_end *end, struct vt_options *opt, struct ibv_qp_init_attr_ex *init)
{
	vt_end_open(end, opt);
	assert_int_equal(ibv_destroy_qp(end->qp), 0);
	if (!init->send_cq)
		init->send_cq = init->recv_cq = end->cq;
	init->srq = end->srq;
	end->qp = made(init);
	vt_climb(end->qp, opt, IBV_QPS_RTS, end->qp->qp_num);
}

static void send_to_oneself(struct vt_end *end, struct ibv_cq *send_cq, struct ibv_cq *recv_cq)
{
	vt_recv(end, 7);
	vt_send(end, end, 8);
	vt_expect(recv_cq, 7, IBV_WC_SUCCESS);
	vt_expect(send_cq, 8, IBV_WC_SUCCESS);
	vt_expect_none(send_cq);
	vt_expect_none(recv_cq);
}

/* create_ex: "CQ to be associated with the Send Queue (SQ)" */
/* create_ex: "CQ to be associated with the Receive Queue (RQ)" */
vt_test(each_queue_completes_on_its_cq)
{
	for (int i = 0; i < VT_TYPES; i++) {
		struct vt_options opt = { .type = vt_types[i] };
		struct ibv_cq *send_cq = vt_cq(8, NULL), *recv_cq = vt_cq(8, NULL);
		struct ibv_qp_init_attr_ex init = init_of(send_cq, vt_types[i]);
		struct vt_end end;

		init.comp_mask |= IBV_QP_INIT_ATTR_CREATE_FLAGS;
		init.recv_cq = recv_cq;
		end_open(&end, &opt, &init);
		send_to_oneself(&end, send_cq, recv_cq);
		vt_end_close(&end);
		assert_int_equal(ibv_destroy_cq(send_cq), 0);
		assert_int_equal(ibv_destroy_cq(recv_cq), 0);
	}
}

/* create_ex: "SRQ handle if QP is to be associated with an SRQ, otherwise NULL" */
vt_test(it_receives_from_the_srq_it_was_given)
{
	for (int i = 0; i < VT_TYPES; i += 2) {
		struct vt_options opt = { .type = vt_types[i], .srq = true };
		struct ibv_cq *send_cq = vt_cq(8, NULL), *recv_cq = vt_cq(8, NULL);
		struct ibv_qp_init_attr_ex init = init_of(send_cq, vt_types[i]);
		struct vt_end end;

		init.comp_mask |= IBV_QP_INIT_ATTR_CREATE_FLAGS;
		init.recv_cq = recv_cq;
		end_open(&end, &opt, &init);
		assert_ptr_equal(end.qp->srq, end.srq);
		send_to_oneself(&end, send_cq, recv_cq);
		vt_end_close(&end);
		assert_int_equal(ibv_destroy_cq(send_cq), 0);
		assert_int_equal(ibv_destroy_cq(recv_cq), 0);
	}
}

/* create_ex: "If set, each Work Request (WR) submitted to the SQ generates a completion entry" */
vt_test(sq_sig_all_makes_every_send_complete)
{
	for (int all = 0; all < 2; all++) {
		struct vt_options opt = { .type = IBV_QPT_RC };
		struct ibv_qp_init_attr_ex init = init_of(NULL, IBV_QPT_RC);
		struct vt_end end;
		struct vt_wr w;

		init.comp_mask |= IBV_QP_INIT_ATTR_CREATE_FLAGS;
		init.sq_sig_all = all;
		end_open(&end, &opt, &init);
		vt_wr(&w, IBV_WR_RDMA_WRITE, &end, &end, 8);
		w.wr.wr_id = 21;
		w.wr.send_flags = 0;
		vt_post(&end, &w);
		w.wr.wr_id = 22;
		w.wr.send_flags = IBV_SEND_SIGNALED;
		vt_post(&end, &w);
		if (all)
			vt_expect(end.cq, 21, IBV_WC_SUCCESS);
		vt_expect(end.cq, 22, IBV_WC_SUCCESS);
		vt_expect_none(end.cq);
		vt_end_close(&end);
	}
}

/* --- types --- */

/*
 * create_ex: "QP Transport Service Type: IBV_QPT_RC, IBV_QPT_UC, IBV_QPT_UD, IBV_QPT_RAW_PACKET or
 * IBV_QPT_DRIVER"
 */
/* create_ex: "returns a pointer to the created QP, or NULL if the request fails." */
/* create_ex: "IBV_QPT_DRIVER does not represent a specific service and is used for vendor" */
vt_cq_test(it_has_the_type_it_was_asked_for, 4)
{
	static const enum ibv_qp_type none[] = { 0, 77, -1 };
	struct ibv_qp_init_attr_ex init;

	for (int i = 0; i < VT_TYPES; i++) {
		struct ibv_qp *qp;

		init = init_of(cq, vt_types[i]);
		init.comp_mask |= IBV_QP_INIT_ATTR_CREATE_FLAGS;
		qp = made(&init);
		assert_int_equal(qp->qp_type, vt_types[i]);
		assert_int_equal(qp->state, IBV_QPS_RESET);
		assert_int_equal(ibv_destroy_qp(qp), 0);
	}
	init = init_of(cq, IBV_QPT_RAW_PACKET);
	if (!vt_by_udp()) {
		struct ibv_qp *qp = made(&init);

		assert_int_equal(qp->qp_type, IBV_QPT_RAW_PACKET);
		assert_int_equal(ibv_destroy_qp(qp), 0);
	} else {
		expect_refused(&init, EOPNOTSUPP);
	}
	/* What kind of driver's QP it is to be is told to mlx5dv_create_qp(). */
	init = init_of(cq, IBV_QPT_DRIVER);
	expect_refused(&init, EOPNOTSUPP);
	init.comp_mask |= IBV_QP_INIT_ATTR_CREATE_FLAGS;
	expect_refused(&init, EOPNOTSUPP);
	for (int i = 0; i < 3; i++) {
		init = init_of(cq, none[i]);
		init.comp_mask |= IBV_QP_INIT_ATTR_CREATE_FLAGS;
		expect_refused(&init, EOPNOTSUPP);
	}
}

/* create_ex: "XRC domain to be associated with the target QP" */
vt_cq_test(an_xrc_domain_goes_with_no_other_type, 4)
{
	struct ibv_qp_init_attr_ex init;

	for (int i = 0; i < 2 * VT_TYPES; i++) {
		init = init_of(cq, vt_types[i / 2]);
		init.comp_mask |= IBV_QP_INIT_ATTR_XRCD;
		init.xrcd = i & 1 ? (struct ibv_xrcd *)8 : NULL;
		expect_refused(&init, EINVAL);
		init.comp_mask = IBV_QP_INIT_ATTR_XRCD;
		expect_refused(&init, EINVAL);
	}
	/* Where it does belong, it has to be there, with no PD beside it. */
	init = init_of(cq, IBV_QPT_XRC_RECV);
	init.comp_mask = IBV_QP_INIT_ATTR_XRCD;
	expect_refused(&init, EINVAL);
}

/* TSO cuts frames, and RSS spreads them. */
vt_cq_test(what_raw_packets_have_goes_with_no_other_type, 4)
{
	static const uint32_t bits[RAW_BITS] = { IBV_QP_INIT_ATTR_MAX_TSO_HEADER,
						 IBV_QP_INIT_ATTR_IND_TABLE,
						 IBV_QP_INIT_ATTR_RX_HASH };
	uint8_t key[40] = { 1 };

	for (int i = 0; i < RAW_BITS * VT_TYPES; i++) {
		struct ibv_qp_init_attr_ex init = init_of(cq, vt_types[i % VT_TYPES]);

		/* Without a value, and with one. */
		init.comp_mask |= bits[i / VT_TYPES];
		expect_refused(&init, EOPNOTSUPP);
		init.max_tso_header = 64;
		init.rwq_ind_tbl = (struct ibv_rwq_ind_table *)8;
		init.rx_hash_conf = (struct ibv_rx_hash_conf){
			.rx_hash_function = IBV_RX_HASH_FUNC_TOEPLITZ,
			.rx_hash_key_len = sizeof(key),
			.rx_hash_key = key,
			.rx_hash_fields_mask = IBV_RX_HASH_SRC_IPV4 | IBV_RX_HASH_INNER,
		};
		expect_refused(&init, EOPNOTSUPP);
	}
}

/* --- flags --- */

/* create_ex: "Creation flags for this QP" */
vt_cq_test(flags_are_those_of_the_type, 4)
{
	static const uint32_t common = IBV_QP_CREATE_BLOCK_SELF_MCAST_LB |
				       IBV_QP_CREATE_PCI_WRITE_END_PADDING;

	for (int i = 0; i < VT_TYPES * 32; i++) {
		uint32_t flag = 1u << i / VT_TYPES;
		enum ibv_qp_type type = vt_types[i % VT_TYPES];
		struct ibv_qp_init_attr_ex init = init_of(cq, type);

		if (!(flag & common) &&
		    (type != IBV_QPT_UD || flag != IBV_QP_CREATE_SOURCE_QPN)) {
			expect_flag_refused(cq, type, flag, EINVAL);
			expect_flag_refused(cq, type, flag | common, EINVAL);
			continue;
		}
		init.comp_mask |= IBV_QP_INIT_ATTR_CREATE_FLAGS;
		init.create_flags = flag;
		assert_int_equal(ibv_destroy_qp(made(&init)), 0);
	}
}

vt_cq_test(what_frames_of_ethernet_have_is_refused, 4)
{
	for (int i = 0; i < VT_TYPES; i++) {
		expect_flag_refused(cq, vt_types[i], IBV_QP_CREATE_SCATTER_FCS, EINVAL);
		expect_flag_refused(cq, vt_types[i], IBV_QP_CREATE_CVLAN_STRIPPING, EINVAL);
	}
}

/* create_ex: "Incoming packets will be padded to cacheline size" */
vt_test(padding_is_harmless)
{
	struct ibv_device_attr_ex device = vt_device_ex();

	assert_true(device.device_cap_flags_ex & IBV_DEVICE_PCI_WRITE_END_PADDING);
	for (int i = 0; i < VT_TYPES; i++) {
		struct vt_options opt = { .type = vt_types[i] };
		struct ibv_qp_init_attr_ex init = init_of(NULL, vt_types[i]);
		uint32_t head = vt_types[i] == IBV_QPT_UD ? 40 : 0;
		struct vt_end end;
		struct ibv_wc wc;

		init.comp_mask |= IBV_QP_INIT_ATTR_CREATE_FLAGS;
		init.create_flags = IBV_QP_CREATE_PCI_WRITE_END_PADDING;
		end_open(&end, &opt, &init);
		memset(end.buf, 0x55, 4096);
		vt_fill(end.buf, 13, 1);
		assert_int_equal(vt_recv_at(&end, 2, 1024, 1024), 0);
		vt_start(IBV_WR_SEND, &end, &end, 13);
		for (int n = 0; n < 2; n++) {
			assert_true(vt_poll_ms(end.cq, &wc, VT_WAIT_MS));
			assert_int_equal(wc.status, IBV_WC_SUCCESS);
		}
		/* No octet behind the message is touched. */
		assert_true(vt_is_filled(end.buf + 1024 + head, 13, 1));
		assert_true(vt_is_octet(end.buf + 1024 + head + 13, PAD_BYTES, 0x55));
		vt_end_close(&end);
	}
}

/* create_ex: "The created QP will use the source_qpn as its wire QP number" */
/*
 * create_ex: "Source QP number, creation flag IBV_QP_CREATE_SOURCE_QPN should be set, few NOTEs
 * below"
 */
vt_pair_test(datagrams_come_from_the_number_it_was_given, .type = IBV_QPT_UD)
{
	static const uint32_t numbers[] = { 0xabcdef, 1, 0xffffff, 0 };

	for (int i = 0; i < 4; i++) {
		struct ibv_qp_init_attr_ex init = init_of(NULL, IBV_QPT_UD);
		struct vt_end from;

		init.comp_mask |= IBV_QP_INIT_ATTR_CREATE_FLAGS;
		/* Without the flag the field means nothing. */
		init.create_flags = i ? IBV_QP_CREATE_SOURCE_QPN : 0;
		init.source_qpn = numbers[i];
		end_open(&from, &p->opt, &init);
		vt_recv(&p->b, 1);
		vt_send(&from, &p->b, 2);
		assert_int_equal(vt_expect(p->b.cq, 1, IBV_WC_SUCCESS).src_qp,
				 i ? numbers[i] : from.qp->qp_num);
		/* For its own side it keeps the number that it has. */
		assert_int_equal(vt_expect(from.cq, 2, IBV_WC_SUCCESS).qp_num, from.qp->qp_num);
		assert_int_not_equal(from.qp->qp_num, numbers[i]);
		vt_end_close(&from);
	}
}

/* create_ex: "The attribute source_qpn is supported only on UD QP" */
/* create_ex: "without flow steering RX should not be possible." */
vt_test(one_that_sends_as_another_receives_nothing)
{
	struct vt_options opt = { .type = IBV_QPT_UD };
	struct ibv_qp_init_attr_ex init;
	struct vt_end end;

	for (int i = 0; i < 2; i++) {
		init = init_of(NULL, vt_types[i]);
		init.send_cq = init.recv_cq = vt_cq(4, NULL);
		expect_flag_refused(init.send_cq, vt_types[i], IBV_QP_CREATE_SOURCE_QPN, EINVAL);
		assert_int_equal(ibv_destroy_cq(init.send_cq), 0);
	}
	init = init_of(NULL, IBV_QPT_UD);
	init.comp_mask |= IBV_QP_INIT_ATTR_CREATE_FLAGS;
	init.create_flags = IBV_QP_CREATE_SOURCE_QPN;
	init.source_qpn = 0x123456;
	end_open(&end, &opt, &init);
	vt_recv(&end, 1);
	vt_send(&end, &end, 2);
	vt_expect(end.cq, 2, IBV_WC_SUCCESS);
	vt_expect_none(end.cq);
	/* QP numbers have 24 bits (IBA 9.2). */
	init.source_qpn = 1u << 24;
	expect_refused(&init, EINVAL);
	vt_end_close(&end);
}

/* --- operations of the builder --- */

/*
 * create_ex: "Select which QP send ops will be defined in struct ibv_qp_ex. Use enum
 * ibv_qp_create_send_ops_flags"
 */
vt_cq_test(operations_are_those_of_the_type, 4)
{
	static const uint64_t sends = IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM;
	static const uint64_t writes = IBV_QP_EX_WITH_RDMA_WRITE |
				       IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM;
	static const uint64_t fetches = IBV_QP_EX_WITH_RDMA_READ |
					IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP |
					IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD;
	static const uint64_t can[VT_TYPES] = { sends | writes | fetches, sends | writes, sends };
	static const uint64_t cannot[VT_TYPES] = { IBV_QP_EX_WITH_TSO, IBV_QP_EX_WITH_TSO | fetches,
						IBV_QP_EX_WITH_TSO | fetches | writes };

	for (int i = 0; i < VT_TYPES * 64; i++) {
		uint64_t op = 1ull << i / VT_TYPES;
		struct ibv_qp_init_attr_ex init = init_of(cq, vt_types[i % VT_TYPES]);

		init.comp_mask |= IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
		init.send_ops_flags = op;
		if (can[i % VT_TYPES] & op)
			assert_int_equal(ibv_destroy_qp(made(&init)), 0);
		else if ((cannot[i % VT_TYPES] & op) ||
			 i / VT_TYPES > 15) /* the headers know no more */
			expect_refused(&init, EOPNOTSUPP);
	}
}

/*
 * create_ex: "Use ibv_qp_to_qp_ex() to get the ibv_qp_ex for accessing the send ops iterator
 * interface, when QP create attr IBV_QP_INIT_ATTR_SEND_OPS_FLAGS is used."
 */
vt_test(the_builder_sends)
{
	struct vt_options opt = { .type = IBV_QPT_RC };
	struct ibv_qp_init_attr_ex init = init_of(NULL, IBV_QPT_RC);
	struct ibv_qp_ex *ex;
	struct vt_end end;

	init.comp_mask |= IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
	init.send_ops_flags = IBV_QP_EX_WITH_RDMA_WRITE;
	end_open(&end, &opt, &init);
	vt_fill(end.buf, 100, 3);
	ex = vt_made(ibv_qp_to_qp_ex(end.qp));
	ibv_wr_start(ex);
	ex->wr_id = 5;
	ex->wr_flags = IBV_SEND_SIGNALED;
	ibv_wr_rdma_write(ex, end.mr->rkey, (uintptr_t)end.buf + 4096);
	ibv_wr_set_sge(ex, end.mr->lkey, (uintptr_t)end.buf, 100);
	assert_int_equal(ibv_wr_complete(ex), 0);
	vt_expect(end.cq, 5, IBV_WC_SUCCESS);
	assert_true(vt_is_filled(end.buf + 4096, 100, 3));
	/* One that was not selected is not there. */
	ibv_wr_start(ex);
	ibv_wr_rdma_read(ex, end.mr->rkey, (uintptr_t)end.buf);
	ibv_wr_set_sge(ex, end.mr->lkey, (uintptr_t)end.buf + 4096, 100);
	assert_int_not_equal(ibv_wr_complete(ex), 0);
	vt_expect_none(end.cq);
	vt_end_close(&end);
}

/* --- sizes --- */

/* create_ex: "QP capabilities" */
/* create_ex: "Requested max number of outstanding WRs in the SQ" */
/* create_ex: "Requested max number of outstanding WRs in the RQ" */
/* create_ex: "Requested max number of scatter/gather (s/g) elements in a WR in the SQ" */
/* create_ex: "Requested max number of s/g elements in a WR in the RQ" */
/*
 * create_ex: "Requested max number of data (bytes) that can be posted inline to the SQ, otherwise
 * 0"
 */
/*
 * create_ex: "will update the qp_init_attr_ex->cap struct with the actual QP values of the QP that
 * was created; the values will be greater than or equal to the values requested."
 */
vt_cq_test(caps_come_back_as_they_are, 4)
{
	static const struct ibv_qp_cap wanted[] = {
		{ 1, 1, 1, 1, 0 }, { 3, 5, 2, 3, 17 }, { 100, 0, 1, 0, 0 }, { 0, 100, 0, 1, 0 },
		{ 1000, 999, 16, 30, 236 },
	};

	for (unsigned i = 0; i < VT_TYPES * VT_COUNT(wanted); i++) {
		struct ibv_qp_init_attr_ex init = init_of(cq, vt_types[i % VT_TYPES]);
		const struct ibv_qp_cap *w = &wanted[i / VT_TYPES];
		struct ibv_qp_init_attr told;
		struct ibv_qp_attr attr;
		struct ibv_qp *qp;

		init.comp_mask |= IBV_QP_INIT_ATTR_CREATE_FLAGS;
		init.cap = *w;
		qp = made(&init);
		assert_true(init.cap.max_send_wr >= w->max_send_wr);
		assert_true(init.cap.max_recv_wr >= w->max_recv_wr);
		assert_true(init.cap.max_send_sge >= w->max_send_sge);
		assert_true(init.cap.max_recv_sge >= w->max_recv_sge);
		assert_true(init.cap.max_inline_data >= w->max_inline_data);
		assert_int_equal(ibv_query_qp(qp, &attr, IBV_QP_CAP, &told), 0);
		assert_memory_equal(&attr.cap, &init.cap, sizeof(attr.cap));
		assert_memory_equal(&told.cap, &init.cap, sizeof(attr.cap));
		assert_int_equal(ibv_destroy_qp(qp), 0);
	}
}

/* As many as were granted can be posted, and one more of them cannot. */
vt_test(the_queues_hold_what_was_granted)
{
	struct vt_options opt = { .type = IBV_QPT_UD };
	struct ibv_qp_init_attr_ex init = init_of(NULL, IBV_QPT_UD);
	struct vt_end end;
	struct vt_wr w;
	uint32_t i;

	init.comp_mask |= IBV_QP_INIT_ATTR_CREATE_FLAGS;
	init.cap = (struct ibv_qp_cap){ 5, 6, 1, 1, 33 };
	end_open(&end, &opt, &init);
	for (i = 0; i < init.cap.max_recv_wr; i++)
		assert_int_equal(vt_recv_at(&end, i, 0, 1024), 0);
	assert_int_equal(vt_recv_at(&end, 77, 0, 1024), ENOMEM);
	vt_wr(&w, IBV_WR_SEND, &end, &end, init.cap.max_inline_data);
	w.wr.send_flags |= IBV_SEND_INLINE;
	w.wr.wr.ud.remote_qpn = 0x3fff; /* nobody's */
	for (i = 0; i < init.cap.max_send_wr; i++)
		vt_post(&end, &w);
	assert_int_equal(vt_try(&end, &w), ENOMEM);
	for (i = 0; i < init.cap.max_send_wr; i++)
		vt_expect(end.cq, 1, IBV_WC_SUCCESS);
	w.sge.length++;
	assert_int_equal(vt_try(&end, &w), EINVAL);
	w.sge.length--;
	w.wr.num_sge = (int)init.cap.max_send_sge + 1;
	assert_int_equal(vt_try(&end, &w), EINVAL);
	vt_end_close(&end);
}

/* create_ex: "The attributes max_recv_wr and max_recv_sge are ignored by ibv_create_qp_ex()" */
vt_cq_test(with_an_srq_receive_caps_do_not_matter, 4)
{
	static const uint32_t values[] = { 0, 1, 1u << 20, UINT32_MAX };
	struct ibv_srq_init_attr srq_init = { .attr = { .max_wr = 4, .max_sge = 1 } };
	struct ibv_srq *srq = vt_made(ibv_create_srq(vt.pd, &srq_init));

	for (int i = 0; i < 2 * 4 * 4; i++) {
		struct ibv_qp_init_attr_ex init = init_of(cq, i & 1 ? IBV_QPT_RC : IBV_QPT_UD);

		init.comp_mask |= IBV_QP_INIT_ATTR_CREATE_FLAGS;
		init.srq = srq;
		init.cap.max_recv_wr = values[i / 2 % 4];
		init.cap.max_recv_sge = values[i / 8];
		assert_int_equal(ibv_destroy_qp(made(&init)), 0);
	}
	assert_int_equal(ibv_destroy_srq(srq), 0);
}

vt_cq_test(too_much_is_refused, 4)
{
	static const struct ibv_qp_cap too_much[] = {
		{ 1u << 20, 1, 1, 1, 0 }, { 1, UINT32_MAX, 1, 1, 0 }, { 1, 1, 1000, 1, 0 },
		{ 1, 1, 1, UINT32_MAX, 0 }, { 1, 1, 1, 1, 1u << 20 },
	};

	for (unsigned i = 0; i < 2 * VT_TYPES * VT_COUNT(too_much); i++) {
		struct ibv_qp_init_attr_ex init = init_of(cq, vt_types[i / 2 % VT_TYPES]);

		init.cap = too_much[i / 2 / VT_TYPES];
		init.comp_mask |= i & 1 ? IBV_QP_INIT_ATTR_SEND_OPS_FLAGS
					: IBV_QP_INIT_ATTR_CREATE_FLAGS;
		expect_refused(&init, EINVAL);
	}
}

/* --- the end --- */

/* create_ex: "Check the QP number (qp_num) in the returned QP." */
/* create_ex: "ibv_destroy_qp() destroys the QP qp." */
/*
 * create_ex: "ibv_destroy_qp() returns 0 on success, or the value of errno on failure (which
 * indicates the failure reason)."
 */
vt_cq_test(every_qp_has_a_number_until_it_is_destroyed, 4)
{
	enum { COUNT = 100 };
	struct ibv_qp *qps[COUNT];

	for (int i = 0; i < COUNT; i++) {
		struct ibv_qp_init_attr_ex init = init_of(cq, vt_types[i % VT_TYPES]);

		init.comp_mask |= IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
		init.send_ops_flags = IBV_QP_EX_WITH_SEND;
		qps[i] = made(&init);
		assert_in_range(qps[i]->qp_num, 2, 0xfffffe); /* 0 and 1 are special */
		for (int k = 0; k < i; k++)
			assert_int_not_equal(qps[i]->qp_num, qps[k]->qp_num);
	}
	assert_int_equal(ibv_destroy_cq(cq), EBUSY);
	for (int i = 0; i < COUNT; i++)
		assert_int_equal(ibv_destroy_qp(qps[i]), 0);
}
