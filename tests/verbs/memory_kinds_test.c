/* SPDX-License-Identifier: BSD-2-Clause */
#include "lib.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

/*
 * Regions of other memory than what malloc() gives: ibv_alloc_null_mr(3), ibv_reg_dmabuf_mr(3) and
 * ibv_reg_mr_iova(3), of which ibv_reg_mr(3) tells.
 */

enum { PAGE = 4096, FILE_BYTES = 4 * PAGE };

/* --- null --- */

static struct ibv_mr *null_mr(void)
{
	return vt_made(ibv_alloc_null_mr(vt.pd));
}

/* "It has the maximum length and only the lkey is valid, the MR is not exposed as an rkey." */
vt_test(a_null_region_is_as_long_as_can_be)
{
	struct ibv_mr *mr = null_mr();

	assert_ptr_equal(mr->pd, vt.pd);
	assert_ptr_equal(mr->context, vt.ctx);
	assert_int_equal(mr->length, SIZE_MAX);
	assert_int_equal(ibv_dealloc_pd(vt.pd), EBUSY);
	assert_int_equal(ibv_dereg_mr(mr), 0);
}

/* "always returns 0 on read", at any address, between other data. */
vt_test(zeros_are_read_from_it)
{
	struct ibv_mr *mr = null_mr();

	for (unsigned i = 0; i < VT_TYPES; i++) {
		struct vt_options opt = { .type = vt_types[i] };
		size_t grh = vt_types[i] == IBV_QPT_UD ? sizeof(struct ibv_grh) : 0;
		struct vt_pair p;
		struct ibv_sge sge[3];
		struct vt_wr w;

		vt_pair_open(&p, &opt);
		vt_fill(p.a.buf, 300, 1);
		memset(p.b.buf, 0xee, p.b.bytes);
		vt_recv(&p.b, 2);
		vt_wr(&w, IBV_WR_SEND, &p.a, &p.b, 0);
		sge[0] = (struct ibv_sge){ (uintptr_t)p.a.buf, 100, p.a.mr->lkey };
		sge[1] = (struct ibv_sge){ UINT64_MAX - 500, 500, mr->lkey };
		sge[2] = (struct ibv_sge){ (uintptr_t)p.a.buf, 300, p.a.mr->lkey };
		w.wr.sg_list = sge;
		w.wr.num_sge = 3;
		assert_int_equal(ibv_post_send(p.a.qp, &w.wr, &(struct ibv_send_wr *){ NULL }), 0);
		vt_expect(p.a.cq, 1, IBV_WC_SUCCESS);
		vt_expect(p.b.cq, 2, IBV_WC_SUCCESS);
		assert_true(vt_is_filled(p.b.buf + grh, 100, 1));
		assert_true(vt_is_octet(p.b.buf + grh + 100, 500, 0));
		assert_true(vt_is_filled(p.b.buf + grh + 600, 300, 1));
		assert_true(vt_is_octet(p.b.buf + grh + 900, 64, 0xee));
		vt_pair_close(&p);
	}
	assert_int_equal(ibv_dereg_mr(mr), 0);
}

/* "discards all data written to it", what is around it arrives; and it still reads as zeros. */
vt_pair_test(what_is_written_to_it_vanishes)
{
	struct ibv_mr *mr = null_mr();
	struct ibv_sge sge[3];
	struct ibv_recv_wr recv = { .wr_id = 2, .sg_list = sge, .num_sge = 3 }, *bad;
	struct vt_wr w;

	vt_fill(p->a.buf, 5000, 3);
	sge[0] = (struct ibv_sge){ (uintptr_t)p->b.buf, 1000, p->b.mr->lkey };
	sge[1] = (struct ibv_sge){ 0, 2000, mr->lkey };
	sge[2] = (struct ibv_sge){ (uintptr_t)p->b.buf + 3000, 2000, p->b.mr->lkey };
	assert_int_equal(ibv_post_recv(p->b.qp, &recv, &bad), 0);
	vt_do(IBV_WR_SEND, &p->a, &p->b, 5000, IBV_WC_SUCCESS);
	assert_int_equal(vt_expect(p->b.cq, 2, IBV_WC_SUCCESS).byte_len, 5000);
	assert_memory_equal(p->b.buf, p->a.buf, 1000);
	assert_true(vt_is_octet(p->b.buf + 1000, 2000, 0));
	assert_memory_equal(p->b.buf + 3000, p->a.buf + 3000, 2000);
	/* And again by WRITE from it. */
	vt_wr(&w, IBV_WR_RDMA_WRITE, &p->a, &p->b, 3000);
	w.sge = (struct ibv_sge){ 0, 3000, mr->lkey };
	vt_done(&p->a, &w, IBV_WC_SUCCESS);
	assert_true(vt_is_octet(p->b.buf, 3000, 0));
	assert_int_equal(ibv_dereg_mr(mr), 0);
}

vt_pair_test(responses_vanish_in_it_too)
{
	struct ibv_mr *mr = null_mr();
	struct vt_wr w;

	vt_wr(&w, IBV_WR_RDMA_READ, &p->a, &p->b, 50000);
	w.sge = (struct ibv_sge){ 1 << 20, 50000, mr->lkey };
	vt_done(&p->a, &w, IBV_WC_SUCCESS);
	vt_wr(&w, IBV_WR_ATOMIC_FETCH_AND_ADD, &p->a, &p->b, 8);
	w.sge = (struct ibv_sge){ 8, 8, mr->lkey };
	w.wr.wr.atomic.compare_add = 42;
	vt_done(&p->a, &w, IBV_WC_SUCCESS);
	assert_int_equal(*(uint64_t *)p->b.buf, 42);
	assert_int_equal(ibv_dereg_mr(mr), 0);
}

/* Longer than any piece of it that is found at once. */
vt_test(large_messages_come_from_it_and_end_in_it)
{
	struct vt_options opt = { .bytes = 4 << 20 };
	struct ibv_mr *mr = null_mr();
	struct vt_pair p;
	struct vt_wr w;

	vt_pair_open(&p, &opt);
	memset(p.b.buf, 0xee, opt.bytes);
	vt_wr(&w, IBV_WR_RDMA_WRITE, &p.a, &p.b, 4 << 20);
	w.sge = (struct ibv_sge){ 4096, 4 << 20, mr->lkey };
	vt_done(&p.a, &w, IBV_WC_SUCCESS);
	assert_true(vt_is_octet(p.b.buf, opt.bytes, 0));
	vt_wr(&w, IBV_WR_RDMA_READ, &p.a, &p.b, 4 << 20);
	w.sge = (struct ibv_sge){ 4096, 4 << 20, mr->lkey };
	vt_done(&p.a, &w, IBV_WC_SUCCESS);
	vt_pair_close(&p);
	assert_int_equal(ibv_dereg_mr(mr), 0);
}

vt_test(it_has_no_rkey)
{
	struct ibv_mr *mr = null_mr();
	struct vt_pair p;
	struct vt_wr w;

	for (int i = 0; i < 2; i++) {
		vt_pair_open(&p, NULL);
		vt_wr(&w, i ? IBV_WR_RDMA_READ : IBV_WR_RDMA_WRITE, &p.a, &p.b, 64);
		w.wr.wr.rdma.rkey = mr->lkey;
		vt_done(&p.a, &w, IBV_WC_REM_ACCESS_ERR);
		vt_pair_close(&p);
	}
	assert_int_equal(ibv_dereg_mr(mr), 0);
}

/* "The use of ibv_rereg_mr() or ibv_bind_mw() with this MR is invalid." */
vt_test(it_cannot_be_changed)
{
	struct ibv_mr *mr = null_mr();

	assert_int_equal(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0,
				      IBV_ACCESS_LOCAL_WRITE),
			 IBV_REREG_MR_ERR_INPUT);
	assert_int_equal(errno, EINVAL);
	assert_int_equal(ibv_dereg_mr(mr), 0);
}

vt_test(it_belongs_to_its_pd_and_ends)
{
	struct ibv_pd *other = ibv_alloc_pd(vt.ctx);
	struct ibv_mr *mr = ibv_alloc_null_mr(other);
	struct vt_pair p;
	struct vt_wr w;

	for (int i = 0; i < 2; i++) {
		vt_pair_open(&p, NULL);
		vt_wr(&w, IBV_WR_RDMA_WRITE, &p.a, &p.b, 64);
		w.sge.lkey = mr->lkey;
		if (i)
			assert_int_equal(ibv_dereg_mr(mr), 0);
		vt_done(&p.a, &w, IBV_WC_LOC_PROT_ERR);
		vt_pair_close(&p);
		if (!i) {
			assert_int_equal(ibv_dereg_mr(mr), 0);
			mr = null_mr();
		}
	}
	assert_int_equal(ibv_dealloc_pd(other), 0);
}

/* --- dma-buf --- */

static int file_make(uint8_t **mapped)
{
	int fd = memfd_create("test", MFD_CLOEXEC);

	assert_int_equal(ftruncate(fd, FILE_BYTES), 0);
	*mapped = mmap(NULL, FILE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	assert_true(*mapped != MAP_FAILED);
	return fd;
}

/* The octets from `offset` on are seen from `iova` on, and the descriptor is not needed longer. */
vt_pair_test(a_descriptors_memory_is_used)
{
	const uint64_t offset = PAGE + 100, iova = 0x770000064;
	uint8_t *mapped;
	int fd = file_make(&mapped);
	struct ibv_mr *mr =
		vt_made(ibv_reg_dmabuf_mr(vt.pd, offset, 2 * PAGE, iova, fd, VT_ALL_ACCESS));
	struct vt_wr w;

	assert_int_equal(mr->length, 2 * PAGE);
	close(fd);
	vt_fill(p->a.buf, 2 * PAGE, 1);
	vt_wr(&w, IBV_WR_RDMA_WRITE, &p->a, &p->b, 2 * PAGE);
	w.wr.wr.rdma.remote_addr = iova;
	w.wr.wr.rdma.rkey = mr->rkey;
	vt_done(&p->a, &w, IBV_WC_SUCCESS);
	assert_true(vt_is_filled(mapped + offset, 2 * PAGE, 1));
	assert_true(vt_is_octet(mapped, offset, 0));
	assert_true(vt_is_octet(mapped + offset + 2 * PAGE, PAGE - 100, 0));
	/* By its lkey, from what the application wrote there. */
	vt_fill(mapped + offset + 50, 70, 2);
	vt_wr(&w, IBV_WR_RDMA_WRITE, &p->a, &p->b, 70);
	w.sge = (struct ibv_sge){ iova + 50, 70, mr->lkey };
	vt_done(&p->a, &w, IBV_WC_SUCCESS);
	assert_true(vt_is_filled(p->b.buf, 70, 2));
	/* One octet beyond its end. */
	w.sge = (struct ibv_sge){ iova + 2 * PAGE - 69, 70, mr->lkey };
	vt_done(&p->a, &w, IBV_WC_LOC_PROT_ERR);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	munmap(mapped, FILE_BYTES);
}

static unsigned long mappings(void)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	unsigned long lines = 0;
	int c;

	while ((c = fgetc(maps)) != EOF)
		lines += c == '\n';
	fclose(maps);
	return lines;
}

vt_test(what_was_mapped_for_it_is_unmapped)
{
	uint8_t *mapped;
	int fd = file_make(&mapped);
	unsigned long before = mappings();

	for (int i = 0; i < 50; i++) {
		struct ibv_mr *mr = ibv_reg_dmabuf_mr(vt.pd, 0, PAGE, 0, fd, VT_ALL_ACCESS);

		assert_non_null(mr);
		assert_int_equal(ibv_dereg_mr(mr), 0);
	}
	assert_true(mappings() < before + 25);
	close(fd);
	munmap(mapped, FILE_BYTES);
}

vt_test(what_cannot_be_a_dmabuf_is_refused)
{
	uint8_t *mapped;
	int file = file_make(&mapped), pipes[2];
	char path[64];
	int read_only;

	assert_int_equal(pipe(pipes), 0);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", file);
	read_only = open(path, O_RDONLY | O_CLOEXEC);
	assert_true(read_only >= 0);
	const struct {
		uint64_t offset, bytes, iova;
		int fd, access, err;
	} rows[] = {
		{ 0, PAGE, 0, file, IBV_ACCESS_LOCAL_WRITE, 0 },
		{ 0, PAGE, 0, file, VT_ALL_ACCESS | IBV_ACCESS_RELAXED_ORDERING, 0 },
		{ PAGE, FILE_BYTES - PAGE, 0, file, 0, 0 },
		{ 0, PAGE, 0, read_only, IBV_ACCESS_REMOTE_READ, 0 },
		{ 0, PAGE, 0, -1, 0, EBADF },
		{ 0, PAGE, 0, 9999, 0, EBADF },
		{ 0, PAGE, 0, pipes[0], 0, EINVAL },
		/* "It must have the same page offset as offset." */
		{ 100, PAGE, 0, file, 0, EINVAL },
		{ 0, PAGE, 100, file, 0, EINVAL },
		{ 100, PAGE, PAGE + 100, file, 0, 0 },
		{ 0, 0, 0, file, 0, EINVAL },
		{ 0, FILE_BYTES + 1, 0, file, 0, EINVAL },
		{ FILE_BYTES, 1, 0, file, 0, EINVAL },
		{ UINT64_MAX - PAGE + 1, PAGE, 0, file, 0, EINVAL },
		{ 0, PAGE, UINT64_MAX - PAGE + 1, file, 0, EINVAL },
		/* "except that only the following flags are supported" */
		{ 0, PAGE, 0, file, IBV_ACCESS_MW_BIND, EINVAL },
		{ 0, PAGE, 0, file, IBV_ACCESS_ZERO_BASED, EINVAL },
		{ 0, PAGE, 0, file, IBV_ACCESS_ON_DEMAND, EINVAL },
		{ 0, PAGE, 0, file, IBV_ACCESS_HUGETLB, EINVAL },
		{ 0, PAGE, 0, file, IBV_ACCESS_REMOTE_WRITE, EINVAL },
		{ 0, PAGE, 0, file, IBV_ACCESS_REMOTE_ATOMIC, EINVAL },
		{ 0, PAGE, 0, read_only, IBV_ACCESS_LOCAL_WRITE, EOPNOTSUPP },
	};

	for (unsigned i = 0; i < VT_COUNT(rows); i++) {
		struct ibv_mr *mr;

		errno = 0;
		mr = ibv_reg_dmabuf_mr(vt.pd, rows[i].offset, rows[i].bytes, rows[i].iova,
				       rows[i].fd, rows[i].access);
		assert_int_equal(mr ? 0 : errno, rows[i].err);
		if (!mr)
			continue;
		assert_int_equal(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, 0),
				 IBV_REREG_MR_ERR_INPUT);
		assert_int_equal(errno, EOPNOTSUPP);
		assert_int_equal(ibv_dereg_mr(mr), 0);
	}
	close(read_only);
	close(pipes[0]);
	close(pipes[1]);
	close(file);
	munmap(mapped, FILE_BYTES);
}

/* A file that becomes shorter takes its pages along: an error, and no crash. */
vt_pair_test(memory_that_a_file_loses_fails_the_request)
{
	uint8_t *mapped;
	int fd = file_make(&mapped);
	struct ibv_mr *mr = vt_made(ibv_reg_dmabuf_mr(vt.pd, 0, FILE_BYTES, 0, fd, VT_ALL_ACCESS));
	struct vt_wr w;

	vt_faults_to_library();
	assert_int_equal(ftruncate(fd, PAGE), 0);
	vt_wr(&w, IBV_WR_RDMA_WRITE, &p->a, &p->b, 64);
	w.sge = (struct ibv_sge){ 2 * PAGE, 64, mr->lkey };
	vt_done(&p->a, &w, IBV_WC_LOC_PROT_ERR);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	close(fd);
	munmap(mapped, FILE_BYTES);
}

/* --- addresses --- */

/* "The offset in the memory region is computed as 'addr + (iova - hca_va)'", in both functions. */
vt_pair_test(a_region_is_seen_where_it_is_said_to_be)
{
	for (int i = 0; i < 3; i++) {
		uint64_t iova = i ? 0x500000200 : 0;
		struct ibv_mr *mr =
			i == 2 ? ibv_reg_mr_iova2(vt.pd, p->b.buf + 512, 256, iova, VT_ALL_ACCESS)
			       : ibv_reg_mr_iova(vt.pd, p->b.buf + 512, 256, iova, VT_ALL_ACCESS);
		struct vt_wr w;

		assert_non_null(mr);
		vt_fill(p->a.buf, 200, i + 1);
		vt_wr(&w, IBV_WR_RDMA_WRITE, &p->a, &p->b, 200);
		w.wr.wr.rdma.remote_addr = iova + 56;
		w.wr.wr.rdma.rkey = mr->rkey;
		vt_done(&p->a, &w, IBV_WC_SUCCESS);
		assert_true(vt_is_filled(p->b.buf + 512 + 56, 200, i + 1));
		assert_int_equal(ibv_dereg_mr(mr), 0);
	}
}
