/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_ENGINE_HOST_H
#define VB_ENGINE_HOST_H

/*
 * What the engine needs from the owner of queues, keys and memory. nic defines these functions; a
 * unit test defines its own. They are bound by the linker, not by a table: each program has one
 * set, and the hot path should not jump through pointers.
 *
 * All are called with the QP's lock held.
 */

#include "engine/req.h"
#include "engine/resp.h"
#include "engine/verdict.h"

/* --- requester --- */

/* A work request is done. An unsignaled one that succeeded makes no completion. */
void vb_host_send_done(struct vb_req *req, const struct vb_wqe *wqe, uint32_t index,
		       enum ibv_wc_status status);

/* Writes response data at `offset` of the work request's SGEs. Returns SUCCESS or LOC_PROT_ERR. */
enum ibv_wc_status vb_host_local_write(struct vb_req *req, const struct vb_wqe *wqe,
				       uint32_t offset, const void *data, uint32_t bytes);

/* Carries out a work request that needs no packet. Returns SUCCESS, MW_BIND_ERR or LOC_PROT_ERR. */
enum ibv_wc_status vb_host_local(struct vb_req *req, const struct vb_wqe *wqe);

/* --- responder --- */

/*
 * Takes the next receive work request into resp->recv. Returns false if there is none. The packet
 * is the first of a SEND, or the last of a WRITE with immediate data.
 */
bool vb_host_recv_take(struct vb_resp *resp, const struct vb_pkt *pkt,
		       const struct vb_op_info *info);

/*
 * The same for a datagram, if the next receive work request has room for it. Returns OK, NO_RECV or
 * TOO_LONG.
 */
enum vb_verdict vb_host_datagram_take(struct vb_resp *resp, uint32_t bytes);

/*
 * Available credits (IBA 9.7.7.2): posted receive work requests or, with packet credits, packets
 * that there is room for. UINT32_MAX if unknown (SRQ).
 */
uint32_t vb_host_recv_count(struct vb_resp *resp);

/* Writes at `offset` of resp->recv's SGEs. Returns OK, TOO_LONG or BAD_RECV_SGE. */
enum vb_verdict vb_host_recv_write(struct vb_resp *resp, uint32_t offset, const void *data,
				   uint32_t bytes);

/* resp->recv is done; pkt and resp describe what was received. */
void vb_host_recv_done(struct vb_resp *resp, const struct vb_pkt *pkt,
		       const struct vb_op_info *info, uint32_t bytes, enum ibv_wc_status status);

/*
 * This request is refused with this verdict, which is not OK, or the current receive request fails
 * with it. Only for explanations: nothing depends on it.
 */
void vb_host_refused(struct vb_resp *resp, const struct vb_pkt *pkt,
		     const struct vb_op_info *info, enum vb_verdict verdict);

/* Is this access to our memory allowed? access: IBV_ACCESS_REMOTE_*. Returns OK or BAD_ACCESS. */
enum vb_verdict vb_host_remote_check(struct vb_resp *resp, uint32_t rkey, uint64_t va,
				     uint32_t bytes, unsigned access);

/* Checks the access and carries it out. Returns OK, BAD_ACCESS or BAD_MEMORY. */
enum vb_verdict vb_host_remote_write(struct vb_resp *resp, uint32_t rkey, uint64_t va,
				     const void *data, uint32_t bytes);
enum vb_verdict vb_host_remote_atomic(struct vb_resp *resp, const struct vb_pkt *pkt,
				      enum vb_kind kind, uint64_t *orig);

/*
 * Makes received data visible to all in the range or region that the FLUSH names, if it grants
 * these rights (VB_ACCESS_FLUSH_*). Returns OK or BAD_ACCESS.
 */
enum vb_verdict vb_host_flush(struct vb_resp *resp, const struct vb_pkt *pkt, unsigned access);

/* Invalidates a key at the peer's request. Returns OK, or BAD_INVALIDATE if the peer may not. */
enum vb_verdict vb_host_invalidate(struct vb_resp *resp, uint32_t rkey);

#endif
