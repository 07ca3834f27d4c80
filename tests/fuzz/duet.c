/* SPDX-License-Identifier: BSD-2-Clause */
#include "duet.h"

#include <errno.h>
#include <execinfo.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "attack.h"
#include "base/check.h"

enum {
	PAGE = 4096,
	WATCH_S = 120,
	NAP_MS = 20,
	ECHO_XOR = 0x5a,
};

#define OPEN_ACCESS                                                                               \
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |              \
	 IBV_ACCESS_REMOTE_ATOMIC)

#define MUST(what)                                                                                \
	do {                                                                                      \
		if (!(what))                                                                      \
			attack_fail("%s, line %d: %s", #what, __LINE__, strerror(errno));         \
	} while (0)

/* --- watch --- */

static void hang(int number)
{
	static const char words[] = "FAIL: it hangs, here:\n";
	void *frames[64];
	ssize_t written = write(STDERR_FILENO, words, sizeof(words) - 1);

	(void)written;
	backtrace_symbols_fd(frames, backtrace(frames, 64), STDERR_FILENO);
	_exit(1);
}

void duet_watch(unsigned seconds)
{
	signal(SIGALRM, hang);
	alarm(seconds);
}

/* --- memory --- */

static uint8_t canary(size_t i)
{
	return (uint8_t)(0xc5 ^ i ^ i >> 8);
}

static void memory_make(struct duet_memory *memory, const struct duet_options *options)
{
	size_t all = 3 * PAGE + 2 * options->bytes;
	int fd = options->file ? memfd_create("duet", MFD_CLOEXEC) : -1;

	MUST(!options->file || (fd >= 0 && !ftruncate(fd, (off_t)all)));
	memory->bytes = options->bytes;
	memory->map = mmap(NULL, all, PROT_READ | PROT_WRITE,
			   options->file ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS, fd, 0);
	MUST(memory->map != MAP_FAILED);
	memory->fd = fd;
	memory->own = memory->map + PAGE;
	memory->open = memory->own + options->bytes + PAGE;
	for (size_t i = 0; i < PAGE; i++) {
		memory->map[i] = canary(i);
		memory->own[options->bytes + i] = canary(i);
		memory->open[options->bytes + i] = canary(i);
	}
}

void duet_canaries(const struct duet_end *end, const char *whose)
{
	const struct duet_memory *memory = &end->memory;
	const uint8_t *const pages[] = {memory->map, memory->own + memory->bytes,
					memory->open + memory->bytes};

	for (unsigned page = 0; page < VB_ARRAY_LEN(pages); page++)
		for (size_t i = 0; i < PAGE; i++)
			if (pages[page][i] != canary(i))
				attack_fail("%s: somebody wrote outside of its regions: page %u, "
					    "octet %zu is %02x",
					    whose, page, i, pages[page][i]);
}

/* --- objects --- */

void duet_device_open(struct duet_device *device)
{
	struct ibv_device **list = ibv_get_device_list(NULL);

	MUST(list && list[0]);
	device->ctx = ibv_open_device(list[0]);
	MUST(device->ctx);
	ibv_free_device_list(list);
	MUST(!ibv_query_gid(device->ctx, 1, 0, &device->gid));
}

void duet_device_close(struct duet_device *device)
{
	MUST(!ibv_close_device(device->ctx));
}

void duet_open(struct duet_end *end, struct duet_device *device,
	       const struct duet_options *options)
{
	struct ibv_qp_init_attr init = {
		.qp_type = options->type ? options->type : IBV_QPT_RC,
		.cap = {.max_send_wr = DUET_DEPTH, .max_recv_wr = DUET_DEPTH, .max_send_sge = 1,
			.max_recv_sge = 1, .max_inline_data = 64},
		.sq_sig_all = 1,
	};
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT,
		.port_num = 1,
		.qkey = 0x11111111,
		.qp_access_flags = OPEN_ACCESS & ~IBV_ACCESS_LOCAL_WRITE,
	};
	int mask = IBV_QP_STATE | IBV_QP_PORT | IBV_QP_PKEY_INDEX;

	*end = (struct duet_end){.sleeps = options->sleeps};
	memory_make(&end->memory, options);
	MUST(end->pd = ibv_alloc_pd(device->ctx));
	MUST(end->channel = ibv_create_comp_channel(device->ctx));
	MUST(end->cq = ibv_create_cq(device->ctx, 4 * DUET_DEPTH, NULL, end->channel, 0));
	MUST(end->own_mr = ibv_reg_mr(end->pd, end->memory.own, options->bytes,
				      IBV_ACCESS_LOCAL_WRITE));
	MUST(end->open_mr = ibv_reg_mr(end->pd, end->memory.open, options->bytes, OPEN_ACCESS));
	init.send_cq = init.recv_cq = end->cq;
	MUST(end->qp = ibv_create_qp(end->pd, &init));
	mask |= init.qp_type == IBV_QPT_UD ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS;
	MUST(!ibv_modify_qp(end->qp, &attr, mask));
}

struct duet_address duet_address(const struct duet_end *end, const struct duet_device *device)
{
	return (struct duet_address){device->gid, end->qp->qp_num, end->open_mr->rkey,
				     (uintptr_t)end->memory.open};
}

int duet_connect(struct duet_end *end, const struct duet_address *peer, unsigned timeout)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = IBV_MTU_4096,
		.dest_qp_num = peer->qpn,
		.rq_psn = DUET_PSN,
		.sq_psn = DUET_PSN,
		.max_dest_rd_atomic = 4,
		.max_rd_atomic = 4,
		.min_rnr_timer = 1,
		.timeout = (uint8_t)timeout,
		.retry_cnt = 7,
		.rnr_retry = 7,
		.ah_attr = {.is_global = 1, .port_num = 1,
			    .grh = {.dgid = peer->gid, .hop_limit = 64}},
	};
	enum ibv_qp_type type = end->qp->qp_type;
	int rc, mask = IBV_QP_STATE;

	end->peer = *peer;
	if (type != IBV_QPT_UD)
		mask |= IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
	if (type == IBV_QPT_RC)
		mask |= IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
	rc = ibv_modify_qp(end->qp, &attr, mask);
	if (rc)
		return rc;
	attr.qp_state = IBV_QPS_RTS;
	mask = IBV_QP_STATE | IBV_QP_SQ_PSN;
	if (type == IBV_QPT_RC)
		mask |= IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
			IBV_QP_MAX_QP_RD_ATOMIC;
	return ibv_modify_qp(end->qp, &attr, mask);
}

void duet_close(struct duet_end *end)
{
	MUST(!ibv_destroy_qp(end->qp));
	MUST(!ibv_dereg_mr(end->own_mr));
	MUST(!ibv_dereg_mr(end->open_mr));
	MUST(!ibv_destroy_cq(end->cq));
	MUST(!ibv_destroy_comp_channel(end->channel));
	MUST(!ibv_dealloc_pd(end->pd));
	munmap(end->memory.map, 3 * PAGE + 2 * end->memory.bytes);
	if (end->memory.fd >= 0)
		close(end->memory.fd);
}

/* --- what is exchanged --- */

static uint8_t octet_of(uint64_t n, size_t i)
{
	return (uint8_t)(n * 131 + i * 7 + (i >> 8) * 13);
}

static void fill(uint8_t *octets, size_t bytes, uint64_t n, uint8_t xor)
{
	for (size_t i = 0; i < bytes; i++)
		octets[i] = octet_of(n, i) ^ xor;
}

static void expect(const uint8_t *octets, size_t bytes, uint64_t n, uint8_t xor, const char *what)
{
	for (size_t i = 0; i < bytes; i++)
		if (octets[i] != (octet_of(n, i) ^ xor))
			attack_fail("%s %llu of %zu octets: octet %zu is %02x, not %02x", what,
				    (unsigned long long)n, bytes, i, octets[i],
				    octet_of(n, i) ^ xor);
}

/* The second half of what is one's own is for what comes. */
static size_t half(const struct duet_end *end)
{
	return end->memory.bytes / 2;
}

static void recv_post(struct duet_end *end)
{
	struct ibv_sge sge = {(uintptr_t)end->memory.own + half(end), (uint32_t)half(end),
			      end->own_mr->lkey};
	struct ibv_recv_wr wr = {.sg_list = &sge, .num_sge = 1}, *bad;

	MUST(!(errno = ibv_post_recv(end->qp, &wr, &bad)));
}

static void send_post(struct duet_end *end, enum ibv_wr_opcode op, uint32_t bytes, uint32_t imm)
{
	bool reads = op == IBV_WR_RDMA_READ || op == IBV_WR_ATOMIC_FETCH_AND_ADD;
	struct ibv_sge sge = {(uintptr_t)end->memory.own + (reads ? half(end) : 0), bytes,
			      end->own_mr->lkey};
	struct ibv_send_wr wr = {.sg_list = &sge, .num_sge = 1, .opcode = op,
				 .imm_data = htobe32(imm)}, *bad;

	if (op == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		wr.wr.atomic.remote_addr = end->peer.open + end->memory.bytes - DUET_ADD_BYTES;
		wr.wr.atomic.rkey = end->peer.rkey;
		wr.wr.atomic.compare_add = 1;
	} else {
		wr.wr.rdma.remote_addr = end->peer.open;
		wr.wr.rdma.rkey = end->peer.rkey;
	}
	MUST(!(errno = ibv_post_send(end->qp, &wr, &bad)));
}

/* A nap until something may have come. */
static void nap(struct duet_end *end)
{
	struct pollfd fd = {.fd = end->channel->fd, .events = POLLIN};
	struct ibv_cq *cq;
	void *context;

	/* The alarm hangs over it: that nothing comes is told there. */
	if (poll(&fd, 1, NAP_MS) == 1 && !ibv_get_cq_event(end->channel, &cq, &context))
		ibv_ack_cq_events(cq, 1);
}

static struct ibv_wc wait_for(struct duet_end *end)
{
	struct ibv_wc wc;
	int n;

	duet_watch(WATCH_S);
	while (!(n = ibv_poll_cq(end->cq, 1, &wc))) {
		if (!end->sleeps)
			continue;
		MUST(!ibv_req_notify_cq(end->cq, 0));
		n = ibv_poll_cq(end->cq, 1, &wc);
		if (n)
			break;
		nap(end);
	}
	MUST(n == 1);
	if (wc.status != IBV_WC_SUCCESS)
		attack_fail("honest traffic: %s (opcode %d)", ibv_wc_status_str(wc.status),
			    wc.opcode);
	return wc;
}

/* --- leader --- */

static const uint32_t sizes[] = {0,    1,    8,	   28,	  44,	 45,	56,    57,    256,
				 1024, 4096, 4097, 16384, 32767, 32768, 32769, 65536, 131072};

static void echoed(struct duet_end *end, enum ibv_wr_opcode op, uint32_t bytes)
{
	recv_post(end);
	fill(end->memory.own, bytes, end->echoes, 0);
	send_post(end, op, bytes, (uint32_t)end->echoes);
	for (unsigned i = 0; i < 2; i++) {
		struct ibv_wc wc = wait_for(end);

		if (wc.opcode & IBV_WC_RECV && wc.byte_len != bytes)
			attack_fail("echo %llu has %u octets, not %u",
				    (unsigned long long)end->echoes, wc.byte_len, bytes);
	}
	expect(end->memory.own + half(end), bytes, end->echoes, ECHO_XOR, "echo");
	end->echoes++;
}

static void written_and_read(struct duet_end *end, uint32_t bytes, uint64_t n)
{
	fill(end->memory.own, bytes, n, 0);
	send_post(end, IBV_WR_RDMA_WRITE, bytes, 0);
	wait_for(end);
	memset(end->memory.own + half(end), 0xee, bytes);
	send_post(end, IBV_WR_RDMA_READ, bytes, 0);
	wait_for(end);
	expect(end->memory.own + half(end), bytes, n, 0, "what was written and read");
}

static void added(struct duet_end *end)
{
	uint64_t was;

	send_post(end, IBV_WR_ATOMIC_FETCH_AND_ADD, DUET_ADD_BYTES, 0);
	wait_for(end);
	memcpy(&was, end->memory.own + half(end), sizeof(was));
	if (was != end->adds)
		attack_fail("the counter is %llu, not %llu", (unsigned long long)was,
			    (unsigned long long)end->adds);
	end->adds++;
}

void duet_lead(struct duet_end *end, uint64_t *rng)
{
	unsigned kind = attack_below(rng, 4);
	uint32_t bytes = sizes[attack_below(rng, VB_ARRAY_LEN(sizes))];
	uint64_t n = vb_prng_next(rng);

	end->sleeps = attack_one_in(rng, 4);
	if (bytes > half(end) - DUET_ADD_BYTES)
		bytes = (uint32_t)half(end) - DUET_ADD_BYTES;
	if (kind == 0)
		echoed(end, IBV_WR_SEND, bytes);
	else if (kind == 1)
		echoed(end, IBV_WR_RDMA_WRITE_WITH_IMM, bytes);
	else if (kind == 2)
		written_and_read(end, bytes, n);
	else
		added(end);
	duet_canaries(end, "the leader");
}

/* --- follower --- */

void duet_follow_begin(struct duet_end *end)
{
	recv_post(end);
	MUST(!ibv_req_notify_cq(end->cq, 0));
}

static void follow_one(struct duet_end *end, const struct ibv_wc *wc)
{
	const uint8_t *came = end->memory.own + half(end);

	if (wc->status != IBV_WC_SUCCESS)
		attack_fail("the follower: %s", ibv_wc_status_str(wc->status));
	if (!(wc->opcode & IBV_WC_RECV))
		return;
	if (wc->opcode == IBV_WC_RECV_RDMA_WITH_IMM) {
		came = end->memory.open;
		if (be32toh(wc->imm_data) != (uint32_t)end->echoes)
			attack_fail("WRITE %u came instead of %llu", be32toh(wc->imm_data),
				    (unsigned long long)end->echoes);
	}
	expect(came, wc->byte_len, end->echoes, 0, "message");
	fill(end->memory.own, wc->byte_len, end->echoes, ECHO_XOR);
	recv_post(end);
	send_post(end, IBV_WR_SEND, wc->byte_len, 0);
	end->echoes++;
}

void duet_follow(struct duet_end *end)
{
	struct ibv_wc wc;

	while (ibv_poll_cq(end->cq, 1, &wc) == 1)
		follow_one(end, &wc);
}

int duet_follower(bool sleeps)
{
	struct pollfd fds[2] = {{.fd = DUET_FD, .events = POLLIN}, {.events = POLLIN}};
	struct duet_options options = {.bytes = 1 << 18, .file = sleeps, .timeout = 18};
	struct duet_device device;
	struct duet_end end;

	duet_watch(WATCH_S);
	duet_device_open(&device);
	duet_open(&end, &device, &options);
	duet_follow_begin(&end);
	duet_meet(&end, &device, DUET_FD, options.timeout);
	duet_watch(0);
	fds[1].fd = end.channel->fd;
	while (poll(fds, 1, 0) == 0) {
		duet_follow(&end);
		if (!sleeps)
			continue;
		MUST(!ibv_req_notify_cq(end.cq, 0));
		duet_follow(&end);
		if (poll(fds, 2, -1) >= 0 && fds[1].revents)
			nap(&end);
	}
	duet_watch(WATCH_S);
	duet_canaries(&end, "the follower");
	duet_close(&end);
	duet_device_close(&device);
	return 0;
}

/* --- processes --- */

bool duet_tell(int fd, const void *octets, size_t bytes)
{
	return send(fd, octets, bytes, MSG_NOSIGNAL) == (ssize_t)bytes;
}

bool duet_hear(int fd, void *octets, size_t bytes)
{
	return recv(fd, octets, bytes, MSG_WAITALL) == (ssize_t)bytes;
}

pid_t duet_spawn(const char *const arguments[], bool apart, int *fd)
{
	int fds[2];
	pid_t pid;

	MUST(!socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds));
	/* As fork(2) does it, which knows no flags. Who may make no namespace does without. */
	pid = -1;
	if (apart)
		pid = (pid_t)syscall(SYS_clone, CLONE_NEWPID | SIGCHLD, NULL, NULL, NULL, NULL);
	if (pid < 0)
		pid = fork();
	MUST(pid >= 0);
	if (pid == 0) {
		if (fds[1] == DUET_FD)
			fds[1] = dup(fds[1]);
		dup2(fds[1], DUET_FD);
		execv("/proc/self/exe", (char *const *)(uintptr_t)arguments);
		_exit(127);
	}
	close(fds[1]);
	*fd = fds[0];
	return pid;
}

void duet_meet(struct duet_end *end, struct duet_device *device, int fd, unsigned timeout)
{
	struct duet_address own = duet_address(end, device), other;
	char ready = 1;

	duet_watch(WATCH_S);
	MUST(duet_tell(fd, &own, sizeof(own)) && duet_hear(fd, &other, sizeof(other)));
	MUST(!(errno = duet_connect(end, &other, timeout)));
	MUST(duet_tell(fd, &ready, 1) && duet_hear(fd, &ready, 1));
}

void duet_part(pid_t pid, int fd)
{
	int status;

	duet_watch(WATCH_S);
	close(fd);
	MUST(waitpid(pid, &status, 0) == pid);
	if (!WIFEXITED(status) || WEXITSTATUS(status))
		attack_fail("the follower ended with status %x", (unsigned)status);
}
