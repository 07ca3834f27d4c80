/* SPDX-License-Identifier: BSD-2-Clause */
#include "peer.h"

#include <sys/mman.h>

/*
 * On-demand paging: IBV_ACCESS_ON_DEMAND of ibv_reg_mr(3), odp_caps of ibv_query_device_ex(3), and
 * ibv_advise_mr(3).
 */

enum { PAGE = 4096, PAGES = 8 };

static uint8_t *reserve(int protection)
{
	uint8_t *at = mmap(NULL, PAGES * PAGE, protection, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_true(at != MAP_FAILED);
	return at;
}

static void drop(uint8_t *pages)
{
	assert_int_equal(munmap(pages, PAGES * PAGE), 0);
}

static struct ibv_mr *paged(void *addr, size_t bytes)
{
	return vt_mr(vt.pd, addr, bytes, VT_ALL_ACCESS | IBV_ACCESS_ON_DEMAND);
}

/* A WRITE of 64 octets of that region into b's buffer, and how it ends. */
static void send_from(struct vt_pair *p, const void *from, const struct ibv_mr *mr,
		      enum ibv_wc_status status)
{
	struct vt_wr w;

	vt_wr(&w, IBV_WR_RDMA_WRITE, &p->a, &p->b, 64);
	w.sge = (struct ibv_sge){ (uintptr_t)from, 64, mr->lkey };
	vt_done(&p->a, &w, status);
}

static void write_to(struct vt_pair *p, const void *to, const struct ibv_mr *mr,
		     enum ibv_wc_status status)
{
	struct vt_wr w;

	vt_wr(&w, IBV_WR_RDMA_WRITE, &p->a, &p->b, 64);
	w.wr.wr.rdma.remote_addr = (uintptr_t)to;
	w.wr.wr.rdma.rkey = mr->rkey;
	vt_done(&p->a, &w, status);
}

/* --- what is said of it --- */

vt_test(the_device_says_what_it_can)
{
	const uint32_t both = IBV_ODP_SUPPORT_SEND | IBV_ODP_SUPPORT_RECV;
	const uint32_t all = both | IBV_ODP_SUPPORT_WRITE | IBV_ODP_SUPPORT_READ |
			     IBV_ODP_SUPPORT_ATOMIC | IBV_ODP_SUPPORT_SRQ_RECV;
	struct ibv_device_attr_ex attr = vt_device_ex();

	assert_int_equal(attr.odp_caps.general_caps, IBV_ODP_SUPPORT | IBV_ODP_SUPPORT_IMPLICIT);
	/* and IBV_ODP_SUPPORT_FLUSH, IBV_ODP_SUPPORT_ATOMIC_WRITE of newer headers */
	assert_int_equal(attr.odp_caps.per_transport_caps.rc_odp_caps, all | 1 << 6 | 1 << 7);
	assert_int_equal(attr.odp_caps.per_transport_caps.uc_odp_caps,
			 both | IBV_ODP_SUPPORT_WRITE);
	assert_int_equal(attr.odp_caps.per_transport_caps.ud_odp_caps,
			 both | IBV_ODP_SUPPORT_SRQ_RECV);
	assert_int_equal(attr.xrc_odp_caps,
			 attr.orig_attr.device_cap_flags & IBV_DEVICE_XRC ? all : 0);
}

/* Each of the capabilities, with pages that are touched first by the device. */
vt_test(it_can_what_it_says)
{
	for (unsigned i = 0; i < 2 * VT_TYPES; i++) {
		enum ibv_qp_type type = vt_types[i / 2];
		bool srq = (i & 1) && type != IBV_QPT_UC;
		struct vt_options opt = { .type = type, .srq = srq, .bytes = 1 << 20,
					  .mr_access = VT_ALL_ACCESS | IBV_ACCESS_ON_DEMAND };
		size_t grh = type == IBV_QPT_UD ? sizeof(struct ibv_grh) : 0;
		struct vt_pair p;
		struct vt_wr w;

		vt_pair_open(&p, &opt);
		vt_fill(p.a.buf, 1000, i);
		vt_recv(&p.b, 2);
		vt_do(IBV_WR_SEND, &p.a, &p.b, 1000, IBV_WC_SUCCESS);
		vt_expect(p.b.cq, 2, IBV_WC_SUCCESS);
		assert_true(vt_is_filled(p.b.buf + grh, 1000, i));
		if (type == IBV_QPT_RC) {
			vt_do(IBV_WR_RDMA_READ, &p.a, &p.b, 500000, IBV_WC_SUCCESS);
			vt_do(IBV_WR_ATOMIC_FETCH_AND_ADD, &p.a, &p.b, 8, IBV_WC_SUCCESS);
			vt_do(IBV_WR_ATOMIC_WRITE, &p.a, &p.b, 8, IBV_WC_SUCCESS);
		}
		if (type != IBV_QPT_UD) {
			vt_wr(&w, IBV_WR_RDMA_WRITE_WITH_IMM, &p.a, &p.b, 500000);
			vt_recv(&p.b, 3);
			vt_done(&p.a, &w, IBV_WC_SUCCESS);
			vt_expect(p.b.cq, 3, IBV_WC_SUCCESS);
			assert_memory_equal(p.a.buf, p.b.buf, 500000);
		}
		vt_pair_close(&p);
	}
}

/* --- explicit --- */

/* Nothing has to be there when it is registered; what counts is what is there when it is used. */
vt_pair_test(pages_may_come_and_go)
{
	uint8_t *pages = reserve(PROT_NONE);
	struct ibv_mr *mr = paged(pages, PAGES * PAGE);

	vt_faults_to_library();
	assert_int_equal(mprotect(pages, PAGE, PROT_READ | PROT_WRITE), 0);
	vt_fill(pages, 64, 1);
	send_from(p, pages, mr, IBV_WC_SUCCESS);
	assert_true(vt_is_filled(p->b.buf, 64, 1));
	/* Other memory in its place: unlike pages that are pinned, these are what is seen. */
	assert_true(mmap(pages, PAGE, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == pages);
	vt_fill(pages, 64, 2);
	send_from(p, pages, mr, IBV_WC_SUCCESS);
	assert_true(vt_is_filled(p->b.buf, 64, 2));
	write_to(p, pages, mr, IBV_WC_SUCCESS);
	send_from(p, pages + PAGE, mr, IBV_WC_LOC_PROT_ERR);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	drop(pages);
}

vt_test(what_pages_forbid_is_an_error)
{
	uint8_t *pages = reserve(PROT_READ);
	struct ibv_mr *mr = paged(pages, PAGES * PAGE);
	struct vt_pair p;

	vt_faults_to_library();
	vt_pair_open(&p, NULL);
	send_from(&p, pages, mr, IBV_WC_SUCCESS);
	write_to(&p, pages, mr, IBV_WC_REM_OP_ERR);
	vt_pair_close(&p);
	assert_true(vt_is_octet(pages, PAGE, 0));
	assert_int_equal(ibv_dereg_mr(mr), 0);
	drop(pages);
}

/* "HUGETLB: applicable with IBV_ACCESS_ON_DEMAND in explicit mode only" */
vt_test(huge_pages_are_the_applications_promise)
{
	uint8_t *pages = reserve(PROT_READ | PROT_WRITE);
	struct ibv_mr *mr =
		vt_made(ibv_reg_mr(vt.pd, pages, PAGES * PAGE,
				   VT_ALL_ACCESS | IBV_ACCESS_ON_DEMAND | IBV_ACCESS_HUGETLB));

	assert_int_equal(ibv_dereg_mr(mr), 0);
	drop(pages);
}

/* --- implicit --- */

/* "IBV_ACCESS_ON_DEMAND should be set, addr should be 0 and length should be SIZE_MAX" */
vt_test(an_implicit_region_is_asked_for_so)
{
	static const struct {
		uintptr_t addr;
		size_t bytes;
		uint64_t iova;
		int access, err;
	} rows[] = {
		{ 0, SIZE_MAX, 0, IBV_ACCESS_ON_DEMAND, 0 },
		{ 0, SIZE_MAX, 0, VT_ALL_ACCESS | IBV_ACCESS_ON_DEMAND, 0 },
		{ 0, SIZE_MAX, 0, VT_ALL_ACCESS, EINVAL },
		{ PAGE, SIZE_MAX, PAGE, VT_ALL_ACCESS | IBV_ACCESS_ON_DEMAND, EINVAL },
		{ 0, SIZE_MAX - 1, 0, VT_ALL_ACCESS | IBV_ACCESS_ON_DEMAND, EINVAL },
		{ 0, SIZE_MAX, PAGE, VT_ALL_ACCESS | IBV_ACCESS_ON_DEMAND, EINVAL },
		{ 0, SIZE_MAX, 0, VT_ALL_ACCESS | IBV_ACCESS_ON_DEMAND | IBV_ACCESS_HUGETLB,
		  EINVAL },
	};

	for (unsigned i = 0; i < VT_COUNT(rows); i++) {
		struct ibv_mr *mr;

		errno = 0;
		mr = ibv_reg_mr_iova2(vt.pd, (void *)rows[i].addr, rows[i].bytes, rows[i].iova,
				      (unsigned)rows[i].access);
		assert_int_equal(mr ? 0 : errno, rows[i].err);
		if (mr)
			assert_int_equal(ibv_dereg_mr(mr), 0);
	}
}

vt_pair_test(all_memory_is_in_an_implicit_region)
{
	static uint8_t data[64];
	uint8_t stack[64], *heap = malloc(64), *pages;
	struct ibv_mr *mr = paged(NULL, SIZE_MAX);

	vt_faults_to_library();
	pages = reserve(PROT_READ | PROT_WRITE); /* later than it was registered */
	uint8_t *places[] = { data, stack, heap, pages };

	for (unsigned i = 0; i < VT_COUNT(places); i++) {
		vt_fill(places[i], 64, i + 1);
		send_from(p, places[i], mr, IBV_WC_SUCCESS);
		assert_true(vt_is_filled(p->b.buf, 64, i + 1));
		vt_fill(p->a.buf, 64, i + 20);
		write_to(p, places[i], mr, IBV_WC_SUCCESS);
		assert_true(vt_is_filled(places[i], 64, i + 20));
	}
	free(heap);
	drop(pages);
	send_from(p, pages, mr, IBV_WC_LOC_PROT_ERR);
	assert_int_equal(ibv_dereg_mr(mr), 0);
}

vt_test(nothing_is_where_no_memory_can_be)
{
	static const uint64_t places[] = { 0, 8, UINT64_MAX - 64, 1ull << 63, 1ull << 47 };
	struct ibv_mr *mr = paged(NULL, SIZE_MAX);
	struct vt_pair p;

	vt_faults_to_library();
	for (unsigned i = 0; i < VT_COUNT(places); i++) {
		vt_pair_open(&p, NULL);
		send_from(&p, (void *)(uintptr_t)places[i], mr, IBV_WC_LOC_PROT_ERR);
		vt_pair_close(&p);
		vt_pair_open(&p, NULL);
		/* At NULL there is nothing by definition. */
		write_to(&p, (void *)(uintptr_t)places[i], mr,
			 places[i] ? IBV_WC_REM_OP_ERR : IBV_WC_REM_ACCESS_ERR);
		vt_pair_close(&p);
	}
	assert_int_equal(ibv_dereg_mr(mr), 0);
}

/* --- advice --- */

static int advise(enum ibv_advise_mr_advice advice, uint32_t flags, uint64_t addr,
		  uint32_t bytes, uint32_t lkey)
{
	struct ibv_sge sge = { addr, bytes, lkey };

	return ibv_advise_mr(vt.pd, advice, flags, &sge, 1);
}

static unsigned resident(uint8_t *pages)
{
	unsigned char in[PAGES];
	unsigned count = 0;

	assert_int_equal(mincore(pages, PAGES * PAGE, in), 0);
	for (unsigned i = 0; i < PAGES; i++)
		count += in[i] & 1;
	return count;
}

/* "Make pages present": the ones that hold the range, and no others. */
vt_test(advice_brings_pages_in)
{
	static const uint32_t flags[] = { 0, IBV_ADVISE_MR_FLAG_FLUSH };

	for (unsigned i = 0; i < 2 * VT_COUNT(flags); i++) {
		uint8_t *pages = reserve(PROT_READ | PROT_WRITE);
		struct ibv_mr *mr = paged(pages, PAGES * PAGE);

		assert_int_equal(resident(pages), 0);
		assert_int_equal(advise(IBV_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT, flags[i / 2],
					(uintptr_t)pages, PAGES * PAGE, mr->lkey),
				 0);
		assert_int_equal(resident(pages), 0);
		assert_int_equal(advise(i & 1 ? IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE
					      : IBV_ADVISE_MR_ADVICE_PREFETCH,
					flags[i / 2], (uintptr_t)pages + PAGE - 1, PAGE + 2,
					mr->lkey),
				 0);
		/* Of pages that are only read, the kernel does not say. */
		if (i & 1)
			assert_int_equal(resident(pages), 3);
		assert_int_equal(ibv_dereg_mr(mr), 0);
		drop(pages);
	}
}

vt_test(advice_has_rules)
{
	const enum ibv_advise_mr_advice read = IBV_ADVISE_MR_ADVICE_PREFETCH,
					write = IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE,
					look = IBV_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT;
	uint8_t *pages = reserve(PROT_READ | PROT_WRITE);
	uint64_t at = (uintptr_t)pages;
	struct ibv_pd *other = ibv_alloc_pd(vt.ctx);
	struct ibv_mr *mr = paged(pages, PAGES * PAGE);
	struct ibv_mr *fixed = vt_mr(vt.pd, pages, PAGE, VT_ALL_ACCESS);
	struct ibv_mr *readable = vt_mr(vt.pd, pages, PAGE, IBV_ACCESS_ON_DEMAND);
	struct ibv_mr *others = ibv_reg_mr(other, pages, PAGE, IBV_ACCESS_ON_DEMAND);
	struct ibv_mr *null = ibv_alloc_null_mr(vt.pd);
	const struct {
		enum ibv_advise_mr_advice advice;
		uint32_t flags;
		uint64_t addr;
		uint32_t bytes, lkey;
		int err;
	} rows[] = {
		{ read, 0, at, PAGES * PAGE, mr->lkey, 0 },
		{ write, IBV_ADVISE_MR_FLAG_FLUSH, at + 5, 1, mr->lkey, 0 },
		{ look, 0, at, 0, mr->lkey, 0 },
		{ read, 0, at, PAGE, readable->lkey, 0 },
		/* "The advise operation isn't supported." */
		{ (enum ibv_advise_mr_advice)3, 0, at, PAGE, mr->lkey, ENOTSUP },
		{ (enum ibv_advise_mr_advice)-1, 0, at, PAGE, mr->lkey, ENOTSUP },
		/* "The flags are invalid." */
		{ read, 2, at, PAGE, mr->lkey, EINVAL },
		/* "When the range requested is out of the MR bounds" */
		{ read, 0, at, PAGES * PAGE + 1, mr->lkey, EFAULT },
		{ read, 0, at - 1, 1, mr->lkey, EFAULT },
		/* "lkeys ... must be associated with ODP MRs" */
		{ read, 0, at, PAGE, fixed->lkey, EINVAL },
		{ read, 0, at, PAGE, null->lkey, EINVAL },
		/* "IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE but ... not registered as writable" */
		{ write, 0, at, PAGE, readable->lkey, EPERM },
		/* "Referencing a valid lkey outside the caller's security scope." */
		{ read, 0, at, PAGE, others->lkey, EPERM },
		/* "The providing lkeys aren't consistent with the MR's." */
		{ read, 0, at, PAGE, mr->lkey ^ 1, ENOENT },
		{ read, 0, at, PAGE, 0, ENOENT },
	};

	for (unsigned i = 0; i < VT_COUNT(rows); i++)
		assert_int_equal(advise(rows[i].advice, rows[i].flags, rows[i].addr,
					rows[i].bytes, rows[i].lkey),
				 rows[i].err);
	assert_int_equal(ibv_advise_mr(vt.pd, read, 0, NULL, 0), EINVAL);
	assert_int_equal(ibv_dereg_mr(null), 0);
	assert_int_equal(ibv_dereg_mr(others), 0);
	assert_int_equal(ibv_dereg_mr(readable), 0);
	assert_int_equal(ibv_dereg_mr(fixed), 0);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	assert_int_equal(ibv_dealloc_pd(other), 0);
	drop(pages);
}

/* "when parts of it are not part of the process address space", or not to be written */
vt_test(advice_about_nothing_is_an_error)
{
	uint8_t *pages = reserve(PROT_READ);
	struct ibv_mr *mr = paged(NULL, SIZE_MAX);

	assert_int_equal(advise(IBV_ADVISE_MR_ADVICE_PREFETCH, 0, (uintptr_t)pages, PAGE,
				mr->lkey),
			 0);
	assert_int_equal(advise(IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE, 0, (uintptr_t)pages, PAGE,
				mr->lkey),
			 EFAULT);
	assert_int_equal(munmap(pages + PAGE, PAGE), 0);
	for (enum ibv_advise_mr_advice advice = IBV_ADVISE_MR_ADVICE_PREFETCH;
	     advice <= IBV_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT; advice++)
		assert_int_equal(advise(advice, 0, (uintptr_t)pages, 3 * PAGE, mr->lkey), EFAULT);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	drop(pages);
}

/* Several at once: if one is wrong, nothing is done. */
vt_test(advice_is_checked_before_it_is_followed)
{
	uint8_t *pages = reserve(PROT_READ | PROT_WRITE);
	struct ibv_mr *mr = paged(pages, PAGES * PAGE);
	struct ibv_sge sge[] = {
		{ (uintptr_t)pages, PAGE, mr->lkey },
		{ (uintptr_t)pages + 2 * PAGE, PAGE, mr->lkey },
		{ (uintptr_t)pages, PAGE, mr->lkey ^ 1 },
	};

	assert_int_equal(ibv_advise_mr(vt.pd, IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE, 0, sge, 3),
			 ENOENT);
	assert_int_equal(resident(pages), 0);
	assert_int_equal(ibv_advise_mr(vt.pd, IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE, 0, sge, 2), 0);
	assert_int_equal(resident(pages), 2);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	drop(pages);
}

/* --- between processes --- */

static void far_do(struct vp_pair *p, enum ibv_wr_opcode op, uint32_t bytes,
		   enum ibv_wc_status status)
{
	struct vt_wr w;

	vt_wr(&w, op, &p->a, &p->b, bytes);
	w.wr.wr.rdma.remote_addr += PAGE;
	vt_done(&p->a, &w, status);
}

/* The whole address space of another process, whatever way leads there. */
vp_pair_test(another_process_grants_all_its_memory, NULL,
	     &(struct vt_options){ .memory = VT_SPACE })
{
	static const uint32_t lengths[] = { 1, 64, 4096, 20000, 50000 };

	for (unsigned i = 0; i < VT_COUNT(lengths); i++) {
		vt_sleep_ms(i & 1 ? 0 : 30); /* awake and asleep */
		vt_fill(p->a.buf, lengths[i], i);
		far_do(p, IBV_WR_RDMA_WRITE, lengths[i], IBV_WC_SUCCESS);
		assert_true(vp_is_filled(p, PAGE, lengths[i], i));
		memset(p->a.buf, 0, lengths[i]);
		far_do(p, IBV_WR_RDMA_READ, lengths[i], IBV_WC_SUCCESS);
		assert_true(vt_is_filled(p->a.buf, lengths[i], i));
	}
	far_do(p, IBV_WR_ATOMIC_FETCH_AND_ADD, 8, IBV_WC_SUCCESS);
}

/* Whoever has mapped a region's file keeps what was there; with paging, what is there counts. */
vp_pair_test(what_another_process_unmaps_is_gone, NULL,
	     &(struct vt_options){.memory = VT_MEMFD,
				  .mr_access = VT_ALL_ACCESS | IBV_ACCESS_ON_DEMAND})
{
	struct vp_order hole = { .what = VP_HOLE, .offset = PAGE, .bytes = PAGE };

	far_do(p, IBV_WR_RDMA_WRITE, 8, IBV_WC_SUCCESS);
	far_do(p, IBV_WR_ATOMIC_FETCH_AND_ADD, 8, IBV_WC_SUCCESS);
	hole.end = p->end;
	vp_do(p->peer, &hole);
	far_do(p, IBV_WR_RDMA_WRITE, 8, IBV_WC_REM_OP_ERR);
}

/* There are ways into another process that ask for no permission of its pages. */
vp_test(what_another_process_forbids_itself_is_an_error)
{
	static const struct {
		int protection;
		enum ibv_wr_opcode op;
		uint32_t bytes;
	} rows[] = {
		{ PROT_READ, IBV_WR_RDMA_WRITE, 8 },
		{ PROT_READ, IBV_WR_RDMA_WRITE, 10000 },
		{ PROT_NONE, IBV_WR_RDMA_WRITE, 8 },
		{ PROT_NONE, IBV_WR_RDMA_READ, 8 },
		{ PROT_NONE, IBV_WR_RDMA_READ, 4000 },
	};
	struct vt_options opt = { .mr_access = VT_ALL_ACCESS | IBV_ACCESS_ON_DEMAND };

	for (unsigned i = 0; i < 2 * VT_COUNT(rows); i++) {
		struct vp_order order = { .what = VP_PROTECT, .offset = PAGE, .bytes = 20000 };
		struct vp *peer = vp_start(NULL);
		struct vp_pair p;

		vp_pair_open(&p, peer, &opt);
		vp_fill(&p, 40000, 9);
		order.end = p.end;
		order.flags = (unsigned)rows[i / 2].protection;
		assert_int_equal(vp_do(peer, &order).rc, 0);
		/* The last octet that is written lies where it is forbidden. */
		p.b.buf = (uint8_t *)(((uintptr_t)p.b.buf + 2 * PAGE) & -PAGE);
		vt_sleep_ms(i & 1 ? 30 : 0);
		far_do(&p, rows[i / 2].op, rows[i / 2].bytes, IBV_WC_REM_OP_ERR);
		order.flags = PROT_READ | PROT_WRITE;
		assert_int_equal(vp_do(peer, &order).rc, 0);
		assert_true(vp_is_filled(&p, 0, 40000, 9));
		vp_pair_close(&p);
		vp_end(peer);
	}
}
