/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_NIC_INTERNAL_H
#define VB_NIC_INTERNAL_H

/* The inside of a NIC, for src/nic only. */

#include "engine/resp.h"
#include "nic/ctx.h"
#include "nic/export.h"

/* A leased slot and its QPs. */
struct vb_slot {
	uint16_t slot;
	uint32_t next_index;
	uint32_t count;
	_Atomic(struct vb_qp *) qp[VB_INDICES];
};

struct vb_mr;

/* The keys themselves stand in the export. */
struct vb_keys {
	vb_lock lock; /* whoever changes one */
	uint32_t next, count;
};

/* QPs by the time at which they want to be looked at: a heap. */
struct vb_timers {
	vb_lock lock;
	struct vb_qp **heap;
	uint32_t count, size;
	_Atomic uint64_t first_ns;
};

struct vb_pairs;
struct vb_peer;
struct vb_lane;

struct vb_nic {
	struct vb_nic_host host;
	struct vb_export *export; /* what peers see of us */
	void *own_export;	  /* where it lies, if the host has no memory for it */
	vb_lock lock; /* tables below, seed, counts */
	vb_lock rx;   /* the rx right */
	uint64_t seed;
	uint64_t guid_be;
	_Atomic uint32_t rx_buffer_bytes;

	struct vb_gid_entry gids[VB_GIDS_MAX];
	struct vb_ctx *ctxs;

	_Atomic(struct vb_slot *) slots[VB_SLOTS_PER_NIC_MAX];
	unsigned slot_count;

	_Atomic uint32_t pds, cqs, srqs, ahs, qps;
	_Atomic uint64_t pd_last; /* the number that the last PD got */

	struct vb_keys keys;
	struct vb_pairs *pairs;
	vb_lock held_lock;
	struct vb_qp *held; /* QPs that pacing holds back */
	struct vb_timers timers;
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
	_Atomic(struct vb_lane *) hot[VB_HOT_MAX]; /* in use: looked at in every poll */
	_Atomic unsigned hot_count;
	unsigned hot_next;
	vb_lock sleep_lock;
	uint32_t sleepers; /* threads that have to be woken by a bell */
	_Atomic uint32_t waiters; /* QPs that wait for room in a ring */
	_Atomic uint32_t direct_maps; /* regions of peers' that are mapped */
};

static inline uint64_t vb_nic_now_ns(struct vb_nic *nic)
{
	return nic->host.now_ns(nic->host.arg);
}

static inline struct vb_nic *vb_nic_of(const struct ibv_context *context)
{
	return vb_ctx_of((struct ibv_context *)context)->nic;
}

uint64_t vb_nic_random(struct vb_nic *nic);

/* Count an object against its limit: ENOMEM beyond it. */
int vb_nic_count_up(_Atomic uint32_t *count, uint32_t max);

/* --- slots (nic.c) --- */
struct vb_qp *vb_nic_qp_find(struct vb_nic *nic, uint32_t qpn);
int vb_nic_qp_add(struct vb_nic *nic, struct vb_qp *qp, uint32_t *qpn);
void vb_nic_qp_remove(struct vb_nic *nic, uint32_t qpn);

/* --- keys (mem.c) --- */
void vb_keys_init(struct vb_keys *keys);
void vb_keys_fini(struct vb_keys *keys);

/*
 * Find the memory at va, if the key allows it: where it is, or NULL. access: IBV_ACCESS_* bits that
 * all must be granted, 0 for a local read. It stays registered as long as the caller keeps the
 * right by which it came here: the rx right, a lane's rx_lock, or the QP's lock where the
 * application must not deregister what it posted (vb_nic_quiesce).
 */
uint8_t *vb_mr_get(struct vb_nic *nic, struct ibv_pd *pd, uint32_t key, uint64_t va,
		   uint64_t bytes, unsigned access);

/*
 * Compare-and-swap or fetch-and-add on application memory, which is aligned: atomic against any
 * other of this host's (host.c). False: the memory is gone.
 */
bool vb_atomic_guarded(uint64_t *at, enum vb_kind kind, uint64_t swap_add, uint64_t compare,
		       uint64_t *orig);

/* --- timers (timer.c) --- */
struct vb_timer {
	uint64_t at_ns; /* UINT64_MAX: not in the heap */
	uint32_t place;
};

void vb_timers_init(struct vb_timers *timers);
void vb_timers_fini(struct vb_timers *timers);
/* Look at qp at at_ns or before. */
void vb_timer_arm(struct vb_nic *nic, struct vb_qp *qp, uint64_t at_ns);
void vb_timer_cancel(struct vb_nic *nic, struct vb_qp *qp);
/* Take out a QP whose time has come, NULL: none. */
struct vb_qp *vb_timer_take(struct vb_nic *nic, uint64_t now_ns);

#endif
