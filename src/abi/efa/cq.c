/* SPDX-License-Identifier: BSD-2-Clause */
/* efadv_create_cq(3): completions that tell the GID of a sender without an address handle. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "abi/efa/room.h"
#include "abi/verbs/abi.h"
#include "abi/verbs/ops.h"
#include "nic/core/ahn.h"
#include "nic/queue/cq.h"

struct ibv_cq_ex *efadv_create_cq(struct ibv_context *context, struct ibv_cq_init_attr_ex *attr,
				  struct vb_efa_cq_init_attr *efa_attr, uint32_t inlen);
struct vb_efa_cq *efadv_cq_from_ibv_cq_ex(struct ibv_cq_ex *cq);

static int read_sgid(struct vb_efa_cq *efa, union ibv_gid *sgid)
{
	const struct vb_cqe *cqe = vb_abi_cq_ex_current(efa->cq);

	/* "If the AH is known, a negative error value is returned." */
	if (cqe->wc.slid != VB_AHN_NONE ||
	    !vb_ahn_gid(vb_abi_nic(efa->cq->context), (uint16_t)cqe->ahn, sgid->raw))
		return -ENOENT;
	return 0;
}

static bool is_unsolicited(struct vb_efa_cq *efa)
{
	return vb_abi_cq_ex_current(efa->cq)->note == VB_CQE_UNSOLICITED;
}

static int check(const struct ibv_cq_init_attr_ex *attr, const struct vb_efa_cq_init_attr *efa)
{
	static const uint64_t fields = VB_EFA_WC_WITH_SGID | VB_EFA_WC_WITH_IS_UNSOLICITED;

	if (efa->comp_mask || (efa->flags & ~(uint64_t)VB_EFA_CQ_EXT_MEM_DMABUF))
		return vb_refuse(EINVAL, "efa_attr has a bit that EFA does not know");
	if (efa->flags)
		return vb_refuse(EOPNOTSUPP, "efa_attr.flags: there is no device that would write "
					     "completions to a dma-buf");
	if (efa->wc_flags & ~fields)
		return vb_refuse(EOPNOTSUPP,
				 "efa_attr.wc_flags 0x%llx: completions have only "
				 "EFADV_WC_EX_WITH_SGID and WITH_IS_UNSOLICITED",
				 (unsigned long long)efa->wc_flags);
	if (attr->wc_flags & ~(uint64_t)IBV_WC_STANDARD_FLAGS)
		return vb_refuse(EOPNOTSUPP,
				 "wc_flags 0x%llx: EFA's completions have "
				 "IBV_WC_STANDARD_FLAGS",
				 (unsigned long long)attr->wc_flags);
	return 0;
}

/* The part of a CQ that programs know, which goes with it. */
static struct ibv_cq_ex *with_part(struct ibv_cq_ex *cq, struct vb_efa_cq *part, uint64_t wc_flags)
{
	if (!cq) {
		free(part);
		return NULL;
	}
	part->cq = cq;
	if (wc_flags & VB_EFA_WC_WITH_SGID)
		part->wc_read_sgid = read_sgid;
	if (wc_flags & VB_EFA_WC_WITH_IS_UNSOLICITED)
		part->wc_is_unsolicited = is_unsolicited;
	vb_abi_cq_ex_dv_set(cq, part);
	return cq;
}

struct ibv_cq_ex *efadv_create_cq(struct ibv_context *context, struct ibv_cq_init_attr_ex *attr,
				  struct vb_efa_cq_init_attr *efa_attr, uint32_t inlen)
{
	struct vb_efa_cq_init_attr full = {.comp_mask = 0};
	struct vb_efa_cq *part;
	int rc = vb_efa_is(context) ? EINVAL : EOPNOTSUPP;

	if (rc == EINVAL && vb_efa_has(struct vb_efa_cq_init_attr, wc_flags, inlen) &&
	    vb_efa_rest_is_zero(efa_attr, sizeof(full), inlen)) {
		memcpy(&full, efa_attr, inlen < sizeof(full) ? inlen : sizeof(full));
		rc = check(attr, &full);
	}
	if (rc != 0) {
		vb_abi_result(rc);
		return NULL;
	}
	part = calloc(1, sizeof(*part));
	if (!part) {
		errno = ENOMEM;
		return NULL;
	}
	return with_part(vb_abi_create_cq_ex(context, attr), part, full.wc_flags);
}

struct vb_efa_cq *efadv_cq_from_ibv_cq_ex(struct ibv_cq_ex *cq)
{
	struct vb_efa_cq *part = cq && vb_efa_is(cq->context) ? vb_abi_cq_ex_dv(cq) : NULL;

	if (!part)
		errno = EOPNOTSUPP;
	return part;
}
