/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_ENGINE_RECV_H
#define VB_ENGINE_RECV_H

/* A receive work request. */

#include <infiniband/verbs.h>
#include <stdint.h>

enum { VB_SGE_MAX = 32 };

struct vb_recv {
	uint64_t wr_id;
	uint32_t sge_count;
	uint32_t bytes; /* sum of the pieces, at most 2^31 */
	struct ibv_sge sge[VB_SGE_MAX];
};

#endif
