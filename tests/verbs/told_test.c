/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the log says of errors that beginners make: for each, one line that names the function or
 * the work request, the QPN, the field, its value, the limit, and where in the program it was.
 */
#include "told.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <unistd.h>

/* Where the line before the macro's is. A call that is cut up has its first line. */
#define HERE text("at told_test.c:%d in ", __LINE__ - 1)
#define POSTED(line) text("posted at told_test.c:%d in ", line)

static const char *modify_of(const struct ibv_qp *qp, const char *transition)
{
	return text("ibv_modify_qp(QPN 0x%x, %s): ", qp->qp_num, transition);
}

/* --- calls that are refused --- */

vt_end_test(a_gid_index_that_is_empty)
{
	struct ibv_qp_attr attr;
	int mask = vt_attr(&attr, &end->opt, IBV_QPS_RTR, end->qp->qp_num);

	vt_climb(end->qp, &end->opt, IBV_QPS_INIT, 0);
	free(log_news());
	attr.ah_attr.grh.sgid_index = 77;
	assert_int_equal(ibv_modify_qp(end->qp, &attr, mask), EINVAL);
	logged(modify_of(end->qp, "INIT->RTR"), "sgid_index 77 is empty; the table has ", "EINVAL",
	       text("at told_test.c:%d in ", __LINE__ - 2), NULL);
}

vt_end_test(a_bit_of_the_mask_that_is_missing)
{
	struct ibv_qp_attr attr;
	int mask = vt_attr(&attr, &end->opt, IBV_QPS_RTR, end->qp->qp_num);

	vt_climb(end->qp, &end->opt, IBV_QPS_INIT, 0);
	mask &= ~(IBV_QP_MIN_RNR_TIMER | IBV_QP_RQ_PSN);
	assert_int_equal(ibv_modify_qp(end->qp, &attr, mask), EINVAL);
	logged(modify_of(end->qp, "INIT->RTR"),
	       "attr_mask lacks IBV_QP_RQ_PSN | IBV_QP_MIN_RNR_TIMER", NULL);
}

vt_end_test(a_port_that_is_not_there, .in_reset = true)
{
	struct ibv_qp_attr attr;
	int mask = vt_attr(&attr, &end->opt, IBV_QPS_INIT, 0);

	attr.port_num = 2;
	assert_int_equal(ibv_modify_qp(end->qp, &attr, mask), EINVAL);
	logged(modify_of(end->qp, "RESET->INIT"), "port_num is 2; it may be 1 to 1", NULL);
}

vt_end_test(a_transition_that_there_is_not)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RTS };

	vt_climb(end->qp, &end->opt, IBV_QPS_INIT, 0);
	assert_int_equal(ibv_modify_qp(end->qp, &attr, IBV_QP_STATE), EINVAL);
	logged(modify_of(end->qp, "INIT->RTS"),
	       "there is no such transition; from INIT it goes to: ", "RTR", NULL);
}

vt_end_test(a_send_to_a_qp_that_is_not_in_rts)
{
	struct vt_wr w;

	vt_climb(end->qp, &end->opt, IBV_QPS_INIT, 0);
	vt_wr(&w, IBV_WR_SEND, end, end, 8);
	w.wr.wr_id = 0x1234;
	assert_int_equal(vt_try(end, &w), EINVAL);
	logged(text("ibv_post_send(QPN 0x%x, wr_id 0x1234): ", end->qp->qp_num),
	       "the QP is in INIT; sends may be posted from RTS on", "at lib.c:", NULL);
}

vt_pair_test(more_sges_than_the_qp_has, .sge = 2)
{
	struct ibv_send_wr *bad;
	struct vt_wr w;

	vt_wr(&w, IBV_WR_SEND, &p->a, &p->b, 8);
	w.wr.num_sge = 5;
	assert_int_equal(ibv_post_send(p->a.qp, &w.wr, &bad), EINVAL);
	logged(text("ibv_post_send(QPN 0x%x, wr_id ", p->a.qp->qp_num),
	       "num_sge is 5; the QP was made for max_send_sge 2", "at told_test.c:", NULL);
}

vt_pair_test(a_send_queue_that_is_full, .send_wr = 4)
{
	struct ibv_send_wr *bad;
	struct vt_wr w;
	int rc;

	vt_wr(&w, IBV_WR_RDMA_WRITE, &p->a, &p->b, 8);
	do
		rc = ibv_post_send(p->a.qp, &w.wr, &bad);
	while (rc == 0);
	assert_int_equal(rc, ENOMEM);
	logged(text("ibv_post_send(QPN 0x%x, wr_id ", p->a.qp->qp_num),
	       "the send queue is full", "(max_send_wr)", NULL);
}

vt_pair_test(inline_data_that_is_too_long, .inline_bytes = 32)
{
	struct vt_wr w;

	vt_wr(&w, IBV_WR_SEND, &p->a, &p->b, 4096);
	w.wr.send_flags |= IBV_SEND_INLINE;
	assert_int_not_equal(vt_try(&p->a, &w), 0);
	logged(text("ibv_post_send(QPN 0x%x, wr_id ", p->a.qp->qp_num),
	       "IBV_SEND_INLINE with 4096 octets; the QP was made for max_inline_data ", NULL);
}

vt_test(a_builder_without_the_operation)
{
	struct ibv_cq *cq = vt_cq(4, NULL);
	struct ibv_qp_init_attr_ex attr = {
		.send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_RC, .pd = vt.pd,
		.cap = { .max_send_wr = 4, .max_send_sge = 1 },
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.send_ops_flags = IBV_QP_EX_WITH_SEND,
	};
	struct ibv_qp *qp = vt_made(ibv_create_qp_ex(vt.ctx, &attr));
	struct ibv_qp_ex *ex = ibv_qp_to_qp_ex(qp);

	ibv_wr_start(ex);
	ibv_wr_send(ex);
	ibv_wr_rdma_write(ex, 1, 2);
	assert_int_equal(ibv_wr_complete(ex), EINVAL);
	logged(text("ibv_wr_complete(QPN 0x%x, request 2 of the batch): ", qp->qp_num),
	       "the QP was created without this operation (send_ops_flags)",
	       text("at told_test.c:%d in ", __LINE__ - 3), NULL);
	assert_int_equal(ibv_destroy_qp(qp), 0);
	assert_int_equal(ibv_destroy_cq(cq), 0);
}

vt_pair_test(a_receive_queue_that_is_full, .recv_wr = 4)
{
	int rc;

	do
		rc = vt_recv_at(&p->a, 5, 0, 8);
	while (rc == 0);
	assert_int_equal(rc, ENOMEM);
	logged(text("ibv_post_recv(QPN 0x%x, wr_id 0x5): ", p->a.qp->qp_num),
	       "the receive queue is full: max_recv_wr is ", NULL);
}

vt_test(a_cq_without_entries)
{
	vt_refused(EINVAL, ibv_create_cq(vt.ctx, 0, NULL, NULL, 0));
	logged("ibv_create_cq(): cqe is 0; a CQ holds 1 to ", HERE, NULL);
	vt_refused(EINVAL, ibv_create_cq(vt.ctx, 16, NULL, NULL, 99));
	logged("ibv_create_cq(): comp_vector is 99; vectors are 0 to ", HERE, NULL);
}

vt_test(access_flags_that_do_not_fit)
{
	char memory[64];

	vt_refused(EINVAL, ibv_reg_mr(vt.pd, memory, sizeof(memory), IBV_ACCESS_REMOTE_WRITE));
	logged("ibv_reg_mr", "IBV_ACCESS_REMOTE_WRITE needs IBV_ACCESS_LOCAL_WRITE beside it",
	       text("at told_test.c:%d in ", __LINE__ - 2), NULL);
}

vt_test(memory_that_is_not_mapped)
{
	vt_refused(EFAULT, ibv_reg_mr(vt.pd, (void *)4096, 64, IBV_ACCESS_LOCAL_WRITE));
	logged("ibv_reg_mr", "the 64 octets at 0x1000 are not all mapped and writable", HERE, NULL);
}

vt_test(a_qp_that_is_too_large)
{
	struct ibv_cq *cq = vt_cq(4, NULL);
	struct ibv_qp_init_attr attr = {
		.send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = 1u << 30, .max_recv_wr = 1, .max_send_sge = 1,
			 .max_recv_sge = 1 },
	};

	vt_refused(EINVAL, ibv_create_qp(vt.pd, &attr));
	logged("ibv_create_qp(): max_send_wr is 1073741824; it may be at most ", HERE, NULL);
	attr.cap.max_send_wr = 1;
	attr.cap.max_recv_sge = 999;
	vt_refused(EINVAL, ibv_create_qp(vt.pd, &attr));
	logged("ibv_create_qp(): max_recv_sge is 999; it may be at most ", HERE, NULL);
	assert_int_equal(ibv_destroy_cq(cq), 0);
}

vt_test(a_pd_that_is_in_use)
{
	char memory[64];
	struct ibv_pd *pd = vt_made(ibv_alloc_pd(vt.ctx));
	struct ibv_mr *mr = vt_mr(pd, memory, sizeof(memory), 0);

	assert_int_equal(ibv_dealloc_pd(pd), EBUSY);
	logged("ibv_dealloc_pd(): regions, windows, QPs, SRQs or AHs still use the PD", NULL);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	assert_int_equal(ibv_dealloc_pd(pd), 0);
}

/* Taking its address makes a function of its own of an inline verb, as compilers without -O do. */
vt_pair_test(a_verb_that_is_not_inlined, .type = IBV_QPT_RC)
{
	int (*volatile post)(struct ibv_qp *, struct ibv_send_wr *, struct ibv_send_wr **) =
		ibv_post_send;
	struct ibv_send_wr *bad;
	struct vt_wr w;
	int line;

	vt_wr(&w, IBV_WR_RDMA_WRITE, &p->a, &p->b, 8);
	w.wr.num_sge = 999;
	assert_int_equal(post(p->a.qp, &w.wr, &bad), EINVAL);
	logged("ibv_post_send(", "num_sge is 999", HERE, NULL);
	w.wr.num_sge = 1;
	w.sge.lkey ^= 0x80000000;
	line = __LINE__ + 1;
	assert_int_equal(post(p->a.qp, &w.wr, &bad), 0);
	vt_expect(p->a.cq, w.wr.wr_id, IBV_WC_LOC_PROT_ERR);
	logged("IBV_WC_LOC_PROT_ERR", POSTED(line), NULL);
}

vt_test(an_srq_that_is_too_large)
{
	struct ibv_srq_init_attr attr = {.attr = {.max_wr = 1u << 30, .max_sge = 1}};
	struct ibv_srq_init_attr_ex ex = {.comp_mask = IBV_SRQ_INIT_ATTR_TYPE, .srq_type = 9};

	vt_refused(EINVAL, ibv_create_srq(vt.pd, &attr));
	logged("ibv_create_srq(): max_wr is 1073741824 and max_sge 1; they may be at most ", HERE,
	       NULL);
	vt_refused(EINVAL, ibv_create_srq_ex(vt.ctx, &ex));
	logged("ibv_create_srq_ex(): srq_type is 9", HERE, NULL);
}

vt_test(a_receive_that_an_srq_does_not_take)
{
	struct ibv_srq_init_attr attr = {.attr = {.max_wr = 4, .max_sge = 1}};
	struct ibv_srq *srq = vt_made(ibv_create_srq(vt.pd, &attr));
	struct ibv_recv_wr *bad, wr = {.wr_id = 6, .num_sge = 30};
	struct ibv_srq_attr larger = {.max_wr = 1u << 30};

	assert_int_equal(ibv_post_srq_recv(srq, &wr, &bad), EINVAL);
	logged(text("ibv_post_srq_recv(SRQ %u, wr_id 0x6): ", srq->handle),
	       "num_sge is 30; the SRQ was made for max_sge 1", NULL);
	assert_int_equal(ibv_modify_srq(srq, &larger, IBV_SRQ_MAX_WR), EINVAL);
	logged("ibv_modify_srq(): max_wr is 1073741824; it may be 1 to ", NULL);
	assert_int_equal(ibv_destroy_srq(srq), 0);
	assert_int_equal(ibv_destroy_srq(srq), ENOENT);
	logged("ibv_destroy_srq(): there is no such object at ", NULL);
}

vt_pair_test(a_datagram_without_an_address, .type = IBV_QPT_UD)
{
	struct vt_wr w;

	vt_wr(&w, IBV_WR_SEND, &p->a, &p->b, 8);
	w.wr.wr.ud.ah = NULL;
	assert_int_equal(vt_try(&p->a, &w), EINVAL);
	logged("ibv_post_send(", "wr.ud.ah is NULL", NULL);
}

vt_test(more_sges_than_a_builder_has)
{
	struct ibv_cq *cq = vt_cq(4, NULL);
	struct ibv_qp_init_attr_ex attr = {
		.send_cq = cq,
		.recv_cq = cq,
		.qp_type = IBV_QPT_RC,
		.pd = vt.pd,
		.cap = {.max_send_wr = 4, .max_send_sge = 1},
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.send_ops_flags = IBV_QP_EX_WITH_SEND,
	};
	struct ibv_qp *qp = vt_made(ibv_create_qp_ex(vt.ctx, &attr));
	struct ibv_qp_ex *ex = ibv_qp_to_qp_ex(qp);
	struct ibv_sge sges[40] = {{0}};

	ibv_wr_start(ex);
	ibv_wr_send(ex);
	ibv_wr_set_sge_list(ex, 40, sges);
	ibv_wr_rdma_write(ex, 1, 2); /* does not count: the first refusal does */
	assert_int_equal(ibv_wr_complete(ex), EINVAL);
	logged(text("ibv_wr_complete(QPN 0x%x, request 1 of the batch): more SGEs", qp->qp_num),
	       NULL);
	assert_int_equal(ibv_destroy_qp(qp), 0);
	attr.send_ops_flags = UINT64_MAX;
	vt_refused(EOPNOTSUPP, ibv_create_qp_ex(vt.ctx, &attr));
	logged("ibv_create_qp_ex(): send_ops_flags 0xffffffffffffffff: ", NULL);
	assert_int_equal(ibv_destroy_cq(cq), 0);
}

vt_test(queues_tables_and_imports_that_do_not_fit)
{
	struct ibv_wq_init_attr attr = { .wq_type = IBV_WQT_RQ, .max_wr = 8, .max_sge = 1,
					 .pd = vt.pd };
	struct ibv_rwq_ind_table_init_attr table = { .log_ind_tbl_size = 3 };

	free(log_news());
	vt_refused(EINVAL, ibv_import_pd(vt.ctx, 4711));
	logged("ibv_import_pd(): there is no PD of handle 4711 (EINVAL, at told_test.c:", NULL);
	vt_refused(EINVAL, ibv_import_mr(vt.pd, 4711));
	logged("ibv_import_mr(): there is no region of handle 4711", NULL);
	vt_refused(EINVAL, ibv_import_dm(vt.ctx, 1));
	logged("ibv_import_dm(): there is no device memory of handle 1", NULL);
	if (vt_by_udp()) /* and has no Ethernet segment */
		return;
	vt_refused(EINVAL, ibv_create_wq(vt.ctx, &attr));
	logged("ibv_create_wq(): cq is NULL", NULL);
	attr.max_wr = 0;
	vt_refused(EINVAL, ibv_create_wq(vt.ctx, &attr));
	logged("ibv_create_wq(): max_wr is 0 and max_sge 1; they may be 1 to ", NULL);
	vt_refused(EINVAL, ibv_create_rwq_ind_table(vt.ctx, &table));
	logged("ibv_create_rwq_ind_table(): ind_tbl is NULL", NULL);
}

vt_end_test(flows_that_do_not_fit)
{
	struct {
		struct ibv_flow_attr attr;
		struct ibv_flow_spec_eth eth;
	} rule = {
		{ .type = IBV_FLOW_ATTR_NORMAL, .size = sizeof(rule), .num_of_specs = 1,
		  .port = 1 },
		{ .type = 0x1f, .size = sizeof(rule.eth) },
	};

	free(log_news());
	vt_refused(EINVAL, ibv_create_flow(end->qp, &rule.attr));
	logged("ibv_create_flow(): spec 0, of type 0x1f", NULL);
	rule.attr.port = 9;
	vt_refused(EINVAL, ibv_create_flow(end->qp, &rule.attr));
	logged("ibv_create_flow(): port is 9; it may be 1 to 1", NULL);
	rule.attr.port = 1;
	rule.attr.num_of_specs = 0;
	vt_refused(EINVAL, ibv_create_flow(end->qp, &rule.attr));
	logged("ibv_create_flow(): the QP is of type RC", NULL);
}

vt_test(what_is_still_in_use)
{
	struct ibv_comp_channel *channel = vt_made(ibv_create_comp_channel(vt.ctx));
	struct ibv_cq *cq = vt_made(ibv_create_cq(vt.ctx, 4, NULL, channel, 0));

	assert_int_equal(ibv_destroy_comp_channel(channel), EBUSY);
	logged("ibv_destroy_comp_channel(): CQs still use the channel", HERE, NULL);
	assert_int_equal(ibv_resize_cq(cq, 0), EINVAL);
	logged("ibv_resize_cq(): cqe is 0; a CQ holds 1 to ", NULL);
	assert_int_equal(ibv_destroy_cq(cq), 0);
	assert_int_equal(ibv_destroy_comp_channel(channel), 0);
}

/* --- a log in difficult surroundings --- */

static atomic_bool ends;

/* Others read all of it from the start. */
static void log_begin_anew(void)
{
	assert_int_equal(truncate(log_name, 0), 0);
	seen = 0;
}

static void *fails(void *unused)
{
	while (!atomic_load(&ends))
		assert_null(ibv_create_cq(vt.ctx, 0, NULL, NULL, 0));
	return NULL;
}

/* Other threads compose explanations then, under locks that the child inherits. */
vt_test(a_fork_while_others_fail)
{
	pthread_t threads[3];

	atomic_store(&ends, false);
	for (int i = 0; i < 3; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, fails, NULL), 0);
	for (int i = 0; i < 50; i++) {
		pid_t child = fork();
		int status;

		if (!child) {
			alarm(VT_WAIT_MS / 1000);
			_exit(ibv_create_cq(vt.ctx, 4, NULL, NULL, 0) != NULL);
		}
		assert_int_equal(waitpid(child, &status, 0), child);
		assert_int_equal(status, 0);
	}
	atomic_store(&ends, true);
	for (int i = 0; i < 3; i++)
		assert_int_equal(pthread_join(threads[i], NULL), 0);
	log_begin_anew();
}

static void *fails_until_cancelled(void *unused)
{
	while (true) {
		assert_null(ibv_create_cq(vt.ctx, 0, NULL, NULL, 0));
		pthread_testcancel();
	}
	return NULL;
}

/* It may not leave with a lock. */
vt_test(a_thread_that_is_cancelled_while_it_fails)
{
	for (int i = 0; i < 100; i++) {
		pthread_t thread;

		assert_int_equal(pthread_create(&thread, NULL, fails_until_cancelled, NULL), 0);
		vt_sleep_ms(i % 4);
		assert_int_equal(pthread_cancel(thread), 0);
		assert_int_equal(pthread_join(thread, NULL), 0);
	}
	log_begin_anew();
	vt_refused(EINVAL, ibv_create_cq(vt.ctx, 0, NULL, NULL, 0));
	logged("ibv_create_cq(): cqe is 0", NULL);
}

/* Our own program, whose log goes to a pipe that nobody reads. */
vt_test(a_log_that_nobody_reads)
{
	int ends_of[2], status;
	pid_t child;

	assert_int_equal(pipe(ends_of), 0);
	child = fork();
	if (!child) {
		dup2(ends_of[1], STDERR_FILENO);
		close(ends_of[0]);
		close(ends_of[1]);
		signal(SIGPIPE, SIG_DFL);
		execl("/proc/self/exe", "unread", "unread", NULL);
		_exit(2);
	}
	close(ends_of[0]);
	close(ends_of[1]);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
}

static int unread(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *ctx = list && list[0] ? ibv_open_device(list[0]) : NULL;

	if (!ctx || ibv_create_cq(ctx, 0, NULL, NULL, 0) || ibv_close_device(ctx))
		return 1;
	ibv_free_device_list(list);
	return 0;
}

/* --- requests that fail --- */

vt_pair_test(an_atomic_of_four_octets, .type = IBV_QPT_RC)
{
	struct vt_wr w;

	vt_wr(&w, IBV_WR_ATOMIC_FETCH_AND_ADD, &p->a, &p->b, 4);
	vt_post(&p->a, &w);
	vt_expect(p->a.cq, w.wr.wr_id, IBV_WC_LOC_LEN_ERR);
	logged("atomic fetch and add (wr_id ", "4 octets", "vendor_err 0x61",
	       "its SGEs have 4 octets, and an atomic has 8", NULL);
}

vt_pair_test(a_datagram_that_is_too_long, .type = IBV_QPT_UD, .bytes = 16384)
{
	struct vt_wr w;

	vt_wr(&w, IBV_WR_SEND, &p->a, &p->b, 9000);
	vt_post(&p->a, &w);
	vt_expect(p->a.cq, w.wr.wr_id, IBV_WC_LOC_LEN_ERR);
	logged("SEND (wr_id ", "9000 octets are more than the path MTU, ", NULL);
}

/* A WRITE of a to b's buffer, changed by the caller. It fails at both ends, and both say why. */
static void write_fails(struct vt_pair *p, struct vt_wr *w, const char *why)
{
	struct ibv_send_wr *bad;
	struct ibv_wc wc;
	int line = __LINE__ + 1;
	assert_int_equal(ibv_post_send(p->a.qp, &w->wr, &bad), 0);
	wc = vt_expect(p->a.cq, w->wr.wr_id, IBV_WC_REM_ACCESS_ERR);
	assert_int_not_equal(wc.vendor_err, 0);
	logged(text("QPN 0x%x refused a RDMA WRITE of its peer's, QPN 0x%x at ", p->b.qp->qp_num,
		    p->a.qp->qp_num),
	       why, NULL);
	seen = 0;
	logged(text("QPN 0x%x to QPN 0x%x at ", p->a.qp->qp_num, p->b.qp->qp_num),
	       "IBV_WC_REM_ACCESS_ERR", text("RDMA WRITE (wr_id 0x%lx", (long)w->wr.wr_id),
	       POSTED(line), text("vendor_err 0x%02x", wc.vendor_err),
	       vt_by_udp() ? "NAK: remote access error" : why, NULL);
}

vt_pair_test(an_rkey_of_nothing, .type = IBV_QPT_RC)
{
	struct vt_wr w;

	vt_wr(&w, IBV_WR_RDMA_WRITE, &p->a, &p->b, 64);
	w.wr.wr.rdma.rkey ^= 0x80000000;
	write_fails(p, &w, text("no region has rkey 0x%x", w.wr.wr.rdma.rkey));
}

vt_pair_test(a_right_that_the_region_does_not_grant,
	     .mr_access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ)
{
	struct vt_wr w;

	vt_wr(&w, IBV_WR_RDMA_WRITE, &p->a, &p->b, 64);
	write_fails(p, &w,
		    "was registered with IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ, so "
		    "without IBV_ACCESS_REMOTE_WRITE");
}

vt_pair_test(octets_beyond_the_region, .bytes = 8192)
{
	struct vt_wr w;

	vt_wr(&w, IBV_WR_RDMA_WRITE, &p->a, &p->b, 64);
	w.wr.wr.rdma.remote_addr += 8192 - 40;
	write_fails(p, &w, text("64 octets at 0x%lx pass the end of the region of rkey 0x%x by 24",
				(long)w.wr.wr.rdma.remote_addr, w.wr.wr.rdma.rkey));
}

vt_pair_test(an_lkey_of_nothing, .type = IBV_QPT_RC)
{
	struct vt_wr w;

	vt_wr(&w, IBV_WR_SEND, &p->a, &p->b, 64);
	w.sge.lkey ^= 0x80000000;
	vt_recv(&p->b, 1);
	vt_post(&p->a, &w);
	assert_int_equal(vt_expect(p->a.cq, w.wr.wr_id, IBV_WC_LOC_PROT_ERR).vendor_err, 0x31);
	logged(text("QPN 0x%x to QPN 0x%x", p->a.qp->qp_num, p->b.qp->qp_num),
	       "SEND (wr_id ", "IBV_WC_LOC_PROT_ERR", "vendor_err 0x31", "posted at lib.c:",
	       text("no region has sg_list[0].lkey 0x%x", w.sge.lkey), NULL);
}

vt_pair_test(a_receive_that_is_too_short, .type = IBV_QPT_RC)
{
	struct vt_wr w;

	assert_int_equal(vt_recv_at(&p->b, 9, 0, 16), 0);
	vt_wr(&w, IBV_WR_SEND, &p->a, &p->b, 64);
	vt_post(&p->a, &w);
	assert_int_equal(vt_expect(p->b.cq, 9, IBV_WC_LOC_LEN_ERR).vendor_err, 0x54);
	logged(text("QPN 0x%x refused a SEND of its peer's, QPN 0x%x", p->b.qp->qp_num,
		    p->a.qp->qp_num),
	       "the message is longer than the receive request (wr_id 0x9), which has room for 16 "
	       "octets", NULL);
	assert_int_equal(vt_expect(p->a.cq, w.wr.wr_id, IBV_WC_REM_INV_REQ_ERR).vendor_err, 0x20);
	seen = 0;
	logged(text("QPN 0x%x to QPN 0x%x", p->a.qp->qp_num, p->b.qp->qp_num),
	       "IBV_WC_REM_INV_REQ_ERR", "is its receive large enough", NULL);
}

vt_pair_test(no_receive_at_all, .rnr_retry = 2)
{
	struct vt_wr w;

	vt_wr(&w, IBV_WR_SEND, &p->a, &p->b, 8);
	vt_post(&p->a, &w);
	assert_int_equal(vt_expect(p->a.cq, w.wr.wr_id, IBV_WC_RNR_RETRY_EXC_ERR).vendor_err, 0x12);
	logged(text("QPN 0x%x to QPN 0x%x", p->a.qp->qp_num, p->b.qp->qp_num),
	       "IBV_WC_RNR_RETRY_EXC_ERR", "rnr_retry 2 is used up", "post receives before", NULL);
}

vt_end_test(a_peer_that_there_is_not, .timeout = 8, .retry_cnt = 1)
{
	uint32_t nobody = end->qp->qp_num ^ 0x40;
	struct vt_wr w;

	vt_climb(end->qp, &end->opt, IBV_QPS_RTS, nobody);
	vt_wr(&w, IBV_WR_RDMA_WRITE, end, end, 8);
	vt_post(end, &w);
	assert_int_equal(vt_expect(end->cq, w.wr.wr_id, IBV_WC_RETRY_EXC_ERR).vendor_err, 0x10);
	logged(text("QPN 0x%x to QPN 0x%x at ", end->qp->qp_num, nobody), "IBV_WC_RETRY_EXC_ERR",
	       "no acknowledgement of PSN ", "(timeout 8, retry_cnt 1)", NULL);
}

vt_pair_test(a_right_that_the_qp_does_not_grant, .qp_access = IBV_ACCESS_REMOTE_READ)
{
	struct vt_wr w;

	vt_wr(&w, IBV_WR_RDMA_WRITE, &p->a, &p->b, 64);
	vt_post(&p->a, &w);
	vt_expect(p->a.cq, w.wr.wr_id, IBV_WC_REM_ACCESS_ERR);
	logged(text("QPN 0x%x refused a RDMA WRITE", p->b.qp->qp_num),
	       "qp_access_flags of this QP are without IBV_ACCESS_REMOTE_WRITE", NULL);
	/* The requester cannot know which of the reasons it is, and says none that is not so. */
	seen = 0;
	logged(text("QPN 0x%x to QPN 0x%x", p->a.qp->qp_num, p->b.qp->qp_num), "vendor_err 0x21",
	       "qp_access_flags", NULL);
}

vt_pair_test(what_waits_behind_a_failure, .type = IBV_QPT_RC)
{
	struct vt_wr w;

	vt_recv(&p->a, 7);
	assert_int_equal(vt_modify(p->a.qp, IBV_QPS_ERR), 0);
	assert_int_equal(vt_expect(p->a.cq, 7, IBV_WC_WR_FLUSH_ERR).vendor_err, 0x01);
	logged(text("QPN 0x%x: 1 receive requests flushed", p->a.qp->qp_num), NULL);
	vt_wr(&w, IBV_WR_SEND, &p->a, &p->b, 8);
	vt_post(&p->a, &w);
	assert_int_equal(vt_expect(p->a.cq, w.wr.wr_id, IBV_WC_WR_FLUSH_ERR).vendor_err, 0x01);
}

vt_pair_test(a_receive_whose_memory_is_no_more_registered, .type = IBV_QPT_RC)
{
	struct ibv_sge sge = { .addr = (uintptr_t)p->b.buf, .length = 64,
			       .lkey = p->b.mr->lkey ^ 0x80000000 };
	struct ibv_recv_wr *bad, wr = { .wr_id = 3, .sg_list = &sge, .num_sge = 1 };
	struct vt_wr w;

	assert_int_equal(ibv_post_recv(p->b.qp, &wr, &bad), 0);
	vt_wr(&w, IBV_WR_SEND, &p->a, &p->b, 8);
	vt_post(&p->a, &w);
	assert_int_equal(vt_expect(p->b.cq, 3, IBV_WC_LOC_PROT_ERR).vendor_err, 0x31);
	logged(text("QPN 0x%x refused a SEND", p->b.qp->qp_num),
	       text("no region has sg_list[0].lkey 0x%x", sge.lkey), NULL);
	assert_int_equal(vt_expect(p->a.cq, w.wr.wr_id, IBV_WC_REM_OP_ERR).vendor_err, 0x22);
	seen = 0;
	logged(text("QPN 0x%x to QPN 0x%x", p->a.qp->qp_num, p->b.qp->qp_num), "IBV_WC_REM_OP_ERR",
	       "are the SGEs of its receives registered", NULL);
}

vt_pair_test(a_key_that_cannot_be_invalidated, .type = IBV_QPT_RC)
{
	vt_invalidate(&p->a, p->a.mr->rkey, IBV_WC_MW_BIND_ERR);
	logged(text("QPN 0x%x to QPN 0x%x", p->a.qp->qp_num, p->b.qp->qp_num),
	       "local invalidation (wr_id ", "IBV_WC_MW_BIND_ERR, vendor_err 0x63", NULL);
}

/* --- events --- */

vt_pair_test(an_access_that_only_an_event_reports, .type = IBV_QPT_RC)
{
	struct vt_wr w;

	vt_wr(&w, IBV_WR_RDMA_WRITE, &p->a, &p->b, 64);
	w.wr.wr.rdma.rkey ^= 0x80000000;
	vt_done(&p->a, &w, IBV_WC_REM_ACCESS_ERR);
	vt_event_acked(IBV_EVENT_QP_ACCESS_ERR);
	logged(text("QPN 0x%x: IBV_EVENT_QP_ACCESS_ERR: ", p->b.qp->qp_num),
	       "the line before says what was refused", NULL);
}

vt_pair_test(a_request_that_only_an_event_reports, .type = IBV_QPT_RC)
{
	struct vt_wr w;

	vt_wr(&w, IBV_WR_ATOMIC_FETCH_AND_ADD, &p->a, &p->b, 8);
	w.wr.wr.atomic.remote_addr += 4;
	vt_done(&p->a, &w, IBV_WC_REM_INV_REQ_ERR);
	vt_event_acked(IBV_EVENT_QP_REQ_ERR);
	logged(text("QPN 0x%x: IBV_EVENT_QP_REQ_ERR: ", p->b.qp->qp_num),
	       "the line before says what was refused", NULL);
	seen = 0;
	logged(text("QPN 0x%x refused ", p->b.qp->qp_num), "not a multiple of 8", NULL);
}

vt_pair_test(a_message_before_rts, .state = IBV_QPS_INIT)
{
	vt_climb(p->a.qp, &p->opt, IBV_QPS_RTS, p->b.qp->qp_num);
	vt_climb(p->b.qp, &p->opt, IBV_QPS_RTR, p->a.qp->qp_num);
	vt_exchange(&p->a, &p->b);
	vt_event_acked(IBV_EVENT_COMM_EST);
	logged(text("QPN 0x%x: IBV_EVENT_COMM_EST: ", p->b.qp->qp_num), "before it was in RTS",
	       "move it to RTS", NULL);
}

vt_pair_test(a_read_without_resources, .no_rd_atomic = true)
{
	struct vt_wr w;

	vt_wr(&w, IBV_WR_RDMA_READ, &p->a, &p->b, 8);
	vt_post(&p->a, &w);
	assert_int_equal(vt_expect(p->a.cq, w.wr.wr_id, IBV_WC_LOC_QP_OP_ERR).vendor_err, 0x62);
	logged(text("QPN 0x%x to QPN 0x%x", p->a.qp->qp_num, p->b.qp->qp_num), "RDMA READ (wr_id ",
	       "IBV_WC_LOC_QP_OP_ERR", "max_rd_atomic", NULL);
}

vt_pair_test(a_cq_that_overruns, .type = IBV_QPT_UD, .cqe = 4)
{
	struct ibv_async_event event;

	for (uint64_t i = 0; i < 40; i++)
		vt_send(&p->a, &p->b, i);
	event = vt_event(IBV_EVENT_CQ_ERR);
	logged(text("CQ of %d completions: IBV_EVENT_CQ_ERR: it overran", p->a.cq->cqe), NULL);
	ibv_ack_async_event(&event);
	vt_event_acked(IBV_EVENT_QP_FATAL);
	seen = 0;
	logged(text("QPN 0x%x: IBV_EVENT_QP_FATAL: ", p->a.qp->qp_num), NULL);
}

vt_pair_test(a_send_queue_that_is_drained, .type = IBV_QPT_RC)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_SQD, .en_sqd_async_notify = 1 };

	assert_int_equal(ibv_modify_qp(p->a.qp, &attr,
				       IBV_QP_STATE | IBV_QP_EN_SQD_ASYNC_NOTIFY), 0);
	vt_event_acked(IBV_EVENT_SQ_DRAINED);
	logged(text("QPN 0x%x: IBV_EVENT_SQ_DRAINED: ", p->a.qp->qp_num), NULL);
}

vt_pair_test(an_srq_below_its_limit, .srq = true)
{
	struct ibv_srq_attr attr = { .srq_limit = 2 };

	vt_recv(&p->b, 1);
	vt_recv(&p->b, 2);
	assert_int_equal(ibv_modify_srq(p->b.srq, &attr, IBV_SRQ_LIMIT), 0);
	vt_send(&p->a, &p->b, 7);
	vt_expect(p->b.cq, 1, IBV_WC_SUCCESS);
	vt_event_acked(IBV_EVENT_SRQ_LIMIT_REACHED);
	logged(text("SRQ %u: IBV_EVENT_SRQ_LIMIT_REACHED: ", p->b.srq->handle), NULL);
	assert_int_equal(vt_modify(p->b.qp, IBV_QPS_ERR), 0);
	vt_event_acked(IBV_EVENT_QP_LAST_WQE_REACHED);
	logged(text("QPN 0x%x: IBV_EVENT_QP_LAST_WQE_REACHED: ", p->b.qp->qp_num), NULL);
}

int main(int argc, char **argv)
{
	return argc > 1 && !strcmp(argv[1], "unread") ? unread() : vt_main();
}
