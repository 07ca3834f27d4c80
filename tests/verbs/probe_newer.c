/* SPDX-License-Identifier: BSD-2-Clause */
/* Probes of what newer releases of <infiniband/verbs.h> have (newer.h). */
#include "newer.h"
#include "probe.h"

#include <sched.h>
#include <sys/mman.h>
#include <unistd.h>

static uint8_t memory[4096] __attribute__((aligned(4096)));

static int deregistered(struct ibv_mr *mr)
{
	return mr ? ibv_dereg_mr(mr) : probe_made(mr);
}

static int reg(struct ibv_mr_init_attr attr)
{
	attr.length = sizeof(memory);
	attr.addr = memory;
	attr.comp_mask |= IBV_REG_MR_MASK_ADDR;
	return deregistered(ibv_reg_mr_ex(vt.pd, &attr));
}

static int reg_with(uint64_t mask)
{
	return reg((struct ibv_mr_init_attr){ .comp_mask = mask });
}

static int reg_fd(uint64_t unused)
{
	struct ibv_mr_init_attr attr = {
		.length = sizeof(memory),
		.comp_mask = IBV_REG_MR_MASK_FD | IBV_REG_MR_MASK_FD_OFFSET | IBV_REG_MR_MASK_IOVA,
		.fd = memfd_create("probe", MFD_CLOEXEC),
	};
	int rc = ftruncate(attr.fd, sizeof(memory)) ? errno
						    : deregistered(ibv_reg_mr_ex(vt.pd, &attr));

	close(attr.fd);
	return rc;
}

static int hints(uint64_t type)
{
	struct ibv_dmah_init_attr attr = {
		.comp_mask = IBV_DMAH_INIT_ATTR_MASK_CPU_ID | IBV_DMAH_INIT_ATTR_MASK_PH |
			     IBV_DMAH_INIT_ATTR_MASK_TPH_MEM_TYPE,
		.cpu_id = (uint32_t)sched_getcpu(),
		.tph_mem_type = (uint8_t)type,
	};

	return PROBE_ONCE(ibv_alloc_dmah(vt.ctx, &attr), ibv_dealloc_dmah);
}

static int dmah(uint64_t unused)
{
	struct ibv_dmah_init_attr attr = { .comp_mask = IBV_DMAH_INIT_ATTR_MASK_PH, .ph = 1 };
	struct ibv_dmah *made = ibv_alloc_dmah(vt.ctx, &attr);
	int rc = probe_made(made);

	if (!made)
		return rc;
	rc = reg((struct ibv_mr_init_attr){ .comp_mask = IBV_REG_MR_MASK_DMAH, .dmah = made });
	return probe_first(ibv_dealloc_dmah(made), rc);
}

static int buf_reg(struct ibv_buf *buf, void *at)
{
	return deregistered(ibv_reg_buf_mr(vt.pd, buf, at, sizeof(memory), 0));
}

static int buf_export(struct ibv_buf *buf, void *at)
{
	return probe_counted(ibv_export_buf_dmabuf_fd(buf));
}

static int with_buf(int (*act)(struct ibv_buf *buf, void *at))
{
	struct ibv_buf *buf;
	void *at = ibv_alloc_buf(vt.pd, sizeof(memory), &buf);
	int rc;

	if (!at)
		return probe_made(at);
	rc = act(buf, at);
	ibv_free_buf(buf);
	return rc;
}

static int registered_buf(uint64_t unused)
{
	return with_buf(buf_reg);
}

static int exported_buf(uint64_t unused)
{
	return with_buf(buf_export);
}

static int dm_export(uint64_t unused)
{
	struct ibv_alloc_dm_attr attr = { .length = 64 };
	struct ibv_dm *dm = ibv_alloc_dm(vt.ctx, &attr);
	int rc;

	if (!dm)
		return probe_made(dm);
	rc = probe_counted(ibv_dm_export_dmabuf_fd(dm));
	ibv_free_dm(dm);
	return rc;
}

static int speed(uint64_t unused)
{
	uint64_t units;

	return ibv_query_port_speed(vt.ctx, 1, &units);
}

static int domain(uint64_t mask)
{
	struct ibv_parent_domain_init_attr attr = { .pd = vt.pd, .comp_mask = (uint32_t)mask };

	return PROBE_ONCE(ibv_alloc_parent_domain(vt.ctx, &attr), ibv_dealloc_pd);
}

/* --- completion counters --- */

static int cntr_of(uint64_t type)
{
	struct ibv_comp_cntr_init_attr attr = { .type = (uint32_t)type };

	return PROBE_ONCE(ibv_create_comp_cntr(vt.ctx, &attr), ibv_destroy_comp_cntr);
}

static int caps(uint64_t unused)
{
	struct ibv_comp_cntr_caps caps;

	return ibv_query_comp_cntr_caps(vt.ctx, &caps);
}

static int values(uint64_t unused)
{
	struct ibv_comp_cntr_init_attr attr = { .type = IBV_COMP_CNTR_TYPE_WRS };
	struct ibv_comp_cntr *cntr = ibv_create_comp_cntr(vt.ctx, &attr);
	uint64_t is;
	int rc;

	if (!cntr)
		return probe_made(cntr);
	rc = ibv_set_comp_cntr(cntr, 1) | ibv_set_err_comp_cntr(cntr, 1) |
	     ibv_inc_comp_cntr(cntr, 1) | ibv_inc_err_comp_cntr(cntr, 1) |
	     ibv_read_comp_cntr(cntr, &is) | ibv_read_err_comp_cntr(cntr, &is);
	return probe_first(ibv_destroy_comp_cntr(cntr), rc);
}

static int attach(uint64_t ops)
{
	struct ibv_comp_cntr_init_attr attr = { .type = IBV_COMP_CNTR_TYPE_WRS };
	struct ibv_qp_attach_comp_cntr_attr to = { .op_mask = (uint32_t)ops };
	struct ibv_comp_cntr *cntr = ibv_create_comp_cntr(vt.ctx, &attr);
	struct vt_end end;
	int rc;

	if (!cntr)
		return probe_made(cntr);
	vt_end_open(&end, &(struct vt_options){ .type = IBV_QPT_RC });
	rc = ibv_qp_attach_comp_cntr(end.qp, cntr, &to);
	vt_end_close(&end);
	return probe_first(rc, ibv_destroy_comp_cntr(cntr));
}

/* clang-format off */
const struct probe probe_newer[] = {
	PROBE_OF(ibv_reg_mr_ex, reg_with, 0),
	PROBE_OF(IBV_REG_MR_MASK_ADDR, reg_with, 0),
	PROBE_FLAG(IBV_REG_MR_MASK_IOVA, reg_with),
	PROBE(IBV_REG_MR_MASK_FD, reg_fd),
	PROBE(IBV_REG_MR_MASK_FD_OFFSET, reg_fd),
	PROBE(ibv_alloc_dmah, dmah),
	PROBE(ibv_dealloc_dmah, dmah),
	PROBE(IBV_REG_MR_MASK_DMAH, dmah),
	PROBE(IBV_DMAH_INIT_ATTR_MASK_PH, dmah),
	PROBE(IBV_DMAH_INIT_ATTR_MASK_CPU_ID, hints),
	PROBE(IBV_DMAH_INIT_ATTR_MASK_TPH_MEM_TYPE, hints),
	PROBE_FLAG(IBV_TPH_MEM_TYPE_VM, hints),
	PROBE_FLAG(IBV_TPH_MEM_TYPE_PM, hints),
	PROBE(ibv_alloc_buf, registered_buf),
	PROBE(ibv_free_buf, registered_buf),
	PROBE(ibv_reg_buf_mr, registered_buf),
	PROBE(IBV_REG_MR_MASK_BUF, registered_buf),
	PROBE(ibv_export_buf_dmabuf_fd, exported_buf),
	PROBE(ibv_dm_export_dmabuf_fd, dm_export),
	PROBE(ibv_query_port_speed, speed),
	PROBE_FLAG(IBV_PARENT_DOMAIN_INIT_ATTR_ALLOW_CC_UNPROTECTED_ALLOC, domain),
	PROBE(ibv_query_comp_cntr_caps, caps),
	PROBE(ibv_create_comp_cntr, cntr_of),
	PROBE(ibv_destroy_comp_cntr, cntr_of),
	PROBE_FLAG(IBV_COMP_CNTR_TYPE_WRS, cntr_of),
	PROBE_FLAG(IBV_COMP_CNTR_TYPE_BYTES, cntr_of),
	PROBE(ibv_set_comp_cntr, values),
	PROBE(ibv_set_err_comp_cntr, values),
	PROBE(ibv_inc_comp_cntr, values),
	PROBE(ibv_inc_err_comp_cntr, values),
	PROBE(ibv_read_comp_cntr, values),
	PROBE(ibv_read_err_comp_cntr, values),
	PROBE_OF(ibv_qp_attach_comp_cntr, attach, IBV_QP_ATTACH_COMP_CNTR_OP_SEND),
	PROBE_FLAG(IBV_QP_ATTACH_COMP_CNTR_OP_SEND, attach),
	PROBE_FLAG(IBV_QP_ATTACH_COMP_CNTR_OP_RECV, attach),
	PROBE_FLAG(IBV_QP_ATTACH_COMP_CNTR_OP_RDMA_READ, attach),
	PROBE_FLAG(IBV_QP_ATTACH_COMP_CNTR_OP_RDMA_WRITE, attach),
	PROBE_FLAG(IBV_QP_ATTACH_COMP_CNTR_OP_REMOTE_RDMA_READ, attach),
	PROBE_FLAG(IBV_QP_ATTACH_COMP_CNTR_OP_REMOTE_RDMA_WRITE, attach),
	{ NULL },
};
