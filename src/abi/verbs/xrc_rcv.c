/* SPDX-License-Identifier: BSD-2-Clause */
/* XRC as in OFED: see include/infiniband/verbatim_xrc.h. */
#include <infiniband/verbatim_xrc.h>

#include <fcntl.h>

#include "abi/verbs/abi.h"
#include "abi/verbs/ops.h"
#include "nic/service/xrc/xrc.h"
#include "nic/service/xrc/xrc_rcv.h"

_Static_assert(offsetof(struct ibv_xrc_domain, handle) == offsetof(struct vb_xrcd, id),
	       "a domain is one of OFED's as well");

/* RFC: the attributes for RESET to INIT, and for INIT to RTR. */
#define TO_INIT (IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX | IBV_QP_PORT)
#define TO_RTR                                                                                    \
	(IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | IBV_QP_MIN_RNR_TIMER)
/* RFC, table of attributes: those called not needed, caps among them, which are fixed ... */
#define IGNORED                                                                                   \
	(IBV_QP_STATE | IBV_QP_CUR_STATE | IBV_QP_CAP | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC | \
	 IBV_QP_EN_SQD_ASYNC_NOTIFY)
/*
 * ... and those it lists although they have no effect on a QP that only receives, or none before
 * RTR, where it stays: for example whether its sender has an alternate path.
 */
#define REMEMBERED                                                                                \
	(IBV_QP_QKEY | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_PATH_MIG_STATE)

/* RFC: "Other caps will use hard-coded values". */
static const struct ibv_qp_cap fixed_cap = {
	.max_send_wr = 1,
	.max_recv_wr = 0,
	.max_send_sge = 1,
	.max_recv_sge = 0,
	.max_inline_data = 0,
};

static struct vb_xrcd *xrcd_of(struct ibv_xrc_domain *domain)
{
	return (struct vb_xrcd *)domain;
}

static int usable(const struct ibv_xrc_domain *domain)
{
	if (!domain)
		return EINVAL;
	return vb_abi_is_dead(domain->context) ? EIO : 0;
}

struct ibv_xrc_domain *ibv_open_xrc_domain(struct ibv_context *context, int fd, int oflag)
{
	struct ibv_xrcd_init_attr attr = {
		.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS,
		.fd = fd,
		.oflags = oflag,
	};

	/* A private domain cannot exist already, so O_EXCL is meaningless. */
	if (fd == -1 && oflag != O_CREAT) {
		errno = EINVAL;
		return NULL;
	}
	return (struct ibv_xrc_domain *)vb_abi_open_xrcd(context, &attr);
}

int ibv_close_xrc_domain(struct ibv_xrc_domain *domain)
{
	return domain ? vb_abi_close_xrcd(&xrcd_of(domain)->ibv) : EINVAL;
}

struct ibv_srq *ibv_create_xrc_srq(struct ibv_pd *pd, struct ibv_xrc_domain *domain,
				   struct ibv_cq *xrc_cq, struct ibv_srq_init_attr *init)
{
	struct ibv_srq_init_attr_ex attr = {
		.srq_context = init->srq_context,
		.attr = init->attr,
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD |
			     IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ,
		.srq_type = IBV_SRQT_XRC,
		.pd = pd,
		.xrcd = (struct ibv_xrcd *)domain,
		.cq = xrc_cq,
	};

	if (!pd) {
		errno = EINVAL;
		return NULL;
	}
	return vb_abi_create_srq_ex(pd->context, &attr);
}

static int bring_to_rtr(struct vb_xrcd *xrcd, uint32_t qpn, const struct ibv_qp_attr *wanted,
			int mask)
{
	struct ibv_qp_attr attr = *wanted;
	int rc;

	attr.qp_state = IBV_QPS_INIT;
	rc = vb_xrc_rcv_modify(xrcd, qpn, &attr, IBV_QP_STATE | TO_INIT);
	if (rc != 0)
		return rc;
	if (!(mask & IBV_QP_MAX_DEST_RD_ATOMIC))
		attr.max_dest_rd_atomic = 0;
	attr.qp_state = IBV_QPS_RTR;
	return vb_xrc_rcv_modify(xrcd, qpn, &attr,
				 IBV_QP_STATE | IBV_QP_MAX_DEST_RD_ATOMIC | (mask & ~TO_INIT));
}

static int alloc(struct ibv_pd *pd, struct ibv_xrc_domain *domain, const struct ibv_qp_attr *attr,
		 int mask, uint32_t *out)
{
	uint32_t qpn;
	int rc = usable(domain);

	if (rc != 0)
		return rc;
	mask &= ~IGNORED;
	if (pd->context != domain->context || (mask & (TO_INIT | TO_RTR)) != (TO_INIT | TO_RTR))
		return EINVAL;
	vb_device_gids_refresh(vb_device_of(pd->context));
	rc = vb_xrc_rcv_new(xrcd_of(domain), &qpn);
	if (rc != 0)
		return rc;
	rc = bring_to_rtr(xrcd_of(domain), qpn, attr, mask & ~REMEMBERED);
	if (rc == 0)
		rc = vb_xrc_rcv_remember(xrcd_of(domain), qpn, attr, mask & REMEMBERED);
	/* The domain keeps the QP only when nothing can fail any more. */
	if (rc == 0)
		vb_xrc_rcv_keep(xrcd_of(domain), qpn);
	vb_xrc_rcv_leave(xrcd_of(domain), qpn);
	if (rc == 0)
		*out = qpn;
	return rc;
}

int ibv_alloc_xrc_rcv_qp(struct ibv_pd *pd, struct ibv_xrc_domain *domain,
			 struct ibv_qp_attr *attr, enum ibv_qp_attr_mask attr_mask,
			 uint32_t *xrc_rcv_qpn)
{
	return -alloc(pd, domain, attr, (int)attr_mask, xrc_rcv_qpn);
}

int ibv_create_xrc_rcv_qp(struct ibv_xrc_qp_init_attr *init, uint32_t *xrc_rcv_qpn)
{
	int rc = init ? usable(init->xrc_domain) : EINVAL;

	return rc ? rc : vb_xrc_rcv_new(xrcd_of(init->xrc_domain), xrc_rcv_qpn);
}

int ibv_modify_xrc_rcv_qp(struct ibv_xrc_domain *domain, uint32_t xrc_qp_num,
			  struct ibv_qp_attr *attr, int attr_mask)
{
	int rc = usable(domain);

	if (rc != 0)
		return rc;
	if (attr_mask & IBV_QP_AV)
		vb_device_gids_refresh(vb_device_of(domain->context));
	return vb_xrc_rcv_modify(xrcd_of(domain), xrc_qp_num, attr, attr_mask);
}

int ibv_query_xrc_rcv_qp(struct ibv_xrc_domain *domain, uint32_t xrc_qp_num,
			 struct ibv_qp_attr *attr, int attr_mask,
			 struct ibv_qp_init_attr *init_attr)
{
	int rc = usable(domain);

	if (rc == 0)
		rc = vb_xrc_rcv_query(xrcd_of(domain), xrc_qp_num, attr, init_attr);
	if (rc == 0)
		attr->cap = init_attr->cap = fixed_cap;
	return rc;
}

int ibv_reg_xrc_rcv_qp(struct ibv_xrc_domain *domain, uint32_t xrc_qp_num)
{
	int rc = usable(domain);

	return rc ? rc : vb_xrc_rcv_join(xrcd_of(domain), xrc_qp_num);
}

int ibv_unreg_xrc_rcv_qp(struct ibv_xrc_domain *domain, uint32_t xrc_qp_num)
{
	int rc = usable(domain);

	return rc ? rc : vb_xrc_rcv_leave(xrcd_of(domain), xrc_qp_num);
}
