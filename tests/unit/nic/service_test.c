/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * The state machine of a QP, against what IBA 10.3.1 and ibv_modify_qp(3) say, written down a
 * second time and differently: a string per service and transition, of attributes that must
 * (upper case) and may (lower case) be given.
 */
#include "nic/service/rc/rc.h"
#include "nic/service/uc/uc.h"
#include "nic/service/ud/ud.h"
#include "nic/service/xrc/xrc.h"
#include "nic_fixture.h"

enum { STATES = IBV_QPS_ERR + 1, BITS = 26 };

static const struct {
	char letter;
	int bit;
} letters[] = {
	{ 'c', IBV_QP_CUR_STATE }, { 'n', IBV_QP_EN_SQD_ASYNC_NOTIFY },
	{ 'f', IBV_QP_ACCESS_FLAGS }, { 'k', IBV_QP_PKEY_INDEX }, { 'p', IBV_QP_PORT },
	{ 'q', IBV_QP_QKEY }, { 'v', IBV_QP_AV }, { 'm', IBV_QP_PATH_MTU },
	{ 't', IBV_QP_TIMEOUT }, { 'y', IBV_QP_RETRY_CNT }, { 'z', IBV_QP_RNR_RETRY },
	{ 'r', IBV_QP_RQ_PSN }, { 'i', IBV_QP_MAX_QP_RD_ATOMIC }, { 'a', IBV_QP_ALT_PATH },
	{ 'w', IBV_QP_MIN_RNR_TIMER }, { 's', IBV_QP_SQ_PSN },
	{ 'd', IBV_QP_MAX_DEST_RD_ATOMIC }, { 'g', IBV_QP_PATH_MIG_STATE },
	{ 'o', IBV_QP_DEST_QPN }, { 'l', IBV_QP_RATE_LIMIT },
};

static const struct {
	enum ibv_qp_state from, to;
	const char *rc, *uc, *ud, *snd, *rcv; /* the last two: of XRC; NULL: no transition */
} rows[] = {
	{ IBV_QPS_RESET, IBV_QPS_INIT, "KPF", "KPF", "KPQ", "KPF", "KPF" },
	{ IBV_QPS_INIT, IBV_QPS_INIT, "kpf", "kpf", "kpq", "kpf", "kpf" },
	{ IBV_QPS_INIT, IBV_QPS_RTR, "VMORDWafk", "VMORafk", "kq", "VMORafkdw",
	  "VMORDWafk" },
	{ IBV_QPS_RTR, IBV_QPS_RTS, "STYZIcafwgl", "Scafgl", "Scql", "STYZIcafg",
	  "STcafwgyzi" },
	{ IBV_QPS_RTS, IBV_QPS_RTS, "cfawgl", "cfagl", "cql", "cfag", "cfagw" },
	{ IBV_QPS_RTS, IBV_QPS_SQD, "n", "n", "n", "n", "n" },
	{ IBV_QPS_SQD, IBV_QPS_RTS, "cafwgl", "cafgl", "cql", "cafg", "cafwg" },
	{ IBV_QPS_SQD, IBV_QPS_SQD, "pvtyziadfkwgl", "vafkgl", "kql", "pvtyziafkg",
	  "pvtdafkwg" },
	{ IBV_QPS_SQE, IBV_QPS_RTS, NULL, "cf", "cq", NULL, NULL },
};

static const enum ibv_qp_type types[] = { IBV_QPT_RC, IBV_QPT_UC, IBV_QPT_UD, IBV_QPT_XRC_SEND,
					  IBV_QPT_XRC_RECV };

static const struct vb_service *service_of(enum ibv_qp_type type)
{
	switch (type) {
	case IBV_QPT_RC:
		return &vb_service_rc;
	case IBV_QPT_UC:
		return &vb_service_uc;
	case IBV_QPT_XRC_SEND:
		return &vb_service_xrc_send;
	case IBV_QPT_XRC_RECV:
		return &vb_service_xrc_recv;
	default:
		return &vb_service_ud;
	}
}

static const char *of_type(unsigned row, enum ibv_qp_type type)
{
	switch (type) {
	case IBV_QPT_RC:
		return rows[row].rc;
	case IBV_QPT_UC:
		return rows[row].uc;
	case IBV_QPT_XRC_SEND:
		return rows[row].snd;
	case IBV_QPT_XRC_RECV:
		return rows[row].rcv;
	default:
		return rows[row].ud;
	}
}

static const char *find(enum ibv_qp_type type, enum ibv_qp_state from, enum ibv_qp_state to)
{
	/* From every state to these two, and nothing else to say but where it was. */
	if (to == IBV_QPS_RESET || to == IBV_QPS_ERR)
		return "c";
	for (unsigned i = 0; i < VB_ARRAY_LEN(rows); i++)
		if (rows[i].from == from && rows[i].to == to)
			return of_type(i, type);
	return NULL;
}

static int bits(const char *attributes, bool must)
{
	int mask = 0;

	for (const char *c = attributes; *c; c++)
		for (unsigned i = 0; i < VB_ARRAY_LEN(letters); i++)
			if (*c == (must ? letters[i].letter - 32 : letters[i].letter))
				mask |= letters[i].bit;
	return mask;
}

static void assert_check(enum ibv_qp_type type, unsigned from, unsigned to, int mask, bool good)
{
	int err = vb_service_transition_check(service_of(type), from, to, mask | IBV_QP_STATE);

	if (err != (good ? 0 : EINVAL))
		fail_msg("type %d, %u to %u, mask %x: %d", type, from, to, mask, err);
}

TEST(every_transition_with_every_attribute)
{
	for (unsigned n = 0; n < VB_ARRAY_LEN(types) * STATES * STATES; n++) {
		enum ibv_qp_type type = types[n / (STATES * STATES)];
		unsigned from = n / STATES % STATES, to = n % STATES;
		const char *attributes = find(type, from, to);
		int must, may;

		if (!attributes) {
			assert_check(type, from, to, 0, false);
			for (unsigned bit = 0; bit < BITS; bit++)
				assert_check(type, from, to, 1 << bit, false);
			continue;
		}
		must = bits(attributes, true);
		may = bits(attributes, false);
		assert_check(type, from, to, must, true);
		assert_check(type, from, to, must | may, true);
		for (unsigned bit = 1; bit < BITS; bit++) {
			int one = 1 << bit;

			if (must & one)
				assert_check(type, from, to, must & ~one, false);
			else
				assert_check(type, from, to, must | one, may & one);
		}
	}
}

/* ibv_modify_qp(3): if anything is invalid, nothing is modified. */
static void assert_unchanged(struct vb_qp *qp, const struct ibv_qp_attr *attr, int mask, int err)
{
	struct ibv_qp_attr before, after;
	struct ibv_qp_init_attr init;

	assert_int_equal(vb_qp_query(qp, &before, &init), 0);
	assert_int_equal(vb_qp_modify(qp, attr, mask), err);
	assert_int_equal(vb_qp_query(qp, &after, &init), 0);
	assert_memory_equal(&before, &after, sizeof(before));
}

static const struct ibv_qp_attr good_rtr = {
	.qp_state = IBV_QPS_RTR, .path_mtu = IBV_MTU_1024, .dest_qp_num = 1, .rq_psn = 1,
	.max_dest_rd_atomic = 1, .min_rnr_timer = 1,
	.ah_attr = { .is_global = 1, .port_num = 1,
		     .grh = { .dgid = { .raw = { [10] = 0xff, 0xff, 10, 0, 0, 2 } } } },
};

static const int rtr_mask = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
			    IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;

#define REFUSED(field, value, err)                                                                \
	do {                                                                                      \
		struct ibv_qp_attr attr = good_rtr;                                               \
		attr.field = value;                                                               \
		assert_unchanged(qp, &attr, rtr_mask, err);                                       \
	} while (0)

NIC_TEST(values_beyond_their_range_change_nothing)
{
	struct vb_cq *cq = make_cq(16, NULL);
	struct vb_qp *qp = make_qp(IBV_QPT_RC, cq, NULL);
	struct ibv_qp_attr init = { .qp_state = IBV_QPS_INIT, .port_num = 2 };
	const int init_mask = IBV_QP_STATE | IBV_QP_PORT | IBV_QP_PKEY_INDEX | IBV_QP_ACCESS_FLAGS;

	assert_unchanged(qp, &init, init_mask, EINVAL);
	init.port_num = 0;
	assert_unchanged(qp, &init, init_mask, EINVAL);
	init.port_num = 1;
	init.pkey_index = 1;
	assert_unchanged(qp, &init, init_mask, EINVAL);
	init.pkey_index = 0;
	init.qp_access_flags = 1u << 31;
	assert_unchanged(qp, &init, init_mask, EINVAL);
	bring(qp, IBV_QPS_INIT);
	REFUSED(path_mtu, 0, EINVAL);
	REFUSED(path_mtu, IBV_MTU_4096 + 1, EINVAL);
	REFUSED(path_mtu, IBV_MTU_2048, EINVAL); /* the way there takes 1472 octets */
	REFUSED(dest_qp_num, 1 << 24, EINVAL);
	REFUSED(max_dest_rd_atomic, VB_RD_ATOMIC_MAX + 1, EINVAL);
	REFUSED(min_rnr_timer, 32, EINVAL);
	REFUSED(ah_attr.is_global, 0, EINVAL);
	REFUSED(ah_attr.port_num, 2, EINVAL);
	REFUSED(ah_attr.grh.sgid_index, 1, EINVAL);
	REFUSED(ah_attr.grh.dgid.raw[10], 0, EINVAL); /* IPv6 from an IPv4 address */
	drop_qp(qp);
	drop_cq(cq);
}

NIC_TEST(the_current_state_must_be_the_current_state)
{
	struct vb_cq *cq = make_cq(16, NULL);
	struct vb_qp *qp = make_qp(IBV_QPT_UD, cq, NULL);
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RTS, .cur_qp_state = IBV_QPS_SQD };

	bring(qp, IBV_QPS_RTS);
	assert_unchanged(qp, &attr, IBV_QP_STATE | IBV_QP_CUR_STATE, EINVAL);
	attr.cur_qp_state = IBV_QPS_RTS;
	assert_int_equal(vb_qp_modify(qp, &attr, IBV_QP_STATE | IBV_QP_CUR_STATE), 0);
	drop_qp(qp);
	drop_cq(cq);
}

NIC_TEST(psns_are_cut_to_24_bits)
{
	struct vb_cq *cq = make_cq(16, NULL);
	struct vb_qp *qp = make_qp(IBV_QPT_RC, cq, NULL);
	struct ibv_qp_attr attr = good_rtr;
	struct ibv_qp_init_attr init;

	bring(qp, IBV_QPS_INIT);
	attr.rq_psn = 0xab123456;
	assert_int_equal(vb_qp_modify(qp, &attr, rtr_mask), 0);
	assert_int_equal(vb_qp_query(qp, &attr, &init), 0);
	assert_int_equal(attr.rq_psn, 0x123456);
	drop_qp(qp);
	drop_cq(cq);
}

NIC_TEST(reset_forgets_all)
{
	struct vb_cq *cq = make_cq(16, NULL);
	struct vb_qp *qp = make_qp(IBV_QPT_RC, cq, NULL);
	struct ibv_recv_wr wr = { .wr_id = 1 }, *bad;
	struct ibv_qp_attr fresh, attr;
	struct ibv_qp_init_attr init;
	struct ibv_wc wc;

	assert_int_equal(vb_qp_query(qp, &fresh, &init), 0);
	bring(qp, IBV_QPS_RTS);
	assert_int_equal(vb_qp_post_recv(qp, &wr, &bad), 0);
	assert_int_equal(set_state(qp, IBV_QPS_ERR), 0);
	assert_int_equal(set_state(qp, IBV_QPS_RESET), 0);
	assert_int_equal(vb_cq_poll(cq, 1, &wc), 0);
	assert_int_equal(vb_qp_query(qp, &attr, &init), 0);
	assert_memory_equal(&fresh, &attr, sizeof(attr));
	bring(qp, IBV_QPS_RTS);
	drop_qp(qp);
	drop_cq(cq);
}

/* Together QPs have half a buffer under way, however many there are when one of them sends. */
NIC_TEST(the_window_is_shared)
{
	enum { MANY = 16 };
	static const struct {
		uint32_t buffer, qps, window;
	} cases[] = {
		{ 8u << 20, 1, 2048 }, { 8u << 20, 2, 2048 }, { 8u << 20, 4, 1024 },
		{ 8u << 20, 8, 512 },  { 8u << 20, 16, 512 }, { 8u << 20, 1, 2048 },
		{ 212992, 1, 104 },    { 212992, 16, 104 },   { 4u << 20, 2, 1024 },
	};
	struct vb_cq *cq = make_cq(64, NULL);
	struct vb_qp *qp = make_qp(IBV_QPT_RC, cq, NULL), *others[MANY];

	bring(qp, IBV_QPS_RTS);
	for (unsigned i = 0; i < VB_ARRAY_LEN(cases); i++) {
		vb_nic_rx_buffer_set(fix.nic, cases[i].buffer);
		for (unsigned k = 0; k < MANY; k++)
			others[k] = make_qp(IBV_QPT_RC, cq, NULL);
		qp->send.sharers = 0; /* the buffer is another one: look anew */
		for (unsigned k = cases[i].qps - 1; k < MANY; k++)
			drop_qp(others[k]);
		vb_lock_take(&qp->lock);
		vb_qp_transmit_locked(qp);
		vb_lock_drop(&qp->lock);
		assert_int_equal(qp->req.flight.max, cases[i].window);
		assert_true(qp->req.flight.window <= qp->req.flight.max);
		for (unsigned k = 0; k + 1 < cases[i].qps; k++)
			drop_qp(others[k]);
	}
	drop_qp(qp);
	drop_cq(cq);
}
