/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_ABI_EFA_H
#define VB_ABI_EFA_H

/*
 * EFA direct verbs, efadv_*(3), as of rdma-core 65. Older headers lack the later functions and the
 * ends of some structures, so nothing of <infiniband/efadv.h> is used here: tests compare the two.
 *
 * A caller says how much of a structure it has (inlen). What it has beyond ours has to be zero in
 * what it hands in, and is set to zero in what it gets. Every function fails with EOPNOTSUPP on a
 * device that is not of the persona efa.
 */

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* --- the device --- */

enum {
	VB_EFA_CAP_RDMA_READ = 1 << 0,
	VB_EFA_CAP_RNR_RETRY = 1 << 1,
	VB_EFA_CAP_CQ_WITH_SGID = 1 << 2,
	VB_EFA_CAP_RDMA_WRITE = 1 << 3,
	VB_EFA_CAP_UNSOLICITED_WRITE_RECV = 1 << 4,
};

struct vb_efa_device_attr {
	uint64_t comp_mask;
	uint32_t max_sq_wr, max_rq_wr;
	uint16_t max_sq_sge, max_rq_sge;
	uint16_t inline_buf_size, inline_buf_size_ex;
	uint32_t device_caps;
	uint32_t max_rdma_size;
};

enum { VB_EFA_SQ_INLINE_WRITE = 1 << 0 };

struct vb_efa_sq_depth_attr {
	uint64_t comp_mask;
	uint32_t flags;
	uint32_t max_send_sge, max_rdma_sge;
	uint32_t max_inline_data;
};

struct vb_efa_rq_depth_attr {
	uint64_t comp_mask;
	uint32_t max_recv_sge;
};

/* --- objects --- */

struct vb_efa_mr_attr {
	uint64_t comp_mask;
	uint16_t ic_id_validity;
	uint16_t recv_ic_id, rdma_read_ic_id, rdma_recv_ic_id;
};

struct vb_efa_ah_attr {
	uint64_t comp_mask;
	uint16_t ahn;
	uint8_t reserved[6];
};

/* --- QPs --- */

enum { VB_EFA_DRIVER_SRD };

enum {
	VB_EFA_QP_UNSOLICITED_WRITE_RECV = 1 << 0,
	VB_EFA_QP_INLINE_WRITE = 1 << 1,
};

enum { VB_EFA_WR_WITH_HINTS = 1 << 0 };

struct vb_efa_qp_init_attr {
	uint64_t comp_mask;
	uint32_t driver_qp_type;
	uint16_t flags;
	uint8_t sl;
	uint8_t reserved;
	uint64_t wr_flags;
};

/* What a program has of a QP with a builder (vb_builder.dv). */
struct vb_efa_qp {
	uint64_t comp_mask;
	void (*wr_set_processing_hints)(struct vb_efa_qp *qp, uint32_t hints);
};

/* --- CQs --- */

enum {
	VB_EFA_WC_WITH_SGID = 1 << 0,
	VB_EFA_WC_WITH_IS_UNSOLICITED = 1 << 1,
};

enum { VB_EFA_CQ_EXT_MEM_DMABUF = 1 << 0 };

struct vb_efa_cq_init_attr {
	uint64_t comp_mask;
	uint64_t wc_flags;
	uint64_t flags;
	struct {
		uint8_t *buffer;
		uint64_t length;
		uint64_t offset;
		int32_t fd;
		uint8_t reserved[4];
	} ext_mem_dmabuf;
};

/* What a program has of such a CQ. */
struct vb_efa_cq {
	uint64_t comp_mask;
	int (*wc_read_sgid)(struct vb_efa_cq *cq, union ibv_gid *sgid);
	bool (*wc_is_unsolicited)(struct vb_efa_cq *cq);
	struct ibv_cq_ex *cq; /* ours: programs do not know it */
};

#endif
