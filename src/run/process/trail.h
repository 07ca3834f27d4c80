/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_RUN_TRAIL_H
#define VB_RUN_TRAIL_H

/*
 * What happened in this process and when, for `verbatim trace`: a file that is mapped, so that what
 * is in it survives however the process ends. Times are of CLOCK_MONOTONIC, which all processes of
 * a host share. The file has a fixed size; what does not fit is counted.
 */

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/lent.h"

enum { VB_TRAIL_MAGIC = 0x76625472, VB_TRAIL_ROOM = 1 << 18, VB_TRAIL_COMM_BYTES = 16 };

enum vb_trail_kind {
	VB_TRAIL_NONE,	  /* still being written */
	VB_TRAIL_POST,	  /* a request: index, psn, packets, bytes, op (enum vb_kind), wr_id */
	VB_TRAIL_STATE,	  /* of the requester: psn is the next, una the oldest not acknowledged */
	VB_TRAIL_SENT_WC, /* the application took a completion: index, op (ibv_wc_opcode), status */
	VB_TRAIL_RECV_WC, /* ... of a receive request: the same, and bytes */
	VB_TRAIL_TX,	  /* a packet of the wire: op (BTH), psn, bytes; if an ACK: syndrome, una */
	VB_TRAIL_RX,
	VB_TRAIL_PUT,	/* the same of a ring: put in ... */
	VB_TRAIL_TAKEN, /* ... and taken out by the peer */
};

enum vb_trail_flag { VB_TRAIL_RNR = 1, VB_TRAIL_NO_CREDIT = 2 };

struct vb_trail_event {
	uint64_t ns, wr_id;
	uint32_t qpn;  /* of a packet: of the QP that it is for */
	uint32_t dqpn; /* that the QP is connected to; 0: none */
	uint32_t index, psn, una, packets, bytes;
	uint32_t thread;
	_Atomic uint8_t kind; /* enum vb_trail_kind: written last */
	uint8_t op, status, syndrome, flags;
	uint8_t reserved[11];
};

struct vb_trail {
	uint32_t magic, event_bytes, pid, room;
	char comm[VB_TRAIL_COMM_BYTES];
	char host[64];
	_Atomic uint64_t count; /* may be more than there is room for */
	uint8_t reserved[64 - 8];
	struct vb_trail_event event[];
};

_Static_assert(sizeof(struct vb_trail_event) == 64, "an event is a cache line");

/* Begins FOLDER/PID.trail. 0 or an errno. */
int vb_trail_open(const char *folder);

bool vb_trail_is_open(void);

/* Adds an event, with the time and the thread filled in unless ns is set. Any thread. */
void vb_trail_add(struct vb_trail_event event);

uint64_t vb_trail_now_ns(void);

/* In a forked child: its own begins when it opens the device. */
void vb_trail_forget(void);

#endif
