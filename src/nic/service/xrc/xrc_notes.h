/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_NIC_XRC_NOTES_H
#define VB_NIC_XRC_NOTES_H

/*
 * What is noted of XRC beside its domains (xrc_store.h), for people to read: which SRQs there are,
 * and what happened to receive QPs. A receive QP belongs to no process, so its asynchronous events
 * are told here as well (docs/xrc.md); no packet goes by what is noted.
 *
 * Pure. Whoever writes has the store's lock; whoever reads needs none, and reads what was so a
 * moment ago, or anything: as in the store.
 */

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum {
	VB_XRC_SRQS_MAX = 65536, /* of all processes of a hub */
	VB_XRC_NOTES_MAX = 1024, /* with the one that is being written */
};

struct vb_xrc_srq_row {
	_Atomic uint64_t domain; /* 0: a free place */
	uint32_t number;
	uint16_t slot; /* by which the store knows its process */
};

struct vb_xrc_srqs {
	uint32_t top, next; /* no place from top on was ever used; where to look first */
	struct vb_xrc_srq_row srq[VB_XRC_SRQS_MAX];
};

/* How many places are worth a look. */
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
	uint32_t slot;	    /* whose NIC saw it happen */
};

struct vb_xrc_log {
	_Atomic uint64_t count; /* of all there ever were */
	struct vb_xrc_note note[VB_XRC_NOTES_MAX];
};

/* *place is for vb_xrc_srq_strike(). ENOMEM: too many. */
int vb_xrc_srq_note(struct vb_xrc_srqs *srqs, uint64_t domain, uint32_t number, uint16_t slot,
		    uint32_t *place);

/* It is no more; if it has been struck with its process, nothing happens. */
void vb_xrc_srq_strike(struct vb_xrc_srqs *srqs, uint32_t place, uint32_t number);

/* That process is dead. */
void vb_xrc_srqs_collect(struct vb_xrc_srqs *srqs, uint16_t slot);

void vb_xrc_log_add(struct vb_xrc_log *log, const struct vb_xrc_note *note);

/* The oldest that there is has number vb_xrc_log_first(count), the next one's is count. */
uint64_t vb_xrc_log_first(uint64_t count);

/* False: it has gone, or is going, or has not come. Without the lock. */
bool vb_xrc_log_read(const struct vb_xrc_log *log, uint64_t number, struct vb_xrc_note *note);

#endif
