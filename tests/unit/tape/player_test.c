/* SPDX-License-Identifier: BSD-2-Clause */
#include "tape/replay/player.h"

#include <errno.h>

#include "group.h"
#include "idle_host.h"
#include "nic/control/nic.h"
#include "tape/calls.h"
#include "tape/tape.h"
#include "tapes.h"

GROUP(folder_make, folder_remove)

static const uint8_t gid[VB_GID_BYTES] = { [10] = 0xff, 0xff, 10, 0, 0, 1 };
static uint8_t memory[64];
static char lines[4096]; /* what the player says */

static uint64_t now_ns;

static uint64_t host_now_ns(void *arg)
{
	return now_ns += 1000;
}

static int host_join(void *arg, const uint8_t group[VB_GID_BYTES], uint32_t ifindex)
{
	return 0;
}

static void host_leave(void *arg, const uint8_t group[VB_GID_BYTES])
{
}

static struct vb_qp *qp_make(struct vb_pd *pd, struct vb_cq *cq)
{
	struct ibv_qp_init_attr init = {
		.send_cq = &cq->ibv.cq, .recv_cq = &cq->ibv.cq, .qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1,
			 .max_recv_sge = 1 },
		.sq_sig_all = 1,
	};
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT, .port_num = 1, .path_mtu = IBV_MTU_1024,
		.dest_qp_num = 0x4711, .min_rnr_timer = 1, .timeout = 1, .retry_cnt = 0,
		.max_rd_atomic = 1, .max_dest_rd_atomic = 1,
		.ah_attr = { .is_global = 1, .port_num = 1 },
	};
	struct vb_qp *qp;

	assert_int_equal(vb_taped_qp_create(pd, &init, &qp), 0);
	assert_int_equal(vb_taped_qp_modify(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX |
						       IBV_QP_PORT | IBV_QP_ACCESS_FLAGS), 0);
	memcpy(attr.ah_attr.grh.dgid.raw, gid, VB_GID_BYTES);
	attr.ah_attr.grh.dgid.raw[15] = 2;
	attr.qp_state = IBV_QPS_RTR;
	assert_int_equal(vb_taped_qp_modify(qp, &attr,
					    IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
						    IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
						    IBV_QP_MAX_DEST_RD_ATOMIC |
						    IBV_QP_MIN_RNR_TIMER), 0);
	attr.qp_state = IBV_QPS_RTS;
	assert_int_equal(vb_taped_qp_modify(qp, &attr,
					    IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
						    IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
						    IBV_QP_MAX_QP_RD_ATOMIC), 0);
	return qp;
}

/* As abi/tape does. */
static void post(struct vb_qp *qp, const struct vb_mr *mr)
{
	struct ibv_sge sge = { (uintptr_t)memory, 8, mr->ibv.lkey };
	struct ibv_send_wr wr = { .wr_id = 77, .sg_list = &sge, .num_sge = 1,
				  .opcode = IBV_WR_SEND }, *bad = NULL;
	uint64_t at = (uintptr_t)qp;
	uint32_t place;
	int rc;

	if (vb_tape_enter(VB_TAPE_QP_POST_SEND)) {
		vb_tape_put_value(at);
		vb_tape_put_sends(&wr);
	}
	rc = vb_qp_post_send(qp, &wr, &bad);
	place = vb_tape_send_place(&wr, rc ? bad : NULL);
	vb_tape_leave(rc, NULL, &place, sizeof(place));
	assert_int_equal(rc, 0);
}

/* A SEND that nobody answers. */
static void calls_make(struct vb_nic *nic)
{
	struct vb_gid_entry entry = { .mtu_bytes = 1500 };
	struct ibv_cq_init_attr_ex cq_attr = { .cqe = 16 };
	struct vb_ctx *ctx;
	struct vb_pd *pd;
	struct vb_mr *mr, *none = NULL;
	struct vb_cq *cq;
	struct vb_qp *qp;
	struct ibv_wc wc;

	memcpy(entry.gid, gid, sizeof(gid));
	vb_taped_nic_gids_set(nic, &entry, 1);
	assert_int_equal(vb_taped_ctx_create(nic, -1, &ctx), 0);
	assert_int_equal(vb_taped_pd_create(ctx, &pd), 0);
	assert_int_equal(vb_taped_mr_reg(pd, memory, sizeof(memory), (uintptr_t)memory,
					 IBV_ACCESS_LOCAL_WRITE, &mr), 0);
	assert_int_equal(vb_taped_cq_create_ex(ctx, &cq_attr, &cq), 0);
	qp = qp_make(pd, cq);
	/* A region that nobody could have. */
	assert_int_equal(vb_taped_mr_reg(pd, memory, SIZE_MAX, (uintptr_t)memory, 0, &none),
			 EINVAL);
	post(qp, mr);
	for (unsigned i = 0; i < 100 && vb_taped_cq_poll(cq, 1, &wc) == 0; i++) {
		now_ns += 1000000000;
		vb_taped_turn(nic);
	}
	assert_int_equal(wc.status, IBV_WC_RETRY_EXC_ERR);
	assert_int_equal(vb_taped_qp_destroy(qp), 0);
	vb_taped_qp_free(qp);
	assert_int_equal(vb_taped_cq_destroy(cq), 0);
	vb_taped_cq_free(cq);
	assert_int_equal(vb_taped_mr_dereg(mr), 0);
	assert_int_equal(vb_taped_pd_destroy(pd), 0);
	vb_taped_ctx_destroy(ctx);
}

static struct loaded recorded(void)
{
	static const struct vb_host_stamps stamps = { idle_now_ns, idle_now_ns };
	static const struct vb_host_groups groups = { host_join, host_leave };
	struct vb_nic_host host = idle_host(NULL);
	struct vb_nic *nic;

	host.clock.now_ns = host_now_ns;
	host.stamps = &stamps;
	host.groups = &groups;
	assert_int_equal(vb_tape_open(folder, 1 << 24, NULL), 0);
	assert_int_equal(vb_taped_nic_create(&nic, &host, 4711), 0);
	calls_make(nic);
	vb_nic_destroy(nic);
	vb_tape_close();
	return tape_load();
}

static void say(void *arg, const char *words)
{
	size_t at = strlen(lines);

	snprintf(lines + at, sizeof(lines) - at, "%s\n", words);
}

static struct vb_player player;

static enum vb_replay_end replayed(struct loaded tape)
{
	enum vb_replay_end end;

	lines[0] = 0;
	player = (struct vb_player){ .say = say, .until = player.until };
	assert_null(vb_player_begin(&player, tape.at, tape.bytes));
	end = vb_player_run(&player);
	if (end == VB_REPLAY_UNTIL)
		vb_player_states(&player);
	vb_player_end(&player);
	/* The test's own: a replay that has ended early leaves its NIC as it is. */
	if (end == VB_REPLAY_WHOLE)
		vb_nic_destroy(player.nic);
	return end;
}

static void has(const char *words)
{
	if (!strstr(lines, words))
		fail_msg("'%s' is not in: %s", words, lines);
}

TEST(a_failure_happens_again)
{
	struct loaded tape = recorded();

	assert_int_equal(replayed(tape), VB_REPLAY_WHOLE);
	has("completion: QPN 0x");
	has("wr_id 0x4d: IBV_WC_RETRY_EXC_ERR");
	has("went from RTS to ERR, in: something was due");
	has("no acknowledgement of PSN 0x0 came");
	assert_int_equal(player.counts.completions, 1);
	assert_int_equal(player.counts.errors, 1);
	assert_true(player.counts.frames_out >= 1);
	free(tape.at);
}

TEST(what_is_not_recorded_is_refused)
{
	struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_XRC_SEND };
	struct vb_qp *qp = NULL;

	assert_int_equal(vb_tape_open(folder, 1 << 24, NULL), 0);
	assert_int_equal(vb_taped_qp_create(NULL, &init, &qp), EOPNOTSUPP);
	vb_tape_close();
	free(tape_load().at);
}

TEST(a_replay_stops_where_it_is_to)
{
	struct loaded tape = recorded();
	struct vb_tape_reader reader;
	struct vb_tape_item item;

	assert_null(vb_tape_read_begin(&reader, tape.at, tape.bytes));
	do
		assert_int_equal(vb_tape_read(&reader, &item), VB_TAPE_READ_ITEM);
	while (item.head->kind != VB_TAPE_QP_POST_SEND);
	player.until = item.number;
	assert_int_equal(replayed(tape), VB_REPLAY_UNTIL);
	has("is in RTS: 0 requests posted, 0 completed");
	player.until = 0;
	free(tape.at);
}

/* Each change stands for a NIC that does something else than the recorded one. */
static void differs(struct loaded tape, const char *words)
{
	sums_mend(tape);
	assert_int_equal(replayed(tape), VB_REPLAY_DIFFERENT);
	if (!strstr(player.difference, words))
		fail_msg("'%s' is not in: %s", words, player.difference);
	free(tape.at);
}

TEST(another_result_is_a_difference)
{
	struct loaded tape = recorded();
	struct vb_tape_item_head *call = item_of(tape, VB_TAPE_PD_CREATE, 0);
	struct vb_tape_item_head *done = (void *)((uint8_t *)(call + 1) + call->bytes);

	assert_int_equal(done->kind, VB_TAPE_DONE);
	*(int64_t *)(done + 1) = 12;
	differs(tape, "ibv_alloc_pd: it returned 0; the record has 12");
}

TEST(another_question_is_a_difference)
{
	struct loaded tape = recorded();

	item_of(tape, VB_TAPE_SENT, 0)->kind = VB_TAPE_JOIN;
	differs(tape, "the NIC sent frames, and the record has: joined a group");
}

TEST(another_frame_is_a_difference)
{
	struct loaded tape = recorded();
	uint8_t *sent = (uint8_t *)(item_of(tape, VB_TAPE_SENT, 0) + 1) + 4;

	sent[VB_TAPE_SENT_HEAD_BYTES + VB_BTH_PSN_OFFSET + 3] ^= 5;
	differs(tape, "the NIC sent 1 frame, RC_SEND_ONLY to QPN 0x4711 with PSN 0; the record "
		      "has 1 frame, RC_SEND_ONLY to QPN 0x4711 with PSN 5");
}

TEST(another_path_is_a_difference)
{
	struct loaded tape = recorded();
	uint8_t *sent = (uint8_t *)(item_of(tape, VB_TAPE_SENT, 0) + 1) + 4;

	sent[15] ^= 1;
	differs(tape, "with another path, length or header");
}

TEST(another_completion_is_a_difference)
{
	struct loaded tape = recorded();
	struct vb_tape_item_head *call = item_of(tape, VB_TAPE_CQ_POLL, 0);
	struct vb_tape_item_head *done = (void *)((uint8_t *)(call + 1) + call->bytes);
	struct ibv_wc *wc = (void *)((uint8_t *)(done + 1) + sizeof(struct vb_tape_done));

	wc->status = IBV_WC_RNR_RETRY_EXC_ERR;
	differs(tape, "IBV_WC_RETRY_EXC_ERR; the record has QPN 0x");
}

TEST(an_unknown_object_is_a_difference)
{
	struct loaded tape = recorded();

	*(uint64_t *)(item_of(tape, VB_TAPE_CQ_POLL, 0) + 1) ^= 8;
	differs(tape, "ibv_poll_cq: it is about an object that is not in the record");
}

/* Wherever it ends, what is there is the same. */
TEST(a_tape_may_end_anywhere)
{
	struct loaded tape = recorded();
	struct vb_tape_head *head = (void *)tape.at;
	struct vb_tape_reader reader;
	struct vb_tape_item item;

	assert_null(vb_tape_read_begin(&reader, tape.at, tape.bytes));
	while (vb_tape_read(&reader, &item) == VB_TAPE_READ_ITEM &&
	       item.head->kind != VB_TAPE_END) {
		atomic_store(&head->bytes, reader.next);
		assert_int_equal(replayed(tape), VB_REPLAY_OPEN);
		atomic_store(&head->bytes, tape.bytes);
		assert_int_equal(replayed((struct loaded){ tape.at, reader.next }), VB_REPLAY_CUT);
	}
	free(tape.at);
}
