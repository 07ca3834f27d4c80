/* SPDX-License-Identifier: BSD-2-Clause */
/* ibv_reg_mr_ex(3): one call for all ways to register memory. */
#include "abi/verbs/abi.h"
#include "abi/newer/buf.h"
#include "abi/newer/dmah.h"
#include "abi/newer/newer.h"
#include "nic/mem/mem.h"

struct ibv_mr_init_attr;
struct ibv_mr *ibv_reg_mr_ex(struct ibv_pd *pd, struct ibv_mr_init_attr *attr);

/* The range has to lie in the buffer, and the buffer to be the domain's. */
static int buf_check(struct ibv_pd *pd, const struct vb_mr_init_attr *attr)
{
	const struct vb_buf *buf = (const struct vb_buf *)attr->buf;
	size_t from;
	int rc = vb_known(VB_KNOWN_BUF, buf);

	if (rc != 0)
		return rc;
	if (buf->pd != pd)
		return vb_refuse(EINVAL, "the buffer was allocated in another protection domain");
	if (!(attr->comp_mask & VB_REG_MR_ADDR))
		return vb_refuse(EINVAL, "IBV_REG_MR_MASK_BUF needs IBV_REG_MR_MASK_ADDR");
	if (attr->comp_mask & (VB_REG_MR_FD | VB_REG_MR_FD_OFFSET))
		return vb_refuse(EINVAL, "a buffer has no descriptor of the caller's");
	from = (size_t)((char *)attr->addr - (char *)buf->addr);
	if ((char *)attr->addr < (char *)buf->addr || from > buf->bytes ||
	    attr->length > buf->bytes - from)
		return vb_refuse(EINVAL, "the range is not within the buffer's %zu octets",
				 buf->bytes);
	return 0;
}

/* Do those fields go together that comp_mask has? */
static int mask_check(uint64_t mask)
{
	static const uint64_t with_fd = VB_REG_MR_FD | VB_REG_MR_FD_OFFSET | VB_REG_MR_IOVA;
	static const uint64_t known = with_fd | VB_REG_MR_ADDR | VB_REG_MR_DMAH | VB_REG_MR_BUF;

	if (mask & ~known)
		return vb_refuse(EOPNOTSUPP, "comp_mask 0x%llx has unknown bits",
				 (unsigned long long)mask);
	if (!(mask & VB_REG_MR_FD) == !(mask & VB_REG_MR_ADDR))
		return vb_refuse(EINVAL, "comp_mask 0x%llx has not one of addr and fd",
				 (unsigned long long)mask);
	if ((mask & VB_REG_MR_FD) && (mask & with_fd) != with_fd)
		return vb_refuse(EINVAL, "fd needs fd_offset and iova");
	if (!(mask & VB_REG_MR_FD) && (mask & VB_REG_MR_FD_OFFSET))
		return vb_refuse(EINVAL, "fd_offset needs fd");
	return 0;
}

static int dmah_check(struct ibv_pd *pd, const struct vb_mr_init_attr *attr)
{
	const struct vb_dmah *dmah = (const struct vb_dmah *)attr->dmah;
	int rc = vb_known(VB_KNOWN_DMAH, dmah);

	if (rc == 0 && dmah->context != pd->context)
		rc = vb_refuse(EINVAL, "the DMA handle is of another context");
	if (rc == 0 && (attr->access & IBV_ACCESS_ON_DEMAND))
		rc = vb_refuse(EOPNOTSUPP, "on-demand paging does not go with a DMA handle");
	return rc;
}

static int attr_check(struct ibv_pd *pd, const struct vb_mr_init_attr *attr)
{
	int rc = vb_abi_check(PD, pd);

	if (rc == 0)
		rc = mask_check(attr->comp_mask);
	if (rc == 0 && (attr->comp_mask & VB_REG_MR_BUF))
		rc = buf_check(pd, attr);
	if (rc == 0 && (attr->comp_mask & VB_REG_MR_DMAH))
		rc = dmah_check(pd, attr);
	return rc;
}

/* The calls that there were before do the work, and report what they refuse. */
struct ibv_mr *ibv_reg_mr_ex(struct ibv_pd *pd, struct ibv_mr_init_attr *ibv)
{
	const struct vb_mr_init_attr *attr = (const struct vb_mr_init_attr *)ibv;
	uint64_t mask = attr->comp_mask;
	struct ibv_mr *mr;
	int rc = attr_check(pd, attr);

	if (rc != 0) {
		vb_abi_result(rc);
		return NULL;
	}
	if (mask & VB_REG_MR_FD)
		mr = ibv_reg_dmabuf_mr(pd, attr->fd_offset, attr->length, attr->iova, attr->fd,
				       attr->access);
	else
		mr = ibv_reg_mr_iova2(pd, attr->addr, attr->length,
				      mask & VB_REG_MR_IOVA ? attr->iova : (uintptr_t)attr->addr,
				      (unsigned)attr->access);
	if (mr && (mask & VB_REG_MR_DMAH)) {
		((struct vb_mr *)mr)->users = &((struct vb_dmah *)attr->dmah)->regions;
		atomic_fetch_add(((struct vb_mr *)mr)->users, 1);
	}
	return mr;
}
