/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_ABI_TRACED_H
#define VB_ABI_TRACED_H

/*
 * Posting and polling that note what happens in the trail (run/process/trail.h). A context has
 * these functions if a trail is open when it is; so they cost nothing where there is none.
 */

#include <infiniband/verbs.h>
#include <stdint.h>

struct vb_qp;

int vb_traced_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad_wr);
int vb_traced_poll_cq(struct ibv_cq *cq, int num_entries, struct ibv_wc *wc);

/* The application has taken so many completions; 0: it found none. */
void vb_trace_taken(struct ibv_context *context, const struct ibv_wc *wc, int got);

/* Requests from this place of the send queue on were posted by a call that began at that time. */
void vb_trace_posted(struct vb_qp *qp, uint32_t from, uint64_t since_ns);

#endif
