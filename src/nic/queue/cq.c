/* SPDX-License-Identifier: BSD-2-Clause */
#include "nic/queue/cq.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/refusal.h"
#include "nic/core/domain.h"
#include "nic/core/lowered.h"

#define STAMP_FLAGS                                                                               \
	((uint64_t)(IBV_WC_EX_WITH_COMPLETION_TIMESTAMP |                                         \
		    IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK))
#define COMP_MASK_KNOWN ((uint32_t)(IBV_CQ_INIT_ATTR_MASK_FLAGS | IBV_CQ_INIT_ATTR_MASK_PD))
#define FLAGS_KNOWN                                                                               \
	((uint32_t)(IBV_CREATE_CQ_ATTR_SINGLE_THREADED | IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN))

static uint32_t ring_size(int cqe)
{
	uint32_t size = 1;

	while (size < (uint32_t)cqe)
		size *= 2;
	return size;
}

static struct vb_channel *channel_of(const struct vb_cq *cq)
{
	return (struct vb_channel *)cq->ibv.cq.channel;
}

/* --- creating and resizing --- */

/* Completions, and behind them their timestamps, if it has any; whole cache lines. */
static size_t ring_bytes(const struct vb_cq *cq, uint32_t size)
{
	size_t line = sizeof(struct vb_cqe);
	size_t stamps = cq->made.wc_flags & STAMP_FLAGS ? size * sizeof(struct vb_cq_stamp) : 0;

	return size * line + (stamps + line - 1) / line * line;
}

static int ring_make(const struct vb_cq *cq, uint32_t size, void **ring, bool *borrowed)
{
	int err = vb_buffer_borrow(cq->made.domain, VB_BUFFER_CQ, ring_bytes(cq, size), ring);

	*borrowed = *ring != NULL;
	if (!err && !*ring)
		*ring = aligned_alloc(sizeof(struct vb_cqe), ring_bytes(cq, size));
	return *ring ? 0 : ENOMEM;
}

static void ring_free(const struct vb_cq *cq, void *ring, bool borrowed)
{
	if (borrowed)
		vb_buffer_return(cq->made.domain, VB_BUFFER_CQ, ring);
	else
		free(ring);
}

static void ring_place(struct vb_cq *cq, void *ring, uint32_t size, bool borrowed)
{
	cq->ring = ring;
	cq->stamps = cq->made.wc_flags & STAMP_FLAGS ? (void *)(cq->ring + size) : NULL;
	cq->mask = size - 1;
	cq->made.borrowed = borrowed;
	cq->ibv.cq.cqe = (int)size;
	atomic_store_explicit(&cq->room, size, memory_order_relaxed);
}

static int check(const struct vb_ctx *ctx, const struct ibv_cq_init_attr_ex *attr, uint32_t flags)
{
	const struct vb_pd *domain = (struct vb_pd *)attr->parent_domain;

	if ((attr->comp_mask & ~COMP_MASK_KNOWN) || (flags & ~FLAGS_KNOWN) ||
	    (attr->wc_flags & ~(uint64_t)IBV_CREATE_CQ_SUP_WC_FLAGS) ||
	    ((attr->wc_flags & STAMP_FLAGS) && !ctx->nic->host.stamps))
		return vb_refuse(EOPNOTSUPP,
				 "comp_mask 0x%x, flags 0x%x or wc_flags 0x%" PRIx64
				 " has a bit that is not known here",
				 attr->comp_mask, flags, (uint64_t)attr->wc_flags);
	if (attr->cqe < 1 || attr->cqe > vb_lowered(ctx->nic, VB_LIMIT_CQE))
		return vb_refuse(EINVAL, "cqe is %u; a CQ holds 1 to %u completions (max_cqe)",
				 attr->cqe, vb_lowered(ctx->nic, VB_LIMIT_CQE));
	if (attr->comp_vector >= VB_COMP_VECTORS)
		return vb_refuse(EINVAL, "comp_vector is %d; vectors are 0 to %d "
					 "(num_comp_vectors)",
				 (int)attr->comp_vector, VB_COMP_VECTORS - 1);
	if (attr->channel && attr->channel->context != &ctx->ibv.context)
		return vb_refuse(EINVAL, "the channel belongs to another context");
	if ((attr->comp_mask & IBV_CQ_INIT_ATTR_MASK_PD) &&
	    (!domain || domain->ibv.context != &ctx->ibv.context || !domain->domain))
		return vb_refuse(EINVAL, "parent_domain is not a parent domain of this context");
	return 0;
}

static void fill(struct vb_cq *cq, struct vb_ctx *ctx, const struct ibv_cq_init_attr_ex *attr,
		 uint32_t flags)
{
	cq->ibv.cq.context = &ctx->ibv.context;
	cq->ibv.cq.cq_context = attr->cq_context;
	cq->made.wc_flags = attr->wc_flags;
	cq->made.cqe_bytes = VB_CQE_BYTES;
	if (attr->comp_mask & IBV_CQ_INIT_ATTR_MASK_PD)
		cq->made.domain = (struct vb_pd *)attr->parent_domain;
	cq->made.lone =
		(flags & IBV_CREATE_CQ_ATTR_SINGLE_THREADED) || vb_pd_is_lone(cq->made.domain);
	cq->made.overwrites = flags & IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN;
	vb_lock_init(&cq->poll_lock, VB_RANK_CQ_POLL);
	vb_lock_init(&cq->push_lock, VB_RANK_CQ_PUSH);
	vb_timer_init(&cq->timer, true);
	cq->guard = cq->made.lone ? NULL : &cq->poll_lock;
	if (cq->made.overwrites)
		cq->guard = &cq->push_lock;
}

static int cq_make(struct vb_ctx *ctx, const struct ibv_cq_init_attr_ex *attr, uint32_t flags,
		   struct vb_cq **out)
{
	uint32_t size = ring_size((int)attr->cqe);
	struct vb_cq *cq = aligned_alloc(_Alignof(struct vb_cq), sizeof(*cq));
	bool borrowed;
	void *ring;
	int err;

	if (!cq)
		return ENOMEM;
	memset(cq, 0, sizeof(*cq));
	fill(cq, ctx, attr, flags);
	err = ring_make(cq, size, &ring, &borrowed);
	if (err) {
		free(cq);
		return err;
	}
	ring_place(cq, ring, size, borrowed);
	*out = cq;
	return 0;
}

int vb_cq_create_ex(struct vb_ctx *ctx, const struct ibv_cq_init_attr_ex *attr, struct vb_cq **out)
{
	uint32_t flags = attr->comp_mask & IBV_CQ_INIT_ATTR_MASK_FLAGS ? attr->flags : 0;
	struct vb_channel *channel = (struct vb_channel *)attr->channel;
	int err = check(ctx, attr, flags);

	if (err)
		return err;
	err = vb_lowered_count_up(ctx->nic, &ctx->nic->counts.cqs, VB_LIMIT_CQ);
	if (err)
		return err;
	err = cq_make(ctx, attr, flags, out);
	if (err) {
		atomic_fetch_sub(&ctx->nic->counts.cqs, 1);
		return err;
	}
	if ((*out)->made.domain)
		atomic_fetch_add(&(*out)->made.domain->users, 1);
	if (channel) {
		(*out)->ibv.cq.channel = &channel->ibv;
		vb_lock_take(&channel->lock);
		channel->ibv.refcnt++;
		vb_lock_drop(&channel->lock);
	}
	return 0;
}

int vb_cq_create(struct vb_ctx *ctx, int cqe, struct vb_channel *channel, int vector,
		 void *cq_context, struct vb_cq **out)
{
	const struct ibv_cq_init_attr_ex attr = {
		.cqe = cqe > 0 ? (uint32_t)cqe : 0,
		.cq_context = cq_context,
		.channel = channel ? &channel->ibv : NULL,
		.comp_vector = (uint32_t)vector, /* a negative one becomes too large */
	};

	return vb_cq_create_ex(ctx, &attr, out);
}

static struct vb_cqe *at(const struct vb_cq *cq, uint64_t place)
{
	return &cq->ring[place & cq->mask];
}

/* Reading tail this way allows reading the completions before it; reading head, writing there. */
static uint64_t head_of(const struct vb_cq *cq)
{
	return atomic_load_explicit(&cq->head, memory_order_acquire);
}

static uint64_t tail_of(const struct vb_cq *cq)
{
	return atomic_load_explicit(&cq->tail, memory_order_acquire);
}

static void lock_both(struct vb_cq *cq)
{
	vb_lock_take(&cq->poll_lock);
	vb_lock_take(&cq->push_lock);
}

static void drop_both(struct vb_cq *cq)
{
	vb_lock_drop(&cq->push_lock);
	vb_lock_drop(&cq->poll_lock);
}

/* Positions stay the same, so threads that look without a lock notice nothing. */
static void ring_copy(const struct vb_cq *cq, void *ring, uint32_t size)
{
	struct vb_cqe *to = ring;
	struct vb_cq_stamp *stamps = (void *)(to + size);

	for (uint64_t i = head_of(cq); i != tail_of(cq); i++) {
		to[i & (size - 1)] = *at(cq, i);
		if (cq->stamps)
			stamps[i & (size - 1)] = cq->stamps[i & cq->mask];
	}
}

/* Parcels are as many as completions, and waiting ones keep their position. Both locks held. */
static int parcels_resize(struct vb_cq *cq, uint32_t size)
{
	struct vb_parcel *parcels = calloc(size, sizeof(*parcels));

	if (!parcels)
		return ENOMEM;
	for (uint64_t i = head_of(cq); cq->parcels && i != tail_of(cq); i++)
		parcels[i & (size - 1)] = cq->parcels[i & cq->mask];
	free(cq->parcels);
	cq->parcels = parcels;
	return 0;
}

int vb_cq_parcels_make(struct vb_cq *cq)
{
	int err = 0;

	lock_both(cq);
	if (!cq->parcels)
		err = parcels_resize(cq, cq->mask + 1);
	drop_both(cq);
	return err;
}

int vb_cq_resize(struct vb_cq *cq, int cqe)
{
	bool borrowed, old_borrowed;
	uint32_t size, most;
	void *ring, *old;
	int err;

	most = vb_lowered(vb_nic_of(cq->ibv.cq.context), VB_LIMIT_CQE);
	if (cqe < 1 || (uint32_t)cqe > most)
		return vb_refuse(EINVAL, "cqe is %d; a CQ holds 1 to %u completions (max_cqe)", cqe,
				 most);
	size = ring_size(cqe);
	err = ring_make(cq, size, &ring, &borrowed);
	if (err)
		return err;
	lock_both(cq);
	if (tail_of(cq) - head_of(cq) > (uint64_t)cqe || vb_cq_is_broken(cq))
		err = vb_refuse(EINVAL,
				"cqe is %d, but more completions wait in the CQ, or it has "
				"overrun",
				cqe);
	else if (cq->parcels)
		err = parcels_resize(cq, size);
	if (!err) {
		old = cq->ring;
		old_borrowed = cq->made.borrowed;
		ring_copy(cq, ring, size);
		ring_place(cq, ring, size, borrowed);
		ring = old;
		borrowed = old_borrowed;
	}
	drop_both(cq);
	ring_free(cq, ring, borrowed);
	return err;
}

/* --- destroying --- */

/* Removes its queued events from the channel. */
static void channel_leave(struct vb_cq *cq)
{
	struct vb_channel *channel = channel_of(cq);
	struct vb_nic *nic = vb_nic_of(cq->ibv.cq.context);

	vb_lock_take(&channel->lock);
	if (cq->events.pending) {
		struct vb_cq **at = &channel->head;

		while (*at != cq)
			at = &(*at)->events.next;
		*at = cq->events.next;
		if (channel->tail == &cq->events.next)
			channel->tail = at;
		for (; cq->events.pending; cq->events.pending--)
			nic->host.process.unsignal(nic->host.arg, channel->ibv.fd);
	}
	channel->ibv.refcnt--;
	vb_lock_drop(&channel->lock);
}

/* Cancels a delayed event, and waits for a thread that is just handling it. */
static void timer_end(struct vb_cq *cq)
{
	struct vb_nic *nic = vb_nic_of(cq->ibv.cq.context);

	vb_timer_clear(nic, &cq->timer);
	vb_lock_take(&nic->rx);
	vb_lock_drop(&nic->rx);
}

int vb_cq_destroy(struct vb_cq *cq)
{
	struct vb_ctx *ctx = vb_ctx_of(cq->ibv.cq.context);

	if (atomic_load(&cq->users))
		return vb_refuse(EBUSY, "%u queues of QPs or SRQs still use it",
				 (unsigned)atomic_load(&cq->users));
	if (cq->mod.ever)
		timer_end(cq);
	if (cq->ibv.cq.channel)
		channel_leave(cq);
	vb_ctx_events_cancel(ctx, &cq->events.async);
	ring_free(cq, cq->ring, cq->made.borrowed);
	cq->ring = NULL;
	free(cq->parcels);
	cq->parcels = NULL;
	if (cq->made.domain)
		atomic_fetch_sub(&cq->made.domain->users, 1);
	atomic_fetch_sub(&ctx->nic->counts.cqs, 1);
	return 0;
}

void vb_cq_free(struct vb_cq *cq)
{
	vb_lock_fini(&cq->push_lock);
	vb_lock_fini(&cq->poll_lock);
	free(cq);
}

/* --- taking --- */

static void guard_take(struct vb_cq *cq)
{
	if (cq->guard)
		vb_lock_take(cq->guard);
}

static void guard_drop(struct vb_cq *cq)
{
	if (cq->guard)
		vb_lock_drop(cq->guard);
}

/* Releases every place of the send queue up to that one. */
static inline void release(const struct vb_cqe *cqe)
{
	atomic_store_explicit(&cqe->user->sq_released, cqe->sq_released, memory_order_release);
}

/* Delivers the data that it brought. If the memory is gone, the completion reports that. */
static __attribute__((noinline)) void deliver(struct vb_cq *cq, const struct vb_cqe *cqe,
					      uint64_t place, struct ibv_wc *wc)
{
	if (!vb_parcel_deliver(cqe->user->parcels, &cq->parcels[place & cq->mask]))
		wc->status = IBV_WC_LOC_PROT_ERR;
	if (!(wc->opcode & IBV_WC_RECV))
		release(cqe);
}

void vb_cq_parcels_settle(struct vb_cq *cq, const struct vb_cq_user *user)
{
	lock_both(cq);
	for (uint64_t i = head_of(cq); i != tail_of(cq); i++) {
		struct vb_cqe *cqe = at(cq, i);

		if (cqe->note != VB_CQE_PARCEL || cqe->user != user ||
		    (cqe->wc.opcode & IBV_WC_RECV))
			continue;
		if (!vb_parcel_deliver(user->parcels, &cq->parcels[i & cq->mask]))
			cqe->wc.status = IBV_WC_LOC_PROT_ERR;
		cqe->note = VB_CQE_PLAIN;
	}
	drop_both(cq);
}

/* Gives the completion to the application, as *wc. */
static inline void hand_over(struct vb_cq *cq, const struct vb_cqe *cqe, uint64_t place,
			     struct ibv_wc *wc)
{
	if (!cqe->user)
		return;
	if (cqe->note == VB_CQE_PLAIN)
		release(cqe);
	else if (cqe->note == VB_CQE_PARCEL)
		deliver(cq, cqe, place, wc);
}

int vb_cq_poll(struct vb_cq *cq, int n, struct ibv_wc *wc)
{
	uint64_t head, tail;
	int i = 0;

	if (head_of(cq) == tail_of(cq))
		return 0;
	guard_take(cq);
	head = head_of(cq);
	tail = tail_of(cq);
	for (; i < n && head != tail; i++) {
		const struct vb_cqe *cqe = at(cq, head);

		wc[i] = cqe->wc;
		hand_over(cq, cqe, head++, &wc[i]);
	}
	atomic_store_explicit(&cq->head, head, memory_order_release);
	guard_drop(cq);
	return i;
}

bool vb_cq_take(struct vb_cq *cq, struct vb_cqe *cqe, struct vb_cq_stamp *stamp)
{
	uint64_t head;
	bool any;

	if (head_of(cq) == tail_of(cq))
		return false;
	guard_take(cq);
	head = head_of(cq);
	any = head != tail_of(cq);
	if (any) {
		*cqe = *at(cq, head);
		if (cq->stamps)
			*stamp = cq->stamps[head & cq->mask];
		hand_over(cq, cqe, head, &cqe->wc);
		atomic_store_explicit(&cq->head, head + 1, memory_order_release);
	}
	guard_drop(cq);
	return any;
}

/* --- events --- */

/* Gives one event to the channel and disarms the CQ. push_lock held. */
static void notify(struct vb_cq *cq)
{
	struct vb_channel *channel = channel_of(cq);
	struct vb_nic *nic = vb_nic_of(cq->ibv.cq.context);

	cq->arm = VB_CQ_QUIET;
	cq->told = tail_of(cq);
	cq->mod.held = 0;
	if (!channel)
		return;
	vb_lock_take(&channel->lock);
	if (!cq->events.pending++) {
		*channel->tail = cq;
		channel->tail = &cq->events.next;
	}
	vb_lock_drop(&channel->lock);
	nic->host.process.signal(nic->host.arg, channel->ibv.fd);
}

/*
 * `held` completions are there for which the CQ is armed: gives the event or delays it. The period
 * begins with the first of them. push_lock held.
 */
static void hold(struct vb_cq *cq, uint32_t held)
{
	struct vb_nic *nic = vb_nic_of(cq->ibv.cq.context);
	bool first = !cq->mod.held;

	if ((!cq->mod.count && !cq->mod.ns) || (cq->mod.count && held >= cq->mod.count)) {
		notify(cq);
		return;
	}
	cq->mod.held = held;
	if (first && cq->mod.ns) {
		cq->mod.due_ns = vb_nic_now_ns(nic) + cq->mod.ns;
		vb_timer_set(nic, &cq->timer, cq->mod.due_ns);
	}
}

void vb_cq_on_time(struct vb_cq *cq, uint64_t now_ns)
{
	vb_lock_take(&cq->push_lock);
	if (!cq->mod.held || !cq->mod.ns)
		; /* given meanwhile */
	else if (now_ns >= cq->mod.due_ns)
		notify(cq);
	else
		vb_timer_set(vb_nic_of(cq->ibv.cq.context), &cq->timer, cq->mod.due_ns);
	vb_lock_drop(&cq->push_lock);
}

int vb_cq_moderate(struct vb_cq *cq, uint32_t count, uint32_t period_us)
{
	uint32_t held;

	if (count > VB_CQ_COUNT_MAX || period_us > VB_CQ_PERIOD_US_MAX)
		return vb_refuse(EINVAL,
				 "cq_count is %u and cq_period %u; they may be at most %u "
				 "and %u",
				 count, period_us, (unsigned)VB_CQ_COUNT_MAX,
				 (unsigned)VB_CQ_PERIOD_US_MAX);
	vb_lock_take(&cq->push_lock);
	cq->mod.count = (uint16_t)count;
	cq->mod.ns = period_us * 1000;
	cq->mod.ever = true;
	held = cq->mod.held;
	cq->mod.held = 0;
	if (held) /* by the new settings */
		hold(cq, held);
	vb_lock_drop(&cq->push_lock);
	return 0;
}

static bool wakes(const struct vb_cq *cq, const struct vb_cqe *cqe)
{
	return cq->arm == VB_CQ_ANY || (cq->arm == VB_CQ_SOLICITED && cqe->solicited);
}

/* How many completions wait without an event, counted as far as that matters. push_lock held. */
static uint32_t untold(const struct vb_cq *cq)
{
	uint32_t count = 0, enough = cq->mod.count ? cq->mod.count : 1;
	uint64_t place = vb_max_u64(cq->told, head_of(cq));

	for (; place < tail_of(cq) && count < enough; place++)
		count += wakes(cq, at(cq, place));
	return count;
}

/*
 * Both this and vb_cq_push() hold push_lock: an earlier completion is found here, a later one finds
 * the CQ armed. Another thread may take the completion meanwhile: an event too many is harmless.
 */
void vb_cq_arm_notify(struct vb_cq *cq, bool solicited_only)
{
	uint32_t count;

	vb_lock_take(&cq->push_lock);
	/* A weaker request does not replace one for every completion. */
	if (cq->arm != VB_CQ_ANY)
		cq->arm = solicited_only ? VB_CQ_SOLICITED : VB_CQ_ANY;
	count = untold(cq);
	if (count)
		hold(cq, count);
	else
		cq->mod.held = 0; /* these were taken */
	vb_lock_drop(&cq->push_lock);
}

/* --- adding --- */

/* Neither the application nor the QP can know what is missing. IBA 11.6.3.1. */
static void overrun(struct vb_cq *cq, uint32_t qpn)
{
	struct vb_ctx *ctx = vb_ctx_of(cq->ibv.cq.context);
	struct ibv_async_event event = {
		.element.cq = &cq->ibv.cq,
		.event_type = IBV_EVENT_CQ_ERR,
	};

	if (!vb_cq_is_broken(cq)) {
		atomic_store_explicit(&cq->room, 0, memory_order_relaxed);
		vb_ctx_event_push(ctx, &event, &cq->events.async);
	}
	/* Its QP is busy, and the other QPs have locks of their own. */
	vb_nic_qp_look(ctx->nic, qpn);
}

/* No room: drops the oldest completion, or the new one. push_lock held. */
static __attribute__((noinline)) bool make_way(struct vb_cq *cq, const struct vb_cqe *cqe)
{
	vb_stat_add(&vb_nic_of(cq->ibv.cq.context)->stats, VB_STAT_CQ_OVERRUNS, 1);
	if (cq->made.overwrites)
		atomic_store_explicit(&cq->head, head_of(cq) + 1, memory_order_release);
	else
		overrun(cq, cqe->wc.qp_num);
	return cq->made.overwrites;
}

static __attribute__((noinline)) void stamp(struct vb_cq *cq, uint64_t place)
{
	const struct vb_nic_host *host = &vb_nic_of(cq->ibv.cq.context)->host;
	struct vb_cq_stamp *to = &cq->stamps[place & cq->mask];

	*to = (struct vb_cq_stamp){ 0 };
	if (cq->made.wc_flags & IBV_WC_EX_WITH_COMPLETION_TIMESTAMP)
		to->raw_ns = host->stamps->raw_ns(host->arg);
	if (cq->made.wc_flags & IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK)
		to->wall_ns = host->stamps->wall_ns(host->arg);
}

void vb_cq_push(struct vb_cq *cq, const struct vb_cqe *cqe)
{
	uint64_t tail, room;

	vb_lock_take(&cq->push_lock);
	tail = atomic_load_explicit(&cq->tail, memory_order_relaxed);
	room = atomic_load_explicit(&cq->room, memory_order_relaxed);
	if (tail - head_of(cq) < room || make_way(cq, cqe)) {
		*at(cq, tail) = *cqe;
		if (cq->stamps)
			stamp(cq, tail);
		if (cqe->note == VB_CQE_PARCEL)
			cq->parcels[tail & cq->mask] = cqe->user->parcels->in_hand;
		atomic_store_explicit(&cq->tail, tail + 1, memory_order_release);
		if (wakes(cq, cqe))
			hold(cq, cq->mod.held + 1);
	}
	vb_lock_drop(&cq->push_lock);
}

/* Is it about a tagged buffer? Such completions belong to the SRQ. */
static bool is_of_srq(const struct ibv_wc *wc)
{
	return wc->opcode >= IBV_WC_TM_ADD && wc->opcode <= IBV_WC_TM_NO_TAG;
}

void vb_cq_purge(struct vb_cq *cq, uint32_t qpn)
{
	uint64_t to;

	lock_both(cq);
	to = head_of(cq);
	for (uint64_t i = to; i != tail_of(cq); i++) {
		if (at(cq, i)->wc.qp_num == qpn && !is_of_srq(&at(cq, i)->wc))
			continue;
		*at(cq, to) = *at(cq, i);
		if (cq->stamps)
			cq->stamps[to & cq->mask] = cq->stamps[i & cq->mask];
		if (cq->parcels)
			cq->parcels[to & cq->mask] = cq->parcels[i & cq->mask];
		to++;
	}
	/* Fewer may be left than had events: an event too many is better than one too few. */
	cq->told = head_of(cq);
	atomic_store_explicit(&cq->tail, to, memory_order_release);
	drop_both(cq);
}
