/* SPDX-License-Identifier: BSD-2-Clause */
/* The source port that the host names for a slot is in all that goes there, and in its ICRC. */
#include "nic_fixture.h"

#include "nic/control/qp_dv.h"
#include "nic/way/receive.h"
#include "wire/flow.h"
#include "wire/icrc.h"

enum { FRAMES = 4 };

static struct {
	struct vb_path path[FRAMES];
	bool icrc_right[FRAMES];
	unsigned n;
} seen;
static enum vb_whom asked_for;

static uint16_t host_sport(void *arg, uint16_t src_slot, const struct vb_path *path, uint16_t slot,
			   enum vb_whom whom)
{
	asked_for = whom;
	assert_int_equal(src_slot, 3);
	assert_memory_equal(path->src, own_gid, VB_GID_BYTES);
	assert_memory_equal(path->dst, peer_gid, VB_GID_BYTES);
	return (uint16_t)(50000 + slot);
}

/* Everything that these tests send is one small frame in one piece. */
static int host_tx(void *arg, uint16_t src_slot, const struct vb_burst *burst)
{
	uint16_t id;

	assert_int_equal(burst->frames, 1);
	assert_int_equal(burst->iovcnt, 1);
	assert_true(seen.n < FRAMES);
	seen.path[seen.n] = burst->path;
	seen.icrc_right[seen.n] = vb_icrc_check(&burst->path, burst->iov[0].iov_base,
						burst->iov[0].iov_len, 0, &id);
	seen.n++;
	return 0;
}

static int begin_with_ports(void **state)
{
	int rc = begin(state);

	memset(&seen, 0, sizeof(seen));
	fix.nic->host.wire.sport = host_sport;
	fix.nic->host.wire.tx = host_tx;
	return rc;
}

#define PORTS_TEST(name) TEST_BETWEEN(name, begin_with_ports, end)

static void assert_seen(unsigned n, uint16_t sport)
{
	assert_int_equal(seen.n, n);
	assert_int_equal(seen.path[n - 1].sport, sport);
	assert_true(seen.icrc_right[n - 1]);
}

static void post(struct vb_qp *qp, struct vb_ah *ah, uint32_t dqpn)
{
	uint8_t data[8] = { 0 };
	struct ibv_sge sge = { .addr = (uintptr_t)data, .length = sizeof(data) };
	struct ibv_send_wr wr = { .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND,
				  .send_flags = IBV_SEND_INLINE }, *bad;

	if (ah) {
		wr.wr.ud.ah = &ah->ibv;
		wr.wr.ud.remote_qpn = dqpn;
	}
	assert_int_equal(vb_qp_post_send(qp, &wr, &bad), 0);
}

PORTS_TEST(a_connected_qp_has_one)
{
	struct vb_cq *cq = make_cq(8, NULL);
	struct vb_qp *rc = make_qp(IBV_QPT_RC, cq, NULL), *uc = make_qp(IBV_QPT_UC, cq, NULL);

	/* To QP 0x77: slot 0. */
	bring(rc, IBV_QPS_RTS);
	post(rc, NULL, 0);
	assert_seen(1, 50000);
	assert_int_equal(asked_for, VB_OURS);
	bring(uc, IBV_QPS_RTS);
	post(uc, NULL, 0);
	assert_seen(2, 50000);
	drop_qp(uc);
	drop_qp(rc);
	drop_cq(cq);
}

PORTS_TEST(each_datagram_has_its_own)
{
	struct ibv_ah_attr attr = { .is_global = 1, .port_num = 1 };
	struct vb_cq *cq = make_cq(8, NULL);
	struct vb_qp *ud = make_qp(IBV_QPT_UD, cq, NULL);
	struct vb_ah *ah;

	memcpy(attr.grh.dgid.raw, peer_gid, VB_GID_BYTES);
	assert_int_equal(vb_ah_create(fix.pd, &attr, &ah), 0);
	bring(ud, IBV_QPS_RTS);
	post(ud, ah, 7 << VB_INDEX_BITS | 1);
	assert_seen(1, 50007);
	assert_int_equal(asked_for, VB_OURS);
	post(ud, ah, 1023 << VB_INDEX_BITS | 1);
	assert_seen(2, 51023);
	fix.nic->host.wire.sport = idle_sport;
	post(ud, ah, 7 << VB_INDEX_BITS | 1);
	assert_seen(3, VB_ROCE_PORT);
	vb_ah_destroy(ah);
	drop_qp(ud);
	drop_cq(cq);
}

PORTS_TEST(an_answer_has_the_askers)
{
	struct vb_flow ask = { .kind = VB_FLOW_ASK, .dqpn = 3 << VB_INDEX_BITS, .slot = 9 };
	uint8_t data[VB_FLOW_FRAME_BYTES];
	struct vb_frame frame = { .data = data, .bytes = sizeof(data) };

	memcpy(frame.path.src, peer_gid, VB_GID_BYTES);
	memcpy(frame.path.dst, own_gid, VB_GID_BYTES);
	frame.path.sport = 50003;
	vb_flow_emit(data, &ask);
	vb_icrc_put(data + sizeof(data) - 4,
		    vb_icrc_finish(vb_icrc_header(&frame.path, sizeof(data), 0, data,
						  sizeof(data) - 4)));
	assert_true(vb_nic_rx_try(fix.nic));
	vb_nic_rx(fix.nic, &frame, 1);
	vb_nic_rx_drop(fix.nic);
	assert_seen(1, 50009);
	assert_int_equal(asked_for, VB_STRANGER);
}

/* mlx5dv_modify_qp_udp_sport(3) */
static int host_sport_choose(void *arg, uint16_t src_slot, const struct vb_path *path,
			     uint16_t slot, uint16_t port)
{
	assert_int_equal(src_slot, 3);
	assert_int_equal(slot, 0);
	assert_memory_equal(path->dst, peer_gid, VB_GID_BYTES);
	return port == 60000 ? EADDRINUSE : 0;
}

PORTS_TEST(a_qp_may_choose_its_own)
{
	struct vb_cq *cq = make_cq(8, NULL);
	struct vb_qp *uc = make_qp(IBV_QPT_UC, cq, NULL), *ud = make_qp(IBV_QPT_UD, cq, NULL);

	assert_int_equal(vb_qp_sport_choose(uc, 55555), EOPNOTSUPP);
	bring(uc, IBV_QPS_RTS);
	assert_int_equal(vb_qp_sport_choose(uc, 55555), EOPNOTSUPP); /* the host cannot */
	fix.nic->host.wire.sport_choose = host_sport_choose;
	assert_int_equal(vb_qp_sport_choose(ud, 55555), EOPNOTSUPP);
	assert_int_equal(vb_qp_sport_choose(uc, 0xbfff), EINVAL);
	assert_int_equal(vb_qp_sport_choose(uc, 60000), EADDRINUSE);
	post(uc, NULL, 0);
	assert_seen(1, 50000);
	assert_int_equal(vb_qp_sport_choose(uc, 55555), 0);
	post(uc, NULL, 0);
	assert_seen(2, 55555);
	drop_qp(ud);
	drop_qp(uc);
	drop_cq(cq);
}
