/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_ENGINE_VERDICT_H
#define VB_ENGINE_VERDICT_H

/*
 * What a responder finds wrong with a request, and what follows from it: one table
 * (IBA 9.9.3, tables of responder fault behaviour) instead of a branch per place. What follows is
 * the fault's class, which depends on the service.
 */

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>

#include "wire/packet.h"

enum vb_verdict {
	VB_OK,
	VB_NO_RECV,	  /* no receive work request is posted */
	VB_BAD_SEQUENCE,  /* opcode does not go on where the last one stopped */
	VB_BAD_OPCODE,	  /* a request that this QP does not take */
	VB_BAD_LENGTH,	  /* payload does not fit opcode, MTU or DMA length */
	VB_TOO_LONG,	  /* message longer than the receive work request */
	VB_BAD_ACCESS,	  /* rkey, bounds, rights or PD */
	VB_BAD_INVALIDATE, /* a key that the peer has no say in */
	VB_MISALIGNED,	  /* atomic not on 8 octets */
	VB_BAD_RESOURCES, /* more READs and atomics than we agreed to keep */
	VB_BAD_RECV_SGE,  /* lkey, bounds, rights or PD of the receive work request */
	VB_BAD_MEMORY,	  /* the memory behind a good key could not be touched */
	VB_VERDICTS
};

/*
 * IBA 9.9.3. E is D where a receive request was taken from an SRQ that cannot take it back: nobody
 * here takes one before it is known to do. F to I are those of reliable datagrams.
 */
enum vb_fault_class {
	VB_FAULT_NONE, /* does not occur there, or nothing is wrong */
	VB_FAULT_A,    /* ours: the request in hand completes, the QP fails, and the peer is told */
	VB_FAULT_B,    /* none yet: NAK, and the peer sends again */
	VB_FAULT_C,    /* the peer's: as A; where no request is in hand, an event tells */
	VB_FAULT_D,    /* dropped: nothing is consumed, and the QP stays as it is */
	VB_FAULT_J,    /* as A, but nothing is said to the peer */
};

struct vb_verdict_row {
	enum vb_fault_class acked, uc, ud;	/* acked: RC, XRC, DC */
	enum vb_nak code;		/* classes A and C: what the peer is told */
	enum ibv_wc_status recv_status; /* classes A, C, J: of the receive request in hand */
	bool silent;			/* ... whose completion tells all */
	enum ibv_event_type event;	/* ... else this tells the owner */
};

extern const struct vb_verdict_row vb_verdict_rows[VB_VERDICTS];

#endif
