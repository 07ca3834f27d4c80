/* SPDX-License-Identifier: BSD-2-Clause */
#include "nic/way/pair.h"

#include <errno.h>
#include <stdlib.h>

#include "base/prf.h"
#include "base/prng.h"
#include "nic/core/ah.h"
#include "nic/data/qp.h"
#include "nic/way/watch/watch.h"
#include "wire/icrc.h"

/* The overhead of a queued datagram in a receive buffer. */
#define BURST_COST_BYTES 1024u
#define FRAME_COST_BYTES 64u

/* An answer takes a round trip and, with bad luck, until the other side gets a CPU. */
#define WAIT_NS 20000000u
#define FRIEND_TRIES 20
#define STRANGER_TRIES 3

/* How long a NIC that did not answer is not asked: doubled each time, up to a minute. */
#define REST_NS 1000000000ull
#define REST_DOUBLINGS_MAX 6

struct vb_pair {
	vb_lock lock;
	bool used;
	uint8_t dst[VB_GID_BYTES];
	uint16_t slot;

	/* Octets, counted from a random number that only NICs that were asked know. */
	uint64_t first, sent, asked, told;
	uint64_t asked_ns;
	unsigned tries;
	bool friend; /* has answered before */
	unsigned rests;
	uint64_t rest_until_ns;
};

struct vb_pairs {
	uint64_t key; /* secret, so that addresses with the same place cannot be found */
	uint64_t secret[2]; /* initial counts are drawn from it ... */
	_Atomic uint64_t drawn; /* ... and how many were */
	struct vb_pair pair[VB_PAIRS_MAX];
};

int vb_pairs_init(struct vb_nic *nic, uint64_t seed)
{
	nic->wire.pairs = calloc(1, sizeof(*nic->wire.pairs));
	if (!nic->wire.pairs)
		return ENOMEM;
	/* Derived values are visible to others, but reveal neither the seed nor keys. */
	nic->wire.pairs->secret[0] = seed;
	nic->wire.pairs->secret[1] = 1;
	nic->wire.pairs->key = vb_prf(nic->wire.pairs->secret, 0);
	for (unsigned i = 0; i < VB_PAIRS_MAX; i++)
		vb_lock_init(&nic->wire.pairs->pair[i].lock, VB_RANK_PAIR);
	return 0;
}

void vb_pairs_fini(struct vb_nic *nic)
{
	free(nic->wire.pairs);
}

static unsigned hash(uint64_t key, const uint8_t *gid, uint16_t slot)
{
	uint64_t half[2], h = key;

	memcpy(half, gid, VB_GID_BYTES);
	h ^= half[0];
	h = vb_prng_next(&h) ^ half[1];
	h = vb_prng_next(&h) ^ slot;
	return vb_prng_next(&h) % VB_PAIRS_MAX;
}

/*
 * The place of a peer, locked. Peers with the same place take turns: the last one has it, and the
 * other starts afresh, which costs a question.
 */
static struct vb_pair *pair_take(struct vb_nic *nic, const uint8_t *gid, uint16_t slot, bool make)
{
	struct vb_pair *pair = &nic->wire.pairs->pair[hash(nic->wire.pairs->key, gid, slot)];

	vb_lock_take(&pair->lock);
	if (pair->used && pair->slot == slot && !memcmp(pair->dst, gid, VB_GID_BYTES))
		return pair;
	if (!make) {
		vb_lock_drop(&pair->lock);
		return NULL;
	}
	pair->used = true;
	pair->slot = slot;
	memcpy(pair->dst, gid, VB_GID_BYTES);
	/* It never wraps. */
	pair->first =
		vb_prf(nic->wire.pairs->secret, 1 + atomic_fetch_add(&nic->wire.pairs->drawn, 1)) >>
		1;
	pair->sent = pair->asked = pair->told = pair->first;
	pair->asked_ns = pair->rest_until_ns = 0;
	pair->tries = pair->rests = 0;
	pair->friend = false;
	return pair;
}

static void send_flow(struct vb_nic *nic, uint16_t src_slot, const struct vb_path *path,
		      uint16_t dst_slot, enum vb_flow_kind kind, uint64_t bytes)
{
	struct vb_flow flow = {
		.kind = kind,
		.dqpn = (uint32_t)dst_slot << VB_INDEX_BITS,
		.slot = src_slot,
		.bytes = bytes,
	};
	uint8_t frame[VB_FLOW_FRAME_BYTES];
	struct iovec iov = { frame, sizeof(frame) };
	struct vb_burst burst = {
		.path = *path,
		.slot = dst_slot,
		.frames = 1,
		.frame_bytes = sizeof(frame),
		.last_bytes = sizeof(frame),
		.iovcnt = 1,
		.iov = &iov,
	};

	vb_flow_emit(frame, &flow);
	vb_icrc_put(frame + sizeof(frame) - 4,
		    vb_icrc_finish(vb_icrc_header(path, sizeof(frame), 0, frame,
						  sizeof(frame) - 4)));
	/* If the link refuses it, it is lost as any packet may be, and asked again. */
	if (!nic->host.wire.tx(nic->host.arg, src_slot, &burst) && vb_nic_is_watched(nic))
		vb_watch_burst(nic, NULL, &burst);
}

static uint64_t window_bytes(struct vb_nic *nic)
{
	return vb_max_u64(atomic_load(&nic->wire.rx_buffer_bytes) / 4, 32768);
}

static bool may_send(struct vb_nic *nic, struct vb_pair *pair, uint32_t cost, uint64_t now_ns)
{
	if (now_ns < pair->rest_until_ns || pair->sent == pair->told ||
	    pair->sent - pair->told + cost <= window_bytes(nic))
		return true;
	if (pair->asked == pair->told || now_ns < pair->asked_ns + WAIT_NS)
		return false;
	/* The question or its answer was lost, or the peer does not answer at all. */
	if (pair->tries < (pair->friend ? FRIEND_TRIES : STRANGER_TRIES)) {
		pair->asked = pair->told;
		return false;
	}
	pair->friend = false;
	pair->told = pair->asked = pair->sent;
	pair->tries = 0;
	pair->rest_until_ns = now_ns + (REST_NS << pair->rests);
	if (pair->rests < REST_DOUBLINGS_MAX)
		pair->rests++;
	return true;
}

bool vb_pair_admit(struct vb_nic *nic, uint16_t src_slot, const struct vb_burst *burst,
		   uint64_t now_ns)
{
	uint32_t cost = BURST_COST_BYTES + burst->frames * (burst->frame_bytes + FRAME_COST_BYTES);
	struct vb_pair *pair;
	uint64_t ask = 0;
	bool ok;

	/* A group is not asked: no pacing. */
	if (vb_gid_is_group(burst->path.dst))
		return true;
	pair = pair_take(nic, burst->path.dst, burst->slot, true);
	ok = may_send(nic, pair, cost, now_ns);

	/* One question at a time: after a quarter of the window, or when nothing more may leave. */
	if (pair->asked == pair->told && now_ns >= pair->rest_until_ns &&
	    (!ok || pair->sent - pair->told >= window_bytes(nic) / 4)) {
		ask = pair->asked = pair->sent;
		pair->asked_ns = now_ns;
		pair->tries++;
	}
	if (ok)
		pair->sent += cost;
	vb_lock_drop(&pair->lock);
	if (ask)
		send_flow(nic, src_slot, &burst->path, burst->slot, VB_FLOW_ASK, ask);
	return ok;
}

static void answer(struct vb_nic *nic, const struct vb_frame *frame, const struct vb_flow *flow)
{
	struct vb_path back = frame->path;
	uint16_t src_slot = (uint16_t)(flow->dqpn >> VB_INDEX_BITS);

	memcpy(back.src, frame->path.dst, VB_GID_BYTES);
	memcpy(back.dst, frame->path.src, VB_GID_BYTES);
	back.hop_limit = 64;
	/* The sender is not authenticated. */
	vb_path_sport_answer(nic, &back, src_slot, (uint32_t)flow->slot << VB_INDEX_BITS,
			     VB_STRANGER);
	send_flow(nic, src_slot, &back, flow->slot, VB_FLOW_TELL, flow->bytes);
}

void vb_pair_hold(struct vb_nic *nic, struct vb_qp *qp)
{
	vb_lock_take(&nic->later.held_lock);
	if (!vb_later_is_in(&qp->later.held))
		vb_later_put_first(&nic->later.held, &qp->later.held);
	vb_lock_drop(&nic->later.held_lock);
}

void vb_pair_unhold(struct vb_nic *nic, struct vb_qp *qp)
{
	vb_lock_take(&nic->later.held_lock);
	vb_later_drop(&nic->later.held, &qp->later.held);
	vb_lock_drop(&nic->later.held_lock);
}

struct vb_qp *vb_pair_release(struct vb_nic *nic)
{
	struct vb_qp *qp = NULL;

	vb_lock_take(&nic->later.held_lock);
	if (!vb_later_is_empty(&nic->later.held))
		qp = vb_container_of(vb_later_take(&nic->later.held), struct vb_qp, later.held);
	vb_lock_drop(&nic->later.held_lock);
	return qp;
}

bool vb_pair_rx(struct vb_nic *nic, const struct vb_frame *frame, const struct vb_flow *flow)
{
	struct vb_pair *pair;

	if (flow->kind == VB_FLOW_ASK) {
		answer(nic, frame, flow);
		return false;
	}
	pair = pair_take(nic, frame->path.src, flow->slot, false);
	if (!pair)
		return false;
	/* An answer to a question never asked is forged. */
	if (flow->bytes < pair->first || flow->bytes > pair->asked) {
		vb_lock_drop(&pair->lock);
		return false;
	}
	/* A late answer says nothing about now, but shows that the NIC is one of ours. */
	if (flow->bytes > pair->told && flow->bytes <= pair->asked)
		pair->told = pair->asked = flow->bytes;
	pair->tries = pair->rests = 0;
	pair->rest_until_ns = 0;
	pair->friend = true;
	vb_lock_drop(&pair->lock);
	return true;
}
