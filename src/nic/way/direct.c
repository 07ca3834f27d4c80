/* SPDX-License-Identifier: BSD-2-Clause */
#include "nic/way/direct.h"

#include "base/check.h"
#include "base/guard.h"
#include "nic/data/host.h"
#include "nic/mem/mem.h"
#include "nic/way/peer.h"
#include "nic/way/send.h"

/*
 * The limits for system calls. Measured, in us until completion, by calls and by the ring to a
 * target that polls: a WRITE of 8 octets 1.1 and 0.7 to 1.1, of 4 KiB 2.0 and 1.2, of 64 KiB 6.2
 * and 3.6, of 512 KiB 34 and 18; a READ of 8 octets 1.1 and 0.7 to 1.2, of 4 KiB 1.1 and 1.2, of 64
 * KiB 6.1 and 3.6. If the ring has to wake the target, that takes 30 us more. So for a sleeping
 * target calls are used up to a large size, and for one that is awake only where the ring is not
 * faster: it may be busy with something else.
 */
#define ASLEEP_BYTES_MAX 524288u
#define AWAKE_WRITE_BYTES_MAX 64u
#define AWAKE_READ_BYTES_MAX 4096u

/* Ours or shared: one copy is no slower than two that overlap, but the QP is locked meanwhile. */
#define COPY_BYTES_MAX (16u << 20)

/*
 * Work requests at shorter intervals, without polling for completions, are a stream; a ring has
 * more throughput for those.
 */
#define ALONE_NS 10000u

/*
 * How long a revocation waits for an access under way. An access takes a millisecond at most, but
 * its thread may have to wait for a CPU.
 */
#define SETTLE_NS 5000000000u
#define SETTLE_ROUNDS_MAX 1000000u
#define SETTLE_SPINS 256u

/* More pieces than this are faster in a ring. */
#define PIECES_MAX 4u

/* What the export says about the target memory of a work request. */
struct target {
	uint64_t address; /* in the owner's process */
	uint64_t offset;  /* from the region's first octet */
	uint64_t region_bytes;
	uint32_t key, id;
	int32_t file; /* -1: not shared */
	uint64_t file_offset;
	uint16_t skip, cut;
	bool paged;
};

static unsigned access_of(const struct vb_wqe *wqe)
{
	switch (wqe->kind) {
	case VB_K_WRITE:
		return wqe->extra ? 0 : IBV_ACCESS_REMOTE_WRITE;
	case VB_K_READ_REQ:
		return IBV_ACCESS_REMOTE_READ;
	case VB_K_CMP_SWP:
	case VB_K_FETCH_ADD:
		return IBV_ACCESS_REMOTE_ATOMIC;
	default:
		return 0;
	}
}

/* --- the owner's export --- */

/* Does the QP at the other end grant this access to ours? Returns the id of its PD, or 0. */
static uint64_t granted_by_qp(const struct vb_export *export, const struct vb_qp *qp,
			      unsigned access)
{
	const struct vb_export_qp *entry = vb_export_qp_find(export, qp->to.dqpn);
	uint32_t seq;
	uint64_t pd;
	bool grants;

	if (!entry)
		return 0;
	seq = VB_EXPORT_GET(entry->seq);
	grants = VB_EXPORT_GET(entry->qpn) == qp->to.dqpn &&
		 VB_EXPORT_GET(entry->dqpn) == qp->ibv.qp.qp_num &&
		 (VB_EXPORT_GET(entry->access) & access) == access;
	pd = VB_EXPORT_GET(entry->pd);
	if ((seq & 1) || !grants || VB_EXPORT_GET(entry->seq) != seq)
		return 0;
	return pd;
}

static const struct vb_export_key *key_entry(const struct vb_export *export, uint32_t key)
{
	return &export->key[vb_key_place(key)];
}

static bool granted_by_key(const struct vb_export *export, const struct vb_wqe *wqe, uint64_t pd,
			   unsigned access, struct target *to)
{
	const struct vb_export_key *entry = key_entry(export, wqe->remote.rkey);
	uint32_t seq = VB_EXPORT_GET(entry->seq);
	struct vb_export_region region;

	to->id = VB_EXPORT_GET(entry->shared_id);
	to->file = VB_EXPORT_GET(entry->shared);
	to->file_offset = VB_EXPORT_GET(entry->shared_offset);
	to->skip = VB_EXPORT_GET(entry->shared_skip);
	to->cut = VB_EXPORT_GET(entry->shared_cut);
	if (!vb_export_key_read(entry, &region) || VB_EXPORT_GET(entry->seq) != seq)
		return false;
	to->key = region.key;
	to->region_bytes = region.bytes;
	to->offset = wqe->remote.va - region.iova;
	to->address = region.base + to->offset;
	to->paged = region.access & IBV_ACCESS_ON_DEMAND;
	return vb_export_region_allows(&region, pd, wqe->remote.rkey, wqe->remote.va, wqe->bytes,
				       access);
}

/* --- memory mapped here --- */

static void unmap(struct vb_nic *nic, struct vb_direct_map *map)
{
	if (map->memory) {
		nic->host.direct->unmap(nic->host.arg, map->memory, map->bytes);
		atomic_fetch_sub(&nic->peering.direct_maps, 1);
	}
	*map = (struct vb_direct_map){ .memory = NULL };
}

/* The address of `to` in our mapping; NULL: not mapped. */
static uint8_t *mapped(struct vb_lane *lane, const struct target *to, uint64_t bytes)
{
	struct vb_nic *nic = lane->peer->nic;
	struct vb_direct_map *map = &lane->direct.map[vb_key_place(to->key) % VB_DIRECT_MAPS];

	if (lane->peer->export == nic->export)
		return to->paged ? NULL : (uint8_t *)(uintptr_t)to->address;
	if (to->file < 0 || !nic->host.direct ||
	    (uint64_t)to->skip + to->cut + bytes > to->region_bytes || to->offset < to->skip ||
	    to->offset + bytes > to->region_bytes - to->cut)
		return NULL;
	if (map->key != to->key || map->id != to->id) {
		unmap(nic, map);
		map->key = to->key;
		map->id = to->id;
		map->bytes = to->region_bytes - to->skip - to->cut;
		map->memory = nic->host.direct->map(nic->host.arg, lane->peer, to->file,
					    to->file_offset + to->skip, map->bytes);
		if (map->memory)
			atomic_fetch_add(&nic->peering.direct_maps, 1);
	}
	/* What is mapped stays valid even if the owner's entry has changed. */
	if (!map->memory || bytes > map->bytes || to->offset - to->skip > map->bytes - bytes)
		return NULL;
	return map->memory + (to->offset - to->skip);
}

/*
 * Writes as a NIC does: a reader that spins on the last octet finds all others there. A large copy
 * has no order, so the end is copied separately. (Not inlined: gcc would warn of the fence under
 * ThreadSanitizer, which does not matter for copies by a NIC.)
 */
static __attribute__((noinline)) bool put(uint8_t *to, const uint8_t *from, size_t bytes)
{
	size_t tail = bytes > sizeof(uint64_t) ? sizeof(uint64_t) : bytes, body = bytes - tail;

	if (body) {
		if (!vb_guard_copy(to, from, body))
			return false;
		atomic_thread_fence(memory_order_release);
	}
	return vb_guard_copy(to + body, from + body, tail);
}

static bool copy(uint8_t *remote, const struct vb_payload *local, bool write)
{
	for (uint32_t i = 0; i < local->count; i++) {
		uint8_t *at = local->iov[i].iov_base;
		size_t bytes = local->iov[i].iov_len;

		if (!(write ? put(remote, at, bytes) : vb_guard_copy(at, remote, bytes)))
			return false;
		remote += bytes;
	}
	return true;
}

/* The original value goes to a single piece of eight octets. */
static bool atomic(uint8_t *remote, const struct vb_payload *local, const struct vb_wqe *wqe)
{
	uint64_t orig = 0;

	if ((uintptr_t)remote & 7 || local->count != 1)
		return false;
	/* It must not be executed twice, so nothing after it may fail. */
	if (!vb_guard_copy(local->iov[0].iov_base, &orig, sizeof(orig)) ||
	    !vb_atomic_guarded((uint64_t *)remote, (enum vb_kind)wqe->kind, wqe->remote.swap_add,
			       wqe->remote.compare, &orig))
		return false;
	vb_guard_copy(local->iov[0].iov_base, &orig, sizeof(orig));
	return true;
}

/* --- memory of another process --- */

static uint32_t calls_bytes_max(const struct vb_peer *peer, const struct vb_wqe *wqe)
{
	if (VB_EXPORT_GET(peer->export->sleep_epoch) & 1)
		return ASLEEP_BYTES_MAX;
	return wqe->kind == VB_K_WRITE ? AWAKE_WRITE_BYTES_MAX : AWAKE_READ_BYTES_MAX;
}

/* Is it a single work request whose completion the application waits for, not one of a stream? */
static bool is_alone(struct vb_qp *qp, bool more)
{
	uint64_t now_ns, before_ns = qp->send.direct_ns;

	if (more)
		return false;
	if (atomic_load_explicit(&qp->user.sq_released, memory_order_relaxed) ==
	    qp->req.tail - qp->req.own.posted)
		return true;
	/* Unsignaled, or not polled since: the interval decides. */
	now_ns = qp->send.direct_ns = vb_nic_now_ns(qp->nic);
	return now_ns - before_ns >= ALONE_NS;
}

/* Are system calls possible? */
static bool suits_calls(struct vb_qp *qp, const struct vb_wqe *wqe, bool more)
{
	return qp->nic->host.direct && !vb_wqe_is_atomic(wqe) && wqe->sge_count <= PIECES_MAX &&
	       wqe->bytes <= calls_bytes_max(qp->to.peer, wqe) && is_alone(qp, more);
}

static bool call(struct vb_peer *peer, const struct target *to, const struct vb_payload *local,
		 bool write)
{
	const struct vb_nic_host *host = &peer->nic->host;

	if (write)
		return host->direct->write(host->arg, peer, to->address, local->iov, local->count,
					   to->paged);
	return host->direct->read(host->arg, peer, to->address, local->iov, local->count,
				  to->paged);
}

/* --- both --- */

/* Are pointers possible? A quick check, which only decides what to try. */
static bool suits_pointers(const struct vb_qp *qp, const struct vb_wqe *wqe)
{
	const struct vb_peer *peer = qp->to.peer;

	return wqe->bytes <= COPY_BYTES_MAX &&
	       (peer->export == qp->nic->export ||
		VB_EXPORT_GET(key_entry(peer->export, wqe->remote.rkey)->shared) >= 0);
}

/* Does the owner wait for us before it revokes anything? Once it does, it always will. */
static bool is_heeded(struct vb_lane *lane)
{
	struct vb_direct *direct = &lane->direct;

	if (!direct->heeded && !lane->peer->nic->host.order)
		direct->heeded = atomic_load_explicit(&lane->tx.shared->heeds_direct,
						      memory_order_acquire) != 0;
	return direct->heeded;
}

static bool access_memory(struct vb_qp *qp, const struct vb_wqe *wqe,
			  const struct vb_payload *local, bool calls, bool more)
{
	const struct vb_export *export = qp->to.peer->export;
	unsigned access = access_of(wqe);
	bool write = wqe->kind == VB_K_WRITE;
	uint64_t pd = granted_by_qp(export, qp, access);
	struct target to;
	uint8_t *at;

	if (!pd || !granted_by_key(export, wqe, pd, access, &to))
		return false;
	at = mapped(qp->lane.tx, &to, wqe->bytes);
	if (vb_wqe_is_atomic(wqe))
		return at && !(wqe->remote.va & 7) && atomic(at, local, wqe);
	if (at)
		return copy(at, local, write);
	return (calls || suits_calls(qp, wqe, more)) && call(qp->to.peer, &to, local, write);
}

/* Finds the local data to be written or, if it may be changed, read into. */
static bool gather(struct vb_qp *qp, const struct vb_wqe *wqe, struct vb_payload *local)
{
	for (uint32_t i = 0; i < wqe->sge_count && wqe->kind != VB_K_WRITE; i++) {
		const struct ibv_sge *sge = &wqe->sge[i];

		if (!vb_mr_get(qp->nic, qp->ibv.qp.pd, sge->lkey, sge->addr, sge->length,
			       IBV_ACCESS_LOCAL_WRITE))
			return false;
	}
	if (qp->user.has_parcels && vb_parcel_aim_fetch(qp, wqe, local))
		return true;
	if (qp->user.has_parcels && vb_wqe_is_fetch(wqe))
		vb_parcels_settle(qp);
	return vb_qp_gather(qp, wqe, 0, wqe->bytes, local) && !local->scattered;
}

bool vb_direct_try(struct vb_qp *qp, const struct vb_wqe *wqe, bool more)
{
	struct vb_lane *lane = qp->lane.tx;
	struct vb_payload local;
	bool calls, done;

	if (!access_of(wqe) || !wqe->bytes || wqe->fault ||
	    (vb_peer_marks(qp->to.peer) & ~(uint32_t)VB_PEER_WATCHED))
		return false;
	calls = !suits_pointers(qp, wqe);
	if (calls && !suits_calls(qp, wqe, more))
		return false;
	if (!gather(qp, wqe, &local))
		return false;
	vb_lock_take(&lane->direct.lock);
	done = is_heeded(lane);
	if (done) {
		/* A fence: the export is read after this. */
		atomic_exchange(&lane->tx.shared->direct,
				(uint64_t)wqe->remote.rkey << 32 | ++lane->direct.count);
		done = access_memory(qp, wqe, &local, calls, more);
		atomic_store_explicit(&lane->tx.shared->direct, ++lane->direct.count,
				      memory_order_release);
	}
	/* Not in the NIC's statistics at once, where threads would collide. */
	if (done) {
		vb_held_sum_add(&lane->direct.done, 1);
		vb_held_sum_add(&lane->direct.octets, wqe->bytes);
	}
	vb_lock_drop(&lane->direct.lock);
	if (!done && qp->user.has_parcels)
		vb_parcel_drop(qp);
	return done;
}

void vb_direct_count(struct vb_lane *lane)
{
	struct vb_stats *stats = &lane->peer->nic->stats;

	vb_held_sum_take(&lane->direct.done, stats, VB_STAT_DIRECT_OPS);
	vb_held_sum_take(&lane->direct.octets, stats, VB_STAT_DIRECT_OCTETS);
}

/* --- the owner's side --- */

/* Has the peer finished the access that it had marked so, or died? */
static bool has_left(struct vb_lane *lane, const struct vb_ring_shared *shared, uint64_t seen)
{
	return atomic_load(&shared->direct) != seen ||
	       (atomic_load(&lane->peer->marks) & VB_PEER_GONE);
}

/* Returns false if the peer is dead. */
static bool pause_for(struct vb_lane *lane, uint64_t waited_ns)
{
	const struct vb_nic_host *host = &lane->peer->nic->host;

	if (host->direct)
		return host->direct->tarry(host->arg, lane->peer, waited_ns);
	host->clock.pause(host->arg, waited_ns);
	return true;
}

static bool await(struct vb_lane *lane, const struct vb_ring_shared *shared, uint64_t seen,
		  uint64_t begin_ns)
{
	uint64_t waited_ns;

	for (unsigned i = 0; i < SETTLE_ROUNDS_MAX; i++) {
		if (has_left(lane, shared, seen))
			return true;
		if (i < SETTLE_SPINS)
			continue;
		waited_ns = vb_nic_now_ns(lane->peer->nic) - begin_ns;
		if (waited_ns > SETTLE_NS)
			break;
		if (!pause_for(lane, waited_ns))
			return true;
	}
	return has_left(lane, shared, seen);
}

static bool lane_settle(struct vb_lane *lane, uint32_t key, uint64_t begin_ns)
{
	const struct vb_ring_shared *shared;
	uint64_t seen;

	/* A ring being set up has a producer that has not begun. */
	if (!atomic_load(&lane->peer->has_rx) || !lane->peer->heeded)
		return true;
	vb_lock_take(&lane->rx_lock);
	shared = lane->rx.shared;
	vb_lock_drop(&lane->rx_lock);
	seen = atomic_load(&shared->direct);
	if (!(seen & 1) || (key && seen >> 32 != key))
		return true;
	/* The same access is waited for only once. */
	if (seen == atomic_load(&lane->unsettled))
		return !pause_for(lane, SETTLE_NS) || has_left(lane, shared, seen);
	if (await(lane, shared, seen, begin_ns))
		return true;
	atomic_store(&lane->unsettled, seen);
	return false;
}

bool vb_direct_settle(struct vb_nic *nic, struct vb_lane *lane, uint32_t key)
{
	unsigned count = atomic_load_explicit(&nic->peering.count, memory_order_acquire);
	uint64_t begin_ns = vb_nic_now_ns(nic);
	bool settled = true;

	/* Ordered after the change of the export. */
	atomic_thread_fence(memory_order_seq_cst);
	if (lane)
		return lane_settle(lane, key, begin_ns);
	for (unsigned i = 0; i < count * VB_RING_LANES && settled; i++) {
		struct vb_peer *peer = atomic_load(&nic->peering.all[i / VB_RING_LANES]);

		settled = lane_settle(&peer->lane[i % VB_RING_LANES], key, begin_ns);
	}
	return settled;
}

void vb_direct_reset(struct vb_lane *lane)
{
	vb_lock_take(&lane->direct.lock);
	lane->direct.heeded = false;
	lane->direct.count = 0;
	vb_lock_drop(&lane->direct.lock);
}

/* Has the mapped region been deregistered? */
static bool is_stale(const struct vb_peer *peer, const struct vb_direct_map *map)
{
	const struct vb_export_key *entry = key_entry(peer->export, map->key);

	return VB_EXPORT_GET(entry->key) != map->key || VB_EXPORT_GET(entry->shared_id) != map->id;
}

static void sweep_peer(struct vb_peer *peer)
{
	for (unsigned i = 0; i < VB_RING_LANES; i++) {
		struct vb_direct *direct = &peer->lane[i].direct;

		vb_lock_take(&direct->lock);
		for (unsigned k = 0; k < VB_DIRECT_MAPS; k++) {
			if (direct->map[k].memory && is_stale(peer, &direct->map[k]))
				unmap(peer->nic, &direct->map[k]);
		}
		vb_lock_drop(&direct->lock);
	}
}

void vb_direct_sweep(struct vb_nic *nic)
{
	unsigned count = atomic_load_explicit(&nic->peering.count, memory_order_acquire);

	if (!atomic_load_explicit(&nic->peering.direct_maps, memory_order_relaxed))
		return;
	for (unsigned i = 0; i < count; i++)
		sweep_peer(atomic_load(&nic->peering.all[i]));
}

void vb_direct_revoked(struct vb_nic *nic)
{
	unsigned count = atomic_load_explicit(&nic->peering.count, memory_order_acquire);

	for (unsigned i = 0; i < count; i++) {
		struct vb_peer *peer = atomic_load(&nic->peering.all[i]);

		if (atomic_load_explicit(&peer->has_rx, memory_order_acquire) &&
		    !vb_peer_is_lost(peer))
			nic->host.peers->bell(nic->host.arg, peer);
	}
}

void vb_direct_forget(struct vb_peer *peer)
{
	for (unsigned i = 0; i < VB_RING_LANES; i++) {
		struct vb_direct *direct = &peer->lane[i].direct;

		vb_lock_take(&direct->lock);
		for (unsigned k = 0; k < VB_DIRECT_MAPS; k++)
			unmap(peer->nic, &direct->map[k]);
		vb_lock_drop(&direct->lock);
	}
}
