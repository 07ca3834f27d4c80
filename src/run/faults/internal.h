/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_RUN_FAULTS_INTERNAL_H
#define VB_RUN_FAULTS_INTERNAL_H

/* What the files of run/faults share. Unless it says something else, the rx right is held. */

#include <stdatomic.h>

#include "base/lock.h"
#include "nic/core/limits.h"
#include "run/faults/faults.h"
#include "script/match.h"

struct vb_faults_link;
struct vb_via;

enum { VB_SPELLS_MAX = 256, VB_FAULTS_WAITING_MAX = 4096 };

/* A fault that lasts: silence, a port that is down, a GID that changed. */
struct vb_spell {
	const struct vb_rule *rule;
	uint64_t until_ns;	   /* UINT64_MAX: for ever */
	uint32_t qpn;		   /* silence: of this QP; 0: of all */
	uint8_t was[VB_GID_BYTES]; /* GID: the one that it was */
};

/* A packet under way. */
struct vb_fault_item {
	struct vb_fault_item *next;
	struct vb_fault_flow *flow;
	struct vb_rule *rule; /* that it has met already, and whose action has to wait; NULL */
	uint64_t due_ns;
	struct vb_path path; /* of the wire */
	uint16_t slot;	     /* of the destination */
	uint16_t id_hint;
	uint32_t head_bytes; /* of a ring's; the wire: 0 */
	uint32_t bytes;	     /* of all: of the wire, to the ICRC */
	uint8_t octets[];
};

/* Packets in order. */
struct vb_fault_queue {
	struct vb_fault_item *first, **end;
	unsigned count;
};

/* One direction of a ring's lane or of a link. */
struct vb_fault_flow {
	struct vb_faults *faults;
	bool sent;		     /* else received */
	bool wire;		     /* else a ring's */
	uint16_t own_slot;
	struct vb_fault_queue ready; /* they leave as there is room */
	/* Lets a packet leave, and has it no longer. Returns false if there is no room. */
	bool (*put)(struct vb_fault_flow *flow, struct vb_fault_item *item);
	/* Where answers to our QP come by, from that one; NULL: none do. */
	struct vb_fault_flow *(*back)(struct vb_fault_flow *flow, uint32_t dqpn);
};

enum { VB_RULE_PLACE_BYTES = VB_SCRIPT_NAME_BYTES + 16 };

struct vb_faults {
	struct vb_script script;
	char place[VB_SCRIPT_RULES_MAX][VB_RULE_PLACE_BYTES]; /* "FILE:LINE" of each rule */
	struct vb_faults_host host;
	struct vb_nic *nic;
	uint64_t start_ns;
	struct vb_fault_queue late; /* delayed, by due_ns */
	unsigned waiting;	    /* items of any kind that wait */
	_Atomic bool is_left_to_turn, shows_gids, fails_device, kills_process;
	_Atomic uint64_t next_ns;   /* when there is something to do, unless a packet comes */
	_Atomic(struct vb_via *) vias;
	struct vb_faults_link *links[VB_SLOTS_PER_NIC_MAX];
	_Atomic unsigned links_count;
	vb_lock lock; /* spells, written with the rx right as well */
	unsigned spells_count;
	struct vb_spell spells[VB_SPELLS_MAX];
};

#endif
