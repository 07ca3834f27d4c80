/* SPDX-License-Identifier: BSD-2-Clause */
/* efadv_create_qp_ex(3), efadv_create_driver_qp(3), and what is set of single work requests. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "abi/efa/room.h"
#include "abi/verbs/abi.h"
#include "abi/verbs/qp.h"
#include "abi/verbs/wr.h"

struct ibv_qp *efadv_create_driver_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr,
				      uint32_t driver_qp_type);
struct ibv_qp *efadv_create_qp_ex(struct ibv_context *context, struct ibv_qp_init_attr_ex *attr,
				  struct vb_efa_qp_init_attr *efa_attr, uint32_t inlen);
struct vb_efa_qp *efadv_qp_from_ibv_qp_ex(struct ibv_qp_ex *qp);

static const uint64_t datagram_ops = IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM;
static const uint64_t rdma_ops =
	IBV_QP_EX_WITH_RDMA_READ | IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM;

static int check(const struct ibv_qp_init_attr_ex *attr, bool is_driver,
		 const struct vb_efa_qp_init_attr *efa)
{
	static const uint32_t known = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
	const uint64_t ops = datagram_ops | (is_driver ? rdma_ops : 0);

	if (is_driver && efa->driver_qp_type != VB_EFA_DRIVER_SRD)
		return vb_refuse(EOPNOTSUPP, "driver_qp_type is %u; EFA has only SRD, 0",
				 efa->driver_qp_type);
	if (!is_driver && efa->flags)
		return vb_refuse(EOPNOTSUPP, "efa_attr.flags 0x%x: a QP of UD is not written to",
				 efa->flags);
	if ((attr->comp_mask & ~known) || !(attr->comp_mask & IBV_QP_INIT_ATTR_PD))
		return vb_refuse(EINVAL,
				 "comp_mask 0x%x: it needs IBV_QP_INIT_ATTR_PD, and may "
				 "have IBV_QP_INIT_ATTR_SEND_OPS_FLAGS",
				 attr->comp_mask);
	if ((attr->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS) && (attr->send_ops_flags & ~ops))
		return vb_refuse(EOPNOTSUPP,
				 "send_ops_flags 0x%llx has an operation that QPs of "
				 "this type do not have on EFA",
				 (unsigned long long)attr->send_ops_flags);
	if (attr->srq)
		return vb_refuse(EINVAL, "EFA has no shared receive queues");
	return 0;
}

static struct ibv_qp *create(struct ibv_context *context, struct ibv_qp_init_attr_ex *attr,
			     const struct vb_efa_qp_init_attr *efa, struct vb_efa_qp *part)
{
	struct vb_dc_attr srd = {
		.srd = true,
		.unsolicited = efa->flags & VB_EFA_QP_UNSOLICITED_WRITE_RECV,
	};
	bool is_driver = attr->qp_type == IBV_QPT_DRIVER;
	struct vb_qp_dv_attr dv = {.dc = is_driver ? &srd : NULL};
	int rc = check(attr, is_driver, efa);

	if (rc != 0) {
		free(part);
		vb_abi_end("efadv_create_qp_ex", rc);
		return NULL;
	}
	return vb_abi_create_qp_dv(context, attr, &dv, part);
}

struct ibv_qp *efadv_create_driver_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr,
				      uint32_t driver_qp_type)
{
	const struct vb_efa_qp_init_attr efa = {.driver_qp_type = driver_qp_type};
	struct ibv_qp_init_attr_ex full;
	struct ibv_qp *qp;

	if (!vb_efa_is(pd->context) || attr->qp_type != IBV_QPT_DRIVER) {
		errno = vb_efa_is(pd->context) ? EINVAL : EOPNOTSUPP;
		return NULL;
	}
	memset(&full, 0, sizeof(full));
	memcpy(&full, attr, sizeof(*attr));
	full.comp_mask = IBV_QP_INIT_ATTR_PD;
	full.pd = pd;
	qp = create(pd->context, &full, &efa, NULL);
	if (qp)
		attr->cap = full.cap;
	return qp;
}

/* Hints change how fast a device is, not what it does: there is nothing here that they change. */
static void set_hints(struct vb_efa_qp *qp, uint32_t hints)
{
}

static int check_efa(const struct vb_efa_qp_init_attr *attr, uint32_t inlen,
		     struct vb_efa_qp_init_attr *full)
{
	static const uint16_t flags = VB_EFA_QP_UNSOLICITED_WRITE_RECV | VB_EFA_QP_INLINE_WRITE;

	if (!vb_efa_has(struct vb_efa_qp_init_attr, driver_qp_type, inlen) ||
	    !vb_efa_rest_is_zero(attr, sizeof(*attr), inlen))
		return EINVAL;
	memset(full, 0, sizeof(*full));
	memcpy(full, attr, inlen < sizeof(*full) ? inlen : sizeof(*full));
	if (full->comp_mask || full->reserved || (full->flags & ~flags) ||
	    (full->wr_flags & ~(uint64_t)VB_EFA_WR_WITH_HINTS))
		return vb_refuse(EINVAL, "efa_attr has a bit that EFA does not know");
	if (full->flags & VB_EFA_QP_INLINE_WRITE)
		return vb_refuse(EOPNOTSUPP,
				 "efa_attr.flags 0x%x: efadv_query_device says that the "
				 "device does not have it",
				 full->flags);
	return 0;
}

struct ibv_qp *efadv_create_qp_ex(struct ibv_context *context, struct ibv_qp_init_attr_ex *attr,
				  struct vb_efa_qp_init_attr *efa_attr, uint32_t inlen)
{
	struct vb_efa_qp_init_attr full;
	struct vb_efa_qp *part;
	int rc = vb_efa_is(context) ? check_efa(efa_attr, inlen, &full) : EOPNOTSUPP;

	if (rc != 0) {
		vb_abi_result(rc);
		return NULL;
	}
	part = calloc(1, sizeof(*part));
	if (!part) {
		errno = ENOMEM;
		return NULL;
	}
	if (full.wr_flags & VB_EFA_WR_WITH_HINTS)
		part->wr_set_processing_hints = set_hints;
	return create(context, attr, &full, part);
}

struct vb_efa_qp *efadv_qp_from_ibv_qp_ex(struct ibv_qp_ex *qp)
{
	struct vb_builder *b = qp ? vb_wr_builder(qp) : NULL;

	if (!b || !b->dv || !vb_efa_is(qp->qp_base.context)) {
		errno = EOPNOTSUPP;
		return NULL;
	}
	return b->dv;
}
