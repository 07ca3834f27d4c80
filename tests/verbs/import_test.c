/* SPDX-License-Identifier: BSD-2-Clause */
#include "peer.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

/*
 * ibv_import_device(3), ibv_import_pd(3), ibv_import_mr(3) and ibv_import_dm(3), within a process
 * and between two.
 */

/* "The cmd_fd ... must be dup'd ... before being passed to ibv_import_device()." */
static struct ibv_context *import_again(struct ibv_context *context)
{
	return vt_made(ibv_import_device(dup(context->cmd_fd)));
}

/* What is opened in between belongs to that context and PD. */
static struct vt enter(struct ibv_context *context, struct ibv_pd *pd)
{
	struct vt before = vt;

	vt.ctx = context;
	vt.pd = pd;
	return before;
}

static void leave(const struct vt *before)
{
	vt = *before;
}

/* --- the device --- */

vt_test(an_imported_context_is_one)
{
	int fd = dup(vt.ctx->cmd_fd);
	struct ibv_context *context = vt_made(ibv_import_device(fd));
	struct ibv_device_attr attr;
	struct ibv_pd *pd;

	assert_ptr_not_equal(context, vt.ctx);
	assert_ptr_equal(context->device, vt.ctx->device);
	assert_int_equal(context->cmd_fd, fd);
	assert_int_not_equal(context->async_fd, vt.ctx->async_fd);
	assert_int_equal(ibv_query_device(context, &attr), 0);
	pd = vt_made(ibv_alloc_pd(context));
	assert_int_equal(ibv_dealloc_pd(pd), 0);
	assert_int_equal(ibv_close_device(context), 0);
	/* "This call may cleanup whatever is needed ... including closing the command FD." */
	assert_int_equal(fcntl(fd, F_GETFD), -1);
	assert_int_equal(errno, EBADF);
}

vt_test(an_imported_context_can_be_imported)
{
	struct ibv_context *one = import_again(vt.ctx), *other = import_again(one);
	struct ibv_pd *pd = vt_made(ibv_import_pd(other, vt.pd->handle));

	ibv_unimport_pd(pd);
	assert_int_equal(ibv_close_device(one), 0);
	assert_int_equal(ibv_close_device(other), 0);
}

vt_test(other_descriptors_are_refused)
{
	int fds[2];

	vt_refused(EBADF, ibv_import_device(-1));
	assert_int_equal(pipe(fds), 0);
	vt_refused(EINVAL, ibv_import_device(fds[0]));
	vt_refused(EINVAL, ibv_import_device(vt.ctx->async_fd));
	/* It is the caller's still. */
	assert_int_equal(close(fds[0]), 0);
	assert_int_equal(close(fds[1]), 0);
}

/* --- within a process --- */

vt_test(handles_have_to_be_valid)
{
	struct ibv_context *context = import_again(vt.ctx), *other;
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_pd *pd = vt_made(ibv_import_pd(context, vt.pd->handle));
	struct ibv_pd *second = vt_made(ibv_alloc_pd(vt.ctx));
	uint8_t memory[64];
	struct ibv_mr *mr = vt_mr(second, memory, 64, 0);

	assert_int_equal(pd->handle, vt.pd->handle);
	assert_ptr_equal(pd->context, context);
	vt_refused(EINVAL, ibv_import_pd(context, 65535));
	vt_refused(EINVAL, ibv_import_pd(context, UINT32_MAX));
	vt_refused(EINVAL, ibv_import_mr(pd, mr->handle ^ 1));
	/* "in the RDMA context that is associated with the given pd": here, with another PD */
	vt_refused(EINVAL, ibv_import_mr(pd, mr->handle));
	vt_refused(EINVAL, ibv_import_dm(context, 12345));
	/* A context of its own does not have what this one has. */
	other = ibv_open_device(list[0]);
	ibv_free_device_list(list);
	vt_refused(EINVAL, ibv_import_pd(other, vt.pd->handle));
	assert_int_equal(ibv_close_device(other), 0);
	ibv_unimport_pd(pd);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	assert_int_equal(ibv_dealloc_pd(second), 0);
	assert_int_equal(ibv_close_device(context), 0);
}

vt_test(an_imported_region_says_what_it_is)
{
	struct ibv_context *context = import_again(vt.ctx);
	struct ibv_pd *pd = ibv_import_pd(context, vt.pd->handle);
	uint8_t memory[640];
	struct ibv_mr *mr = vt_mr(vt.pd, memory, 640, IBV_ACCESS_REMOTE_READ), *imported;

	imported = vt_made(ibv_import_mr(pd, mr->handle));
	/* NOTES: "The addr field in the imported MR is not applicable, NULL value is expected." */
	assert_null(imported->addr);
	assert_int_equal(imported->length, 640);
	assert_int_equal(imported->lkey, mr->lkey);
	assert_int_equal(imported->rkey, mr->rkey);
	assert_int_equal(imported->handle, mr->handle);
	assert_ptr_equal(imported->pd, pd);
	assert_ptr_equal(imported->context, context);
	assert_int_equal(ibv_rereg_mr(imported, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, 0),
			 IBV_REREG_MR_ERR_INPUT);
	assert_int_equal(errno, EINVAL);
	ibv_unimport_mr(imported);
	ibv_unimport_pd(pd);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	assert_int_equal(ibv_close_device(context), 0);
}

/* "The returned ibv_pd can be used in all verbs that get a protection domain." */
vt_test(queues_of_an_imported_pd_use_its_regions)
{
	static const enum ibv_qp_type types[] = { IBV_QPT_RC, IBV_QPT_UD };
	struct ibv_context *context = import_again(vt.ctx);
	struct ibv_pd *pd = ibv_import_pd(context, vt.pd->handle);

	for (unsigned i = 0; i < VT_COUNT(types); i++) {
		struct vt_options opt = { .type = types[i], .srq = i == 0 };
		size_t grh = types[i] == IBV_QPT_UD ? sizeof(struct ibv_grh) : 0;
		uint8_t *memory = calloc(1, 4096);
		struct ibv_mr *mr = vt_mr(vt.pd, memory, 4096, VT_ALL_ACCESS), *imported;
		struct vt before = enter(context, pd);
		struct ibv_ah *ah;
		struct vt_pair p;
		struct vt_wr w;

		imported = ibv_import_mr(pd, mr->handle);
		vt_pair_open(&p, &opt);
		vt_fill(memory, 500, i);
		vt_recv(&p.b, 2);
		vt_wr(&w, IBV_WR_SEND, &p.a, &p.b, 0);
		w.sge = (struct ibv_sge){ (uintptr_t)memory, 500, imported->lkey };
		vt_done(&p.a, &w, IBV_WC_SUCCESS);
		vt_expect(p.b.cq, 2, IBV_WC_SUCCESS);
		assert_true(vt_is_filled(p.b.buf + grh, 500, i));
		leave(&before);
		if (types[i] == IBV_QPT_RC) {
			vt_wr(&w, IBV_WR_RDMA_WRITE, &p.a, &p.b, 300);
			w.wr.wr.rdma.remote_addr = (uintptr_t)memory + 1000;
			w.wr.wr.rdma.rkey = imported->rkey;
			vt_fill(p.a.buf, 300, 7);
			vt_done(&p.a, &w, IBV_WC_SUCCESS);
			assert_true(vt_is_filled(memory + 1000, 300, 7));
		} else {
			/* An address handle made with the other pointer is of that PD too. */
			ah = vt_ah();
			vt_wr(&w, IBV_WR_SEND, &p.a, &p.b, 8);
			w.wr.wr.ud.ah = ah;
			vt_done(&p.a, &w, IBV_WC_SUCCESS);
			assert_int_equal(ibv_destroy_ah(ah), 0);
		}
		vt_pair_close(&p);
		ibv_unimport_mr(imported);
		assert_int_equal(ibv_dereg_mr(mr), 0);
		free(memory);
	}
	ibv_unimport_pd(pd);
	assert_int_equal(ibv_close_device(context), 0);
}

/* "the second one way cleanup whatever is needed ... without calling the kernel" */
vt_test(unimporting_leaves_the_object_alone)
{
	struct ibv_context *context = import_again(vt.ctx);
	struct ibv_pd *pd = ibv_import_pd(context, vt.pd->handle);
	struct vt_pair p;
	struct ibv_mr *imported;

	vt_pair_open(&p, NULL);
	imported = ibv_import_mr(pd, p.a.mr->handle);
	ibv_unimport_mr(imported);
	ibv_unimport_pd(pd);
	vt_do(IBV_WR_RDMA_WRITE, &p.a, &p.b, 64, IBV_WC_SUCCESS);
	vt_pair_close(&p);
	assert_int_equal(ibv_close_device(context), 0);
}

/* The pointer that it was made by can be given up as well; an import is then what destroys it. */
vt_test(the_first_pointer_can_be_given_up)
{
	struct ibv_context *context = import_again(vt.ctx);
	struct ibv_pd *made = ibv_alloc_pd(vt.ctx), *pd = ibv_import_pd(context, made->handle);
	uint32_t handle = made->handle;
	uint8_t memory[64];
	struct ibv_mr *mr = vt_mr(made, memory, 64, 0), *imported;
	uint32_t mr_handle = mr->handle;

	ibv_unimport_mr(mr);
	ibv_unimport_pd(made);
	imported = vt_made(ibv_import_mr(pd, mr_handle));
	assert_int_equal(ibv_dealloc_pd(pd), EBUSY);
	assert_int_equal(ibv_dereg_mr(imported), 0);
	assert_null(ibv_import_mr(pd, mr_handle));
	assert_int_equal(ibv_dealloc_pd(pd), 0);
	vt_refused(EINVAL, ibv_import_pd(context, handle));
	assert_int_equal(ibv_close_device(context), 0);
}

/* "Once destroy is done no other process can touch the object except for unimport." */
vt_test(whoever_destroys_first_has_destroyed_it)
{
	struct ibv_context *context = import_again(vt.ctx);
	struct ibv_pd *made = ibv_alloc_pd(vt.ctx), *pd = ibv_import_pd(context, made->handle);
	uint8_t memory[64];
	struct ibv_mr *mr = vt_mr(made, memory, 64, 0);
	struct ibv_mr *imported = ibv_import_mr(pd, mr->handle);

	/* In use through either pointer is in use. */
	assert_int_equal(ibv_dealloc_pd(pd), EBUSY);
	assert_int_equal(ibv_dealloc_pd(made), EBUSY);
	assert_int_equal(ibv_dereg_mr(imported), 0);
	assert_int_equal(ibv_dereg_mr(mr), ENOENT);
	ibv_unimport_mr(mr);
	assert_int_equal(ibv_dealloc_pd(made), 0);
	assert_int_equal(ibv_dealloc_pd(pd), ENOENT);
	ibv_unimport_pd(pd);
	assert_int_equal(ibv_close_device(context), 0);
}

/* pyverbs gives a PD up before the queue pairs that it has in it. */
vt_test(a_queue_outlives_the_pointer_to_its_pd)
{
	struct ibv_context *context = import_again(vt.ctx);
	struct ibv_pd *pd = ibv_import_pd(context, vt.pd->handle);
	struct vt before = enter(context, pd);
	struct vt_pair p;

	vt_pair_open(&p, NULL);
	leave(&before);
	ibv_unimport_pd(pd);
	vt_do(IBV_WR_RDMA_WRITE, &p.a, &p.b, 64, IBV_WC_SUCCESS);
	assert_int_equal(ibv_dealloc_pd(vt.pd), EBUSY);
	vt_pair_close(&p);
	assert_int_equal(ibv_close_device(context), 0);
}

vt_test(device_memory_is_imported)
{
	struct ibv_alloc_dm_attr attr = { .length = 256 };
	struct ibv_context *context = import_again(vt.ctx);
	struct ibv_dm *dm = ibv_alloc_dm(vt.ctx, &attr), *imported;
	struct ibv_mr *mr;
	uint8_t octets[256], back[256];

	imported = vt_made(ibv_import_dm(context, dm->handle));
	assert_int_equal(imported->handle, dm->handle);
	assert_ptr_equal(imported->context, context);
	vt_fill(octets, 256, 1);
	assert_int_equal(ibv_memcpy_to_dm(dm, 0, octets, 256), 0);
	assert_int_equal(ibv_memcpy_from_dm(back, imported, 0, 256), 0);
	assert_true(vt_is_filled(back, 256, 1));
	mr = vt_made(ibv_reg_dm_mr(vt.pd, imported, 0, 256, IBV_ACCESS_ZERO_BASED));
	assert_int_equal(ibv_free_dm(dm), EBUSY);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	ibv_unimport_dm(imported);
	assert_int_equal(ibv_memcpy_from_dm(back, dm, 0, 256), 0);
	imported = ibv_import_dm(context, dm->handle);
	assert_int_equal(ibv_free_dm(imported), 0);
	assert_int_equal(ibv_free_dm(dm), ENOENT);
	ibv_unimport_dm(dm);
	assert_int_equal(ibv_close_device(context), 0);
}

/* --- between processes --- */

/* Another process with an end, whose context, PD and region are imported here. */
struct foreign {
	struct vp *peer;
	uint32_t end;
	uint64_t addr;
	uint32_t rkey, pd_handle, mr_handle, dm_handle;
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_mr *mr; /* NULL: it could not be imported, and errno says why */
};

static void foreign_open_with(struct foreign *f, enum vt_memory memory, const char *const *env)
{
	struct vp_order order = { .what = VP_OPEN };
	struct vp_answer answer;

	*f = (struct foreign){ .peer = vp_start(env) };
	order.opt = vt_options(&(struct vt_options){ .memory = memory, .bytes = 65536 });
	answer = vp_do(f->peer, &order);
	f->end = answer.end;
	f->addr = answer.addr;
	f->rkey = answer.rkey;
	order = (struct vp_order){ .what = VP_EXPORT, .end = f->end };
	answer = vp_do(f->peer, &order);
	f->pd_handle = answer.pd_handle;
	f->mr_handle = answer.mr_handle;
	f->dm_handle = answer.dm_handle;
	f->context = vt_made(ibv_import_device(vp_take_fd(f->peer)));
	f->pd = vt_made(ibv_import_pd(f->context, f->pd_handle));
	errno = 0;
	f->mr = ibv_import_mr(f->pd, f->mr_handle);
}

static void foreign_open(struct foreign *f, enum vt_memory memory)
{
	foreign_open_with(f, memory, NULL);
}

static void foreign_close(struct foreign *f)
{
	if (f->mr)
		ibv_unimport_mr(f->mr);
	ibv_unimport_pd(f->pd);
	assert_int_equal(ibv_close_device(f->context), 0);
	if (f->peer->pid)
		vp_end(f->peer);
}

#define foreign_test(name, ...)                                                                   \
	vt_with(vp_test, name, struct foreign, f, foreign_open(&f, __VA_ARGS__), foreign_close(&f))

static void far_fill(struct foreign *f, size_t offset, uint32_t bytes, unsigned seed)
{
	vp_do(f->peer, &(struct vp_order){ .what = VP_FILL, .end = f->end, .offset = offset,
					   .bytes = bytes, .seed = seed });
}

static bool far_is_filled(struct foreign *f, size_t offset, uint32_t bytes, unsigned seed)
{
	struct vp_order order = { .what = VP_IS_FILLED, .end = f->end, .offset = offset,
				  .bytes = bytes, .seed = seed };

	return vp_do(f->peer, &order).rc;
}

/* QPs of ours, in its PD. */
static void foreign_pair(struct foreign *f, struct vt_pair *p)
{
	struct vt before = enter(f->context, f->pd);

	vt_pair_open(p, NULL);
	leave(&before);
}

foreign_test(regions_of_another_process_are_used, VT_MEMFD)
{
	struct vt_pair p;
	struct vt_wr w;
	struct ibv_sge sge;
	struct ibv_recv_wr recv = { .wr_id = 2, .sg_list = &sge, .num_sge = 1 }, *bad;

	assert_non_null(f->mr);
	assert_int_equal(f->mr->length, 65536);
	assert_int_equal(f->mr->rkey, f->rkey);
	foreign_pair(f, &p);
	/* From its memory, */
	far_fill(f, 100, 30000, 1);
	vt_wr(&w, IBV_WR_RDMA_WRITE, &p.a, &p.b, 30000);
	w.sge = (struct ibv_sge){ f->addr + 100, 30000, f->mr->lkey };
	vt_done(&p.a, &w, IBV_WC_SUCCESS);
	assert_true(vt_is_filled(p.b.buf, 30000, 1));
	/* into it by a receive request, */
	vt_fill(p.a.buf, 5000, 2);
	sge = (struct ibv_sge){ f->addr + 1000, 5000, f->mr->lkey };
	assert_int_equal(ibv_post_recv(p.b.qp, &recv, &bad), 0);
	vt_do(IBV_WR_SEND, &p.a, &p.b, 5000, IBV_WC_SUCCESS);
	vt_expect(p.b.cq, 2, IBV_WC_SUCCESS);
	assert_true(far_is_filled(f, 1000, 5000, 2));
	/* and by its rkey. */
	vt_fill(p.a.buf, 4000, 3);
	vt_wr(&w, IBV_WR_RDMA_WRITE, &p.a, &p.b, 4000);
	w.wr.wr.rdma.remote_addr = f->addr + 50000;
	w.wr.wr.rdma.rkey = f->mr->rkey;
	vt_done(&p.a, &w, IBV_WC_SUCCESS);
	assert_true(far_is_filled(f, 50000, 4000, 3));
	vt_pair_close(&p);
}

foreign_test(device_memory_of_another_process_is_used, VT_DM)
{
	uint8_t octets[64];
	struct vt_pair p;
	struct ibv_dm *dm;
	struct ibv_mr *mr;
	struct vt_wr w;

	assert_non_null(f->mr);
	foreign_pair(f, &p);
	for (int i = 0; i < 3; i++) {
		vt_wr(&w, IBV_WR_ATOMIC_FETCH_AND_ADD, &p.a, &p.b, 8);
		w.wr.wr.atomic.remote_addr = 64;
		w.wr.wr.atomic.rkey = f->mr->rkey;
		w.wr.wr.atomic.compare_add = 5;
		vt_done(&p.a, &w, IBV_WC_SUCCESS);
		assert_int_equal(*(uint64_t *)p.a.buf, 5 * i);
	}
	/* The memory itself can be imported too, copied from and registered, */
	dm = vt_made(ibv_import_dm(f->context, f->dm_handle));
	assert_int_equal(ibv_memcpy_from_dm(octets, dm, 64, 64), 0);
	assert_int_equal(octets[0], 15);
	assert_int_equal(ibv_memcpy_from_dm(octets, dm, 65536, 4), EFAULT);
	mr = vt_made(ibv_reg_dm_mr(f->pd, dm, 4096, 4096,
				   IBV_ACCESS_ZERO_BASED | IBV_ACCESS_LOCAL_WRITE));
	vt_fill(p.b.buf, 1000, 8);
	vt_wr(&w, IBV_WR_RDMA_READ, &p.a, &p.b, 1000);
	w.sge = (struct ibv_sge){ 24, 1000, mr->lkey };
	vt_done(&p.a, &w, IBV_WC_SUCCESS);
	assert_int_equal(ibv_memcpy_from_dm(octets, dm, 4096 + 24, 64), 0);
	assert_true(vt_is_filled(octets, 64, 8));
	/* but not freed. */
	assert_int_equal(ibv_free_dm(dm), EOPNOTSUPP);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	ibv_unimport_dm(dm);
	vt_refused(EINVAL, ibv_import_dm(f->context, f->dm_handle + 1));
	vt_refused(EINVAL, ibv_import_dm(f->context, UINT32_MAX));
	vt_pair_close(&p);
}

/* Private memory becomes a file's where its owner lets it (VERBATIM_SHARED_MR). */
vp_test(private_memory_is_used_if_it_may_be_moved)
{
	static const char *const moves[] = { "VERBATIM_SHARED_MR=1", NULL };
	struct foreign f;
	struct vt_pair p;
	struct vt_wr w;

	foreign_open(&f, VT_PAGES);
	assert_null(f.mr);
	assert_int_equal(errno, EOPNOTSUPP);
	foreign_close(&f);
	/* Without shared memory nothing is moved. */
	if (vt_by_udp())
		return;
	foreign_open_with(&f, VT_PAGES, moves);
	assert_non_null(f.mr);
	far_fill(&f, 0, 9000, 4);
	foreign_pair(&f, &p);
	vt_wr(&w, IBV_WR_RDMA_WRITE, &p.a, &p.b, 9000);
	w.sge = (struct ibv_sge){ f.addr, 9000, f.mr->lkey };
	vt_done(&p.a, &w, IBV_WC_SUCCESS);
	assert_true(vt_is_filled(p.b.buf, 9000, 4));
	vt_pair_close(&p);
	foreign_close(&f);
}

/* Its rights, its bounds, its PD. */
foreign_test(what_its_owner_does_not_grant_is_refused, VT_MEMFD)
{
	static const struct {
		int64_t offset;
		uint32_t bytes;
	} rows[] = { { -1, 8 }, { 65535, 2 }, { 65536, 1 }, { 0, 65537 } };
	struct vt_pair p;
	struct vt_wr w;

	for (unsigned i = 0; i < VT_COUNT(rows); i++) {
		foreign_pair(f, &p);
		vt_wr(&w, IBV_WR_RDMA_READ, &p.a, &p.b, rows[i].bytes);
		w.sge.length = rows[i].bytes < 65536 ? rows[i].bytes : 65536;
		w.wr.wr.rdma.remote_addr = f->addr + (uint64_t)rows[i].offset;
		w.wr.wr.rdma.rkey = f->rkey;
		if (rows[i].bytes > 65536)
			w.wr.wr.rdma.remote_addr = f->addr + 1;
		vt_done(&p.a, &w, IBV_WC_REM_ACCESS_ERR);
		vt_pair_close(&p);
	}
	/* In a PD of our own, its keys are none. */
	vt_pair_open(&p, NULL);
	vt_wr(&w, IBV_WR_RDMA_WRITE, &p.a, &p.b, 8);
	w.sge = (struct ibv_sge){ f->addr, 8, f->mr->lkey };
	vt_done(&p.a, &w, IBV_WC_LOC_PROT_ERR);
	vt_pair_close(&p);
}

foreign_test(what_its_owner_deregisters_is_gone, VT_MEMFD)
{
	struct vt_pair p;
	struct vt_wr w;

	foreign_pair(f, &p);
	vp_do(f->peer, &(struct vp_order){ .what = VP_DEREG, .end = f->end });
	vt_wr(&w, IBV_WR_RDMA_WRITE, &p.a, &p.b, 8);
	w.sge = (struct ibv_sge){ f->addr, 8, f->mr->lkey };
	vt_done(&p.a, &w, IBV_WC_LOC_PROT_ERR);
	vt_refused(EINVAL, ibv_import_mr(f->pd, f->mr_handle));
	vt_pair_close(&p);
}

/* What cannot be done whole is refused. */
vp_test(the_rest_is_refused)
{
	struct foreign f;

	/* Memory that is no file's cannot be mapped. */
	foreign_open(&f, VT_HEAP);
	assert_null(f.mr);
	assert_int_equal(errno, EOPNOTSUPP);
	vt_refused(EINVAL, ibv_import_pd(f.context, f.pd_handle + 1000));
	vt_refused(EINVAL, ibv_import_mr(f.pd, f.mr_handle ^ 1));
	/* Its PD is not destroyed from here, and none is made there. */
	assert_int_equal(ibv_dealloc_pd(f.pd), EOPNOTSUPP);
	vt_refused(EOPNOTSUPP, ibv_alloc_pd(f.context));
	vt_refused(EOPNOTSUPP, ibv_alloc_dm(f.context, &(struct ibv_alloc_dm_attr){.length = 64}));
	foreign_close(&f);
	foreign_open(&f, VT_MEMFD);
	assert_int_equal(ibv_dereg_mr(f.mr), EOPNOTSUPP);
	foreign_close(&f);
}

/* As long as somebody holds the descriptor, what it stands for is there. */
foreign_test(an_owner_that_dies_leaves_its_memory, VT_MEMFD)
{
	struct vt_pair p;
	struct vt_wr w;

	far_fill(f, 0, 4000, 1);
	foreign_pair(f, &p);
	vp_kill(f->peer);
	vt_wr(&w, IBV_WR_RDMA_WRITE, &p.a, &p.b, 4000);
	w.sge = (struct ibv_sge){ f->addr, 4000, f->mr->lkey };
	vt_done(&p.a, &w, IBV_WC_SUCCESS);
	assert_true(vt_is_filled(p.b.buf, 4000, 1));
	/* What has not been mapped by then cannot be any more. */
	ibv_unimport_mr(f->mr);
	f->mr = NULL;
	vt_pair_close(&p);
}

vp_test(who_is_gone_cannot_be_imported)
{
	struct vp_order order = { .what = VP_OPEN, .opt = vt_options(NULL) };
	struct vp *peer = vp_start(NULL);
	int fd;

	order.end = vp_do(peer, &order).end;
	order.what = VP_EXPORT;
	vp_do(peer, &order);
	fd = vp_take_fd(peer);
	vp_kill(peer);
	vt_refused(EOPNOTSUPP, ibv_import_device(fd));
	assert_int_equal(close(fd), 0);
}
