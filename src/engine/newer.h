/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_ENGINE_NEWER_H
#define VB_ENGINE_NEWER_H

/*
 * What newer releases of <infiniband/verbs.h> have beyond the one we are compiled with, with their
 * numbers, for programs compiled with those. It is about FLUSH (IBTA release 1.6), and about
 * reporting ATOMIC_WRITE.
 */

#include <infiniband/verbs.h>
#include <stddef.h>
#include <stdint.h>

/* IBV_ACCESS_FLUSH_*, for QPs and regions. No region of ours is persistent. */
#define VB_ACCESS_FLUSH_GLOBAL (1u << 8)
#define VB_ACCESS_FLUSH_PERSISTENT (1u << 9)

#define VB_QP_EX_WITH_FLUSH (1ull << 11) /* IBV_QP_EX_WITH_FLUSH */
#define VB_WR_FLUSH 14			  /* IBV_WR_FLUSH */
#define VB_WC_FLUSH 8			  /* IBV_WC_FLUSH */

/* IBV_DEVICE_FLUSH_GLOBAL, IBV_DEVICE_ATOMIC_WRITE: in device_cap_flags_ex. */
#define VB_DEVICE_FLUSH_GLOBAL (1ull << 38)
#define VB_DEVICE_ATOMIC_WRITE (1ull << 40)

/* IBV_ODP_SUPPORT_FLUSH, IBV_ODP_SUPPORT_ATOMIC_WRITE. */
enum { VB_ODP_FLUSH = 1 << 6, VB_ODP_ATOMIC_WRITE = 1 << 7 };

/* enum ibv_placement_type (bits), enum ibv_selectivity_level; as in the FETH. */
enum { VB_FLUSH_GLOBAL = 1, VB_FLUSH_PERSISTENT = 2 };
enum { VB_FLUSH_RANGE = 0, VB_FLUSH_MR = 1 };

/* The offset behind wr_atomic_write in struct ibv_qp_ex, where newer headers have more. */
#define VB_QP_EX_OLDER_BYTES                                                                       \
	(offsetof(struct ibv_qp_ex, wr_atomic_write) +                                             \
	 sizeof(((struct ibv_qp_ex *)NULL)->wr_atomic_write))
typedef void vb_wr_flush_fn(struct ibv_qp_ex *qp, uint32_t rkey, uint64_t remote_addr, size_t bytes,
			    uint8_t type, uint8_t level);

#endif
