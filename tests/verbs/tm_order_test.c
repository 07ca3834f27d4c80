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
	WINDOW = 8, /* messages of a sender that are not done with */
	PLACES = AHEAD + WINDOW,
	STORED = 64,
	DATA_AT = 8192, FINS_AT = 16384, /* in a sender's buffer */
};

struct message {
	uint32_t sender, seq;
};

struct play {
	struct tm_scene s;
	struct ibv_qp *qp[SENDERS]; /* where the others' messages come in; the first is s.b.qp */
	struct vt_end from[SENDERS];
	uint32_t sent[SENDERS];
	int busy[SENDERS][WINDOW]; /* what a place in the sender's buffer still waits for */
	uint32_t handle[SENDERS][EACH];
	uint32_t posted[SENDERS];  /* receives, of which ... */
	uint32_t matched[SENDERS]; /* ... so many have a message ... */
	uint32_t done[SENDERS];	   /* ... and so many all of its data */
	struct message stored[STORED]; /* unexpected ones that no receive was posted for */
	uint32_t stored_count;
	uint32_t handled; /* unexpected messages ever */
	uint32_t eager, read, by_software; /* who finished how many */
	struct tm_done waiting[STORED]; /* completions that came before one that was looked for */
	uint32_t waiting_count;
	uint64_t seed;
};

static uint32_t chance(struct play *p, uint32_t n)
{
	p->seed = p->seed * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(p->seed >> 33) % n;
}

/* Of a receive. Data may come when others have theirs that were posted later: up to WINDOW. */
static uint8_t *place_of(struct play *p, uint32_t sender, uint32_t index)
{
	return p->s.b.buf + ((size_t)(sender * PLACES + index % PLACES) * SLOT);
}

static void await_fin(struct play *p, uint32_t sender, uint64_t i)
{
	assert_int_equal(vt_recv_at(&p->from[sender], i, FINS_AT + i * SLOT, SLOT), 0);
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

		vt_end_open(&p->from[i], &opt);
		p->qp[i] = tm_receiver(p->s.b.srq, 0);
		vt_climb(p->from[i].qp, &opt, IBV_QPS_RTS, p->qp[i]->qp_num);
		vt_climb(p->qp[i], &opt, IBV_QPS_RTS, p->from[i].qp->qp_num);
	}
	for (uint32_t i = 0; i < SENDERS * WINDOW; i++)
		await_fin(p, i / WINDOW, i % WINDOW);
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

static int *busy(struct play *p, uint32_t sender, uint32_t seq)
{
	return &p->busy[sender][seq % WINDOW];
}

static uint8_t *data_of(struct play *p, uint32_t sender, uint32_t seq)
{
	return p->from[sender].buf + DATA_AT + (size_t)(seq % WINDOW) * SLOT;
}

/* Every message of a sender has one tag, so that only order tells them apart. */
static void send_one(struct play *p, uint32_t sender)
{
	struct message m = { sender, p->sent[sender] };
	uint8_t *at = p->from[sender].buf + (size_t)(m.seq % WINDOW) * SLOT;
	struct ibv_rvh rvh = { .va = htobe64((uintptr_t)data_of(p, sender, m.seq)),
			       .rkey = htobe32(p->from[sender].mr->rkey),
			       .len = htobe32(sizeof(m)) };
	uint32_t head = TM_TMH;
	struct vt_wr w;

	if (m.seq == EACH || *busy(p, sender, m.seq) || m.seq == p->posted[sender] + AHEAD)
		return;
	*busy(p, sender, m.seq) = 1;
	tm_put_header(at, IBV_TMH_EAGER, 1000 + sender);
	if (chance(p, 3) == 0) {
		tm_put_header(at, IBV_TMH_RNDV, 1000 + sender);
		((struct ibv_tmh *)at)->app_ctx = htobe32(m.seq);
		memcpy(at + TM_TMH, &rvh, sizeof(rvh));
		memcpy(data_of(p, sender, m.seq), &m, sizeof(m));
		head += TM_RVH;
		*busy(p, sender, m.seq) = 2;
	}
	/* Software finds it behind the headers in any case. */
	memcpy(at + head, &m, sizeof(m));
	vt_wr(&w, IBV_WR_SEND, &p->from[sender], &p->s.b, head + (uint32_t)sizeof(m));
	w.sge.addr = (uintptr_t)at;
	w.wr.wr_id = m.seq;
	vt_post(&p->from[sender], &w);
	p->sent[sender]++;
}

static void reap(struct play *p, uint32_t sender)
{
	struct ibv_tmh fin;
	struct ibv_wc wc;

	while (ibv_poll_cq(p->from[sender].cq, 1, &wc) == 1) {
		assert_int_equal(wc.status, IBV_WC_SUCCESS);
		if (wc.opcode == IBV_WC_SEND) {
			--*busy(p, sender, (uint32_t)wc.wr_id);
			continue;
		}
		memcpy(&fin, p->from[sender].buf + FINS_AT + wc.wr_id * SLOT, sizeof(fin));
		assert_int_equal(wc.byte_len, TM_TMH);
		assert_int_equal(fin.opcode, IBV_TMH_FIN);
		assert_true(fin.tag == htobe64(1000 + sender));
		/* What was read may be overwritten now: if it is too early, the data will show. */
		memset(data_of(p, sender, be32toh(fin.app_ctx)), 0xee, sizeof(struct message));
		--*busy(p, sender, be32toh(fin.app_ctx));
		await_fin(p, sender, wc.wr_id);
	}
}

/* A receive has all of a message, which must be the one for it. */
static void finish(struct play *p, uint32_t sender, uint32_t index, const struct message *m)
{
	assert_int_equal(m->sender, sender);
	assert_int_equal(m->seq, index);
	p->done[sender]++;
}

/* The next receive of this sender gets a message from software. */
static void finish_by_software(struct play *p, const struct message *m)
{
	assert_true(p->matched[m->sender] < p->posted[m->sender]);
	finish(p, m->sender, p->matched[m->sender]++, m);
	p->by_software++;
}

/* A receive is posted: it may be for a message that software has, else it is the NIC's. */
static void receive_one(struct play *p, uint32_t sender)
{
	uint32_t index = p->posted[sender];
	struct tm_op o;

	if (index == EACH || index == p->done[sender] + AHEAD)
		return;
	p->posted[sender]++;
	for (uint32_t i = 0; i < p->stored_count; i++) {
		struct message m = p->stored[i];

		if (m.sender != sender)
			continue;
		p->stored_count--;
		memmove(&p->stored[i], &p->stored[i + 1],
			(p->stored_count - i) * sizeof(p->stored[0]));
		finish_by_software(p, &m);
		return;
	}
	tm_tag(&o, &p->s, sender * EACH + index, 1000 + sender,
	       (size_t)(place_of(p, sender, index) - p->s.b.buf), SLOT);
	o.wr.flags = IBV_OPS_TM_SYNC;
	o.wr.tm.unexpected_cnt = p->handled;
	assert_int_equal(tm_post(&p->s, &o), 0);
	p->handle[sender][index] = o.wr.tm.handle;
}

/* Take a receive back from the NIC, which cannot have used it. */
static void take_back(struct play *p, uint32_t handle)
{
	struct tm_done done;
	struct tm_op o;

	tm_op(&o, IBV_WR_TAG_DEL, 555);
	o.wr.tm.handle = handle;
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
	const uint8_t *at = p->s.b.buf + TM_ORDINARY + done->wr_id * SLOT;
	bool rendezvous = at[0] == IBV_TMH_RNDV;
	struct message m;
	struct tm_op o;

	memcpy(&m, at + TM_TMH + (rendezvous ? TM_RVH : 0), sizeof(m));
	assert_true(m.sender < SENDERS);
	if (rendezvous) /* as if software had read the data, and told the sender */
		--*busy(p, m.sender, m.seq);
	assert_int_equal(vt_recv_at(&p->s.b, done->wr_id, TM_ORDINARY + done->wr_id * SLOT, SLOT),
			 0);
	p->handled++;
	if (p->matched[m.sender] < p->posted[m.sender]) {
		take_back(p, p->handle[m.sender][p->matched[m.sender]]);
		finish_by_software(p, &m);
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
	uint32_t sender, index;

	if (!take_one(p, &done))
		return;
	assert_int_equal(done.status, IBV_WC_SUCCESS);
	assert_int_equal(done.opcode, IBV_WC_TM_RECV);
	if (!done.flags) {
		handle_unexpected(p, &done);
		return;
	}
	sender = (uint32_t)(done.wr_id / EACH);
	index = (uint32_t)(done.wr_id % EACH);
	if (done.flags & IBV_WC_TM_MATCH) {
		assert_true(done.tag == 1000 + sender);
		assert_int_equal(index, p->matched[sender]);
		p->matched[sender]++;
	}
	if (!(done.flags & IBV_WC_TM_DATA_VALID))
		return;
	memcpy(&m, place_of(p, sender, index), sizeof(m));
	finish(p, sender, index, &m);
	*(done.flags & IBV_WC_TM_MATCH ? &p->eager : &p->read) += 1;
}

static bool all_done(const struct play *p)
{
	for (int i = 0; i < SENDERS; i++) {
		if (p->done[i] < EACH)
			return false;
	}
	return true;
}

vt_test(receives_get_messages_in_order)
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
		assert_true(p.eager > EACH / 20);
		assert_true(p.read > EACH / 20);
		assert_true(p.by_software > EACH / 20);
		assert_int_equal(p.eager + p.read + p.by_software, SENDERS * EACH);
		play_close(&p);
	}
}
