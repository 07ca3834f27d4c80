/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ibv_alloc_xrc_rcv_qp(), sentence by sentence and row by row of the RFC that proposed it ("make
 * receiving XRC QP independent of any one user process"). A row is cited as "field: what to set".
 */
#include <fcntl.h>
#include <infiniband/verbatim_xrc.h>
#include <sys/mman.h>
#include <unistd.h>

#include "xrc.h"

/* Note 4. */
#define TO_INIT (IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX | IBV_QP_PORT)
#define TO_RTR                                                                                    \
	(IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | IBV_QP_MIN_RNR_TIMER)
#define NEEDED (TO_INIT | TO_RTR)

enum { BYTES = 64 };

/* A domain, an SRQ of it, a sender; and a receive QP that is made with attr and mask. */
static struct fixture {
	struct ibv_xrc_domain *domain;
	struct vx_srq srq;
	struct vx_snd snd;
	struct ibv_qp_attr attr;
	int mask;
	uint32_t qpn;
} f;

static int begin(void **state)
{
	if (vt_setup(state))
		return 1;
	f.domain = vt_made(ibv_open_xrc_domain(vt.ctx, -1, O_CREAT));
	vx_srq_open(&f.srq, (struct ibv_xrcd *)f.domain);
	vx_snd_open(&f.snd, 0);
	f.mask = NEEDED;
	f.attr = vx_attr(f.snd.qp->qp_num);
	/* Out of the table: what only a sender has, and what is optional. */
	f.attr.sq_psn = f.attr.max_rd_atomic = f.attr.max_dest_rd_atomic = 0;
	f.attr.timeout = f.attr.retry_cnt = f.attr.rnr_retry = 0;
	return 0;
}

static int end(void **state)
{
	vx_snd_close(&f.snd);
	vx_srq_close(&f.srq);
	assert_int_equal(ibv_close_xrc_domain(f.domain), 0);
	return vt_teardown(state);
}

#define rfc_test(name) vt_case(name, begin, end, NULL)

/* As the fixture has it; it is not written to. */
static int alloc(void)
{
	struct ibv_qp_attr attr = f.attr;
	int rc = ibv_alloc_xrc_rcv_qp(vt.pd, f.domain, &attr, (enum ibv_qp_attr_mask)f.mask,
				      &f.qpn);

	assert_memory_equal(&attr, &f.attr, sizeof(attr));
	return rc;
}

static void refused(int error)
{
	f.qpn = 77;
	assert_int_equal(alloc(), -error);
	assert_int_equal(f.qpn, 77);
}

static struct ibv_qp_attr query(struct ibv_qp_cap *cap)
{
	struct ibv_qp_attr attr;
	struct ibv_qp_init_attr init;

	assert_int_equal(ibv_query_xrc_rcv_qp(f.domain, f.qpn, &attr, 0, &init), 0);
	assert_int_equal(init.qp_type, IBV_QPT_XRC_RECV);
	if (cap)
		*cap = init.cap;
	return attr;
}

static void connect(void)
{
	assert_int_equal(alloc(), 0);
	assert_int_equal(vx_climb(f.snd.qp, f.qpn, IBV_QPS_RTS), 0);
}

static void send_to(struct vx_srq *srq, uint64_t wr_id)
{
	vx_recv(srq, wr_id, 0, BYTES);
	vt_fill(f.snd.buf, BYTES, (unsigned)wr_id);
	assert_int_equal(vx_post(&f.snd, IBV_WR_SEND, srq->number, wr_id, BYTES, NULL), 0);
	vt_expect(f.snd.cq, wr_id, IBV_WC_SUCCESS);
	assert_int_equal(vt_expect(srq->cq, wr_id, IBV_WC_SUCCESS).qp_num, f.qpn);
	assert_true(vt_is_filled(srq->buf, BYTES, (unsigned)wr_id));
}

static void expect_send(uint64_t wr_id, enum ibv_wr_opcode op, enum ibv_wc_status status)
{
	assert_int_equal(vx_post(&f.snd, op, f.srq.number, wr_id, BYTES,
				 op == IBV_WR_SEND ? NULL : f.srq.mr),
			 0);
	vt_expect(f.snd.cq, wr_id, status);
}

static void expect_said(const char *text, const char *words)
{
	if (!strstr(text, words))
		fail_msg("\"%s\" is not in:\n%s", words, text);
}

/* --- what the call does --- */

/*
 * rfc: "creates an XRC QP for serving as a receive-side only QP, and moves the created qp through
 * the RESET->INIT and INIT->RTR transitions."
 * rfc: "(The RTR->RTS transition is not needed, since this QP does no sending)."
 * rfc: "@attr: modify-qp attributes needed to bring the QP to RTR."
 * rfc: "I chose to use struct ibv_qp_attr, which is used in modify QP, rather than create a new
 * structure for this purpose."
 * rfc: "RETURNS: success (0), or a (negative) error value."
 */
rfc_test(one_call_brings_it_to_rtr)
{
	int (*call)(struct ibv_pd *pd, struct ibv_xrc_domain *xrc_domain, struct ibv_qp_attr *attr,
		    enum ibv_qp_attr_mask attr_mask, uint32_t *xrc_rcv_qpn) = ibv_alloc_xrc_rcv_qp;
	struct ibv_qp_attr attr = f.attr;

	assert_int_equal(call(vt.pd, f.domain, &attr, (enum ibv_qp_attr_mask)f.mask, &f.qpn), 0);
	assert_int_equal(query(NULL).qp_state, IBV_QPS_RTR);
	/* And there it receives. */
	assert_int_equal(vx_climb(f.snd.qp, f.qpn, IBV_QPS_RTS), 0);
	send_to(&f.srq, 1);
	assert_int_equal(query(NULL).qp_state, IBV_QPS_RTR);
}

/*
 * rfc: "The sending XRC QP uses this QP as destination, while specifying an XRC SRQ for actually
 * receiving the transmissions and generating all completions on the receiving side."
 * rfc: "@xrc_rcv_qpn: qp_num of created QP (if success). To be passed to the remote node. The
 * remote node will use xrc_rcv_qpn in ibv_post_send when sending to XRC SRQ's on this host in the
 * same xrc domain."
 * rfc: "There are no completion events for the QP, since it does not send, and all receives
 * completions are reported in the XRC SRQ's cq."
 */
rfc_test(the_srq_that_is_named_receives_and_completes)
{
	struct vx_srq other;

	vx_srq_open(&other, (struct ibv_xrcd *)f.domain);
	connect();
	send_to(&f.srq, 1);
	vt_expect_none(other.cq);
	send_to(&other, 2);
	vt_expect_none(f.srq.cq);
	send_to(&f.srq, 3);
	vt_no_event();
	vx_srq_close(&other);
}

/*
 * rfc: "@xrc_domain: xrc domain to use for the QP."
 * rfc: "Add a userspace verb (as part of the XRC suite) which enables the user process to create an
 * XRC QP owned by the kernel -- which belongs to the required XRC domain."
 */
rfc_test(it_belongs_to_that_domain_and_no_other)
{
	struct ibv_xrc_domain *other = ibv_open_xrc_domain(vt.ctx, -1, O_CREAT);
	struct ibv_xrc_domain *domain = f.domain;
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;
	struct vx_srq srq;

	vx_srq_open(&srq, (struct ibv_xrcd *)other);
	connect();
	assert_int_equal(ibv_query_xrc_rcv_qp(other, f.qpn, &attr, 0, &init), EINVAL);
	send_to(&f.srq, 1);
	/* An SRQ of another domain is none of its own. */
	vx_recv(&srq, 2, 0, BYTES);
	assert_int_equal(vx_post(&f.snd, IBV_WR_SEND, srq.number, 2, BYTES, NULL), 0);
	vt_expect(f.snd.cq, 2, IBV_WC_REM_INV_REQ_ERR);
	vt_expect_none(srq.cq);
	vx_srq_close(&srq);
	assert_int_equal(ibv_close_xrc_domain(other), 0);
	f.domain = NULL;
	refused(EINVAL);
	f.domain = domain;
}

/*
 * rfc: "This QP is created in kernel space, and persists until the XRC domain is closed. (i.e., its
 * reference count goes to zero)."
 * rfc: "This QP will be destroyed when the XRC domain is closed (i.e., as part of a
 * ibv_close_xrc_domain call, but only when the domain's reference count goes to zero)."
 */
rfc_test(it_lives_until_the_last_reference_goes)
{
	int fd = memfd_create("domain", MFD_CLOEXEC);
	struct ibv_xrc_domain *mine = f.domain;
	struct ibv_xrc_domain *a = ibv_open_xrc_domain(vt.ctx, fd, O_CREAT);
	struct ibv_xrc_domain *b = ibv_open_xrc_domain(vt.ctx, fd, 0);
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;
	struct vx_srq srq;

	vx_srq_open(&srq, (struct ibv_xrcd *)b);
	f.domain = a;
	connect();
	assert_int_equal(ibv_close_xrc_domain(a), 0);
	f.domain = b;
	send_to(&srq, 1);
	assert_int_equal(query(NULL).qp_state, IBV_QPS_RTR);
	vx_srq_close(&srq);
	assert_int_equal(ibv_close_xrc_domain(b), 0);
	/* It is gone, though somebody makes a domain of that file again. */
	a = vt_made(ibv_open_xrc_domain(vt.ctx, fd, O_CREAT | O_EXCL));
	assert_int_equal(ibv_query_xrc_rcv_qp(a, f.qpn, &attr, 0, &init), EINVAL);
	assert_int_equal(vx_post(&f.snd, IBV_WR_SEND, srq.number, 2, 8, NULL), 0);
	vt_expect(f.snd.cq, 2, IBV_WC_RETRY_EXC_ERR);
	assert_int_equal(ibv_close_xrc_domain(a), 0);
	f.domain = mine;
	close(fd);
}

/*
 * rfc: "There is no query or destroy verb for this QP."
 * rfc: "There is also no userspace object for the QP. Userspace has ONLY the raw qp number to use
 * when creating the (X)RC connection."
 * OFED had a query in the end; and who registers with the QP and leaves again takes nothing along.
 */
rfc_test(nobody_can_destroy_it)
{
	connect();
	assert_int_equal(ibv_unreg_xrc_rcv_qp(f.domain, f.qpn), EINVAL);
	assert_int_equal(ibv_reg_xrc_rcv_qp(f.domain, f.qpn), 0);
	assert_int_equal(ibv_unreg_xrc_rcv_qp(f.domain, f.qpn), 0);
	assert_int_equal(ibv_unreg_xrc_rcv_qp(f.domain, f.qpn), EINVAL);
	send_to(&f.srq, 1);
	/* Nothing of it is the process's: `end` closes the domain with the QP still there. */
}

/*
 * rfc: "@pd: protection domain to use. At lower layer, this provides access to userspace obj"
 * rfc: "Although the kernel creates the qp in the kernel's own PD, we still need the PD parameter
 * to determine the device."
 */
rfc_test(the_pd_only_says_which_device)
{
	struct ibv_pd *pd = ibv_alloc_pd(vt.ctx), *own = vt.pd;
	struct ibv_mr *mr = vt_mr(pd, f.snd.buf, BYTES, VT_ALL_ACCESS);

	f.attr.max_dest_rd_atomic = 1;
	f.mask |= IBV_QP_MAX_DEST_RD_ATOMIC;
	vt.pd = pd;
	connect();
	vt.pd = own;
	/* Keys of that PD are no good; those of the SRQ's are. */
	expect_send(1, IBV_WR_RDMA_WRITE, IBV_WC_SUCCESS);
	expect_send(2, IBV_WR_RDMA_READ, IBV_WC_SUCCESS);
	assert_int_equal(vx_post(&f.snd, IBV_WR_RDMA_WRITE, f.srq.number, 3, BYTES, mr), 0);
	vt_expect(f.snd.cq, 3, IBV_WC_REM_ACCESS_ERR);
	/* The QP does not hold it. */
	assert_int_equal(ibv_dereg_mr(mr), 0);
	assert_int_equal(ibv_dealloc_pd(pd), 0);
}

/* --- events and errors --- */

/*
 * rfc: "async events for this QP are also handled in kernel space (i.e., reported in
 * /var/log/messages)."
 * rfc: "If this QP enters the error state, the remote QP which sends will start receiving
 * RETRY_EXCEEDED errors, so the application will be aware of the failure."
 */
rfc_test(errors_go_to_the_log_and_the_sender_is_refused)
{
	char before[32768], after[32768], number[64];

	vx_hub_says("log", before, sizeof(before));
	connect();
	assert_int_equal(vx_post(&f.snd, IBV_WR_RDMA_WRITE, f.srq.number, 1, BYTES,
				 &(struct ibv_mr){ .addr = f.srq.buf, .rkey = 0x7fffffff }),
			 0);
	vt_expect(f.snd.cq, 1, IBV_WC_REM_ACCESS_ERR);
	assert_int_equal(query(NULL).qp_state, IBV_QPS_ERR);
	vt_no_event();
	vx_hub_says("log", after, sizeof(after));
	assert_memory_equal(after, before, strlen(before));
	snprintf(number, sizeof(number), "receive QP 0x%06x of XRC domain", f.qpn);
	expect_said(after + strlen(before), number);
	expect_said(after + strlen(before), "QP_ACCESS_ERR");
	/* A sender that begins anew hears nothing from a QP in error. */
	assert_int_equal(vt_modify(f.snd.qp, IBV_QPS_RESET), 0);
	assert_int_equal(vx_climb(f.snd.qp, f.qpn, IBV_QPS_RTS), 0);
	expect_send(2, IBV_WR_SEND, IBV_WC_RETRY_EXC_ERR);
}

/* The hub knows domains, holders, receive QPs and SRQs, as long as they are there. */
rfc_test(the_hub_lists_it)
{
	char text[32768], words[96];

	connect();
	vx_hub_says("status", text, sizeof(text));
	expect_said(text, "XRC domain ");
	snprintf(words, sizeof(words), "pid %d, ", (int)getpid());
	expect_said(text, words);
	snprintf(words, sizeof(words), "receive QP 0x%06x  RTR    sender 0x%06x", f.qpn,
		 f.snd.qp->qp_num);
	expect_said(text, words);
	snprintf(words, sizeof(words), "SRQ 0x%06x", f.srq.number);
	expect_said(text, words);
	vx_srq_close(&f.srq);
	vx_hub_says("status", text, sizeof(text));
	assert_null(strstr(text, words));
	vx_srq_open(&f.srq, (struct ibv_xrcd *)f.domain);
}

/* --- note 4, and the table of attributes --- */

/*
 * rfc: "@attr_mask: bitmap indicating which attributes are provided in the attr struct. used for
 * validity checking."
 * rfc: "For RESET_to_INIT transition:"
 * rfc: "For INIT_to_RTR transition:"
 * rfc: "path_mtu: Yes"
 * rfc: "rq_psn: Yes"
 * rfc: "dest_qp_num: Yes"
 * rfc: "qp_access_flags: Yes"
 * rfc: "ah_attr: Yes"
 * rfc: "pkey_index: Yes"
 * rfc: "port_num: Yes"
 */
rfc_test(each_bit_is_needed)
{
	struct ibv_qp_attr attr;

	for (unsigned bit = 0; bit < 31; bit++) {
		f.mask = NEEDED & ~(1 << bit);
		if (f.mask != NEEDED)
			refused(EINVAL);
	}
	f.mask = NEEDED | 1 << 30;
	refused(EINVAL);
	f.mask = NEEDED;
	connect();
	attr = query(NULL);
	assert_int_equal(attr.path_mtu, IBV_MTU_1024);
	assert_int_equal(attr.rq_psn, VX_PSN);
	assert_int_equal(attr.dest_qp_num, f.snd.qp->qp_num);
	assert_int_equal(attr.qp_access_flags, VT_ALL_ACCESS);
	assert_int_equal(attr.pkey_index, 0);
	assert_int_equal(attr.port_num, 1);
	assert_memory_equal(&attr.ah_attr.grh.dgid, &vt.gid, sizeof(vt.gid));
	send_to(&f.srq, 1);
}

/* A value that cannot be is refused, and no QP is left. */
rfc_test(values_are_checked)
{
	const struct ibv_qp_attr good = f.attr;
	char text[32768];

	f.attr.port_num = 9;
	refused(EINVAL);
	f.attr = good;
	f.attr.path_mtu = 0;
	refused(EINVAL);
	f.attr = good;
	f.attr.pkey_index = 0xffff;
	refused(EINVAL);
	f.attr = good;
	f.attr.ah_attr.is_global = 0;
	refused(EINVAL);
	f.attr = good;
	f.attr.dest_qp_num = 0x1000000;
	refused(EINVAL);
	f.attr = good;
	f.attr.timeout = 32;
	f.mask |= IBV_QP_TIMEOUT;
	refused(EINVAL);
	vx_hub_says("status", text, sizeof(text));
	expect_said(text, "XRC domain ");
	assert_null(strstr(text, "receive QP"));
}

/*
 * rfc: "qp_state: Not needed"
 * rfc: "cur_qp_state: Not needed"
 * rfc: "Driver starts from RESET and takes qp to RTR."
 * rfc: "sq_psn: Not needed"
 * rfc: "en_sqd_async_notify: Not needed (No sq)"
 * rfc: "sq_draining: Not needed (No sq)"
 * rfc: "max_rd_atomic: Not needed (No sq)"
 */
rfc_test(what_is_not_needed_is_not_looked_at)
{
	f.attr.qp_state = IBV_QPS_ERR;
	f.attr.cur_qp_state = IBV_QPS_SQE;
	f.attr.sq_psn = 0xffffffff;
	f.attr.en_sqd_async_notify = f.attr.sq_draining = f.attr.max_rd_atomic = 0xff;
	f.mask |= IBV_QP_STATE | IBV_QP_CUR_STATE | IBV_QP_SQ_PSN | IBV_QP_EN_SQD_ASYNC_NOTIFY |
		  IBV_QP_MAX_QP_RD_ATOMIC;
	connect();
	assert_int_equal(query(NULL).qp_state, IBV_QPS_RTR);
	assert_int_equal(query(NULL).max_rd_atomic, 0);
	assert_int_equal(query(NULL).sq_psn, 0);
	send_to(&f.srq, 1);
}

/*
 * rfc: "cap: Need only XRC domain. Other caps will use hard-coded values:"
 * rfc: "max_send_wr = 1;"
 * rfc: "max_recv_wr = 0;"
 * rfc: "max_send_sge = 1;"
 * rfc: "max_recv_sge = 0;"
 * rfc: "max_inline_data = 0;"
 */
rfc_test(caps_are_hard_coded)
{
	struct ibv_qp_attr attr;
	struct ibv_qp_cap cap;

	memset(&f.attr.cap, 0xff, sizeof(f.attr.cap));
	f.mask |= IBV_QP_CAP;
	connect();
	attr = query(&cap);
	assert_int_equal(cap.max_send_wr, 1);
	assert_int_equal(cap.max_recv_wr, 0);
	assert_int_equal(cap.max_send_sge, 1);
	assert_int_equal(cap.max_recv_sge, 0);
	assert_int_equal(cap.max_inline_data, 0);
	assert_memory_equal(&attr.cap, &cap, sizeof(cap));
}

/*
 * rfc: "qkey: Yes"
 * rfc: "timeout: Yes"
 * rfc: "retry_cnt: Yes"
 * rfc: "rnr_retry: Yes"
 * They say nothing to a QP that only receives, and are told to who asks.
 */
rfc_test(what_only_senders_use_is_kept)
{
	struct ibv_qp_attr attr;

	f.attr.qkey = VT_QKEY;
	f.attr.timeout = 14;
	f.attr.retry_cnt = 5;
	f.attr.rnr_retry = 6;
	f.mask |= IBV_QP_QKEY | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY;
	connect();
	attr = query(NULL);
	assert_int_equal(attr.qkey, VT_QKEY);
	assert_int_equal(attr.timeout, 14);
	assert_int_equal(attr.retry_cnt, 5);
	assert_int_equal(attr.rnr_retry, 6);
	send_to(&f.srq, 1);
}

/*
 * rfc: "path_mig_state: Yes"
 * rfc: "alt_ah_attr: Optional"
 * rfc: "alt_pkey_index: Optional"
 * rfc: "alt_port_num: Optional"
 * rfc: "alt_timeout: Optional"
 * It may be told to wait for its sender right away, since it never gets further than RTR.
 */
rfc_test(it_may_have_another_path)
{
	struct ibv_qp_attr attr;

	f.attr.path_mig_state = IBV_MIG_REARM;
	f.mask = NEEDED | IBV_QP_PATH_MIG_STATE;
	refused(EINVAL); /* without another path there is nothing to wait for */
	f.attr.alt_ah_attr = f.attr.ah_attr;
	f.attr.alt_timeout = 15;
	f.mask |= IBV_QP_ALT_PATH;
	refused(EINVAL); /* without a port */
	f.attr.alt_port_num = 1;
	f.attr.path_mig_state = IBV_MIG_ARMED;
	refused(EINVAL);
	f.attr.path_mig_state = IBV_MIG_REARM;
	connect();
	attr = query(NULL);
	assert_int_equal(attr.path_mig_state, IBV_MIG_REARM);
	assert_int_equal(attr.alt_port_num, 1);
	assert_int_equal(attr.alt_pkey_index, 0);
	assert_int_equal(attr.alt_timeout, 15);
	assert_memory_equal(&attr.alt_ah_attr.grh, &f.attr.ah_attr.grh, sizeof(attr.ah_attr.grh));
	attr = f.attr;
	assert_int_equal(ibv_modify_qp(f.snd.qp, &attr, IBV_QP_ALT_PATH | IBV_QP_PATH_MIG_STATE),
			 0);
	send_to(&f.srq, 1);
	assert_int_equal(query(NULL).path_mig_state, IBV_MIG_ARMED);
	attr.path_mig_state = IBV_MIG_MIGRATED;
	assert_int_equal(ibv_modify_qp(f.snd.qp, &attr, IBV_QP_PATH_MIG_STATE), 0);
	vt_event_acked(IBV_EVENT_PATH_MIG);
	send_to(&f.srq, 2);
	attr = query(NULL);
	assert_int_equal(attr.path_mig_state, IBV_MIG_MIGRATED);
	assert_int_equal(attr.timeout, 15);
}

rfc_test(it_may_be_said_that_there_is_one_path)
{
	f.attr.path_mig_state = IBV_MIG_MIGRATED;
	f.mask = NEEDED | IBV_QP_PATH_MIG_STATE;
	connect();
	assert_int_equal(query(NULL).path_mig_state, IBV_MIG_MIGRATED);
	send_to(&f.srq, 1);
}

/*
 * rfc: "If you are using RDMA or atomics, also set: IB_QP_MAX_DEST_RD_ATOMIC"
 * rfc: "max_dest_rd_atomic: Yes -- Total max outstanding RDMAs expected for ALL srq destinations
 * using this receive QP."
 */
rfc_test(reads_of_all_srqs_share_one_number)
{
	struct vx_srq other;

	vx_srq_open(&other, (struct ibv_xrcd *)f.domain);
	f.attr.max_dest_rd_atomic = VT_RD_ATOMIC;
	f.mask |= IBV_QP_MAX_DEST_RD_ATOMIC;
	connect();
	assert_int_equal(query(NULL).max_dest_rd_atomic, VT_RD_ATOMIC);
	for (unsigned i = 0; i < 4 * VT_RD_ATOMIC; i++) {
		struct vx_srq *to = i % 2 ? &other : &f.srq;

		assert_int_equal(vx_post(&f.snd, IBV_WR_RDMA_READ, to->number, i, BYTES, to->mr),
				 0);
	}
	for (unsigned i = 0; i < 4 * VT_RD_ATOMIC; i++)
		vt_expect(f.snd.cq, i, IBV_WC_SUCCESS);
	assert_int_equal(vx_post(&f.snd, IBV_WR_ATOMIC_FETCH_AND_ADD, other.number, 99, 8,
				 other.mr),
			 0);
	vt_expect(f.snd.cq, 99, IBV_WC_SUCCESS);
	vx_srq_close(&other);
}

/* rfc: "(if you are only using SENDs, this value can be 0)." */
rfc_test(without_reads_it_needs_no_resources)
{
	connect();
	assert_int_equal(query(NULL).max_dest_rd_atomic, 0);
	send_to(&f.srq, 1);
	expect_send(2, IBV_WR_RDMA_WRITE, IBV_WC_SUCCESS);
	expect_send(3, IBV_WR_RDMA_READ, IBV_WC_REM_INV_REQ_ERR);
}

/* rfc: "min_rnr_timer: default - 0" */
rfc_test(its_rnr_timer_may_be_0)
{
	f.attr.min_rnr_timer = 0;
	connect();
	assert_int_equal(query(NULL).min_rnr_timer, 0);
	/* Nothing is posted yet: the sender is told to wait. */
	assert_int_equal(vx_post(&f.snd, IBV_WR_SEND, f.srq.number, 1, BYTES, NULL), 0);
	vt_sleep_ms(VT_QUIET_MS);
	vx_recv(&f.srq, 1, 0, BYTES);
	vt_expect(f.snd.cq, 1, IBV_WC_SUCCESS);
}
