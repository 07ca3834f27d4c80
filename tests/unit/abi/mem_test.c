/* SPDX-License-Identifier: BSD-2-Clause */
/* Protection domains and memory regions, as ibv_reg_mr(3) and ibv_rereg_mr(3) promise them. */
#include <errno.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "verbs.h"

/* In a child with a NIC of its own: cmocka takes SIGSEGV for itself, and is no application. */
static bool send_from_vanished_memory(void)
{
	int protection = PROT_READ | PROT_WRITE, flags = MAP_PRIVATE | MAP_ANONYMOUS;
	uint8_t *page = mmap(NULL, 4096, protection, flags, -1, 0);
	struct ibv_sge sge = { (uintptr_t)page, 512 };
	struct ibv_send_wr *bad, wr = {
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_SEND,
		.send_flags = IBV_SEND_SIGNALED,
	};
	struct ibv_qp *qp[2];
	struct ibv_mr *mr;
	struct ibv_wc wc;

	verbs_begin(&v);
	verbs_pair(&v, qp);
	mr = ibv_reg_mr(v.pd, page, 4096, IBV_ACCESS_LOCAL_WRITE);
	sge.lkey = mr->lkey;
	munmap(page, 4096);
	if (ibv_post_send(qp[0], &wr, &bad) != 0)
		return false;
	while (ibv_poll_cq(v.cq, 1, &wc) == 0)
		continue;
	return wc.status == IBV_WC_LOC_PROT_ERR;
}

/*
 * The application's bug, and no crash of ours: the work request fails, the process lives. First: it
 * must not have opened the device, see run/memory/sigguard.h.
 */
TEST(memory_that_vanished_fails_the_request)
{
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		alarm(20);
		signal(SIGSEGV, SIG_DFL);
		_exit(send_from_vanished_memory() ? 0 : 1);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

VERBS_TEST(a_pd_in_use_is_busy)
{
	assert_int_equal(ibv_dealloc_pd(v.pd), EBUSY);
}

VERBS_TEST(a_region_is_what_was_asked_for)
{
	assert_ptr_equal(v.mr->addr, v.buffer);
	assert_int_equal(v.mr->length, VERBS_BUFFER_BYTES);
	assert_ptr_equal(v.mr->pd, v.pd);
	assert_ptr_equal(v.mr->context, v.context);
}

/* ibv_reg_mr(3): remote write and remote atomic need local write. */
VERBS_TEST(access_must_make_sense)
{
	static const struct {
		int access;
		int error;
	} table[] = {
		{ 0, 0 },
		{ IBV_ACCESS_REMOTE_READ, 0 },
		{ IBV_ACCESS_REMOTE_WRITE, EINVAL },
		{ IBV_ACCESS_REMOTE_ATOMIC, EINVAL },
		{ IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE, 0 },
		{ IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND, 0 },
		{ IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_ZERO_BASED, 0 },
		{ IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_ON_DEMAND, 0 },
		{ IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_HUGETLB, 0 },
		{ IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_RELAXED_ORDERING, 0 },
		{ IBV_ACCESS_LOCAL_WRITE | (1 << 15), EINVAL },
	};

	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		struct ibv_mr *mr;

		errno = 0;
		mr = ibv_reg_mr(v.pd, v.buffer, 64, table[i].access);
		assert_int_equal(mr ? 0 : errno, table[i].error);
		if (mr)
			assert_int_equal(ibv_dereg_mr(mr), 0);
	}
}

VERBS_TEST(memory_must_be_there)
{
	char *page = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct ibv_mr *mr;

	assert_true(page != MAP_FAILED);
	errno = 0;
	assert_null(ibv_reg_mr(v.pd, page, 4096, IBV_ACCESS_LOCAL_WRITE));
	assert_int_equal(errno, EFAULT);
	mr = ibv_reg_mr(v.pd, page, 4096, IBV_ACCESS_REMOTE_READ);
	assert_non_null(mr);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	munmap(page, 4096);
	errno = 0;
	assert_null(ibv_reg_mr(v.pd, page, 4096, 0));
	assert_int_equal(errno, EFAULT);
}

/* The remote side sees the region at iova, wherever it is. */
VERBS_TEST(a_region_has_the_address_that_it_is_given)
{
	struct ibv_mr *mr = ibv_reg_mr_iova(v.pd, v.buffer + 512, 64, 0x123456000,
					    IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	struct ibv_sge sge = { (uintptr_t)v.buffer, 4, v.mr->lkey };
	struct ibv_send_wr *bad, wr = {
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_RDMA_WRITE,
		.send_flags = IBV_SEND_SIGNALED,
	};
	struct ibv_qp *qp[2];

	assert_non_null(mr);
	verbs_pair(&v, qp);
	memcpy(v.buffer, "iova", 4);
	wr.wr.rdma.remote_addr = 0x123456000 + 8;
	wr.wr.rdma.rkey = mr->rkey;
	assert_int_equal(ibv_post_send(qp[0], &wr, &bad), 0);
	verbs_wait(v.cq, IBV_WC_SUCCESS);
	assert_memory_equal(v.buffer + 512 + 8, "iova", 4);
	/* Its real address is none of its own any more. */
	wr.wr.rdma.remote_addr = (uintptr_t)v.buffer + 512;
	assert_int_equal(ibv_post_send(qp[0], &wr, &bad), 0);
	verbs_wait(v.cq, IBV_WC_REM_ACCESS_ERR);
	ibv_destroy_qp(qp[0]);
	ibv_destroy_qp(qp[1]);
	ibv_dereg_mr(mr);
}

/* ibv_rereg_mr(3), RETURN VALUE: ERR_INPUT means that the old region is still valid. */
VERBS_TEST(a_refused_change_changes_nothing)
{
	struct ibv_mr *mr = ibv_reg_mr(v.pd, v.buffer, 64, IBV_ACCESS_LOCAL_WRITE), before;

	assert_non_null(mr);
	before = *mr;
	errno = 0;
	assert_int_equal(ibv_rereg_mr(mr, 1 << 10, NULL, NULL, 0, 0), IBV_REREG_MR_ERR_INPUT);
	assert_int_equal(errno, EINVAL);
	assert_int_equal(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_PD, NULL, NULL, 0, 0),
			 IBV_REREG_MR_ERR_INPUT);
	assert_int_equal(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0,
				      IBV_ACCESS_REMOTE_WRITE),
			 IBV_REREG_MR_ERR_INPUT);
	assert_memory_equal(mr, &before, sizeof(before));
	assert_int_equal(ibv_dereg_mr(mr), 0);
}

VERBS_TEST(a_region_can_change_all_it_is)
{
	struct ibv_mr *mr = ibv_reg_mr(v.pd, v.buffer, 64, IBV_ACCESS_LOCAL_WRITE);
	struct ibv_pd *pd = ibv_alloc_pd(v.context);

	assert_int_equal(ibv_rereg_mr(mr,
				      IBV_REREG_MR_CHANGE_PD | IBV_REREG_MR_CHANGE_ACCESS |
					      IBV_REREG_MR_CHANGE_TRANSLATION,
				      pd, v.buffer + 128, 32,
				      IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE),
			 0);
	assert_ptr_equal(mr->addr, v.buffer + 128);
	assert_int_equal(mr->length, 32);
	assert_ptr_equal(mr->pd, pd);
	assert_int_equal(ibv_dealloc_pd(pd), EBUSY);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	assert_int_equal(ibv_dealloc_pd(pd), 0);
}
