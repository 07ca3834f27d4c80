/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_TESTS_NIC_FIXTURE_H
#define VB_TESTS_NIC_FIXTURE_H

/* A NIC without surroundings: its frames vanish, its clock stands, its signals are counted. */

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/check.h"
#include "nic/control/qp.h"
#include "nic/control/qp_modify.h"
#include "nic/control/srq.h"
#include "nic/core/ah.h"
#include "nic/core/internal.h"
#include "nic/data/post.h"
#include "nic/mem/mem.h"
#include "nic/queue/cq.h"
#include "nic/queue/srq.h"

enum { FD_ASYNC, FD_CHANNEL, FDS };

static struct {
	struct vb_nic *nic;
	struct vb_ctx *ctx;
	struct vb_pd *pd;
	uint64_t now_ns, raw_ns, wall_ns;
	unsigned clocks_read;
	int signals[FDS];
	unsigned sent, kicks;
	uint8_t last[64]; /* the first piece that was sent last, or its beginning */
	int probe; /* what probing memory says */
	bool probed_write;
} fix;

static const uint8_t own_gid[VB_GID_BYTES] = { [10] = 0xff, 0xff, 10, 0, 0, 1 };
static const uint8_t peer_gid[VB_GID_BYTES] = { [10] = 0xff, 0xff, 10, 0, 0, 2 };

static uint64_t fix_now_ns(void *arg)
{
	return fix.now_ns;
}

static uint64_t fix_raw_ns(void *arg)
{
	fix.clocks_read++;
	return fix.raw_ns;
}

static uint64_t fix_wall_ns(void *arg)
{
	fix.clocks_read++;
	return fix.wall_ns;
}

static int fix_tx(void *arg, uint16_t src_slot, const struct vb_burst *burst)
{
	size_t bytes = burst->iov[0].iov_len;

	fix.sent += burst->frames;
	memcpy(fix.last, burst->iov[0].iov_base,
	       bytes < sizeof(fix.last) ? bytes : sizeof(fix.last));
	return 0;
}

static unsigned fix_burst_frames_max(void *arg)
{
	return VB_LINK_BURST_FRAMES_MAX;
}

static uint32_t fix_frame_bytes_max(void *arg, const struct vb_path *path)
{
	return 1500 - 28;
}

static void fix_kick(void *arg)
{
	fix.kicks++;
}

static void fix_signal(void *arg, int fd)
{
	fix.signals[fd]++;
}

static void fix_unsignal(void *arg, int fd)
{
	fix.signals[fd]--;
}

static int fix_lease(void *arg, uint16_t *slot, uint32_t *next_index)
{
	*slot = 3;
	*next_index = 100;
	return 0;
}

static int fix_probe(void *arg, const void *addr, size_t bytes, bool write)
{
	fix.probed_write = write;
	return fix.probe;
}

static int begin(void **state)
{
	const struct vb_nic_host host = {
		.now_ns = fix_now_ns, .raw_ns = fix_raw_ns, .wall_ns = fix_wall_ns, .tx = fix_tx,
		.burst_frames_max = fix_burst_frames_max,
		.frame_bytes_max = fix_frame_bytes_max, .kick = fix_kick, .signal = fix_signal,
		.unsignal = fix_unsignal, .lease = fix_lease, .probe_memory = fix_probe,
	};
	struct vb_gid_entry entry = { .ifindex = 1, .mtu_bytes = 1500 };

	memset(&fix, 0, sizeof(fix));
	fix.now_ns = 1;
	memcpy(entry.gid, own_gid, VB_GID_BYTES);
	assert_int_equal(vb_nic_create(&fix.nic, &host, 42), 0);
	vb_nic_gids_set(fix.nic, &entry, 1);
	assert_int_equal(vb_ctx_create(fix.nic, FD_ASYNC, &fix.ctx), 0);
	assert_int_equal(vb_pd_create(fix.ctx, &fix.pd), 0);
	return 0;
}

/* Whatever a test left behind says EBUSY here. */
static int end(void **state)
{
	assert_int_equal(vb_pd_destroy(fix.pd), 0);
	vb_ctx_destroy(fix.ctx);
	vb_nic_destroy(fix.nic);
	return 0;
}

static inline struct vb_cq *make_cq(int cqe, struct vb_channel *channel)
{
	struct vb_cq *cq;

	assert_int_equal(vb_cq_create(fix.ctx, cqe, channel, 0, NULL, &cq), 0);
	return cq;
}

static inline void drop_cq(struct vb_cq *cq)
{
	assert_int_equal(vb_cq_destroy(cq), 0);
	vb_cq_free(cq);
}

static inline struct vb_qp *make_qp(enum ibv_qp_type type, struct vb_cq *cq, struct vb_srq *srq)
{
	struct ibv_qp_init_attr init = {
		.send_cq = &cq->ibv.cq, .recv_cq = &cq->ibv.cq, .qp_type = type,
		.srq = srq ? &srq->ibv : NULL,
		.cap = { .max_send_wr = 8, .max_recv_wr = 8, .max_send_sge = 2,
			 .max_recv_sge = 2, .max_inline_data = 32 },
	};
	struct vb_qp *qp;

	assert_int_equal(vb_qp_create(fix.pd, &init, &qp), 0);
	return qp;
}

static inline void drop_qp(struct vb_qp *qp)
{
	assert_int_equal(vb_qp_destroy(qp), 0);
	vb_qp_free(qp);
}

/* To RESET, INIT, RTR or RTS, one step after another from where it is. */
static inline void bring(struct vb_qp *qp, enum ibv_qp_state to)
{
	enum ibv_qp_type type = qp->ibv.qp.qp_type;
	struct ibv_qp_attr attr = {
		.port_num = 1, .qkey = 0x1111, .path_mtu = IBV_MTU_1024, .dest_qp_num = 0x77,
		.qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
				   IBV_ACCESS_REMOTE_ATOMIC,
		.rq_psn = 0x100, .sq_psn = 0x200, .max_dest_rd_atomic = 4, .max_rd_atomic = 4,
		.min_rnr_timer = 12, .timeout = 14, .retry_cnt = 7, .rnr_retry = 7,
		.ah_attr = { .is_global = 1, .port_num = 1 },
	};
	int masks[] = {
		[IBV_QPS_INIT] = IBV_QP_PORT | IBV_QP_PKEY_INDEX |
				 (type == IBV_QPT_UD ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS),
		[IBV_QPS_RTR] = 0,
		[IBV_QPS_RTS] = IBV_QP_SQ_PSN,
	};

	memcpy(attr.ah_attr.grh.dgid.raw, peer_gid, VB_GID_BYTES);
	if (type != IBV_QPT_UD)
		masks[IBV_QPS_RTR] = IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
	if (type == IBV_QPT_RC) {
		masks[IBV_QPS_RTR] |= IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
		masks[IBV_QPS_RTS] |= IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
				      IBV_QP_MAX_QP_RD_ATOMIC;
	}
	for (int s = vb_qp_state(qp) + 1; s <= (int)to; s++) {
		attr.qp_state = (enum ibv_qp_state)s;
		assert_int_equal(vb_qp_modify(qp, &attr, IBV_QP_STATE | masks[s]), 0);
	}
}

static inline int set_state(struct vb_qp *qp, enum ibv_qp_state state)
{
	struct ibv_qp_attr attr = { .qp_state = state };

	return vb_qp_modify(qp, &attr, IBV_QP_STATE);
}

/* The next asynchronous event must be this one. */
static inline void assert_event(enum ibv_event_type type)
{
	struct ibv_async_event event;

	assert_true(fix.signals[FD_ASYNC] > 0);
	fix.signals[FD_ASYNC]--;
	assert_true(vb_ctx_event_pop(fix.ctx, &event));
	assert_int_equal(event.event_type, type);
}

static inline void assert_no_event(void)
{
	struct ibv_async_event event;

	assert_int_equal(fix.signals[FD_ASYNC], 0);
	assert_false(vb_ctx_event_pop(fix.ctx, &event));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

#endif
