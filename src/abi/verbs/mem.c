/* SPDX-License-Identifier: BSD-2-Clause */
#include "abi/check/check.h"
#include "abi/verbs/abi.h"
#include "abi/verbs/ops.h"
#include "nic/mem/mem.h"
#include "nic/mem/mem_kinds.h"
#include "tape/calls.h"

/* The header makes these macros, to choose between two functions. */
#undef ibv_reg_mr
#undef ibv_reg_mr_iova

struct ibv_mr *ibv_reg_mr_iova2(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova,
				unsigned int access)
{
	struct vb_mr *mr;
	int rc = vb_abi_check(PD, pd);

	if (rc == 0)
		rc = vb_taped_mr_reg((struct vb_pd *)pd, addr, length, iova, access, &mr);
	if (rc != 0) {
		vb_abi_result(rc);
		return NULL;
	}
	vb_known_add(VB_KNOWN_MR, &mr->ibv);
	return &mr->ibv;
}

struct ibv_mr *ibv_reg_mr(struct ibv_pd *pd, void *addr, size_t length, int access)
{
	return ibv_reg_mr_iova2(pd, addr, length, (uintptr_t)addr, access);
}

struct ibv_mr *ibv_reg_mr_iova(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova,
			       int access)
{
	return ibv_reg_mr_iova2(pd, addr, length, iova, access);
}

struct ibv_mr *ibv_reg_dmabuf_mr(struct ibv_pd *pd, uint64_t offset, size_t length, uint64_t iova,
				 int fd, int access)
{
	struct vb_mr *mr;
	int rc = vb_abi_check(PD, pd);

	if (rc == 0)
		rc = vb_mr_reg_dmabuf((struct vb_pd *)pd, offset, length, iova, fd, access, &mr);
	if (rc != 0) {
		vb_abi_result(rc);
		return NULL;
	}
	vb_known_add(VB_KNOWN_MR, &mr->ibv);
	return &mr->ibv;
}

struct ibv_mr *vb_abi_alloc_null_mr(struct ibv_pd *pd)
{
	struct vb_mr *mr;
	int rc = vb_abi_check(PD, pd);

	if (rc == 0)
		rc = vb_taped_mr_alloc_null((struct vb_pd *)pd, &mr);
	if (rc != 0) {
		vb_abi_result(rc);
		return NULL;
	}
	vb_known_add(VB_KNOWN_MR, &mr->ibv);
	return &mr->ibv;
}

int vb_abi_advise_mr(struct ibv_pd *pd, enum ibv_advise_mr_advice advice, uint32_t flags,
		     struct ibv_sge *sg_list, uint32_t num_sge)
{
	int rc = vb_abi_check(PD, pd);

	if (rc == 0)
		rc = vb_mr_advise((struct vb_pd *)pd, advice, flags, sg_list, num_sge);
	return vb_abi_result(rc);
}

/* Checks what libibverbs checks before it asks a device. */
static bool rereg_is_sound(int flags, const void *addr, size_t length, int access)
{
	if ((flags & IBV_REREG_MR_CHANGE_TRANSLATION) && (!addr || !length))
		return false;
	return !access || (flags & IBV_REREG_MR_CHANGE_ACCESS);
}

/*
 * A failed call leaves the region unchanged, so every failure means that the old region is still
 * valid: IBV_REREG_MR_ERR_INPUT.
 */
static int rereg(struct vb_mr *mr, int flags, struct vb_pd *pd, void *addr, size_t length,
		 int access)
{
	int rc;

	if (vb_check_is_on())
		vb_check_rereg(&mr->ibv, false);
	rc = vb_taped_mr_rereg(mr, flags, pd, addr, length, access);
	if (vb_check_is_on())
		vb_check_rereg(&mr->ibv, true);
	return rc;
}

int ibv_rereg_mr(struct ibv_mr *mr, int flags, struct ibv_pd *pd, void *addr, size_t length,
		 int access)
{
	int rc = vb_abi_check(MR, mr);

	if (rc == 0 && (flags & IBV_REREG_MR_CHANGE_PD))
		rc = vb_known_or_null(VB_KNOWN_PD, pd);
	if (!rereg_is_sound(flags, addr, length, access))
		rc = vb_refuse(EINVAL,
			       "flags 0x%x: IBV_REREG_MR_CHANGE_TRANSLATION needs addr and "
			       "length, and access needs IBV_REREG_MR_CHANGE_ACCESS",
			       flags);
	else if (rc == 0)
		rc = rereg((struct vb_mr *)mr, flags, (struct vb_pd *)pd, addr, length, access);
	if (rc != 0) {
		vb_abi_result(rc);
		return IBV_REREG_MR_ERR_INPUT;
	}
	return 0;
}

int ibv_dereg_mr(struct ibv_mr *mr)
{
	_Atomic uint32_t *users;
	int rc = vb_known_end(VB_KNOWN_MR, mr);

	if (rc != 0 || vb_abi_is_gone(mr->context))
		return vb_abi_result(rc);
	users = ((struct vb_mr *)mr)->users;
	rc = vb_known_ended(VB_KNOWN_MR, mr, vb_taped_mr_dereg((struct vb_mr *)mr));
	if (rc == 0 && users)
		atomic_fetch_sub(users, 1);
	return vb_abi_result(rc);
}
