/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_NIC_WINDOW_H
#define VB_NIC_WINDOW_H

/*
 * Memory windows (IBA 10.6.7, 11.2.8): keys that a send queue gives and takes, for parts of memory
 * regions. One of type 1 is bound by ibv_bind_mw() and is for all QPs of its PD. One of type 2
 * (2B) is bound by a work request, and is for the peer of the QP that this was posted to; the low
 * octet of its key is the application's.
 *
 * A window has its place in the table of keys for life; the upper 24 bits of its key say which.
 * Peers see the entry, but never go in directly: they have no right to a PD of number 0.
 */

#include "nic/data/qp.h"
#include "nic/mem/mem.h"

struct vb_mw {
	struct ibv_mw ibv; /* rkey is the application's to change: it is not what counts */
	uint32_t upper; /* the 24 bits of the key that stay */
	uint32_t key;	/* This and what follows: the keys' lock */
	struct vb_mr *mr; /* NULL: it is not bound */
	struct vb_qp *qp; /* type 2: by whom */
	struct vb_mw *next, **link; /* type 2: in the QP's list */
};

/* ibv_alloc_mw(3). EINVAL: no such type; ENOMEM. */
int vb_mw_alloc(struct vb_pd *pd, enum ibv_mw_type type, struct vb_mw **mw);

/* Unbinds it, and waits for accesses under way. Frees mw. */
int vb_mw_dealloc(struct vb_mw *mw);

/*
 * ibv_bind_mw(3), type 1: posts it, and puts the key to be into mw->ibv.rkey. As vb_qp_post_send();
 * EINVAL also: another type of window or QP, a flag or right that does not belong here, a
 * zero-based region; EPERM: the region is of another PD than the window. What only the device finds
 * wrong completes as MW_BIND_ERR. An access through another QP that is under way when the bind
 * completes may still end.
 */
int vb_mw_bind(struct vb_qp *qp, struct vb_mw *mw, const struct ibv_mw_bind *bind);

/* --- inside nic --- */

/*
 * The part of a BIND in its work request, for a window of that type: 0 or EINVAL, if there is no
 * window, a length without a region (type 2) or an unknown right. To bind nothing is what one of
 * type 2 cannot, and fails in its turn.
 */
int vb_bind_decode(const struct ibv_send_wr *wr, enum ibv_mw_type type, struct vb_wqe *wqe);

/* It was posted: as with mlx5, mw->rkey is what the key will be. */
void vb_bind_posted(const struct ibv_send_wr *wr);

/* Carry out a BIND or LOCAL_INV: SUCCESS or MW_BIND_ERR (IBA 10.10.3). QP locked. */
enum ibv_wc_status vb_window_local(struct vb_qp *qp, const struct vb_wqe *wqe);

/*
 * A peer has no more use for a key: unbind the QP's own window, or clear an indirect key that is
 * made for it (mkey.h). False if there is none. QP locked.
 */
bool vb_window_invalidate(struct vb_qp *qp, uint32_t key);

/* The QP vanishes or forgets all: so do its windows' bindings. Nobody is inside. */
void vb_windows_unbind(struct vb_qp *qp);

/* Where a peer's access goes, through a region's key or a window's; NULL: it is refused. */
static inline uint8_t *vb_remote_get(struct vb_qp *qp, uint32_t key, uint64_t va, uint64_t bytes,
				     unsigned access)
{
	uint8_t *at = vb_mr_get(qp->nic, qp->ibv.qp.pd, key, va, bytes, access);

	return at ? at
		  : vb_window_get(qp->nic, qp->ibv.qp.pd, qp->ibv.qp.qp_num, key, va, bytes,
				  access);
}

/* The same of any region (vb_mr_find). */
static inline uint8_t *vb_remote_find(struct vb_qp *qp, uint32_t key, uint64_t va, uint64_t bytes,
				      unsigned access, bool *paged)
{
	uint8_t *at = vb_mr_find(qp->nic, qp->ibv.qp.pd, key, va, bytes, access, paged);

	return at ? at
		  : vb_window_find(qp->nic, qp->ibv.qp.pd, qp->ibv.qp.qp_num, key, va, bytes,
				   access, paged);
}

#endif
