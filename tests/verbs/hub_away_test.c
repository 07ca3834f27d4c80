/* SPDX-License-Identifier: BSD-2-Clause */
#include "peer.h"
#include "xrc.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/*
 * The hub does not answer: it is stopped, or dead and nobody can start another. Processes that have
 * never met meet all the same, by the wire, and no call of theirs waits for it. What shows that is
 * the hub's absence: it is let go on after the last call has returned. How long a call would have
 * been ready to wait is counted beside that, in what it asks the kernel for; no clock decides.
 */

enum { CALL_MS_MAX = 50, GO_ON_MS_MAX = 60000 };

static char log_name[] = "/tmp/vb-hub-away-XXXXXX";

/* --- what calls of this thread are ready to wait, as they tell the kernel --- */

static __thread uint64_t ready_ns;
static __thread bool counts;

static int wait_for(struct pollfd *fds, nfds_t n, const struct timespec *timeout,
		    const sigset_t *mask)
{
	if (counts)
		ready_ns += timeout ? (uint64_t)timeout->tv_sec * 1000000000u +
					      (uint64_t)timeout->tv_nsec
				    : UINT64_MAX / 2;
	return (int)syscall(SYS_ppoll, fds, n, timeout, mask, _NSIG / 8);
}

/* In place of the C library's, for the library under test as well. */
int ppoll(struct pollfd *fds, nfds_t n, const struct timespec *timeout, const sigset_t *mask)
{
	struct timespec left = timeout ? *timeout : (struct timespec){ 0, 0 };

	return wait_for(fds, n, timeout ? &left : NULL, mask);
}

int poll(struct pollfd *fds, nfds_t n, int ms)
{
	struct timespec timeout = { ms / 1000, ms % 1000 * 1000000L };

	return wait_for(fds, n, ms < 0 ? NULL : &timeout, NULL);
}

static void count_begin(void)
{
	counts = true;
	ready_ns = 0;
}

static void count_end(const char *call)
{
	counts = false;
	if (ready_ns > CALL_MS_MAX * 1000000ull)
		fail_msg("%s: ready to wait for %llu ms", call,
			 (unsigned long long)(ready_ns / 1000000));
}

/* One call of the data path. */
#define QUICK(call)                 \
	do {                        \
		count_begin();      \
		call;               \
		count_end(#call);   \
	} while (0)

/* --- the hub --- */

static bool is_stopped(pid_t pid)
{
	char name[64], state = 0;
	FILE *file;

	snprintf(name, sizeof(name), "/proc/%d/stat", (int)pid);
	file = fopen(name, "r");
	if (!file)
		return false;
	if (fscanf(file, "%*d (%*[^)]) %c", &state) != 1)
		state = 0;
	fclose(file);
	return state == 'T';
}

static pid_t hub_stop(void)
{
	pid_t hub = vp_hub();

	assert_true(hub > 0);
	assert_int_equal(kill(hub, SIGSTOP), 0);
	while (!is_stopped(hub))
		vt_sleep_ms(1);
	return hub;
}

/* All of the calls have returned, and only now it goes on. */
static void hub_go_on(pid_t hub)
{
	assert_true(is_stopped(hub));
	assert_int_equal(kill(hub, SIGCONT), 0);
}

/* --- connecting --- */

static void climb(struct vp_pair *p)
{
	struct ibv_qp_attr attr;
	int err = 0;

	for (enum ibv_qp_state to = IBV_QPS_INIT; to <= IBV_QPS_RTS && !err; to++) {
		int mask = vt_attr(&attr, &p->opt, to, p->far_qp.qp_num);

		QUICK(err = ibv_modify_qp(p->a.qp, &attr, mask));
	}
	assert_int_equal(err, 0);
}

static void connect_quickly(struct vp_pair *p, struct vp *peer, const struct vt_options *opt)
{
	vp_pair_make(p, peer, opt);
	climb(p);
	assert_int_equal(vp_far_connect(p), 0);
}

static void send_quickly(struct vp_pair *p, uint64_t wr_id, uint32_t bytes)
{
	struct vt_wr w;
	int err;

	vt_wr(&w, IBV_WR_SEND, &p->a, &p->b, bytes);
	w.wr.wr_id = wr_id;
	QUICK(err = vt_try(&p->a, &w));
	assert_int_equal(err, 0);
}

/* Something each way, in one packet and in several. */
static void exchange(struct vp_pair *p)
{
	send_quickly(p, 5, 1000);
	vt_expect(p->a.cq, 5, IBV_WC_SUCCESS);
	vp_expect(p, 6, IBV_WC_SUCCESS);
	vp_exchange(p, 60, 1);
	vp_exchange(p, 40000, 2);
}

static void exchange_connected(struct vp_pair *p)
{
	vp_recv(p, 6, 0, 4096);
	exchange(p);
}

/* A datagram may not be longer than the path takes; behind a GRH. */
static void exchange_datagrams(struct vp_pair *p)
{
	vp_recv(p, 6, 0, 4096);
	vp_recv(p, 7, 0, 4096);
	for (uint64_t i = 6; i < 8; i++) {
		send_quickly(p, i, 1000);
		vt_expect(p->a.cq, i, IBV_WC_SUCCESS);
		vp_expect(p, i, IBV_WC_SUCCESS);
	}
}

/* Every kind of QP of one process that can be connected to another's, and a thread beside them. */
static void meet(struct vp *const peer[3])
{
	struct ibv_ah *ah = NULL;
	struct vp_pair p[3];

	for (int i = 0; i < 3; i++) {
		struct vt_options opt = { .type = vt_types[i] };

		connect_quickly(&p[i], peer[i], &opt);
	}
	QUICK(ah = vt_ah());
	QUICK(ibv_destroy_ah(ah));
	exchange_connected(&p[0]);
	exchange_connected(&p[1]);
	exchange_datagrams(&p[2]);
	for (int i = 0; i < 3; i++) {
		struct vp_order order = { .what = VP_CLOSE, .end = p[i].end };

		QUICK(vt_end_close(&p[i].a));
		vp_do(p[i].peer, &order);
	}
}

/* --- tests --- */

static bool log_says(const char *what)
{
	char line[512];
	bool found = false;
	FILE *file = fopen(log_name, "r");

	assert_non_null(file);
	while (!found && fgets(line, sizeof(line), file))
		found = strstr(line, what);
	fclose(file);
	return found;
}

static void wait_for_rings(const struct vp *peer)
{
	char what[64];

	snprintf(what, sizeof(what), "(pid %d, ", (int)peer->pid);
	for (unsigned i = 0; i < GO_ON_MS_MAX && !log_says(what); i++)
		vt_sleep_ms(1);
	assert_true(log_says(what) && log_says("shared memory"));
}

vp_test(a_stopped_hub_holds_nobody_up)
{
	/* No timeout: through a ring one learns of a death all the same, by the wire never. */
	static const struct vt_options patient = { .for_ever = true, .rnr_retry = 7 };
	struct vp *peer[3];
	struct vp_pair p;
	pid_t hub;

	for (int i = 0; i < 3; i++)
		peer[i] = vp_start(NULL);
	hub = hub_stop();
	meet(peer);
	hub_go_on(hub);
	/* Who was asked for is known by and by, and from then on rings are used. */
	wait_for_rings(peer[0]);
	vp_pair_open(&p, peer[0], &patient);
	vp_exchange(&p, 1000, 1);
	vt_send(&p.a, &p.b, 1);
	vp_kill(peer[0]);
	vt_expect(p.a.cq, 1, IBV_WC_RETRY_EXC_ERR);
	vp_pair_close(&p);
	vp_end(peer[1]);
	vp_end(peer[2]);
}

vt_case(nobody_waits_where_no_hub_can_be_started, NULL, NULL, NULL)
{
	static const char *const none[] = { "VERBATIM_HUB=/nonexistent", NULL };
	struct vp *first = vp_start(NULL), *peer[3];
	pid_t hub;

	assert_int_equal(setenv("VERBATIM_HUB", "/nonexistent", 1), 0);
	assert_int_equal(vt_setup(NULL), 0);
	for (int i = 0; i < 3; i++)
		peer[i] = vp_start(none);
	hub = vp_hub();
	assert_true(hub > 0);
	/* Of those that are left, none could start another. */
	vp_kill(first);
	assert_int_equal(kill(hub, SIGKILL), 0);
	while (vp_hub() > 0)
		vt_sleep_ms(1);
	meet(peer);
	assert_true(vp_hub() <= 0);
	for (int i = 0; i < 3; i++)
		vp_end(peer[i]);
	unsetenv("VERBATIM_HUB");
	assert_int_equal(vp_teardown(NULL), 0);
}

/* One end could not wait for the hub, and goes by the wire for good; the other gets its ring. */
vp_test(ends_that_decide_differently_meet)
{
	for (int far_first = 0; far_first < 2; far_first++) {
		struct vp *peer = vp_start(NULL);
		struct vp_pair p;
		pid_t hub = hub_stop();

		vp_pair_make(&p, peer, &(struct vt_options){ .timeout = 14, .retry_cnt = 7 });
		climb(&p);
		/* By the wire, again and again, to one that does not hear it yet. */
		send_quickly(&p, 5, 40000);
		hub_go_on(hub);
		wait_for_rings(peer);
		if (far_first) {
			assert_int_equal(vt_recv_at(&p.a, 9, 0, 40000), 0);
			assert_int_equal(vp_far_connect(&p), 0);
			vp_send(&p, 8, 40000);
			vp_recv(&p, 6, 0, 40000);
			vt_expect(p.a.cq, 9, IBV_WC_SUCCESS);
			vp_expect(&p, 8, IBV_WC_SUCCESS);
		} else {
			assert_int_equal(vp_far_connect(&p), 0);
			vp_recv(&p, 6, 0, 40000);
		}
		vt_expect(p.a.cq, 5, IBV_WC_SUCCESS);
		vp_expect(&p, 6, IBV_WC_SUCCESS);
		vp_exchange(&p, 40000, 3);
		vp_pair_close(&p);
		vp_end(peer);
	}
}

/*
 * UCX takes the buffer of a datagram back before its completion, when the peer shows that it needs
 * it no more: a device has read it by then.
 */
vp_pair_test(a_datagram_that_waits_is_as_it_was_posted, NULL,
	     &(struct vt_options){ .type = IBV_QPT_UD })
{
	enum { GRH = 40, BYTES = 1000 };
	struct vt_wr w;
	pid_t hub;

	vp_recv(p, 6, 0, 4096);
	vp_recv(p, 7, 4096, 4096);
	hub = hub_stop();
	for (unsigned i = 0; i < 2; i++) {
		vt_fill(p->a.buf, BYTES, i);
		vt_wr(&w, IBV_WR_SEND, &p->a, &p->b, BYTES);
		w.wr.wr_id = i;
		vt_post(&p->a, &w);
	}
	memset(p->a.buf, 0, BYTES);
	hub_go_on(hub);
	for (unsigned i = 0; i < 2; i++) {
		vt_expect(p->a.cq, i, IBV_WC_SUCCESS);
		vp_expect(p, 6 + i, IBV_WC_SUCCESS);
		assert_true(vp_is_filled(p, i * 4096 + GRH, BYTES, i));
	}
}

/* --- XRC: the receiver is a child that was forked before the device was opened --- */

struct numbers {
	uint32_t srqn, rcv_qpn;
};

enum { XRC_MESSAGES = 4 };

static void xrc_receive(int fd, int file)
{
	struct vx_srq srq;
	struct ibv_xrcd *domain;
	struct numbers numbers;
	struct ibv_qp *rcv;
	uint32_t qpn;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	vt_setup(NULL);
	domain = vx_domain(file, O_CREAT);
	vx_srq_open(&srq, domain);
	rcv = vx_rcv_make(domain);
	for (uint64_t i = 0; i < XRC_MESSAGES; i++)
		vx_recv(&srq, i, 0, VX_BYTES);
	numbers = (struct numbers){ srq.number, rcv->qp_num };
	assert_int_equal(write(fd, &numbers, sizeof(numbers)), sizeof(numbers));
	assert_int_equal(read(fd, &qpn, sizeof(qpn)), sizeof(qpn));
	assert_int_equal(vx_climb(rcv, qpn, IBV_QPS_RTR), 0);
	assert_int_equal(write(fd, &qpn, sizeof(qpn)), sizeof(qpn));
	for (uint64_t i = 0; i < XRC_MESSAGES; i++)
		vt_expect(srq.cq, i, IBV_WC_SUCCESS);
	assert_int_equal(read(fd, &qpn, sizeof(qpn)), 0);
	_exit(0);
}

vt_case(xrc_goes_by_the_wire_meanwhile, NULL, NULL, NULL)
{
	char name[] = "/tmp/vb-hub-away-XXXXXX";
	int file = mkstemp(name), ends[2], status;
	struct numbers numbers;
	struct vx_snd snd;
	struct ibv_mr none = { .rkey = 0 };
	uint32_t qpn;
	pid_t child, hub;

	assert_true(file >= 0);
	unlink(name);
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends), 0);
	child = fork();
	assert_true(child >= 0);
	if (!child) {
		close(ends[0]);
		xrc_receive(ends[1], file);
	}
	close(ends[1]);
	vt_setup(NULL);
	vx_snd_open(&snd, 0);
	qpn = snd.qp->qp_num;
	assert_int_equal(read(ends[0], &numbers, sizeof(numbers)), sizeof(numbers));
	assert_int_equal(write(ends[0], &qpn, sizeof(qpn)), sizeof(qpn));
	assert_int_equal(read(ends[0], &qpn, sizeof(qpn)), sizeof(qpn));
	assert_int_equal(vx_climb(snd.qp, numbers.rcv_qpn, IBV_QPS_RTS), 0);
	hub = hub_stop();
	for (uint64_t i = 0; i < XRC_MESSAGES; i++) {
		QUICK(assert_int_equal(vx_post(&snd, IBV_WR_SEND, numbers.srqn, i, 5000, &none),
				       0));
		vt_expect(snd.cq, i, IBV_WC_SUCCESS);
	}
	hub_go_on(hub);
	close(ends[0]);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	vx_snd_close(&snd);
	close(file);
	assert_int_equal(vt_teardown(NULL), 0);
}

int main(int argc, char **argv)
{
	bool is_peer = argc > 1;
	int status, fd = is_peer ? -1 : mkstemp(log_name);

	if (fd >= 0 && setenv("VERBATIM_LOG", log_name, 1))
		return 1;
	status = vp_main(argc);
	if (!is_peer)
		unlink(log_name);
	return status;
}
