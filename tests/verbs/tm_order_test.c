/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What tags are for: software and NIC match messages to receives together, as MPI has it. Each
 * receive gets the oldest message of its sender that no older receive got, whoever finds that out
 * and however posting, arriving and handling meet. Software does its half as tag_matching.md says.
 */
#include "tm.h"

enum {
	SENDERS = 3,
	EACH = 500,
	SLOT = 64, /* octets of each buffer */
	AHEAD = 12, /* receives before messages, or messages before receives, at most */
	WINDOW = 8, /* messages of a sender that are not completed */
	STORED = 64,
};

struct message {
	uint32_t sender, seq;
};

/* A receive: its place in the tagged part of b's buffer follows from its number. */
struct receive {
	uint32_t handle;
	bool posted;
};

struct play {
	struct tm_scene s;
	struct ibv_qp *qp[SENDERS]; /* where the others' messages come in; the first is s.b.qp */
	struct vt_end from[SENDERS];
	uint32_t sent[SENDERS], open[SENDERS];
	struct receive receives[SENDERS][EACH];
	uint32_t posted[SENDERS]; /* receives, of which ... */
	uint32_t done[SENDERS];	  /* ... so many have their message */
	struct message stored[STORED]; /* unexpected ones that no receive was posted for */
	uint32_t stored_count;
	uint32_t handled; /* unexpected messages ever */
	uint32_t by_nic, by_software;
	struct tm_done waiting[STORED]; /* completions that came before one that was looked for */
	uint32_t waiting_count;
	uint64_t seed;
};

static uint32_t chance(struct play *p, uint32_t n)
{
	p->seed = p->seed * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(p->seed >> 33) % n;
}

static uint8_t *place_of(struct play *p, uint32_t sender, uint32_t index)
{
	return p->s.b.buf + ((size_t)(sender * AHEAD + index % AHEAD) * SLOT);
}

static void play_open(struct play *p, uint64_t seed)
{
	memset(p, 0, sizeof(*p));
	p->seed = seed;
	tm_open(&p->s);
	p->from[0] = p->s.a;
	p->qp[0] = p->s.b.qp;
	for (int i = 1; i < SENDERS; i++) {
		struct vt_options opt = p->s.opt;

		vt_end_open(&p->from[i], &opt, false);
		p->qp[i] = tm_receiver(p->s.b.srq, 0);
		vt_climb(p->from[i].qp, &opt, IBV_QPS_RTS, p->qp[i]->qp_num);
		vt_climb(p->qp[i], &opt, IBV_QPS_RTS, p->from[i].qp->qp_num);
	}
	for (uint64_t i = 0; i < 32; i++)
		assert_int_equal(vt_recv_at(&p->s.b, i, TM_ORDINARY + (size_t)i * SLOT, SLOT), 0);
}

static void play_close(struct play *p)
{
	for (int i = 1; i < SENDERS; i++) {
		vt_end_close(&p->from[i]);
		tm_receiver_close(p->qp[i]);
	}
	tm_close(&p->s);
}

/* Every message of a sender has one tag, so that only order tells them apart. */
static void send_one(struct play *p, uint32_t sender)
{
	struct message m = { sender, p->sent[sender] };
	uint8_t *at = p->from[sender].buf + (size_t)(m.seq % WINDOW) * SLOT;
	struct vt_wr w;

	if (m.seq == EACH || p->open[sender] == WINDOW || m.seq == p->posted[sender] + AHEAD)
		return;
	tm_put_header(at, IBV_TMH_EAGER, 1000 + sender);
	memcpy(at + TM_TMH, &m, sizeof(m));
	vt_wr(&w, IBV_WR_SEND, &p->from[sender], &p->s.b, TM_TMH + sizeof(m));
	w.sge.addr = (uintptr_t)at;
	vt_post(&p->from[sender], &w);
	p->sent[sender]++;
	p->open[sender]++;
}

static void reap(struct play *p, uint32_t sender)
{
	struct ibv_wc wc;

	while (ibv_poll_cq(p->from[sender].cq, 1, &wc) == 1) {
		assert_int_equal(wc.status, IBV_WC_SUCCESS);
		p->open[sender]--;
	}
}

/* The next receive of this sender has its message: it must be the next message. */
static void finish(struct play *p, uint32_t sender, const struct message *m)
{
	assert_true(p->done[sender] < p->posted[sender]);
	assert_int_equal(m->sender, sender);
	assert_int_equal(m->seq, p->done[sender]);
	p->receives[sender][p->done[sender]++].posted = false;
}

/* A receive is posted: it may be for a message that software has, else it is the NIC's. */
static void receive_one(struct play *p, uint32_t sender)
{
	uint32_t index = p->posted[sender];
	struct tm_op o;

	if (index == EACH || index - p->done[sender] == AHEAD)
		return;
	p->posted[sender]++;
	for (uint32_t i = 0; i < p->stored_count; i++) {
		struct message m = p->stored[i];

		if (m.sender != sender)
			continue;
		p->stored_count--;
		memmove(&p->stored[i], &p->stored[i + 1],
			(p->stored_count - i) * sizeof(p->stored[0]));
		finish(p, sender, &m);
		p->by_software++;
		return;
	}
	tm_tag(&o, &p->s, sender * EACH + index, 1000 + sender,
	       (size_t)(place_of(p, sender, index) - p->s.b.buf), SLOT);
	o.wr.flags = IBV_OPS_TM_SYNC;
	o.wr.tm.unexpected_cnt = p->handled;
	assert_int_equal(tm_post(&p->s, &o), 0);
	p->receives[sender][index] = (struct receive){ o.wr.tm.handle, true };
}

/* Take a receive back from the NIC, which cannot have used it. */
static void take_back(struct play *p, struct receive *receive)
{
	struct tm_done done;
	struct tm_op o;

	tm_op(&o, IBV_WR_TAG_DEL, 555);
	o.wr.tm.handle = receive->handle;
	assert_int_equal(tm_post(&p->s, &o), 0);
	for (;;) {
		assert_true(tm_poll(p->s.cq, &done, VT_WAIT_MS));
		if (done.opcode == IBV_WC_TM_DEL)
			break;
		assert_true(p->waiting_count < STORED);
		p->waiting[p->waiting_count++] = done;
	}
	assert_int_equal(done.wr_id, 555);
	assert_int_equal(done.status, IBV_WC_SUCCESS);
}

static void handle_unexpected(struct play *p, const struct tm_done *done)
{
	const uint8_t *at = p->s.b.buf + TM_ORDINARY + done->wr_id * SLOT + TM_TMH;
	struct message m;
	struct tm_op o;

	memcpy(&m, at, sizeof(m));
	assert_true(m.sender < SENDERS);
	assert_int_equal(vt_recv_at(&p->s.b, done->wr_id, TM_ORDINARY + done->wr_id * SLOT, SLOT),
			 0);
	p->handled++;
	if (p->done[m.sender] < p->posted[m.sender]) {
		take_back(p, &p->receives[m.sender][p->done[m.sender]]);
		finish(p, m.sender, &m);
		p->by_software++;
	} else {
		assert_true(p->stored_count < STORED);
		p->stored[p->stored_count++] = m;
	}
	/* Not always at once: the more receives wait for it. */
	if (chance(p, 3) == 0)
		return;
	tm_op(&o, IBV_WR_TAG_SYNC, 1);
	o.wr.flags = IBV_OPS_TM_SYNC;
	o.wr.tm.unexpected_cnt = p->handled;
	assert_int_equal(tm_post(&p->s, &o), 0);
}

static bool take_one(struct play *p, struct tm_done *done)
{
	if (!p->waiting_count)
		return tm_poll(p->s.cq, done, 0);
	*done = p->waiting[0];
	p->waiting_count--;
	memmove(&p->waiting[0], &p->waiting[1], p->waiting_count * sizeof(p->waiting[0]));
	return true;
}

static void look(struct play *p)
{
	struct tm_done done;
	struct message m;
	uint32_t sender;

	if (!take_one(p, &done))
		return;
	assert_int_equal(done.status, IBV_WC_SUCCESS);
	assert_int_equal(done.opcode, IBV_WC_TM_RECV);
	if (!(done.flags & IBV_WC_TM_MATCH)) {
		handle_unexpected(p, &done);
		return;
	}
	sender = (uint32_t)(done.wr_id / EACH);
	assert_true(done.tag == 1000 + sender);
	assert_int_equal(done.wr_id % EACH, p->done[sender]);
	memcpy(&m, place_of(p, sender, p->done[sender]), sizeof(m));
	finish(p, sender, &m);
	p->by_nic++;
}

static bool all_done(const struct play *p)
{
	for (int i = 0; i < SENDERS; i++) {
		if (p->done[i] < EACH)
			return false;
	}
	return true;
}

static void receives_get_messages_in_order(void **state)
{
	for (uint64_t seed = 1; seed <= 6; seed++) {
		struct play p;

		play_open(&p, seed);
		for (uint32_t step = 0; !all_done(&p); step++) {
			/* Now senders are ahead, now receives. */
			bool senders_ahead = (step / 200) % 2;
			uint32_t sender = chance(&p, SENDERS);

			if (chance(&p, 4) < (senders_ahead ? 3 : 1))
				send_one(&p, sender);
			if (chance(&p, 4) < (senders_ahead ? 1 : 3))
				receive_one(&p, sender);
			reap(&p, sender);
			if (chance(&p, 3))
				look(&p);
		}
		/* Else it would show nothing. */
		assert_true(p.by_nic > EACH / 20);
		assert_true(p.by_software > EACH / 20);
		assert_int_equal(p.by_nic + p.by_software, SENDERS * EACH);
		play_close(&p);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		vt_test(receives_get_messages_in_order),
	};

	return vt_main(tests);
}
