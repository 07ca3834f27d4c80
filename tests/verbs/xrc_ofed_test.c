/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * XRC by the calls that OFED 1.3 to 1.5 had; for ibv_alloc_xrc_rcv_qp() see xrc_rfc_test.c.
 */
#include <fcntl.h>
#include <infiniband/verbatim_xrc.h>
#include <sys/mman.h>
#include <unistd.h>

#include "xrc.h"

static enum ibv_qp_state state_of(struct ibv_xrc_domain *domain, uint32_t qpn)
{
	struct ibv_qp_attr attr;
	struct ibv_qp_init_attr init;

	assert_int_equal(ibv_query_xrc_rcv_qp(domain, qpn, &attr, IBV_QP_STATE, &init), 0);
	assert_int_equal(init.qp_type, IBV_QPT_XRC_RECV);
	return attr.qp_state;
}

/* OFED: with fd -1 there is no inode, and nothing but O_CREAT may be said. */
vt_test(domains_are_those_of_files)
{
	int fd = memfd_create("domain", MFD_CLOEXEC);
	struct ibv_xrc_domain *domain, *again;

	vt_refused(EINVAL, ibv_open_xrc_domain(vt.ctx, -1, 0));
	vt_refused(EINVAL, ibv_open_xrc_domain(vt.ctx, -1, O_CREAT | O_EXCL));
	vt_refused(ENOENT, ibv_open_xrc_domain(vt.ctx, fd, 0));
	domain = vt_made(ibv_open_xrc_domain(vt.ctx, fd, O_CREAT | O_EXCL));
	assert_ptr_equal(domain->context, vt.ctx);
	vt_refused(EEXIST, ibv_open_xrc_domain(vt.ctx, fd, O_CREAT | O_EXCL));
	again = vt_made(ibv_open_xrc_domain(vt.ctx, fd, O_CREAT));
	assert_int_equal(again->handle, domain->handle);
	assert_int_equal(ibv_close_xrc_domain(domain), 0);
	domain = vt_made(ibv_open_xrc_domain(vt.ctx, fd, 0));
	assert_int_equal(ibv_close_xrc_domain(domain), 0);
	assert_int_equal(ibv_close_xrc_domain(again), 0);
	close(fd);
}

/* OFED 1.3: who is registered keeps it; the last one who leaves takes it along. */
vt_test(registration_keeps_it)
{
	struct ibv_xrc_domain *domain = ibv_open_xrc_domain(vt.ctx, -1, O_CREAT);
	struct ibv_xrc_domain *other = ibv_open_xrc_domain(vt.ctx, -1, O_CREAT);
	struct ibv_xrc_qp_init_attr init = { .xrc_domain = domain };
	struct ibv_qp_attr attr = vx_attr(7);
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
	assert_int_equal(ibv_create_xrc_rcv_qp(NULL, &qpn), EINVAL);
	assert_int_equal(ibv_close_xrc_domain(NULL), EINVAL);
	assert_int_equal(ibv_close_xrc_domain(domain), 0);
	assert_int_equal(ibv_close_xrc_domain(other), 0);
}

vt_test(srqs_are_the_standard_ones)
{
	struct ibv_xrc_domain *domain = ibv_open_xrc_domain(vt.ctx, -1, O_CREAT);
	struct ibv_cq *cq = vt_cq(8, NULL);
	struct ibv_srq_init_attr init = { .attr = { .max_wr = 8, .max_sge = 1 } };
	struct ibv_srq *srq = vt_made(ibv_create_xrc_srq(vt.pd, domain, cq, &init));
	uint32_t number;

	assert_int_equal(ibv_get_srq_num(srq, &number), 0);
	assert_int_equal(ibv_close_xrc_domain(domain), EBUSY);
	assert_int_equal(ibv_destroy_srq(srq), 0);
	assert_null(ibv_create_xrc_srq(vt.pd, NULL, cq, &init));
	vt_refused(EINVAL, ibv_create_xrc_srq(NULL, domain, cq, &init));
	assert_int_equal(ibv_destroy_cq(cq), 0);
	assert_int_equal(ibv_close_xrc_domain(domain), 0);
}
