/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/doctor/measure.h"

#include <errno.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/check.h"
#include "cli/doctor/child.h"
#include "cli/doctor/device.h"
#include "run/process/env.h"

#define SECOND_NS 1000000000u
#define LATENCY_NS (SECOND_NS / 2)
#define RATE_NS SECOND_NS
#define WAIT_NS (5ull * SECOND_NS)

enum {
	MESSAGE_BYTES = 8,
	LARGE_BYTES = 1 << 20,
	DEPTH = 16,
	ALL_ACCESS = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE,
	RETRIES = 7,
	ACK_TIMEOUT = 14, /* 67 ms */
};

/* What one of the two tells the other. */
struct told {
	_Atomic bool ready;
	uint32_t qpn, rkey;
	uint64_t address;
	union ibv_gid gid;
};

/* Of one link; both children have it mapped. */
struct bout {
	const char *link; /* a value of VERBATIM_LINK */
	uint64_t deadline_ns;
	struct told told[2];
	_Atomic bool done;
	struct vb_doctor_speed speed;
};

struct side {
	struct bout *bout;
	unsigned number; /* 0 answers, 1 asks */
	struct vb_cli_library library;
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct ibv_mr *mr;
	uint8_t *memory;
	int gid_index;
};

/* The first reason counts; the parent reads it when both have ended. */
static bool fails(struct side *side, const char *what, int error)
{
	char *why = side->bout->speed.why;

	if (!*why)
		snprintf(why, VB_DOCTOR_WORDS_BYTES, "%s%s%s", what, error ? ": " : "",
			 error ? strerror(error) : "");
	atomic_store(&side->bout->done, true);
	return false;
}

static bool is_late(const struct side *side)
{
	return vb_doctor_now_ns() > side->bout->deadline_ns;
}

/* --- making what is needed --- */

static bool device_open(struct side *side)
{
	struct ibv_device **list;
	union ibv_gid gid;
	int count = 0;

	if (vb_cli_library_open(&side->library))
		return fails(side, "the library", ENOENT);
	list = side->library.device.get_list(&count);
	side->context = count ? side->library.device.open(list[0]) : NULL;
	if (!side->context)
		return fails(side, "the device does not open", errno);
	for (side->gid_index = 0; side->gid_index < UINT8_MAX; side->gid_index++) {
		if (vb_doctor_gid(&side->library, side->context, side->gid_index, &gid))
			return true;
	}
	return fails(side, "there is no address", 0);
}

static bool objects_make(struct side *side)
{
	const struct vb_cli_object_calls *calls = &side->library.object;
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = 2 * DEPTH, .max_recv_wr = DEPTH, .max_send_sge = 1,
			 .max_recv_sge = 1 },
	};

	side->memory = calloc(1, LARGE_BYTES);
	side->pd = calls->alloc_pd(side->context);
	side->cq = calls->create_cq(side->context, 4 * DEPTH, NULL, NULL, 0);
	if (!side->memory || !side->pd || !side->cq)
		return fails(side, "making a PD and a CQ", errno);
	side->mr = calls->reg_mr(side->pd, side->memory, LARGE_BYTES, ALL_ACCESS);
	init.send_cq = init.recv_cq = side->cq;
	side->qp = side->mr ? calls->create_qp(side->pd, &init) : NULL;
	return side->qp || fails(side, "making an MR and a QP", errno);
}

static bool other_wait(struct side *side)
{
	struct told *other = &side->bout->told[!side->number];

	while (!atomic_load(&other->ready)) {
		if (atomic_load(&side->bout->done))
			return false;
		if (is_late(side))
			return fails(side, "the other process is not ready", 0);
		usleep(1000);
	}
	return true;
}

static bool connect_to(struct side *side)
{
	const struct told *other = &side->bout->told[!side->number];
	struct ibv_qp_attr init = { .qp_state = IBV_QPS_INIT, .port_num = 1,
				    .qp_access_flags = ALL_ACCESS };
	struct ibv_qp_attr rtr = {
		.qp_state = IBV_QPS_RTR, .path_mtu = IBV_MTU_1024, .dest_qp_num = other->qpn,
		.min_rnr_timer = 1,
		.ah_attr = { .is_global = 1, .port_num = 1,
			     .grh = { .dgid = other->gid, .hop_limit = 64,
				      .sgid_index = (uint8_t)side->gid_index } },
	};
	struct ibv_qp_attr rts = { .qp_state = IBV_QPS_RTS, .timeout = ACK_TIMEOUT,
				   .retry_cnt = RETRIES, .rnr_retry = RETRIES };
	int (*modify)(struct ibv_qp *, struct ibv_qp_attr *, int) = side->library.object.modify_qp;
	int rc = modify(side->qp, &init, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
						 IBV_QP_ACCESS_FLAGS);

	if (!rc)
		rc = modify(side->qp, &rtr, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
						    IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
						    IBV_QP_MAX_DEST_RD_ATOMIC |
						    IBV_QP_MIN_RNR_TIMER);
	if (!rc)
		rc = modify(side->qp, &rts, IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT |
						    IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
						    IBV_QP_MAX_QP_RD_ATOMIC);
	return !rc || fails(side, "connecting two QPs", rc);
}

/* --- messages --- */

static bool receive_post(struct side *side)
{
	struct ibv_sge sge = { (uintptr_t)side->memory, MESSAGE_BYTES, side->mr->lkey };
	struct ibv_recv_wr wr = { .sg_list = &sge, .num_sge = 1 }, *bad;
	int rc = side->context->ops.post_recv(side->qp, &wr, &bad);

	return !rc || fails(side, "posting a receive", rc);
}

static bool send_post(struct side *side, enum ibv_wr_opcode opcode, uint32_t bytes)
{
	const struct told *other = &side->bout->told[!side->number];
	struct ibv_sge sge = { (uintptr_t)side->memory, bytes, side->mr->lkey };
	struct ibv_send_wr wr = {
		.sg_list = &sge, .num_sge = 1, .opcode = opcode, .send_flags = IBV_SEND_SIGNALED,
		.wr.rdma = { other->address, other->rkey },
	}, *bad;
	int rc = side->context->ops.post_send(side->qp, &wr, &bad);

	return !rc || fails(side, "posting a send", rc);
}

/* Waits for a completion of that kind; those of SENDs before it are passed over. */
static bool completed(struct side *side, enum ibv_wc_opcode wanted)
{
	struct ibv_wc wc;

	for (unsigned turns = 1;; turns++) {
		int n = side->context->ops.poll_cq(side->cq, 1, &wc);

		if (n > 0 && wc.status)
			return fails(side, "a completion with an error", ETIMEDOUT);
		if (n > 0 && wc.opcode == wanted)
			return true;
		if (turns % 256)
			continue;
		/* Where one processor is all there is, the other has to get it. */
		sched_yield();
		if (atomic_load(&side->bout->done))
			return false;
		if (is_late(side))
			return fails(side, "no answer", 0);
	}
}

static void answer(struct side *side)
{
	while (completed(side, IBV_WC_RECV)) {
		if (!receive_post(side) || !send_post(side, IBV_WR_SEND, MESSAGE_BYTES))
			return;
	}
}

static bool latency_measure(struct side *side)
{
	uint64_t begin = vb_doctor_now_ns(), now = begin, rounds = 0;

	for (; now - begin < LATENCY_NS; now = vb_doctor_now_ns(), rounds++) {
		if (!receive_post(side) || !send_post(side, IBV_WR_SEND, MESSAGE_BYTES) ||
		    !completed(side, IBV_WC_RECV))
			return false;
	}
	side->bout->speed.latency_ns = (double)(now - begin) / (double)rounds / 2;
	return true;
}

static bool rate_measure(struct side *side)
{
	uint64_t begin = vb_doctor_now_ns(), now = begin, writes = 0;
	unsigned posted = 0;

	for (; posted || now - begin < RATE_NS; now = vb_doctor_now_ns()) {
		while (posted < DEPTH && now - begin < RATE_NS) {
			if (!send_post(side, IBV_WR_RDMA_WRITE, LARGE_BYTES))
				return false;
			posted++;
		}
		if (!completed(side, IBV_WC_RDMA_WRITE))
			return false;
		posted--;
		writes++;
	}
	side->bout->speed.octets_per_s =
		(double)writes * LARGE_BYTES * SECOND_NS / (double)(now - begin);
	return true;
}

/* --- the two --- */

static void side_run(struct bout *bout, unsigned number)
{
	struct side side = { .bout = bout, .number = number };
	struct told *mine = &bout->told[number];

	for (unsigned i = 0; i < vb_env_names.count; i++) {
		const char *name = vb_words_at(&vb_env_names, i);

		if (strncmp(name, "VERBATIM_HUB", strlen("VERBATIM_HUB")) != 0)
			unsetenv(name);
	}
	setenv("VERBATIM_LINK", bout->link, 1);
	setenv("VERBATIM_LOG", "stderr", 1);
	if (!device_open(&side) || !objects_make(&side))
		return;
	mine->qpn = side.qp->qp_num;
	mine->rkey = side.mr->rkey;
	mine->address = (uintptr_t)side.memory;
	vb_doctor_gid(&side.library, side.context, side.gid_index, &mine->gid);
	atomic_store(&mine->ready, true);
	if (!other_wait(&side) || !connect_to(&side))
		return;
	if (!number && receive_post(&side))
		answer(&side);
	else if (number && latency_measure(&side) && rate_measure(&side))
		bout->speed.measured = true;
	atomic_store(&bout->done, true);
}

static void answering(void *arg)
{
	side_run(arg, 0);
}

static void asking(void *arg)
{
	side_run(arg, 1);
}

static void link_measure(struct vb_doctor_speed *speed, const char *link)
{
	struct bout *bout = vb_doctor_shared(sizeof(*bout));
	struct vb_doctor_child child[2];
	char said[2][VB_DOCTOR_WORDS_BYTES / 2] = { "", "" };

	snprintf(speed->why, sizeof(speed->why), "no memory");
	if (!bout)
		return;
	bout->link = link;
	bout->deadline_ns = vb_doctor_now_ns() + WAIT_NS;
	if (vb_doctor_child_start(&child[0], answering, bout))
		return;
	if (vb_doctor_child_start(&child[1], asking, bout))
		atomic_store(&bout->done, true);
	/* Time for those that have just found that they are late. */
	for (unsigned i = 0; i < VB_ARRAY_LEN(child); i++)
		vb_doctor_child_end(&child[i], bout->deadline_ns + SECOND_NS, said[i],
				    sizeof(said[i]));
	*speed = bout->speed;
	if (speed->measured)
		*speed->why = 0;
	else if (!*speed->why)
		snprintf(speed->why, sizeof(speed->why), "a process ended");
	if (!speed->measured && *said[1])
		snprintf(speed->why + strlen(speed->why), sizeof(speed->why) - strlen(speed->why),
			 " (%s)", said[1]);
}

void vb_doctor_measure(struct vb_doctor_speed speed[VB_DOCTOR_LINKS])
{
	link_measure(&speed[VB_DOCTOR_SHM], "shm");
	link_measure(&speed[VB_DOCTOR_UDP], "udp");
}
