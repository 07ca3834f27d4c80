/* SPDX-License-Identifier: BSD-2-Clause */
#include "peer.h"

#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
	ORDERS_FD = 0, /* of a peer */
	SLEEP_S = 30,  /* of processes that nobody waits for */
	ENV_MAX = 512,
};

static struct vp peers[VP_PEERS_MAX];

/* --- there: what a peer does --- */

/* An end, and what only a peer's has. */
struct far {
	struct vt_end e;
	struct vt_options opt;
	struct ibv_comp_channel *channel;
	void *hole;
	size_t hole_bytes;
	struct vp_pong pong;
	pthread_t thread;
	bool has_thread;
};

static struct far *far_ends[VP_ENDS_MAX];
static uint32_t far_count;

static struct far *far_get(const struct vp_order *order)
{
	assert_true(order->end < far_count && far_ends[order->end]);
	return far_ends[order->end];
}

static void far_open(const struct vp_order *order, struct vp_answer *answer)
{
	struct far *far = vt_made(calloc(1, sizeof(*far)));

	assert_true(far_count < VP_ENDS_MAX);
	far->opt = order->opt;
	if (order->events) {
		far->channel = vt_made(ibv_create_comp_channel(vt.ctx));
	}
	far->opt.channel = far->channel;
	vt_end_open(&far->e, &far->opt);
	answer->end = far_count;
	answer->qpn = far->e.qp->qp_num;
	answer->addr = (uintptr_t)far->e.buf;
	answer->rkey = far->e.mr->rkey;
	far_ends[far_count++] = far;
}

static int far_connect(struct far *far, uint32_t qpn)
{
	struct ibv_qp_attr attr;
	int err = 0;

	for (enum ibv_qp_state to = IBV_QPS_INIT; to <= far->opt.state && !err; to++) {
		int mask = vt_attr(&attr, &far->opt, to, qpn);

		err = ibv_modify_qp(far->e.qp, &attr, mask);
	}
	return err;
}

static int far_send(struct far *far, const struct vp_order *order)
{
	struct ibv_qp qp = { .qp_num = order->qpn };
	struct ibv_mr mr = { .rkey = order->rkey };
	struct vt_end to = { .qp = &qp, .mr = &mr, .buf = (void *)(uintptr_t)order->addr };
	struct vt_wr w;

	vt_wr(&w, order->op, &far->e, &to, order->bytes);
	w.sge.addr += order->offset;
	w.wr.wr_id = order->wr_id;
	w.wr.send_flags |= order->flags;
	w.wr.imm_data = order->imm_be;
	return vt_try(&far->e, &w);
}

/* Behind a file without contents there is nothing, and nothing else comes to lie there. */
static int far_modify(struct far *far, const struct vp_order *order, int mask)
{
	struct ibv_qp_attr attr = { .qp_state = (enum ibv_qp_state)order->count,
				    .qp_access_flags = order->flags };

	return ibv_modify_qp(far->e.qp, &attr, mask);
}

static int far_dereg(struct far *far)
{
	int err = ibv_dereg_mr(far->e.mr);

	far->e.mr = NULL;
	return err;
}

/* The last octets of the buffer get what was there. */
static int far_add(struct far *far, const struct vp_order *order)
{
	struct ibv_sge sge = { (uintptr_t)far->e.buf + far->e.bytes - 8, 8, far->e.mr->lkey };
	struct ibv_send_wr wr = { .sg_list = &sge, .num_sge = 1, .send_flags = IBV_SEND_SIGNALED,
				  .opcode = IBV_WR_ATOMIC_FETCH_AND_ADD }, *bad;
	struct ibv_wc wc = { .status = IBV_WC_SUCCESS };
	int err = 0;

	wr.wr.atomic.remote_addr = order->addr;
	wr.wr.atomic.rkey = order->rkey;
	wr.wr.atomic.compare_add = 1;
	for (uint32_t i = 0; i < order->count && !err && wc.status == IBV_WC_SUCCESS; i++) {
		err = ibv_post_send(far->e.qp, &wr, &bad);
		if (!err && !vt_poll_ms(far->e.cq, &wc, VT_WAIT_MS))
			err = ETIMEDOUT;
	}
	return err ? err : (int)wc.status;
}

static size_t far_pages(struct far *far, size_t offset, size_t bytes, struct vp_answer *answer)
{
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
	uintptr_t from = ((uintptr_t)far->e.buf + offset + page - 1) & ~(page - 1);
	uintptr_t to = ((uintptr_t)far->e.buf + offset + bytes) & ~(page - 1);

	answer->addr = from;
	return to - from;
}

static void far_hole(struct far *far, size_t offset, size_t bytes, struct vp_answer *answer)
{
	far->hole_bytes = far_pages(far, offset, bytes, answer);
	far->hole = vt_hole((void *)(uintptr_t)answer->addr, far->hole_bytes);
}

static void far_protect(struct far *far, const struct vp_order *order, struct vp_answer *answer)
{
	size_t bytes = far_pages(far, order->offset, order->bytes, answer);

	answer->rc = mprotect((void *)(uintptr_t)answer->addr, bytes, (int)order->flags);
}

static void far_close(uint32_t number)
{
	struct far *far = far_ends[number];

	if (!far)
		return;
	if (far->hole)
		vt_hole_mend(far->hole, far->hole_bytes);
	vt_end_close(&far->e);
	if (far->channel)
		assert_int_equal(ibv_destroy_comp_channel(far->channel), 0);
	free(far);
	far_ends[number] = NULL;
}

static pid_t child_begin(bool executes)
{
	pid_t pid = fork();

	if (pid)
		return pid;
	if (executes)
		execlp("sleep", "sleep", "30", NULL);
	else
		sleep(SLEEP_S);
	_exit(0);
}

static void pong_begin(struct far *far, uint32_t count)
{
	far->pong = (struct vp_pong){ .end = &far->e, .channel = far->channel, .count = count };
	assert_int_equal(pthread_create(&far->thread, NULL, vp_pong, &far->pong), 0);
	far->has_thread = true;
}

static int pongs_end(void)
{
	int good = 0;

	for (uint32_t i = 0; i < far_count; i++) {
		if (!far_ends[i] || !far_ends[i]->has_thread)
			continue;
		assert_int_equal(pthread_join(far_ends[i]->thread, NULL), 0);
		far_ends[i]->has_thread = false;
		good += far_ends[i]->pong.good;
	}
	return good;
}

/* Orders about an end. */
static void carry_out(struct far *far, const struct vp_order *order, struct vp_answer *answer)
{
	uint8_t *at = far->e.buf + order->offset;

	switch (order->what) {
	case VP_CONNECT:
		answer->rc = far_connect(far, order->qpn);
		break;
	case VP_RECV:
		answer->rc = vt_recv_at(&far->e, order->wr_id, order->offset, order->bytes);
		break;
	case VP_SEND:
		answer->rc = far_send(far, order);
		break;
	case VP_POLL:
		answer->got = vt_poll_ms(far->e.cq, &answer->wc, (int)order->count);
		break;
	case VP_FILL:
		vt_fill(at, order->bytes, order->seed);
		break;
	case VP_IS_FILLED:
		answer->rc = vt_is_filled(at, order->bytes, order->seed);
		break;
	case VP_HOLE:
		far_hole(far, order->offset, order->bytes, answer);
		break;
	case VP_STATE:
		answer->rc = vt_state(far->e.qp);
		break;
	case VP_MODIFY:
		answer->rc = far_modify(far, order, IBV_QP_STATE);
		break;
	case VP_RIGHTS:
		answer->rc = far_modify(far, order, IBV_QP_ACCESS_FLAGS);
		break;
	case VP_DEREG:
		answer->rc = far_dereg(far);
		break;
	case VP_PROTECT:
		far_protect(far, order, answer);
		break;
	case VP_EXPORT:
		answer->pd_handle = far->e.mr->pd->handle;
		answer->mr_handle = far->e.mr->handle;
		answer->dm_handle = far->e.dm ? far->e.dm->handle : UINT32_MAX;
		break;
	case VP_ADD:
		answer->rc = far_add(far, order);
		break;
	case VP_PONG:
		pong_begin(far, order->count);
		break;
	default:
		fail_msg("no such order: %d", (int)order->what);
	}
}

static void fall_dead(int signum)
{
	_exit(EXIT_FAILURE);
}

static void obey(const struct vp_order *order, struct vp_answer *answer)
{
	struct ibv_async_event event;

	switch (order->what) {
	case VP_OPEN:
		far_open(order, answer);
		break;
	case VP_EVENT:
		assert_true(vt_readable(vt.ctx->async_fd, VT_WAIT_MS));
		assert_int_equal(ibv_get_async_event(vt.ctx, &event), 0);
		answer->rc = (int)event.event_type;
		ibv_ack_async_event(&event);
		break;
	case VP_CHILD:
		answer->pid = child_begin(order->count);
		break;
	case VP_EXEC:
		fcntl(ORDERS_FD, F_SETFD, FD_CLOEXEC);
		execlp("sleep", "sleep", "30", NULL);
		break;
	case VP_DEADLY:
		signal(SIGSEGV, fall_dead);
		signal(SIGBUS, fall_dead);
		break;
	case VP_HIDE:
		answer->rc = prctl(PR_SET_DUMPABLE, 0);
		break;
	case VP_PONGED:
		answer->rc = pongs_end();
		break;
	case VP_CLOSE:
		far_close(order->end);
		break;
	default:
		carry_out(far_get(order), order, answer);
		break;
	}
}

/* A descriptor of ours, with an octet around it. */
static void fd_send(int fd)
{
	union {
		struct cmsghdr header;
		char room[CMSG_SPACE(sizeof(int))];
	} control = { .header = { .cmsg_len = CMSG_LEN(sizeof(int)), .cmsg_level = SOL_SOCKET,
				  .cmsg_type = SCM_RIGHTS } };
	struct iovec octet = { "", 1 };
	struct msghdr message = { .msg_iov = &octet, .msg_iovlen = 1,
				  .msg_control = &control, .msg_controllen = sizeof(control) };

	memcpy(CMSG_DATA(&control.header), &fd, sizeof(fd));
	assert_int_equal(sendmsg(ORDERS_FD, &message, MSG_NOSIGNAL), 1);
}

static bool answer_send(const struct vp_answer *answer)
{
	return send(ORDERS_FD, answer, sizeof(*answer), MSG_NOSIGNAL) == sizeof(*answer);
}

/* Until nobody gives orders any more. The first answer says that we are here. */
static int serve(void)
{
	struct vp_answer answer = { .pid = getpid() };
	struct vp_order order;

	assert_int_equal(vt_setup(NULL), 0);
	while (answer_send(&answer) &&
	       recv(ORDERS_FD, &order, sizeof(order), 0) == sizeof(order)) {
		answer = (struct vp_answer){ .pid = getpid() };
		obey(&order, &answer);
		if (order.what == VP_EXPORT) {
			assert_true(answer_send(&answer));
			fd_send(vt.ctx->cmd_fd);
			answer = (struct vp_answer){ .pid = getpid() };
		}
	}
	for (uint32_t i = 0; i < far_count; i++)
		far_close(i);
	return vt_teardown(NULL);
}

int vp_main(int argc)
{
	return argc > 1 ? serve() : vt_main();
}

__attribute__((weak)) int main(int argc, char **argv)
{
	return vp_main(argc);
}

/* --- here --- */

int vp_teardown(void **state)
{
	for (int i = 0; i < VP_PEERS_MAX; i++)
		if (peers[i].pid)
			vp_kill(&peers[i]);
	return vt_teardown(state);
}

static struct vp *peer_new(void)
{
	for (int i = 0; i < VP_PEERS_MAX; i++)
		if (!peers[i].pid)
			return &peers[i];
	fail_msg("too many peers");
	return NULL;
}

/* The environment with some settings in front: the first of a name is the one that counts. */
static char **env_with(const char *const *more)
{
	static char *env[ENV_MAX];
	int n = 0;

	while (more && *more && n < ENV_MAX - 1)
		env[n++] = (char *)*more++;
	for (char **at = environ; *at && n < ENV_MAX - 1; at++)
		env[n++] = *at;
	env[n] = NULL;
	return env;
}

static void become_peer(int fd, char **env)
{
	char *const arguments[] = { "peer", "peer", NULL };

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (dup2(fd, ORDERS_FD) == ORDERS_FD)
		execve("/proc/self/exe", arguments, env);
	_exit(127);
}

/* A process that has left without an answer: how it left is what the reader wants to know. */
static void fail_gone(struct vp *peer)
{
	int status = 0;

	if (waitpid(peer->pid, &status, 0) == peer->pid)
		peer->pid = 0;
	if (WIFSIGNALED(status))
		fail_msg("the peer is gone, by signal %d", WTERMSIG(status));
	fail_msg("the peer is gone, with %d", WEXITSTATUS(status));
}

struct vp_answer vp_hear(struct vp *peer)
{
	struct vp_answer answer;

	if (!vt_readable(peer->fd, 2 * VT_WAIT_MS))
		fail_msg("the peer does not answer");
	if (recv(peer->fd, &answer, sizeof(answer), 0) != sizeof(answer))
		fail_gone(peer);
	return answer;
}

int vp_take_fd(struct vp *peer)
{
	char room[CMSG_SPACE(sizeof(int))];
	struct vp_answer answer;
	struct iovec piece = { &answer, sizeof(answer) };
	struct msghdr message = { .msg_iov = &piece, .msg_iovlen = 1, .msg_control = room,
				  .msg_controllen = sizeof(room) };
	int fd;

	assert_true(vt_readable(peer->fd, VT_WAIT_MS));
	assert_int_equal(recvmsg(peer->fd, &message, MSG_CMSG_CLOEXEC), 1);
	assert_non_null(CMSG_FIRSTHDR(&message));
	memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof(fd));
	/* That it obeyed. */
	vp_hear(peer);
	return fd;
}

struct vp *vp_start(const char *const *more)
{
	struct vp *peer = peer_new();
	char **env = env_with(more);
	int fds[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds), 0);
	peer->fd = fds[0];
	peer->pid = fork();
	if (!peer->pid)
		become_peer(fds[1], env);
	close(fds[1]);
	assert_true(peer->pid > 0);
	assert_int_equal(vp_hear(peer).pid, peer->pid);
	return peer;
}

void vp_end(struct vp *peer)
{
	int status = -1;

	close(peer->fd);
	assert_int_equal(waitpid(peer->pid, &status, 0), peer->pid);
	peer->pid = 0;
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

void vp_kill(struct vp *peer)
{
	kill(peer->pid, SIGKILL);
	waitpid(peer->pid, NULL, 0);
	close(peer->fd);
	peer->pid = 0;
}

void vp_stop(struct vp *peer)
{
	int status;

	assert_int_equal(kill(peer->pid, SIGSTOP), 0);
	assert_int_equal(waitpid(peer->pid, &status, WUNTRACED), peer->pid);
	assert_true(WIFSTOPPED(status));
}

void vp_go_on(struct vp *peer)
{
	assert_int_equal(kill(peer->pid, SIGCONT), 0);
}

void vp_tell(struct vp *peer, const struct vp_order *order)
{
	assert_int_equal(send(peer->fd, order, sizeof(*order), MSG_NOSIGNAL), sizeof(*order));
}

struct vp_answer vp_do(struct vp *peer, const struct vp_order *order)
{
	struct vp_answer answer;

	vp_tell(peer, order);
	if (order->what != VP_EXEC)
		return vp_hear(peer);
	/* Executing closes its end. */
	assert_int_equal(recv(peer->fd, &answer, sizeof(answer), 0), 0);
	return (struct vp_answer){ .pid = peer->pid };
}

/* --- connections --- */

void vp_pair_make(struct vp_pair *pair, struct vp *peer, const struct vt_options *opt)
{
	struct vp_order order = { .what = VP_OPEN };
	struct vp_answer answer;

	pair->opt = vt_options(opt);
	pair->peer = peer;
	order.events = pair->opt.channel != NULL;
	order.opt = pair->opt;
	vt_end_open_unshared(&pair->a, &pair->opt);
	answer = vp_do(peer, &order);
	pair->end = answer.end;
	pair->far_qp = (struct ibv_qp){ .qp_num = answer.qpn };
	pair->far_mr = (struct ibv_mr){ .rkey = answer.rkey };
	pair->b = (struct vt_end){ .qp = &pair->far_qp, .mr = &pair->far_mr,
				   .buf = (void *)(uintptr_t)answer.addr,
				   .bytes = pair->opt.bytes };
}

int vp_far_connect(struct vp_pair *pair)
{
	struct vp_order order = { .what = VP_CONNECT, .end = pair->end,
				  .qpn = pair->a.qp->qp_num };

	return vp_do(pair->peer, &order).rc;
}

void vp_pair_open(struct vp_pair *pair, struct vp *peer, const struct vt_options *opt)
{
	vp_pair_make(pair, peer, opt);
	vt_climb(pair->a.qp, &pair->opt, pair->opt.state, pair->far_qp.qp_num);
	assert_int_equal(vp_far_connect(pair), 0);
}

void vp_pair_close(struct vp_pair *pair)
{
	struct vp_order order = { .what = VP_CLOSE, .end = pair->end };

	vt_end_close(&pair->a);
	if (pair->peer->pid)
		vp_do(pair->peer, &order);
}

void vp_pair_begin(struct vp_pair *pair, const char *const *env, const struct vt_options *opt)
{
	vp_pair_open(pair, vp_start(env), opt);
}

void vp_pair_end(struct vp_pair *pair)
{
	vp_pair_close(pair);
	if (pair->peer->pid)
		vp_end(pair->peer);
}

void vp_recv(struct vp_pair *pair, uint64_t wr_id, size_t offset, uint32_t bytes)
{
	struct vp_order order = { .what = VP_RECV, .end = pair->end, .wr_id = wr_id,
				  .offset = offset, .bytes = bytes };

	assert_int_equal(vp_do(pair->peer, &order).rc, 0);
}

void vp_send(struct vp_pair *pair, uint64_t wr_id, uint32_t bytes)
{
	struct vp_order order = { .what = VP_SEND, .end = pair->end, .op = IBV_WR_SEND,
				  .qpn = pair->a.qp->qp_num, .wr_id = wr_id, .bytes = bytes };

	assert_int_equal(vp_do(pair->peer, &order).rc, 0);
}

static struct vp_answer far_poll(struct vp_pair *pair, int ms)
{
	struct vp_order order = { .what = VP_POLL, .end = pair->end, .count = (uint32_t)ms };

	return vp_do(pair->peer, &order);
}

struct ibv_wc vp_expect(struct vp_pair *pair, uint64_t wr_id, enum ibv_wc_status status)
{
	struct vp_answer answer = far_poll(pair, VT_WAIT_MS);

	if (!answer.got)
		fail_msg("there: no completion of %llu", (unsigned long long)wr_id);
	if (answer.wc.status != status || answer.wc.wr_id != wr_id)
		fail_msg("there: %llu: %s instead of %llu: %s",
			 (unsigned long long)answer.wc.wr_id, ibv_wc_status_str(answer.wc.status),
			 (unsigned long long)wr_id, ibv_wc_status_str(status));
	return answer.wc;
}

void vp_expect_none(struct vp_pair *pair)
{
	assert_false(far_poll(pair, VT_QUIET_MS).got);
}

void vp_fill(struct vp_pair *pair, uint32_t bytes, unsigned seed)
{
	struct vp_order order = { .what = VP_FILL, .end = pair->end, .bytes = bytes,
				  .seed = seed };

	vp_do(pair->peer, &order);
}

bool vp_is_filled(struct vp_pair *pair, size_t offset, uint32_t bytes, unsigned seed)
{
	struct vp_order order = { .what = VP_IS_FILLED, .end = pair->end, .offset = offset,
				  .bytes = bytes, .seed = seed };

	return vp_do(pair->peer, &order).rc;
}

/* A message each way, checked. */
void vp_exchange(struct vp_pair *pair, uint32_t bytes, unsigned seed)
{
	struct vt_wr w;

	assert_int_equal(vt_recv_at(&pair->a, 1001, 0, bytes), 0);
	vp_fill(pair, bytes, seed);
	vp_send(pair, 1001, bytes);
	vt_expect(pair->a.cq, 1001, IBV_WC_SUCCESS);
	vp_expect(pair, 1001, IBV_WC_SUCCESS);
	assert_true(vt_is_filled(pair->a.buf, bytes, seed));

	vp_recv(pair, 1002, 0, bytes);
	vt_fill(pair->a.buf, bytes, seed + 1);
	vt_wr(&w, IBV_WR_SEND, &pair->a, &pair->b, bytes);
	w.wr.wr_id = 1002;
	vt_post(&pair->a, &w);
	vt_expect(pair->a.cq, 1002, IBV_WC_SUCCESS);
	vp_expect(pair, 1002, IBV_WC_SUCCESS);
	assert_true(vp_is_filled(pair, 0, bytes, seed + 1));
}

/* --- the hub --- */

/*
 * The one that has the name. Several may be started at a time, and those that come too late leave
 * soon: to look for processes would find them as well.
 */
pid_t vp_hub(void)
{
	static const char word[] = " @verbatim-hub-";
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	struct ucred cred = { .pid = 0 };
	socklen_t bytes = sizeof(cred);
	FILE *names = fopen("/proc/net/unix", "r");
	char line[256], *name = NULL;
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	assert_non_null(names);
	assert_true(fd >= 0);
	while (!name && fgets(line, sizeof(line), names))
		name = strstr(line, word);
	fclose(names);
	if (name) {
		size_t n = strcspn(name + 2, "\n");

		assert_in_range(n, 1, sizeof(address.sun_path) - 1);
		memcpy(address.sun_path + 1, name + 2, n);
		n += offsetof(struct sockaddr_un, sun_path) + 1;
		if (connect(fd, (struct sockaddr *)&address, (socklen_t)n) ||
		    getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &bytes))
			cred.pid = 0;
	}
	close(fd);
	return cred.pid;
}

/* --- by events --- */

bool vp_await(struct ibv_comp_channel *channel, struct ibv_cq *cq, struct ibv_wc *wc)
{
	struct ibv_cq *told;
	void *context;

	for (;;) {
		if (ibv_poll_cq(cq, 1, wc) == 1)
			return true;
		if (ibv_req_notify_cq(cq, 0))
			return false;
		if (ibv_poll_cq(cq, 1, wc) == 1)
			return true;
		if (ibv_get_cq_event(channel, &told, &context))
			return false;
		ibv_ack_cq_events(told, 1);
	}
}

static bool pong_send(struct vt_end *end)
{
	struct ibv_sge sge = { (uintptr_t)end->buf, 8, end->mr->lkey };
	struct ibv_send_wr wr = { .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND,
				  .send_flags = IBV_SEND_SIGNALED }, *bad;

	return ibv_post_send(end->qp, &wr, &bad) == 0;
}

static bool pong_recv(struct vt_end *end)
{
	struct ibv_sge sge = { (uintptr_t)end->buf + 64, 64, end->mr->lkey };
	struct ibv_recv_wr wr = { .sg_list = &sge, .num_sge = 1 }, *bad;

	return ibv_post_recv(end->qp, &wr, &bad) == 0;
}

void *vp_pong(void *arg)
{
	struct vp_pong *pong = arg;
	uint32_t begun = pong->serves, sent = 0, received = 0;
	struct ibv_wc wc;

	if (pong->serves && !pong_send(pong->end))
		return NULL;
	while (sent < pong->count || received < pong->count) {
		if (!vp_await(pong->channel, pong->end->cq, &wc))
			return NULL;
		pong->status = wc.status;
		if (wc.status != IBV_WC_SUCCESS)
			return NULL;
		if (!(wc.opcode & IBV_WC_RECV)) {
			sent++;
			continue;
		}
		received++;
		if (!pong_recv(pong->end) || (begun++ < pong->count && !pong_send(pong->end)))
			return NULL;
	}
	pong->good = true;
	return NULL;
}
