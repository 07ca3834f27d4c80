/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_NIC_WINDOW_H
#define VB_NIC_WINDOW_H

/*
 * Memory windows (IBA 10.6.7, 11.2.8): keys for parts of memory regions, bound and invalidated by a
 * send queue. Type 1 is bound by ibv_bind_mw() and valid for all QPs of its PD. Type 2 (2B) is
 * bound by a work request and valid for the peer of that QP; the application chooses the low octet
 * of its key.
 *
 * A window keeps its place in the table of keys, the upper 24 bits of its key. Peers see the entry
 * but never access it directly, since its PD id is 0.
 */

#include "nic/data/qp.h"
#include "nic/mem/mem.h"

struct vb_mw {
	struct ibv_mw ibv; /* the application may change ibv.rkey: it is not relied on */
	uint32_t upper; /* the 24 bits of the key that stay */
	uint32_t key;	/* the current key; this and the following: the keys' lock */
	struct vb_mr *mr; /* NULL: not bound */
	struct vb_qp *qp; /* type 2: the QP that bound it */
	struct vb_mw *next, **link; /* type 2: in the QP's list */
};

/* ibv_alloc_mw(3). EINVAL: no such type; ENOMEM. */
int vb_mw_alloc(struct vb_pd *pd, enum ibv_mw_type type, struct vb_mw **mw);

/* Unbinds it, and waits for accesses under way. Frees mw. */
int vb_mw_dealloc(struct vb_mw *mw);

/*
 * ibv_bind_mw(3), type 1: posts it, and stores the new key in mw->ibv.rkey. As vb_qp_post_send();
 * EINVAL also: another type of window or QP, an invalid flag or right, a zero-based region; EPERM:
 * the region is of another PD than the window. Errors that only the device finds complete as
 * MW_BIND_ERR. An access through another QP that is under way when the bind completes may still
 * finish.
 */
int vb_mw_bind(struct vb_qp *qp, struct vb_mw *mw, const struct ibv_mw_bind *bind);

/* --- inside nic --- */

/*
 * Decodes a BIND for a window of that type. Returns 0, or EINVAL: no window, a length without a
 * region (type 2), or an unknown right. Binding a type 2 window to nothing fails in its turn.
 */
int vb_bind_decode(const struct ibv_send_wr *wr, enum ibv_mw_type type, struct vb_wqe *wqe);

/* It was posted: as with mlx5, mw->rkey becomes the new key. */
void vb_bind_posted(const struct ibv_send_wr *wr);

/* Carries out a BIND or LOCAL_INV: SUCCESS or MW_BIND_ERR (IBA 10.10.3). QP locked. */
enum ibv_wc_status vb_window_local(struct vb_qp *qp, const struct vb_wqe *wqe);

/*
 * A peer invalidates a key: unbinds the QP's own window, or clears an indirect key that allows it
 * (mkey.h). Returns false if there is none. QP locked.
 */
bool vb_window_invalidate(struct vb_qp *qp, uint32_t key);

/* The QP is destroyed or reset: unbinds its windows. No access is under way. */
void vb_windows_unbind(struct vb_qp *qp);

/* Finds memory for a peer's access, by a region's key or a window's; NULL: refused. */
static inline uint8_t *vb_remote_get(struct vb_qp *qp, uint32_t key, uint64_t va, uint64_t bytes,
				     unsigned access)
{
	uint8_t *at = vb_mr_get(qp->nic, qp->ibv.qp.pd, key, va, bytes, access);

	return at ? at
		  : vb_window_get(qp->nic, qp->ibv.qp.pd, qp->ibv.qp.qp_num, key, va, bytes,
				  access);
}

/* The same for any region (vb_mr_find). */
static inline uint8_t *vb_remote_find(struct vb_qp *qp, uint32_t key, uint64_t va, uint64_t bytes,
				      unsigned access, bool *paged)
{
	uint8_t *at = vb_mr_find(qp->nic, qp->ibv.qp.pd, key, va, bytes, access, paged);

	return at ? at
		  : vb_window_find(qp->nic, qp->ibv.qp.pd, qp->ibv.qp.qp_num, key, va, bytes,
				   access, paged);
}

#endif
