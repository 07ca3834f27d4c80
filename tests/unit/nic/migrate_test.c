/* SPDX-License-Identifier: BSD-2-Clause */
/* Path migration: what packets say of it, by which way they may come, and which of them count. */
#include "nic/data/migrate.h"

#include "packets.h"

enum { EPSN = 0x100, MIGREQ = 0x40, MTU = 1024 };

static const uint8_t alt_gid[VB_GID_BYTES] = { [10] = 0xff, 0xff, 10, 9, 0, 1 };
static const uint8_t alt_peer_gid[VB_GID_BYTES] = { [10] = 0xff, 0xff, 10, 9, 0, 2 };
static const uint8_t third_gid[VB_GID_BYTES] = { [10] = 0xff, 0xff, 10, 9, 0, 3 };

enum way { PRIMARY, ALT, THIRD };

static struct {
	uint32_t psn; /* of the peer's next message */
} ends;

static int begin_connected(void **state)
{
	struct vb_gid_entry entry[2] = { { .ifindex = 1, .mtu_bytes = 1500 },
					 { .ifindex = 2, .mtu_bytes = 1500 } };
	int rc = begin(state);

	memset(&ends, 0, sizeof(ends));
	memcpy(entry[0].gid, own_gid, VB_GID_BYTES);
	memcpy(entry[1].gid, alt_gid, VB_GID_BYTES);
	vb_nic_gids_set(fix.nic, entry, 2);
	assert_event(IBV_EVENT_GID_CHANGE);
	ends.psn = EPSN;
	connect_as(IBV_QPT_RC);
	return rc;
}

#define CONNECTED(name) TEST_BETWEEN(name, begin_connected, end)

static int set_mig_state(enum ibv_mig_state to)
{
	struct ibv_qp_attr attr = { .path_mig_state = to };

	return vb_qp_modify(fix.qp, &attr, IBV_QP_PATH_MIG_STATE);
}

static void rearm(void)
{
	struct ibv_qp_attr attr = {
		.path_mig_state = IBV_MIG_REARM, .alt_port_num = 1, .alt_timeout = 16,
		.alt_ah_attr = { .is_global = 1, .port_num = 1, .grh.sgid_index = 1 },
	};

	memcpy(attr.alt_ah_attr.grh.dgid.raw, alt_peer_gid, VB_GID_BYTES);
	assert_int_equal(vb_qp_modify(fix.qp, &attr, IBV_QP_ALT_PATH | IBV_QP_PATH_MIG_STATE),
			 0);
}

static enum ibv_mig_state mig_state(void)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	assert_int_equal(vb_qp_query(fix.qp, &attr, &init), 0);
	return attr.path_mig_state;
}

/* --- what the peer sends --- */

static void post_recv(void)
{
	struct ibv_recv_wr wr = { .num_sge = 0 }, *bad;

	assert_int_equal(vb_qp_post_recv(fix.qp, &wr, &bad), 0);
}

static void frame_make(struct vb_frame *out, uint8_t *octets, enum way way, bool migreq,
		       enum vb_kind kind, uint32_t psn)
{
	static const uint8_t *const from[] = { peer_gid, alt_peer_gid, third_gid };
	static const uint8_t *const to[] = { own_gid, alt_gid, own_gid };
	enum vb_transport transport = fix.qp->ibv.qp.qp_type == IBV_QPT_RC ? VB_RC : VB_UC;
	struct vb_pkt pkt = packet_for(fix.qp, vb_op_find(transport, kind, VB_P_ONLY, 0), psn);

	pkt.migreq = migreq;
	pkt.ackreq = kind == VB_K_SEND;
	pkt.aeth.syndrome = vb_aeth_ack(VB_CREDIT_CODE_UNLIMITED);
	*out = packet_seal(octets, &pkt, NULL, 0, from[way], to[way]);
}

static void packet_comes(enum way way, bool migreq, enum vb_kind kind, uint32_t psn)
{
	uint8_t octets[64];
	struct vb_frame frame;

	frame_make(&frame, octets, way, migreq, kind, psn);
	vb_nic_rx(fix.nic, &frame, 1);
}

/* The peer's next message: true if it was taken. */
static bool message_comes(enum way way, bool migreq)
{
	struct ibv_wc wc;

	post_recv();
	packet_comes(way, migreq, VB_K_SEND, ends.psn);
	if (!vb_cq_poll(fix.cq, 1, &wc))
		return false;
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	ends.psn++;
	return true;
}

/* Its last message again: late, or because the ACK was lost. */
static void duplicate_comes(enum way way, bool migreq)
{
	packet_comes(way, migreq, VB_K_SEND, ends.psn - 1);
}

static void arm(void)
{
	rearm();
	assert_true(message_comes(PRIMARY, false));
	assert_int_equal(mig_state(), IBV_MIG_ARMED);
	assert_no_event();
}

/* --- what we send --- */

static void send_one(void)
{
	struct ibv_send_wr wr = { .opcode = IBV_WR_SEND }, *bad;

	fix.sent = 0;
	fake_ns += 1000000; /* so that it does not wait for company */
	assert_int_equal(vb_qp_post_send(fix.qp, &wr, &bad), 0);
	assert_int_equal(fix.sent, 1);
}

static bool sent_migreq(void)
{
	return fix.last[1] & MIGREQ;
}

/* IBA 9.2.3, 17.2.8: set as long as nothing was asked for, clear from then until it migrates. */
CONNECTED(migreq_says_where_we_stand)
{
	send_one();
	assert_true(sent_migreq());
	message_comes(PRIMARY, true); /* an ACK says it too */
	assert_true(sent_migreq());
	rearm();
	send_one();
	assert_false(sent_migreq());
	assert_true(message_comes(PRIMARY, false));
	assert_false(sent_migreq());
	assert_int_equal(mig_state(), IBV_MIG_ARMED);
	send_one();
	assert_false(sent_migreq());
	assert_int_equal(set_mig_state(IBV_MIG_MIGRATED), 0);
	assert_event(IBV_EVENT_PATH_MIG);
	send_one();
	assert_true(sent_migreq());
}

/* A datagram belongs to no connection that could migrate. */
CONNECTED(datagrams_have_no_migreq)
{
	struct ibv_ah_attr av = { .is_global = 1, .port_num = 1 };
	struct vb_qp *ud = make_qp(IBV_QPT_UD, fix.cq, NULL);
	struct ibv_send_wr wr = { .opcode = IBV_WR_SEND }, *bad;
	struct vb_ah *ah;

	memcpy(av.grh.dgid.raw, peer_gid, VB_GID_BYTES);
	assert_int_equal(vb_ah_create(fix.pd, &av, &ah), 0);
	bring(ud, IBV_QPS_RTS);
	wr.wr.ud.ah = &ah->ibv;
	wr.wr.ud.remote_qpn = 0x77;
	assert_int_equal(vb_qp_post_send(ud, &wr, &bad), 0);
	assert_int_equal(fix.sent, 1);
	assert_false(sent_migreq());
	drop_qp(ud);
	assert_int_equal(vb_ah_destroy(ah), 0);
}

/* --- arming --- */

CONNECTED(only_a_peer_that_waits_arms)
{
	assert_true(message_comes(PRIMARY, true));
	rearm();
	assert_true(message_comes(PRIMARY, true));
	assert_int_equal(mig_state(), IBV_MIG_REARM);
	assert_true(message_comes(PRIMARY, false));
	assert_int_equal(mig_state(), IBV_MIG_ARMED);
	assert_true(fix.qp->req.retry.armed);
}

CONNECTED(an_ack_arms_as_well)
{
	rearm();
	send_one();
	packet_comes(PRIMARY, false, VB_K_ACK, 0x200);
	assert_int_equal(mig_state(), IBV_MIG_ARMED);
}

/* What is late was true once: before the last migration perhaps. */
CONNECTED(what_is_late_does_not_arm)
{
	assert_true(message_comes(PRIMARY, false));
	send_one();
	packet_comes(PRIMARY, true, VB_K_ACK, 0x200);
	rearm();
	duplicate_comes(PRIMARY, false);
	packet_comes(PRIMARY, false, VB_K_ACK, 0x200);
	packet_comes(PRIMARY, false, VB_K_SEND, ends.psn + 1); /* too early */
	assert_int_equal(mig_state(), IBV_MIG_REARM);
}

/* --- migrating --- */

CONNECTED(who_comes_by_the_other_path_is_followed)
{
	static const enum ibv_qp_type types[] = { IBV_QPT_RC, IBV_QPT_UC };

	for (unsigned i = 0; i < 2; i++) {
		drop_qp(fix.qp);
		ends.psn = EPSN;
		connect_as(types[i]);
		arm();
		assert_true(message_comes(ALT, true));
		assert_event(IBV_EVENT_PATH_MIG);
		assert_int_equal(mig_state(), IBV_MIG_MIGRATED);
		assert_memory_equal(fix.qp->to.path.dst, alt_peer_gid, VB_GID_BYTES);
		assert_memory_equal(fix.qp->to.path.src, alt_gid, VB_GID_BYTES);
		assert_false(fix.qp->req.retry.armed);
		assert_int_equal(fix.qp->req.retry.timeout, 16);
		assert_true(message_comes(ALT, true));
		assert_no_event();
	}
}

/* Its first packet by that path may be one whose ACK was lost on the other: the ACK goes there. */
CONNECTED(what_comes_again_by_the_other_path_counts)
{
	arm();
	duplicate_comes(ALT, true);
	assert_event(IBV_EVENT_PATH_MIG);
	assert_true(sent_migreq());
	assert_int_equal(fix.last[0], VB_OP_RC_ACK);
}

/* A packet in the midst of a message, which others take a short way. */
CONNECTED(a_packet_in_the_midst_of_a_message_counts)
{
	uint8_t octets[2][MTU + 64], payload[MTU];
	struct vb_frame frames[2];
	uint8_t data[3 * MTU];
	struct vb_mr *mr;

	arm();
	assert_int_equal(vb_mr_reg(fix.pd, data, sizeof(data), (uintptr_t)data,
				   IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE, &mr), 0);
	for (unsigned i = 0; i < 2; i++) {
		struct vb_pkt pkt = packet_for(
			fix.qp, i ? VB_OP_RC_WRITE_MIDDLE : VB_OP_RC_WRITE_FIRST, ends.psn++);

		pkt.migreq = i;
		pkt.reth.va = (uintptr_t)data;
		pkt.reth.rkey = mr->ibv.rkey;
		pkt.reth.bytes = sizeof(data);
		memset(payload, (int)i, MTU);
		frames[i] = packet_seal(octets[i], &pkt, payload, MTU, i ? alt_peer_gid : peer_gid,
					i ? alt_gid : own_gid);
	}
	vb_nic_rx(fix.nic, frames, 2);
	assert_event(IBV_EVENT_PATH_MIG);
	assert_int_equal(vb_mr_dereg(mr), 0);
}

/* --- what does not count --- */

CONNECTED(what_is_late_makes_nobody_migrate)
{
	assert_true(message_comes(PRIMARY, true));
	arm();
	duplicate_comes(PRIMARY, true);
	packet_comes(PRIMARY, true, VB_K_SEND, ends.psn - 2);
	assert_int_equal(mig_state(), IBV_MIG_ARMED);
	assert_no_event();
}

/* The peer has migrated, to a path that is our old one: we do not follow, and go on. Told once. */
CONNECTED(a_migration_to_no_path_of_ours_is_refused)
{
	arm();
	assert_true(message_comes(PRIMARY, true));
	assert_event(IBV_EVENT_PATH_MIG_ERR);
	assert_true(message_comes(PRIMARY, true));
	assert_false(message_comes(THIRD, true));
	assert_no_event();
	assert_int_equal(mig_state(), IBV_MIG_ARMED);
	assert_memory_equal(fix.qp->to.path.dst, peer_gid, VB_GID_BYTES);
}

CONNECTED(strangers_are_strangers)
{
	assert_false(message_comes(ALT, true));
	assert_false(message_comes(THIRD, true));
	rearm();
	assert_false(message_comes(ALT, false));
	assert_false(message_comes(THIRD, false));
	assert_true(message_comes(PRIMARY, false));
	assert_false(message_comes(ALT, false)); /* who is not migrated has no business there */
	assert_no_event();
	assert_false(message_comes(THIRD, true));
	assert_event(IBV_EVENT_PATH_MIG_ERR);
	assert_int_equal(mig_state(), IBV_MIG_ARMED);
}

/* The peer sends by the old path until it hears of it, and packets are late: those are taken. */
CONNECTED(the_old_path_is_good_until_there_is_another)
{
	arm();
	assert_int_equal(set_mig_state(IBV_MIG_MIGRATED), 0);
	assert_event(IBV_EVENT_PATH_MIG);
	assert_true(message_comes(PRIMARY, false));
	assert_memory_equal(fix.qp->to.path.dst, alt_peer_gid, VB_GID_BYTES);
	assert_true(message_comes(ALT, true));
	rearm();
	assert_true(message_comes(PRIMARY, false));
	assert_int_equal(mig_state(), IBV_MIG_REARM); /* which says nothing of now */
	assert_true(message_comes(ALT, false));
	assert_int_equal(mig_state(), IBV_MIG_ARMED);
	assert_true(message_comes(PRIMARY, false));
	assert_no_event();
	assert_int_equal(set_mig_state(IBV_MIG_MIGRATED), 0);
	assert_event(IBV_EVENT_PATH_MIG);
	assert_false(message_comes(PRIMARY, false));
}

/*
 * Both have something outstanding when the path is lost. The peer notices first, and takes us
 * along: our retries by the first path are used up as well, but not those by the second.
 */
CONNECTED(who_is_taken_along_begins_its_retries_anew)
{
	struct ibv_send_wr wr = { .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED }, *bad;
	uint64_t lost_ns;
	struct ibv_wc wc;

	arm();
	assert_int_equal(vb_qp_post_send(fix.qp, &wr, &bad), 0);
	lost_ns = fake_ns;
	/* All retries but the last are used up: 8 times 67 ms. */
	while (vb_nic_deadline_ns(fix.nic) < lost_ns + 530000000) {
		fake_ns = vb_nic_deadline_ns(fix.nic);
		vb_nic_turn(fix.nic);
	}
	duplicate_comes(ALT, true);
	assert_event(IBV_EVENT_PATH_MIG);
	while (vb_nic_deadline_ns(fix.nic) < lost_ns + 700000000) {
		fake_ns = vb_nic_deadline_ns(fix.nic);
		vb_nic_turn(fix.nic);
	}
	assert_int_equal(vb_qp_state(fix.qp), IBV_QPS_RTS);
	packet_comes(ALT, true, VB_K_ACK, 0x200);
	assert_int_equal(vb_cq_poll(fix.cq, 1, &wc), 1);
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
}

/* The peer is armed and has migrated; what would have armed us got lost. */
CONNECTED(who_waits_is_taken_along_too)
{
	rearm();
	assert_true(message_comes(ALT, true));
	assert_event(IBV_EVENT_PATH_MIG);
	assert_int_equal(mig_state(), IBV_MIG_MIGRATED);
	assert_memory_equal(fix.qp->to.path.dst, alt_peer_gid, VB_GID_BYTES);
	assert_true(message_comes(ALT, true));
	assert_no_event();
}

CONNECTED(reset_forgets_it_all)
{
	arm();
	assert_int_equal(set_state(fix.qp, IBV_QPS_RESET), 0);
	assert_null(fix.qp->to.migration);
	assert_int_equal(mig_state(), IBV_MIG_MIGRATED);
	bring(fix.qp, IBV_QPS_RTS);
	ends.psn = EPSN;
	assert_int_equal(set_mig_state(IBV_MIG_REARM), EINVAL);
	assert_false(message_comes(ALT, true));
	send_one();
	assert_true(sent_migreq());
}
