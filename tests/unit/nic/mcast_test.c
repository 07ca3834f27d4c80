/* SPDX-License-Identifier: BSD-2-Clause */
/* Groups: whom a packet reaches, when the host joins and leaves, and what is refused. */
#include "nic/way/mcast.h"
#include "packets.h"

enum { JOINS_MAX = 2048, QKEY = 0x1111, SENDER = 0xabc123, BYTES = 512 };

static const uint8_t group_a[VB_GID_BYTES] = { [10] = 0xff, 0xff, 239, 1, 1, 1 };
static const uint8_t group_b[VB_GID_BYTES] = { [10] = 0xff, 0xff, 224, 0, 0, 9 };
static const uint8_t group_6[VB_GID_BYTES] = { 0xff, 0x0e, [15] = 1 };

static struct {
	unsigned joins, leaves;
	uint32_t ifindex[JOINS_MAX];
	uint8_t gid[JOINS_MAX][VB_GID_BYTES], left[VB_GID_BYTES];
	uint32_t fail_at; /* the interface at which joining fails ... */
	int fail_with;	  /* ... so */
} host;

static uint8_t buffer[8 * BYTES];

static int host_join(void *arg, const uint8_t gid[VB_GID_BYTES], uint32_t ifindex)
{
	if (ifindex == host.fail_at)
		return host.fail_with;
	host.ifindex[host.joins % JOINS_MAX] = ifindex;
	memcpy(host.gid[host.joins++ % JOINS_MAX], gid, VB_GID_BYTES);
	return 0;
}

static void host_leave(void *arg, const uint8_t gid[VB_GID_BYTES])
{
	host.leaves++;
	memcpy(host.left, gid, VB_GID_BYTES);
}

static const struct vb_host_groups host_groups = { .join = host_join, .leave = host_leave };

static int start(void **state)
{
	memset(&host, 0, sizeof(host));
	begin(state);
	fix.nic->host.groups = &host_groups;
	return 0;
}

#define GROUP_TEST(name) TEST_BETWEEN(name, start, end)

/* --- what arrives --- */

struct member {
	struct vb_cq *cq;
	struct vb_qp *qp;
};

static void member_open(struct member *m)
{
	m->cq = make_cq(8, NULL);
	m->qp = make_qp(IBV_QPT_UD, m->cq, NULL);
	bring(m->qp, IBV_QPS_RTS);
}

static void member_close(struct member *m)
{
	drop_qp(m->qp);
	drop_cq(m->cq);
}

static void post(struct member *m, uint32_t lkey, unsigned place)
{
	struct ibv_sge sge = { (uintptr_t)buffer + place * BYTES, BYTES, lkey };
	struct ibv_recv_wr wr = { .wr_id = place, .sg_list = &sge, .num_sge = 1 }, *bad;

	assert_int_equal(vb_qp_post_recv(m->qp, &wr, &bad), 0);
}

struct sent {
	const uint8_t *from, *to;
	uint32_t dqpn, qkey, sqpn;
	uint16_t pkey;
};

static const struct sent plain = { peer_gid, group_a, VB_QPN_GROUP, QKEY, SENDER, 0xffff };

static void receive(const struct sent *sent)
{
	struct vb_frame frame;
	struct vb_pkt pkt;
	uint8_t octets[64];

	memset(&pkt, 0, sizeof(pkt));
	vb_pkt_begin(&pkt, sent->dqpn, sent->pkey);
	pkt.opcode = VB_OP_UD_SEND_ONLY;
	pkt.qkey = sent->qkey;
	pkt.sqpn = sent->sqpn;
	frame = packet_seal(octets, &pkt, "news", 4, sent->from, sent->to);
	frames_come(&frame, 1);
}

static bool has_copy(struct member *m)
{
	struct ibv_wc wc;

	if (vb_cq_poll(m->cq, 1, &wc) != 1)
		return false;
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	assert_int_equal(wc.byte_len, 44);
	assert_memory_equal(buffer + wc.wr_id * BYTES + 40, "news", 4);
	return true;
}

static uint64_t count(enum vb_stat stat)
{
	return atomic_load(&vb_nic_stats(fix.nic)->count[stat]);
}

static uint32_t register_buffer(struct vb_mr **mr)
{
	assert_int_equal(vb_mr_reg(fix.pd, buffer, sizeof(buffer), (uintptr_t)buffer,
				   IBV_ACCESS_LOCAL_WRITE, mr), 0);
	return (*mr)->ibv.lkey;
}

GROUP_TEST(each_that_is_attached_gets_a_copy)
{
	struct member m[3];
	struct vb_mr *mr;
	uint32_t lkey = register_buffer(&mr);

	for (unsigned i = 0; i < 3; i++) {
		member_open(&m[i]);
		post(&m[i], lkey, i);
	}
	assert_int_equal(vb_group_attach(m[0].qp, group_a), 0);
	assert_int_equal(vb_group_attach(m[2].qp, group_a), 0);
	assert_int_equal(vb_group_attach(m[2].qp, group_a), 0); /* once is enough */
	assert_int_equal(vb_group_attach(m[1].qp, group_b), 0);
	receive(&plain);
	assert_true(has_copy(&m[0]));
	assert_false(has_copy(&m[1]));
	assert_true(has_copy(&m[2]));
	assert_false(has_copy(&m[2]));
	assert_int_equal(vb_group_detach(m[0].qp, group_a), 0);
	post(&m[0], lkey, 3);
	post(&m[2], lkey, 4);
	receive(&plain);
	assert_false(has_copy(&m[0]));
	assert_true(has_copy(&m[2]));
	assert_int_equal(vb_group_detach(m[2].qp, group_a), 0);
	assert_int_equal(vb_group_detach(m[2].qp, group_a), EINVAL);
	assert_int_equal(vb_group_detach(m[1].qp, group_b), 0);
	for (unsigned i = 0; i < 3; i++)
		member_close(&m[i]);
	vb_mr_dereg(mr);
}

/* IBA 9.6.1, and the checks that any datagram meets. */
GROUP_TEST(what_does_not_fit_is_dropped_with_its_reason)
{
	static const struct {
		struct sent sent;
		enum vb_stat stat;
	} rows[] = {
		{ { peer_gid, group_b, VB_QPN_GROUP, QKEY, SENDER, 0xffff }, VB_STAT_DROP_GROUP },
		{ { peer_gid, own_gid, VB_QPN_GROUP, QKEY, SENDER, 0xffff }, VB_STAT_DROP_GROUP },
		{ { peer_gid, group_a, 0, QKEY, SENDER, 0xffff }, VB_STAT_DROP_GROUP },
		{ { peer_gid, group_a, VB_QPN_GROUP, 7, SENDER, 0xffff }, VB_STAT_DROP_QKEY },
		{ { peer_gid, group_a, VB_QPN_GROUP, QKEY, SENDER, 0x8001 }, VB_STAT_DROP_PKEY },
	};
	struct member m;
	struct vb_mr *mr;
	uint32_t lkey = register_buffer(&mr);

	member_open(&m);
	assert_int_equal(vb_group_attach(m.qp, group_a), 0);
	receive(&plain);
	assert_int_equal(count(VB_STAT_DROP_NO_RECV), 1);
	post(&m, lkey, 0);
	for (unsigned i = 0; i < VB_ARRAY_LEN(rows); i++) {
		struct sent sent = rows[i].sent;
		uint64_t before = count(rows[i].stat);

		if (!sent.dqpn)
			sent.dqpn = m.qp->ibv.qp.qp_num;
		receive(&sent);
		assert_int_equal(count(rows[i].stat), before + 1);
		assert_false(has_copy(&m));
	}
	assert_int_equal(set_state(m.qp, IBV_QPS_RESET), 0);
	receive(&plain);
	assert_int_equal(count(VB_STAT_DROP_STATE), 1);
	/* That stays attached. */
	bring(m.qp, IBV_QPS_RTR);
	post(&m, lkey, 1);
	receive(&plain);
	assert_true(has_copy(&m));
	assert_int_equal(vb_group_detach(m.qp, group_a), 0);
	member_close(&m);
	vb_mr_dereg(mr);
}

GROUP_TEST(who_blocks_it_does_not_hear_himself)
{
	struct member m[2];
	struct vb_mr *mr;
	uint32_t lkey = register_buffer(&mr);
	struct sent sent = plain;

	for (unsigned i = 0; i < 2; i++) {
		member_open(&m[i]);
		post(&m[i], lkey, i);
		assert_int_equal(vb_group_attach(m[i].qp, group_a), 0);
	}
	m[0].qp->made.create_flags = IBV_QP_CREATE_BLOCK_SELF_MCAST_LB;
	sent.from = own_gid;
	sent.sqpn = m[0].qp->ibv.qp.qp_num;
	receive(&sent);
	assert_false(has_copy(&m[0]));
	assert_true(has_copy(&m[1]));
	/* The same number on another host is somebody else. */
	sent.from = peer_gid;
	receive(&sent);
	assert_true(has_copy(&m[0]));
	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(vb_group_detach(m[i].qp, group_a), 0);
		member_close(&m[i]);
	}
	vb_mr_dereg(mr);
}

/* --- joining --- */

static void gids_set(const uint8_t last[][2], unsigned n)
{
	struct vb_gid_entry entry[8] = { { .ifindex = 0 } };

	for (unsigned i = 0; i < n; i++) {
		entry[i] = (struct vb_gid_entry){ .ifindex = last[i][0], .mtu_bytes = 1500 };
		memcpy(entry[i].gid, own_gid, VB_GID_BYTES);
		entry[i].gid[15] = last[i][1];
		if (last[i][1] >= 100)
			memcpy(entry[i].gid, (const uint8_t[12]){ 0xfd }, 12);
	}
	vb_nic_gids_set(fix.nic, entry, n);
}

GROUP_TEST(the_first_joins_and_the_last_leaves)
{
	/* Interface and address: from 100 on they are IPv6. */
	static const uint8_t table[][2] = { { 1, 1 }, { 1, 2 }, { 2, 3 }, { 2, 100 }, { 3, 101 } };
	struct member m[2];

	member_open(&m[0]);
	member_open(&m[1]);
	gids_set(table, 5);
	assert_int_equal(vb_group_attach(m[0].qp, group_a), 0);
	assert_int_equal(host.joins, 2);
	assert_int_equal(host.ifindex[0], 1);
	assert_int_equal(host.ifindex[1], 2);
	assert_memory_equal(host.gid[1], group_a, VB_GID_BYTES);
	assert_int_equal(vb_group_attach(m[1].qp, group_a), 0);
	assert_int_equal(host.joins, 2);
	assert_int_equal(vb_group_attach(m[1].qp, group_6), 0);
	assert_int_equal(host.joins, 4);
	assert_int_equal(host.ifindex[2], 2);
	assert_int_equal(host.ifindex[3], 3);
	assert_int_equal(vb_group_detach(m[0].qp, group_a), 0);
	assert_int_equal(host.leaves, 0);
	assert_int_equal(vb_group_detach(m[1].qp, group_a), 0);
	assert_int_equal(host.leaves, 1);
	assert_memory_equal(host.left, group_a, VB_GID_BYTES);
	/* An interface that comes is joined at, for what is left. */
	gids_set(table, 4);
	host.joins = 0;
	gids_set(table, 5);
	assert_int_equal(host.joins, 2);
	assert_memory_equal(host.gid[1], group_6, VB_GID_BYTES);
	assert_int_equal(vb_group_detach(m[1].qp, group_6), 0);
	host.joins = 0;
	gids_set(table, 4);
	assert_int_equal(host.joins, 0);
	member_close(&m[0]);
	member_close(&m[1]);
}

GROUP_TEST(where_it_cannot_join_nothing_changes)
{
	static const uint8_t table[][2] = { { 1, 1 }, { 2, 2 } };
	struct member m;

	member_open(&m);
	gids_set(table, 2);
	host.fail_at = 2;
	host.fail_with = ENOBUFS;
	assert_int_equal(vb_group_attach(m.qp, group_a), ENOBUFS);
	assert_int_equal(host.joins, 1);
	assert_int_equal(host.leaves, 1);
	assert_int_equal(vb_group_detach(m.qp, group_a), EINVAL);
	/* An interface that has gone meanwhile does not matter, while there is another. */
	host.fail_with = ENODEV;
	assert_int_equal(vb_group_attach(m.qp, group_a), 0);
	assert_int_equal(vb_group_detach(m.qp, group_a), 0);
	gids_set(&table[1], 1);
	assert_int_equal(vb_group_attach(m.qp, group_a), ENETUNREACH);
	/* There is no address of that family. */
	assert_int_equal(vb_group_attach(m.qp, group_6), ENETUNREACH);
	member_close(&m);
}

/* --- refused --- */

GROUP_TEST(what_is_no_group_or_no_ud_is_refused)
{
	static const enum ibv_qp_type connected[] = { IBV_QPT_RC, IBV_QPT_UC };
	struct member m;

	member_open(&m);
	assert_int_equal(vb_group_attach(m.qp, peer_gid), EINVAL);
	assert_int_equal(vb_group_detach(m.qp, peer_gid), EINVAL);
	assert_int_equal(vb_group_detach(m.qp, group_a), EINVAL);
	for (unsigned i = 0; i < 2; i++) {
		struct vb_qp *qp = make_qp(connected[i], m.cq, NULL);

		assert_int_equal(vb_group_attach(qp, group_a), EINVAL);
		drop_qp(qp);
	}
	m.qp->made.create_flags = IBV_QP_CREATE_SOURCE_QPN;
	assert_int_equal(vb_group_attach(m.qp, group_a), EOPNOTSUPP);
	m.qp->made.create_flags = 0;
	fix.nic->host.no_wire = true;
	assert_int_equal(vb_group_attach(m.qp, group_a), ENETUNREACH);
	fix.nic->host.groups = NULL;
	assert_int_equal(vb_group_attach(m.qp, group_a), EOPNOTSUPP);
	assert_int_equal(host.joins, 0);
	member_close(&m);
}

GROUP_TEST(who_is_attached_stays)
{
	struct member m;

	member_open(&m);
	assert_int_equal(vb_group_attach(m.qp, group_a), 0);
	assert_int_equal(vb_group_attach(m.qp, group_b), 0);
	assert_int_equal(vb_qp_destroy(m.qp), EBUSY);
	assert_int_equal(vb_group_detach(m.qp, group_a), 0);
	assert_int_equal(vb_qp_destroy(m.qp), EBUSY);
	assert_int_equal(vb_qp_state(m.qp), IBV_QPS_RTS);
	assert_int_equal(vb_group_detach(m.qp, group_b), 0);
	member_close(&m);
}

GROUP_TEST(the_limits_are_the_limits)
{
	static struct vb_qp *qps[VB_GROUP_QPS_MAX];
	struct ibv_device_attr attr;
	struct member m;
	uint8_t gid[VB_GID_BYTES];

	member_open(&m);
	vb_nic_query_device(fix.nic, &attr);
	memcpy(gid, group_a, sizeof(gid));
	for (int i = 0; i < attr.max_mcast_grp; i++) {
		gid[14] = (uint8_t)(i >> 8);
		gid[15] = (uint8_t)i;
		assert_int_equal(vb_group_attach(m.qp, gid), 0);
	}
	assert_int_equal(vb_group_attach(m.qp, group_6), ENOMEM);
	for (int i = 1; i < attr.max_mcast_qp_attach; i++) {
		qps[i] = make_qp(IBV_QPT_UD, m.cq, NULL);
		assert_int_equal(vb_group_attach(qps[i], gid), 0);
	}
	qps[0] = make_qp(IBV_QPT_UD, m.cq, NULL);
	assert_int_equal(vb_group_attach(qps[0], gid), ENOMEM);
	drop_qp(qps[0]);
	for (int i = 1; i < attr.max_mcast_qp_attach; i++) {
		assert_int_equal(vb_group_detach(qps[i], gid), 0);
		drop_qp(qps[i]);
	}
	for (int i = 0; i < attr.max_mcast_grp; i++) {
		gid[14] = (uint8_t)(i >> 8);
		gid[15] = (uint8_t)i;
		assert_int_equal(vb_group_detach(m.qp, gid), 0);
	}
	assert_int_equal(host.joins, host.leaves);
	member_close(&m);
}

/* --- sending --- */

GROUP_TEST(an_address_of_a_group_is_for_datagrams)
{
	struct ibv_ah_attr attr = { .is_global = 1, .port_num = 1, .grh = { .hop_limit = 3 } };
	struct vb_path path;
	struct vb_ah *ah;

	memcpy(attr.grh.dgid.raw, group_a, VB_GID_BYTES);
	assert_int_equal(vb_path_resolve(fix.nic, &attr, &path), EINVAL);
	assert_int_equal(vb_ah_create(fix.pd, &attr, &ah), 0);
	assert_memory_equal(ah->path.dst, group_a, VB_GID_BYTES);
	assert_int_equal(ah->path.hop_limit, 3);
	assert_int_equal(ah->path.ifindex, 1);
	assert_false(ah->path.local);
	vb_ah_destroy(ah);
	/* Of the same family as the address that it is sent from. */
	memcpy(attr.grh.dgid.raw, group_6, VB_GID_BYTES);
	assert_int_equal(vb_ah_create(fix.pd, &attr, &ah), EINVAL);
}
