/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Receive QPs that belong to a domain: three receivers and a creator share them, two senders stream
 * to all SRQs, one process after another goes, and so does the hub. Each is a process of its own,
 * forked before any has opened the device; what they tell each other stands in shared memory.
 */
#include <fcntl.h>
#include <infiniband/verbatim_xrc.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "peer.h"
#include "xrc.h"

enum { RECEIVERS = 3, SENDERS = 2, ROUND = 240, BYTES = 2048 };

/* What is said once is said by a value that is not 0. */
static struct board {
	_Atomic uint32_t snd[SENDERS], rcv[SENDERS], srq[RECEIVERS];
	_Atomic uint32_t connected;	      /* senders whose receive QPs are */
	_Atomic uint32_t round;		      /* that senders may do, from 1 on */
	_Atomic uint32_t targets;	      /* the first receiver that is sent to */
	_Atomic uint32_t done[SENDERS];	      /* rounds */
	_Atomic uint32_t got[RECEIVERS][SENDERS];
	_Atomic uint32_t leave[RECEIVERS], left[RECEIVERS];
	_Atomic uint32_t last[SENDERS];	      /* 1 + the status that the last message ended with */
} *board;

static int domain_fd;

/* A message: who sends it, and which of those that he sends to this SRQ it is. */
struct message {
	uint32_t sender, number;
	uint8_t fill[BYTES - 8];
};

/*
 * A round is 240 answers one after another, and all processes are starting: on a busy machine each
 * step waits for a processor. Together that took more than VT_WAIT_MS, and nothing was wrong.
 */
enum { ROUND_WAIT_MS = 5 * VT_WAIT_MS };

static void await_value(_Atomic uint32_t *value, uint32_t least)
{
	for (uint64_t end_ms = vt_now_ms() + ROUND_WAIT_MS; atomic_load(value) < least;) {
		assert_true(vt_now_ms() < end_ms);
		usleep(500);
	}
}

/* --- the processes --- */

/* Note 4 of the RFC. */
static uint32_t alloc(struct ibv_xrcd *xrcd, uint32_t sender)
{
	const int mask = IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_AV |
			 IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | IBV_QP_MIN_RNR_TIMER;
	struct ibv_qp_attr attr = vx_attr(sender);
	uint32_t qpn;

	assert_int_equal(ibv_alloc_xrc_rcv_qp(vt.pd, (struct ibv_xrc_domain *)xrcd, &attr,
					      (enum ibv_qp_attr_mask)mask, &qpn),
			 0);
	return qpn;
}

static uint32_t create(struct ibv_xrcd *xrcd, uint32_t sender)
{
	struct ibv_qp *qp = vt_made(vx_rcv_make(xrcd));

	assert_int_equal(vx_climb(qp, sender, IBV_QPS_RTR), 0);
	return qp->qp_num;
}

static void be_creator(unsigned by_rfc)
{
	struct ibv_xrcd *xrcd = vt_made(vx_domain(domain_fd, O_CREAT));

	for (unsigned i = 0; i < SENDERS; i++) {
		uint32_t sender;

		await_value(&board->snd[i], 1);
		sender = atomic_load(&board->snd[i]);
		atomic_store(&board->rcv[i], by_rfc ? alloc(xrcd, sender) : create(xrcd, sender));
		atomic_fetch_add(&board->connected, 1);
	}
	for (;;)
		pause();
}

static void take(struct vx_srq *srq, unsigned self, const struct ibv_wc *wc)
{
	const struct message *m = (const void *)(srq->buf + wc->wr_id * BYTES);

	assert_int_equal(wc->status, IBV_WC_SUCCESS);
	assert_int_equal(wc->byte_len, BYTES);
	assert_true(m->sender < SENDERS);
	assert_int_equal(wc->qp_num, atomic_load(&board->rcv[m->sender]));
	/* None is lost, none comes twice, none overtakes another. */
	assert_int_equal(m->number, atomic_load(&board->got[self][m->sender]));
	assert_true(vt_is_filled(m->fill, sizeof(m->fill), m->number));
	atomic_fetch_add(&board->got[self][m->sender], 1);
	vx_recv(srq, wc->wr_id, wc->wr_id * BYTES, BYTES);
}

static void be_receiver(unsigned self)
{
	struct vx_srq *srq = vt_made(calloc(1, sizeof(*srq)));
	struct ibv_xrcd *xrcd;
	struct ibv_wc wc;

	xrcd = vt_made(vx_domain(domain_fd, O_CREAT));
	vx_srq_open(srq, xrcd);
	for (unsigned i = 0; i < VX_BYTES / BYTES; i++)
		vx_recv(srq, i, (size_t)i * BYTES, BYTES);
	atomic_store(&board->srq[self], srq->number);
	while (!atomic_load(&board->leave[self])) {
		/* Many share few processors: the library takes in what comes meanwhile. */
		if (ibv_poll_cq(srq->cq, 1, &wc) == 1)
			take(srq, self, &wc);
		else
			usleep(200);
	}
	vx_srq_close(srq);
	assert_int_equal(ibv_close_xrcd(xrcd), 0);
	/* It stays, so that it is the reference that has gone and not the process. */
	atomic_store(&board->left[self], 1);
	for (;;)
		pause();
}

static void send_round(struct vx_snd *snd, unsigned self, uint32_t numbers[RECEIVERS])
{
	unsigned first = atomic_load(&board->targets);
	struct message *m = (void *)snd->buf;
	struct ibv_wc wc;

	m->sender = self;
	for (unsigned n = 0; n < ROUND; n++) {
		unsigned to = first + n % (RECEIVERS - first);

		m->number = numbers[to]++;
		vt_fill(m->fill, sizeof(m->fill), m->number);
		assert_int_equal(vx_post(snd, IBV_WR_SEND, atomic_load(&board->srq[to]), n, BYTES,
					 NULL),
				 0);
		assert_true(vt_poll_ms(snd->cq, &wc, VT_WAIT_MS));
		assert_int_equal(wc.status, IBV_WC_SUCCESS);
	}
}

static void be_sender(unsigned self)
{
	struct vx_snd *snd = vt_made(calloc(1, sizeof(*snd)));
	uint32_t numbers[RECEIVERS] = { 0 }, round = 0;
	struct ibv_wc wc;

	vx_snd_open(snd, 0);
	atomic_store(&board->snd[self], snd->qp->qp_num);
	await_value(&board->rcv[self], 1);
	assert_int_equal(vx_climb(snd->qp, atomic_load(&board->rcv[self]), IBV_QPS_RTS), 0);
	for (;;) {
		await_value(&board->round, round + 1);
		if (atomic_load(&board->targets) == RECEIVERS)
			break;
		send_round(snd, self, numbers);
		atomic_store(&board->done[self], ++round);
	}
	/* Nobody is left. */
	assert_int_equal(vx_post(snd, IBV_WR_SEND, atomic_load(&board->srq[RECEIVERS - 1]), 1, 8,
				 NULL),
			 0);
	assert_true(vt_poll_ms(snd->cq, &wc, VT_WAIT_MS));
	atomic_store(&board->last[self], 1 + wc.status);
	for (;;)
		pause();
}

/* Has a receive QP open and no SRQ, and waits for what happens to the QP. */
static void be_listener(unsigned unused)
{
	struct ibv_xrcd *xrcd = vt_made(vx_domain(domain_fd, O_CREAT));
	struct ibv_async_event event;

	await_value(&board->snd[0], 1);
	atomic_store(&board->rcv[0], create(xrcd, atomic_load(&board->snd[0])));
	event = vt_event(IBV_EVENT_QP_ACCESS_ERR);
	assert_int_equal(event.element.qp->qp_num, atomic_load(&board->rcv[0]));
	ibv_ack_async_event(&event);
	vt_no_event();
	atomic_store(&board->left[0], 1);
	for (;;)
		pause();
}

static void be_offender(unsigned unused)
{
	struct vx_snd *snd = vt_made(calloc(1, sizeof(*snd)));
	struct ibv_mr none = { .rkey = 0x7fffffff };
	struct ibv_wc wc;

	vx_snd_open(snd, 0);
	atomic_store(&board->snd[0], snd->qp->qp_num);
	await_value(&board->rcv[0], 1);
	await_value(&board->srq[0], 1);
	assert_int_equal(vx_climb(snd->qp, atomic_load(&board->rcv[0]), IBV_QPS_RTS), 0);
	assert_int_equal(vx_post(snd, IBV_WR_RDMA_WRITE, atomic_load(&board->srq[0]), 1, 8, &none),
			 0);
	assert_true(vt_poll_ms(snd->cq, &wc, VT_WAIT_MS));
	atomic_store(&board->last[0], 1 + wc.status);
	for (;;)
		pause();
}

/* --- the test --- */

static pid_t children[16];
static unsigned child_count;

static pid_t start(void (*be)(unsigned), unsigned number)
{
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		/* Of a child that fails nobody hears but by what it prints itself. */
		setenv("CMOCKA_TEST_ABORT", "1", 1);
		vt_setup(NULL);
		be(number);
		_exit(0);
	}
	children[child_count++] = pid;
	return pid;
}

static void kill_and_wait(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	for (unsigned i = 0; i < child_count; i++) {
		if (children[i] == pid)
			children[i] = 0;
	}
}

static int begin(void **state)
{
	board = mmap(NULL, sizeof(*board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		     0);
	domain_fd = memfd_create("domain", 0);
	child_count = 0;
	return board == MAP_FAILED || domain_fd < 0;
}

static int end(void **state)
{
	for (unsigned i = 0; i < child_count; i++) {
		if (children[i])
			kill_and_wait(children[i]);
	}
	close(domain_fd);
	munmap(board, sizeof(*board));
	return 0;
}

/* Both senders do one round more, and all of it has come. */
static void round_done(unsigned round, uint32_t total[RECEIVERS])
{
	unsigned first = atomic_load(&board->targets);

	for (unsigned i = 0; i < SENDERS; i++)
		await_value(&board->done[i], round);
	for (unsigned r = first; r < RECEIVERS; r++) {
		total[r] += ROUND / (RECEIVERS - first);
		for (unsigned i = 0; i < SENDERS; i++)
			await_value(&board->got[r][i], total[r]);
	}
}

/* Is anything of the domain left? Only who opens it without O_CREAT can tell, so a child does. */
static void be_asker(unsigned there)
{
	struct ibv_xrcd *xrcd = vx_domain(domain_fd, 0);

	_exit((xrcd != NULL) == there ? 0 : 1);
}

static void expect_domain(bool there)
{
	int status;
	pid_t pid = start(be_asker, there);

	children[--child_count] = 0;
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

/* What the dead held of it is taken back soon, but not at once. */
static void await_no_domain(void)
{
	for (uint64_t end_ms = vt_now_ms() + VT_WAIT_MS;; usleep(10000)) {
		int status;
		pid_t asker = start(be_asker, false);

		children[--child_count] = 0;
		waitpid(asker, &status, 0);
		if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
			break;
		assert_true(vt_now_ms() < end_ms);
	}
}

/* Everybody, and traffic to all SRQs. Returns the creator. */
static pid_t they_begin(bool by_rfc, pid_t receiver[RECEIVERS])
{
	pid_t creator;

	for (unsigned i = 0; i < RECEIVERS; i++)
		receiver[i] = start(be_receiver, i);
	for (unsigned i = 0; i < SENDERS; i++)
		start(be_sender, i);
	creator = start(be_creator, by_rfc);
	for (unsigned i = 0; i < RECEIVERS; i++)
		await_value(&board->srq[i], 1);
	await_value(&board->connected, SENDERS);
	atomic_store(&board->round, 1);
	/* In the midst of it. */
	await_value(&board->got[0][0], ROUND / 10);
	return creator;
}

static void they_leave_one_by_one(unsigned first, uint32_t total[RECEIVERS])
{
	for (unsigned r = first; r < RECEIVERS; r++) {
		atomic_store(&board->leave[r], 1);
		await_value(&board->left[r], 1);
		if (r + 1 == RECEIVERS)
			await_no_domain();
		atomic_store(&board->targets, r + 1);
		atomic_store(&board->round, r + 2);
		if (r + 1 < RECEIVERS)
			round_done(r + 2, total);
	}
	/* With the last reference the QPs are gone. */
	for (unsigned i = 0; i < SENDERS; i++) {
		await_value(&board->last[i], 1);
		assert_int_equal(atomic_load(&board->last[i]), 1 + IBV_WC_RETRY_EXC_ERR);
	}
}

static void kill_hub(void)
{
	pid_t hub = vp_hub();

	assert_true(hub > 0);
	kill(hub, SIGKILL);
}

static void they_stream_to_the_last(bool by_rfc)
{
	uint32_t total[RECEIVERS] = { 0 };
	pid_t receiver[RECEIVERS];

	kill_and_wait(they_begin(by_rfc, receiver));
	round_done(1, total);
	expect_domain(true);
	they_leave_one_by_one(0, total);
}

vt_case(the_creator_is_killed_and_nothing_is_lost, begin, end, NULL)
{
	they_stream_to_the_last(false);
}

/*
 * rfc: "userspace process which created the receiving XRC qp on a given host dies before other
 * processes which still need to receive XRC messages on their SRQs which are"
 */
vt_case(the_creator_by_the_rfc_is_killed_and_nothing_is_lost, begin, end, NULL)
{
	they_stream_to_the_last(true);
}

vt_case(the_hub_is_killed_and_nothing_is_lost, begin, end, NULL)
{
	uint32_t total[RECEIVERS] = { 0 };
	pid_t receiver[RECEIVERS];

	kill_and_wait(they_begin(false, receiver));
	kill_hub();
	round_done(1, total);
	expect_domain(true);
	they_leave_one_by_one(0, total);
}

/* As the hub tells it: domain, holders, receive QPs and SRQs, and none besides. */
static bool hub_knows(const pid_t receiver[RECEIVERS], unsigned first)
{
	char text[32768], words[64];
	const char *xrc;
	bool all = true;

	if (!vx_hub_tells("status", text, sizeof(text)))
		return false;
	xrc = strstr(text, "XRC domain ");
	for (unsigned i = 0; i < SENDERS && xrc; i++) {
		snprintf(words, sizeof(words), "receive QP 0x%06x  RTR",
			 atomic_load(&board->rcv[i]));
		all &= strstr(xrc, words) != NULL;
	}
	for (unsigned i = 0; i < RECEIVERS && xrc; i++) {
		snprintf(words, sizeof(words), "pid %d, ", (int)receiver[i]);
		all &= (strstr(xrc, words) != NULL) == (i >= first);
		snprintf(words, sizeof(words), "SRQ 0x%06x ", atomic_load(&board->srq[i]));
		all &= (strstr(xrc, words) != NULL) == (i >= first);
	}
	return xrc && all;
}

static void await_hub_knows(const pid_t receiver[RECEIVERS], unsigned first)
{
	for (uint64_t end_ms = vt_now_ms() + ROUND_WAIT_MS; !hub_knows(receiver, first);) {
		assert_true(vt_now_ms() < end_ms);
		usleep(10000);
	}
}

/* What goes on living is told by the memory, and what died while there was no hub by its names. */
vt_case(the_next_hub_knows_who_lives_and_who_died_meanwhile, begin, end, NULL)
{
	uint32_t total[RECEIVERS] = { 0 }, before;
	pid_t receiver[RECEIVERS], creator = they_begin(true, receiver), hub;

	round_done(1, total);
	await_hub_knows(receiver, 0);
	before = atomic_load(&board->got[1][0]);
	atomic_store(&board->targets, 1);
	atomic_store(&board->round, 2);
	await_value(&board->got[1][0], before + ROUND / 20);
	hub = vp_hub();
	kill_hub();
	kill_and_wait(receiver[0]);
	kill_and_wait(creator);
	round_done(2, total);
	await_hub_knows(receiver, 1);
	assert_int_not_equal(vp_hub(), hub);
	/* And again, with nobody dead. */
	kill_hub();
	await_hub_knows(receiver, 1);
	they_leave_one_by_one(1, total);
}

/*
 * ibv_open_qp(3): it shares the QP, and what happens to it. The one whose SRQ was named sees it
 * happen; the one that has the QP open is told.
 */
vt_case(who_has_it_open_is_told_what_happened_elsewhere, begin, end, NULL)
{
	start(be_receiver, 0);
	start(be_listener, 0);
	start(be_offender, 0);
	await_value(&board->last[0], 1);
	assert_int_equal(atomic_load(&board->last[0]), 1 + IBV_WC_REM_ACCESS_ERR);
	await_value(&board->left[0], 1);
}

/* A receiver that is killed takes no other along, and with the last one the domain goes. */
vt_case(what_the_dead_held_is_taken_back, begin, end, NULL)
{
	pid_t pid[RECEIVERS];

	for (unsigned i = 0; i < RECEIVERS; i++) {
		pid[i] = start(be_receiver, i);
		await_value(&board->srq[i], 1);
	}
	for (unsigned i = 0; i < RECEIVERS; i++) {
		expect_domain(true);
		kill_and_wait(pid[i]);
	}
	await_no_domain();
}
