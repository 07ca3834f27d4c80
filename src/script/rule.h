/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_SCRIPT_RULE_H
#define VB_SCRIPT_RULE_H

/*
 * A script: rules that say which packets, connections or moments meet which fault (docs/faults.md).
 * parse.h reads one, match.h says which rule applies; both are pure. Carrying it out is
 * run/faults.h.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/path.h"

enum { VB_SCRIPT_RULES_MAX = 64, VB_SCRIPT_NAME_BYTES = 64, VB_SCRIPT_BYTES_MAX = 64 << 10 };

/* What a rule looks at. */
enum vb_rule_where {
	VB_WHERE_SENT,	   /* packets that leave */
	VB_WHERE_RECEIVED, /* packets that come */
	VB_WHERE_CONNECT,  /* requests of rdma_cm to connect that come */
	VB_WHERE_AT,	   /* a moment */
};

enum vb_fault_what {
	VB_FAULT_DROP,
	VB_FAULT_DELAY,
	VB_FAULT_DUPLICATE,
	VB_FAULT_CORRUPT,
	VB_FAULT_TRUNCATE,
	VB_FAULT_SILENCE,
	VB_FAULT_NAK,
	VB_FAULT_FAIL,
	VB_FAULT_PORT,
	VB_FAULT_GID,
	VB_FAULT_DEVICE,
	VB_FAULT_PROCESS,
	VB_FAULT_REJECT,
};

/* What a NAK says (IBTA 9.7.5.2.8). */
enum vb_nak_what {
	VB_NAK_WHAT_RNR,
	VB_NAK_WHAT_SEQUENCE,
	VB_NAK_WHAT_INVALID,
	VB_NAK_WHAT_ACCESS,
	VB_NAK_WHAT_OPERATION,
};

/*
 * Which of the packets that fit are meant: the from-th to the to-th, of these every so many, and of
 * these one in `about` without a pattern.
 */
struct vb_rule_turns {
	uint64_t from, to, every, about;
};

/* What a packet has to be. */
struct vb_rule_fits {
	uint64_t opcodes[4]; /* a bit for each; all 0: any */
	uint32_t qpn;	     /* of ours; 0: any */
	bool has_peer;
	uint8_t peer[VB_GID_BYTES];
	uint32_t bytes_min, bytes_max; /* of its payload */
	uint64_t after_ns, until_ns;   /* since the start */
	uint8_t states;		       /* of the QP, a bit for each enum ibv_qp_state; 0: any */
	struct vb_rule_turns turns;
};

/* What is done to it. */
struct vb_fault_how {
	enum vb_fault_what what;
	uint64_t ns;	 /* delay: how long; silence, port, gid: for how long, 0: for ever */
	bool all;	 /* silence: not of this QP alone */
	bool quietly;	 /* fail: without an event */
	uint8_t nak;	 /* enum vb_nak_what */
	uint32_t number; /* gid: its index; reject: the reason */
	bool has_gid;	 /* gid: there is another in its place */
	uint8_t gid[VB_GID_BYTES];
};

struct vb_rule {
	unsigned line;
	enum vb_rule_where where;
	uint64_t at_ns; /* VB_WHERE_AT */
	struct vb_rule_fits fits;
	struct vb_fault_how how;
	uint64_t fitted, fired; /* so far */
};

struct vb_script {
	char name[VB_SCRIPT_NAME_BYTES]; /* of the file, without its folders */
	unsigned count;
	struct vb_rule rule[VB_SCRIPT_RULES_MAX];
};

#endif
