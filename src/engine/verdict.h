/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_ENGINE_VERDICT_H
#define VB_ENGINE_VERDICT_H

/*
 * What a responder finds wrong with a request, and what follows from it: one table
 * (IBA 9.9.3, tables of responder fault behaviour) instead of a branch per place.
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
	VB_MISALIGNED,	  /* atomic not on 8 octets */
	VB_BAD_RESOURCES, /* more READs and atomics than we agreed to keep */
	VB_BAD_RECV_SGE,  /* lkey, bounds, rights or PD of the receive work request */
	VB_BAD_MEMORY,	  /* the memory behind a good key could not be touched */
	VB_VERDICTS
};

struct vb_verdict_row {
	bool nak;		       /* RC: tell the requester */
	enum vb_nak code;	       /* ... with this code */
	bool fatal;		       /* RC: the QP goes to the error state */
	enum ibv_wc_status recv_status; /* of the receive work request in hand */
	bool silent;		       /* the receive request's completion tells of it */
	enum ibv_event_type event;     /* RC: what tells the owner, unless silent */
};

extern const struct vb_verdict_row vb_verdict_rows[VB_VERDICTS];

#endif
