/* SPDX-License-Identifier: BSD-2-Clause */

/* A link around another one, with a script in between. What it is given is sent later, by rx. */

#include "run/faults/link.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "link/around/around.h"
#include "run/faults/flow.h"
#include "run/faults/strike.h"

enum { OUT_MAX = 1024, GATHERED_FRAMES_MAX = 64 };

struct vb_faults_link {
	struct vb_around around;
	struct vb_faults *faults;
	bool is_first; /* of the links: its rx does the rest as well */
	struct vb_fault_flow out, in;
	vb_lock lock; /* given */
	struct vb_fault_queue given; /* by the NIC */
	_Atomic bool is_busy;	     /* something waits for rx */
	struct vb_fault_queue came;  /* in order, and not judged yet */
	struct vb_fault_queue taken; /* by the NIC: their octets are valid until the next rx */
	/* Where the current rx puts them. */
	struct vb_frame *frames;
	unsigned count, max;
};

static struct vb_faults_link *link_of(struct vb_link *link)
{
	return vb_container_of(link, struct vb_faults_link, around.link);
}

/* --- out --- */

/* The octets of frame i of a burst, one after another. */
static void gather(uint8_t *to, const struct vb_burst *burst, uint64_t from, uint32_t bytes)
{
	for (uint32_t i = 0; i < burst->iovcnt && bytes; i++) {
		const struct iovec *piece = &burst->iov[i];
		size_t n;

		if (from >= piece->iov_len) {
			from -= piece->iov_len;
			continue;
		}
		n = vb_min_u64(piece->iov_len - from, bytes);
		memcpy(to, (const uint8_t *)piece->iov_base + from, n);
		to += n;
		bytes -= (uint32_t)n;
		from = 0;
	}
}

static struct vb_fault_item *frame_take(struct vb_faults_link *l, const struct vb_burst *burst,
					unsigned i)
{
	uint32_t bytes = i + 1u == burst->frames ? burst->last_bytes : burst->frame_bytes;
	struct vb_fault_item *item = vb_fault_item_make(&l->out, bytes);

	if (!item)
		return NULL;
	item->path = burst->path;
	item->slot = burst->slot;
	gather(item->octets, burst, (uint64_t)i * burst->frame_bytes, bytes);
	return item;
}

static int link_tx(struct vb_link *link, const struct vb_burst *burst)
{
	struct vb_faults_link *l = link_of(link);
	bool is_full;

	vb_lock_take(&l->lock);
	is_full = l->given.count + burst->frames > OUT_MAX;
	vb_lock_drop(&l->lock);
	if (is_full)
		return EAGAIN;
	for (unsigned i = 0; i < burst->frames; i++) {
		struct vb_fault_item *item = frame_take(l, burst, i);

		if (!item)
			return ENOMEM;
		vb_lock_take(&l->lock);
		vb_fault_queue_put(&l->given, item);
		vb_lock_drop(&l->lock);
	}
	atomic_store(&l->is_busy, true);
	return 0;
}

static bool put_out(struct vb_fault_flow *flow, struct vb_fault_item *item)
{
	struct vb_faults_link *l = vb_container_of(flow, struct vb_faults_link, out);
	const struct iovec piece = { item->octets, item->bytes };
	const struct vb_burst burst = {
		.path = item->path,
		.slot = item->slot,
		.frames = 1,
		.frame_bytes = item->bytes,
		.last_bytes = item->bytes,
		.iovcnt = 1,
		.iov = &piece,
	};

	if (vb_link_tx(l->around.inner, &burst) == EAGAIN)
		return false;
	free(item);
	return true;
}

void vb_faults_link_run(struct vb_faults_link *l)
{
	struct vb_fault_item *item;

	vb_fault_flow_flush(&l->out);
	for (unsigned i = 0; i < OUT_MAX && !l->out.ready.first; i++) {
		vb_lock_take(&l->lock);
		item = vb_fault_queue_take(&l->given);
		vb_lock_drop(&l->lock);
		if (!item)
			return;
		vb_fault_judge(item, true);
	}
}

/* --- in --- */

static bool put_in(struct vb_fault_flow *flow, struct vb_fault_item *item)
{
	struct vb_faults_link *l = vb_container_of(flow, struct vb_faults_link, in);

	if (l->count == l->max)
		return false;
	l->frames[l->count++] = (struct vb_frame){
		.path = item->path,
		.data = item->octets,
		.bytes = item->bytes,
		.id_hint = item->id_hint,
	};
	vb_fault_queue_put(&l->taken, item);
	return true;
}

static struct vb_fault_flow *back(struct vb_fault_flow *flow, uint32_t dqpn)
{
	return &vb_container_of(flow, struct vb_faults_link, out)->in;
}

static void come(struct vb_faults_link *l)
{
	struct vb_frame frames[GATHERED_FRAMES_MAX];
	unsigned n = vb_link_rx(l->around.inner, frames, GATHERED_FRAMES_MAX);

	for (unsigned i = 0; i < n; i++) {
		struct vb_fault_item *item = vb_fault_item_make(&l->in, frames[i].bytes);

		if (!item)
			return;
		item->path = frames[i].path;
		item->id_hint = frames[i].id_hint;
		memcpy(item->octets, frames[i].data, frames[i].bytes);
		vb_fault_queue_put(&l->came, item);
	}
}

static unsigned link_rx(struct vb_link *link, struct vb_frame *frames, unsigned max)
{
	struct vb_faults_link *l = link_of(link);

	vb_fault_queue_free(&l->taken);
	atomic_store(&l->is_busy, false);
	l->frames = frames;
	l->max = max;
	l->count = 0;
	if (l->is_first)
		vb_faults_run(l->faults);
	else
		vb_faults_link_run(l);
	vb_fault_flow_flush(&l->in);
	if (!l->came.first)
		come(l);
	while (l->came.first && l->count < l->max) {
		struct vb_fault_item *item = vb_fault_queue_take(&l->came);

		if (vb_fault_judge(item, !l->count))
			continue;
		/* First in its turn: those before it have to be taken in. */
		item->next = l->came.first;
		l->came.first = item;
		if (!item->next)
			l->came.end = &item->next;
		l->came.count++;
		break;
	}
	if (l->count || l->came.first || l->out.ready.first || l->in.ready.first)
		atomic_store(&l->is_busy, true);
	l->max = l->count; /* no place for more until the next rx */
	return l->count;
}

/* --- the link --- */

static uint64_t link_deadline_ns(struct vb_link *link)
{
	struct vb_faults_link *l = link_of(link);
	uint64_t next_ns = l->around.inner->ops->deadline_ns(l->around.inner);

	if (atomic_load(&l->is_busy))
		return 0;
	if (!l->is_first)
		return next_ns;
	next_ns = vb_min_u64(next_ns, atomic_load(&l->faults->next_ns));
	/* In rings, packets come and leave without a word. */
	if (!atomic_load(&l->faults->vias))
		return next_ns;
	return vb_min_u64(next_ns, vb_faults_now_ns() + VB_FAULTS_TICK_NS);
}

static unsigned link_burst_frames_max(struct vb_link *link)
{
	return 1; /* so that each has the IPv4 identification 0 */
}

static void link_destroy(struct vb_link *link)
{
	struct vb_faults_link *l = link_of(link);

	vb_fault_queue_free(&l->given);
	vb_fault_queue_free(&l->came);
	vb_fault_queue_free(&l->taken);
	vb_fault_queue_free(&l->out.ready);
	vb_fault_queue_free(&l->in.ready);
	l->around.inner->ops->destroy(l->around.inner);
	vb_lock_fini(&l->lock);
	free(l);
}

static const struct vb_link_ops ops = {
	VB_AROUND_OPS,
	.tx = link_tx,
	.rx = link_rx,
	.burst_frames_max = link_burst_frames_max,
	.deadline_ns = link_deadline_ns,
	.forget = vb_around_forget,
	.destroy = link_destroy,
};

static void flow_init(struct vb_faults_link *l, struct vb_fault_flow *flow, bool sent,
		      uint16_t slot)
{
	*flow = (struct vb_fault_flow){
		.faults = l->faults,
		.sent = sent,
		.wire = true,
		.own_slot = slot,
		.put = sent ? put_out : put_in,
		.back = back,
	};
	vb_fault_queue_init(&flow->ready);
}

int vb_faults_link(struct vb_faults *faults, struct vb_link **link, uint16_t slot)
{
	unsigned count = atomic_load(&faults->links_count);
	struct vb_faults_link *l = calloc(1, sizeof(*l));

	if (!l)
		return ENOMEM;
	l->around = (struct vb_around){ { &ops }, *link };
	l->faults = faults;
	l->is_first = count == 0;
	flow_init(l, &l->out, true, slot);
	flow_init(l, &l->in, false, slot);
	vb_fault_queue_init(&l->given);
	vb_fault_queue_init(&l->came);
	vb_fault_queue_init(&l->taken);
	vb_lock_init(&l->lock, VB_RANK_FAULTS);
	faults->links[count] = l;
	atomic_store(&faults->links_count, count + 1);
	*link = &l->around.link;
	return 0;
}
