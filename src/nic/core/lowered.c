/* SPDX-License-Identifier: BSD-2-Clause */
#include "nic/core/lowered.h"

#include <errno.h>

#include "base/refusal.h"
#include "engine/recv.h"

/* What files are told that they may say, and the NIC's bounds: the same numbers. */
enum {
#define VB_LIMIT(word, name, least, most) MOST_##word = (most) > INT32_MAX ? 0 : (int)(most),
#include "topology/limits.def"
#undef VB_LIMIT
};

#define SAME(word, bound) _Static_assert((int)MOST_##word == (int)(bound), "limits.def: " #bound)

SAME(QP, VB_SLOTS_PER_NIC_MAX * VB_INDICES_USED);
SAME(QP_WR, VB_QP_WR_MAX);
SAME(SGE, VB_SGE_MAX);
SAME(SGE_RD, VB_SGE_MAX);
SAME(INLINE, VB_INLINE_BYTES_MAX);
SAME(CQ, VB_CQS_MAX);
SAME(CQE, VB_CQE_MAX);
SAME(MR, VB_MRS_MAX);
SAME(MW, VB_MWS_MAX);
SAME(PD, VB_PDS_MAX);
SAME(SRQ, VB_SRQS_MAX);
SAME(SRQ_WR, VB_SRQ_WR_MAX);
SAME(SRQ_SGE, VB_SGE_MAX);
SAME(AH, VB_AHS_MAX);
SAME(MCAST_GRP, VB_GROUPS_MAX);
SAME(MCAST_QP_ATTACH, VB_GROUP_QPS_MAX);
SAME(RD_ATOM, VB_RD_ATOMIC_MAX);
SAME(INIT_RD_ATOM, VB_RD_ATOMIC_MAX);

void vb_lowered_set(struct vb_nic *nic, const struct vb_persona *persona)
{
	const struct vb_limits *limits = &persona->limits;

	for (unsigned i = 0; i < VB_LIMITS; i++)
		nic->identity.most[i] = vb_limit_is_said(limits, i) ? limits->most[i]
								    : vb_limit_most(i);
	nic->identity.persona = *persona;
}

int vb_lowered_full(const struct vb_nic *nic, enum vb_limit limit)
{
	return vb_refuse(ENOMEM, "%s is %u, and there are so many",
			 vb_words_at(&vb_limit_names, limit), vb_lowered(nic, limit));
}

int vb_lowered_count_up(struct vb_nic *nic, _Atomic uint32_t *count, enum vb_limit limit)
{
	return vb_nic_count_up(count, vb_lowered(nic, limit)) ? vb_lowered_full(nic, limit) : 0;
}
