/* SPDX-License-Identifier: BSD-2-Clause */
/* QPs that spread what they receive: what they can be asked, and where a frame goes. */
#include "nic/control/qp_dv.h"
#include "nic/service/eth/rss.h"
#include "nic/service/eth/segment.h"
#include "wq_fixture.h"

enum { PLACES = 8 };

static uint8_t key[VB_TOEPLITZ_KEY_BYTES] = {
	0x6d, 0x5a, 0x56, 0xda, 0x25, 0x5b, 0x0e, 0xc2, 0x41, 0x67, 0x25, 0x3d, 0x43, 0xa3,
	0x8f, 0xb0, 0xd0, 0xca, 0x2b, 0xcb, 0xae, 0x7b, 0x30, 0xb4, 0x77, 0xcb, 0x2d, 0xa3,
	0x80, 0x30, 0xf2, 0x0c, 0x6a, 0x42, 0xb7, 0x3b, 0xbe, 0xac, 0x01, 0xfa,
};

static struct {
	struct vb_cq *cq;
	struct vb_rwq *wq[PLACES];
	struct vb_rwq_table *table, *single;
} rss;

static int begin_rss(void **state)
{
	struct ibv_rwq_ind_table_init_attr attr = {.log_ind_tbl_size = 3};
	struct ibv_wq *places[PLACES];

	begin(state);
	side_use_segment(&fix);
	rss.cq = make_cq(64, NULL);
	for (unsigned i = 0; i < PLACES; i++) {
		rss.wq[i] = make_wq(rss.cq, 0);
		places[i] = &rss.wq[i]->ibv;
	}
	attr.ind_tbl = places;
	assert_int_equal(vb_rwq_table_create(fix.ctx, &attr, &rss.table), 0);
	attr.log_ind_tbl_size = 0;
	assert_int_equal(vb_rwq_table_create(fix.ctx, &attr, &rss.single), 0);
	return 0;
}

static int end_rss(void **state)
{
	assert_int_equal(vb_rwq_table_destroy(rss.single), 0);
	assert_int_equal(vb_rwq_table_destroy(rss.table), 0);
	for (unsigned i = 0; i < PLACES; i++)
		drop_wq(rss.wq[i]);
	drop_cq(rss.cq);
	return end(state);
}

#define WITH_TABLE(name) TEST_BETWEEN(name, begin_rss, end_rss)

static struct ibv_qp_init_attr_ex init_of(uint64_t fields)
{
	return (struct ibv_qp_init_attr_ex){
		.qp_type = IBV_QPT_RAW_PACKET,
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_IND_TABLE |
			     IBV_QP_INIT_ATTR_RX_HASH | IBV_QP_INIT_ATTR_CREATE_FLAGS,
		.pd = &fix.pd->ibv,
		.rwq_ind_tbl = &rss.table->ibv,
		.rx_hash_conf = {.rx_hash_function = IBV_RX_HASH_FUNC_TOEPLITZ,
				 .rx_hash_key_len = sizeof(key),
				 .rx_hash_key = key,
				 .rx_hash_fields_mask = fields},
	};
}

static int try_fields(uint64_t fields, struct vb_rwq_table *table)
{
	struct ibv_qp_init_attr_ex attr = init_of(fields);
	struct vb_qp *qp;
	int err;

	attr.rwq_ind_tbl = &table->ibv;
	err = vb_qp_create_ex(&attr, &qp);
	if (!err)
		drop_qp(qp);
	return err;
}

static int count_bits(uint64_t mask)
{
	return __builtin_popcountll(mask);
}

/* Every mask there is: one protocol of the network, one behind it. */
WITH_TABLE(test_every_mask)
{
	for (uint64_t low = 0; low < 1 << 9; low++) {
		int l3 = !!(low & 3) + !!(low & 12);
		int l4 = !!(low & 0x30) + !!(low & 0xc0) + !!(low & 0x100);
		bool good = l3 <= 1 && l4 <= 1;

		assert_int_equal(try_fields(low, rss.table), good && low ? 0 : EINVAL);
		assert_int_equal(try_fields(low, rss.single), good ? 0 : EINVAL);
		assert_int_equal(try_fields(low | IBV_RX_HASH_INNER, rss.single),
				 good && low ? 0 : EINVAL);
	}
	for (unsigned bit = 9; bit < 64; bit++) {
		if (bit != 31)
			assert_int_equal(try_fields(1ull << bit | 3, rss.table), EOPNOTSUPP);
	}
	assert_int_equal(atomic_load(&rss.table->users), 0);
}

WITH_TABLE(test_what_is_refused)
{
	const struct ibv_qp_init_attr_ex good = init_of(IBV_RX_HASH_SRC_IPV4);
	struct ibv_context other = {.device = NULL};
	struct ibv_rwq_ind_table stranger = {.context = &other};
	struct ibv_qp_init_attr_ex attr;
	struct vb_qp *qp;

#define REFUSED(err, change)                                        \
	do {                                                        \
		attr = good;                                        \
		change;                                             \
		assert_int_equal(vb_qp_create_ex(&attr, &qp), err); \
	} while (0)
	REFUSED(EOPNOTSUPP, attr.qp_type = IBV_QPT_UD);
	REFUSED(EOPNOTSUPP, attr.comp_mask |= 1u << 20);
	REFUSED(EOPNOTSUPP, attr.rx_hash_conf.rx_hash_function = 0);
	REFUSED(EOPNOTSUPP, attr.rx_hash_conf.rx_hash_function = 2);
	REFUSED(EINVAL, attr.comp_mask &= ~(uint32_t)IBV_QP_INIT_ATTR_PD);
	REFUSED(EINVAL, attr.comp_mask &= ~(uint32_t)IBV_QP_INIT_ATTR_IND_TABLE);
	REFUSED(EINVAL, attr.comp_mask &= ~(uint32_t)IBV_QP_INIT_ATTR_RX_HASH);
	REFUSED(EINVAL, attr.comp_mask |= IBV_QP_INIT_ATTR_MAX_TSO_HEADER);
	REFUSED(EINVAL, attr.comp_mask |= IBV_QP_INIT_ATTR_SEND_OPS_FLAGS);
	REFUSED(EINVAL, attr.comp_mask |= IBV_QP_INIT_ATTR_XRCD);
	REFUSED(EINVAL, attr.create_flags = IBV_QP_CREATE_CVLAN_STRIPPING);
	REFUSED(EINVAL, attr.pd = NULL);
	REFUSED(EINVAL, attr.rwq_ind_tbl = NULL);
	REFUSED(EINVAL, attr.rwq_ind_tbl = &stranger);
	REFUSED(EINVAL, attr.send_cq = &rss.cq->ibv.cq);
	REFUSED(EINVAL, attr.recv_cq = &rss.cq->ibv.cq);
	REFUSED(EINVAL, attr.srq = (struct ibv_srq *)8);
	REFUSED(EINVAL, attr.cap.max_send_wr = 1);
	REFUSED(EINVAL, attr.cap.max_recv_wr = 1);
	REFUSED(EINVAL, attr.cap.max_recv_sge = 1);
	REFUSED(EINVAL, attr.rx_hash_conf.rx_hash_key_len = 39);
	REFUSED(EINVAL, attr.rx_hash_conf.rx_hash_key_len = 0);
	REFUSED(EINVAL, attr.rx_hash_conf.rx_hash_key = NULL);
	/* Where there is no segment, there is no such QP. */
	fix.nic->host.segment = NULL;
	REFUSED(EOPNOTSUPP, (void)attr);
}

static struct vb_qp *make(uint64_t fields)
{
	struct ibv_qp_init_attr_ex attr = init_of(fields);
	struct vb_qp *qp;

	assert_int_equal(vb_qp_create_ex(&attr, &qp), 0);
	return qp;
}

/* It has no queues, no state, and nothing to be asked; what it needs stays. */
WITH_TABLE(test_what_it_is)
{
	struct vb_qp *qp = make(IBV_RX_HASH_SRC_IPV4);
	struct ibv_send_wr send = {.opcode = IBV_WR_SEND}, *bad_send;
	struct ibv_recv_wr recv = {.num_sge = 0}, *bad_recv;
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	assert_ptr_equal(vb_nic_qp_find(fix.nic, qp->ibv.qp.qp_num), qp);
	assert_null(qp->ibv.qp.send_cq);
	assert_null(qp->ibv.qp.recv_cq);
	assert_int_equal(set_state(qp, IBV_QPS_INIT), EOPNOTSUPP);
	assert_int_equal(vb_qp_query(qp, &attr, &init), EOPNOTSUPP);
	assert_int_equal(vb_qp_post_send(qp, &send, &bad_send), EINVAL);
	assert_ptr_equal(bad_send, &send);
	assert_int_equal(vb_qp_post_recv(qp, &recv, &bad_recv), EINVAL);
	assert_ptr_equal(bad_recv, &recv);
	assert_int_equal(vb_rwq_table_destroy(rss.table), EBUSY);
	assert_int_equal(vb_pd_destroy(fix.pd), EBUSY);
	/* The key was copied, and the device may fail beside it. */
	vb_nic_fail(fix.nic);
	drop_qp(qp);
	assert_event(IBV_EVENT_DEVICE_FATAL);
}

static struct vb_rwq *pick(struct vb_qp *qp, const struct frame *frame, uint32_t *hash)
{
	struct vb_eth_frame parsed;

	assert_true(vb_eth_parse(&parsed, frame->octets, frame->bytes));
	return vb_rss_pick(qp, &parsed, hash);
}

/* The published value of 66.9.149.187, 2794 to 161.142.100.80, 1766 (toeplitz_test.c). */
WITH_TABLE(test_pick)
{
	struct vb_qp *qp = make(IBV_RX_HASH_SRC_IPV4 | IBV_RX_HASH_DST_IPV4 |
				IBV_RX_HASH_SRC_PORT_UDP | IBV_RX_HASH_DST_PORT_UDP);
	struct frame frame;
	uint32_t hash;

	frame_make(&frame, 66u << 24 | 9 << 16 | 149 << 8 | 187, 2794);
	vb_be32_put(frame.octets + frame.ip_at[0] + 16, 161u << 24 | 142 << 16 | 100 << 8 | 80);
	vb_be16_put(frame.octets + frame.ip_at[0] + 22, 1766);
	assert_ptr_equal(pick(qp, &frame, &hash), rss.wq[0x51ccc178 & 7]);
	assert_int_equal(hash, 0x51ccc178);
	/* What is not UDP has no ports to hash; what is not IPv4 nothing at all. */
	frame.octets[frame.ip_at[0] + 9] = 47;
	assert_ptr_equal(pick(qp, &frame, &hash), rss.wq[0x323e8fc2 & 7]);
	vb_be16_put(frame.octets + 16, 0x88b5);
	assert_ptr_equal(pick(qp, &frame, &hash), rss.wq[0]);
	assert_int_equal(hash, 0);
	drop_qp(qp);
}

/* Frames of one flow stay together, and many flows reach all queues. */
WITH_TABLE(test_spreads)
{
	struct vb_qp *qp = make(IBV_RX_HASH_SRC_IPV4);
	unsigned reached = 0;
	struct frame frame;
	uint32_t hash;

	for (uint32_t src = 1; src < 100; src++) {
		struct vb_rwq *wq;

		frame_make(&frame, src, 1);
		wq = pick(qp, &frame, &hash);
		for (unsigned i = 0; i < PLACES; i++)
			reached |= (wq == rss.wq[i]) << i;
		frame_make(&frame, src, 2);
		assert_ptr_equal(pick(qp, &frame, &hash), wq);
	}
	assert_int_equal(count_bits(reached), PLACES);
	drop_qp(qp);
}

/* mlx5dv_create_qp(3): what is inside of tunnels, and own frames. */
WITH_TABLE(test_flags_of_mlx5)
{
	static const uint32_t flags = VB_QP_TUNNEL_OFFLOADS | VB_QP_LOOPBACK_UC;
	const struct vb_qp_dv_attr dv = {.flags = flags | VB_QP_SCATTER_TO_CQE_OFF};
	struct ibv_qp_init_attr_ex attr = init_of(IBV_RX_HASH_SRC_IPV4);
	struct vb_qp *qp;

	assert_int_equal(vb_qp_create_dv(&attr, &dv, &qp), 0);
	assert_int_equal(qp->made.dv_flags & (flags | VB_QP_LOOPBACK_MC), flags);
	drop_qp(qp);
}

WITH_TABLE(test_query)
{
	struct ibv_device_attr_ex attr;

	vb_nic_query_device_ex(fix.nic, &attr);
	assert_int_equal(attr.rss_caps.supported_qpts, 1 << IBV_QPT_RAW_PACKET);
	assert_int_equal(attr.rss_caps.rx_hash_function, IBV_RX_HASH_FUNC_TOEPLITZ);
	assert_int_equal(attr.rss_caps.rx_hash_fields_mask, 0x1ff | IBV_RX_HASH_INNER);
	assert_int_equal(attr.rss_caps.max_rwq_indirection_table_size, 1 << VB_RWQ_TABLE_LOG_MAX);
	assert_int_equal(attr.rss_caps.max_rwq_indirection_tables, VB_RWQ_TABLES_MAX);
	assert_int_equal(attr.max_wq_type_rq, VB_RWQS_MAX);
	assert_int_equal(attr.tso_caps.supported_qpts, 1 << IBV_QPT_RAW_PACKET);
	assert_int_equal(attr.tso_caps.max_tso, VB_TSO_BYTES_MAX);
	assert_int_equal(attr.raw_packet_caps, 15);
	fix.nic->host.segment = NULL;
	vb_nic_query_device_ex(fix.nic, &attr);
	assert_int_equal(attr.rss_caps.supported_qpts | attr.tso_caps.supported_qpts, 0);
	assert_int_equal(attr.max_wq_type_rq | attr.raw_packet_caps | attr.tso_caps.max_tso, 0);
}
