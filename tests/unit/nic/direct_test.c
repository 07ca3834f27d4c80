/* SPDX-License-Identifier: BSD-2-Clause */

/* One-sided operations without the target's help: which go that way, and by what means. */
#include "direct_fixture.h"

/* --- what goes this way --- */

DIRECT(a_write_is_there_at_once)
{
	post(IBV_WR_RDMA_WRITE, 64, 60);
	assert_memory_equal(side[1].mem + 64, side[0].mem + FROM, 60);
	assert_wc(side[0].cq, 64, IBV_WC_SUCCESS);
	assert_int_equal(host.writes, 1);
	assert_int_equal(direct_ops(), 1);
	nobody_helps();
}

DIRECT(a_read_is_there_at_once)
{
	post(IBV_WR_RDMA_READ, 64, 1000);
	assert_memory_equal(side[1].mem + 64, side[0].mem + FROM, 1000);
	assert_wc(side[0].cq, 64, IBV_WC_SUCCESS);
	assert_int_equal(host.reads, 1);
	nobody_helps();
}

DIRECT(inline_data_is_written_too)
{
	assert_int_equal(post_with(IBV_WR_RDMA_WRITE, 5, 30, IBV_SEND_SIGNALED | IBV_SEND_INLINE,
				   &side[1].mr->ibv), 0);
	assert_memory_equal(side[1].mem + 5, side[0].mem + FROM, 30);
	assert_wc(side[0].cq, 5, IBV_WC_SUCCESS);
	assert_int_equal(direct_ops(), 1);
}

/* Each is finished before the next is posted, and none takes a PSN from those that are sent. */
DIRECT(it_mixes_with_what_is_sent)
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
DIRECT(behind_something_unfinished_it_waits)
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

DIRECT(a_stream_goes_through_the_ring)
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
DIRECT(lone_unsignaled_ones_go_directly)
{
	for (uint32_t i = 0; i < 20; i++) {
		fake_ns += 1000000;
		assert_int_equal(post_with(IBV_WR_RDMA_WRITE, i, 64, 0, &side[1].mr->ibv), 0);
		assert_int_equal(direct_ops(), i + 1);
	}
	assert_no_wc(side[0].cq);
	for (uint32_t i = 0; i < 20; i++)
		assert_int_equal(post_with(IBV_WR_RDMA_WRITE, i, 64, 0, &side[1].mr->ibv), 0);
	assert_int_equal(direct_ops(), 20);
	settle();
}

DIRECT(a_chain_is_a_stream)
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
DIRECT(size_decides)
{
	static const enum ibv_wr_opcode ops[] = { IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ };

	for (int i = 0; i < 2; i++) {
		assert_in_range(largest_direct(ops[i]), 64, 4096);
		vb_nic_asleep(side[1].nic);
		assert_in_range(largest_direct(ops[i]), 65536, MEM_BYTES / 2);
		vb_nic_awake(side[1].nic);
	}
}

DIRECT(a_nic_reaches_itself_by_pointers)
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
	drop_qp(c);
	drop_qp(d);
}

/* --- shared memory --- */

DIRECT(shared_memory_is_mapped_once)
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

DIRECT(another_region_at_the_same_place_is_mapped_anew)
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
DIRECT(what_the_file_does_not_have_goes_otherwise)
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

DIRECT(what_cannot_be_mapped_is_not_tried_again)
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
				      .offset = (uintptr_t)addr, .item = &shares };
	return true;
}

static bool fake_unshare(void *arg, const struct vb_shared *shared)
{
	ends++;
	return true;
}

static const struct vb_host_sharing fake_sharing = {
	.share = fake_share, .unshare = fake_unshare,
};

DIRECT(regions_are_shared_from_registration_to_its_end)
{
	struct vb_nic *nic = side[1].nic;
	unsigned bells;
	struct vb_mr *mr;

	shares = ends = 0;
	nic->host.sharing = &fake_sharing;
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
	nic->host.sharing = NULL;
}

/* The export is the owner's to write: what it says there later does not lead us astray. */
DIRECT(a_mapping_is_not_left)
{
	struct vb_export_key *entry;
	struct vb_mr *mr;

	assert_int_equal(vb_mr_reg(side[1].pd, side[1].mem, 1000, (uintptr_t)side[1].mem,
				   side[1].mr->access, &mr),
			 0);
	share_key(mr->ibv.rkey, FILE_NUMBER, 1, 0, 0);
	entry = &side[1].nic->export->key[vb_key_place(mr->ibv.rkey)];
	assert_int_equal(post_with(IBV_WR_RDMA_WRITE, 0, 1000, IBV_SEND_SIGNALED, &mr->ibv), 0);
	settle();
	assert_wc(side[0].cq, 0, IBV_WC_SUCCESS);
	assert_int_equal(host.maps, 1);
	assert_int_equal(direct_ops(), 1);
	VB_EXPORT_SET(entry->bytes, MEM_BYTES);
	host.refuses = true;
	/* It goes where the owner's own NIC looks at it. */
	assert_int_equal(post_with(IBV_WR_RDMA_WRITE, 999, 2, IBV_SEND_SIGNALED, &mr->ibv), 0);
	settle();
	assert_wc(side[0].cq, 999, IBV_WC_SUCCESS);
	assert_int_equal(post_with(IBV_WR_RDMA_WRITE, 5000, 8000, IBV_SEND_SIGNALED, &mr->ibv), 0);
	settle();
	assert_wc(side[0].cq, 5000, IBV_WC_SUCCESS);
	assert_int_equal(direct_ops(), 1);
	assert_int_equal(host.maps, 1);
	assert_int_equal(vb_mr_dereg(mr), 0);
}

/* What comes on demand is not for others to map, whenever it begins to. */
DIRECT(paged_regions_are_not_shared)
{
	const unsigned access = side[1].mr->access, paged = access | IBV_ACCESS_ON_DEMAND;
	struct vb_mr *mr;

	side[1].nic->host.sharing = &fake_sharing;
	shares = ends = 0;
	assert_int_equal(vb_mr_reg(side[1].pd, side[1].mem, 100, (uintptr_t)side[1].mem, paged,
				   &mr),
			 0);
	assert_int_equal(shares, 0);
	assert_int_equal(vb_mr_rereg(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, access), 0);
	assert_int_equal(shares, 1);
	assert_int_equal(vb_mr_rereg(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, access), 0);
	assert_int_equal(shares, 1);
	assert_int_equal(vb_mr_rereg(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, paged), 0);
	assert_int_equal(ends, 1);
	assert_int_equal(vb_mr_dereg(mr), 0);
	assert_int_equal(shares, 1);
	assert_int_equal(ends, 1);
}

/* Where pages come on demand, the host is told that their protection counts. */
DIRECT(the_host_is_told_of_paging)
{
	struct vb_mr *paged;

	assert_int_equal(vb_mr_reg(side[1].pd, side[1].mem, MEM_BYTES, (uintptr_t)side[1].mem,
				   side[1].mr->access | IBV_ACCESS_ON_DEMAND, &paged),
			 0);
	post(IBV_WR_RDMA_WRITE, 0, 8);
	settle();
	assert_wc(side[0].cq, 0, IBV_WC_SUCCESS);
	assert_int_equal(host.writes, 1);
	assert_int_equal(host.paged, 0);
	assert_int_equal(post_with(IBV_WR_RDMA_WRITE, 0, 8, IBV_SEND_SIGNALED, &paged->ibv), 0);
	settle();
	assert_wc(side[0].cq, 0, IBV_WC_SUCCESS);
	assert_int_equal(host.writes, 2);
	assert_int_equal(host.paged, 1);
	assert_int_equal(vb_mr_dereg(paged), 0);
}
