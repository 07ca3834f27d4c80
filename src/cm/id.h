/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_CM_ID_H
#define VB_CM_ID_H

/*
 * An id: one end of a connection, a listener, or a question for a service's QP. Our user may read
 * what is in it, and set its context.
 *
 * An id whose user has let go of it says goodbye and lingers for as long as the peer may need to
 * hear that again.
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "base/lent.h"
#include "base/path.h"
#include "cm/clock.h"
#include "cm/cm.h"
#include "cm/known.h"
#include "cm/record.h"
#include "cm/rules.h"
#include "cm/table.h"

/* One end of a connection, as far as it is known; 0: not yet. */
struct vb_cm_end {
	uint64_t guid; /* the CA's */
	uint32_t id;   /* communication id, or that of a SIDR request */
	uint32_t qpn;
};

/* Which transaction something belongs to. */
struct vb_cm_tids {
	uint64_t connect; /* the REQ, or SIDR_REQ */
	uint64_t own;	  /* our last request */
	uint64_t peer;	  /* the peer's last one */
};

/* How long we wait for what. */
struct vb_cm_times {
	uint64_t timeout_ns; /* until a request is repeated */
	uint64_t timewait_ns;
	uint64_t linger_ns; /* the peer may ask again for so long */
	unsigned retries;
};

/* Of a listener; and of what has come for one. */
struct vb_cm_listening {
	uint64_t service_id;
	unsigned backlog, waiting; /* how many that our user has not taken yet may wait, and do */
	struct vb_cm_ids children; /* those */
	struct vb_cm_id *listener; /* of a child, until it is taken */
	TAILQ_ENTRY(vb_cm_id) link;
};

struct vb_cm_id {
	struct vb_cm *cm;
	void *context;		    /* our user's */
	TAILQ_ENTRY(vb_cm_id) link; /* in ids or lingering */
	bool owned;		    /* it has a user */
	bool xrc;		    /* an EECN is where others have a QPN */
	bool is_target;		    /* of XRC: its receive QP is not only its process's */
	enum vb_cm_state state;
	enum vb_cm_lap_state lap;
	enum vb_cm_peer peer;
	uint32_t first_psn; /* of the peer's REQ: a repeated one has the same */
	struct vb_cm_end local, remote;
	struct vb_cm_tids tid;
	struct vb_cm_times times;
	struct vb_cm_listening listening;
	struct vb_path path, alternate;		       /* alternate: all zeros if there is none */
	struct vb_cm_node by_local, by_remote, by_qpn; /* by_local: a listener's is by_service */
	struct vb_cm_clock clock;
	struct vb_cm_record *record;  /* or NULL */
	uint8_t sent[VB_MAD_BYTES];   /* our last request, or REP, for another time */
	uint8_t answer[VB_MAD_BYTES]; /* our last answer */
};

/* An id of our user's, IDLE; NULL: there is no memory. */
VB_LENT struct vb_cm_id *vb_cm_id_make(struct vb_cm *cm, void *context);

/*
 * Its user lets go of it: what is open is closed, as Linux does it, and no event comes any more. A
 * listener's children that were not taken stay; they are their user's as well.
 */
VB_LENT void vb_cm_id_release(struct vb_cm_id *id, uint64_t now_ns);

/* It is gone, and the peer is told nothing: as if its message had never come. */
VB_LENT void vb_cm_id_forget(struct vb_cm_id *id);

/*
 * REQ and SIDR_REQ for that service id come to this one. backlog: how many of those may wait that
 * our user has not taken; further ones get no answer, or a SIDR_REQ a refusal. EINVAL: it is not
 * IDLE, or the backlog is 0.
 */
VB_LENT int vb_cm_id_listen(struct vb_cm_id *id, uint64_t service_id, unsigned backlog);

/* Our user has taken notice of an id that came with a REQ or SIDR_REQ. Once or more. */
VB_LENT void vb_cm_id_take(struct vb_cm_id *id);

/* --- within this folder --- */

/* As vb_cm_id_make(), for a listener. */
struct vb_cm_id *vb_cm_id_make_child(struct vb_cm_id *listener, uint64_t service_id);

/* Another state: tables, clock and record follow. It may be the same. */
void vb_cm_id_enter(struct vb_cm_id *id, enum vb_cm_state next);
void vb_cm_id_enter_lap(struct vb_cm_id *id, enum vb_cm_lap_state next);

/* An APR was heard or said: without its consent there is no alternate path. */
void vb_cm_id_alternate_settle(struct vb_cm_id *id, const struct vb_cm_msg *apr);

/* The peer has become known; it is found by that from now on. */
void vb_cm_id_meet(struct vb_cm_id *id);

/* Ids with that peer; NULL: none, or no more. */
struct vb_cm_id *vb_cm_id_of_remote(const struct vb_cm *cm, const struct vb_cm_end *remote,
				    const uint8_t gid[VB_GID_BYTES]);
struct vb_cm_id *vb_cm_id_of_qpn(const struct vb_cm *cm, const struct vb_cm_end *remote,
				 const uint8_t gid[VB_GID_BYTES]);

/* The one that we gave that number; NULL: none. */
struct vb_cm_id *vb_cm_id_of_local(const struct vb_cm *cm, uint32_t local_id);

/* The listener for it; NULL: none. */
struct vb_cm_id *vb_cm_id_of_service(const struct vb_cm *cm, uint64_t service_id,
				     const struct vb_path *path, const struct vb_cm_msg *msg);

/*
 * All is done and said: tells its user, and if it has none and is IDLE it is gone. Nothing may
 * touch the id behind this.
 */
void vb_cm_id_settle(struct vb_cm_id *id, const struct vb_cm_event *event);

#endif
