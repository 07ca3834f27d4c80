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
	return nic->host.now_ns(nic->host.arg);
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

/* --- keys (mem.c) --- */
void vb_keys_init(struct vb_keys *keys, uint64_t seed);
void vb_keys_fini(struct vb_keys *keys);

/*
 * For those who own keys, with the keys' lock held. take: a key that says nothing about any other,
 * of a place that nobody has; the caller writes its entry at once. write: the only way an entry is
 * changed, see vb_export_key_read().
 */
uint32_t vb_key_take_locked(struct vb_nic *nic);
void vb_key_write_locked(struct vb_nic *nic, const struct vb_export_region *region,
			 const struct vb_shared *shared);

/* After this, nobody knows the key, and its place is free. */
void vb_key_drop_locked(struct vb_nic *nic, uint32_t key);

static inline struct vb_key_owner *vb_key_owner(struct vb_nic *nic, uint32_t key)
{
	return &nic->keys.owner[vb_key_place(key)];
}

/*
 * Find the memory at va, if the key allows it: where it is, or NULL. access: IBV_ACCESS_* bits that
 * all must be granted, 0 for a local read. It stays registered as long as the caller keeps the
 * right by which it came here: the rx right, a lane's rx_lock, or the QP's lock where the
 * application must not deregister what it posted (vb_nic_quiesce).
 */
uint8_t *vb_mr_get(struct vb_nic *nic, struct ibv_pd *pd, uint32_t key, uint64_t va,
		   uint64_t bytes, unsigned access);

/*
 * The same of any region, and is it one of on-demand paging? vb_mr_get() does not give its memory
 * away: pages may be missing there, so it is not for whoever copies by pointers (vb_mr_copy).
 */
uint8_t *vb_mr_find(struct vb_nic *nic, struct ibv_pd *pd, uint32_t key, uint64_t va,
		    uint64_t bytes, unsigned access, bool *paged);

/* memcpy to or from what was found: false if a part of it is not there. */
bool vb_mr_copy(struct vb_nic *nic, bool paged, void *to, const void *from, uint64_t bytes);

/* Scatter over a list of SGEs: false if a key does not allow it or memory is gone (host.c). */
bool vb_mr_scatter(struct vb_nic *nic, struct ibv_pd *pd, const struct ibv_sge *sge, uint32_t count,
		   uint32_t offset, const uint8_t *data, uint32_t bytes);

/* Does a region of this key grant these rights, wherever it is? */
bool vb_key_grants(struct vb_nic *nic, const struct ibv_pd *pd, uint32_t key, unsigned access);

/*
 * Compare-and-swap, fetch-and-add or ATOMIC_WRITE on application memory, which is aligned: atomic
 * against any other of this host's (host.c). False: the memory is gone.
 */
bool vb_atomic_guarded(uint64_t *at, enum vb_kind kind, uint64_t swap_add, uint64_t compare,
		       uint64_t *orig);

#endif
