/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * XRC by OFED's calls. The words above a test are those of the RFC that proposed them ("make
 * receiving XRC QP independent of any one user process"), of its notes and of its tables.
 */
#include <fcntl.h>
#include <infiniband/verbatim_xrc.h>
#include <sys/mman.h>
#include <unistd.h>

#include "xrc.h"

/* Note 4: "Attribute mask bits to set", for both transitions. */
#define NEEDED                                                                                    \
	(IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_AV | IBV_QP_PATH_MTU |   \
	 IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | IBV_QP_MIN_RNR_TIMER)

static struct ibv_qp_attr attr_to(uint32_t qpn)
{
	return (struct ibv_qp_attr){
		.qp_access_flags = VT_ALL_ACCESS,
		.port_num = 1,
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = qpn,
		.rq_psn = VX_PSN,
		.max_dest_rd_atomic = 1,
		.min_rnr_timer = 1,
		.ah_attr = { .is_global = 1,
			     .port_num = 1,
			     .grh = { .dgid = vt.gid, .sgid_index = (uint8_t)vt.gid_index,
				      .hop_limit = 64 } },
	};
}

static int alloc(struct ibv_xrc_domain *domain, const struct ibv_qp_attr *from, int mask,
		 uint32_t *qpn)
{
	struct ibv_qp_attr attr = *from;

	return ibv_alloc_xrc_rcv_qp(vt.pd, domain, &attr, (enum ibv_qp_attr_mask)mask, qpn);
}

static enum ibv_qp_state state_of(struct ibv_xrc_domain *domain, uint32_t qpn)
{
	struct ibv_qp_attr attr;
	struct ibv_qp_init_attr init;

	assert_int_equal(ibv_query_xrc_rcv_qp(domain, qpn, &attr, IBV_QP_STATE, &init), 0);
	assert_int_equal(init.qp_type, IBV_QPT_XRC_RECV);
	return attr.qp_state;
}

static void send_once(struct vx_snd *snd, struct vx_srq *srq, uint64_t wr_id, uint32_t qpn)
{
	vx_recv(srq, wr_id, 0, 64);
	assert_int_equal(vx_post(snd, IBV_WR_SEND, srq->number, wr_id, 64, NULL), 0);
	vt_expect(snd->cq, wr_id, IBV_WC_SUCCESS);
	assert_int_equal(vt_expect(srq->cq, wr_id, IBV_WC_SUCCESS).qp_num, qpn);
}

/* "creates an XRC QP ... and moves the created qp through the RESET->INIT and INIT->RTR" */
/* "(The RTR->RTS transition is not needed, since this QP does no sending)." */
/* "specifying an XRC SRQ for actually receiving the transmissions" */
static void one_call_makes_it_ready_to_receive(void **state)
{
	struct ibv_xrc_domain *domain = ibv_open_xrc_domain(vt.ctx, -1, O_CREAT);
	struct ibv_qp_attr attr;
	struct vx_snd snd;
	struct vx_srq srq;
	uint32_t qpn;

	assert_non_null(domain);
	assert_ptr_equal(domain->context, vt.ctx);
	vx_srq_open(&srq, (struct ibv_xrcd *)domain);
	vx_snd_open(&snd, 0);
	attr = attr_to(snd.qp->qp_num);
	assert_int_equal(alloc(domain, &attr, NEEDED | IBV_QP_MAX_DEST_RD_ATOMIC, &qpn), 0);
	assert_int_equal(state_of(domain, qpn), IBV_QPS_RTR);
	assert_int_equal(vx_climb(snd.qp, qpn, IBV_QPS_RTS), 0);
	send_once(&snd, &srq, 1, qpn);
	/* "If you are using RDMA or atomics, also set: IB_QP_MAX_DEST_RD_ATOMIC" */
	assert_int_equal(vx_post(&snd, IBV_WR_RDMA_READ, srq.number, 2, 64, srq.mr), 0);
	vt_expect(snd.cq, 2, IBV_WC_SUCCESS);
	vx_snd_close(&snd);
	vx_srq_close(&srq);
	assert_int_equal(ibv_close_xrc_domain(domain), 0);
}

/* "(if you are only using SENDs, this value can be 0)" */
static void without_reads_it_needs_no_resources(void **state)
{
	struct ibv_xrc_domain *domain = ibv_open_xrc_domain(vt.ctx, -1, O_CREAT);
	struct ibv_qp_attr attr;
	struct vx_snd snd;
	struct vx_srq srq;
	uint32_t qpn;

	vx_srq_open(&srq, (struct ibv_xrcd *)domain);
	vx_snd_open(&snd, 0);
	attr = attr_to(snd.qp->qp_num);
	assert_int_equal(alloc(domain, &attr, NEEDED, &qpn), 0);
	assert_int_equal(vx_climb(snd.qp, qpn, IBV_QPS_RTS), 0);
	send_once(&snd, &srq, 1, qpn);
	assert_int_equal(vx_post(&snd, IBV_WR_RDMA_READ, srq.number, 2, 64, srq.mr), 0);
	vt_expect(snd.cq, 2, IBV_WC_REM_INV_REQ_ERR);
	assert_int_equal(state_of(domain, qpn), IBV_QPS_ERR);
	vx_snd_close(&snd);
	vx_srq_close(&srq);
	assert_int_equal(ibv_close_xrc_domain(domain), 0);
}

/* "@attr_mask: bitmap indicating which attributes are provided ... used for validity checking" */
/* "RETURNS: success (0), or a (negative) error value." */
static void each_attribute_that_is_needed_is_needed(void **state)
{
	struct ibv_xrc_domain *domain = ibv_open_xrc_domain(vt.ctx, -1, O_CREAT);
	struct ibv_qp_attr attr = attr_to(7);
	uint32_t qpn = 77;

	for (unsigned bit = 0; bit < 31; bit++) {
		if (NEEDED & 1 << bit)
			assert_int_equal(alloc(domain, &attr, NEEDED & ~(1 << bit), &qpn),
					 -EINVAL);
	}
	attr.port_num = 9;
	assert_int_equal(alloc(domain, &attr, NEEDED, &qpn), -EINVAL);
	attr = attr_to(7);
	attr.path_mtu = 0;
	assert_int_equal(alloc(domain, &attr, NEEDED, &qpn), -EINVAL);
	assert_int_equal(alloc(NULL, &attr, NEEDED, &qpn), -EINVAL);
	assert_int_equal(qpn, 77);
	/* "qp_state: Not needed", "cur_qp_state: Not needed" */
	attr = attr_to(7);
	attr.qp_state = attr.cur_qp_state = IBV_QPS_ERR;
	assert_int_equal(alloc(domain, &attr, NEEDED | IBV_QP_STATE | IBV_QP_CUR_STATE, &qpn), 0);
	assert_int_equal(state_of(domain, qpn), IBV_QPS_RTR);
	assert_int_equal(ibv_close_xrc_domain(domain), 0);
}

/* "persists until the XRC domain is closed. (i.e., its reference count goes to zero)." */
static void it_lives_until_the_domain_goes(void **state)
{
	int fd = memfd_create("domain", MFD_CLOEXEC);
	struct ibv_xrc_domain *a = ibv_open_xrc_domain(vt.ctx, fd, O_CREAT);
	struct ibv_xrc_domain *b = ibv_open_xrc_domain(vt.ctx, fd, 0);
	struct ibv_qp_attr attr;
	struct ibv_qp_init_attr init;
	struct vx_snd snd;
	struct vx_srq srq;
	uint32_t qpn;

	vx_srq_open(&srq, (struct ibv_xrcd *)b);
	vx_snd_open(&snd, 0);
	attr = attr_to(snd.qp->qp_num);
	assert_int_equal(alloc(a, &attr, NEEDED, &qpn), 0);
	assert_int_equal(vx_climb(snd.qp, qpn, IBV_QPS_RTS), 0);
	assert_int_equal(ibv_close_xrc_domain(a), 0);
	send_once(&snd, &srq, 1, qpn);
	assert_int_equal(ibv_reg_xrc_rcv_qp(b, qpn), 0);
	assert_int_equal(ibv_unreg_xrc_rcv_qp(b, qpn), 0);
	send_once(&snd, &srq, 2, qpn);
	vx_srq_close(&srq);
	assert_int_equal(ibv_close_xrc_domain(b), 0);
	/* "the remote QP which sends will start receiving RETRY_EXCEEDED errors" */
	assert_int_equal(vx_post(&snd, IBV_WR_SEND, srq.number, 3, 8, NULL), 0);
	vt_expect(snd.cq, 3, IBV_WC_RETRY_EXC_ERR);
	vx_snd_close(&snd);
	a = ibv_open_xrc_domain(vt.ctx, fd, O_CREAT | O_EXCL);
	assert_non_null(a);
	assert_int_equal(ibv_query_xrc_rcv_qp(a, qpn, &attr, 0, &init), EINVAL);
	assert_int_equal(ibv_close_xrc_domain(a), 0);
	close(fd);
}

/* OFED 1.3: who is registered keeps it; the last one who leaves takes it along. */
static void registration_keeps_it(void **state)
{
	struct ibv_xrc_domain *domain = ibv_open_xrc_domain(vt.ctx, -1, O_CREAT);
	struct ibv_xrc_domain *other = ibv_open_xrc_domain(vt.ctx, -1, O_CREAT);
	struct ibv_xrc_qp_init_attr init = { .xrc_domain = domain };
	struct ibv_qp_attr attr = attr_to(7);
	uint32_t qpn;

	assert_int_equal(ibv_create_xrc_rcv_qp(&init, &qpn), 0);
	assert_int_equal(state_of(domain, qpn), IBV_QPS_RESET);
	attr.qp_state = IBV_QPS_INIT;
	assert_int_equal(ibv_modify_xrc_rcv_qp(domain, qpn, &attr,
					       IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
						       IBV_QP_ACCESS_FLAGS),
			 0);
	assert_int_equal(state_of(domain, qpn), IBV_QPS_INIT);
	attr.qp_state = IBV_QPS_RTS;
	assert_int_equal(ibv_modify_xrc_rcv_qp(domain, qpn, &attr, IBV_QP_STATE), EINVAL);
	assert_int_equal(ibv_reg_xrc_rcv_qp(other, qpn), EINVAL);
	assert_int_equal(ibv_unreg_xrc_rcv_qp(other, qpn), EINVAL);
	assert_int_equal(ibv_modify_xrc_rcv_qp(other, qpn, &attr, IBV_QP_STATE), EINVAL);
	assert_int_equal(ibv_reg_xrc_rcv_qp(domain, qpn + 1), EINVAL);
	/* A process is registered or it is not. */
	assert_int_equal(ibv_reg_xrc_rcv_qp(domain, qpn), 0);
	assert_int_equal(ibv_unreg_xrc_rcv_qp(domain, qpn), 0);
	assert_int_equal(ibv_unreg_xrc_rcv_qp(domain, qpn), EINVAL);
	assert_int_equal(ibv_reg_xrc_rcv_qp(domain, qpn), EINVAL);
	init.xrc_domain = NULL;
	assert_int_equal(ibv_create_xrc_rcv_qp(&init, &qpn), EINVAL);
	assert_int_equal(ibv_close_xrc_domain(domain), 0);
	assert_int_equal(ibv_close_xrc_domain(other), 0);
}

static void srqs_are_the_standard_ones(void **state)
{
	struct ibv_xrc_domain *domain = ibv_open_xrc_domain(vt.ctx, -1, O_CREAT);
	struct ibv_cq *cq = vt_cq(8, NULL);
	struct ibv_srq_init_attr init = { .attr = { .max_wr = 8, .max_sge = 1 } };
	struct ibv_srq *srq = ibv_create_xrc_srq(vt.pd, domain, cq, &init);
	uint32_t number;

	assert_non_null(srq);
	assert_int_equal(ibv_get_srq_num(srq, &number), 0);
	assert_int_equal(ibv_close_xrc_domain(domain), EBUSY);
	assert_int_equal(ibv_destroy_srq(srq), 0);
	assert_null(ibv_create_xrc_srq(vt.pd, NULL, cq, &init));
	assert_int_equal(errno, EINVAL);
	assert_int_equal(ibv_destroy_cq(cq), 0);
	assert_int_equal(ibv_close_xrc_domain(domain), 0);
}

int main(void)
{
	const struct CMUnitTest xrc_ofed[] = {
		vt_test(one_call_makes_it_ready_to_receive),
		vt_test(without_reads_it_needs_no_resources),
		vt_test(each_attribute_that_is_needed_is_needed),
		vt_test(it_lives_until_the_domain_goes),
		vt_test(registration_keeps_it),
		vt_test(srqs_are_the_standard_ones),
	};

	return vt_main(xrc_ofed);
}
