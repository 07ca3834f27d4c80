/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_NIC_INTERNAL_H
#define VB_NIC_INTERNAL_H

/* The inside of a NIC, for src/nic only. */

#include <errno.h>

#include "engine/resp.h"
#include "nic/core/ctx.h"
#include "nic/core/export.h"
#include "nic/core/slots.h"
#include "nic/core/timer.h"

struct vb_steer;
struct vb_rwq;
struct vb_segment_port;
struct vb_xrc;

struct vb_mr;
struct vb_mw;
struct vb_mkey;

/* Whose key it is: one of the three, or nobody's. */
struct vb_key_owner {
	struct vb_mr *mr;
	struct vb_mw *mw;
	_Atomic(struct vb_mkey *) mkey; /* read without the lock */
};

/* The keys themselves stand in the export. */
struct vb_keys {
	vb_lock lock; /* whoever changes one, or binds a window */
	uint64_t secret[2], drawn; /* what keys are drawn from, and how many were */
	uint32_t mrs, mws; /* indirect keys count as regions */
	struct vb_mkey *mkeys, *mkeys_free; /* all that were ever made; those that nobody has */
	struct vb_key_owner owner[VB_KEYS];
};

/* Device memory (dm.h). */
struct vb_dms {
	vb_lock lock;
	uint8_t *memory; /* NULL: nothing was allocated yet */
	bool used[VB_DM_UNITS];
};

struct vb_groups;
struct vb_pairs;
struct vb_peer;
struct vb_lane;

/* Work queues and their tables (wq.h). */
struct vb_rwqs {
	vb_lock lock; /* before the lock of any of them */
	struct vb_rwq *first;
	uint32_t last;
	_Atomic uint32_t count, tables, table_last;
};

struct vb_framer;
struct vb_insiders;

enum { VB_FRAMERS = 16 };

/* Where frames are built for the wire, by whoever has the lock. NULL: nobody has needed it yet. */
struct vb_framer_seat {
	_Alignas(64) vb_lock lock;
	struct vb_framer *framer;
};

struct vb_nic {
	struct vb_nic_host host;
	struct vb_export *export; /* what peers see of us */
	void *own_export;	  /* where it lies, if the host has no memory for it */
	vb_lock lock; /* tables below, counts */
	vb_lock lease_lock; /* who leases the next slot; outside `lock` */
	vb_lock rx;   /* the rx right */
	const struct vb_insiders *insiders; /* quiesce.h */
	struct vb_timer *(*timer_of)(struct vb_qp *qp); /* set by whoever makes QPs */
	uint16_t id_first; /* that the last batch of frames began with (rx right) */
	uint64_t guid_be;
	const struct vb_persona *persona;
	_Atomic uint32_t rx_buffer_bytes;

	struct vb_gid_entry gids[VB_GIDS_MAX];
	struct vb_ctx *ctxs;
	_Atomic bool failed;

	_Atomic(struct vb_slot *) slots[VB_SLOTS_PER_NIC_MAX];
	unsigned slot_count;

	_Atomic uint32_t pds, cqs, srqs, ahs, qps, tds, counters;
	_Atomic uint64_t pd_last; /* the number that the last PD got */
	_Atomic uint64_t family_last;
	uint32_t pd_next; /* where the next PD may be entered */
	struct vb_handles pd_handles, mrs, dm_handles;
	struct vb_dms dms;
	_Atomic uint32_t srq_last;

	struct vb_keys keys;
	struct vb_pairs *pairs;
	struct vb_groups *groups;
	struct vb_steer *steer;
	vb_lock held_lock;
	struct vb_qp *held; /* QPs that pacing holds back */
	struct vb_timers timers;
	struct vb_framer_seat framers[VB_FRAMERS]; /* framer.h */
	struct vb_qp *acks; /* QPs whose ACKs wait (rx right) */
	_Atomic uint64_t acks_due_ns;
	struct vb_stats stats;

	/* Shared memory (peer.h). peers_lock: peers_free, additions to peers and hot. */
	vb_lock peers_lock;
	vb_lock resume_lock; /* the right to send on for QPs that waited; outside QP locks */
	struct vb_peer *peers_free;
	_Atomic(struct vb_peer *) peers[VB_PEERS_MAX]; /* all that were ever used */
	_Atomic unsigned peer_count;
	_Atomic(struct vb_peer *) peer_at[VB_SLOTS_PER_NIC_MAX][VB_SLOTS]; /* those alive */
	_Atomic uint64_t refused_until_ns[VB_SLOTS]; /* cannot be reached: not asked for before */
	/* An answer is under way, and worth waiting for until then; 0: none is (way.h). */
	_Atomic uint64_t asked_until_ns[VB_SLOTS_PER_NIC_MAX][VB_SLOTS];
	_Atomic(struct vb_lane *) hot[VB_HOT_MAX]; /* in use: looked at in every poll */
	_Atomic unsigned hot_count;
	unsigned hot_next;
	vb_lock sleep_lock;
	uint32_t sleepers; /* threads that have to be woken by a bell */
	_Atomic uint32_t waiters; /* QPs that wait for room in a ring */
	_Atomic uint32_t direct_maps; /* regions of peers' that are mapped */

	_Atomic bool has_targets; /* of DC: there was one */
	vb_lock xrc_lock; /* who makes the next */
	struct vb_rwqs rwqs;
	_Atomic(struct vb_segment_port *) segment; /* NULL: no RAW_PACKET QP yet (segment.h) */
	_Atomic(struct vb_xrc *) xrc; /* NULL: no XRC domain was ever opened (xrc.h) */
};

static inline uint64_t vb_nic_now_ns(struct vb_nic *nic)
{
	return nic->host.clock.now_ns(nic->host.arg);
}

static inline struct vb_nic *vb_nic_of(const struct ibv_context *context)
{
	return vb_ctx_of((struct ibv_context *)context)->nic;
}

/* Count an object against its limit: ENOMEM beyond it. */
static inline int vb_nic_count_up(_Atomic uint32_t *count, uint32_t max)
{
	if (atomic_fetch_add(count, 1) < max)
		return 0;
	atomic_fetch_sub(count, 1);
	return ENOMEM;
}

#endif
