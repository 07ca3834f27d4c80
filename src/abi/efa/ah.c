/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>

#include "abi/efa/room.h"
#include "nic/core/ahn.h"

int efadv_query_ah(struct ibv_ah *ah, struct vb_efa_ah_attr *attr, uint32_t inlen);

/* From then on completions name the handle by that number, as `slid`. */
int efadv_query_ah(struct ibv_ah *ah, struct vb_efa_ah_attr *attr, uint32_t inlen)
{
	struct vb_efa_ah_attr full = {.comp_mask = 0};

	if (!vb_efa_is(ah->context))
		return EOPNOTSUPP;
	if (!vb_efa_has(struct vb_efa_ah_attr, ahn, inlen))
		return EINVAL;
	full.ahn = vb_ah_number((struct vb_ah *)ah);
	if (full.ahn == VB_AHN_NONE)
		return ENOMEM;
	vb_efa_give(attr, inlen, &full, sizeof(full));
	return 0;
}
