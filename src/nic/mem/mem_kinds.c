/* SPDX-License-Identifier: BSD-2-Clause */

/* Regions of memory other than the application's, and attributes of all kinds. */

#include "engine/newer.h"
#include "nic/mem/mem_kinds.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "base/check.h"
#include "base/refusal.h"
#include "nic/core/internal.h"
#include "nic/mem/foreign.h"
#include "nic/mem/mkey.h"

#define ACCESS_DMABUF                                                                             \
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |              \
	 IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_OPTIONAL_RANGE)
#define ACCESS_DM (ACCESS_DMABUF | IBV_ACCESS_ZERO_BASED)

/* --- device memory --- */

int vb_mr_reg_dm(struct vb_pd *pd, struct vb_dm *dm, uint64_t offset, uint64_t bytes,
		 unsigned access, struct vb_mr **mr)
{
	struct vb_mr like = { .kind = VB_MR_DM, .access = access, .bytes = bytes, .dm = dm };
	int err;

	if (!(access & IBV_ACCESS_ZERO_BASED) || (access & ~(unsigned)ACCESS_DM) ||
	    !vb_mr_access_fits(access) || offset > dm->bytes || bytes > dm->bytes - offset)
		return vb_refuse(EINVAL,
				 "access 0x%x needs IBV_ACCESS_ZERO_BASED, and %" PRIu64
				 " octets from %" PRIu64 " on have to be within the %" PRIu64
				 " of the device memory",
				 access, bytes, offset, (uint64_t)dm->bytes);
	like.base = dm->memory + offset;
	like.ibv.length = bytes; /* addr stays NULL: the first address is 0 */
	err = vb_mr_make(pd, &like, mr);
	if (!err)
		atomic_fetch_add(&dm->users, 1);
	return err;
}

/* --- dma-buf --- */

int vb_mr_reg_dmabuf(struct vb_pd *pd, uint64_t offset, uint64_t bytes, uint64_t iova, int fd,
		     unsigned access, struct vb_mr **mr)
{
	const struct vb_nic_host *host = &vb_nic_of(pd->ibv.context)->host;
	struct vb_mr like = { .kind = VB_MR_DMABUF, .access = access, .bytes = bytes,
			      .iova = iova };
	void *memory;
	int err;

	if ((access & ~(unsigned)ACCESS_DMABUF) || !vb_mr_access_fits(access) || !bytes ||
	    bytes > VB_MR_BYTES_MAX || offset + bytes < bytes || iova + bytes < bytes)
		return vb_refuse(EINVAL,
				 "access is 0x%x, and there are %" PRIu64 " octets from %" PRIu64
				 " on: the access is not one of a dma-buf, or the "
				 "length is 0 or too large",
				 access, bytes, offset);
	if (!host->memory)
		return EOPNOTSUPP;
	err = host->memory->map_file(host->arg, fd, offset, bytes, iova,
			     access & IBV_ACCESS_LOCAL_WRITE, &memory);
	if (err)
		return err;
	like.base = memory;
	like.ibv.addr = (void *)(uintptr_t)offset;
	like.ibv.length = bytes;
	err = vb_mr_make(pd, &like, mr);
	if (err)
		host->memory->unmap(host->arg, memory, bytes);
	return err;
}

void vb_mr_let_go(struct vb_mr *mr)
{
	const struct vb_nic_host *host = &vb_nic_of(mr->ibv.context)->host;

	if (mr->kind == VB_MR_DM)
		atomic_fetch_sub(&mr->dm->users, 1);
	else if (mr->kind == VB_MR_DMABUF)
		host->memory->unmap(host->arg, mr->base, mr->bytes);
}

/* --- null --- */

/* The source of reads and the target of writes; the latter is never read. */
static uint8_t zeros[VB_NULL_BYTES], abyss[VB_NULL_BYTES];

int vb_mr_alloc_null(struct vb_pd *pd, struct vb_mr **mr)
{
	const struct vb_mr like = { .kind = VB_MR_NULL, .access = IBV_ACCESS_LOCAL_WRITE,
				    .bytes = UINT64_MAX, .ibv.length = SIZE_MAX };
	int err = vb_mr_make(pd, &like, mr);

	/* "only the lkey is valid, the MR is not exposed as an rkey" */
	if (!err)
		(*mr)->ibv.rkey = 0;
	return err;
}

uint8_t *vb_mr_get_other(struct vb_nic *nic, const struct vb_pd *pd, uint32_t key, uint64_t va,
			 uint64_t bytes, unsigned access)
{
	const struct vb_export_key *entry = &nic->export->key[vb_key_place(key)];
	struct vb_export_region region;

	if (vb_export_key_read(entry, &region) && region.key == key &&
	    region.pd == vb_export_pd_of_null(pd->id)) {
		if ((access & ~(unsigned)IBV_ACCESS_LOCAL_WRITE) || bytes > VB_NULL_BYTES)
			return NULL;
		return access ? abyss : zeros;
	}
	if (region.key == key && region.pd == VB_EXPORT_PD_INDIRECT)
		return vb_mkey_get(nic, pd, key, va, bytes, access);
	return pd->foreign ? vb_foreign_get(pd, key, va, bytes, access) : NULL;
}

/* --- advice --- */

struct advice {
	bool write;
	enum vb_fetch how;
};

static const struct advice advices[] = {
	[IBV_ADVISE_MR_ADVICE_PREFETCH] = { false, VB_FETCH_READ },
	[IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE] = { true, VB_FETCH_WRITE },
	[IBV_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT] = { false, VB_FETCH_LOOK },
};

static int sge_check(struct vb_nic *nic, const struct vb_pd *pd, const struct advice *advice,
		     const struct ibv_sge *sge, uint8_t **at)
{
	const struct vb_export_key *entry = &nic->export->key[vb_key_place(sge->lkey)];
	struct vb_export_region region;
	bool paged;

	if (!vb_export_key_read(entry, &region) || !region.key || region.key != sge->lkey)
		return vb_refuse(ENOENT, "no region has lkey 0x%x", sge->lkey);
	if (region.pd != pd->id && region.pd != vb_export_pd_of_null(pd->id) && region.pd &&
	    region.pd != VB_EXPORT_PD_INDIRECT)
		return EPERM;
	if (region.pd != pd->id || !(region.access & IBV_ACCESS_ON_DEMAND))
		return vb_refuse(EINVAL,
				 "the region of lkey 0x%x was registered without "
				 "IBV_ACCESS_ON_DEMAND",
				 sge->lkey);
	if (advice->write && !(region.access & IBV_ACCESS_LOCAL_WRITE))
		return EPERM;
	*at = vb_mr_find(nic, (struct ibv_pd *)&pd->ibv, sge->lkey, sge->addr, sge->length, 0,
			 &paged);
	return *at ? 0 : EFAULT;
}

int vb_mr_advise(struct vb_pd *pd, enum ibv_advise_mr_advice advice, uint32_t flags,
		 const struct ibv_sge *sge, uint32_t count)
{
	struct vb_nic *nic = vb_nic_of(pd->ibv.context);
	const struct advice *row;
	uint8_t *at;
	int err = 0;

	if ((unsigned)advice >= VB_ARRAY_LEN(advices) || !nic->host.paging)
		return vb_refuse(EOPNOTSUPP, "advice is %d; there are 0 to %u", (int)advice,
				 (unsigned)VB_ARRAY_LEN(advices) - 1);
	row = &advices[advice];
	if ((flags & ~(uint32_t)IBV_ADVISE_MR_FLAG_FLUSH) || !count)
		return vb_refuse(EINVAL,
				 "flags are 0x%x, num_sge is %u; the only flag is "
				 "IBV_ADVISE_MR_FLAG_FLUSH, and an SGE is needed",
				 flags, count);
	for (uint32_t i = 0; i < count && !err; i++)
		err = sge_check(nic, pd, row, &sge[i], &at);
	/* All is fetched on return, as FLUSH asks; without FLUSH that is allowed. */
	for (uint32_t i = 0; i < count && !err; i++) {
		err = sge_check(nic, pd, row, &sge[i], &at);
		if (!err && sge[i].length)
			err = nic->host.paging->fetch(nic->host.arg, at, sge[i].length, row->how);
	}
	return err;
}

/* --- attributes --- */

void vb_mem_query(const struct vb_nic *nic, struct ibv_device_attr_ex *attr)
{
	const uint32_t both = IBV_ODP_SUPPORT_SEND | IBV_ODP_SUPPORT_RECV;
	const uint32_t all = both | IBV_ODP_SUPPORT_WRITE | IBV_ODP_SUPPORT_READ |
			     IBV_ODP_SUPPORT_ATOMIC | IBV_ODP_SUPPORT_SRQ_RECV;

	attr->max_dm_size = nic->host.memory ? VB_DM_BYTES_MAX : 0;
	attr->odp_caps.general_caps = IBV_ODP_SUPPORT | IBV_ODP_SUPPORT_IMPLICIT;
	attr->odp_caps.per_transport_caps.rc_odp_caps = all | VB_ODP_FLUSH | VB_ODP_ATOMIC_WRITE;
	attr->xrc_odp_caps = attr->orig_attr.device_cap_flags & IBV_DEVICE_XRC ? all : 0;
	/* No READ, no atomics, and no SRQ (ibv_create_qp(3)). */
	attr->odp_caps.per_transport_caps.uc_odp_caps = both | IBV_ODP_SUPPORT_WRITE;
	attr->odp_caps.per_transport_caps.ud_odp_caps = both | IBV_ODP_SUPPORT_SRQ_RECV;
}
