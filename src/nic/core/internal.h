/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_NIC_INTERNAL_H
#define VB_NIC_INTERNAL_H

/* The inside of a NIC, for src/nic only. */

#include <errno.h>

#include "engine/resp.h"
#include "nic/core/ahn.h"
#include "nic/core/ctx.h"
#include "nic/core/export.h"
#include "nic/core/later.h"
#include "nic/core/slots.h"
#include "nic/core/timer.h"
#include "wire/icrc.h"

struct vb_batch;
struct vb_from;
struct vb_steer;
struct vb_rwq;
struct vb_segment_port;
struct vb_xrc;

struct vb_mr;
struct vb_mw;
struct vb_mkey;

/* The owner of a key: one of the three, or none. */
struct vb_key_owner {
	struct vb_mr *mr;
	struct vb_mw *mw;
	_Atomic(struct vb_mkey *) mkey; /* read without the lock */
};

/* The keys themselves are in the export. */
struct vb_keys {
	vb_lock lock; /* held to change a key or bind a window */
	uint64_t secret[2], drawn; /* keys are drawn from secret; how many were */
	uint32_t mrs, mws; /* indirect keys count as regions */
	struct vb_mkey *mkeys, *mkeys_free; /* all ever made; those not in use */
	struct vb_key_owner owner[VB_KEYS];
};

/* Device memory (dm.h). */
struct vb_dms {
	vb_lock lock;
	uint8_t *memory; /* NULL: nothing allocated yet */
	bool used[VB_DM_UNITS];
};

struct vb_groups;
struct vb_pairs;
struct vb_peer;
struct vb_lane;

/* Work queues and their tables (wq.h). */
struct vb_rwqs {
	vb_lock lock; /* taken before the lock of any of them */
	struct vb_rwq *first;
	uint32_t last;
	_Atomic uint32_t count, tables, table_last;
};

struct vb_framer;
struct vb_insiders;

enum { VB_FRAMERS = 16 };

/* A place to build frames for the wire; the lock's holder uses it. NULL: not used yet. */
struct vb_framer_seat {
	_Alignas(64) vb_lock lock;
	struct vb_framer *framer;
};

/* What the NIC reports about itself. */
struct vb_nic_identity {
	uint64_t guid_be, system_guid_be;
	struct vb_persona persona;
	uint64_t most[VB_LIMITS]; /* lowered.h */
	struct vb_gid_entry gids[VB_GIDS_MAX];
	struct vb_neighbour neighbours[VB_GIDS_MAX];
	unsigned neighbour_count;
};

/* The slots leased so far (slots.h). */
struct vb_nic_leased {
	vb_lock lock; /* held to lease a slot; taken before the NIC's */
	_Atomic(struct vb_slot *) slot[VB_SLOTS_PER_NIC_MAX];
	unsigned count;
};

/* Numbers of objects. */
struct vb_nic_counts {
	_Atomic uint32_t pds, cqs, srqs, ahs, qps, tds, counters, comp_cntrs;
};

/* The last numbers assigned. */
struct vb_nic_ids {
	_Atomic uint64_t pd_last;
	_Atomic uint64_t family_last;
	_Atomic uint32_t srq_last;
	uint32_t pd_next; /* where to look for a free PD entry */
};

struct vb_nic_handles {
	struct vb_handles pds, mrs, dms;
};

/* Work for later: timers, QPs held back by pacing, delayed ACKs. */
struct vb_nic_later {
	struct vb_timers timers;
	struct vb_timer *(*timer_of)(struct vb_qp *qp); /* set when QPs can be made */
	vb_lock held_lock;
	struct vb_later_queue held; /* QPs that pacing holds back (held_lock) */
	struct vb_later_queue acks; /* QPs whose ACKs wait (rx right) */
	_Atomic uint64_t acks_due_ns;
};

/* For frames to and from the wire. */
struct vb_nic_wire {
	struct vb_framer_seat framers[VB_FRAMERS]; /* framer.h */
	struct vb_pairs *pairs;			   /* pair.h */
	_Atomic uint32_t rx_buffer_bytes;
	uint16_t id_first; /* first identification of the last batch of frames (rx right) */
	struct vb_icrc_memo icrc; /* of the last frame (rx right) */
};

/* Peers on this host, which share rings with us (peer.h). */
struct vb_nic_peering {
	vb_lock lock;	     /* free; additions to all and to lanes.hot */
	vb_lock resume_lock; /* the right to resume QPs that waited; taken before QPs' locks */
	struct vb_peer *free;
	_Atomic(struct vb_peer *) all[VB_PEERS_MAX]; /* all that were ever used */
	_Atomic unsigned count;
	_Atomic uint32_t direct_maps; /* mapped regions of peers */
	_Atomic(struct vb_peer *) at[VB_SLOTS_PER_NIC_MAX][VB_SLOTS]; /* those alive */
	/* unreachable: not asked for before this time */
	_Atomic uint64_t refused_until_ns[VB_SLOTS];
	/* An answer is expected, and worth waiting for until then; 0: none (way.h). */
	_Atomic uint64_t asked_until_ns[VB_SLOTS_PER_NIC_MAX][VB_SLOTS];
};

/* Lanes in use: every poll reads them. */
struct vb_nic_lanes {
	_Atomic(struct vb_lane *) hot[VB_HOT_MAX];
	_Atomic unsigned count;
	unsigned next;
	_Atomic uint32_t waiters; /* QPs that wait for room in a ring */
};

/* Threads that sleep until a bell. */
struct vb_nic_sleep {
	vb_lock lock;
	uint32_t sleepers;
};

/* What only one service needs. */
struct vb_nic_special {
	struct vb_groups *groups;
	struct vb_steer *steer;
	struct vb_rwqs rwqs;
	_Atomic(struct vb_segment_port *) segment; /* NULL: no RAW_PACKET QP yet (segment.h) */
	_Atomic(struct vb_xrc *) xrc; /* NULL: no XRC domain was ever opened (xrc.h) */
	vb_lock xrc_lock;	      /* held to make xrc or segment */
	_Atomic bool has_targets;     /* a DC target existed */
	struct vb_ahns ahns;
	/* Answers what is for no QP: vb_dc_nobody(), once there was a QP of SRD. */
	void (*_Atomic nobody)(struct vb_batch *batch, const struct vb_from *from,
			       const struct vb_pkt *pkt);
};

/* What another order is drawn for. */
enum vb_order_of {
	VB_ORDER_OF_PACKETS,
	VB_ORDER_OF_COMPLETIONS,
	VB_ORDER_OF_EVENTS,
	VB_ORDER_OF_CM_EVENTS,
	VB_ORDERS
};

/* Which packets the host sees. */
enum vb_watch_what {
	VB_WATCH_NOTHING,
	VB_WATCH_RINGS, /* those that go through rings anyway */
	VB_WATCH_ALL,	/* of both ways; what would need no packet becomes one */
};

struct vb_nic {
	struct vb_nic_host host;
	struct vb_export *export; /* what peers see of us */
	void *own_export;	  /* its memory, if the host provides none */
	vb_lock lock;		  /* contexts, counts, the numbers in use */
	vb_lock rx;		  /* the rx right */
	const struct vb_insiders *insiders; /* quiesce.h */
	struct vb_ctx *ctxs;
	_Atomic bool failed;
	_Atomic uint64_t measured_until_ns; /* somebody looks at latencies (control/sample.h) */
	_Atomic uint8_t watched; /* enum vb_watch_what: the host sees packets (way/watch/watch.h) */

	struct vb_nic_leased leased;
	struct vb_nic_counts counts;
	struct vb_nic_ids ids;
	struct vb_nic_handles handles;
	struct vb_nic_identity identity;
	struct vb_dms dms;
	struct vb_keys keys;
	struct vb_nic_later later;
	struct vb_nic_wire wire;
	struct vb_stats stats;
	struct vb_nic_peering peering;
	struct vb_nic_lanes lanes;
	struct vb_nic_sleep sleep;
	struct vb_nic_special special;
	_Atomic uint64_t orders[VB_ORDERS]; /* sequences of draws begun (order.h) */
};

static inline uint64_t vb_nic_now_ns(struct vb_nic *nic)
{
	return nic->host.clock.now_ns(nic->host.arg);
}

static inline struct vb_nic *vb_nic_of(const struct ibv_context *context)
{
	return vb_ctx_of((struct ibv_context *)context)->nic;
}

/* SRD is what EFA alone offers: such a device is like EFA's in all else (control/efa.h). */
static inline bool vb_nic_offers_srd(const struct vb_nic *nic)
{
	return nic->identity.persona.services & VB_OFFERS_SRD;
}

/* Counts an object against its limit; ENOMEM if that is reached. */
static inline int vb_nic_count_up(_Atomic uint32_t *count, uint32_t max)
{
	if (atomic_fetch_add(count, 1) < max)
		return 0;
	atomic_fetch_sub(count, 1);
	return ENOMEM;
}

#endif
