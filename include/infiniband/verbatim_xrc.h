/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef INFINIBAND_VERBATIM_XRC_H
#define INFINIBAND_VERBATIM_XRC_H

/*
 * XRC as OFED 1.3 to 1.5 had it, for programs of that time: the calls are in this libibverbs.so.1
 * and in no other of today. A domain is that of ibv_open_xrcd(3), and the SRQs and sending QPs are
 * the standard ones; what is of its own are receive QPs that no process has as an object: they are
 * known by their numbers and belong to their domain (docs/xrc.md).
 */

#include <infiniband/verbs.h>

#ifdef __cplusplus
extern "C" {
#endif

struct ibv_xrc_domain {
	struct ibv_context *context;
	uint32_t handle;
};

/* OFED's struct ibv_qp_init_attr, which ended with the domain. Nothing else of it is looked at. */
struct ibv_xrc_qp_init_attr {
	struct ibv_qp_init_attr attr;
	struct ibv_xrc_domain *xrc_domain;
};

/* As ibv_open_xrcd(3): NULL with errno. fd -1: a domain of one's own, and oflag is O_CREAT. */
struct ibv_xrc_domain *ibv_open_xrc_domain(struct ibv_context *context, int fd, int oflag);

/* 0, or EBUSY: this process has SRQs or QPs of it; EINVAL: there is none. */
int ibv_close_xrc_domain(struct ibv_xrc_domain *xrc_domain);

/* ibv_get_srq_num(3) tells its number. NULL with errno. */
struct ibv_srq *ibv_create_xrc_srq(struct ibv_pd *pd, struct ibv_xrc_domain *xrc_domain,
				   struct ibv_cq *xrc_cq, struct ibv_srq_init_attr *init_attr);

/*
 * A receive QP, brought to RTR in one go, that lives until its domain goes. pd says which device.
 * attr_mask has what takes a QP to INIT and to RTR; of that, only MAX_DEST_RD_ATOMIC may be left
 * out, which means 0. QKEY, TIMEOUT, RETRY_CNT and RNR_RETRY are kept for who asks; states, caps
 * and what only a sender has are not looked at; PATH_MIG_STATE can be MIGRATED. 0, or a negative
 * errno: EOPNOTSUPP for an alternate path or another PATH_MIG_STATE.
 */
int ibv_alloc_xrc_rcv_qp(struct ibv_pd *pd, struct ibv_xrc_domain *xrc_domain,
			 struct ibv_qp_attr *attr, enum ibv_qp_attr_mask attr_mask,
			 uint32_t *xrc_rcv_qpn);

/*
 * A receive QP in RESET, with which this process is registered. It goes when the last process that
 * is registered has said that it is not any more; those that died leave it to its domain. These
 * five return 0 or a positive errno: EINVAL if the domain has no such QP.
 */
int ibv_create_xrc_rcv_qp(struct ibv_xrc_qp_init_attr *init_attr, uint32_t *xrc_rcv_qpn);
int ibv_modify_xrc_rcv_qp(struct ibv_xrc_domain *xrc_domain, uint32_t xrc_qp_num,
			  struct ibv_qp_attr *attr, int attr_mask);
int ibv_query_xrc_rcv_qp(struct ibv_xrc_domain *xrc_domain, uint32_t xrc_qp_num,
			 struct ibv_qp_attr *attr, int attr_mask,
			 struct ibv_qp_init_attr *init_attr);
int ibv_reg_xrc_rcv_qp(struct ibv_xrc_domain *xrc_domain, uint32_t xrc_qp_num);
int ibv_unreg_xrc_rcv_qp(struct ibv_xrc_domain *xrc_domain, uint32_t xrc_qp_num);

#ifdef __cplusplus
}
#endif

#endif
