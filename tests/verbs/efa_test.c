/* SPDX-License-Identifier: BSD-2-Clause */
#include "lib.h"

#include <infiniband/efadv.h>

/* EFA direct verbs, efadv_*(3), on a device of the persona efa, and on one that is none. */

/* What older headers lack. */
struct newer_sq_depth {
	uint64_t comp_mask;
	uint32_t flags, max_send_sge, max_rdma_sge, max_inline_data;
};
struct newer_rq_depth {
	uint64_t comp_mask;
	uint32_t max_recv_sge;
};
struct newer_mr {
	uint64_t comp_mask;
	uint16_t ic_id_validity, ids[3];
};
struct newer_qp {
	uint64_t comp_mask;
	void (*wr_set_processing_hints)(struct newer_qp *qp, uint32_t hints);
};
struct newer_qp_init {
	uint64_t comp_mask;
	uint32_t driver_qp_type;
	uint16_t flags;
	uint8_t sl, reserved;
	uint64_t wr_flags;
};
struct newer_cq {
	uint64_t comp_mask;
	int (*wc_read_sgid)(struct newer_cq *cq, union ibv_gid *sgid);
	bool (*wc_is_unsolicited)(struct newer_cq *cq);
};
enum { NEWER_UNSOLICITED = 1 << 0, NEWER_WITH_IS_UNSOLICITED = 1 << 1, NEWER_CAP = 1 << 4 };
struct efadv_mr_attr;
struct efadv_cq_attr;
struct efadv_wq_attr;
int efadv_get_max_sq_depth(struct ibv_context *ctx, struct newer_sq_depth *attr, uint32_t inlen);
int efadv_get_max_rq_depth(struct ibv_context *ctx, struct newer_rq_depth *attr, uint32_t inlen);
extern int efadv_query_mr(struct ibv_mr *mr, struct efadv_mr_attr *attr, uint32_t inlen);
extern int efadv_query_cq(struct ibv_cq *cq, struct efadv_cq_attr *attr, uint32_t inlen);
extern int efadv_query_qp_wqs(struct ibv_qp *qp, struct efadv_wq_attr *sq, struct efadv_wq_attr *rq,
			      uint32_t inlen);
struct newer_qp *efadv_qp_from_ibv_qp_ex(struct ibv_qp_ex *qp);
struct ibv_comp_cntr *efadv_create_comp_cntr(struct ibv_context *ctx, void *attr, void *efa_attr,
					     uint32_t inlen);

static bool is_efa(void)
{
	const char *persona = getenv("VERBATIM_PERSONA");

	return persona && !strcmp(persona, "efa");
}

static bool is_none(void)
{
	return !is_efa();
}

#define efa_test(f) vt_case(f, vt_setup, vt_teardown, is_efa)

static struct ibv_qp_init_attr_ex init_attr(struct ibv_cq *cq, enum ibv_qp_type type)
{
	return (struct ibv_qp_init_attr_ex){
		.send_cq = cq,
		.recv_cq = cq,
		.cap = {.max_send_wr = 16, .max_recv_wr = 16, .max_send_sge = 1, .max_recv_sge = 1},
		.qp_type = type,
		.sq_sig_all = 1,
		.comp_mask = IBV_QP_INIT_ATTR_PD,
		.pd = vt.pd,
	};
}

static struct ibv_ah *own_ah(void)
{
	struct ibv_ah_attr attr = {
		.is_global = 1,
		.grh = {.dgid = vt.gid, .sgid_index = 0, .hop_limit = 1},
		.port_num = 1,
	};

	return vt_made(ibv_create_ah(vt.pd, &attr));
}

/* --- a device that is none --- */

vt_case(every_function_refuses_on_another_device, vt_setup, vt_teardown, is_none)
{
	struct efadv_device_attr device;
	struct newer_sq_depth sq = {0};
	struct newer_rq_depth rq = {0};
	struct newer_mr mr_attr;
	struct efadv_ah_attr ah_attr;
	struct ibv_cq_init_attr_ex cq_attr = {.cqe = 4};
	struct efadv_cq_init_attr efa_cq = {0};
	struct efadv_qp_init_attr efa_qp = {0};
	struct ibv_cq *cq = vt_cq(4, NULL);
	struct ibv_qp_init_attr_ex attr = init_attr(cq, IBV_QPT_DRIVER);
	struct ibv_mr *mr = vt_mr(vt.pd, &device, sizeof(device), 0);
	struct ibv_ah *ah = own_ah();

	assert_int_equal(efadv_query_device(vt.ctx, &device, sizeof(device)), EOPNOTSUPP);
	assert_int_equal(efadv_get_max_sq_depth(vt.ctx, &sq, sizeof(sq)), -EOPNOTSUPP);
	assert_int_equal(efadv_get_max_rq_depth(vt.ctx, &rq, sizeof(rq)), -EOPNOTSUPP);
	assert_int_equal(efadv_query_mr(mr, (void *)&mr_attr, sizeof(mr_attr)), EOPNOTSUPP);
	assert_int_equal(efadv_query_ah(ah, &ah_attr, sizeof(ah_attr)), EOPNOTSUPP);
	vt_refused(EOPNOTSUPP, efadv_create_cq(vt.ctx, &cq_attr, &efa_cq, sizeof(efa_cq)));
	vt_refused(EOPNOTSUPP, efadv_create_qp_ex(vt.ctx, &attr, &efa_qp, sizeof(efa_qp)));
	vt_refused(EOPNOTSUPP, efadv_create_driver_qp(vt.pd, (struct ibv_qp_init_attr *)&attr, 0));
	assert_int_equal(ibv_destroy_ah(ah), 0);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	assert_int_equal(ibv_destroy_cq(cq), 0);
}

/* --- the device --- */

/* efadv_query_device(3): "Compatibility is handled using the comp_mask and inlen fields." */
efa_test(the_device_says_what_it_has)
{
	struct {
		struct efadv_device_attr attr;
		uint8_t behind[64];
	} all;
	struct ibv_device_attr device = vt_device();
	const uint32_t first = offsetof(struct efadv_device_attr, device_caps);

	memset(&all, 0xa5, sizeof(all));
	assert_int_equal(efadv_query_device(vt.ctx, &all.attr, sizeof(all)), 0);
	assert_int_equal(all.attr.comp_mask, 0);
	assert_int_equal(all.attr.max_sq_wr, device.max_qp_wr);
	assert_int_equal(all.attr.max_rq_wr, device.max_qp_wr);
	assert_int_equal(all.attr.max_sq_sge, device.max_sge);
	assert_int_equal(all.attr.max_rq_sge, device.max_sge);
	assert_int_equal(all.attr.inline_buf_size, 32);
	assert_true(all.attr.device_caps & EFADV_DEVICE_ATTR_CAPS_RDMA_READ);
	assert_true(all.attr.device_caps & EFADV_DEVICE_ATTR_CAPS_RNR_RETRY);
	assert_true(all.attr.device_caps & EFADV_DEVICE_ATTR_CAPS_CQ_WITH_SGID);
	assert_true(all.attr.device_caps & NEWER_CAP);
	assert_int_equal(all.attr.max_rdma_size, 1 << 30);
	assert_true(vt_is_octet(all.behind, sizeof(all.behind), 0));
	/* A program with an older header has less room. */
	memset(&all, 0xa5, sizeof(all));
	assert_int_equal(efadv_query_device(vt.ctx, &all.attr, first), 0);
	assert_int_equal(all.attr.inline_buf_size, 32);
	assert_true(vt_is_octet((uint8_t *)&all + first, sizeof(all) - first, 0xa5));
	assert_int_equal(efadv_query_device(vt.ctx, &all.attr, 8), EINVAL);
	assert_int_equal(device.vendor_id, 0x1d0f);
	assert_int_equal(device.max_srq, 0);
	assert_int_equal(device.max_mw, 0);
	assert_int_equal(device.atomic_cap, IBV_ATOMIC_NONE);
}

/* As EFA's kernel driver says it. */
efa_test(the_port_has_no_link_layer_and_one_gid)
{
	struct ibv_port_attr port;
	union ibv_gid gid;

	assert_int_equal(ibv_query_port(vt.ctx, 1, &port), 0);
	assert_int_equal(port.link_layer, IBV_LINK_LAYER_UNSPECIFIED);
	assert_int_equal(port.gid_tbl_len, 1);
	assert_int_equal(port.max_msg_sz, 8928);
	assert_int_equal(ibv_query_gid(vt.ctx, 1, 0, &gid), 0);
	assert_memory_equal(&gid, &vt.gid, sizeof(gid));
}

/* efadv_get_max_sq_depth(3): "or the negative value of errno on failure" */
efa_test(depths_are_told_for_what_is_possible)
{
	struct newer_sq_depth sq = {.max_send_sge = 2, .max_rdma_sge = 1, .max_inline_data = 32};
	struct newer_rq_depth rq = {.max_recv_sge = 2};

	assert_int_equal(efadv_get_max_sq_depth(vt.ctx, &sq, sizeof(sq)), vt_device().max_qp_wr);
	assert_int_equal(efadv_get_max_rq_depth(vt.ctx, &rq, sizeof(rq)), vt_device().max_qp_wr);
	sq.max_inline_data = 33;
	assert_int_equal(efadv_get_max_sq_depth(vt.ctx, &sq, sizeof(sq)), -EINVAL);
	sq = (struct newer_sq_depth){.flags = 1}; /* EFADV_SQ_DEPTH_ATTR_INLINE_WRITE */
	assert_int_equal(efadv_get_max_sq_depth(vt.ctx, &sq, sizeof(sq)), -EOPNOTSUPP);
	sq = (struct newer_sq_depth){.comp_mask = 1};
	assert_int_equal(efadv_get_max_sq_depth(vt.ctx, &sq, sizeof(sq)), -EINVAL);
	rq.max_recv_sge = 100;
	assert_int_equal(efadv_get_max_rq_depth(vt.ctx, &rq, sizeof(rq)), -EINVAL);
	assert_int_equal(efadv_get_max_rq_depth(vt.ctx, &rq, 8), -EINVAL);
}

/* efadv_query_mr(3): "ic_id_validity: Validity mask of interconnect id fields" */
efa_test(memory_has_no_interconnect)
{
	uint8_t octets[64];
	struct newer_mr attr;
	struct ibv_mr *mr = vt_mr(vt.pd, octets, sizeof(octets), 0);

	memset(&attr, 0xa5, sizeof(attr));
	assert_int_equal(efadv_query_mr(mr, (void *)&attr, sizeof(attr)), 0);
	assert_int_equal(attr.ic_id_validity, 0);
	assert_int_equal(efadv_query_mr(mr, (void *)&attr, 8), EINVAL);
	assert_int_equal(ibv_dereg_mr(mr), 0);
}

/* efadv_query_ah(3) */
efa_test(handles_for_one_address_have_one_number)
{
	struct ibv_ah *a = own_ah(), *b = own_ah();
	struct efadv_ah_attr first, second;

	assert_int_equal(efadv_query_ah(a, &first, sizeof(first)), 0);
	assert_int_equal(efadv_query_ah(b, &second, sizeof(second)), 0);
	assert_int_equal(first.ahn, second.ahn);
	assert_true(first.ahn != 0xffff);
	assert_int_equal(efadv_query_ah(a, &first, 8), EINVAL);
	assert_int_equal(ibv_destroy_ah(a), 0);
	assert_int_equal(ibv_destroy_ah(b), 0);
}

/* --- CQs and QPs --- */

efa_test(completions_have_what_efa_knows)
{
	struct ibv_cq_init_attr_ex attr = {.cqe = 4, .wc_flags = IBV_WC_STANDARD_FLAGS};
	struct efadv_cq_init_attr efa = {.wc_flags = EFADV_WC_EX_WITH_SGID};
	struct ibv_cq_ex *cq = vt_made(efadv_create_cq(vt.ctx, &attr, &efa, sizeof(efa)));

	assert_non_null(efadv_cq_from_ibv_cq_ex(cq));
	assert_int_equal(ibv_destroy_cq(ibv_cq_ex_to_cq(cq)), 0);
	efa.wc_flags = 4; /* the first that nobody knows */
	vt_refused(EOPNOTSUPP, efadv_create_cq(vt.ctx, &attr, &efa, sizeof(efa)));
	efa = (struct efadv_cq_init_attr){.comp_mask = 1};
	vt_refused(EINVAL, efadv_create_cq(vt.ctx, &attr, &efa, sizeof(efa)));
	efa.comp_mask = 0;
	vt_refused(EINVAL, efadv_create_cq(vt.ctx, &attr, &efa, 8));
	attr.wc_flags |= IBV_WC_EX_WITH_CVLAN;
	vt_refused(EOPNOTSUPP, efadv_create_cq(vt.ctx, &attr, &efa, sizeof(efa)));
}

/* efadv_create_qp_ex(3), efadv_create_driver_qp(3) */
efa_test(qps_are_of_two_types)
{
	struct ibv_cq *cq = vt_cq(4, NULL);
	struct ibv_qp_init_attr_ex attr = init_attr(cq, IBV_QPT_UD);
	struct newer_qp_init efa = {0};
	struct ibv_qp *qp;

#define MAKE() efadv_create_qp_ex(vt.ctx, &attr, (void *)&efa, sizeof(efa))
	qp = vt_made(MAKE());
	assert_int_equal(ibv_destroy_qp(qp), 0);
	attr = init_attr(cq, IBV_QPT_DRIVER);
	attr.comp_mask |= IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
	attr.send_ops_flags = IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_RDMA_READ;
	efa.wr_flags = 1; /* EFADV_WR_EX_WITH_PROCESSING_HINTS */
	qp = vt_made(MAKE());
	assert_non_null(
		vt_made(efadv_qp_from_ibv_qp_ex(ibv_qp_to_qp_ex(qp)))->wr_set_processing_hints);
	assert_int_equal(efadv_query_qp_wqs(qp, NULL, NULL, 0), EOPNOTSUPP);
	assert_int_equal(ibv_destroy_qp(qp), 0);
	attr.send_ops_flags = IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD;
	vt_refused(EOPNOTSUPP, MAKE());
	attr = init_attr(cq, IBV_QPT_DRIVER);
	efa = (struct newer_qp_init){.driver_qp_type = 1};
	vt_refused(EOPNOTSUPP, MAKE());
	efa = (struct newer_qp_init){.reserved = 1};
	vt_refused(EINVAL, MAKE());
	efa = (struct newer_qp_init){.flags = 2}; /* INLINE_WRITE, which the device does not have */
	vt_refused(EOPNOTSUPP, MAKE());
	efa = (struct newer_qp_init){0};
	attr.comp_mask = 0;
	vt_refused(EINVAL, MAKE());
	attr = init_attr(cq, IBV_QPT_RC);
	vt_refused(EOPNOTSUPP, MAKE());
	vt_refused(EOPNOTSUPP, ibv_create_qp(vt.pd, (struct ibv_qp_init_attr *)&attr));
	vt_refused(EINVAL, efadv_create_driver_qp(vt.pd, (struct ibv_qp_init_attr *)&attr, 0));
	attr = init_attr(cq, IBV_QPT_UD);
	efa.flags = NEWER_UNSOLICITED;
	vt_refused(EOPNOTSUPP, MAKE());
	efa.flags = 0;
	attr = init_attr(cq, IBV_QPT_DRIVER);
	attr.cap.max_send_sge = 3;
	vt_refused(EINVAL, MAKE());
	assert_int_equal(efadv_query_cq(cq, NULL, 0), EOPNOTSUPP);
	vt_refused(EOPNOTSUPP, efadv_create_comp_cntr(vt.ctx, NULL, NULL, 0));
	assert_int_equal(ibv_destroy_cq(cq), 0);
}

/* Programs keep 16 bits of a QPN, so QPs differ in these: in as many as max_qp needs. */
efa_test(sixteen_bits_are_enough_for_a_qpn)
{
	struct ibv_cq *cq = vt_cq(4, NULL);
	struct ibv_qp *qp[64];
	bool seen[64] = {false};
	int count = 0;

	for (;;) {
		struct ibv_qp_init_attr_ex attr =
			init_attr(cq, count % 2 ? IBV_QPT_DRIVER : IBV_QPT_UD);
		struct newer_qp_init efa = {0};

		assert_true(count < 64);
		qp[count] = efadv_create_qp_ex(vt.ctx, &attr, (void *)&efa, sizeof(efa));
		if (!qp[count])
			break;
		assert_false(seen[qp[count]->qp_num % 64]);
		seen[qp[count++]->qp_num % 64] = true;
	}
	assert_int_equal(errno, ENOMEM);
	assert_true(count >= vt_device().max_qp);
	while (count)
		assert_int_equal(ibv_destroy_qp(qp[--count]), 0);
	assert_int_equal(ibv_destroy_cq(cq), 0);
}

/* --- SRD, and UD --- */

struct srd {
	struct ibv_cq_ex *cq;
	struct ibv_qp *qp;
	struct ibv_qp_ex *ex;
	struct ibv_mr *mr;
	struct ibv_ah *ah;
	uint8_t octets[256];
};

static void open_as(struct srd *s, enum ibv_qp_type type, uint16_t flags)
{
	struct ibv_cq_init_attr_ex cq_attr = {.cqe = 16, .wc_flags = IBV_WC_STANDARD_FLAGS};
	struct efadv_cq_init_attr efa_cq = {.wc_flags = EFADV_WC_EX_WITH_SGID |
							NEWER_WITH_IS_UNSOLICITED};
	struct newer_qp_init efa = {.flags = flags};
	struct ibv_qp_init_attr_ex attr;
	struct ibv_qp_attr to = {.qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = VT_QKEY};
	bool is_srd = type == IBV_QPT_DRIVER;

	memset(s, 0, sizeof(*s));
	s->cq = vt_made(efadv_create_cq(vt.ctx, &cq_attr, &efa_cq, sizeof(efa_cq)));
	attr = init_attr(ibv_cq_ex_to_cq(s->cq), type);
	attr.comp_mask |= IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
	attr.send_ops_flags = IBV_QP_EX_WITH_SEND;
	if (is_srd)
		attr.send_ops_flags |= IBV_QP_EX_WITH_RDMA_READ |
				       IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM;
	s->qp = vt_made(efadv_create_qp_ex(vt.ctx, &attr, (void *)&efa, sizeof(efa)));
	s->ex = ibv_qp_to_qp_ex(s->qp);
	s->mr = vt_mr(vt.pd, s->octets, sizeof(s->octets),
		      IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE);
	s->ah = own_ah();
	assert_int_equal(ibv_modify_qp(s->qp, &to,
				       IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
					       IBV_QP_QKEY),
			 0);
	to.qp_state = IBV_QPS_RTR;
	assert_int_equal(ibv_modify_qp(s->qp, &to, IBV_QP_STATE), 0);
	to.qp_state = IBV_QPS_RTS;
	to.rnr_retry = 3;
	assert_int_equal(ibv_modify_qp(s->qp, &to,
				       IBV_QP_STATE | IBV_QP_SQ_PSN |
					       (is_srd ? IBV_QP_RNR_RETRY : 0)),
			 0);
}

static void srd_open(struct srd *s)
{
	open_as(s, IBV_QPT_DRIVER, 0);
}

static void srd_open_unsolicited(struct srd *s)
{
	open_as(s, IBV_QPT_DRIVER, NEWER_UNSOLICITED);
}

static void ud_open(struct srd *s)
{
	open_as(s, IBV_QPT_UD, 0);
}

static void srd_close(struct srd *s)
{
	assert_int_equal(ibv_destroy_ah(s->ah), 0);
	assert_int_equal(ibv_destroy_qp(s->qp), 0);
	assert_int_equal(ibv_dereg_mr(s->mr), 0);
	assert_int_equal(ibv_destroy_cq(ibv_cq_ex_to_cq(s->cq)), 0);
}

#define srd_test(f) vt_with(efa_test, f, struct srd, s, srd_open(&s), srd_close(&s))
#define ud_test(f) vt_with(efa_test, f, struct srd, s, ud_open(&s), srd_close(&s))

/* Waits for a completion, and begins to read it. */
static void start(struct srd *s)
{
	struct ibv_poll_cq_attr attr = {.comp_mask = 0};
	uint64_t until_ns = vt_wall_ns() + VT_WAIT_MS * 1000000ull;

	while (ibv_start_poll(s->cq, &attr) != 0)
		assert_true(vt_wall_ns() < until_ns);
}

static void receive_post(struct srd *s)
{
	struct ibv_sge sge = {(uintptr_t)s->octets + 128, 128, s->mr->lkey};
	struct ibv_recv_wr wr = {.wr_id = 2, .sg_list = &sge, .num_sge = 1}, *bad;

	assert_int_equal(ibv_post_recv(s->qp, &wr, &bad), 0);
}

/* To itself, by what a program has kept of its QPN. */
static void send_post(struct srd *s)
{
	ibv_wr_start(s->ex);
	s->ex->wr_id = 1;
	ibv_wr_send(s->ex);
	ibv_wr_set_sge(s->ex, s->mr->lkey, (uintptr_t)s->octets, 64);
	ibv_wr_set_ud_addr(s->ex, s->ah, s->qp->qp_num & 0xffff, VT_QKEY);
	assert_int_equal(ibv_wr_complete(s->ex), 0);
}

/* Reads both completions: gives what that of the receive says of the sender. */
static int exchange(struct srd *s, uint32_t *slid, union ibv_gid *gid)
{
	int rc = 0;

	receive_post(s);
	send_post(s);
	for (int i = 0; i < 2; i++) {
		start(s);
		assert_int_equal(s->cq->status, IBV_WC_SUCCESS);
		if (s->cq->wr_id == 2) {
			assert_int_equal(ibv_wc_read_src_qp(s->cq), s->qp->qp_num);
			*slid = ibv_wc_read_slid(s->cq);
			rc = efadv_wc_read_sgid(efadv_cq_from_ibv_cq_ex(s->cq), gid);
		}
		ibv_end_poll(s->cq);
	}
	return rc;
}

/* efadv_create_cq(3): "if source AH is unknown", the GID; else "a negative error value" */
static void sender_is_known(struct srd *s, uint32_t payload_at)
{
	struct efadv_ah_attr attr;
	union ibv_gid gid;
	uint32_t slid = 0;

	memset(s->octets, 0x5a, 64);
	assert_int_equal(exchange(s, &slid, &gid), 0);
	assert_int_equal(slid, 0xffff);
	assert_memory_equal(&gid, &vt.gid, sizeof(gid));
	assert_true(vt_is_octet(s->octets + payload_at, 64, 0x5a));
	assert_int_equal(efadv_query_ah(s->ah, &attr, sizeof(attr)), 0);
	assert_true(exchange(s, &slid, &gid) < 0);
	assert_int_equal(slid, attr.ahn);
}

srd_test(a_sender_is_known_by_its_gid_or_its_handle)
{
	sender_is_known(s, 128);
}

ud_test(a_sender_of_a_datagram_is_known_likewise)
{
	sender_is_known(s, 128 + 40); /* behind the GRH */
}

/* What programs for EFA decide by: its own codes. */
srd_test(errors_have_the_codes_of_efa)
{
	send_post(s); /* there is no receive */
	start(s);
	assert_int_equal(s->cq->status, IBV_WC_RNR_RETRY_EXC_ERR);
	assert_int_equal(ibv_wc_read_vendor_err(s->cq), 10);
	ibv_end_poll(s->cq);
}

static void write_post(struct srd *s, uint32_t octets)
{
	ibv_wr_start(s->ex);
	s->ex->wr_id = 1;
	ibv_wr_rdma_write_imm(s->ex, s->mr->rkey, (uintptr_t)s->octets + 128, htobe32(7));
	ibv_wr_set_sge(s->ex, s->mr->lkey, (uintptr_t)s->octets, octets);
	ibv_wr_set_ud_addr(s->ex, s->ah, s->qp->qp_num, VT_QKEY);
	assert_int_equal(ibv_wr_complete(s->ex), 0);
}

/* What the completion says that the receiving end has; that of the sender is read along. */
struct received {
	enum ibv_wc_opcode opcode;
	uint64_t wr_id;
	bool unsolicited;
	uint32_t imm;
};

static struct received received(struct srd *s)
{
	struct newer_cq *efa = (struct newer_cq *)efadv_cq_from_ibv_cq_ex(s->cq);
	struct received r = {.opcode = IBV_WC_SEND};

	for (int i = 0; i < 2; i++) {
		start(s);
		assert_int_equal(s->cq->status, IBV_WC_SUCCESS);
		if (ibv_wc_read_opcode(s->cq) >= IBV_WC_RECV)
			r = (struct received){
				ibv_wc_read_opcode(s->cq),
				s->cq->wr_id,
				efa->wc_is_unsolicited(efa),
				be32toh(ibv_wc_read_imm_data(s->cq)),
			};
		else
			assert_false(efa->wc_is_unsolicited(efa));
		ibv_end_poll(s->cq);
	}
	return r;
}

/* efadv_create_qp_ex(3): "Receive WRs will not be consumed for RDMA write with imm." */
#define srd_unsolicited_test(f)                                                                   \
	vt_with(efa_test, f, struct srd, s, srd_open_unsolicited(&s), srd_close(&s))

srd_unsolicited_test(unsolicited_writes_take_no_receive)
{
	struct received r;

	memset(s->octets, 0x33, 64);
	for (int i = 0; i < 3; i++) { /* none is there; and then there is one, which stays */
		if (i == 1)
			receive_post(s);
		write_post(s, 64);
		r = received(s);
		assert_int_equal(r.opcode, IBV_WC_RECV_RDMA_WITH_IMM);
		assert_int_equal(r.wr_id, 0);
		assert_true(r.unsolicited);
		assert_int_equal(r.imm, 7);
		assert_true(vt_is_octet(s->octets + 128, 64, 0x33));
	}
	write_post(s, 200); /* beyond the region: the sender alone is told */
	start(s);
	assert_int_equal(s->cq->status, IBV_WC_REM_ACCESS_ERR);
	ibv_end_poll(s->cq);
	send_post(s);
	r = received(s);
	assert_int_equal(r.opcode, IBV_WC_RECV);
	assert_int_equal(r.wr_id, 2);
	assert_false(r.unsolicited);
}

srd_test(a_write_takes_a_receive_if_nothing_else_was_said)
{
	struct received r;

	receive_post(s);
	write_post(s, 64);
	r = received(s);
	assert_int_equal(r.opcode, IBV_WC_RECV_RDMA_WITH_IMM);
	assert_int_equal(r.wr_id, 2);
	assert_false(r.unsolicited);
	write_post(s, 64);
	start(s);
	assert_int_equal(s->cq->status, IBV_WC_RNR_RETRY_EXC_ERR);
	ibv_end_poll(s->cq);
}

/* The provider of EFA knows no opcode of its own for what has read. */
srd_test(a_read_completes_as_a_send)
{
	memset(s->octets, 0x77, 64);
	ibv_wr_start(s->ex);
	s->ex->wr_id = 1;
	ibv_wr_rdma_read(s->ex, s->mr->rkey, (uintptr_t)s->octets);
	ibv_wr_set_sge(s->ex, s->mr->lkey, (uintptr_t)s->octets + 128, 64);
	ibv_wr_set_ud_addr(s->ex, s->ah, s->qp->qp_num, VT_QKEY);
	assert_int_equal(ibv_wr_complete(s->ex), 0);
	start(s);
	assert_int_equal(s->cq->status, IBV_WC_SUCCESS);
	assert_int_equal(ibv_wc_read_opcode(s->cq), IBV_WC_SEND);
	ibv_end_poll(s->cq);
	assert_true(vt_is_octet(s->octets + 128, 64, 0x77));
}
