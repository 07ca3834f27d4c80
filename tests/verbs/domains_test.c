/* SPDX-License-Identifier: BSD-2-Clause */
#include "lib.h"

#include <pthread.h>
#include <stdatomic.h>

/* Thread domains, parent domains and their allocators; counters objects; device queries. */

static struct ibv_td *td_alloc(void)
{
	struct ibv_td_init_attr attr = { .comp_mask = 0 };

	return vt_made(ibv_alloc_td(vt.ctx, &attr));
}

static struct ibv_pd *domain_alloc(struct ibv_parent_domain_init_attr attr)
{
	attr.pd = vt.pd;
	return vt_made(ibv_alloc_parent_domain(vt.ctx, &attr));
}

static struct ibv_cq_init_attr_ex cq_attr_of(struct ibv_pd *domain)
{
	return (struct ibv_cq_init_attr_ex){ .cqe = 256, .parent_domain = domain,
					     .comp_mask = IBV_CQ_INIT_ATTR_MASK_PD };
}

/* Whatever takes a PD is to take the parent domain: the test library's PD is replaced by it. */
static struct ibv_pd *swap_pd(struct ibv_pd *pd)
{
	struct ibv_pd *old = vt.pd;

	vt.pd = pd;
	return old;
}

static void traffic(const struct vt_options *opt)
{
	struct vt_pair p;

	vt_pair_open(&p, opt);
	for (uint64_t i = 1; i <= 100; i++) {
		vt_exchange(&p.a, &p.b);
	}
	vt_pair_close(&p);
}

/* --- thread domains --- */

/* "All resources created with the td should be destroyed prior to deallocating the td." */
vt_test(a_thread_domain_in_use_stays)
{
	struct ibv_td_init_attr attr = { .comp_mask = 1 };
	struct ibv_td *td = td_alloc();
	struct ibv_pd *pd;

	assert_ptr_equal(td->context, vt.ctx);
	pd = domain_alloc((struct ibv_parent_domain_init_attr){ .td = td });
	assert_int_equal(ibv_dealloc_td(td), EBUSY);
	assert_int_equal(ibv_dealloc_pd(pd), 0);
	assert_int_equal(ibv_dealloc_td(td), 0);
	vt_refused(EINVAL, ibv_alloc_td(vt.ctx, &attr));
}

vt_test(everything_works_in_a_thread_domain)
{
	struct ibv_td *td = td_alloc();
	struct ibv_pd *domain = domain_alloc((struct ibv_parent_domain_init_attr){ .td = td });
	struct ibv_cq_init_attr_ex attr = cq_attr_of(domain);
	struct ibv_pd *pd = swap_pd(domain);

	for (unsigned i = 0; i < 3; i++) {
		traffic(&(struct vt_options){ .type = vt_types[i], .cq_attr = &attr });
		if (vt_types[i] != IBV_QPT_UC)
			traffic(&(struct vt_options){ .type = vt_types[i], .cq_attr = &attr,
						      .srq = true });
	}
	assert_int_equal(ibv_dealloc_pd(domain), 0);
	swap_pd(pd);
	assert_int_equal(ibv_dealloc_td(td), 0);
}

static struct ibv_qp *qp_with_sends(struct ibv_pd *pd, struct ibv_cq *cq)
{
	struct ibv_qp_init_attr_ex init = {
		.send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_UD, .pd = pd,
		.cap = { .max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1 },
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.send_ops_flags = IBV_QP_EX_WITH_SEND };
	return vt_made(ibv_create_qp_ex(vt.ctx, &init));
}

/*
 * "any objects created under this thread domain will disable internal locking": what begins within
 * itself would wait for itself if there was a lock.
 */
vt_test(a_thread_domain_takes_no_lock)
{
	struct ibv_td *td = td_alloc();
	struct ibv_pd *domain = domain_alloc((struct ibv_parent_domain_init_attr){ .td = td });
	struct ibv_cq_init_attr_ex attr = cq_attr_of(domain);
	struct ibv_poll_cq_attr poll_attr = { .comp_mask = 0 };
	struct vt_options opt = vt_options(&(struct vt_options){ .type = IBV_QPT_UD });
	struct ibv_cq_ex *cq = vt_cq_ex(&attr);
	struct ibv_qp *qp = qp_with_sends(domain, ibv_cq_ex_to_cq(cq));
	struct ibv_qp_ex *ex = ibv_qp_to_qp_ex(qp);
	struct ibv_ah *ah = vt_ah();

	vt_climb(qp, &opt, IBV_QPS_RTS, 0);
	ibv_wr_start(ex);
	ibv_wr_start(ex);
	ex->wr_flags = IBV_SEND_SIGNALED;
	for (ex->wr_id = 1; ex->wr_id <= 2; ex->wr_id++) {
		ibv_wr_send(ex);
		ibv_wr_set_ud_addr(ex, ah, qp->qp_num, VT_QKEY);
	}
	assert_int_equal(ibv_wr_complete(ex), 0);
	for (uint64_t i = 1; i <= 2; i++) {
		uint64_t end_ms = vt_now_ms() + VT_WAIT_MS;

		while (ibv_start_poll(cq, &poll_attr) && vt_now_ms() < end_ms)
			;
		assert_int_equal(cq->wr_id, i);
	}
	ibv_end_poll(cq);
	ibv_end_poll(cq);
	assert_int_equal(ibv_destroy_qp(qp), 0);
	assert_int_equal(ibv_destroy_ah(ah), 0);
	assert_int_equal(ibv_destroy_cq(ibv_cq_ex_to_cq(cq)), 0);
	assert_int_equal(ibv_dealloc_pd(domain), 0);
	assert_int_equal(ibv_dealloc_td(td), 0);
}

/* --- each thread in a domain of its own, all at once, and each turns the whole NIC --- */

enum { THREADS = 4, MESSAGES = 3000, DEPTH = 16 };

struct lane {
	pthread_t thread;
	struct ibv_td *td;
	struct ibv_pd *domain;
	struct vt_pair p;
	const char *wrong;
};

static void *run_lane(void *arg)
{
	struct lane *lane = arg;
	unsigned sent = 0, received = 0, done = 0;
	struct ibv_wc wc[8];
	int n;

	while (received < MESSAGES || done < MESSAGES) {
		for (; sent < MESSAGES && sent < received + DEPTH && sent < done + DEPTH; sent++) {
			struct ibv_sge sge = { (uintptr_t)lane->p.b.buf, 64, lane->p.b.mr->lkey };
			struct ibv_recv_wr recv = { .wr_id = sent, .sg_list = &sge, .num_sge = 1 };
			struct ibv_recv_wr *bad_recv;
			struct vt_wr w;

			vt_wr(&w, IBV_WR_SEND, &lane->p.a, &lane->p.b, 8);
			w.wr.wr_id = sent;
			if (ibv_post_srq_recv(lane->p.b.srq, &recv, &bad_recv) ||
			    vt_try(&lane->p.a, &w)) {
				lane->wrong = "a request was refused";
				return NULL;
			}
		}
		n = ibv_poll_cq(lane->p.a.cq, 8, wc);
		for (int i = 0; i < n; i++) {
			if (wc[i].status != IBV_WC_SUCCESS || wc[i].wr_id != done++)
				lane->wrong = "a send completed wrongly";
		}
		n = ibv_poll_cq(lane->p.b.cq, 8, wc);
		for (int i = 0; i < n; i++) {
			if (wc[i].status != IBV_WC_SUCCESS || wc[i].wr_id != received++)
				lane->wrong = "a receive completed wrongly";
		}
		if (lane->wrong)
			return NULL;
	}
	return NULL;
}

vt_test(threads_have_domains_of_their_own)
{
	struct lane lane[THREADS];

	memset(lane, 0, sizeof(lane));
	for (unsigned i = 0; i < THREADS; i++) {
		struct ibv_cq_init_attr_ex attr;
		struct ibv_pd *pd;

		lane[i].td = td_alloc();
		lane[i].domain = domain_alloc((struct ibv_parent_domain_init_attr){
			.td = lane[i].td });
		attr = cq_attr_of(lane[i].domain);
		pd = swap_pd(lane[i].domain);
		vt_pair_open(&lane[i].p, &(struct vt_options){ .type = IBV_QPT_RC, .srq = true,
							       .cq_attr = &attr });
		swap_pd(pd);
	}
	for (unsigned i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&lane[i].thread, NULL, run_lane, &lane[i]), 0);
	for (unsigned i = 0; i < THREADS; i++) {
		assert_int_equal(pthread_join(lane[i].thread, NULL), 0);
		if (lane[i].wrong)
			fail_msg("%s", lane[i].wrong);
		vt_pair_close(&lane[i].p);
		assert_int_equal(ibv_dealloc_pd(lane[i].domain), 0);
		assert_int_equal(ibv_dealloc_td(lane[i].td), 0);
	}
}

/* --- parent domains --- */

static int try_domain(struct ibv_parent_domain_init_attr attr)
{
	struct ibv_pd *pd = ibv_alloc_parent_domain(vt.ctx, &attr);

	if (!pd)
		return errno;
	assert_int_equal(ibv_dealloc_pd(pd), 0);
	return 0;
}

static void *never_alloc(struct ibv_pd *pd, void *context, size_t size, size_t alignment,
			 uint64_t type)
{
	return NULL;
}

static void never_free(struct ibv_pd *pd, void *context, void *ptr, uint64_t type)
{
}

/* "reference to a protection domain, can't be NULL", "Bit-mask of optional fields" */
vt_test(a_parent_domain_needs_its_parts)
{
	struct ibv_parent_domain_init_attr attr = { .pd = NULL };

	assert_int_equal(try_domain(attr), EINVAL);
	attr.pd = vt.pd;
	assert_int_equal(try_domain(attr), 0);
	/* Bit 2 is a permission of newer headers (reg_mr_ex_test.c). */
	for (unsigned bit = 3; bit < 32; bit++) {
		attr.comp_mask = 1u << bit;
		assert_int_equal(try_domain(attr), EINVAL);
	}
	attr.comp_mask = IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS;
	assert_int_equal(try_domain(attr), EINVAL);
	attr.alloc = never_alloc;
	assert_int_equal(try_domain(attr), EINVAL);
	attr.free = never_free;
	assert_int_equal(try_domain(attr), 0);
}

/* "All resources created with the parent domain should be destroyed prior to deallocating" */
vt_test(a_parent_domain_in_use_stays)
{
	struct ibv_pd *domain = domain_alloc((struct ibv_parent_domain_init_attr){ .td = NULL });
	struct ibv_cq_init_attr_ex attr = cq_attr_of(domain);
	static uint8_t buf[64];
	struct ibv_cq_ex *cq;
	struct ibv_mr *mr;

	assert_int_equal(ibv_dealloc_pd(vt.pd), EBUSY);
	mr = vt_mr(domain, buf, sizeof(buf), 0);
	assert_ptr_equal(mr->pd, domain);
	assert_int_equal(ibv_dealloc_pd(domain), EBUSY);
	cq = vt_cq_ex(&attr);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	assert_int_equal(ibv_dealloc_pd(domain), EBUSY);
	assert_int_equal(ibv_destroy_cq(ibv_cq_ex_to_cq(cq)), 0);
	assert_int_equal(ibv_dealloc_pd(domain), 0);
}

/* "completely interchangeable with the struct ibv_pd used to create it": QPs of one, rest not. */
vt_test(it_is_the_pd_behind_it)
{
	static const enum ibv_qp_type types[] = { IBV_QPT_RC, IBV_QPT_UD };
	struct ibv_pd *domain = domain_alloc((struct ibv_parent_domain_init_attr){ .td = NULL });
	struct ibv_pd *pd = vt.pd;

	for (unsigned i = 0; i < 2; i++) {
		struct vt_options opt = { .type = types[i] };
		struct ibv_mr *mr;
		struct ibv_ah *ah = NULL;
		struct vt_wr w;
		struct vt_pair p;

		swap_pd(domain);
		vt_pair_open(&p, &opt);
		assert_ptr_equal(p.a.qp->pd, domain);
		swap_pd(pd);
		mr = vt_mr(pd, p.a.buf, p.a.bytes, IBV_ACCESS_LOCAL_WRITE);
		vt_recv(&p.b, 1);
		vt_wr(&w, IBV_WR_SEND, &p.a, &p.b, 100);
		w.sge.lkey = mr->lkey;
		w.wr.wr_id = 2;
		if (types[i] == IBV_QPT_UD)
			w.wr.wr.ud.ah = ah = vt_ah();
		vt_post(&p.a, &w);
		vt_expect(p.a.cq, 2, IBV_WC_SUCCESS);
		vt_expect(p.b.cq, 1, IBV_WC_SUCCESS);
		if (ah)
			assert_int_equal(ibv_destroy_ah(ah), 0);
		assert_int_equal(ibv_dereg_mr(mr), 0);
		vt_pair_close(&p);
	}
	assert_int_equal(ibv_dealloc_pd(domain), 0);
}

/* --- allocators --- */

static struct {
	struct ibv_pd *pd;
	unsigned allocs, frees;
	bool use_default, fails;
	pthread_t thread;
} lender;

/* "The callback makes sure the allocated buffer is initialized with zeros." */
static void *lend(struct ibv_pd *pd, void *context, size_t size, size_t alignment, uint64_t type)
{
	void *memory = NULL;

	assert_ptr_equal(pd, lender.pd);
	assert_ptr_equal(context, &lender);
	assert_true(size > 0);
	assert_true(alignment > 0 && (alignment & (alignment - 1)) == 0);
	/* "derived from the rdma_driver_id enum (upper 32 bits)": there is no driver. */
	assert_int_equal(type >> 32, 0);
	/* No thread of ours calls functions of theirs. */
	assert_true(pthread_equal(pthread_self(), lender.thread));
	if (lender.fails)
		return NULL;
	if (lender.use_default)
		return IBV_ALLOCATOR_USE_DEFAULT;
	assert_int_equal(posix_memalign(&memory, alignment, size), 0);
	memset(memory, 0, size);
	lender.allocs++;
	return memory;
}

static void take_back(struct ibv_pd *pd, void *context, void *ptr, uint64_t type)
{
	assert_ptr_equal(pd, lender.pd);
	assert_ptr_equal(context, &lender);
	assert_non_null(ptr);
	assert_true(pthread_equal(pthread_self(), lender.thread));
	lender.frees++;
	free(ptr);
}

static struct ibv_pd *lender_alloc(void)
{
	memset(&lender, 0, sizeof(lender));
	lender.thread = pthread_self();
	lender.pd = domain_alloc((struct ibv_parent_domain_init_attr){
		.comp_mask = IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS |
			     IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT,
		.alloc = lend, .free = take_back, .pd_context = &lender });
	return lender.pd;
}

/* "Provider memory allocations will use this function to allocate the needed memory." */
vt_test(queues_lie_in_memory_of_the_domain)
{
	struct ibv_pd *domain = lender_alloc();
	struct ibv_cq_init_attr_ex attr = cq_attr_of(domain);
	struct ibv_pd *pd = swap_pd(domain);
	struct vt_options opt = { .type = IBV_QPT_RC, .cq_attr = &attr };
	struct vt_pair p;

	vt_pair_open(&p, &opt);
	assert_int_equal(lender.allocs, 2 * 3); /* a CQ and two queues of each end */
	assert_int_equal(ibv_resize_cq(p.a.cq, 1000), 0);
	assert_int_equal(lender.allocs, 7);
	assert_int_equal(lender.frees, 1);
	vt_pair_close(&p);
	assert_int_equal(lender.frees, lender.allocs);
	opt.srq = true;
	vt_pair_open(&p, &opt);
	assert_int_equal(lender.allocs, 7 + 6);
	vt_pair_close(&p);
	assert_int_equal(lender.frees, lender.allocs);
	traffic(&opt);
	traffic(&(struct vt_options){ .type = IBV_QPT_UD, .cq_attr = &attr });
	assert_int_equal(lender.frees, lender.allocs);
	swap_pd(pd);
	assert_int_equal(ibv_dealloc_pd(domain), 0);
}

/* "It may also return IBV_ALLOCATOR_USE_DEFAULT": then nothing of it is to be freed by them. */
vt_test(the_default_can_be_asked_for)
{
	struct ibv_pd *domain = lender_alloc();
	struct ibv_cq_init_attr_ex attr = cq_attr_of(domain);
	struct ibv_pd *pd = swap_pd(domain);

	lender.use_default = true;
	traffic(&(struct vt_options){ .type = IBV_QPT_RC, .cq_attr = &attr, .srq = true });
	traffic(&(struct vt_options){ .type = IBV_QPT_UD, .cq_attr = &attr });
	assert_int_equal(lender.frees, 0);
	swap_pd(pd);
	assert_int_equal(ibv_dealloc_pd(domain), 0);
}

/* "or NULL to designate an error" */
vt_test(what_gets_no_memory_is_not_created)
{
	struct ibv_pd *domain = lender_alloc();
	struct ibv_cq_init_attr_ex attr = cq_attr_of(domain);
	struct ibv_srq_init_attr srq_attr = { .attr = { .max_wr = 4, .max_sge = 1 } };
	struct ibv_cq *cq = vt_cq(4, NULL);
	struct ibv_qp_init_attr init = {
		.send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1,
			 .max_recv_sge = 1 } };

	lender.fails = true;
	vt_refused(ENOMEM, ibv_create_qp(domain, &init));
	vt_refused(ENOMEM, ibv_create_srq(domain, &srq_attr));
	vt_refused(ENOMEM, ibv_create_cq_ex(vt.ctx, &attr));
	assert_int_equal(ibv_destroy_cq(cq), 0);
	assert_int_equal(ibv_dealloc_pd(domain), 0);
}

/* --- counters --- */

/* "Counters are cleared upon creation"; what they count is in flow_test.c. */
vt_test(counters_are_there_and_count_nothing)
{
	struct ibv_counters_init_attr attr = { .comp_mask = 0 };
	struct ibv_counter_attach_attr attach = { .counter_desc = IBV_COUNTER_PACKETS };
	struct ibv_counters *counters = vt_made(ibv_create_counters(vt.ctx, &attr));
	uint64_t values[2] = { 5, 6 };

	assert_ptr_equal(counters->context, vt.ctx);
	assert_int_equal(ibv_attach_counters_point_flow(counters, &attach, NULL), 0);
	assert_int_equal(ibv_read_counters(counters, values, 1, 0), 0);
	assert_int_equal(values[0], 0);
	assert_int_equal(values[1], 6);
	assert_int_equal(ibv_read_counters(counters, values, 2,
					   IBV_READ_COUNTERS_ATTR_PREFER_CACHED), 0);
	assert_int_equal(values[1], 0);
	assert_int_equal(ibv_read_counters(counters, values, 2, 1u << 1), EOPNOTSUPP);
	assert_int_equal(ibv_destroy_counters(counters), 0);
	attr.comp_mask = 1;
	vt_refused(EOPNOTSUPP, ibv_create_counters(vt.ctx, &attr));
}

/* --- queries --- */

/* ibv_query_device_ex(3): "used for future extensions"; and what is not there is not claimed. */
vt_test(the_extended_query_is_true)
{
	const uint32_t raw = vt_by_udp() ? 0 : 1u << IBV_QPT_RAW_PACKET;
	struct ibv_query_device_ex_input input = { .comp_mask = 0 };
	struct ibv_device_attr_ex attr, again;

	memset(&attr, 0xff, sizeof(attr));
	memset(&again, 0, sizeof(again));
	assert_int_equal(ibv_query_device_ex(vt.ctx, &input, &attr), 0);
	assert_int_equal(ibv_query_device_ex(vt.ctx, NULL, &again), 0);
	assert_memory_equal(&attr.orig_attr, &again.orig_attr, sizeof(attr.orig_attr));
	for (unsigned bit = 0; bit < 32; bit++) {
		input.comp_mask = 1u << bit;
		assert_int_equal(ibv_query_device_ex(vt.ctx, &input, &again), EINVAL);
	}
	assert_int_equal(attr.comp_mask, 0);
	assert_int_equal(attr.phys_port_cnt_ex, attr.orig_attr.phys_port_cnt);
	/* The flags of old are part of the new. */
	assert_int_equal((uint32_t)attr.device_cap_flags_ex & attr.orig_attr.device_cap_flags,
			 attr.orig_attr.device_cap_flags);
	assert_true(attr.completion_timestamp_mask == UINT64_MAX);
	assert_int_equal(attr.hca_core_clock, 1000000);
	assert_true(attr.cq_mod_caps.max_cq_count > 0);
	assert_int_equal(attr.tso_caps.supported_qpts, raw);
	assert_int_equal(attr.rss_caps.supported_qpts, raw);
	assert_int_equal(attr.max_wq_type_rq > 0, raw > 0);
	assert_int_equal(attr.raw_packet_caps, raw ? 15 : 0);
	assert_int_equal(attr.pci_atomic_caps.fetch_add, 0); /* there is no PCI */
	/* RC has FLUSH and atomic writes as well. */
	assert_int_equal(attr.xrc_odp_caps,
			 attr.odp_caps.per_transport_caps.rc_odp_caps & ~(1u << 6 | 1u << 7));
}

/* ibv_query_port(3): "the applications must create all AH with GRH configured" */
vt_test(the_port_says_that_it_wants_grhs)
{
	struct ibv_ah_attr ah = { .dlid = 1, .port_num = 1 };
	struct ibv_port_attr port;

	memset(&port, 0xff, sizeof(port));
	assert_int_equal(ibv_query_port(vt.ctx, 1, &port), 0);
	assert_int_equal(port.flags, IBV_QPF_GRH_REQUIRED);
	assert_int_equal(port.port_cap_flags2, 0);
	vt_refused(EINVAL, ibv_create_ah(vt.pd, &ah));
}
