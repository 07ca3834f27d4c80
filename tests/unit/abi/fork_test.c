/* SPDX-License-Identifier: BSD-2-Clause */
/* What a forked child may do with its parent's objects, and what the parent notices of it. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/wait.h>

#include "verbs.h"

enum { FINE = 42, CHILD_S = 20 };

/* In a child nothing may be asserted (cmocka would run on): say where it went wrong. */
#define expect(cond)                                                                              \
	do {                                                                                      \
		if (!(cond))                                                                      \
			_exit(__LINE__ % 200 + 43 == FINE ? 1 : __LINE__ % 200 + 43);             \
	} while (0)

/* ThreadSanitizer does not know threads that the child of a threaded process makes. */
#ifdef __SANITIZE_THREAD__
#define NO_THREADS_IN_CHILD 1
#else
#define NO_THREADS_IN_CHILD 0
#endif

static struct ibv_qp *qp[2];
static struct ibv_dm *inherited_dm;

static int run_child(void (*body)(void))
{
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		alarm(CHILD_S);
		body();
		_exit(FINE);
	}
	assert_true(pid > 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static void traffic(void)
{
	memcpy(v.buffer, "ping", 4);
	verbs_post_recv(&v, qp[1], 1, 64, 64);
	verbs_post_send(&v, qp[0], 2, 0, 4, IBV_SEND_SIGNALED);
	verbs_wait(v.cq, IBV_WC_SUCCESS);
	verbs_wait(v.cq, IBV_WC_SUCCESS);
	assert_memory_equal(v.buffer + 64, "ping", 4);
}

static int setup(void **state)
{
	verbs_begin(&v);
	verbs_pair(&v, qp);
	return 0;
}

static int teardown(void **state)
{
	ibv_destroy_qp(qp[0]);
	ibv_destroy_qp(qp[1]);
	verbs_end(&v);
	return 0;
}

#define FORK_TEST(name) TEST_BETWEEN(name, setup, teardown)

static void call_everything(void)
{
	struct ibv_sge sge = { (uintptr_t)v.buffer, 4, v.mr->lkey };
	struct ibv_send_wr send = { .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND };
	struct ibv_recv_wr recv = { .sg_list = &sge, .num_sge = 1 };
	struct ibv_send_wr *bad_send = NULL;
	struct ibv_recv_wr *bad_recv = NULL;
	struct ibv_qp_init_attr init = verbs_init_attr(&v, IBV_QPT_RC);
	struct ibv_async_event event;
	struct ibv_port_attr port;
	struct ibv_qp_attr attr;
	union ibv_gid gid;
	struct ibv_wc wc;

	expect(ibv_poll_cq(v.cq, 1, &wc) < 0);
	expect(ibv_post_send(qp[0], &send, &bad_send) == EIO && bad_send == &send);
	expect(ibv_post_recv(qp[0], &recv, &bad_recv) == EIO && bad_recv == &recv);
	expect(ibv_req_notify_cq(v.cq, 0) == EIO);
	expect(ibv_query_qp(qp[0], &attr, IBV_QP_STATE, &init) == EIO);
	expect(ibv_modify_qp(qp[0], &attr, IBV_QP_STATE) == EIO);
	expect(ibv_query_port(v.context, 1, &port) == EIO);
	expect(ibv_query_gid(v.context, 1, 0, &gid) == -1 && errno == EIO);
	expect(!ibv_alloc_pd(v.context) && errno == EIO);
	expect(!ibv_create_cq(v.context, 1, NULL, NULL, 0) && errno == EIO);
	expect(!ibv_create_comp_channel(v.context) && errno == EIO);
	expect(!ibv_create_qp(v.pd, &init) && errno == EIO);
	expect(!ibv_reg_mr(v.pd, v.buffer, 1, 0) && errno == EIO);
	expect(ibv_resize_cq(v.cq, 4) == EIO);
	expect(ibv_get_async_event(v.context, &event) == -1 && errno == EIO);
}

static void call_all_about_memory(void)
{
	struct ibv_alloc_dm_attr attr = { .length = 64 };
	struct ibv_sge sge = { (uintptr_t)v.buffer, 4, v.mr->lkey };
	char octets[64];

	expect(!ibv_alloc_null_mr(v.pd) && errno == EIO);
	expect(ibv_advise_mr(v.pd, IBV_ADVISE_MR_ADVICE_PREFETCH, 0, &sge, 1) == EIO);
	expect(!ibv_reg_dmabuf_mr(v.pd, 0, 64, 0, 0, 0) && errno == EIO);
	expect(ibv_rereg_mr(v.mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, 0) ==
		       IBV_REREG_MR_ERR_INPUT && errno == EIO);
	expect(!ibv_import_pd(v.context, v.pd->handle) && errno == EIO);
	expect(!ibv_import_mr(v.pd, v.mr->handle) && errno == EIO);
	expect(!ibv_import_dm(v.context, inherited_dm->handle) && errno == EIO);
	/* Its memory is the parent's. */
	expect(ibv_memcpy_to_dm(inherited_dm, 0, octets, 64) == EIO);
	expect(ibv_memcpy_from_dm(octets, inherited_dm, 0, 64) == EIO);
	expect(!ibv_reg_dm_mr(v.pd, inherited_dm, 0, 64, IBV_ACCESS_ZERO_BASED) && errno == EIO);
	expect(ibv_free_dm(inherited_dm) == 0);
	attr.length = SIZE_MAX;
	expect(!ibv_alloc_dm(v.context, &attr) && errno == EINVAL);
}

/* pyverbs' test_multi_process_alloc_dm has its children do that. */
static void use_what_needs_no_nic(void)
{
	struct ibv_alloc_dm_attr attr = { .length = 64 };
	struct ibv_device_attr_ex ex;
	struct ibv_device_attr device;
	struct ibv_dm *dm;
	char octets[8] = "";

	expect(ibv_query_device(v.context, &device) == 0 && device.max_qp > 0);
	expect(ibv_query_device_ex(v.context, NULL, &ex) == 0 && ex.max_dm_size >= 64);
	dm = ibv_alloc_dm(v.context, &attr);
	expect(dm);
	expect(ibv_memcpy_to_dm(dm, 8, "of child", 8) == 0);
	expect(ibv_memcpy_from_dm(octets, dm, 8, 8) == 0 && !memcmp(octets, "of child", 8));
	expect(ibv_memcpy_from_dm(octets, dm, 60, 8) == EFAULT);
	expect(!ibv_reg_dm_mr(v.pd, dm, 0, 64, IBV_ACCESS_ZERO_BASED) && errno == EIO);
	expect(ibv_free_dm(dm) == 0);
}

static void destroy_everything(void)
{
	expect(ibv_destroy_qp(qp[0]) == 0);
	expect(ibv_destroy_qp(qp[1]) == 0);
	expect(ibv_dereg_mr(v.mr) == 0);
	expect(ibv_destroy_cq(v.cq) == 0);
	expect(ibv_dealloc_pd(v.pd) == 0);
	expect(ibv_close_device(v.context) == 0);
}

static struct {
	struct ibv_td *td;
	struct ibv_pd *domain;
	struct ibv_counters *counters;
	struct ibv_cq_ex *cq;
} inherited;

static void call_all_about_domains(void)
{
	struct ibv_modify_cq_attr modify = { .attr_mask = IBV_CQ_ATTR_MODERATE };
	struct ibv_parent_domain_init_attr parent = { .pd = v.pd };
	struct ibv_values_ex values = { .comp_mask = IBV_VALUES_MASK_RAW_CLOCK };
	struct ibv_cq_init_attr_ex cq = { .cqe = 1 };
	struct ibv_counters_init_attr counters = { .comp_mask = 0 };
	struct ibv_td_init_attr td = { .comp_mask = 0 };
	struct ibv_poll_cq_attr poll = { .comp_mask = 0 };
	uint64_t value;

	expect(!ibv_alloc_td(v.context, &td) && errno == EIO);
	expect(!ibv_alloc_parent_domain(v.context, &parent) && errno == EIO);
	expect(!ibv_create_cq_ex(v.context, &cq) && errno == EIO);
	expect(!ibv_create_counters(v.context, &counters) && errno == EIO);
	expect(ibv_start_poll(inherited.cq, &poll) == EIO);
	expect(ibv_modify_cq(ibv_cq_ex_to_cq(inherited.cq), &modify) == EIO);
	expect(ibv_read_counters(inherited.counters, &value, 1, 0) == EIO);
	expect(ibv_query_rt_values_ex(v.context, &values) == EIO);
	expect(ibv_destroy_cq(ibv_cq_ex_to_cq(inherited.cq)) == 0);
	expect(ibv_destroy_counters(inherited.counters) == 0);
	expect(ibv_dealloc_pd(inherited.domain) == 0);
	expect(ibv_dealloc_td(inherited.td) == 0);
}

FORK_TEST(inherited_domains_are_dead)
{
	struct ibv_counters_init_attr counters = { .comp_mask = 0 };
	struct ibv_parent_domain_init_attr parent = { .pd = v.pd };
	struct ibv_td_init_attr td = { .comp_mask = 0 };
	struct ibv_cq_init_attr_ex cq = { .cqe = 1, .comp_mask = IBV_CQ_INIT_ATTR_MASK_PD };

	inherited.td = ibv_alloc_td(v.context, &td);
	assert_non_null(inherited.td);
	parent.td = inherited.td;
	inherited.domain = ibv_alloc_parent_domain(v.context, &parent);
	assert_non_null(inherited.domain);
	cq.parent_domain = inherited.domain;
	inherited.cq = ibv_create_cq_ex(v.context, &cq);
	assert_non_null(inherited.cq);
	inherited.counters = ibv_create_counters(v.context, &counters);
	assert_non_null(inherited.counters);
	assert_int_equal(run_child(call_all_about_domains), FINE);
	assert_int_equal(ibv_destroy_counters(inherited.counters), 0);
	assert_int_equal(ibv_destroy_cq(ibv_cq_ex_to_cq(inherited.cq)), 0);
	assert_int_equal(ibv_dealloc_pd(inherited.domain), 0);
	assert_int_equal(ibv_dealloc_td(inherited.td), 0);
	traffic();
}

FORK_TEST(inherited_objects_fail)
{
	assert_int_equal(run_child(call_everything), FINE);
	traffic();
}

FORK_TEST(device_memory_is_the_parents)
{
	struct ibv_alloc_dm_attr attr = { .length = 64 };
	char octets[8] = "";

	inherited_dm = ibv_alloc_dm(v.context, &attr);
	assert_non_null(inherited_dm);
	assert_int_equal(ibv_memcpy_to_dm(inherited_dm, 0, "parent's", 8), 0);
	assert_int_equal(run_child(call_all_about_memory), FINE);
	assert_int_equal(run_child(use_what_needs_no_nic), FINE);
	assert_int_equal(ibv_memcpy_from_dm(octets, inherited_dm, 0, 8), 0);
	assert_memory_equal(octets, "parent's", 8);
	assert_int_equal(ibv_free_dm(inherited_dm), 0);
	traffic();
}

FORK_TEST(destroying_inherited_objects_does_nothing)
{
	assert_int_equal(run_child(destroy_everything), FINE);
	traffic();
}

/* The whole test again, in the child, with a NIC of its own. */
static void open_anew(void)
{
	uint32_t parents = qp[0]->qp_num;

	setup(NULL);
	/* Another slot: the upper 10 of the 24 bits. */
	expect(parents >> 14 != qp[0]->qp_num >> 14);
	traffic();
	teardown(NULL);
}

FORK_TEST(a_child_may_open_the_device)
{
	if (NO_THREADS_IN_CHILD)
		SKIP("a sanitizer allows no thread in a child");
	assert_int_equal(run_child(open_anew), FINE);
	traffic();
}

static void open_in_grandchild(void)
{
	expect(run_child(open_anew) == FINE);
	setup(NULL);
	traffic();
}

FORK_TEST(a_grandchild_may_as_well)
{
	if (NO_THREADS_IN_CHILD)
		SKIP("a sanitizer allows no thread in a child");
	assert_int_equal(run_child(open_in_grandchild), FINE);
	traffic();
}

/* --- while other threads are inside the library --- */

static _Atomic bool stop;

static void *poll_on(void *arg)
{
	struct ibv_wc wc;

	while (!stop) {
		if (ibv_poll_cq(v.cq, 1, &wc) < 0)
			break;
	}
	return NULL;
}

static void *open_and_close(void *arg)
{
	while (!stop)
		ibv_close_device(verbs_open());
	return NULL;
}

FORK_TEST(locks_of_other_threads_do_not_matter)
{
	pthread_t poller, opener;

	stop = false;
	assert_int_equal(pthread_create(&poller, NULL, poll_on, NULL), 0);
	assert_int_equal(pthread_create(&opener, NULL, open_and_close, NULL), 0);
	for (int i = 0; i < 20; i++)
		assert_int_equal(run_child(i % 2 ? call_everything : destroy_everything), FINE);
	stop = true;
	pthread_join(poller, NULL);
	pthread_join(opener, NULL);
	traffic();
}

/* test_fork of pyverbs: after fork_init, ENABLED or UNNEEDED. */
TEST(fork_needs_no_preparation)
{
	assert_int_equal(ibv_fork_init(), 0);
	assert_int_equal(ibv_is_fork_initialized(), IBV_FORK_UNNEEDED);
}

FORK_TEST(descriptors_are_closed_on_exec)
{
	struct ibv_comp_channel *channel = ibv_create_comp_channel(v.context);

	assert_true(fcntl(v.context->async_fd, F_GETFD) & FD_CLOEXEC);
	assert_true(fcntl(v.context->cmd_fd, F_GETFD) & FD_CLOEXEC);
	assert_true(fcntl(channel->fd, F_GETFD) & FD_CLOEXEC);
	ibv_destroy_comp_channel(channel);
}
