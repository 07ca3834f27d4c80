/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * What bench/budget.py counts under valgrind's callgrind: messages on each of the hot paths, from
 * one QP to another of this process.
 *
 *   budget ring | udp    the paths of one link; VERBATIM_LINK has to match
 *
 * Callgrind counts what happens within counted(), in the thread that calls it, and writes a dump
 * after each path_end(), which prints "LINK PATH UNITS", with the number of messages or frames in
 * that dump. Each path is counted DUMPS times.
 */
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <infiniband/mlx5dv.h>

#include "qp.h"

enum {
	MESSAGES = 1024, /* one in so many polls of rings looks at the wire */
	LARGE_MESSAGES = 8,
	OCTETS = 8,
	LARGE = 1 << 20,
	WARM_MESSAGES = 32,
	WARM_POLLS = 6000, /* after so many empty polls, only some look at the wire */
	DUMPS = 5,
	CLOCK_STEP_NS = 200, /* time between two readings of the clock */
	NAP_NS_MAX = 1000000,
	WRS = 16,
	KEY = 0x1234,
};

/* The part of a message that is counted. */
enum part { MESSAGE, POST, POLL };

struct path {
	const char *link, *name;
	enum part part;
	void (*open)(void);
	void (*post)(const struct path *path);
	enum ibv_wr_opcode opcode;
	uint32_t bytes, frames; /* of each message */
};

static struct end end;
static uint8_t *from, *to;
static struct ibv_mr *from_mr, *to_mr;
static struct ibv_cq *send_cq, *recv_cq;
static struct ibv_qp *send_qp, *recv_qp;
static struct ibv_srq *srq; /* NULL: receives are posted to the QP */
static struct ibv_ah *ah;
static uint32_t srq_number;

/* --- the clock, and the NIC's thread --- */

/*
 * While something is counted, the clock is simulated and the NIC's thread is stopped: otherwise the
 * counts would depend on when that thread looks, and on which timers have expired. So these
 * functions replace libc's, for the library as well.
 */
static __thread bool is_main;
static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;
static atomic_bool at_gate;
static uint64_t held_ns; /* 0: libc's clock is used */

int clock_gettime(clockid_t clock, struct timespec *now)
{
	if (!held_ns || clock != CLOCK_MONOTONIC)
		return (int)syscall(SYS_clock_gettime, clock, now);
	held_ns += CLOCK_STEP_NS;
	now->tv_sec = (time_t)(held_ns / 1000000000u);
	now->tv_nsec = (long)(held_ns % 1000000000u);
	return 0;
}

int ppoll(struct pollfd *fds, nfds_t count, const struct timespec *timeout, const sigset_t *mask)
{
	struct timespec left, *until = NULL;

	/* The NIC's thread naps while the application polls. */
	if (!is_main && timeout && !timeout->tv_sec && timeout->tv_nsec <= NAP_NS_MAX) {
		if (pthread_mutex_trylock(&gate)) {
			atomic_store(&at_gate, true);
			pthread_mutex_lock(&gate);
			atomic_store(&at_gate, false);
		}
		pthread_mutex_unlock(&gate);
	}
	if (timeout) {
		left = *timeout;
		until = &left;
	}
	return (int)syscall(SYS_ppoll, fds, count, until, mask, _NSIG / 8);
}

/* --- objects --- */

static struct ibv_mr *memory(uint8_t **buffer)
{
	struct ibv_mr *mr;

	*buffer = aligned_alloc(4096, LARGE);
	need(*buffer, "aligned_alloc");
	memset(*buffer, 1, LARGE);
	mr = ibv_reg_mr(end.pd, *buffer, LARGE, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	need(mr, "ibv_reg_mr");
	return mr;
}

/* 4 s: nothing is lost, but all is slow under valgrind. */
static void climb(struct ibv_qp *qp, uint32_t peer, int init, int rtr, int rts)
{
	qp_climb(&end, qp, peer, 20, init, rtr, rts);
}

static struct ibv_qp *rc_make(struct ibv_cq *cq)
{
	struct ibv_qp_init_attr attr = {
		.send_cq = cq,
		.recv_cq = cq,
		.srq = srq,
		.cap = {.max_send_wr = WRS,
			.max_recv_wr = WRS,
			.max_send_sge = 1,
			.max_recv_sge = 1,
			.max_inline_data = 16},
		.qp_type = IBV_QPT_RC,
		.sq_sig_all = 1,
	};
	struct ibv_qp *qp = ibv_create_qp(end.pd, &attr);

	need(qp, "ibv_create_qp");
	return qp;
}

static void rc_open(void)
{
	send_qp = rc_make(send_cq);
	recv_qp = rc_make(recv_cq);
	climb(send_qp, recv_qp->qp_num, QP_INIT, QP_PEER | QP_RESPONDER, QP_REQUESTER);
	climb(recv_qp, send_qp->qp_num, QP_INIT, QP_PEER | QP_RESPONDER, QP_REQUESTER);
}

static void srq_make(void)
{
	struct ibv_srq_init_attr attr = {.attr = {.max_wr = WRS, .max_sge = 1}};

	srq = ibv_create_srq(end.pd, &attr);
	need(srq, "ibv_create_srq");
}

static void srq_open(void)
{
	srq_make();
	rc_open();
}

static void xrc_open(void)
{
	struct ibv_xrcd_init_attr domain = {
		.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS,
		.fd = -1,
		.oflags = O_CREAT,
	};
	struct ibv_srq_init_attr_ex shared = {
		.attr = {.max_wr = WRS, .max_sge = 1},
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_CQ |
			     IBV_SRQ_INIT_ATTR_XRCD,
		.srq_type = IBV_SRQT_XRC,
		.xrcd = ibv_open_xrcd(end.context, &domain),
		.pd = end.pd,
		.cq = recv_cq,
	};
	struct ibv_qp_init_attr_ex receiver = {
		.qp_type = IBV_QPT_XRC_RECV,
		.comp_mask = IBV_QP_INIT_ATTR_XRCD,
		.xrcd = shared.xrcd,
	};
	struct ibv_qp_init_attr_ex sender = {
		.send_cq = send_cq,
		.cap = {.max_send_wr = WRS, .max_send_sge = 1, .max_inline_data = 16},
		.qp_type = IBV_QPT_XRC_SEND,
		.sq_sig_all = 1,
		.comp_mask = IBV_QP_INIT_ATTR_PD,
		.pd = end.pd,
	};

	need(shared.xrcd, "ibv_open_xrcd");
	srq = ibv_create_srq_ex(end.context, &shared);
	need(srq && !ibv_get_srq_num(srq, &srq_number), "ibv_create_srq_ex");
	recv_qp = ibv_create_qp_ex(end.context, &receiver);
	send_qp = ibv_create_qp_ex(end.context, &sender);
	need(send_qp && recv_qp, "ibv_create_qp_ex");
	climb(recv_qp, send_qp->qp_num, QP_INIT, QP_PEER | QP_RESPONDER, 0);
	climb(send_qp, recv_qp->qp_num, QP_INIT, QP_PEER, QP_REQUESTER);
}

static struct ibv_qp *dc_make(enum mlx5dv_dc_type type)
{
	bool sends = type == MLX5DV_DCTYPE_DCI;
	struct ibv_qp_init_attr_ex attr = {
		.send_cq = sends ? send_cq : recv_cq,
		.recv_cq = sends ? send_cq : recv_cq,
		.srq = sends ? NULL : srq,
		.qp_type = IBV_QPT_DRIVER,
		.comp_mask = IBV_QP_INIT_ATTR_PD,
		.pd = end.pd,
		.sq_sig_all = 1,
	};
	struct mlx5dv_qp_init_attr dv = {
		.comp_mask = MLX5DV_QP_INIT_ATTR_MASK_DC,
		.dc_init_attr = {.dc_type = type},
	};
	struct ibv_qp *qp;

	if (sends) {
		attr.cap.max_send_wr = WRS;
		attr.cap.max_send_sge = 1;
		attr.cap.max_inline_data = 16;
		attr.comp_mask |= IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
		attr.send_ops_flags = IBV_QP_EX_WITH_SEND;
	} else {
		dv.dc_init_attr.dct_access_key = KEY;
	}
	qp = mlx5dv_create_qp(end.context, &attr, &dv);
	need(qp, "mlx5dv_create_qp");
	return qp;
}

static void dc_open(void)
{
	struct ibv_ah_attr attr = {
		.is_global = 1,
		.port_num = 1,
		.grh = {.dgid = end.gid, .sgid_index = end.gid_index, .hop_limit = 64},
	};

	srq_make();
	ah = ibv_create_ah(end.pd, &attr);
	need(ah, "ibv_create_ah");
	recv_qp = dc_make(MLX5DV_DCTYPE_DCT);
	send_qp = dc_make(MLX5DV_DCTYPE_DCI);
	climb(recv_qp, 0, QP_INIT, IBV_QP_AV | IBV_QP_MIN_RNR_TIMER, 0);
	climb(send_qp, 0, 0, 0, QP_REQUESTER);
}

/* --- a message --- */

static void receive_post(void)
{
	struct ibv_sge sge = {(uintptr_t)to, 64, to_mr->lkey};
	struct ibv_recv_wr wr = {.sg_list = &sge, .num_sge = 1}, *bad;

	need(!(srq ? ibv_post_srq_recv(srq, &wr, &bad) : ibv_post_recv(recv_qp, &wr, &bad)),
	     "ibv_post_recv");
}

static void plain_post(const struct path *path)
{
	struct ibv_sge sge = {(uintptr_t)from, path->bytes, from_mr->lkey};
	struct ibv_send_wr wr = {
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = path->opcode,
		.wr.rdma = {.remote_addr = (uintptr_t)to, .rkey = to_mr->rkey},
		.qp_type.xrc.remote_srqn = srq_number,
	};
	struct ibv_send_wr *bad;

	need(!ibv_post_send(send_qp, &wr, &bad), "ibv_post_send");
}

static void dc_post(const struct path *path)
{
	struct ibv_qp_ex *qp = ibv_qp_to_qp_ex(send_qp);

	ibv_wr_start(qp);
	qp->wr_id = 0;
	qp->wr_flags = 0;
	ibv_wr_send(qp);
	mlx5dv_wr_set_dc_addr(mlx5dv_qp_ex_from_ibv_qp_ex(qp), ah, recv_qp->qp_num, KEY);
	ibv_wr_set_sge(qp, from_mr->lkey, (uintptr_t)from, path->bytes);
	need(!ibv_wr_complete(qp), "ibv_wr_complete");
}

static bool poll_one(struct ibv_cq *cq)
{
	struct ibv_wc wc;
	int count = ibv_poll_cq(cq, 1, &wc);

	need(count >= 0, "ibv_poll_cq");
	if (count && wc.status != IBV_WC_SUCCESS) {
		fprintf(stderr, "completion: %s\n", ibv_wc_status_str(wc.status));
		_exit(1);
	}
	return count > 0;
}

static bool receives(const struct path *path)
{
	return path->opcode != IBV_WR_RDMA_WRITE;
}

static void finish(const struct path *path)
{
	while (receives(path) && !poll_one(recv_cq))
		;
	while (!poll_one(send_cq))
		;
}

static void message(const struct path *path)
{
	if (receives(path))
		receive_post();
	path->post(path);
	finish(path);
}

static void poll_nothing(const struct path *path)
{
	need(!poll_one(recv_cq), "a completion of nothing");
}

/* --- what is counted --- */

static __attribute__((noipa)) void counted(void (*step)(const struct path *path),
					   const struct path *path)
{
	step(path);
	__asm__ volatile(""); /* prevents a tail call: callgrind dumps on return */
}

static unsigned messages(const struct path *path)
{
	return path->bytes == LARGE ? LARGE_MESSAGES : MESSAGES;
}

static __attribute__((noipa)) void path_end(const struct path *path)
{
	printf("%s %s %u\n", path->link, path->name, messages(path) * path->frames);
}

static void step(const struct path *path)
{
	switch (path->part) {
	case MESSAGE:
		counted(message, path);
		break;
	case POST:
		receive_post();
		counted(path->post, path);
		finish(path);
		break;
	case POLL:
		counted(poll_nothing, path);
	}
}

/* From here on only this thread drives the NIC, and time advances by its readings of the clock. */
static void hold(const struct path *path)
{
	struct path send = *path;
	struct timespec now;

	/* A message wakes the thread if it sleeps for longer than a nap; a copy does not. */
	send.opcode = IBV_WR_SEND;
	send.bytes = OCTETS;
	pthread_mutex_lock(&gate);
	while (!atomic_load(&at_gate))
		message(&send);
	clock_gettime(CLOCK_MONOTONIC, &now);
	held_ns = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void release(void)
{
	held_ns = 0;
	pthread_mutex_unlock(&gate);
}

static void path_run(const struct path *path)
{
	srq = NULL;
	srq_number = 0;
	path->open();
	hold(path);
	for (unsigned i = 0; i < WARM_POLLS; i++)
		poll_nothing(path);
	for (unsigned i = 0; i < WARM_MESSAGES; i++)
		message(path);
	for (unsigned k = 0; k < DUMPS; k++) {
		for (unsigned i = 0; i < messages(path); i++)
			step(path);
		path_end(path);
	}
	release();
}

/* A WRITE within a process is a copy; with immediate data it uses the ring. */
static const struct path paths[] = {
	/* clang-format off */
	{"ring", "post",  POST,    rc_open,  plain_post, IBV_WR_SEND,       OCTETS, 1},
	{"ring", "poll",  POLL,    rc_open,  plain_post, IBV_WR_SEND,       OCTETS, 1},
	{"ring", "send",  MESSAGE, rc_open,  plain_post, IBV_WR_SEND,       OCTETS, 1},
	{"ring", "write", MESSAGE, rc_open,  plain_post, IBV_WR_RDMA_WRITE, OCTETS, 1},
	{"ring", "write_imm", MESSAGE, rc_open, plain_post, IBV_WR_RDMA_WRITE_WITH_IMM, OCTETS, 1},
	{"ring", "write_large", MESSAGE, rc_open, plain_post, IBV_WR_RDMA_WRITE_WITH_IMM, LARGE,
	 LARGE / 32768},
	{"ring", "srq",   MESSAGE, srq_open, plain_post, IBV_WR_SEND,       OCTETS, 1},
	{"ring", "xrc",   MESSAGE, xrc_open, plain_post, IBV_WR_SEND,       OCTETS, 1},
	{"ring", "dc",    MESSAGE, dc_open,  dc_post,    IBV_WR_SEND,       OCTETS, 1},
	{"udp",  "post",  POST,    rc_open,  plain_post, IBV_WR_SEND,       OCTETS, 1},
	{"udp",  "send",  MESSAGE, rc_open,  plain_post, IBV_WR_SEND,       OCTETS, 1},
	{"udp",  "write", MESSAGE, rc_open,  plain_post, IBV_WR_RDMA_WRITE, OCTETS, 1},
	{"udp",  "write_large", MESSAGE, rc_open, plain_post, IBV_WR_RDMA_WRITE, LARGE,
	 LARGE / 4096},
	/* clang-format on */
};

int main(int argc, char **argv)
{
	is_main = true;
	setvbuf(stdout, NULL, _IOLBF, 0);
	need(argc == 2, "usage: budget ring|udp");
	end_open(&end);
	from_mr = memory(&from);
	to_mr = memory(&to);
	send_cq = ibv_create_cq(end.context, 4 * WRS, NULL, NULL, 0);
	recv_cq = ibv_create_cq(end.context, 4 * WRS, NULL, NULL, 0);
	need(send_cq && recv_cq, "ibv_create_cq");
	for (size_t i = 0; i < sizeof(paths) / sizeof(*paths); i++) {
		if (!strcmp(paths[i].link, argv[1]))
			path_run(&paths[i]);
	}
	return 0;
}
