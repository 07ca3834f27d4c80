/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_TESTS_DIRECT_FIXTURE_H
#define VB_TESTS_DIRECT_FIXTURE_H

/*
 * Two NICs with rings between them, QP a of side 0 connected to QP b of side 1, and a host that
 * reaches the one's memory for the other: it is the same process here.
 */

#include "pair_fixture.h"

enum { FILE_NUMBER = 7, FROM = 100000 };


/* What the host does, and is told to do. */
static struct {
	unsigned writes, reads, maps, unmaps;
	unsigned paged; /* of the writes and reads */
	bool refuses;	     /* no way into the peer */
	bool refuses_map;
	void (*meanwhile)(void); /* called within an access */
} host;

static void move(void *to, const void *from, size_t bytes)
{
	memcpy(to, from, bytes);
}

static bool fake_write(void *arg, struct vb_peer *peer, uint64_t address, const struct iovec *iov,
		       unsigned count, bool paged)
{
	host.writes++;
	host.paged += paged;
	if (host.refuses)
		return false;
	if (host.meanwhile)
		host.meanwhile();
	for (unsigned i = 0; i < count; i++) {
		move((void *)(uintptr_t)address, iov[i].iov_base, iov[i].iov_len);
		address += iov[i].iov_len;
	}
	return true;
}

static bool fake_read(void *arg, struct vb_peer *peer, uint64_t address, const struct iovec *iov,
		      unsigned count, bool paged)
{
	host.reads++;
	host.paged += paged;
	if (host.refuses)
		return false;
	for (unsigned i = 0; i < count; i++) {
		move(iov[i].iov_base, (void *)(uintptr_t)address, iov[i].iov_len);
		address += iov[i].iov_len;
	}
	return true;
}

/* A file's offsets are the addresses of the target here. */
static void *fake_map(void *arg, struct vb_peer *peer, int file, uint64_t offset, uint64_t bytes)
{
	assert_int_equal(file, FILE_NUMBER);
	host.maps++;
	return host.refuses_map ? NULL : (void *)(uintptr_t)offset;
}

static void fake_unmap(void *arg, void *memory, uint64_t bytes)
{
	host.unmaps++;
}

static const struct vb_host_direct fake_direct = {
	.write = fake_write, .read = fake_read, .map = fake_map, .unmap = fake_unmap,
	.may_reach = idle_may_reach, .tarry = idle_tarry,
};

static int direct_begin(void **state)
{
	lanes_begin(state);
	memset(&host, 0, sizeof(host));
	for (unsigned i = 0; i < sides; i++) {
		side[i].direct = fake_direct;
		side[i].nic->host.direct = &side[i].direct;
	}
	pair_make(IBV_QPT_RC);
	for (unsigned i = 0; i < MEM_BYTES; i++) {
		side[0].mem[i] = (uint8_t)(i * 7 + i / 251);
		side[1].mem[i] = (uint8_t)(i * 5 + i / 241);
	}
	return 0;
}

static int direct_end(void **state)
{
	pair_drop();
	return lanes_end(state);
}

#define DIRECT(name) TEST_BETWEEN(name, direct_begin, direct_end)

static inline uint64_t direct_ops(void)
{
	return stat_of(&side[0], VB_STAT_DIRECT_OPS);
}

/* From FROM of ours to `to` of theirs, or the other way. */
static inline int post_with(enum ibv_wr_opcode op, uint32_t to, uint32_t bytes, unsigned flags,
		     struct ibv_mr *remote)
{
	struct ibv_sge sge = sge_of(&side[0], FROM, bytes);
	struct ibv_send_wr wr = { .wr_id = to, .sg_list = &sge, .num_sge = 1, .opcode = op,
				  .send_flags = flags }, *bad;

	wr.wr.rdma.remote_addr = (uintptr_t)remote->addr + to;
	wr.wr.rdma.rkey = remote->rkey;
	if (op == IBV_WR_ATOMIC_FETCH_AND_ADD)
		wr.wr.atomic.rkey = remote->rkey;
	return vb_qp_post_send(a, &wr, &bad);
}

static inline void post(enum ibv_wr_opcode op, uint32_t to, uint32_t bytes)
{
	assert_int_equal(post_with(op, to, bytes, IBV_SEND_SIGNALED, &side[1].mr->ibv), 0);
}

static inline uint64_t add_at(uint32_t to, uint64_t add)
{
	struct ibv_sge sge = sge_of(&side[0], FROM, 8);
	struct ibv_send_wr wr = { .sg_list = &sge, .num_sge = 1,
				  .opcode = IBV_WR_ATOMIC_FETCH_AND_ADD,
				  .send_flags = IBV_SEND_SIGNALED }, *bad;
	uint64_t orig;

	wr.wr.atomic.remote_addr = (uintptr_t)side[1].mem + to;
	wr.wr.atomic.rkey = side[1].mr->ibv.rkey;
	wr.wr.atomic.compare_add = add;
	assert_int_equal(vb_qp_post_send(a, &wr, &bad), 0);
	settle();
	assert_wc(side[0].cq, 0, IBV_WC_SUCCESS);
	memcpy(&orig, side[0].mem + FROM, 8);
	return orig;
}

/* The region of side 1 is a file of its process, but for some octets at both ends. */
static inline void share_key(uint32_t key, int file, uint32_t id, uint16_t skip, uint16_t cut)
{
	struct vb_export_key *entry = &side[1].nic->export->key[vb_key_place(key)];

	VB_EXPORT_SET(entry->shared_offset, (uintptr_t)side[1].mem);
	VB_EXPORT_SET(entry->shared_id, id);
	VB_EXPORT_SET(entry->shared_skip, skip);
	VB_EXPORT_SET(entry->shared_cut, cut);
	VB_EXPORT_SET(entry->shared, file);
}

static inline void share(int file, uint32_t id, uint16_t skip, uint16_t cut)
{
	share_key(side[1].mr->ibv.rkey, file, id, skip, cut);
}

static inline struct vb_export_qp *entry_of_b(void)
{
	return &side[1].nic->export->qp[0][b->ibv.qp.qp_num & (VB_INDICES - 1)];
}

static inline void nobody_helps(void)
{
	assert_int_equal(stat_of(&side[1], VB_STAT_RX_LANE_FRAMES), 0);
	assert_int_equal(side[1].bells, 0);
}

#endif
