/* SPDX-License-Identifier: BSD-2-Clause */
#include "peer.h"

#include <sys/mman.h>

#include "base/ring.h"
#include "intruder.h"
#include "link/shm.h"
#include "nic/core/export.h"
#include "skip.h"

/*
 * Two who talk to each other, and a third, of the same user, in PID, mount and IPC namespaces of
 * his own: what he says to the hub, and writes into memory that is his to write, reaches neither.
 */

enum { CANARY = 0xa5, PD = 7, INDEX = 5 };

static const struct vt_options patient = { .for_ever = true, .rnr_retry = 7 };

/* What he has found out, by whatever means. */
struct plan {
	uint32_t own, other;	    /* slots */
	uint32_t own_qpn;	    /* of who is to send to him */
	uint64_t address;	    /* of the other's memory */
	uint32_t pid, bytes, rkey; /* ... and process */
	bool token_is_anothers;
	int talk[2]; /* his, ours */
};

static uint32_t slot_of(uint32_t qpn)
{
	return qpn >> VB_INDEX_BITS;
}

/* --- in the jail --- */

static void *shared(int fd, size_t bytes)
{
	void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	intruder_check(at != MAP_FAILED);
	return at;
}

/* An export that says that the other's memory is his to give. */
static int export_forge(const struct plan *plan, uint32_t qpn)
{
	struct vb_export *export;
	struct vb_export_key *key;
	struct vb_export_qp *qp;
	void *memory;
	int fd;

	intruder_check(!vb_shm_export(&fd, &memory, sizeof(*export)));
	export = memory;
	export->magic = VB_EXPORT_MAGIC;
	export->version = VB_EXPORT_VERSION;
	export->pid = plan->pid;
	export->self = (uintptr_t)export;
	atomic_store(&export->sleep_epoch, 1);
	/* Where any program has zeros. */
	export->nonce = 0;
	export->nonce_address = plan->address + plan->bytes;
	qp = &export->qp[0][qpn & (VB_INDICES - 1)];
	qp->qpn = qpn;
	qp->dqpn = plan->own_qpn;
	qp->pd = PD;
	qp->access = VT_ALL_ACCESS;
	key = &export->key[vb_key_place(plan->rkey)];
	key->key = plan->rkey;
	key->pd = PD;
	key->iova = key->base = plan->address;
	key->bytes = plan->bytes;
	key->access = VT_ALL_ACCESS;
	key->shared = -1;
	return fd;
}

/* Takes the ring that comes, and lets its maker do as he likes. */
static void ring_take(int conn)
{
	struct vb_ring_area *area;
	int fds[VB_HUB_FDS_MAX];

	intruder_check(intruder_answer(conn, fds).type == VB_HUB_RING);
	area = shared(fds[0], sizeof(*area));
	for (unsigned i = 0; i < VB_RING_LANES; i++)
		atomic_store(&area->lane[i].heeds_direct, 1);
}

static void be_reached(void *arg)
{
	const struct plan *plan = arg;
	struct vb_hub_msg mark = vb_hub_msg_make(VB_HUB_MARK);
	int conn, name_fd, token[2];
	uint32_t qpn;
	char octet;

	intruder_begin(plan->talk[0]);
	mark.mark.slot = intruder_slot(&name_fd);
	qpn = mark.mark.slot << VB_INDEX_BITS | INDEX;
	intruder_check(!vb_line_create(token));
	conn = intruder_client(plan->token_is_anothers ? intruder_token_of(plan->other) : token[0],
			       export_forge(plan, qpn));
	intruder_check(!vb_hub_send(conn, &mark, &name_fd, VB_HUB_MARK_FDS));
	intruder_check(send(INTRUDER_FD, &qpn, sizeof(qpn), 0) == sizeof(qpn));
	ring_take(conn);
	intruder_check(send(INTRUDER_FD, &qpn, sizeof(qpn), 0) == sizeof(qpn));
	intruder_check(recv(INTRUDER_FD, &octet, 1, 0) == 1);
}

/* Once for each of the two, with a slot that is his own and one that he says is his. */
static void reach_as_another(void *arg)
{
	const struct plan *plan = arg;

	intruder_begin(plan->talk[0]);
	for (unsigned i = 0; i < 2; i++) {
		struct vb_hub_msg msg = vb_hub_msg_make(VB_HUB_REACH);
		int fds[VB_HUB_FDS_MAX], line[2], conn = intruder_conn();

		intruder_check(!vb_shm_create(&fds[0], sizeof(struct vb_ring_area)));
		intruder_check(!vb_line_create(line));
		fds[1] = line[1];
		intruder_slot(&fds[2]);
		msg.reach.from = i ? plan->own : plan->other;
		msg.reach.to = i ? plan->other : plan->own;
		intruder_check(!vb_hub_send(conn, &msg, fds, VB_HUB_REACH_FDS));
		msg = intruder_answer(conn, fds);
		intruder_check(msg.type == VB_HUB_REACHED && msg.reached.error == EPERM);
	}
}

/* --- the tests --- */

static void plan_make(struct plan *plan, struct vp_pair *p)
{
	*plan = (struct plan){ .own = slot_of(p->a.qp->qp_num),
			       .other = slot_of(p->far_qp.qp_num),
			       .address = (uintptr_t)p->b.buf,
			       .bytes = (uint32_t)p->b.bytes - 8,
			       .pid = (uint32_t)p->peer->pid,
			       .rkey = 0x7654321 };
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, plan->talk), 0);
}

static void plan_end(struct plan *plan, pid_t pid)
{
	int status;

	send(plan->talk[1], "!", 1, MSG_NOSIGNAL);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
	close(plan->talk[0]);
	close(plan->talk[1]);
}

static uint32_t hear(struct plan *plan)
{
	uint32_t qpn = 0;

	assert_true(vt_readable(plan->talk[1], VT_WAIT_MS));
	assert_int_equal(recv(plan->talk[1], &qpn, sizeof(qpn), 0), sizeof(qpn));
	return qpn;
}

vp_pair_test(a_ring_is_not_replaced, NULL, &patient)
{
	struct plan plan;
	pid_t pid;

	vp_exchange(p, 5000, 1);
	plan_make(&plan, p);
	pid = jail_start(reach_as_another, &plan);
	if (!pid)
		SKIP(NO_JAIL);
	plan_end(&plan, pid);
	vp_exchange(p, 5000, 2);
}

/* Who writes to him writes nowhere else: a WRITE is done, or not, when its post returns. */
vp_pair_test(what_is_written_to_one_does_not_land_in_another, NULL, &patient)
{
	for (unsigned i = 0; i < 2; i++) {
		struct vt_options opt = vt_options(&patient);
		struct ibv_qp his = { .qp_num = 0 };
		struct vt_end end, to;
		struct plan plan;
		pid_t pid;

		vp_fill(p, 4096, i);
		vt_end_open(&end, &opt);
		plan_make(&plan, p);
		plan.own_qpn = end.qp->qp_num;
		plan.token_is_anothers = i == 0;
		pid = jail_start(be_reached, &plan);
		if (!pid)
			SKIP(NO_JAIL);
		his.qp_num = hear(&plan);
		vt_climb(end.qp, &opt, opt.state, his.qp_num);
		hear(&plan);
		to = (struct vt_end){ .qp = &his, .mr = &(struct ibv_mr){ .rkey = plan.rkey },
				      .buf = p->b.buf, .bytes = p->b.bytes };
		memset(end.buf, CANARY, 64);
		vt_start(IBV_WR_RDMA_WRITE, &end, &to, 64);
		assert_true(vp_is_filled(p, 0, 4096, i));
		vt_expect_none(end.cq);
		vt_end_close(&end);
		plan_end(&plan, pid);
	}
	vp_exchange(p, 5000, 2);
}
