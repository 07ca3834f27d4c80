/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_TESTS_FAKE_HOST_H
#define VB_TESTS_FAKE_HOST_H

/*
 * The engine's host for unit tests: keeps what it was told, answers what the test says. Include it
 * in one file of a program.
 */

#include "engine/host.h"
#include "group.h"

enum { FAKE_DONE_MAX = 256 };

static struct {
	/* Work requests that are done, in order. */
	struct {
		uint64_t wr_id;
		enum ibv_wc_status status;
	} done[FAKE_DONE_MAX];
	unsigned done_count;

	/* Response data that was written. */
	unsigned local_writes;
	uint32_t local_offset, local_bytes;
	uint64_t local_first; /* its first eight octets */
	enum ibv_wc_status local_status;

	/* Work requests without a packet that were carried out. */
	unsigned locals;
	enum ibv_wc_status local_result;

	/* Receive requests. */
	unsigned recv_posted, recv_taken;
	bool recv_uncounted;
	struct {
		uint64_t wr_id;
		enum ibv_wc_status status;
		uint32_t bytes;
		bool imm;
	} recv_done[FAKE_DONE_MAX];
	unsigned recv_done_count;
	unsigned invalidated;
	uint32_t inv_rkey;
	enum vb_verdict invalidate;
	enum vb_verdict recv_write;
	enum vb_verdict refused; /* the last */
	bool no_room; /* for a datagram */
	uint32_t recv_bytes; /* written, in all */

	/* Memory that others reach. */
	enum vb_verdict remote_check, remote_write, remote_atomic;
	unsigned checks, writes, atomics;
	unsigned access;
	uint64_t va;
	uint64_t word;
	enum vb_kind atomic_kind;
	unsigned flush_level;
} fake;

void vb_host_send_done(struct vb_req *req, const struct vb_wqe *wqe, uint32_t index,
		       enum ibv_wc_status status)
{
	assert_true(fake.done_count < FAKE_DONE_MAX);
	fake.done[fake.done_count].wr_id = wqe->wr_id;
	fake.done[fake.done_count++].status = status;
}

enum ibv_wc_status vb_host_local_write(struct vb_req *req, const struct vb_wqe *wqe,
				       uint32_t offset, const void *data, uint32_t bytes)
{
	fake.local_writes++;
	fake.local_offset = offset;
	fake.local_bytes = bytes;
	memcpy(&fake.local_first, data, bytes < 8 ? bytes : 8);
	return fake.local_status;
}

enum ibv_wc_status vb_host_local(struct vb_req *req, const struct vb_wqe *wqe)
{
	if (fake.local_result == IBV_WC_SUCCESS)
		fake.locals++;
	return fake.local_result;
}

enum vb_verdict vb_host_flush(struct vb_resp *resp, const struct vb_pkt *pkt, unsigned access)
{
	fake.checks++;
	fake.access = access;
	fake.flush_level = pkt->flush.level;
	return fake.remote_check;
}

enum vb_verdict vb_host_invalidate(struct vb_resp *resp, uint32_t rkey)
{
	if (fake.invalidate == VB_OK)
		fake.invalidated++;
	fake.inv_rkey = rkey;
	return fake.invalidate;
}

bool vb_host_recv_take(struct vb_resp *resp, const struct vb_pkt *pkt,
		       const struct vb_op_info *info)
{
	if (fake.recv_taken == fake.recv_posted)
		return false;
	resp->recv.wr_id = fake.recv_taken++;
	return true;
}

enum vb_verdict vb_host_datagram_take(struct vb_resp *resp, uint32_t bytes)
{
	if (fake.recv_taken == fake.recv_posted)
		return VB_NO_RECV;
	if (fake.no_room)
		return VB_TOO_LONG;
	resp->recv.wr_id = fake.recv_taken++;
	return VB_OK;
}

uint32_t vb_host_recv_count(struct vb_resp *resp)
{
	return fake.recv_uncounted ? UINT32_MAX : fake.recv_posted - fake.recv_taken;
}

enum vb_verdict vb_host_recv_write(struct vb_resp *resp, uint32_t offset, const void *data,
				   uint32_t bytes)
{
	fake.recv_bytes += bytes;
	return fake.recv_write;
}

void vb_host_recv_done(struct vb_resp *resp, const struct vb_pkt *pkt,
		       const struct vb_op_info *info, uint32_t bytes, enum ibv_wc_status status)
{
	unsigned i = fake.recv_done_count++;

	assert_true(i < FAKE_DONE_MAX);
	fake.recv_done[i].wr_id = resp->recv.wr_id;
	fake.recv_done[i].status = status;
	fake.recv_done[i].bytes = bytes;
	fake.recv_done[i].imm = info->headers & VB_H_IMM;
}

void vb_host_refused(struct vb_resp *resp, const struct vb_pkt *pkt,
		     const struct vb_op_info *info, enum vb_verdict verdict)
{
	fake.refused = verdict;
}

enum vb_verdict vb_host_remote_check(struct vb_resp *resp, uint32_t rkey, uint64_t va,
				     uint32_t bytes, unsigned access)
{
	fake.checks++;
	fake.access = access;
	return fake.remote_check;
}

enum vb_verdict vb_host_remote_write(struct vb_resp *resp, uint32_t rkey, uint64_t va,
				     const void *data, uint32_t bytes)
{
	fake.writes++;
	fake.va = va;
	return fake.remote_write;
}

enum vb_verdict vb_host_remote_atomic(struct vb_resp *resp, const struct vb_pkt *pkt,
				      enum vb_kind kind, uint64_t *orig)
{
	if (fake.remote_atomic != VB_OK)
		return fake.remote_atomic;
	fake.atomics++;
	fake.atomic_kind = kind;
	*orig = fake.word;
	fake.word += kind == VB_K_FETCH_ADD ? pkt->atomic.swap_add : 0;
	return VB_OK;
}

#endif
