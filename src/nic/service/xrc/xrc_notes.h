/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_NIC_XRC_NOTES_H
#define VB_NIC_XRC_NOTES_H

/*
 * A record of XRC, beside the domains (xrc_store.h), for users to read: the SRQs, and events of
 * receive QPs. A receive QP belongs to no process, so its asynchronous events are also logged here
 * (docs/xrc.md). Packets do not depend on it.
 *
 * Pure. Writers hold the store's lock. Readers need none, and see what was true a moment ago, or
 * anything: as in the store.
 */

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum {
	VB_XRC_SRQS_MAX = 65536, /* of all processes of a hub */
	VB_XRC_NOTES_MAX = 1024, /* including the one being written */
};

struct vb_xrc_srq_row {
	_Atomic uint64_t domain; /* 0: a free place */
	uint32_t number;
	uint16_t slot; /* by which the store identifies its process */
};

struct vb_xrc_srqs {
	uint32_t top, next; /* places from top on were never used; where to look for a free one */
	struct vb_xrc_srq_row srq[VB_XRC_SRQS_MAX];
};

/* How many places to look at. */
static inline uint32_t vb_xrc_srqs_top(const struct vb_xrc_srqs *srqs)
{
	uint32_t top = *(const volatile uint32_t *)&srqs->top;

	return top < VB_XRC_SRQS_MAX ? top : VB_XRC_SRQS_MAX;
}

/* An asynchronous event of a receive QP. */
struct vb_xrc_note {
	uint64_t wall_ns; /* when: since 1970 */
	uint64_t domain;
	uint32_t qpn, type; /* enum ibv_event_type */
	uint32_t slot;	    /* of the NIC that saw it */
};

struct vb_xrc_log {
	_Atomic uint64_t count; /* of all entries ever */
	struct vb_xrc_note note[VB_XRC_NOTES_MAX];
};

/* Adds an SRQ. *place is for vb_xrc_srq_strike(). ENOMEM: too many. */
int vb_xrc_srq_note(struct vb_xrc_srqs *srqs, uint64_t domain, uint32_t number, uint16_t slot,
		    uint32_t *place);

/* Removes an SRQ, unless it was removed with its process. */
void vb_xrc_srq_strike(struct vb_xrc_srqs *srqs, uint32_t place, uint32_t number);

/* Removes the SRQs of a dead process. */
void vb_xrc_srqs_collect(struct vb_xrc_srqs *srqs, uint16_t slot);

void vb_xrc_log_add(struct vb_xrc_log *log, const struct vb_xrc_note *note);

/* The number of the oldest entry left; the next new one gets number `count`. */
uint64_t vb_xrc_log_first(uint64_t count);

/* Returns false if it is gone, being overwritten, or does not exist yet. Without the lock. */
bool vb_xrc_log_read(const struct vb_xrc_log *log, uint64_t number, struct vb_xrc_note *note);

#endif
