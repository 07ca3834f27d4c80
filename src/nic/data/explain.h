/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_NIC_EXPLAIN_H
#define VB_NIC_EXPLAIN_H

/*
 * Explains failures to whoever wants to know (struct vb_host_insight). Everything here is called
 * after something failed, and composes nothing unless it is wanted (base/refusal.h). QP locked.
 */

#include "nic/data/qp.h"
#include "nic/data/why.h"

/*
 * The oldest work request is about to complete with this error. Returns its code; explains it,
 * unless it is flushed.
 */
enum vb_why vb_explain_send(struct vb_qp *qp, const struct vb_wqe *wqe, uint32_t index,
			    enum ibv_wc_status status) __attribute__((cold, noinline));

/* The QP refuses this request of its peer's. */
void vb_explain_refusal(struct vb_qp *qp, const struct vb_pkt *pkt, const struct vb_op_info *info,
			enum vb_verdict verdict) __attribute__((cold, noinline));

/*
 * A message of UC or a datagram is dropped, which its sender is not told: by the verdict of a
 * responder; or for a reason (VB_STAT_DROP_*) that was found before, where from is the path by
 * which it came, and qp NULL if there is none of that number. A reason is told of a QPN when it is
 * met for the 1st, 10th, 100th time and so on, so that a flood of them is a few lines.
 */
void vb_explain_lost(struct vb_qp *qp, const struct vb_pkt *pkt, const struct vb_op_info *info,
		     enum vb_verdict verdict) __attribute__((cold, noinline));
void vb_explain_drop(struct vb_nic *nic, const struct vb_qp *qp, const struct vb_path *from,
		     const struct vb_pkt *pkt, const struct vb_op_info *info, enum vb_stat reason)
	__attribute__((cold, noinline));

/* The QP is about to flush so many requests of this queue. */
void vb_explain_flush(struct vb_qp *qp, const char *queue, uint32_t count)
	__attribute__((cold, noinline));

/*
 * What this thread explains from now on happens because a rule of a script says so (FILE:LINE);
 * NULL: no more.
 */
void vb_explain_by_rule(const char *rule);

/*
 * Notes where the application posts its next `count` send requests, before it does. For QPs that
 * were made while somebody wanted to know; others have no room for it. Takes no lock: threads that
 * post to the same QP at once from different places may get each other's.
 */
void vb_explain_site(struct vb_qp *qp, uint32_t count, const void *site);

#endif
