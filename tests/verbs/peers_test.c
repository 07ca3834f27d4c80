/* SPDX-License-Identifier: BSD-2-Clause */
#include "peer.h"

#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

/*
 * Processes of one host, and what becomes of them: they stop, die, fork, execute, by the dozen.
 * They share memory: what is noticed here without any timeout could not be noticed otherwise, and
 * so nothing of this depends on how fast anything is.
 */

/* A QP that waits for ever: no timeout, and no end to RNR. */
static const struct vt_options patient = { .for_ever = true, .rnr_retry = 7 };

/* One that does not wait at all, or as little as can be asked for: 34 ms. */
static const struct vt_options hasty = { .timeout = 1, .retry_cnt = 1, .rnr_retry = 7 };

/* --- death --- */

vp_pair_test(the_dead_fail_what_is_outstanding, NULL, &patient)
{
	vp_exchange(p, 100, 1);
	vp_stop(p->peer); /* so that it reads none of these */
	for (uint64_t i = 0; i < 50; i++)
		vt_send(&p->a, &p->b, i);
	vt_expect_none(p->a.cq);
	vp_kill(p->peer);
	vt_expect(p->a.cq, 0, IBV_WC_RETRY_EXC_ERR);
	for (uint64_t i = 1; i < 50; i++)
		vt_expect(p->a.cq, i, IBV_WC_WR_FLUSH_ERR);
	assert_int_equal(vt_state(p->a.qp), IBV_QPS_ERR);
}

/* Each QP fails, whether it had sent something or waits for room in a ring that is full. */
vp_test(the_dead_fail_what_waits_for_room)
{
	enum { QPS = 16, DEPTH = 64 };
	struct vp *peer = vp_start(NULL);
	struct vp_pair p[QPS];
	struct vt_wr w;

	for (unsigned i = 0; i < QPS; i++)
		vp_pair_open(&p[i], peer, &patient);
	vp_stop(peer);
	for (uint64_t id = 0; id < DEPTH; id++) {
		for (unsigned i = 0; i < QPS; i++) {
			vt_wr(&w, IBV_WR_SEND, &p[i].a, &p[i].b, 65536);
			w.wr.wr_id = id;
			vt_post(&p[i].a, &w);
		}
	}
	vp_kill(peer);
	for (unsigned i = 0; i < QPS; i++) {
		vt_expect(p[i].a.cq, 0, IBV_WC_RETRY_EXC_ERR);
		for (uint64_t id = 1; id < DEPTH; id++)
			vt_expect(p[i].a.cq, id, IBV_WC_WR_FLUSH_ERR);
		vp_pair_close(&p[i]);
	}
}

/* Whatever it is that waits. */
vp_test(the_dead_fail_every_operation)
{
	static const enum ibv_wr_opcode ops[] = {
		IBV_WR_SEND, IBV_WR_RDMA_READ, IBV_WR_RDMA_WRITE, IBV_WR_RDMA_WRITE_WITH_IMM,
		IBV_WR_ATOMIC_FETCH_AND_ADD, IBV_WR_SEND_WITH_IMM,
	};
	enum { OPS = VT_COUNT(ops) };
	struct vp *peer = vp_start(NULL);
	struct vp_pair p[OPS];
	struct vt_wr w;

	for (int i = 0; i < OPS; i++)
		vp_pair_open(&p[i], peer, &patient);
	vp_stop(peer);
	/* Behind a SEND, which needs the other side, none can be done without it. */
	for (int i = 0; i < OPS; i++) {
		vt_send(&p[i].a, &p[i].b, 1);
		vt_wr(&w, ops[i], &p[i].a, &p[i].b, 8);
		w.wr.wr_id = 2;
		vt_post(&p[i].a, &w);
	}
	vp_kill(peer);
	for (int i = 0; i < OPS; i++) {
		vt_expect(p[i].a.cq, 1, IBV_WC_RETRY_EXC_ERR);
		vt_expect(p[i].a.cq, 2, IBV_WC_WR_FLUSH_ERR);
		vt_expect_none(p[i].a.cq);
		vp_pair_close(&p[i]);
	}
}

/* It takes part, but has no receives: most of the time nothing is under way. */
vp_test(the_dead_end_an_rnr_wait)
{
	struct vt_options opt = patient;
	struct vp *peer = vp_start(NULL);
	struct vp_pair p;

	opt.rnr_timer = 31; /* 491 ms */
	vp_pair_open(&p, peer, &opt);
	vt_send(&p.a, &p.b, 1);
	vt_expect_none(p.a.cq);
	vp_kill(peer);
	vt_expect(p.a.cq, 1, IBV_WC_RETRY_EXC_ERR);
	vp_pair_close(&p);
}

/* ibv_post_recv(3): requests stay until a message comes, or the QP fails. */
vp_test(the_dead_leave_posted_receives)
{
	struct vp *peer = vp_start(NULL);
	struct vp_pair sends, waits;

	vp_pair_open(&sends, peer, &patient);
	vp_pair_open(&waits, peer, &patient);
	vt_recv(&waits.a, 1);
	vt_recv(&waits.a, 2);
	vt_send(&sends.a, &sends.b, 3);
	vp_kill(peer);
	vt_expect(sends.a.cq, 3, IBV_WC_RETRY_EXC_ERR); /* by now it has been noticed */
	vt_expect_none(waits.a.cq);
	assert_int_equal(vt_state(waits.a.qp), IBV_QPS_RTS);
	vt_send(&waits.a, &waits.b, 4);
	vt_expect(waits.a.cq, 4, IBV_WC_RETRY_EXC_ERR);
	vt_expect(waits.a.cq, 1, IBV_WC_WR_FLUSH_ERR);
	vt_expect(waits.a.cq, 2, IBV_WC_WR_FLUSH_ERR);
	vt_no_event();
	vp_pair_close(&sends);
	vp_pair_close(&waits);
}

/*
 * What it had sent is there, to the last octet. More is received than it sends: an ACK in the midst
 * of a message counts that one's request as taken but not as done (IBA 9.7.7.2), so with as many
 * the last message would wait for another ACK, and nobody be there to hear it.
 */
vp_pair_test(what_the_dead_have_sent_arrives, NULL, &patient)
{
	vp_fill(p, 65536, 5);
	for (uint64_t i = 0; i < 8; i++)
		assert_int_equal(vt_recv_at(&p->a, i, 0, 65536), 0);
	for (uint64_t i = 0; i < 4; i++)
		vp_send(p, i, 65536);
	vp_kill(p->peer);
	for (uint64_t i = 0; i < 4; i++)
		vt_expect(p->a.cq, i, IBV_WC_SUCCESS);
	assert_true(vt_is_filled(p->a.buf, 65536, 5));
}

/* Nobody says that a datagram, or what goes unreliably, was lost. */
vp_test(the_dead_get_nothing_unreliable)
{
	static const enum ibv_qp_type types[] = { IBV_QPT_UC, IBV_QPT_UD };

	for (int i = 0; i < 2; i++) {
		struct vt_options opt = { .type = types[i] };
		struct vp *peer = vp_start(NULL);
		struct vp_pair p;

		vp_pair_open(&p, peer, &opt);
		vt_recv(&p.a, 90);
		vp_stop(peer);
		vt_send(&p.a, &p.b, 1);
		vp_kill(peer);
		vt_expect(p.a.cq, 1, IBV_WC_SUCCESS);
		for (uint64_t n = 2; n < 40; n++) {
			vt_send(&p.a, &p.b, n);
			vt_expect(p.a.cq, n, IBV_WC_SUCCESS);
		}
		assert_int_equal(vt_state(p.a.qp), IBV_QPS_RTS);
		vt_expect_none(p.a.cq);
		vp_pair_close(&p);
	}
}

/* Slots come back with new owners; what belonged to the dead does not hear those. */
vp_test(the_next_owner_of_a_slot_is_somebody_else)
{
	enum { LIVES = 12 };
	struct vp_pair p[LIVES];

	for (unsigned i = 0; i < LIVES; i++) {
		struct vp *peer = vp_start(NULL);

		vp_pair_open(&p[i], peer, &patient);
		vp_exchange(&p[i], 3000, i);
		vt_recv(&p[i].a, 7);
		vp_kill(peer);
	}
	for (unsigned i = 0; i < LIVES; i++) {
		vt_send(&p[i].a, &p[i].b, 8);
		vt_expect(p[i].a.cq, 8, IBV_WC_RETRY_EXC_ERR);
		vt_expect(p[i].a.cq, 7, IBV_WC_WR_FLUSH_ERR);
		vp_pair_close(&p[i]);
	}
}

/* The QP is used again: a new connection with somebody who lives. */
vp_test(a_qp_outlives_its_peers)
{
	struct vt_end end;
	struct vp_pair p;

	for (unsigned i = 0; i < 4; i++) {
		struct vp *peer = vp_start(NULL);

		if (i == 0) {
			vp_pair_open(&p, peer, &patient);
		} else {
			end = p.a;
			vp_pair_make(&p, peer, &patient);
			vt_end_close(&p.a);
			p.a = end;
			assert_int_equal(vt_modify(p.a.qp, IBV_QPS_RESET), 0);
			vt_climb(p.a.qp, &p.opt, IBV_QPS_RTS, p.far_qp.qp_num);
			assert_int_equal(vp_far_connect(&p), 0);
		}
		vp_exchange(&p, 5000, i);
		vt_send(&p.a, &p.b, 1);
		vp_kill(peer);
		vt_expect(p.a.cq, 1, IBV_WC_RETRY_EXC_ERR);
	}
	vp_pair_close(&p);
}

/* --- leaving, forking, executing --- */

/* Who closes the device is gone as well; he need not die for it. */
vp_test(who_leaves_is_missed)
{
	const struct vt_options *options[] = { &patient, &hasty };

	for (int i = 0; i < 2; i++) {
		struct vp *peer = vp_start(NULL);
		struct vp_pair p;

		vp_pair_open(&p, peer, options[i]);
		vt_send(&p.a, &p.b, 1);
		vt_send(&p.a, &p.b, 2);
		vp_end(peer);
		vt_expect(p.a.cq, 1, IBV_WC_RETRY_EXC_ERR);
		vt_expect(p.a.cq, 2, IBV_WC_WR_FLUSH_ERR);
		vp_pair_close(&p);
	}
}

/*
 * Who has all that he waits for leaves, whatever else is under way; that is no failure before all
 * retries are used up, just as over a wire.
 */
vp_test(who_leaves_is_waited_for)
{
	struct vt_options opt = { .timeout = 20, .retry_cnt = 7 }; /* 34 s */
	struct vp *peer = vp_start(NULL), *dies = vp_start(NULL);
	struct vp_pair p, q;

	vp_pair_open(&p, peer, &opt);
	vp_pair_open(&q, dies, &opt);
	vt_send(&p.a, &p.b, 1);
	vt_send(&q.a, &q.b, 1);
	vp_end(peer);
	vp_kill(dies);
	vt_expect(q.a.cq, 1, IBV_WC_RETRY_EXC_ERR);
	for (uint64_t i = 2; i < 40; i++)
		vt_send(&p.a, &p.b, i);
	vt_expect_none(p.a.cq);
	assert_int_equal(vt_state(p.a.qp), IBV_QPS_RTS);
	assert_int_equal(vt_modify(p.a.qp, IBV_QPS_ERR), 0);
	for (uint64_t i = 1; i < 40; i++)
		vt_expect(p.a.cq, i, IBV_WC_WR_FLUSH_ERR);
	vp_pair_close(&p);
	vp_pair_close(&q);
}

/* Children of the other process hold nothing that would hide its end. */
vp_test(children_do_not_hide_a_death)
{
	for (unsigned executes = 0; executes < 2; executes++) {
		struct vp_order order = { .what = VP_CHILD, .count = executes };
		struct vp *peer = vp_start(NULL);
		struct vp_pair p;
		pid_t child;

		vp_pair_open(&p, peer, &patient);
		child = vp_do(peer, &order).pid;
		assert_true(child > 0);
		vp_exchange(&p, 40000, executes);
		vt_send(&p.a, &p.b, 1);
		vp_kill(peer);
		vt_expect(p.a.cq, 1, IBV_WC_RETRY_EXC_ERR);
		assert_int_equal(kill(child, SIGKILL), 0); /* it was alive */
		vp_pair_close(&p);
	}
}

/* Nor if they are born while the rings come: what the parent has in its hand, they do not keep. */
vp_test(children_of_the_moment_do_not_hide_a_death)
{
	enum { LIVES = 30 };
	const struct vp_order order = { .what = VP_CHILD };

	for (unsigned i = 0; i < LIVES; i++) {
		struct vp *peer = vp_start(NULL);
		struct vp_pair p;
		pid_t child;

		vp_pair_make(&p, peer, &patient);
		if (i % 2)
			vp_tell(peer, &order);
		vt_climb(p.a.qp, &p.opt, IBV_QPS_RTS, p.far_qp.qp_num);
		if (i % 2 == 0)
			vp_tell(peer, &order);
		child = vp_hear(peer).pid;
		assert_true(child > 0);
		assert_int_equal(vp_far_connect(&p), 0);
		vt_send(&p.a, &p.b, 1);
		vp_kill(peer);
		vt_expect(p.a.cq, 1, IBV_WC_RETRY_EXC_ERR);
		assert_int_equal(kill(child, SIGKILL), 0);
		vp_pair_close(&p);
	}
}

/* A process that executes another program has left the NIC. */
vp_pair_test(executing_is_leaving, NULL, &patient)
{
	struct vp_order order = { .what = VP_EXEC };

	vt_send(&p->a, &p->b, 1);
	vp_do(p->peer, &order);
	vt_expect(p->a.cq, 1, IBV_WC_RETRY_EXC_ERR);
	assert_int_equal(waitpid(p->peer->pid, NULL, WNOHANG), 0); /* it is alive */
	vp_kill(p->peer);
}

/* Children of this process, that come and go, disturb nobody. */
vp_pair_test(children_of_ours_disturb_nobody, NULL, &patient)
{
	for (unsigned i = 0; i < 10; i++) {
		pid_t child = fork();

		if (!child && i & 1)
			execlp("true", "true", NULL);
		if (!child)
			_exit(0);
		vp_exchange(p, 40000, i);
		assert_int_equal(waitpid(child, NULL, 0), child);
	}
}

/* --- stopping --- */

/* Longer than all retries: shared memory loses nothing, so there is nothing to give up. */
vp_pair_test(who_stops_for_long_loses_nothing, NULL, &hasty)
{
	for (uint64_t i = 0; i < 60; i++)
		vp_recv(p, i, 0, 1000);
	vp_stop(p->peer);
	for (uint64_t i = 0; i < 60; i++)
		vt_send(&p->a, &p->b, i);
	for (int i = 0; i < 10; i++) /* 600 ms */
		vt_expect_none(p->a.cq);
	vp_go_on(p->peer);
	for (uint64_t i = 0; i < 60; i++) {
		vt_expect(p->a.cq, i, IBV_WC_SUCCESS);
		vp_expect(p, i, IBV_WC_SUCCESS);
	}
	vp_expect_none(p);
	vp_exchange(p, 1000, 3);
}

/* Threads of both play, and the other process is stopped at any instant. */
vp_peer_test(stops_at_any_instant_are_survived)
{
	enum { QPS = 3, ROUNDS = 3000 };
	struct vp_order ponged = { .what = VP_PONGED };
	struct ibv_comp_channel *channel[QPS];
	struct vp_pong pong[QPS];
	struct vp_pair p[QPS];
	pthread_t thread[QPS];

	for (unsigned i = 0; i < QPS; i++) {
		struct vp_order begin = { .what = VP_PONG, .count = ROUNDS };
		struct vt_options opt = hasty;

		opt.channel = channel[i] = ibv_create_comp_channel(vt.ctx);
		assert_non_null(opt.channel);
		vp_pair_open(&p[i], peer, &opt);
		vt_recv(&p[i].a, 0);
		vp_recv(&p[i], 0, 0, 64);
		begin.end = p[i].end;
		vp_do(peer, &begin);
		pong[i] = (struct vp_pong){ .end = &p[i].a, .channel = channel[i],
					    .count = ROUNDS, .serves = true };
		assert_int_equal(pthread_create(&thread[i], NULL, vp_pong, &pong[i]), 0);
	}
	for (int i = 0; i < 40; i++) {
		vt_sleep_ms(i % 4);
		vp_stop(peer);
		vt_sleep_ms(i % 10 ? 1 : 100);
		vp_go_on(peer);
	}
	for (unsigned i = 0; i < QPS; i++) {
		assert_int_equal(pthread_join(thread[i], NULL), 0);
		if (!pong[i].good)
			fail_msg("a pong ended: %s", ibv_wc_status_str(pong[i].status));
	}
	assert_int_equal(vp_do(peer, &ponged).rc, QPS);
	for (unsigned i = 0; i < QPS; i++) {
		vp_pair_close(&p[i]);
		assert_int_equal(ibv_destroy_comp_channel(channel[i]), 0);
	}
}

/* --- the hub --- */

/* Rings live on without a hub; who comes later finds a new one, and everybody. */
vp_test(a_hub_may_die)
{
	struct vp *old = vp_start(NULL), *young;
	struct vp_pair p, q;
	pid_t hub = vp_hub();

	vp_pair_open(&p, old, &patient);
	vp_exchange(&p, 100, 1);
	for (unsigned i = 0; i < 3; i++) {
		assert_true(hub > 0);
		assert_int_equal(kill(hub, SIGKILL), 0);
		vp_exchange(&p, 60000, i);
		young = vp_start(NULL);
		vp_pair_open(&q, young, &patient);
		vp_exchange(&q, 60000, i);
		vp_exchange(&p, 60000, i);
		assert_int_not_equal(vp_hub(), hub);
		hub = vp_hub();
		vt_send(&q.a, &q.b, 5);
		vp_kill(young);
		vt_expect(q.a.cq, 5, IBV_WC_RETRY_EXC_ERR);
		vp_pair_close(&q);
	}
	vt_send(&p.a, &p.b, 6);
	vp_kill(old);
	vt_expect(p.a.cq, 6, IBV_WC_RETRY_EXC_ERR);
	vp_pair_close(&p);
}

/* A death is noticed although there is no hub to tell of it. */
vp_pair_test(a_death_without_a_hub_is_noticed, NULL, &patient)
{
	pid_t hub = vp_hub();

	vt_send(&p->a, &p->b, 1);
	assert_true(hub > 0);
	vp_stop(p->peer);
	assert_int_equal(kill(hub, SIGKILL), 0);
	vp_kill(p->peer);
	vt_expect(p->a.cq, 1, IBV_WC_RETRY_EXC_ERR);
}

/* --- many --- */

/* More than what is looked at in every poll. */
vp_test(many_peers)
{
	enum { PEERS = 20 };
	struct vp *peer[PEERS];
	struct vp_pair p[PEERS];

	for (unsigned i = 0; i < PEERS; i++) {
		peer[i] = vp_start(NULL);
		vp_pair_open(&p[i], peer[i], &patient);
	}
	for (unsigned i = 0; i < 3 * PEERS; i++)
		vp_exchange(&p[i * 7 % PEERS], 20000, i);
	/* All at once. */
	for (unsigned i = 0; i < PEERS; i++) {
		vt_recv(&p[i].a, 9);
		vp_send(&p[i], 9, 4000);
	}
	for (unsigned i = 0; i < PEERS; i++)
		vt_expect(p[i].a.cq, 9, IBV_WC_SUCCESS);
	for (unsigned i = 0; i < PEERS; i += 3) {
		vt_send(&p[i].a, &p[i].b, 10);
		vp_kill(peer[i]);
	}
	for (unsigned i = 0; i < PEERS; i++) {
		if (i % 3) {
			vp_expect(&p[i], 9, IBV_WC_SUCCESS);
			vp_exchange(&p[i], 20000, i);
		} else {
			vt_expect(p[i].a.cq, 10, IBV_WC_RETRY_EXC_ERR);
		}
		vp_pair_close(&p[i]);
		if (i % 3)
			vp_end(peer[i]);
	}
}

/* Rings have room for a thousand of these; the others wait for their turn. */
vp_test(many_qps_share_the_rings)
{
	enum { QPS = 2000 };
	static struct vp_pair p[QPS];
	struct vt_options opt = { .for_ever = true, .send_wr = 1, .recv_wr = 1, .sge = 1, .cqe = 4,
				  .bytes = 64, .inline_bytes = 8 };
	struct vp *peer = vp_start(NULL);

	for (unsigned i = 0; i < QPS; i++) {
		vp_pair_open(&p[i], peer, &opt);
		vt_fill(p[i].a.buf, 8, i);
		vp_recv(&p[i], i, 0, 64);
	}
	vp_stop(peer);
	for (unsigned i = 0; i < QPS; i++)
		vt_send(&p[i].a, &p[i].b, i);
	/* Some of those that wait are not there any more when it is their turn. */
	for (unsigned i = QPS - 100; i < QPS; i++) {
		assert_int_equal(ibv_destroy_qp(p[i].a.qp), 0);
		p[i].a.qp = NULL;
	}
	vp_go_on(peer);
	for (unsigned i = 0; i < QPS - 100; i++) {
		vt_expect(p[i].a.cq, i, IBV_WC_SUCCESS);
		vp_expect(&p[i], i, IBV_WC_SUCCESS);
		assert_true(vp_is_filled(&p[i], 0, 8, i));
	}
	vp_kill(peer);
	for (unsigned i = 0; i < QPS; i++)
		vp_pair_close(&p[i]);
}

/* --- all of that --- */

enum { CROWD = 6, STEPS = 400 };

struct member {
	struct vp *peer; /* NULL: nobody here */
	struct vp_pair p;
	bool stopped, sent; /* something is under way that it does not answer */
};

static void member_comes(struct member *m)
{
	*m = (struct member){ .peer = vp_start(NULL) };
	vp_pair_open(&m->p, m->peer, &patient);
	vp_recv(&m->p, 5, 0, 64);
}

static void member_is_told(struct member *m)
{
	vt_send(&m->p.a, &m->p.b, 5);
	m->sent = true;
}

/* What was under way arrives. */
static void member_answers(struct member *m)
{
	if (!m->sent)
		return;
	vt_expect(m->p.a.cq, 5, IBV_WC_SUCCESS);
	vp_expect(&m->p, 5, IBV_WC_SUCCESS);
	vp_recv(&m->p, 5, 0, 64);
	m->sent = false;
}

static void member_dies(struct member *m)
{
	vp_kill(m->peer);
	if (m->sent && m->stopped)
		vt_expect(m->p.a.cq, 5, IBV_WC_RETRY_EXC_ERR);
	vp_pair_close(&m->p);
	m->peer = NULL;
}

static void member_leaves(struct member *m)
{
	vp_pair_close(&m->p);
	vp_end(m->peer);
	m->peer = NULL;
}

static void member_goes_on(struct member *m)
{
	vp_go_on(m->peer);
	m->stopped = false;
	member_answers(m);
}

/* One step of somebody's. */
static void member_steps(struct member *m, unsigned what, unsigned seed)
{
	if (!m->peer) {
		member_comes(m);
	} else if (m->stopped) {
		if (what < 40 && !m->sent)
			member_is_told(m);
		else if (what < 80)
			member_goes_on(m);
		else
			member_dies(m);
	} else if (what < 60) {
		vp_recv(&m->p, 1002, 0, 20000); /* behind the one that is posted */
		member_is_told(m);
		member_answers(m);
		vt_fill(m->p.a.buf, 8, seed);
		vt_send(&m->p.a, &m->p.b, 6);
		vt_expect(m->p.a.cq, 6, IBV_WC_SUCCESS);
		vp_expect(&m->p, 1002, IBV_WC_SUCCESS);
		assert_true(vp_is_filled(&m->p, 0, 8, seed));
	} else if (what < 80) {
		vp_stop(m->peer);
		m->stopped = true;
	} else if (what < 90) {
		member_dies(m);
	} else {
		member_leaves(m);
	}
}

/*
 * People come, talk, stop, go on, leave, die, and now and then so does the hub. VT_SEED makes it
 * another story.
 */
vp_test(a_crowd)
{
	const char *seed = getenv("VT_SEED");
	struct member member[CROWD] = { { .peer = NULL } };
	uint32_t random = seed ? (uint32_t)atoi(seed) : 4791;

	for (unsigned step = 0; step < STEPS; step++) {
		random = random * 1664525 + 1013904223;
		if (random >> 16 & 31) {
			member_steps(&member[(random >> 8) % CROWD], (random >> 21) % 100, step);
		} else {
			pid_t hub = vp_hub();

			if (hub)
				kill(hub, SIGKILL);
		}
	}
	for (unsigned i = 0; i < CROWD; i++) {
		if (!member[i].peer)
			continue;
		if (member[i].stopped)
			member_goes_on(&member[i]);
		member_is_told(&member[i]);
		member_answers(&member[i]);
		member_leaves(&member[i]);
	}
}
