/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_CM_CM_H
#define VB_CM_CM_H

/*
 * The connection manager of one device (IBTA 12): a state machine that knows no clock, no socket
 * and no lock. Its caller holds one lock around every function of this folder, and passes the time,
 * in ns, which never goes back.
 *
 *   cm.h      the whole: made, turned, unmade
 *   id.h      an id: made, listening, let go
 *   say.h     what our user sends
 *   hear.h    what has come from QP 1
 *   host.h    what we ask of our caller, and the events
 *   rules.h   what follows from what
 *   record.h  what outlives a process
 *   nobody.h  answers to messages for ids that nobody has, and whose a message is
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "cm/clock.h"
#include "cm/host.h"
#include "cm/known.h"
#include "cm/table.h"

/* How many ids may linger whose users have let go of them; more than that, and the oldest go. */
#ifndef VB_CM_LINGERING_MAX
#define VB_CM_LINGERING_MAX 4096
#endif

struct vb_cm_settings {
	uint64_t guid;	    /* our CA's, the same in all processes of a host, as a number */
	uint16_t slot;	    /* 10 bits: the upper ones of all our communication ids */
	uint64_t secret[2]; /* random: what ids, transactions and hashes are drawn with */
};

/* What happened so far. */
struct vb_cm_stats {
	uint64_t heard, sent;
	uint64_t repeated;		   /* ... of sent: since there was no answer */
	uint64_t malformed;		   /* heard: none of the eleven messages */
	uint64_t unmatched;		   /* ... for nobody, or not from whom it should be */
	uint64_t duplicate;		   /* ... REQ and SIDR_REQ that we had */
	uint64_t unexpected;		   /* ... whose time is over, or has not come */
	uint64_t no_listener, full, stale; /* ... REQ and SIDR_REQ that got nowhere */
};

struct vb_cm_id;
TAILQ_HEAD(vb_cm_ids, vb_cm_id);

struct vb_cm {
	struct vb_cm_settings settings;
	struct vb_cm_host host;
	uint64_t now_ns;
	uint64_t drawn;		       /* random numbers so far */
	struct vb_cm_table by_local;   /* communication id */
	struct vb_cm_table by_remote;  /* the peer's, and who the peer is */
	struct vb_cm_table by_qpn;     /* the peer's, while connected, and who the peer is */
	struct vb_cm_table by_service; /* listeners */
	struct vb_cm_clocks clocks;
	struct vb_cm_ids ids;	    /* of our user */
	struct vb_cm_ids lingering; /* of nobody, the oldest first */
	uint32_t ids_count, lingering_count;
	struct vb_cm_known known;
	struct vb_cm_stats stats;
};

void vb_cm_init(struct vb_cm *cm, const struct vb_cm_settings *settings,
		const struct vb_cm_host *host);

/* Forgets all ids; nothing is sent. Who wants to part in peace lets go of each id before. */
void vb_cm_fini(struct vb_cm *cm);

/* When it wants to be turned; VB_CM_NEVER: nothing waits. */
uint64_t vb_cm_deadline_ns(const struct vb_cm *cm);

/* Does what is due. */
void vb_cm_turn(struct vb_cm *cm, uint64_t now_ns);

/* A random number that nobody can guess from the others. */
uint64_t vb_cm_draw(struct vb_cm *cm);

#endif
