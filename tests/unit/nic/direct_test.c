/* SPDX-License-Identifier: BSD-2-Clause */

/* One-sided operations without the target's help: which go that way, and what ends that. */

#include <pthread.h>

#include "lanes_fixture.h"

enum { FILE_NUMBER = 7, FROM = 100000 };

static struct vb_qp *a, *b; /* of side 0, of side 1 */

/* What the host does, and is told to do. */
static struct {
	unsigned writes, reads, maps, unmaps;
	bool refuses;	     /* no way into the peer */
	bool refuses_map;
	void (*meanwhile)(void); /* called within an access */
} host;

static void move(void *to, const void *from, size_t bytes)
{
	memcpy(to, from, bytes);
}

static bool fake_write(void *arg, struct vb_peer *peer, uint64_t address, const struct iovec *iov,
		       unsigned count)
{
	host.writes++;
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
		      unsigned count)
{
	host.reads++;
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

static int direct_begin(void **state)
{
	lanes_begin(state);
	memset(&host, 0, sizeof(host));
	for (unsigned i = 0; i < sides; i++) {
		side[i].nic->host.vm_write = fake_write;
		side[i].nic->host.vm_read = fake_read;
		side[i].nic->host.map = fake_map;
		side[i].nic->host.unmap = fake_unmap;
	}
	a = qp_make(&side[0], IBV_QPT_RC);
	b = qp_make(&side[1], IBV_QPT_RC);
	qp_connect(a, b);
	for (unsigned i = 0; i < MEM_BYTES; i++) {
		side[0].mem[i] = (uint8_t)(i * 7 + i / 251);
		side[1].mem[i] = (uint8_t)(i * 5 + i / 241);
	}
	return 0;
}

static int direct_end(void **state)
{
	qp_drop(a);
	qp_drop(b);
	return lanes_end(state);
}

#define DIRECT(name) cmocka_unit_test_setup_teardown(name, direct_begin, direct_end)

static uint64_t direct_ops(void)
{
	return stat_of(&side[0], VB_STAT_DIRECT_OPS);
}

/* From FROM of ours to `to` of theirs, or the other way. */
static int post_with(enum ibv_wr_opcode op, uint32_t to, uint32_t bytes, unsigned flags,
		     struct ibv_mr *remote)
{
	struct ibv_sge sge = sge_of(&side[0], FROM, bytes);
	struct ibv_send_wr wr = { .wr_id = to, .sg_list = &sge, .num_sge = 1, .opcode = op,
				  .send_flags = flags }, *bad;

	wr.wr.rdma.remote_addr = (uintptr_t)remote->addr + to;
	wr.wr.rdma.rkey = remote->rkey;
	return vb_qp_post_send(a, &wr, &bad);
}

static void post(enum ibv_wr_opcode op, uint32_t to, uint32_t bytes)
{
	assert_int_equal(post_with(op, to, bytes, IBV_SEND_SIGNALED, &side[1].mr->ibv), 0);
}

static uint64_t add_at(uint32_t to, uint64_t add)
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
static void share(int file, uint32_t id, uint16_t skip, uint16_t cut)
{
	struct vb_export_key *entry =
		&side[1].nic->export->key[vb_key_place(side[1].mr->ibv.rkey)];

	VB_EXPORT_SET(entry->shared_offset, (uintptr_t)side[1].mem);
	VB_EXPORT_SET(entry->shared_id, id);
	VB_EXPORT_SET(entry->shared_skip, skip);
	VB_EXPORT_SET(entry->shared_cut, cut);
	VB_EXPORT_SET(entry->shared, file);
}

static void nobody_helps(void)
{
	assert_int_equal(stat_of(&side[1], VB_STAT_RX_LANE_FRAMES), 0);
	assert_int_equal(side[1].bells, 0);
}

/* --- what goes this way --- */

static void a_write_is_there_at_once(void **state)
{
	post(IBV_WR_RDMA_WRITE, 64, 60);
	assert_memory_equal(side[1].mem + 64, side[0].mem + FROM, 60);
	assert_wc(side[0].cq, 64, IBV_WC_SUCCESS);
	assert_int_equal(host.writes, 1);
	assert_int_equal(direct_ops(), 1);
	nobody_helps();
}

static void a_read_is_there_at_once(void **state)
{
	post(IBV_WR_RDMA_READ, 64, 1000);
	assert_memory_equal(side[1].mem + 64, side[0].mem + FROM, 1000);
	assert_wc(side[0].cq, 64, IBV_WC_SUCCESS);
	assert_int_equal(host.reads, 1);
	nobody_helps();
}

static void inline_data_is_written_too(void **state)
{
	assert_int_equal(post_with(IBV_WR_RDMA_WRITE, 5, 30, IBV_SEND_SIGNALED | IBV_SEND_INLINE,
				   &side[1].mr->ibv), 0);
	assert_memory_equal(side[1].mem + 5, side[0].mem + FROM, 30);
	assert_wc(side[0].cq, 5, IBV_WC_SUCCESS);
	assert_int_equal(direct_ops(), 1);
}

/* Each is finished before the next is posted, and none takes a PSN from those that are sent. */
static void it_mixes_with_what_is_sent(void **state)
{
	for (uint32_t i = 0; i < 300; i++) {
		qp_recv(&side[1], b, i, 8192, 64);
		assert_int_equal(qp_send(&side[0], a, i, 64), 0);
		settle();
		assert_wc(side[0].cq, i, IBV_WC_SUCCESS);
		assert_wc(side[1].cq, i, IBV_WC_SUCCESS);
		post(IBV_WR_RDMA_WRITE, i, 8);
		assert_wc(side[0].cq, i, IBV_WC_SUCCESS);
		assert_memory_equal(side[1].mem + i, side[0].mem + FROM, 8);
	}
	assert_int_equal(direct_ops(), 300);
}

/* The order of a queue is kept: what is behind something unfinished takes the same way. */
static void behind_something_unfinished_it_waits(void **state)
{
	qp_recv(&side[1], b, 1, 8192, 64);
	assert_int_equal(qp_send(&side[0], a, 2, 64), 0);
	post(IBV_WR_RDMA_WRITE, 3, 8);
	assert_int_equal(direct_ops(), 0);
	assert_no_wc(side[0].cq);
	settle();
	assert_wc(side[0].cq, 2, IBV_WC_SUCCESS);
	assert_wc(side[0].cq, 3, IBV_WC_SUCCESS);
	assert_memory_equal(side[1].mem + 3, side[0].mem + FROM, 8);
	assert_wc(side[1].cq, 1, IBV_WC_SUCCESS);
}

static void a_stream_goes_through_the_ring(void **state)
{
	for (uint32_t i = 0; i < 20; i++)
		post(IBV_WR_RDMA_WRITE, i, 64);
	/* The first ones could not know. */
	assert_in_range(direct_ops(), 1, 2);
	settle();
	for (uint32_t i = 0; i < 20; i++)
		assert_wc(side[0].cq, i, IBV_WC_SUCCESS);
}

/* Nobody polls for them, so only time tells whether they are a stream. */
static void lone_unsignaled_ones_go_directly(void **state)
{
	for (uint32_t i = 0; i < 20; i++) {
		lanes_now_ns += 1000000;
		assert_int_equal(post_with(IBV_WR_RDMA_WRITE, i, 64, 0, &side[1].mr->ibv), 0);
		assert_int_equal(direct_ops(), i + 1);
	}
	assert_no_wc(side[0].cq);
	for (uint32_t i = 0; i < 20; i++)
		assert_int_equal(post_with(IBV_WR_RDMA_WRITE, i, 64, 0, &side[1].mr->ibv), 0);
	assert_int_equal(direct_ops(), 20);
	settle();
}

static void a_chain_is_a_stream(void **state)
{
	struct ibv_sge sge = sge_of(&side[0], FROM, 64);
	struct ibv_send_wr wr[2], *bad;

	for (int i = 0; i < 2; i++) {
		wr[i] = (struct ibv_send_wr){ .wr_id = i, .sg_list = &sge, .num_sge = 1,
					      .opcode = IBV_WR_RDMA_WRITE,
					      .send_flags = IBV_SEND_SIGNALED };
		wr[i].wr.rdma.remote_addr = (uintptr_t)side[1].mem;
		wr[i].wr.rdma.rkey = side[1].mr->ibv.rkey;
	}
	wr[0].next = &wr[1];
	assert_int_equal(vb_qp_post_send(a, wr, &bad), 0);
	assert_int_equal(direct_ops(), 0);
	settle();
	assert_wc(side[0].cq, 0, IBV_WC_SUCCESS);
	assert_wc(side[0].cq, 1, IBV_WC_SUCCESS);
}

/* The largest that goes directly. */
static uint32_t largest_direct(enum ibv_wr_opcode op)
{
	uint32_t largest = 0;

	for (uint32_t bytes = 1; bytes <= MEM_BYTES / 2; bytes *= 2) {
		uint64_t before = direct_ops();

		post(op, 0, bytes);
		settle();
		assert_wc(side[0].cq, 0, IBV_WC_SUCCESS);
		assert_memory_equal(side[1].mem, side[0].mem + FROM, bytes);
		if (direct_ops() > before)
			largest = bytes;
	}
	return largest;
}

/* The larger, the more the help of somebody who is awake is worth. */
static void size_decides(void **state)
{
	static const enum ibv_wr_opcode ops[] = { IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ };

	for (int i = 0; i < 2; i++) {
		assert_in_range(largest_direct(ops[i]), 64, 4096);
		vb_nic_asleep(side[1].nic);
		assert_in_range(largest_direct(ops[i]), 65536, MEM_BYTES / 2);
		vb_nic_awake(side[1].nic);
	}
}

static void a_nic_reaches_itself_by_pointers(void **state)
{
	struct vb_qp *c = qp_make(&side[0], IBV_QPT_RC), *d = qp_make(&side[0], IBV_QPT_RC);
	struct ibv_sge sge = sge_of(&side[0], 0, 5000);
	struct ibv_send_wr wr = { .wr_id = 9, .sg_list = &sge, .num_sge = 1,
				  .opcode = IBV_WR_RDMA_WRITE,
				  .send_flags = IBV_SEND_SIGNALED }, *bad;

	qp_connect(c, d);
	wr.wr.rdma.remote_addr = (uintptr_t)side[0].mem + 50000;
	wr.wr.rdma.rkey = side[0].mr->ibv.rkey;
	assert_int_equal(vb_qp_post_send(c, &wr, &bad), 0);
	assert_wc(side[0].cq, 9, IBV_WC_SUCCESS);
	assert_memory_equal(side[0].mem + 50000, side[0].mem, 5000);
	assert_int_equal(direct_ops(), 1);
	assert_int_equal(host.writes, 0);
	qp_drop(c);
	qp_drop(d);
}

/* --- shared memory --- */

static void shared_memory_is_mapped_once(void **state)
{
	uint64_t word = 40;

	share(FILE_NUMBER, 1, 0, 0);
	memcpy(side[1].mem + 800, &word, 8);
	/* A copy needs nobody, so a stream may go this way as well. */
	for (uint32_t i = 0; i < 20; i++)
		post(i % 2 ? IBV_WR_RDMA_READ : IBV_WR_RDMA_WRITE, 64 + i, 700);
	for (uint32_t i = 0; i < 20; i++)
		assert_wc(side[0].cq, 64 + i, IBV_WC_SUCCESS);
	assert_memory_equal(side[1].mem + 83, side[0].mem + FROM, 700);
	memcpy(side[1].mem + 800, &word, 8);
	assert_int_equal(add_at(800, 2), 40);
	assert_int_equal(add_at(800, 2), 42);
	assert_int_equal(host.maps, 1);
	assert_int_equal(host.writes + host.reads, 0);
	assert_int_equal(direct_ops(), 22);
	nobody_helps();
}

static void another_region_at_the_same_place_is_mapped_anew(void **state)
{
	share(FILE_NUMBER, 1, 0, 0);
	post(IBV_WR_RDMA_WRITE, 0, 8);
	share(FILE_NUMBER, 2, 0, 0);
	post(IBV_WR_RDMA_WRITE, 1, 8);
	assert_wc(side[0].cq, 0, IBV_WC_SUCCESS);
	assert_wc(side[0].cq, 1, IBV_WC_SUCCESS);
	assert_int_equal(host.maps, 2);
	assert_int_equal(host.unmaps, 1);
}

/* The pages at the ends of a region need not be in the file. */
static void what_the_file_does_not_have_goes_otherwise(void **state)
{
	static const struct {
		uint32_t to, bytes;
		bool mapped;
	} rows[] = {
		{ 99, 8, false }, { 100, 8, true }, { MEM_BYTES - 58, 8, true },
		{ MEM_BYTES - 57, 8, false }, { 90, 10, false }, { 80, 40, false },
	};

	share(FILE_NUMBER, 1, 100, 50);
	for (unsigned i = 0; i < VB_ARRAY_LEN(rows); i++) {
		host.writes = 0;
		post(IBV_WR_RDMA_WRITE, rows[i].to, rows[i].bytes);
		assert_int_equal(host.writes, !rows[i].mapped);
		assert_wc(side[0].cq, rows[i].to, IBV_WC_SUCCESS);
		assert_memory_equal(side[1].mem + rows[i].to, side[0].mem + FROM, rows[i].bytes);
	}
	assert_int_equal(host.maps, 1);
}

static void what_cannot_be_mapped_is_not_tried_again(void **state)
{
	uint64_t word = 7;

	host.refuses_map = true;
	share(FILE_NUMBER, 1, 0, 0);
	memcpy(side[1].mem + 8, &word, 8);
	for (uint32_t i = 0; i < 5; i++) {
		post(IBV_WR_RDMA_WRITE, 64 + i, 8);
		assert_wc(side[0].cq, 64 + i, IBV_WC_SUCCESS);
	}
	assert_int_equal(add_at(8, 1), 7);
	assert_int_equal(host.maps, 1);
	assert_int_equal(host.writes, 5);
}

static unsigned shares, ends;

static bool fake_share(void *arg, void *addr, size_t bytes, struct vb_shared *shared)
{
	*shared = (struct vb_shared){ .file = FILE_NUMBER, .id = ++shares,
				      .offset = (uintptr_t)addr };
	return true;
}

static bool fake_unshare(void *arg, const struct vb_shared *shared)
{
	ends++;
	return true;
}

static void regions_are_shared_from_registration_to_its_end(void **state)
{
	struct vb_nic *nic = side[1].nic;
	unsigned bells;
	struct vb_mr *mr;

	shares = ends = 0;
	nic->host.share = fake_share;
	nic->host.unshare = fake_unshare;
	/* What others have no right to is not worth it. */
	assert_int_equal(vb_mr_reg(side[1].pd, side[1].mem, 4096, (uintptr_t)side[1].mem,
				   IBV_ACCESS_LOCAL_WRITE, &mr), 0);
	assert_int_equal(vb_mr_dereg(mr), 0);
	assert_int_equal(shares + ends, 0);
	assert_int_equal(vb_mr_reg(side[1].pd, side[1].mem, 4096, (uintptr_t)side[1].mem,
				   IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE, &mr), 0);
	for (uint32_t i = 0; i < 3; i++) {
		assert_int_equal(post_with(IBV_WR_RDMA_WRITE, i, 8, IBV_SEND_SIGNALED, &mr->ibv),
				 0);
		assert_wc(side[0].cq, i, IBV_WC_SUCCESS);
		assert_memory_equal((uint8_t *)mr->ibv.addr + i, side[0].mem + FROM, 8);
		assert_int_equal(host.maps, i < 2 ? 1 : 2);
		if (i == 1)
			assert_int_equal(vb_mr_rereg(mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL,
						     side[1].mem + 8192, 4096, 0), 0);
	}
	assert_int_equal(shares, 2);
	assert_int_equal(ends, 1);
	assert_int_equal(host.unmaps, 1);
	/* Peers hear of it, and let go of the memory. */
	bells = side[0].bells;
	assert_int_equal(vb_mr_dereg(mr), 0);
	assert_int_equal(ends, 2);
	assert_true(side[0].bells > bells);
	assert_int_equal(host.unmaps, 1);
	vb_direct_sweep(side[0].nic);
	assert_int_equal(host.unmaps, 2);
	assert_int_equal(host.writes, 0);
	nic->host.share = NULL;
}

/* --- what does not fit is judged by its owner --- */

static void where_there_is_no_way_in_the_ring_serves(void **state)
{
	host.refuses = true;
	post(IBV_WR_RDMA_WRITE, 64, 60);
	settle();
	assert_wc(side[0].cq, 64, IBV_WC_SUCCESS);
	post(IBV_WR_RDMA_READ, 64, 1000);
	settle();
	assert_wc(side[0].cq, 64, IBV_WC_SUCCESS);
	assert_memory_equal(side[1].mem + 64, side[0].mem + FROM, 60);
	assert_int_equal(host.writes + host.reads, 2);
	assert_int_equal(direct_ops(), 0);
}

static void expect_verdict(enum ibv_wr_opcode op, uint32_t to, uint32_t bytes,
			   struct ibv_mr *remote, enum ibv_wc_status status)
{
	assert_int_equal(post_with(op, to, bytes, IBV_SEND_SIGNALED, remote), 0);
	settle();
	assert_wc(side[0].cq, to, status);
	assert_int_equal(host.writes + host.reads, 0);
	assert_int_equal(direct_ops(), 0);
}

static void a_wrong_key_is_refused(void **state)
{
	struct ibv_mr wrong = side[1].mr->ibv;

	wrong.rkey ^= 1;
	expect_verdict(IBV_WR_RDMA_WRITE, 0, 8, &wrong, IBV_WC_REM_ACCESS_ERR);
}

static void what_is_out_of_bounds_is_refused(void **state)
{
	expect_verdict(IBV_WR_RDMA_READ, MEM_BYTES - 7, 8, &side[1].mr->ibv,
		       IBV_WC_REM_ACCESS_ERR);
}

static void another_pd_s_key_is_refused(void **state)
{
	struct vb_pd *pd;
	struct vb_mr *mr;

	assert_int_equal(vb_pd_create(side[1].ctx, &pd), 0);
	assert_int_equal(vb_mr_reg(pd, side[1].mem, 4096, (uintptr_t)side[1].mem,
				   IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE, &mr), 0);
	expect_verdict(IBV_WR_RDMA_WRITE, 0, 8, &mr->ibv, IBV_WC_REM_ACCESS_ERR);
	assert_int_equal(vb_mr_dereg(mr), 0);
	assert_int_equal(vb_pd_destroy(pd), 0);
}

static void a_right_that_the_key_lacks_is_refused(void **state)
{
	struct vb_mr *mr;

	assert_int_equal(vb_mr_reg(side[1].pd, side[1].mem, 4096, (uintptr_t)side[1].mem,
				   IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ, &mr), 0);
	expect_verdict(IBV_WR_RDMA_WRITE, 0, 8, &mr->ibv, IBV_WC_REM_ACCESS_ERR);
	assert_int_equal(vb_mr_dereg(mr), 0);
}

static void change_rights(unsigned access)
{
	struct ibv_qp_attr attr = { .qp_access_flags = access };

	assert_int_equal(vb_qp_modify(b, &attr, IBV_QP_ACCESS_FLAGS), 0);
}

static void a_right_that_the_qp_lost_is_refused(void **state)
{
	change_rights(IBV_ACCESS_REMOTE_READ);
	expect_verdict(IBV_WR_RDMA_WRITE, 0, 8, &side[1].mr->ibv, IBV_WC_REM_ACCESS_ERR);
}

static void a_deregistered_region_is_refused(void **state)
{
	struct ibv_mr remote;
	struct vb_mr *mr;

	assert_int_equal(vb_mr_reg(side[1].pd, side[1].mem, 4096, (uintptr_t)side[1].mem,
				   IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE, &mr), 0);
	remote = mr->ibv;
	assert_int_equal(vb_mr_dereg(mr), 0);
	expect_verdict(IBV_WR_RDMA_WRITE, 0, 8, &remote, IBV_WC_REM_ACCESS_ERR);
}

static void to_state(struct vb_qp *qp, enum ibv_qp_state state)
{
	struct ibv_qp_attr attr = { .qp_state = state };

	assert_int_equal(vb_qp_modify(qp, &attr, IBV_QP_STATE), 0);
}

/* A QP that is no more, or not yet, answers nothing. */
static void a_qp_that_is_not_ready_is_left_alone(void **state)
{
	static const enum ibv_qp_state states[] = { IBV_QPS_ERR, IBV_QPS_RESET };

	for (int i = 0; i < 2; i++) {
		to_state(b, states[i]);
		post(IBV_WR_RDMA_WRITE, i, 8);
		settle();
		assert_no_wc(side[0].cq);
	}
	assert_int_equal(host.writes, 0);
	to_state(a, IBV_QPS_ERR);
	assert_wc(side[0].cq, 0, IBV_WC_WR_FLUSH_ERR);
	assert_wc(side[0].cq, 1, IBV_WC_WR_FLUSH_ERR);
}

/* IBA 11.6.3.1: the first request in RTR is an event, so its owner must see it. */
static void the_first_request_in_rtr_is_not_hidden(void **state)
{
	unsigned events = side[1].events;

	to_state(b, IBV_QPS_RESET);
	to_state(a, IBV_QPS_RESET);
	assert_int_equal(qp_step(b, IBV_QPS_INIT, 0), 0);
	assert_int_equal(qp_step(b, IBV_QPS_RTR, a->ibv.qp.qp_num), 0);
	qp_ready(a, b->ibv.qp.qp_num);
	for (uint32_t i = 0; i < 2; i++) {
		post(IBV_WR_RDMA_WRITE, i, 8);
		settle();
		assert_wc(side[0].cq, i, IBV_WC_SUCCESS);
		assert_int_equal(side[1].events, events + 1);
		assert_int_equal(direct_ops(), i);
	}
}

static void without_resources_there_is_no_read(void **state)
{
	struct ibv_qp_attr attr = { .max_dest_rd_atomic = 0 };

	to_state(b, IBV_QPS_RESET);
	to_state(a, IBV_QPS_RESET);
	qp_connect(a, b);
	to_state(b, IBV_QPS_SQD);
	assert_int_equal(vb_qp_modify(b, &attr, IBV_QP_MAX_DEST_RD_ATOMIC), 0);
	expect_verdict(IBV_WR_RDMA_READ, 0, 8, &side[1].mr->ibv, IBV_WC_REM_INV_REQ_ERR);
}

/* Nobody but the QP that it is connected to. */
static void a_stranger_is_refused(void **state)
{
	struct vb_qp *c = qp_make(&side[0], IBV_QPT_RC);
	struct ibv_sge sge = sge_of(&side[0], FROM, 8);
	struct ibv_send_wr wr = { .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE,
				  .send_flags = IBV_SEND_SIGNALED }, *bad;

	qp_ready(c, b->ibv.qp.qp_num);
	wr.wr.rdma.remote_addr = (uintptr_t)side[1].mem;
	wr.wr.rdma.rkey = side[1].mr->ibv.rkey;
	assert_int_equal(vb_qp_post_send(c, &wr, &bad), 0);
	assert_int_equal(host.writes, 0);
	qp_drop(c);
}

static void local_memory_must_be_ours_to_change(void **state)
{
	struct ibv_sge sge;
	struct ibv_send_wr wr = { .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_RDMA_READ,
				  .send_flags = IBV_SEND_SIGNALED }, *bad;
	struct vb_mr *mr;

	assert_int_equal(vb_mr_reg(side[0].pd, side[0].mem, 4096, (uintptr_t)side[0].mem, 0, &mr),
			 0);
	sge = (struct ibv_sge){ (uintptr_t)side[0].mem, 8, mr->ibv.lkey };
	wr.wr.rdma.remote_addr = (uintptr_t)side[1].mem;
	wr.wr.rdma.rkey = side[1].mr->ibv.rkey;
	assert_int_equal(vb_qp_post_send(a, &wr, &bad), 0);
	settle();
	assert_wc(side[0].cq, 0, IBV_WC_LOC_PROT_ERR);
	assert_int_equal(host.reads, 0);
	assert_int_equal(vb_mr_dereg(mr), 0);
}

/* --- the end of it --- */

static void nothing_is_written_for_a_peer_that_is_gone(void **state)
{
	side_die(&side[1]);
	vb_peer_gone(vb_peer_find(side[0].nic, side[0].slot, side[1].slot));
	post(IBV_WR_RDMA_WRITE, 0, 8);
	assert_int_equal(host.writes, 0);
	assert_wc(side[0].cq, 0, IBV_WC_RETRY_EXC_ERR);
	side[1].dead = false;
}

static void a_peer_that_is_gone_is_unmapped(void **state)
{
	share(FILE_NUMBER, 1, 0, 0);
	post(IBV_WR_RDMA_WRITE, 0, 8);
	assert_wc(side[0].cq, 0, IBV_WC_SUCCESS);
	vb_peer_gone(vb_peer_find(side[0].nic, side[0].slot, side[1].slot));
	to_state(a, IBV_QPS_RESET);
	assert_int_equal(host.maps, 1);
	assert_int_equal(host.unmaps, 1);
}

/* As long as the owner does not watch, it could not wait for us. */
static void an_owner_that_does_not_watch_is_asked(void **state)
{
	struct vb_ring_area *area = side[0].area[1];

	for (unsigned i = 0; i < VB_RING_LANES; i++)
		atomic_store(&area->lane[i].heeds_direct, 0);
	post(IBV_WR_RDMA_WRITE, 0, 8);
	assert_int_equal(host.writes, 0);
	settle();
	assert_wc(side[0].cq, 0, IBV_WC_SUCCESS);
	for (unsigned i = 0; i < VB_RING_LANES; i++)
		atomic_store(&area->lane[i].heeds_direct, 1);
	post(IBV_WR_RDMA_WRITE, 0, 8);
	assert_int_equal(host.writes, 1);
	assert_wc(side[0].cq, 0, IBV_WC_SUCCESS);
}

static _Atomic int step;
static struct vb_mr *ending;

static void *deregister(void *arg)
{
	atomic_store(&step, 1);
	assert_int_equal(vb_mr_dereg(ending), 0);
	atomic_store(&step, 2);
	return NULL;
}

static pthread_t ender;

static void somebody_deregisters(void)
{
	pthread_create(&ender, NULL, deregister, NULL);
	while (!atomic_load(&step))
		;
	for (unsigned i = 0; i < 100; i++) {
		sched_yield();
		assert_int_equal(atomic_load(&step), 1);
	}
}

/* Who comes after a peer that was given up is waited for again. */
static void the_next_peer_is_waited_for(void **state)
{
	struct vb_peer *peer = vb_peer_find(side[1].nic, side[1].slot, side[0].slot);
	struct vb_ring_area *area = side[0].area[1];

	atomic_store(&peer->lane[1].unsettled, 5);
	vb_peer_rx_set(peer, area, side[0].nic->export);
	assert_int_equal(atomic_load(&peer->lane[1].unsettled), 0);
}

/* Time stands still here, so it would wait for ever. */
static void deregistration_waits_for_an_access_under_way(void **state)
{
	atomic_store(&step, 0);
	assert_int_equal(vb_mr_reg(side[1].pd, side[1].mem, 4096, (uintptr_t)side[1].mem,
				   IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE, &ending), 0);
	host.meanwhile = somebody_deregisters;
	assert_int_equal(post_with(IBV_WR_RDMA_WRITE, 0, 8, IBV_SEND_SIGNALED, &ending->ibv), 0);
	pthread_join(ender, NULL);
	assert_int_equal(atomic_load(&step), 2);
	assert_wc(side[0].cq, 0, IBV_WC_SUCCESS);
}

static uint64_t racing_now(void *arg)
{
	return lanes_now_ns += 100000000;
}

/* One that is stopped in the midst of it is waited for once, and not for ever. */
static void a_peer_that_never_ends_is_given_up(void **state)
{
	struct vb_ring_area *area = side[0].area[1];
	uint64_t begin_ns;

	side[1].nic->host.now_ns = racing_now;
	atomic_store(&area->lane[2].direct, 5);
	begin_ns = lanes_now_ns;
	vb_nic_quiesce(side[1].nic);
	assert_in_range(lanes_now_ns - begin_ns, 1000000000, 1300000000);
	begin_ns = lanes_now_ns;
	vb_nic_quiesce(side[1].nic);
	assert_int_equal(lanes_now_ns, begin_ns);
	atomic_store(&area->lane[2].direct, 0);
	side[1].nic->host.now_ns = lanes_now;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		DIRECT(a_write_is_there_at_once),
		DIRECT(a_read_is_there_at_once),
		DIRECT(inline_data_is_written_too),
		DIRECT(it_mixes_with_what_is_sent),
		DIRECT(behind_something_unfinished_it_waits),
		DIRECT(a_stream_goes_through_the_ring),
		DIRECT(lone_unsignaled_ones_go_directly),
		DIRECT(a_chain_is_a_stream),
		DIRECT(size_decides),
		DIRECT(a_nic_reaches_itself_by_pointers),
		DIRECT(shared_memory_is_mapped_once),
		DIRECT(another_region_at_the_same_place_is_mapped_anew),
		DIRECT(what_the_file_does_not_have_goes_otherwise),
		DIRECT(what_cannot_be_mapped_is_not_tried_again),
		DIRECT(regions_are_shared_from_registration_to_its_end),
		DIRECT(where_there_is_no_way_in_the_ring_serves),
		DIRECT(a_wrong_key_is_refused),
		DIRECT(what_is_out_of_bounds_is_refused),
		DIRECT(another_pd_s_key_is_refused),
		DIRECT(a_right_that_the_key_lacks_is_refused),
		DIRECT(a_right_that_the_qp_lost_is_refused),
		DIRECT(a_deregistered_region_is_refused),
		DIRECT(a_qp_that_is_not_ready_is_left_alone),
		DIRECT(the_first_request_in_rtr_is_not_hidden),
		DIRECT(without_resources_there_is_no_read),
		DIRECT(a_stranger_is_refused),
		DIRECT(local_memory_must_be_ours_to_change),
		DIRECT(nothing_is_written_for_a_peer_that_is_gone),
		DIRECT(a_peer_that_is_gone_is_unmapped),
		DIRECT(an_owner_that_does_not_watch_is_asked),
		DIRECT(deregistration_waits_for_an_access_under_way),
		DIRECT(a_peer_that_never_ends_is_given_up),
		DIRECT(the_next_peer_is_waited_for),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
