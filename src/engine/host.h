/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_ENGINE_HOST_H
#define VB_ENGINE_HOST_H

/*
 * What the engine needs done by whoever owns queues, keys and memory. nic defines these; a unit
 * test defines its own. They are bound when linking, not by a table: there is one of each in any
 * program, and the hot path should not jump through pointers.
 *
 * All are called with the QP's lock held.
 */

#include "engine/req.h"
#include "engine/resp.h"
#include "engine/verdict.h"

/* --- requester --- */

/* A work request is done. Success of an unsignaled one makes no completion. */
void vb_host_send_done(struct vb_req *req, const struct vb_wqe *wqe, uint32_t index,
		       enum ibv_wc_status status);

/* Write response data at `offset` of the work request's SGEs: SUCCESS or LOC_PROT_ERR. */
enum ibv_wc_status vb_host_local_write(struct vb_req *req, const struct vb_wqe *wqe,
				       uint32_t offset, const void *data, uint32_t bytes);

/* Carry out a work request that needs no packet: SUCCESS, MW_BIND_ERR or LOC_PROT_ERR. */
enum ibv_wc_status vb_host_local(struct vb_req *req, const struct vb_wqe *wqe);

/* --- responder --- */

/*
 * Take the next receive work request into resp->recv: false if there is none. For this packet: the
 * first of a SEND, the last of a WRITE with immediate data.
 */
bool vb_host_recv_take(struct vb_resp *resp, const struct vb_pkt *pkt,
		       const struct vb_op_info *info);

/* The same for a datagram, if the next one has room for so many octets: OK, NO_RECV, TOO_LONG. */
enum vb_verdict vb_host_datagram_take(struct vb_resp *resp, uint32_t bytes);

/*
 * What credits there are (IBA 9.7.7.2): how many are posted or, where credits are those of packets,
 * how many packets there is room for. UINT32_MAX where nobody can say (SRQ).
 */
uint32_t vb_host_recv_count(struct vb_resp *resp);

/* Write at `offset` of resp->recv's SGEs: OK, TOO_LONG, BAD_RECV_SGE. */
enum vb_verdict vb_host_recv_write(struct vb_resp *resp, uint32_t offset, const void *data,
				   uint32_t bytes);

/* resp->recv is done; what came is in the packet and resp. */
void vb_host_recv_done(struct vb_resp *resp, const struct vb_pkt *pkt,
		       const struct vb_op_info *info, uint32_t bytes, enum ibv_wc_status status);

/* Is this access to our memory allowed? access: IBV_ACCESS_REMOTE_*. OK or BAD_ACCESS. */
enum vb_verdict vb_host_remote_check(struct vb_resp *resp, uint32_t rkey, uint64_t va,
				     uint32_t bytes, unsigned access);

/* The same, and do it: OK, BAD_ACCESS, BAD_MEMORY. */
enum vb_verdict vb_host_remote_write(struct vb_resp *resp, uint32_t rkey, uint64_t va,
				     const void *data, uint32_t bytes);
enum vb_verdict vb_host_remote_atomic(struct vb_resp *resp, const struct vb_pkt *pkt,
				      enum vb_kind kind, uint64_t *orig);

/*
 * Let what has come be seen by all, in the range or region that the FLUSH names, if these rights
 * (VB_ACCESS_FLUSH_*) are granted there: OK or BAD_ACCESS.
 */
enum vb_verdict vb_host_flush(struct vb_resp *resp, const struct vb_pkt *pkt, unsigned access);

/* The peer has no more use for a key: OK, or BAD_INVALIDATE if it has no say in that. */
enum vb_verdict vb_host_invalidate(struct vb_resp *resp, uint32_t rkey);

#endif
