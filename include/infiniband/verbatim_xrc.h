/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef INFINIBAND_VERBATIM_XRC_H
#define INFINIBAND_VERBATIM_XRC_H

/*
 * XRC as in OFED 1.3 to 1.5, for programs of that time; only this libibverbs.so.1 still has these
 * calls. A domain is that of ibv_open_xrcd(3), and SRQs and sending QPs are the standard ones.
 * Receive QPs are different: no process has an object for them; they are identified by number and
 * belong to their domain (docs/xrc.md).
 */

#include <infiniband/verbs.h>

#ifdef __cplusplus
extern "C" {
#endif

struct ibv_xrc_domain {
	struct ibv_context *context;
	uint32_t handle;
};

/* OFED's struct ibv_qp_init_attr, which ended with the domain. Its other attributes are ignored. */
struct ibv_xrc_qp_init_attr {
	struct ibv_qp_init_attr attr;
	struct ibv_xrc_domain *xrc_domain;
};

/* As ibv_open_xrcd(3): NULL with errno. fd -1: a private domain; oflag is O_CREAT then. */
struct ibv_xrc_domain *ibv_open_xrc_domain(struct ibv_context *context, int fd, int oflag);

/* 0, or EBUSY: this process has SRQs or QPs in it; EINVAL: no such domain. */
int ibv_close_xrc_domain(struct ibv_xrc_domain *xrc_domain);

/* ibv_get_srq_num(3) returns its number. NULL with errno. */
struct ibv_srq *ibv_create_xrc_srq(struct ibv_pd *pd, struct ibv_xrc_domain *xrc_domain,
				   struct ibv_cq *xrc_cq, struct ibv_srq_init_attr *init_attr);

/*
 * Makes a receive QP and brings it to RTR; it lives as long as its domain. pd selects the device.
 * attr_mask has the attributes for INIT and RTR; only MAX_DEST_RD_ATOMIC may be missing, which
 * means 0. QKEY, TIMEOUT, RETRY_CNT and RNR_RETRY are stored for queries; states, caps and
 * attributes of senders are ignored; PATH_MIG_STATE can be MIGRATED. 0, or a negative errno:
 * EOPNOTSUPP for an alternate path or another PATH_MIG_STATE.
 */
int ibv_alloc_xrc_rcv_qp(struct ibv_pd *pd, struct ibv_xrc_domain *xrc_domain,
			 struct ibv_qp_attr *attr, enum ibv_qp_attr_mask attr_mask,
			 uint32_t *xrc_rcv_qpn);

/*
 * Makes a receive QP in RESET, and registers this process with it. It ends when the last registered
 * process has unregistered; if registered processes died, with its domain. These five return 0 or a
 * positive errno: EINVAL if the domain has no such QP.
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
