/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The shadow of a receive QP of XRC: one NIC, and what another, whose slot is OTHER, has done
 * meanwhile stands in the word that both go by.
 */
#include <fcntl.h>
#include <stdlib.h>

#include "nic/service/xrc/xrc.h"
#include "packets.h"

enum { SENDER = 0x77, PSN = 0x100, OWN = 3, OTHER = 9, MTU = 1024 };

static const uint8_t alt_gid[VB_GID_BYTES] = { [10] = 0xff, 0xff, 10, 9, 0, 1 };
static const uint8_t alt_peer_gid[VB_GID_BYTES] = { [10] = 0xff, 0xff, 10, 9, 0, 2 };

static struct vb_xrc_store *store;
static struct {
	bool alt, clear; /* how packets come: by the alternate path, without MigReq */
} by;
static struct {
	struct vb_xrcd *xrcd;
	struct vb_cq *cq;
	struct vb_srq *srq;
	struct vb_qp *handle;
	struct vb_xrc_rcv *rcv;
} x;

static int begin_xrc(void **state)
{
	struct ibv_srq_init_attr_ex srq = {
		.attr = { .max_wr = 8, .max_sge = 1 },
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD |
			     IBV_SRQ_INIT_ATTR_CQ | IBV_SRQ_INIT_ATTR_XRCD,
		.srq_type = IBV_SRQT_XRC,
	};
	struct ibv_qp_init_attr_ex qp = { .qp_type = IBV_QPT_XRC_RECV,
					  .comp_mask = IBV_QP_INIT_ATTR_XRCD };

	begin(state);
	memset(&by, 0, sizeof(by));
	store = store_begin();
	side_use_store(&fix);
	assert_int_equal(vb_xrcd_open(fix.ctx, NULL, O_CREAT, &x.xrcd), 0);
	x.cq = make_cq(16, NULL);
	srq.pd = &fix.pd->ibv;
	srq.cq = &x.cq->ibv.cq;
	srq.xrcd = qp.xrcd = &x.xrcd->ibv;
	assert_int_equal(vb_srq_create_ex(fix.ctx, &srq, &x.srq), 0);
	assert_int_equal(vb_xrc_qp_create(&qp, &x.handle), 0);
	x.rcv = x.handle->special.xrc->rcv;
	return 0;
}

static int end_xrc(void **state)
{
	drop_qp(x.handle);
	drop_srq(x.srq);
	drop_cq(x.cq);
	assert_int_equal(vb_xrcd_close(x.xrcd), 0);
	return end(state);
}

#define XRC_TEST(name) TEST_BETWEEN(name, begin_xrc, end_xrc)

static void connect_it(void)
{
	struct ibv_qp_attr attr = qp_attr_to(peer_gid, SENDER);

	attr.rq_psn = PSN;
	attr.qp_access_flags = attr.min_rnr_timer = 0;
	qp_climb(x.handle, attr, IBV_QPS_RTR);
}

static void post_recv(uint64_t wr_id)
{
	struct ibv_recv_wr wr = { .wr_id = wr_id }, *bad;

	assert_int_equal(vb_srq_post(x.srq, &wr, &bad), 0);
}

/* For messages of more than one packet. */
static struct vb_mr *room_reg(void)
{
	static uint8_t room[2 * MTU];
	struct vb_mr *mr;

	assert_int_equal(vb_mr_reg(fix.pd, room, sizeof(room), (uintptr_t)room,
				   IBV_ACCESS_LOCAL_WRITE, &mr),
			 0);
	return mr;
}

/* A receive with that room, whose wr_id is 1. */
static void post_recv_room(const struct vb_mr *mr)
{
	struct ibv_sge sge = { (uintptr_t)mr->ibv.addr, (uint32_t)mr->ibv.length, mr->ibv.lkey };
	struct ibv_recv_wr wr = { .wr_id = 1, .sg_list = &sge, .num_sge = 1 }, *bad;

	assert_int_equal(vb_srq_post(x.srq, &wr, &bad), 0);
}

/* A packet without data comes, to that SRQ. */
static void comes(uint8_t opcode, uint32_t psn, uint32_t srqn)
{
	uint8_t octets[VB_PKT_HEADER_BYTES_MAX + MTU + VB_ICRC_BYTES] = { 0 };
	struct vb_pkt pkt = packet_for(x.handle, opcode, psn);
	struct vb_frame frame;

	pkt.migreq = !by.clear;
	pkt.ackreq = true;
	pkt.srqn = srqn;
	frame = packet_seal(octets, &pkt, NULL, opcode == VB_OP_XRC_SEND_FIRST ? MTU : 0,
			    by.alt ? alt_peer_gid : peer_gid, by.alt ? alt_gid : own_gid);
	vb_nic_rx(fix.nic, &frame, 1);
}

static void send_comes(uint32_t psn)
{
	comes(VB_OP_XRC_SEND_ONLY, psn, x.srq->ibv.handle);
}

static void set_word(uint32_t epsn, uint32_t msn, uint16_t slot)
{
	struct vb_xrc_at at = { .epsn = epsn, .msn = msn, .slot = slot };

	atomic_store(&x.rcv->word, vb_xrc_word(at));
}

static void expect_word(uint32_t epsn, uint32_t msn, uint16_t slot)
{
	struct vb_xrc_at at = vb_xrc_at(atomic_load(&x.rcv->word));

	assert_int_equal(at.epsn, epsn);
	assert_int_equal(at.msn, msn);
	assert_int_equal(at.slot, slot);
}

static void time_passes(void)
{
	fake_ns += 10000000;
	vb_nic_turn(fix.nic);
}

/* What was sent last is an ACK or NAK of that PSN. */
static void expect_answer(unsigned sent, uint32_t psn, uint8_t syndrome)
{
	struct vb_pkt pkt;

	assert_int_equal(fix.sent, sent);
	assert_non_null(vb_pkt_parse_head(&pkt, fix.last, VB_BTH_BYTES + 4));
	assert_int_equal(pkt.opcode, VB_OP_XRC_ACK);
	assert_int_equal(pkt.dqpn, SENDER);
	assert_int_equal(pkt.psn, psn);
	assert_int_equal(pkt.aeth.syndrome, syndrome);
}

static void expect_completion(uint64_t wr_id)
{
	struct ibv_wc wc;

	assert_int_equal(vb_cq_poll(x.cq, 1, &wc), 1);
	assert_int_equal(wc.wr_id, wr_id);
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	assert_int_equal(wc.qp_num, x.handle->ibv.qp.qp_num);
}

static uint64_t dropped(enum vb_stat why)
{
	return atomic_load(&vb_nic_stats(fix.nic)->count[why]);
}

#define ACK vb_aeth_ack(VB_CREDIT_CODE_UNLIMITED)

XRC_TEST(what_is_taken_moves_the_word)
{
	connect_it();
	post_recv(1);
	send_comes(PSN);
	expect_answer(1, PSN, ACK);
	expect_completion(1);
	expect_word(PSN + 1, 1, OWN);
}

XRC_TEST(it_goes_on_where_another_stopped)
{
	connect_it();
	post_recv(1);
	send_comes(PSN);
	set_word(PSN + 9, 7, OTHER);
	/* Seen before, if not here. */
	send_comes(PSN + 4);
	expect_answer(2, PSN + 8, ACK);
	post_recv(2);
	send_comes(PSN + 9);
	expect_answer(3, PSN + 9, ACK);
	expect_completion(1);
	expect_completion(2);
	expect_word(PSN + 10, 8, OWN);
}

/* Who took the last packet says that one is missing; others do not know. */
XRC_TEST(only_who_had_the_last_one_asks_for_the_next)
{
	connect_it();
	set_word(PSN + 5, 5, OTHER);
	send_comes(PSN + 6);
	assert_int_equal(fix.sent, 0);
	assert_int_equal(dropped(VB_STAT_DROP_SEQUENCE), 1);
	set_word(PSN + 5, 5, OWN);
	send_comes(PSN + 6);
	expect_answer(1, PSN + 5, vb_aeth_nak(VB_NAK_PSN));
	expect_word(PSN + 5, 5, OWN);
}

/* A message that was begun here and went on elsewhere is none of ours; its receive is. */
XRC_TEST(a_message_that_is_taken_over_is_given_up)
{
	struct vb_mr *mr = room_reg();

	connect_it();
	post_recv_room(mr);
	comes(VB_OP_XRC_SEND_FIRST, PSN, x.srq->ibv.handle);
	expect_word(PSN + 1, 0, OWN);
	set_word(PSN + 20, 6, OTHER);
	send_comes(PSN + 20);
	expect_completion(1);
	expect_word(PSN + 21, 7, OWN);
	assert_int_equal(vb_mr_dereg(mr), 0);
}

/* A message was half there, and will not go on: its receive is not lost. */
XRC_TEST(a_message_that_will_not_go_on_gives_its_receive_back)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_ERR };
	struct ibv_wc wc;
	struct vb_mr *mr = room_reg();

	for (unsigned i = 0; i < 2; i++) {
		connect_it();
		post_recv_room(mr);
		comes(VB_OP_XRC_SEND_FIRST, PSN, x.srq->ibv.handle);
		assert_int_equal(vb_cq_poll(x.cq, 1, &wc), 0);
		attr.qp_state = i ? IBV_QPS_RESET : IBV_QPS_ERR;
		assert_int_equal(vb_xrc_qp_modify(x.handle, &attr, IBV_QP_STATE), 0);
		assert_int_equal(vb_cq_poll(x.cq, 1, &wc), 1);
		assert_int_equal(wc.wr_id, 1);
		assert_int_equal(wc.status, IBV_WC_WR_FLUSH_ERR);
		attr.qp_state = IBV_QPS_RESET;
		assert_int_equal(vb_xrc_qp_modify(x.handle, &attr, IBV_QP_STATE), 0);
	}
	assert_int_equal(vb_mr_dereg(mr), 0);
}

/* A14: an SRQ that there is not; and then nobody takes anything for that QP any more. */
XRC_TEST(an_error_is_one_for_all)
{
	struct vb_xrc_attr at;
	uint32_t seq;

	connect_it();
	comes(VB_OP_XRC_SEND_ONLY, PSN, x.srq->ibv.handle + 1);
	expect_answer(1, PSN, vb_aeth_nak(VB_NAK_INVALID_REQ));
	assert_true(vb_xrc_rcv_read(x.rcv, &at, &seq));
	assert_int_equal(at.attr.qp_state, IBV_QPS_ERR);
	assert_event(IBV_EVENT_QP_REQ_ERR);
	post_recv(1);
	send_comes(PSN);
	assert_int_equal(fix.sent, 1);
	assert_int_equal(dropped(VB_STAT_DROP_STATE), 1);
}

/* Another process has the store's lock, and is stopped: others hear of it later. */
XRC_TEST(an_error_waits_for_a_busy_store)
{
	const struct vb_xrc_log *log = &store->log;
	uint64_t noted = atomic_load(&log->count);

	connect_it();
	store_busy = true;
	comes(VB_OP_XRC_SEND_ONLY, PSN, x.srq->ibv.handle + 1);
	expect_answer(1, PSN, vb_aeth_nak(VB_NAK_INVALID_REQ));
	assert_event(IBV_EVENT_QP_REQ_ERR);
	/* Others have not heard yet, but this NIC knows, whatever it reads in the store. */
	assert_int_equal(x.rcv->at.attr.qp_state, IBV_QPS_RTR);
	assert_int_equal(atomic_load(&log->count), noted);
	vb_xrc_rcv_state_set(x.rcv, IBV_QPS_RTR);
	post_recv(1);
	send_comes(PSN);
	assert_int_equal(dropped(VB_STAT_DROP_STATE), 1);
	time_passes();
	assert_int_equal(x.rcv->at.attr.qp_state, IBV_QPS_RTR);
	store_busy = false;
	time_passes();
	assert_int_equal(x.rcv->at.attr.qp_state, IBV_QPS_ERR);
	assert_int_equal(atomic_load(&log->count), noted + 1);
}

/* What was made anew meanwhile is not in error. */
XRC_TEST(an_old_error_is_not_told_of_a_new_life)
{
	static const struct ibv_qp_attr reset = { .qp_state = IBV_QPS_RESET };

	connect_it();
	store_busy = true;
	comes(VB_OP_XRC_SEND_ONLY, PSN, x.srq->ibv.handle + 1);
	assert_event(IBV_EVENT_QP_REQ_ERR);
	assert_int_equal(vb_xrc_qp_modify(x.handle, &reset, IBV_QP_STATE), 0);
	store_busy = false;
	time_passes();
	assert_int_equal(x.rcv->at.attr.qp_state, IBV_QPS_RESET);
}

/* As another's shadow finds it. */
XRC_TEST(another_s_error_is_ours)
{
	connect_it();
	post_recv(1);
	send_comes(PSN);
	vb_xrc_rcv_state_set(x.rcv, IBV_QPS_ERR);
	send_comes(PSN + 1);
	assert_int_equal(fix.sent, 1);
	assert_int_equal(dropped(VB_STAT_DROP_STATE), 1);
	expect_word(PSN + 1, 1, OWN);
}

XRC_TEST(what_is_half_written_is_waited_for)
{
	connect_it();
	post_recv(1);
	atomic_fetch_add(&x.rcv->seq, 1);
	send_comes(PSN);
	assert_int_equal(fix.sent, 0);
	atomic_fetch_add(&x.rcv->seq, 1);
	send_comes(PSN);
	expect_answer(1, PSN, ACK);
}

XRC_TEST(a_number_of_nobody_is_answered_by_nobody)
{
	connect_it();
	post_recv(1);
	vb_xrc_rcv_close(store, x.handle->ibv.qp.qp_num, OWN);
	send_comes(PSN);
	assert_int_equal(fix.sent, 0);
	assert_int_equal(dropped(VB_STAT_DROP_NO_QP), 1);
}

/* --- migration --- */

static void rearm(void)
{
	struct vb_gid_entry entry[2] = { { .ifindex = 1, .mtu_bytes = 1500 },
					 { .ifindex = 2, .mtu_bytes = 1500 } };
	struct ibv_qp_attr attr = {
		.path_mig_state = IBV_MIG_REARM, .alt_port_num = 1, .alt_timeout = 16,
		.alt_ah_attr = { .is_global = 1, .port_num = 1, .grh.sgid_index = 1 },
	};

	memcpy(entry[0].gid, own_gid, VB_GID_BYTES);
	memcpy(entry[1].gid, alt_gid, VB_GID_BYTES);
	memcpy(attr.alt_ah_attr.grh.dgid.raw, alt_peer_gid, VB_GID_BYTES);
	vb_nic_gids_set(fix.nic, entry, 2);
	assert_event(IBV_EVENT_GID_CHANGE);
	connect_it();
	attr.qp_state = IBV_QPS_RTS;
	assert_int_equal(vb_qp_modify(x.handle, &attr,
				      IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_SQ_PSN |
					      IBV_QP_ALT_PATH | IBV_QP_PATH_MIG_STATE),
			 0);
}

static enum ibv_mig_state mig_state(void)
{
	return x.rcv->at.attr.path_mig_state;
}

/* As the shadow of another NIC does it. */
static void another_steps(enum ibv_mig_state to)
{
	struct vb_xrc_attr at = x.rcv->at;

	if (to == IBV_MIG_MIGRATED)
		vb_migration_change(&at.attr, &at.path, &at.migration);
	at.attr.path_mig_state = to;
	vb_xrc_rcv_write(x.rcv, &at, false);
}

static void message_comes(uint32_t psn)
{
	unsigned sent = fix.sent;

	post_recv(psn);
	send_comes(psn);
	expect_completion(psn);
	assert_int_equal(fix.sent, sent + 1);
	/* MigReq in what is answered: as long as it is not on its way to be armed. */
	assert_int_equal(!!(fix.last[1] & 0x40), mig_state() == IBV_MIG_MIGRATED);
}

XRC_TEST(a_packet_arms_it_and_another_migrates_it)
{
	rearm();
	message_comes(PSN);
	assert_int_equal(mig_state(), IBV_MIG_REARM);
	by.clear = true;
	message_comes(PSN + 1);
	assert_int_equal(mig_state(), IBV_MIG_ARMED);
	by.clear = false;
	by.alt = true;
	message_comes(PSN + 2);
	assert_int_equal(mig_state(), IBV_MIG_MIGRATED);
	assert_event(IBV_EVENT_PATH_MIG);
	assert_int_equal(x.rcv->at.attr.timeout, 16);
	assert_memory_equal(x.rcv->at.path.dst, alt_peer_gid, VB_GID_BYTES);
	/* What is late comes by the path that was left. */
	by.alt = false;
	message_comes(PSN + 3);
	assert_no_event();
}

/* Without a further packet. */
XRC_TEST(a_step_waits_for_a_busy_store)
{
	rearm();
	message_comes(PSN);
	by.clear = true;
	store_busy = true;
	message_comes(PSN + 1);
	assert_int_equal(mig_state(), IBV_MIG_REARM);
	store_busy = false;
	time_passes();
	assert_int_equal(mig_state(), IBV_MIG_ARMED);
}

/* News is what the word says that nobody has had, and not what this NIC has not. */
XRC_TEST(what_another_has_taken_does_not_arm)
{
	rearm();
	message_comes(PSN);
	set_word(PSN + 9, 7, OTHER);
	by.clear = true;
	send_comes(PSN + 1);
	assert_int_equal(mig_state(), IBV_MIG_REARM);
	message_comes(PSN + 9);
	assert_int_equal(mig_state(), IBV_MIG_ARMED);
}

XRC_TEST(what_another_has_done_is_done)
{
	rearm();
	message_comes(PSN);
	another_steps(IBV_MIG_ARMED);
	another_steps(IBV_MIG_MIGRATED);
	by.alt = true;
	message_comes(PSN + 1);
	assert_no_event();
	assert_int_equal(mig_state(), IBV_MIG_MIGRATED);
	by.alt = false;
	message_comes(PSN + 2);
}

/* Between this NIC's look and its word, which it gives with the store's lock held. */
static bool migrate_first(void *arg)
{
	side_use_store(&fix);
	another_steps(IBV_MIG_MIGRATED);
	return true;
}

static const struct vb_host_xrc racing = {
	.store = fake_store, .lock = idle_xrc, .try_lock = migrate_first, .unlock = idle_xrc,
	.tell = idle_xrc,
};

XRC_TEST(who_is_second_to_say_so_says_nothing)
{
	rearm();
	by.clear = true;
	message_comes(PSN);
	by.clear = false;
	by.alt = true;
	fix.nic->host.xrc = &racing;
	message_comes(PSN + 1);
	assert_no_event();
	assert_int_equal(mig_state(), IBV_MIG_MIGRATED);
	assert_memory_equal(x.rcv->at.migration.old.dst, peer_gid, VB_GID_BYTES);
}
