/* SPDX-License-Identifier: BSD-2-Clause */
#include "abi/check/requests.h"

#include <stdlib.h>

#include "abi/check/memory.h"
#include "abi/check/objects.h"
#include "abi/check/pages.h"
#include "base/check.h"
#include "nic/core/names.h"
#include "run/process/callsite.h"

enum {
	LOOK_BYTES = 16384, /* of a call, in receive buffers ... */
	LOOK_MAX = 64,	    /* ... of this many requests */
	DISTINCT_SURE = 4,  /* requests in flight with wr_ids of their own: they are names */
};

const char *vb_check_opcode(const struct vb_check_request *request)
{
	static const char *const names[] = {
		[IBV_WR_RDMA_WRITE] = "RDMA WRITE",
		[IBV_WR_RDMA_WRITE_WITH_IMM] = "RDMA WRITE with immediate",
		[IBV_WR_SEND] = "SEND",
		[IBV_WR_SEND_WITH_IMM] = "SEND with immediate",
		[IBV_WR_RDMA_READ] = "RDMA READ",
		[IBV_WR_ATOMIC_CMP_AND_SWP] = "compare and swap",
		[IBV_WR_ATOMIC_FETCH_AND_ADD] = "fetch and add",
		[IBV_WR_SEND_WITH_INV] = "SEND with invalidate",
	};

	if (request->queue->is_recv)
		return "receive";
	return request->opcode < VB_ARRAY_LEN(names) && names[request->opcode]
		       ? names[request->opcode]
		       : "request";
}

static uint32_t number_of(const struct vb_check_request *request)
{
	const struct vb_check_object *owner = request->queue->owner;

	return owner->kind == VB_KNOWN_QP ? ((struct ibv_qp *)owner->object)->qp_num
					  : ((struct ibv_srq *)owner->object)->handle;
}

static const char *owner_of(const struct vb_check_request *request)
{
	return request->queue->owner->kind == VB_KNOWN_QP ? "QPN" : "SRQ";
}

/* --- what is wrong with a new one --- */

static void overlap_say(struct vb_check_request *request, struct vb_check_request *other,
			const struct vb_check_piece *piece)
{
	char site[VB_CALLSITE_BYTES];

	if (request->queue->owner->ours || vb_flaw_again(VB_FLAW_OVERLAP, request->site))
		return;
	vb_flaw_say(VB_FLAW_OVERLAP, request->site,
		    "%s 0x%x: the memory of this %s (wr_id 0x%llx, %u octets at %p) is also that "
		    "of a %s in flight (wr_id 0x%llx), posted at %s",
		    owner_of(request), number_of(request), vb_check_opcode(request),
		    (unsigned long long)request->wr_id, piece->bytes, piece->at,
		    vb_check_opcode(other), (unsigned long long)other->wr_id,
		    vb_callsite_of(site, other->site));
}

/* Does it use memory that another in flight uses? A fence waits for READs and atomics. */
static void meet(struct vb_check_request *request, struct vb_check_request *other)
{
	bool waits = request->fenced && request->queue == other->queue && other->writes;

	for (uint32_t i = 0; i < request->count; i++) {
		for (uint32_t j = 0; j < other->count; j++) {
			if (!vb_check_pieces_meet(&request->piece[i], &other->piece[j]))
				continue;
			request->filled |= waits;
			if (waits)
				continue;
			if (!request->shared)
				overlap_say(request, other, &request->piece[i]);
			request->shared = other->shared = true;
			return;
		}
	}
}

static void meet_all(struct vb_check_request *request)
{
	struct vb_check_request *other;

	TAILQ_FOREACH(other, &vb_checker.requests, all)
		if (other != request && (request->writes || other->writes))
			meet(request, other);
}

/*
 * A queue whose requests each have a wr_id of their own uses it as a name; many programs have the
 * same for all, which is no flaw. Of datagrams some count those before them by it.
 */
static void wr_id_look(struct vb_check_queue *queue, const struct vb_check_request *request)
{
	struct vb_check_request *other;
	char site[VB_CALLSITE_BYTES];

	if (queue->repeats || (!queue->is_recv && !request->signaled))
		return;
	TAILQ_FOREACH(other, &queue->requests, link) {
		if (other == request || other->wr_id != request->wr_id ||
		    (!queue->is_recv && !other->signaled))
			continue;
		queue->repeats = true;
		if (queue->distinct < DISTINCT_SURE || queue->owner->ours ||
		    vb_flaw_again(VB_FLAW_WR_ID, request->site))
			return;
		vb_flaw_say(VB_FLAW_WR_ID, request->site,
			    "%s 0x%x: this %s has wr_id 0x%llx, as one in flight that was posted "
			    "at %s",
			    owner_of(request), number_of(request), vb_check_opcode(request),
			    (unsigned long long)request->wr_id,
			    vb_callsite_of(site, other->site));
		return;
	}
	if (queue->signaled > queue->distinct)
		queue->distinct = queue->signaled;
}

/* --- made --- */

static struct vb_check_request *add(struct vb_check_queue *queue, uint64_t wr_id,
				    const struct ibv_sge *sges, int count, const void *site)
{
	uint32_t pieces = count > 0 ? (uint32_t)count : 0;
	struct vb_check_request *request;

	request = calloc(1, sizeof(*request) + pieces * sizeof(request->piece[0]));
	if (!request)
		return NULL;
	request->queue = queue;
	request->wr_id = wr_id;
	request->site = site;
	request->count = pieces;
	for (uint32_t i = 0; i < pieces; i++)
		vb_check_piece_find(&request->piece[i], &sges[i]);
	TAILQ_INSERT_TAIL(&queue->requests, request, link);
	TAILQ_INSERT_TAIL(&vb_checker.requests, request, all);
	queue->count++;
	return request;
}

static void poison_look(const struct vb_check_request *request)
{
	if (vb_checker.poison && request->count && !request->queue->owner->ours &&
	    vb_check_piece_is_poison(&request->piece[0]))
		vb_flaw_say(VB_FLAW_RECV_READ, request->site,
			    "QPN 0x%x: the data of this %s (wr_id 0x%llx) is the pattern of a "
			    "receive buffer in which nothing had come (0xdb)",
			    number_of(request), vb_check_opcode(request),
			    (unsigned long long)request->wr_id);
}

/* What an operation does to its SGEs. */
static bool writes(enum ibv_wr_opcode opcode)
{
	return opcode == IBV_WR_RDMA_READ || opcode == IBV_WR_ATOMIC_CMP_AND_SWP ||
	       opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
}

static bool sends(enum ibv_wr_opcode opcode)
{
	return opcode == IBV_WR_SEND || opcode == IBV_WR_SEND_WITH_IMM ||
	       opcode == IBV_WR_SEND_WITH_INV || opcode == IBV_WR_RDMA_WRITE ||
	       opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
}

static bool is_datagram(const struct vb_check_request *request)
{
	return vb_qp_is(request->queue->owner->object, VB_DATAGRAMS);
}

/* Is its data read until a completion says that it is not? */
static bool is_read(const struct vb_check_request *request)
{
	return !request->writes && !request->filled;
}

struct vb_check_request *vb_check_send_add(struct vb_check_queue *queue,
					   const struct ibv_send_wr *wr, bool signaled,
					   const void *site)
{
	bool uses = (sends(wr->opcode) && !(wr->send_flags & IBV_SEND_INLINE)) ||
		    writes(wr->opcode);
	struct vb_check_request *request =
		add(queue, wr->wr_id, wr->sg_list, uses ? wr->num_sge : 0, site);

	if (!request)
		return NULL;
	request->opcode = wr->opcode;
	request->signaled = signaled;
	request->writes = writes(wr->opcode);
	request->fenced = wr->send_flags & IBV_SEND_FENCE;
	queue->signaled += signaled;
	queue->unsignaled = signaled ? 0 : queue->unsignaled + 1;
	meet_all(request);
	if (!is_datagram(request))
		wr_id_look(queue, request);
	if (!request->writes && !request->filled)
		poison_look(request);
	for (uint32_t i = 0; is_read(request) && i < request->count; i++)
		vb_check_piece_watch(&request->piece[i]);
	request->unanswered = is_datagram(request);
	vb_checker.unanswered += request->unanswered;
	return request;
}

/* May a peer write to this memory? Then it is not only the program that changes it. */
static bool peers_write(const struct vb_check_piece *piece)
{
	const struct vb_check_region *mr = vb_check_region(piece->lkey);

	return mr && (mr->access & (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC |
				    IBV_ACCESS_MW_BIND));
}

struct vb_check_request *vb_check_recv_add(struct vb_check_queue *queue,
					   const struct ibv_recv_wr *wr, const void *site)
{
	struct vb_check_request *request =
		add(queue, wr->wr_id, wr->sg_list, wr->num_sge, site);

	if (!request)
		return NULL;
	request->writes = request->signaled = true;
	queue->signaled++;
	meet_all(request);
	wr_id_look(queue, request);
	for (uint32_t i = 0; !request->shared && i < request->count; i++) {
		if (peers_write(&request->piece[i]))
			continue;
		if (vb_checker.poison)
			vb_check_piece_poison(&request->piece[i]);
		if (vb_checker.pages)
			vb_check_pages_close(request, &request->piece[i]);
		else
			vb_check_piece_watch(&request->piece[i]);
	}
	return request;
}

void vb_check_recv_place(struct vb_check_queue *queue, uint32_t tail)
{
	struct vb_check_request *r;

	TAILQ_FOREACH_REVERSE(r, &queue->requests, vb_check_requests, link) {
		if (r->placed)
			return;
		r->position = --tail;
		r->placed = true;
	}
}

/* --- looked at --- */

/* Nothing comes into an SRQ that no QP receives from. QPs of XRC are no objects of ours. */
static bool is_reached(const struct vb_check_request *request)
{
	const struct vb_check_object *owner = request->queue->owner;

	return owner->kind != VB_KNOWN_SRQ || owner->qps ||
	       ((struct vb_srq *)owner->object)->xrcd;
}

/* The requests with memory watched have no other that shares it. */
static bool is_watched(const struct vb_check_request *request)
{
	return !request->shared && !request->queue->owner->ours && is_reached(request);
}

static void unmapped_say(const struct vb_check_request *request,
			 const struct vb_check_piece *piece)
{
	vb_flaw_say(VB_FLAW_UNMAPPED, request->site,
		    "%s 0x%x: of the memory of this %s (wr_id 0x%llx, %u octets at %p) a part was "
		    "unmapped while it was in flight",
		    owner_of(request), number_of(request), vb_check_opcode(request),
		    (unsigned long long)request->wr_id, piece->bytes, piece->at);
}

static void changed_say(const struct vb_check_request *request, enum vb_flaw flaw,
			const char *until, uint32_t at, uint32_t end)
{
	vb_flaw_say(flaw, request->site,
		    "%s 0x%x: octets %u to %u of the buffer of this %s (wr_id 0x%llx) were "
		    "changed %s",
		    owner_of(request), number_of(request), at, end - 1, vb_check_opcode(request),
		    (unsigned long long)request->wr_id, until);
}

/* Has the NIC taken this receive? Asked after its buffer was read. */
static bool is_taken(const struct vb_check_request *request)
{
	const struct vb_check_object *owner = request->queue->owner;
	const struct vb_rq *rq = owner->kind == VB_KNOWN_SRQ
					 ? &((struct vb_srq *)owner->object)->rq
					 : ((struct vb_qp *)owner->object)->recv.rq;
	uint32_t head = atomic_load_explicit(&rq->head, memory_order_acquire);

	return !request->placed || (int32_t)(head - request->position) > 0;
}

/* A receive that the NIC has not taken: nobody may have written to its buffer. */
static void look_waiting(struct vb_check_request *request)
{
	uint32_t at, end;

	for (uint32_t i = 0; is_watched(request) && i < request->count; i++) {
		struct vb_check_piece *piece = &request->piece[i];
		enum vb_check_seen seen = vb_check_piece_look(piece, 0, &at, &end);

		if (seen == VB_SEEN_SAME)
			continue;
		if (is_taken(request))
			return;
		if (seen == VB_SEEN_UNMAPPED)
			unmapped_say(request, piece);
		else
			changed_say(request, VB_FLAW_RECV_WRITTEN,
				    "by the program before anything had come", at, end);
		vb_check_piece_free(piece);
	}
}

void vb_check_look_at(struct vb_check_queue *queue)
{
	struct vb_check_request *request;

	TAILQ_FOREACH(request, &queue->requests, link)
		if (queue->is_recv)
			look_waiting(request);
}

/* Those that were looked at go to the end of the list: the others are next. */
void vb_check_look_around(void)
{
	struct vb_check_request *request = TAILQ_FIRST(&vb_checker.requests), *next, *first = NULL;
	uint64_t bytes = 0;

	vb_check_pages_say();
	for (unsigned looked = 0; request && request != first && looked < LOOK_MAX &&
				  bytes < LOOK_BYTES; request = next, looked++) {
		next = TAILQ_NEXT(request, all);
		first = first ? first : request;
		if (request->queue->is_recv && request->placed) {
			look_waiting(request);
			for (uint32_t i = 0; i < request->count; i++)
				bytes += request->piece[i].bytes;
		}
		TAILQ_REMOVE(&vb_checker.requests, request, all);
		TAILQ_INSERT_TAIL(&vb_checker.requests, request, all);
	}
}

/* --- ended --- */

/* The rest of a receive buffer behind what came: only the program can have written there. */
static void look_behind(struct vb_check_request *request, uint32_t came)
{
	uint32_t at, end, before = 0;

	for (uint32_t i = 0; is_watched(request) && i < request->count; i++) {
		struct vb_check_piece *piece = &request->piece[i];
		uint32_t from = came > before ? came - before : 0;
		enum vb_check_seen seen = VB_SEEN_SAME;

		if (from < piece->bytes)
			seen = vb_check_piece_look(piece, from, &at, &end);
		if (seen == VB_SEEN_UNMAPPED)
			unmapped_say(request, piece);
		else if (seen == VB_SEEN_CHANGED)
			changed_say(request, VB_FLAW_RECV_WRITTEN,
				    "by the program before the completion was taken", at, end);
		before += piece->bytes;
	}
}

static void look_sent(const struct vb_check_request *request)
{
	uint32_t at, end;

	for (uint32_t i = 0; is_watched(request) && i < request->count; i++) {
		const struct vb_check_piece *piece = &request->piece[i];
		enum vb_check_seen seen = vb_check_piece_look(piece, 0, &at, &end);

		if (seen == VB_SEEN_UNMAPPED || (!piece->sums && !vb_check_piece_mapped(piece)))
			unmapped_say(request, piece);
		else if (seen == VB_SEEN_CHANGED)
			changed_say(request, VB_FLAW_SEND_CHANGED,
				    request->signaled
					    ? "before its completion was taken"
					    : "before a completion behind it was taken, and it "
					      "is unsignaled",
				    at, end);
	}
}

/*
 * A datagram leaves once: programs know from an answer that it has left, and need not take its
 * completion first (UCX). Which of what comes is its answer is not known.
 */
void vb_check_answered(void)
{
	struct vb_check_request *request;

	if (!vb_checker.unanswered)
		return;
	TAILQ_FOREACH(request, &vb_checker.requests, all) {
		if (!request->unanswered)
			continue;
		look_sent(request);
		for (uint32_t i = 0; i < request->count; i++)
			vb_check_piece_free(&request->piece[i]);
		request->unanswered = false;
	}
	vb_checker.unanswered = 0;
}

void vb_check_request_end(struct vb_check_request *request, const struct ibv_wc *wc)
{
	uint32_t came = wc->opcode == IBV_WC_RECV_RDMA_WITH_IMM ? 0 : wc->byte_len;

	if (!request->queue->is_recv)
		look_sent(request);
	else if (wc->status == IBV_WC_SUCCESS)
		look_behind(request, came);
	vb_check_request_drop(request);
}

void vb_check_request_drop(struct vb_check_request *request)
{
	struct vb_check_queue *queue = request->queue;

	if (request->pages_closed)
		vb_check_pages_open(request);
	TAILQ_REMOVE(&queue->requests, request, link);
	TAILQ_REMOVE(&vb_checker.requests, request, all);
	queue->count--;
	queue->signaled -= request->signaled;
	vb_checker.unanswered -= request->unanswered;
	for (uint32_t i = 0; i < request->count; i++)
		vb_check_piece_free(&request->piece[i]);
	free(request);
}

static bool uses(const struct vb_check_request *request, const struct ibv_mr *mr)
{
	for (uint32_t i = 0; i < request->count; i++)
		if (request->piece[i].lkey == mr->lkey && request->piece[i].bytes)
			return true;
	return false;
}

void vb_check_region_ends(const void *mr, const void *place, const char *how)
{
	struct vb_check_request *request;
	char site[VB_CALLSITE_BYTES];

	TAILQ_FOREACH(request, &vb_checker.requests, all) {
		if (!uses(request, mr) || request->queue->owner->ours || !is_reached(request))
			continue;
		if (vb_flaw_again(VB_FLAW_MR_IN_USE, place))
			return;
		vb_flaw_say(VB_FLAW_MR_IN_USE, place,
			    "%s 0x%x: a region is %s here that a %s in flight (wr_id 0x%llx) "
			    "uses, posted at %s",
			    owner_of(request), number_of(request), how, vb_check_opcode(request),
			    (unsigned long long)request->wr_id,
			    vb_callsite_of(site, request->site));
		return;
	}
}
