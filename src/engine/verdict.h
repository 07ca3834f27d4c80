/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_ENGINE_VERDICT_H
#define VB_ENGINE_VERDICT_H

/*
 * What a responder finds wrong with a request, and the consequence: one table (IBA 9.9.3, tables of
 * responder fault behaviour) instead of branches. The consequence is the fault's class, which
 * depends on the service.
 */

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>

#include "wire/packet.h"

enum vb_verdict {
	VB_OK,
	VB_NO_RECV,	  /* no receive work request is posted */
	VB_BAD_SEQUENCE,  /* opcode does not continue the message */
	VB_BAD_OPCODE,	  /* a request that this QP does not accept */
	VB_BAD_LENGTH,	  /* payload does not fit opcode, MTU or DMA length */
	VB_TOO_LONG,	  /* message longer than the receive work request */
	VB_BAD_ACCESS,	  /* rkey, bounds, rights or PD */
	VB_BAD_INVALIDATE, /* a key that the peer may not invalidate */
	VB_MISALIGNED,	  /* atomic not on 8 octets */
	VB_BAD_RESOURCES, /* more READs and atomics than agreed */
	VB_BAD_RECV_SGE,  /* lkey, bounds, rights or PD of the receive work request */
	VB_BAD_MEMORY,	  /* the memory behind a valid key could not be accessed */
	VB_VERDICTS
};

/*
 * IBA 9.9.3. E equals D for a receive request from an SRQ that cannot take it back: here one is
 * taken only when it is known to be used. F to I are for reliable datagrams.
 */
enum vb_fault_class {
	VB_FAULT_NONE, /* cannot occur, or no fault */
	/* local: the current receive request completes, the QP fails, the peer gets a NAK */
	VB_FAULT_A,
	VB_FAULT_B,    /* NAK, and the peer sends again */
	VB_FAULT_C,    /* the peer's: as A; without a current receive request, an event */
	VB_FAULT_D,    /* dropped: nothing is consumed, and the QP stays as it is */
	VB_FAULT_J,    /* as A, but without a NAK */
};

struct vb_verdict_row {
	enum vb_fault_class acked, uc, ud;	/* acked: RC, XRC, DC */
	enum vb_nak code;		/* classes A and C: the NAK for the peer */
	enum ibv_wc_status recv_status; /* classes A, C, J: for the current receive request */
	bool silent;			/* ... whose completion is the only report */
	enum ibv_event_type event;	/* ... otherwise this event */
};

extern const struct vb_verdict_row vb_verdict_rows[VB_VERDICTS];

#endif
