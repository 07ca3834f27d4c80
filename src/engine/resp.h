/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_ENGINE_RESP_H
#define VB_ENGINE_RESP_H

/*
 * The responder: handles received requests. Pure, like the requester, and shares no field with it.
 *
 * RC answers leave in the order of the requests: READ responses and atomic results wait in a ring
 * of resources, and an ACK or NAK leaves only after them.
 */

#include "engine/recv.h"
#include "engine/segment.h"
#include "engine/verdict.h"
#include "wire/packet.h"

enum { VB_RD_ATOMIC_MAX = 128 };

/* An executed READ or atomic: to be answered, perhaps more than once. */
struct vb_resource {
	uint32_t psn;
	uint32_t packets;
	bool owed;     /* from `done` on: it has to be answered */
	uint32_t from; /* the packet with which this answer begins */
	uint32_t sent; /* packets sent, including those before `from` */
	uint8_t kind;  /* enum vb_kind of the request */
	uint32_t rkey;
	uint64_t va;
	uint32_t bytes;
	uint32_t msn;  /* when it was executed */
	uint64_t orig; /* atomic: the original value */
};

/* The message being received. */
enum vb_message { VB_M_NONE, VB_M_SEND, VB_M_WRITE };

struct vb_resp {
	/* Set by modify_qp. */
	enum vb_transport transport;
	uint32_t mtu;
	uint32_t resources_max; /* max_dest_rd_atomic */
	uint8_t min_rnr_timer;
	unsigned access; /* IBV_ACCESS_REMOTE_*: what the QP allows peers to do */

	uint32_t epsn; /* the expected PSN */
	uint32_t msn;  /* messages completed */
	enum vb_message message;
	uint32_t offset; /* octets of the message received so far */
	struct {
		uint32_t rkey;
		uint64_t va;
		uint32_t bytes;
	} write; /* what its RETH says */

	bool unsolicited; /* by modify, too: WRITEs with immediate data take no recv (EFA) */
	bool has_recv;	  /* recv was taken from the queue */
	uint8_t mark;  /* ... the host's note about it; 0: none */
	struct vb_recv recv;

	bool ack_owed;
	bool nak_owed;
	uint8_t nak_syndrome;
	bool nak_sent; /* no further NAK until epsn comes */
	bool broken;   /* after a fatal verdict: nothing is accepted */
	uint8_t verdict; /* that verdict (enum vb_verdict) */

	/*
	 * [done, tail): to be answered if owed. A repeated request for a resource sets `done` back.
	 * [fresh, tail): never answered yet. Earlier ones are kept for duplicates while there is
	 * room. The indices count up and never wrap.
	 */
	struct vb_resource *ring; /* resources_max entries */
	uint64_t done, fresh, tail;
};

/* What the QP has to do after a request. */
enum vb_resp_outcome {
	VB_RESP_NOTHING,
	VB_RESP_OWES,	   /* an answer has to be sent */
	VB_RESP_DUPLICATE, /* an answer has to be sent, to a repeated request */
	VB_RESP_DROPPED,   /* the request was dropped; resp->why says why */
	VB_RESP_FAILED,	   /* send what is owed, then go to error; *verdict says why */
};

struct vb_resp_result {
	enum vb_resp_outcome outcome;
	enum vb_verdict verdict;
};

/* Resets everything but the ring's memory. */
void vb_resp_reset(struct vb_resp *resp);

/* Would a ring of max places have room for what is owed? */
static inline bool vb_resp_ring_fits(const struct vb_resp *resp, uint32_t max)
{
	return resp->tail - resp->done <= max;
}

/*
 * The fast path for the commonest packet: the expected one in the middle of a SEND or WRITE. False:
 * it is another or invalid one; use the functions above. Nothing has changed then, except perhaps
 * octets where the packet's data belongs. RC messages are answered as usual (vb_resp_owes()).
 */
bool vb_resp_middle(struct vb_resp *resp, enum vb_kind kind, uint32_t psn, bool ackreq,
		    const uint8_t *payload, uint32_t bytes);

/* How far answering has come; copied so that a step can be undone when the link is full. */
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

/* Gives up the message being received; its receive request is kept for the next message. */
void vb_resp_drop_message(struct vb_resp *resp);

/* --- shared by the services --- */
enum vb_verdict vb_resp_data(struct vb_resp *resp, const struct vb_pkt *pkt,
			     const struct vb_op_info *info);

#endif
