/* SPDX-License-Identifier: BSD-2-Clause */
#include "nic/data/window.h"

#include <errno.h>
#include <stdlib.h>

#include "base/refusal.h"
#include "nic/core/quiesce.h"
#include "nic/data/post.h"
#include "nic/mem/mkey.h"
#include "nic/core/lowered.h"

#define REMOTE (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC)

/* What a window has of its region, whatever it grants. */
#define OF_REGION (IBV_ACCESS_ON_DEMAND | IBV_ACCESS_RELAXED_ORDERING)

/* LOCAL_WRITE has no meaning for a window, but programs pass the region's rights. */
#define ACCESS_KNOWN (REMOTE | IBV_ACCESS_ZERO_BASED | IBV_ACCESS_LOCAL_WRITE)

/* The octet that changes from one binding to the next. */
#define TAG_MASK VB_KEY_TAG_MASK

static uint64_t pd_of(const struct ibv_pd *pd)
{
	return ((const struct vb_pd *)pd)->id;
}

/* --- with the keys' lock held --- */

static struct vb_mw *window_at(struct vb_nic *nic, uint32_t key)
{
	struct vb_mw *mw = vb_key_owner(nic, key)->mw;

	return mw && mw->upper == (key & ~TAG_MASK) ? mw : NULL;
}

static struct vb_mr *region_at(struct vb_nic *nic, uint32_t key)
{
	struct vb_mr *mr = vb_key_owner(nic, key)->mr;

	return mr && mr->ibv.lkey == key ? mr : NULL;
}

/* Updates the entry; an unbound window grants nothing and keeps its place. */
static void show(struct vb_nic *nic, const struct vb_mw *mw, const struct vb_export_region *region)
{
	struct vb_shared shared = { .file = -1 };

	if (mw->mr) {
		shared.offset = pd_of(mw->ibv.pd);
		shared.id = mw->qp ? mw->qp->ibv.qp.qp_num : 0;
	}
	vb_key_write_locked(nic, region, &shared);
}

static void unbind(struct vb_nic *nic, struct vb_mw *mw)
{
	const struct vb_export_region nothing = { .key = mw->key };

	if (!mw->mr)
		return;
	mw->mr->windows--;
	mw->mr = NULL;
	if (mw->qp) {
		*mw->link = mw->next;
		if (mw->next)
			mw->next->link = mw->link;
		mw->qp = NULL;
	}
	show(nic, mw, &nothing);
}

static void list_add(struct vb_qp *qp, struct vb_mw *mw)
{
	mw->qp = qp;
	mw->next = qp->recv.windows;
	mw->link = &qp->recv.windows;
	if (mw->next)
		mw->next->link = &mw->next;
	qp->recv.windows = mw;
}

/* IBA 10.6.7.2: PDs (C10-72), MW_BIND (C10-73), LOCAL_WRITE (C10-74), bounds (C10-75). */
static bool region_suits(const struct vb_mw *mw, const struct vb_mr *mr, const struct vb_wqe *wqe)
{
	unsigned written = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC;
	uint64_t addr = wqe->bind.addr, bytes = wqe->bind.bytes;

	return mr && pd_of(mr->ibv.pd) == pd_of(mw->ibv.pd) && (mr->access & IBV_ACCESS_MW_BIND) &&
	       !(mr->access & IBV_ACCESS_ZERO_BASED) &&
	       (!(wqe->bind.access & written) || (mr->access & IBV_ACCESS_LOCAL_WRITE)) &&
	       addr >= mr->iova && bytes <= mr->bytes && addr - mr->iova <= mr->bytes - bytes;
}

static bool bind(struct vb_qp *qp, const struct vb_wqe *wqe)
{
	struct vb_nic *nic = qp->nic;
	struct vb_mw *mw = window_at(nic, wqe->bind.key);
	struct vb_mr *mr = region_at(nic, wqe->bind.region);
	struct vb_export_region region = { .key = wqe->bind.key };

	if (!mw || pd_of(mw->ibv.pd) != pd_of(qp->ibv.qp.pd))
		return false;
	/*
	 * IBA o10-37.2.30: type 2 must be invalidated before it is bound again. o10-37.2.40: only
	 * type 1 can be bound to nothing.
	 */
	if (mw->ibv.type == IBV_MW_TYPE_2 && (mw->mr || !wqe->bind.bytes))
		return false;
	if (wqe->bind.bytes && !region_suits(mw, mr, wqe))
		return false;
	unbind(nic, mw);
	mw->key = wqe->bind.key;
	if (wqe->bind.bytes) {
		mw->mr = mr;
		mr->windows++;
		if (mw->ibv.type == IBV_MW_TYPE_2)
			list_add(qp, mw);
		region.iova = wqe->bind.access & IBV_ACCESS_ZERO_BASED ? 0 : wqe->bind.addr;
		region.bytes = wqe->bind.bytes;
		region.base = (uintptr_t)mr->base + (wqe->bind.addr - mr->iova);
		region.access = (wqe->bind.access & REMOTE) | (mr->access & OF_REGION) |
				vb_access_of_order(nic);
	}
	show(nic, mw, &region);
	return true;
}

/* IBA o10-37.2.26: no window of type 1; and one of type 2 belongs to its QP. */
static bool invalidate(struct vb_qp *qp, uint32_t key)
{
	struct vb_mw *mw = window_at(qp->nic, key);

	if (!mw || mw->qp != qp || mw->key != key)
		return false;
	unbind(qp->nic, mw);
	return true;
}

/* Invalidates a window of this QP, or an indirect key. */
static bool revoke(struct vb_qp *qp, uint32_t key, bool remote)
{
	return invalidate(qp, key) ||
	       vb_mkey_invalidate_locked(qp->nic, qp->ibv.qp.pd, key, remote);
}

/* --- for the rest of the NIC --- */

enum ibv_wc_status vb_window_local(struct vb_qp *qp, const struct vb_wqe *wqe)
{
	bool ok;

	vb_lock_take(&qp->nic->keys.lock);
	ok = wqe->kind == VB_K_BIND ? bind(qp, wqe)
				    : revoke(qp, wqe->inv_rkey, false);
	vb_lock_drop(&qp->nic->keys.lock);
	return ok ? IBV_WC_SUCCESS : IBV_WC_MW_BIND_ERR;
}

bool vb_window_invalidate(struct vb_qp *qp, uint32_t key)
{
	bool ok;

	vb_lock_take(&qp->nic->keys.lock);
	ok = revoke(qp, key, true);
	vb_lock_drop(&qp->nic->keys.lock);
	return ok;
}

void vb_windows_unbind(struct vb_qp *qp)
{
	vb_lock_take(&qp->nic->keys.lock);
	while (qp->recv.windows)
		unbind(qp->nic, qp->recv.windows);
	vb_lock_drop(&qp->nic->keys.lock);
}

/* --- ibv_alloc_mw(3), ibv_bind_mw(3) --- */

static int key_add(struct vb_nic *nic, struct vb_mw *mw)
{
	struct vb_export_region nothing = { .bytes = 0 };
	int err = 0;

	vb_lock_take(&nic->keys.lock);
	if (nic->keys.mws >= vb_lowered(nic, VB_LIMIT_MW)) {
		err = vb_lowered_full(nic, VB_LIMIT_MW);
	} else {
		nic->keys.mws++;
		mw->key = mw->ibv.rkey = nothing.key = vb_key_take_locked(nic);
		mw->upper = mw->key & ~TAG_MASK;
		show(nic, mw, &nothing);
		vb_key_owner(nic, mw->key)->mw = mw;
	}
	vb_lock_drop(&nic->keys.lock);
	return err;
}

int vb_mw_alloc(struct vb_pd *pd, enum ibv_mw_type type, struct vb_mw **out)
{
	struct vb_mw *mw;
	int err;

	if (type != IBV_MW_TYPE_1 && type != IBV_MW_TYPE_2)
		return vb_refuse(EINVAL, "type is %d; it is IBV_MW_TYPE_1 (1) or IBV_MW_TYPE_2 (2)",
				 (int)type);
	mw = calloc(1, sizeof(*mw));
	if (!mw)
		return ENOMEM;
	mw->ibv.context = pd->ibv.context;
	mw->ibv.pd = &pd->ibv;
	mw->ibv.type = type;
	err = key_add(vb_nic_of(pd->ibv.context), mw);
	if (err) {
		free(mw);
		return err;
	}
	mw->ibv.handle = vb_key_place(mw->upper);
	atomic_fetch_add(&pd->users, 1);
	*out = mw;
	return 0;
}

int vb_mw_dealloc(struct vb_mw *mw)
{
	struct vb_nic *nic = vb_nic_of(mw->ibv.context);

	vb_lock_take(&nic->keys.lock);
	unbind(nic, mw);
	vb_key_drop_locked(nic, mw->key);
	nic->keys.mws--;
	vb_lock_drop(&nic->keys.lock);
	vb_nic_quiesce(nic);
	atomic_fetch_sub(&((struct vb_pd *)mw->ibv.pd)->users, 1);
	free(mw);
	return 0;
}

int vb_bind_decode(const struct ibv_send_wr *wr, enum ibv_mw_type type, struct vb_wqe *wqe)
{
	const struct ibv_mw_bind_info *info = &wr->bind_mw.bind_info;
	const struct vb_mw *mw = (const struct vb_mw *)wr->bind_mw.mw;

	if (!mw || mw->ibv.type != type || (info->mw_access_flags & ~(unsigned)ACCESS_KNOWN))
		return EINVAL;
	if (type == IBV_MW_TYPE_2 && !info->mr && info->length)
		return EINVAL;
	wqe->bind.addr = info->addr;
	wqe->bind.bytes = info->mr ? info->length : 0;
	wqe->bind.region = info->mr ? info->mr->lkey : 0;
	wqe->bind.key = mw->upper | (wr->bind_mw.rkey & TAG_MASK);
	wqe->bind.access = info->mw_access_flags;
	return 0;
}

void vb_bind_posted(const struct ibv_send_wr *wr)
{
	struct vb_mw *mw = (struct vb_mw *)wr->bind_mw.mw;

	mw->ibv.rkey = mw->upper | (wr->bind_mw.rkey & TAG_MASK);
}

int vb_mw_bind(struct vb_qp *qp, struct vb_mw *mw, const struct ibv_mw_bind *bind)
{
	const struct ibv_mw_bind_info *info = &bind->bind_info;
	const struct ibv_send_wr wr = {
		.wr_id = bind->wr_id,
		.opcode = IBV_WR_BIND_MW,
		.send_flags = bind->send_flags,
		.bind_mw = { .mw = &mw->ibv,
			     .rkey = mw->upper | ((mw->ibv.rkey + 1) & TAG_MASK),
			     .bind_info = *info },
	};

	if ((bind->send_flags & ~(unsigned)(IBV_SEND_FENCE | IBV_SEND_SIGNALED)) ||
	    (!info->mr && (info->addr || info->length)))
		return vb_refuse(EINVAL,
				 "send_flags are 0x%x; they may be IBV_SEND_FENCE and "
				 "IBV_SEND_SIGNALED; and without mr, addr and length are 0",
				 bind->send_flags);
	if (info->mr && (((struct vb_mr *)info->mr)->access & IBV_ACCESS_ZERO_BASED))
		return vb_refuse(EINVAL, "mr was registered with IBV_ACCESS_ZERO_BASED");
	if (info->mr && pd_of(info->mr->pd) != pd_of(mw->ibv.pd))
		return vb_refuse(EPERM, "mr belongs to another PD than the window");
	return vb_qp_post_bind(qp, &wr);
}
