/* SPDX-License-Identifier: BSD-2-Clause */
#include "nic/core/stats.h"

static const char *const stat_names[VB_STATS] = {
#define X(id, name) [VB_STAT_##id] = name,
	VB_STAT_LIST(X)
#undef X
};

const char *vb_stat_name(enum vb_stat stat)
{
	return stat_names[stat];
}
