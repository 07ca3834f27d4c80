/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_ENGINE_RESP_H
#define VB_ENGINE_RESP_H

/*
 * The responder: what a QP does with requests that arrive. Pure, like the requester, and shares
 * no field with it.
 *
 * RC answers leave in the order of the requests: READ responses and atomic results wait in a ring
 * of resources, and an ACK or NAK only follows when those are out.
 */

#include "engine/recv.h"
#include "engine/segment.h"
#include "engine/verdict.h"
#include "wire/packet.h"

enum { VB_RD_ATOMIC_MAX = 128 };

/* A READ or atomic that was executed: to be answered, and perhaps to be answered again. */
struct vb_resource {
	uint32_t psn;
	uint32_t packets;
	bool owed;     /* from `done` on: an answer is to be sent */
	uint32_t from; /* the packet that this answer begins with */
	uint32_t sent; /* packets that have left, those before `from` included */
	uint8_t kind;  /* enum vb_kind of the request */
	uint32_t rkey;
	uint64_t va;
	uint32_t bytes;
	uint32_t msn;  /* as it was then */
	uint64_t orig; /* atomic: the value found */
};

/* The message that is being received. */
enum vb_message { VB_M_NONE, VB_M_SEND, VB_M_WRITE };

struct vb_resp {
	/* Set by modify_qp. */
	enum vb_transport transport;
	uint32_t mtu;
	uint32_t resources_max; /* max_dest_rd_atomic */
	uint8_t min_rnr_timer;
	unsigned access; /* IBV_ACCESS_REMOTE_*: what the QP lets others do */

	uint32_t epsn; /* the PSN that comes next */
	uint32_t msn;  /* messages completed */
	enum vb_message message;
	uint32_t offset; /* octets of the message that have come */
	uint32_t rkey;
	uint64_t va;
	uint32_t dma_bytes;

	bool has_recv; /* recv is taken from the queue */
	uint8_t mark;  /* ... and this is what the host notes about it: 0 is nothing */
	struct vb_recv recv;

	bool ack_owed;
	bool nak_owed;
	uint8_t nak_syndrome;
	bool nak_sent; /* silence until epsn comes */
	bool broken;   /* a fatal verdict was given: nothing is taken any more */

	/*
	 * [done, tail): those that are owed are to be answered. A resource that is asked for again
	 * sets `done` back. [fresh, tail): not answered yet, not even once. What lies before is
	 * kept for duplicates as long as there is room. The indices count on, and never wrap.
	 */
	struct vb_resource *ring; /* resources_max entries */
	uint64_t done, fresh, tail;
};

/* What the QP has to do after a request. */
enum vb_resp_outcome {
	VB_RESP_NOTHING,
	VB_RESP_OWES,	   /* there is an answer to be sent */
	VB_RESP_DUPLICATE, /* there is an answer to be sent, for something seen before */
	VB_RESP_DROPPED,   /* the request was dropped: resp->why tells */
	VB_RESP_FAILED,	   /* send what is owed, then the QP goes to error; *verdict tells why */
};

struct vb_resp_result {
	enum vb_resp_outcome outcome;
	enum vb_verdict verdict;
};

/* Everything but the ring's memory starts afresh. */
void vb_resp_reset(struct vb_resp *resp);

/*
 * A ring of max places in the place of the one there is, whose memory is the caller's again. What
 * is kept for duplicates moves along, the newest first; what is still owed must have room.
 */
static inline bool vb_resp_ring_fits(const struct vb_resp *resp, uint32_t max)
{
	return resp->tail - resp->done <= max;
}

struct vb_resource *vb_resp_ring_replace(struct vb_resp *resp, struct vb_resource *ring,
					 uint32_t max);

struct vb_resp_result vb_rc_request(struct vb_resp *resp, const struct vb_pkt *pkt,
				    const struct vb_op_info *info);

/*
 * The same for a request with which something is wrong that only the host sees: in its turn it is
 * refused with that verdict; before and after its turn it is what any request is.
 */
struct vb_resp_result vb_rc_refuse(struct vb_resp *resp, const struct vb_pkt *pkt,
				   const struct vb_op_info *info, enum vb_verdict verdict);

/*
 * Something came that cannot be taken, by a way on which nothing is: owe a NAK that asks for all
 * from epsn on, whether one was sent before or not.
 */
void vb_rc_ask_again(struct vb_resp *resp);

struct vb_resp_result vb_uc_request(struct vb_resp *resp, const struct vb_pkt *pkt,
				    const struct vb_op_info *info);

/*
 * The packet that most are: one in the midst of a SEND or WRITE, in its turn. False: it is another,
 * or something is wrong with it; then it is for the functions above, and nothing has changed but
 * perhaps octets at the place where the packet's belong. A message that is an RC one is answered as
 * ever (vb_resp_owes()).
 */
bool vb_resp_middle(struct vb_resp *resp, enum vb_kind kind, uint32_t psn, bool ackreq,
		    const uint8_t *payload, uint32_t bytes);

/* grh: the VB_GRH_BYTES octets that go before the data. */
struct vb_resp_result vb_ud_request(struct vb_resp *resp, const struct vb_pkt *pkt,
				    const struct vb_op_info *info, const uint8_t *grh);

/*
 * The next packet owed, false if none is. Fills pkt's headers; data of a READ response is
 * pkt->dma_bytes octets at (rkey, va), to be checked and fetched by the caller.
 * Moves on: a caller who cannot send puts back the struct vb_resp_pos from before.
 */
struct vb_resp_pos {
	uint64_t done, fresh;
	uint32_t sent;
	bool ack_owed, nak_owed;
};

/* Is any packet owed? */
static inline bool vb_resp_owes(const struct vb_resp *resp)
{
	return resp->ack_owed || resp->nak_owed || resp->done != resp->tail;
}

/* Is an ACK all that is owed? */
static inline bool vb_resp_owes_ack_only(const struct vb_resp *resp)
{
	return resp->ack_owed && !resp->nak_owed && resp->done == resp->tail;
}

struct vb_resp_pos vb_resp_pos_get(const struct vb_resp *resp);
void vb_resp_pos_put(struct vb_resp *resp, const struct vb_resp_pos *pos);
bool vb_rc_response(struct vb_resp *resp, struct vb_pkt *pkt, bool *data);

/*
 * How many packets owed next are in the midst of a READ's answer: like the first of them, but for
 * the PSN and the data, of which each has an MTU. skip: that many are passed. A resource has
 * packets for at least one more then.
 */
uint32_t vb_resp_run(const struct vb_resp *resp);
void vb_resp_skip(struct vb_resp *resp, uint32_t packets);

/* Where vb_resp_owes_ack_only(), the short way to it: the AETH as a word, and its PSN. */
uint32_t vb_rc_ack(struct vb_resp *resp, uint32_t *psn);

/*
 * The data of the response in hand cannot be read: NAK it instead, and that is the QP's end. But
 * one that was given before is just not given again (false): whoever has it may have let the memory
 * go since, and a request that comes late must not be what the QP ends by. before: the position
 * before vb_rc_response().
 */
bool vb_rc_response_fault(struct vb_resp *resp, const struct vb_resp_pos *before,
			  const struct vb_pkt *pkt);

/* A message being received is given up; a receive request in hand is kept for the next. */
void vb_resp_drop_message(struct vb_resp *resp);

/* --- shared by the services --- */
enum vb_verdict vb_resp_data(struct vb_resp *resp, const struct vb_pkt *pkt,
			     const struct vb_op_info *info);

#endif
