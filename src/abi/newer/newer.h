/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_ABI_NEWER_NEWER_H
#define VB_ABI_NEWER_NEWER_H

/*
 * What <infiniband/verbs.h> of rdma-core 45 to 65 has beyond the one that we are compiled with,
 * with its numbers and layouts, for programs compiled with those. Our structures stand for those
 * with ibv_ in place of vb_; the calls are declared where they are defined. FLUSH is in
 * engine/newer.h, completion counters are in nic/queue/comp_cntr.h.
 */

#include <infiniband/verbs.h>
#include <stddef.h>
#include <stdint.h>

/* enum ibv_mr_init_attr_mask: IBV_REG_MR_MASK_*. */
enum {
	VB_REG_MR_IOVA = 1 << 0,
	VB_REG_MR_ADDR = 1 << 1,
	VB_REG_MR_FD = 1 << 2,
	VB_REG_MR_FD_OFFSET = 1 << 3,
	VB_REG_MR_DMAH = 1 << 4,
	VB_REG_MR_BUF = 1 << 5,
};

struct vb_mr_init_attr {
	size_t length;
	int access;
	uint64_t comp_mask; /* VB_REG_MR_* */
	uint64_t iova;
	void *addr;
	int fd;
	uint64_t fd_offset;
	struct ibv_dmah *dmah;
	struct ibv_buf *buf;
};

/* enum ibv_dmah_init_attr_mask: IBV_DMAH_INIT_ATTR_MASK_*. */
enum {
	VB_DMAH_CPU_ID = 1 << 0,
	VB_DMAH_PH = 1 << 1,
	VB_DMAH_TPH_MEM_TYPE = 1 << 2,
};

/* enum ibv_tph_mem_type. */
enum { VB_TPH_MEM_TYPE_VM, VB_TPH_MEM_TYPE_PM };

struct vb_dmah_init_attr {
	uint32_t comp_mask; /* VB_DMAH_* */
	uint32_t cpu_id;
	uint8_t ph;
	uint8_t tph_mem_type;
};

/* enum ibv_query_qp_data_in_order_flags, ..._caps. */
enum { VB_DATA_IN_ORDER_RETURN_CAPS = 1 << 0, VB_DATA_IN_ORDER_DEVICE_ONLY = 1 << 1 };
enum { VB_DATA_IN_ORDER_WHOLE_MSG = 1 << 0, VB_DATA_IN_ORDER_ALIGNED_128_BYTES = 1 << 1 };

/* IBV_EVENT_DEVICE_SPEED_CHANGE, which we never report. */
enum { VB_EVENT_DEVICE_SPEED_CHANGE = IBV_EVENT_WQ_FATAL + 1 };

/* What struct ibv_port_attr grew by after port_cap_flags2. */
struct vb_newer_port_attr {
	_Alignas(uint32_t) char older[offsetof(struct ibv_port_attr, port_cap_flags2) +
				      sizeof(uint16_t)];
	uint32_t active_speed_ex;
};

#endif
