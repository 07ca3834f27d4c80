/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_SIM_CM_SIM_H
#define VB_SIM_CM_SIM_H

/*
 * What a run of sim_cm consists of: processes with a connection manager each, on hosts with a hub
 * each, and applications that connect, reject, disconnect, ask for services, load alternate paths,
 * let go and die.
 *
 *   cm.c         a run from its seed, and many of them
 *   cm_net.c     MADs on their way: lost, doubled, late, forged; and hubs, who know whose one is
 *   cm_node.c    processes: born, dead, buried
 *   cm_death.c   who dies when, hubs too, and in which states all have died
 *   cm_app.c     what the applications do
 *   cm_oracle.c  what must come of it
 */

#include <setjmp.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/check.h"
#include "base/prng.h"
#include "cm/cm.h"
#include "cm/hear.h"
#include "cm/id.h"
#include "cm/nobody.h"
#include "cm/say.h"

enum {
	HOSTS_MAX = 3,
	NODES_MAX = 4,
	CONNS_MAX = 600,
	RECORDS_MAX = 256,
	BLOCKS_MAX = 1024,
	BACKLOG_MAX = 8,
	STEPS_MAX = 400000,
	PLACES = 2, /* addresses of a host */
};

#define SIM_MS 1000000ull
#define SIM_S (1000 * SIM_MS)

/* Where an application stands with a connection; oracle.c has what may happen there. */
enum phase {
	PHASE_ASKED, /* REQ sent */
	PHASE_GOT_REP,
	PHASE_ASKED_OF, /* REQ has come */
	PHASE_ACCEPTED, /* REP sent */
	PHASE_UP,
	PHASE_PARTING,	 /* DREQ sent */
	PHASE_PARTED_AT, /* DREQ has come */
	PHASE_ENDED,	 /* nothing but the end of timewait is to come */
	PHASE_OVER,	 /* nothing is to come */
	PHASE_SIDR_ASKED,
	PHASE_SIDR_ASKED_OF,
	PHASES
};

struct node;

/* One end of a connection, as its application and we know it. */
struct conn {
	struct node *node;
	unsigned life;	     /* of the node */
	struct vb_cm_id *id; /* NULL: its application has let go of it, or died */
	enum phase phase;
	bool is_active, is_sidr;
	struct conn *peer; /* NULL: none yet, or a stranger */
	bool of_stranger;
	uint64_t nonce;
	uint32_t local_id, qpn; /* the id: of the attempt */
	uint64_t act_ns; /* when its application does something about it; UINT64_MAX: never */
	bool taken;
	unsigned children; /* of an active one: how many listeners heard of it */
	/* What it has done, so that its peer may hear of it. */
	bool said_rtu, said_rej, parted, gone, gave_up, ended_by_peer;
	bool unburied; /* it died, and nobody parted for it */
	uint64_t answered_ns; /* it has said RTU or DREP */
	uint64_t ended_ns;    /* it has rejected, or let go; 0: not */
	unsigned laps, aprs, laps_heard, aprs_heard;
};

struct block {
	void *memory;
};

struct node {
	unsigned index, host;
	uint16_t slot;
	unsigned life; /* counts on with each birth */
	bool alive, listens;
	struct vb_cm cm;
	struct vb_cm_id *listener;
	uint64_t service_id;
	unsigned backlog;
	uint64_t born_ns; /* when it comes back; UINT64_MAX: not */
	int sends_left;	  /* and then it dies amid a call; < 0: never */
	jmp_buf dying;
	void *block[BLOCKS_MAX];
	unsigned blocks;
	struct vb_cm_record record[RECORDS_MAX];
	bool lent[RECORDS_MAX];
	uint64_t app_ns; /* when its application begins something */
};

struct host {
	uint8_t gid[PLACES][VB_GID_BYTES];
	uint64_t guid;
	bool foreign; /* nobody sees marks there: a peer as others make it */
	uint64_t hub_dies_ns, hub_back_ns; /* what comes until it is back waits for it */
};

/* A MAD on its way. */
struct flight {
	uint64_t at_ns, order;
	struct vb_path path;
	bool forged;
	uint8_t mad[VB_MAD_BYTES];
};

struct weather {
	uint32_t loss, dup, late, forge; /* of a million */
	uint64_t late_ns;
};

extern struct sim {
	uint64_t seed, rng, now_ns, order;
	bool trace, calm, stern; /* stern: whatever is repeated gets through in the end */
	jmp_buf failed;
	char why[400];
	struct weather weather;
	unsigned hosts, nodes, conns;
	struct host host[HOSTS_MAX];
	struct node node[NODES_MAX];
	struct conn conn[CONNS_MAX];
	struct flight **heap;
	unsigned flights, size;
	uint64_t end_ns;     /* of the storm */
	bool answers_forged; /* what is sent now is only because of something forged */
	unsigned wanted;     /* connections to begin */
	unsigned life_exponent, response_exponent, retries;
	/* Of this run, for the summary. */
	bool qps_again; /* some QPs are connected again */
	unsigned up, rejected, ups_checked, deaths, forged, floods, laps, sidrs;
} sim;

void trace(const char *format, ...) __attribute__((format(printf, 1, 2)));

#include "draws.h"

static inline bool happens(uint32_t ppm)
{
	return ppm && below(1000000) < ppm;
}

/* --- cm_net.c --- */
void net_send(struct node *from, const struct vb_path *path, const uint8_t mad[VB_MAD_BYTES]);
void net_send_surely(const struct vb_path *path, const uint8_t mad[VB_MAD_BYTES]);
void net_flood(struct node *to);
uint64_t net_next_ns(void);
void net_step(void);
void net_end(void);

/* --- cm_node.c --- */
void node_birth(struct node *node);
void node_death(struct node *node);
void node_end(struct node *node);
/* What the node does, until it is done or has died amid it. */
void node_does(struct node *node, void (*what)(struct node *, const void *), const void *arg);
uint64_t node_next_ns(const struct node *node);
void node_step(struct node *node);

/* --- cm_death.c --- */
/* Nobody would bury it now. */
bool death_is_hubless(const struct node *node);
/* For the table: it dies. */
void death_note(const struct node *node, bool with_peer);
/* Who dies at the same moment, the other end of a connection of its; or NULL. */
struct node *death_twin(const struct node *node);
uint64_t death_next_ns(void);
void death_step(void);
/* Has everybody died in every state in which he may be? Says what is missing. */
bool death_seen_all(void);
void death_print(void);

/* --- cm_app.c --- */
void app_begin(struct node *node);
void app_act(struct conn *conn);
void app_event(struct node *node, struct vb_cm_id *id, const struct vb_cm_event *event);
void app_release(struct conn *conn);
/* It died: nobody is there any more. */
void app_dies(struct node *node);
uint64_t app_next_ns(const struct node *node);
void app_step(struct node *node);

/* --- cm_oracle.c --- */
/* An event has come: may it, and what does it say? Sets the phase. */
void oracle_event(struct conn *conn, const struct vb_cm_event *event);
/* It is new: who is its peer? */
void oracle_child(struct conn *conn, const struct vb_cm_event *event);
/* All is quiet. */
void oracle_quiet(void);
const char *phase_name(enum phase phase);

#endif
