/* SPDX-License-Identifier: BSD-2-Clause */
#include "link/around/net.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/lock.h"
#include "base/prng.h"
#include "link/around/around.h"
#include "link/around/held.h"
#include "link/around/net_ports.h"

/* ECN of the traffic class (RFC 3168). */
enum { ECN_ECT = 2, ECN_CE = 3, ECN_MASK = 3 };

/*
 * A frame on a line: behind the UDP header it has the frame's octets; before it Ethernet's
 * preamble, header, sum and gap (38), IPv4's or IPv6's header, and UDP's.
 */
enum { LINE_IPV4_BYTES = 38 + 20 + 8, LINE_IPV6_BYTES = 38 + 40 + 8 };

/* Marks: none below the setting, a tenth at four times that, all above. */
enum { ECN_ALL_TIMES = 4, ECN_MOST_PARTS = 10 };

enum { FLOWS = 64 };

/*
 * How far ahead of its port a host may be, so that it is not idle while a thread sleeps: so long,
 * or two of the largest frames. Where there is no room for one of these an acknowledgement still
 * fits, or those of one process would never leave beside the data of another one.
 */
static const uint64_t ahead_ns = 200000;
enum { LARGEST_BYTES = 4096 + 256 };

/* How late it may come back after it was told to wait, and still keep its port busy. */
static const uint64_t late_ns = 1000000;
/* A burst takes no longer than that, to look like the frames that it consists of. */
static const uint64_t burst_ns = 10000;
static const uint64_t again_ns = 100000; /* when the inner link was full */

struct net_link {
	struct vb_around around;
	struct vb_net net;
	struct vb_net_ports *ports; /* NULL: no rate is set */
	vb_net_marked *marked;
	void *arg;
	atomic_bool told; /* the sender was told to wait, and has not caught up since */
	atomic_uint_least64_t due_ns; /* of the first frame that waits; UINT64_MAX: none */
	vb_lock lock;		      /* guards all that follows */
	/* in the sender's port; on the way, by the time at which they arrive */
	struct vb_held_queue leaving, coming;
	uint64_t last_ns[FLOWS]; /* when the last one arrives at addresses with this hash */
	uint64_t prng;
	struct vb_net_counts counts;
};

static struct net_link *net_of(struct vb_link *link)
{
	return vb_container_of(link, struct net_link, around.link);
}

/* To the nearest: an acknowledgement takes some ns at high rates. */
static uint64_t takes_ns(const struct net_link *net, uint64_t bytes)
{
	return (uint64_t)(((__uint128_t)bytes * 8000000000u + net->net.rate / 2) / net->net.rate);
}

/* What the port sends in that time. */
static uint64_t bytes_in(const struct net_link *net, uint64_t ns)
{
	return (uint64_t)((__uint128_t)ns * net->net.rate / 8000000000u);
}

static struct vb_net_load load_of(const struct net_link *net, const uint8_t dst[VB_GID_BYTES],
				  uint32_t frames, uint64_t bytes)
{
	struct vb_net_load load = { .frames = frames };

	load.bytes = frames * (uint64_t)(vb_gid_is_ipv4(dst) ? LINE_IPV4_BYTES : LINE_IPV6_BYTES) +
		     bytes;
	load.takes_ns = takes_ns(net, load.bytes);
	return load;
}

/* --- with the lock held --- */

static void due_publish(struct net_link *net)
{
	atomic_store(&net->due_ns, vb_min_u64(vb_held_due_ns(&net->leaving),
					      vb_held_due_ns(&net->coming)));
}

/* So many octets wait at the receiver's port: is this one marked? */
static bool is_marked(struct net_link *net, uint64_t before_bytes)
{
	uint64_t least = net->net.ecn_bytes, span = least * (ECN_ALL_TIMES - 1);
	uint64_t over = before_bytes > least ? before_bytes - least : 0;

	if (!net->net.ecn || !over)
		return false;
	return over >= span || vb_prng_next(&net->prng) % (span * ECN_MOST_PARTS) < over;
}

/* It has left the sender's port, and comes to the receiver's. Consumes it. */
static void arrive(struct net_link *net, struct vb_held *held)
{
	uint64_t before_ns;
	uint64_t *last_ns = &net->last_ns[held->path.dst[VB_GID_BYTES - 1] % FLOWS];

	if (net->ports) {
		struct vb_net_way *way =
			vb_net_ports_way(net->ports, held->path.dst, VB_NET_DOWN);
		struct vb_net_load load = load_of(net, held->path.dst, held->frames, held->bytes);

		load.at_ns = held->due_ns;
		if (!vb_net_way_queue(way, &load, takes_ns(net, net->net.queue_bytes), &before_ns,
				      &held->due_ns)) {
			vb_net_count(&way->lost, held->frames);
			net->counts.lost += held->frames;
			free(held);
			return;
		}
		if (is_marked(net, bytes_in(net, before_ns))) {
			held->path.tclass |= ECN_CE;
			vb_net_count(&way->marked, held->frames);
			net->counts.marked += held->frames;
		}
	}
	held->due_ns += net->net.delay_ns;
	if (net->net.jitter_ns)
		held->due_ns += vb_prng_next(&net->prng) % net->net.jitter_ns;
	*last_ns = held->due_ns = vb_max_u64(held->due_ns, *last_ns);
	vb_held_put(&net->coming, held);
}

/* It has arrived. Consumes it. */
static void pass(struct net_link *net, struct vb_held *held)
{
	int rc = vb_held_send(held, net->around.inner);

	if (rc == EAGAIN) {
		held->due_ns = vb_around_now_ns() + again_ns;
		vb_held_put(&net->coming, held);
		return;
	}
	net->counts.refused += rc ? held->frames : 0;
	free(held);
}

static void pass_due(struct net_link *net, uint64_t now)
{
	while (vb_held_due_ns(&net->leaving) <= now)
		arrive(net, vb_held_take(&net->leaving, &net->leaving.first));
	while (vb_held_due_ns(&net->coming) <= now)
		pass(net, vb_held_take(&net->coming, &net->coming.first));
	due_publish(net);
}

/* --- the link --- */

/* When the sender's port has sent so much. False: the port has enough to do. Any thread. */
static bool leave(struct net_link *net, const struct vb_burst *burst, uint64_t now,
		  uint64_t *left_ns)
{
	uint64_t bytes = (burst->frames - 1ull) * burst->frame_bytes + burst->last_bytes;
	uint64_t from = atomic_load(&net->told) ? now - late_ns : now, before_ns, most;
	struct vb_net_load load;
	bool left;

	*left_ns = now;
	if (!net->ports)
		return true;
	load = load_of(net, burst->path.dst, burst->frames, bytes);
	load.at_ns = from;
	most = 2 * vb_max_u64(takes_ns(net, LARGEST_BYTES), load.takes_ns) - load.takes_ns;
	left = vb_net_way_queue(vb_net_ports_way(net->ports, burst->path.src, VB_NET_UP), &load,
				vb_max_u64(ahead_ns, most) + (now - from), &before_ns, left_ns);
	if (!left)
		atomic_store(&net->told, true);
	else if (*left_ns >= now)
		atomic_store(&net->told, false);
	return left;
}

static int net_tx(struct vb_link *link, const struct vb_burst *burst)
{
	struct net_link *net = net_of(link);
	struct vb_gather gather = { 0 };
	struct vb_held *held;
	uint64_t now = vb_around_now_ns(), left_ns;
	int rc;

	if (!leave(net, burst, now, &left_ns))
		return EAGAIN;
	rc = vb_held_copy(&held, burst, &gather, burst->frames);
	if (rc)
		return rc;
	held->due_ns = left_ns;
	if (net->net.ecn && !(held->path.tclass & ECN_MASK))
		held->path.tclass |= ECN_ECT;
	vb_lock_take(&net->lock);
	vb_held_put(&net->leaving, held);
	net->counts.frames += burst->frames;
	pass_due(net, now);
	vb_lock_drop(&net->lock);
	return 0;
}

static unsigned net_rx(struct vb_link *link, struct vb_frame *frames, unsigned max)
{
	struct net_link *net = net_of(link);
	uint64_t now = vb_around_now_ns();
	unsigned n;

	if (atomic_load_explicit(&net->due_ns, memory_order_relaxed) <= now) {
		vb_lock_take(&net->lock);
		pass_due(net, now);
		vb_lock_drop(&net->lock);
	}
	n = vb_link_rx(net->around.inner, frames, max);
	for (unsigned i = 0; net->net.ecn && i < n; i++) {
		if ((frames[i].path.tclass & ECN_MASK) == ECN_CE)
			net->marked(net->arg, &frames[i]);
	}
	return n;
}

/* As many as look like single ones at this rate. */
static unsigned net_burst_frames_max(struct vb_link *link)
{
	struct net_link *net = net_of(link);
	struct vb_link *inner = net->around.inner;
	uint64_t most = inner->ops->burst_frames_max(inner);

	if (net->net.rate)
		most = vb_min_u64(most, burst_ns / takes_ns(net, 4096 + LINE_IPV4_BYTES));
	return (unsigned)vb_max_u64(most, 1);
}

static uint64_t net_deadline_ns(struct vb_link *link)
{
	struct net_link *net = net_of(link);
	struct vb_link *inner = net->around.inner;

	return vb_min_u64(atomic_load(&net->due_ns), inner->ops->deadline_ns(inner));
}

static void net_forget(struct vb_link *link)
{
	struct net_link *net = net_of(link);

	if (net->ports)
		vb_net_ports_forget(net->ports);
	vb_around_forget(link);
}

void vb_link_net_flush(struct vb_link *link)
{
	struct net_link *net = net_of(link);

	vb_lock_take(&net->lock);
	while (net->leaving.first)
		arrive(net, vb_held_take(&net->leaving, &net->leaving.first));
	while (net->coming.first) {
		struct vb_held *held = vb_held_take(&net->coming, &net->coming.first);

		vb_held_send(held, net->around.inner);
		free(held);
	}
	due_publish(net);
	vb_lock_drop(&net->lock);
}

static void net_destroy(struct vb_link *link)
{
	struct net_link *net = net_of(link);

	/* As on a line whose sender has gone, though too early. */
	vb_link_net_flush(link);
	net->around.inner->ops->destroy(net->around.inner);
	if (net->ports)
		vb_net_ports_close(net->ports);
	vb_lock_fini(&net->lock);
	free(net);
}

static const struct vb_link_ops net_ops = {
	VB_AROUND_OPS,
	.tx = net_tx,
	.rx = net_rx,
	.burst_frames_max = net_burst_frames_max,
	.deadline_ns = net_deadline_ns,
	.forget = net_forget,
	.destroy = net_destroy,
};

int vb_link_net_create(struct vb_link **link, struct vb_link *inner, const char *text,
		       vb_net_marked *marked, void *arg)
{
	struct net_link *net = calloc(1, sizeof(*net));
	char why[VB_PARTS_WHY_BYTES];
	int rc;

	if (!net)
		return ENOMEM;
	rc = vb_net_parse(&net->net, text, why);
	if (rc == 0 && net->net.rate)
		rc = vb_net_ports_open(&net->ports, net->net.name);
	if (rc) {
		free(net);
		return rc;
	}
	net->around = (struct vb_around){ { &net_ops }, inner };
	net->marked = marked;
	net->arg = arg;
	net->prng = net->net.seed;
	atomic_init(&net->due_ns, UINT64_MAX);
	vb_lock_init(&net->lock, VB_RANK_NET);
	*link = &net->around.link;
	return 0;
}

void vb_link_net_counts(struct vb_link *link, struct vb_net_counts *counts)
{
	struct net_link *net = net_of(link);

	vb_lock_take(&net->lock);
	*counts = net->counts;
	vb_lock_drop(&net->lock);
}
