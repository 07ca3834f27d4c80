/* SPDX-License-Identifier: BSD-2-Clause */
#include "link/udp_rx.h"

#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/check.h"
#include "link/udp_socket.h"
#include "link/udp_address.h"
#include "link/udp_groups.h"
#include "link/udp_path.h"
#include "link/udp_senders.h"

enum {
	BATCHES_MAX = 16,    /* datagrams, or merged runs, per recvmmsg */
	BATCH_BYTES = 65536, /* longest UDP datagram, and so longest merged run */
	HOT_BYTES = 262144,  /* per recvmmsg: more would leave the cache before it is looked at */
	CONTROL_BYTES = 256,

	/* This many messages in a row from one port of one host start a flow. */
	FLOW_AFTER = 1000,
	/* After this many empty looks a flow is over: another may replace it. */
	FLOW_OVER = 1 << 16,
	/* After this many empty looks, only one in QUIET_EVERY rounds looks at the socket. */
	QUIET = 1024,
	QUIET_EVERY = 8,
};

/* The sockets that messages come from. */
enum { SLOT, FLOW, GROUP, SOURCES };

struct source {
	unsigned ask;	/* messages to ask for, 1 to BATCHES_MAX */
	uint32_t quiet; /* empty looks since the last message */
};

union control {
	struct cmsghdr align;
	uint8_t octets[CONTROL_BYTES];
};

/* The flow: a socket for one sender. */
struct own_flow {
	atomic_int fd;		/* -1: none */
	struct vb_path path;	/* of all that comes by it */
	/* a path that cannot have a flow: connecting failed, or it addressed another slot */
	struct vb_path refused;
	bool known;		/* its source is a host that this link sends to */
	bool settling;		/* the slot's socket may still have earlier datagrams of it */
};

/* The result of the last receive, and how much of it was passed on as frames. */
struct brought {
	unsigned from;		 /* its source */
	unsigned own;		 /* the last source, SLOT or FLOW */
	unsigned batches, next;	 /* received; the next to pass on */
	uint32_t offset, frames; /* passed on within that one: octets, frames */
	uint32_t segment_bytes;
	struct vb_path path;
	atomic_bool pending; /* something is left */
};

struct vb_udp_rx {
	int fd, family;
	const struct vb_udp_groups *groups;
	struct vb_udp_senders *senders;
	vb_identify *identify;
	struct own_flow flow;
	uint32_t looks;
	struct source source[SOURCES];

	/* The path of the last message by the slot's socket, and how many came in a row. */
	struct vb_path last;
	uint32_t run;

	struct brought got;
	struct mmsghdr msgs[BATCHES_MAX];
	struct iovec iov[BATCHES_MAX];
	union vb_udp_address name[BATCHES_MAX];
	union control control[BATCHES_MAX];
	uint8_t data[BATCHES_MAX][BATCH_BYTES];
};

struct vb_udp_rx *vb_udp_rx_create(int fd, int family, const struct vb_udp_groups *groups,
				   struct vb_udp_senders *senders, vb_identify *identify)
{
	struct vb_udp_rx *rx = aligned_alloc(64, (sizeof(*rx) + 63) / 64 * 64);

	if (!rx)
		return NULL;
	/* The buffers are not touched, so that their pages are allocated when needed. */
	memset(rx, 0, offsetof(struct vb_udp_rx, data));
	rx->fd = fd;
	rx->family = family;
	rx->groups = groups;
	rx->senders = senders;
	rx->identify = identify;
	rx->flow.fd = -1;
	for (unsigned i = 0; i < SOURCES; i++)
		rx->source[i].ask = 1;
	for (unsigned i = 0; i < BATCHES_MAX; i++) {
		rx->iov[i] = (struct iovec){rx->data[i], BATCH_BYTES};
		rx->msgs[i].msg_hdr = (struct msghdr){
			.msg_iov = &rx->iov[i],
			.msg_iovlen = 1,
			.msg_control = &rx->control[i],
		};
	}
	return rx;
}

void vb_udp_rx_forget(struct vb_udp_rx *rx)
{
	int fd = atomic_exchange(&rx->flow.fd, -1);

	if (fd >= 0)
		close(fd);
}

void vb_udp_rx_destroy(struct vb_udp_rx *rx)
{
	if (!rx)
		return;
	vb_udp_rx_forget(rx);
	free(rx);
}

int vb_udp_rx_fd(const struct vb_udp_rx *rx, unsigned i)
{
	return i == SLOT ? rx->fd : i == FLOW ? atomic_load(&rx->flow.fd) : -1;
}

bool vb_udp_rx_pending(const struct vb_udp_rx *rx)
{
	return atomic_load_explicit(&rx->got.pending, memory_order_relaxed);
}

/* --- the flow --- */

/* Is the frame for this slot: the upper 10 bits of its BTH's destination QPN (udp_socket.c)? */
static bool is_for_slot(const struct vb_frame *frame, uint16_t slot)
{
	return frame->bytes > 6 && (frame->data[5] << 8 | frame->data[6]) >> 6 == slot;
}

static uint16_t slot_of_port(uint16_t sport)
{
	return (uint16_t)(sport - VB_UDP_SENDER_PORT);
}

static bool is_same_way(const struct vb_path *a, const struct vb_path *b)
{
	return a->sport == b->sport && memcmp(a->src, b->src, VB_GID_BYTES) == 0 &&
	       memcmp(a->dst, b->dst, VB_GID_BYTES) == 0;
}

static bool is_right(const struct vb_udp_rx *rx, const struct vb_frame *frame)
{
	return rx->identify(&frame->path, frame->data, frame->bytes, frame->id_hint, NULL);
}

static bool place_is_free(const struct vb_udp_rx *rx, const struct vb_path *path)
{
	return rx->flow.fd < 0 || rx->source[FLOW].quiet >= FLOW_OVER ||
	       (!rx->flow.known && vb_udp_senders_reach(rx->senders, path->src));
}

/*
 * Counts a frame from the slot's socket; returns true if its path is to get a flow. Only source
 * ports that stand for this slot qualify: frames for other slots must not come from them.
 */
static bool flow_is_due(struct vb_udp_rx *rx, const struct vb_frame *frame)
{
	const struct vb_path *path = &frame->path;

	if (!is_same_way(&rx->last, path)) {
		rx->last = *path;
		rx->run = 0;
		return false;
	}
	if (++rx->run < FLOW_AFTER)
		return false;
	rx->run = 0;
	return is_for_slot(frame, slot_of_port(path->sport)) &&
	       !is_same_way(&rx->flow.refused, path) && place_is_free(rx, path) &&
	       is_right(rx, frame);
}

static void flow_end(struct vb_udp_rx *rx)
{
	vb_udp_rx_forget(rx);
	rx->flow.settling = false;
}

static void flow_begin(struct vb_udp_rx *rx, const struct vb_path *path)
{
	int fd;

	flow_end(rx);
	if (vb_udp_socket_flow(&fd, rx->family, path)) {
		rx->flow.refused = *path;
		return;
	}
	rx->flow.path = *path;
	rx->flow.known = vb_udp_senders_reach(rx->senders, path->src);
	rx->source[FLOW] = (struct source){.ask = 1};
	rx->flow.settling = true;
	atomic_store(&rx->flow.fd, fd);
}

/* --- datagrams --- */

/*
 * Receives up to `ask` messages; returns their number. In the fastest ping-pongs they come one by
 * one: asking for one only avoids looking in vain for a second.
 *
 * System calls without libc, where they are cancellation points: that costs time at each call, and
 * no thread may be cancelled in here.
 */
static unsigned receive(struct vb_udp_rx *rx, int fd, unsigned ask)
{
	long n;

	if (ask > 1) {
		n = syscall(SYS_recvmmsg, fd, rx->msgs, ask, MSG_DONTWAIT, NULL);
		return n > 0 ? (unsigned)n : 0;
	}
	n = syscall(SYS_recvmsg, fd, &rx->msgs[0].msg_hdr, MSG_DONTWAIT);
	if (n < 0)
		return 0;
	rx->msgs[0].msg_len = (unsigned)n;
	return 1;
}

/* Resets what the kernel fills in. Messages of a flow need no address. */
static void headers_set(struct vb_udp_rx *rx, unsigned from, unsigned count)
{
	for (unsigned i = 0; i < count; i++) {
		struct msghdr *msg = &rx->msgs[i].msg_hdr;

		msg->msg_name = from != FLOW ? &rx->name[i] : NULL;
		msg->msg_namelen = from != FLOW ? sizeof(rx->name[i]) : 0;
		msg->msg_controllen = sizeof(rx->control[i]);
	}
}

static int fd_of(const struct vb_udp_rx *rx, unsigned from)
{
	if (from == SLOT)
		return rx->fd;
	return from == FLOW ? rx->flow.fd : vb_udp_groups_ready(rx->groups);
}

/* As many came as were asked for, so there may be more: how many to ask for next. */
static unsigned ask_next(const struct vb_udp_rx *rx, unsigned n)
{
	uint32_t bytes = 0;

	for (unsigned i = 0; i < n; i++)
		bytes += rx->msgs[i].msg_len;
	if (bytes > HOT_BYTES)
		return n / 2;
	return 2 * n <= BATCHES_MAX && 2 * bytes <= HOT_BYTES ? 2 * n : n;
}

static bool look(struct vb_udp_rx *rx, unsigned from)
{
	struct source *source = &rx->source[from];
	int fd = fd_of(rx, from);
	unsigned n;

	headers_set(rx, from, source->ask);
	n = fd >= 0 ? receive(rx, fd, source->ask) : 0;
	rx->got.from = from;
	if (from != GROUP)
		rx->got.own = from;
	rx->got.batches = n;
	rx->got.next = 0;
	rx->got.offset = 0;
	if (n < source->ask)
		source->ask = n ? n : 1;
	else
		source->ask = ask_next(rx, n);
	source->quiet = n ? 0 : source->quiet + 1;
	return n > 0;
}

static bool is_worth_a_look(const struct vb_udp_rx *rx, unsigned from)
{
	return rx->source[from].quiet < QUIET || rx->looks % QUIET_EVERY == 0;
}

static bool refill_own(struct vb_udp_rx *rx)
{
	/* Alternate, so that neither starves while the other is busy. */
	unsigned first = rx->got.own == SLOT ? FLOW : SLOT;

	rx->got.batches = rx->got.next = 0;
	if (rx->flow.fd < 0)
		return look(rx, SLOT);
	rx->looks++;
	if (rx->flow.settling) {
		if (look(rx, SLOT))
			return true;
		rx->flow.settling = false;
	}
	/* If neither is worth a look, look at one of them, in turns. */
	if (!is_worth_a_look(rx, !first))
		return look(rx, first);
	return (is_worth_a_look(rx, first) && look(rx, first)) || look(rx, !first);
}

static bool refill(struct vb_udp_rx *rx)
{
	if (vb_udp_groups_fd(rx->groups) < 0)
		return refill_own(rx);
	/* Take turns: the last source comes second. */
	if (rx->got.from == GROUP)
		return refill_own(rx) || look(rx, GROUP);
	return look(rx, GROUP) || refill_own(rx);
}

/* Start on the next datagram, or merged run: where it came from, and how long its pieces are. */
static void batch_begin(struct vb_udp_rx *rx)
{
	struct mmsghdr *mmsg = &rx->msgs[rx->got.next];

	rx->got.frames = 0;
	if (rx->got.from == FLOW)
		rx->got.path = rx->flow.path;
	else
		vb_udp_path_begin(&rx->got.path, &rx->name[rx->got.next]);
	rx->got.segment_bytes =
		vb_udp_path_take(&rx->got.path, &mmsg->msg_hdr, mmsg->msg_len);
}

/*
 * Called with a batch's first frame, which stands for all. A source port that stands for one slot,
 * but sends to another, is not a sender of ours: frames in its flow would reach the wrong slot.
 */
static void batch_judge(struct vb_udp_rx *rx, const struct vb_frame *frame)
{
	if (rx->got.from == SLOT) {
		if (flow_is_due(rx, frame))
			flow_begin(rx, &frame->path);
	} else if (rx->got.from == FLOW && !is_for_slot(frame, slot_of_port(rx->flow.path.sport)) &&
		   is_right(rx, frame)) {
		rx->flow.refused = rx->flow.path;
		flow_end(rx);
	}
}

unsigned vb_udp_rx_take(struct vb_udp_rx *rx, struct vb_frame *frames, unsigned max)
{
	unsigned n = 0;

	if (rx->got.next == rx->got.batches && !refill(rx))
		return 0;
	while (n < max && rx->got.next < rx->got.batches) {
		uint32_t left = rx->msgs[rx->got.next].msg_len - rx->got.offset;
		bool first = rx->got.offset == 0;

		if (first)
			batch_begin(rx);
		if (left) {
			uint32_t bytes = (uint32_t)vb_min_u64(left, rx->got.segment_bytes);

			frames[n] = (struct vb_frame){
				.path = rx->got.path,
				.data = rx->data[rx->got.next] + rx->got.offset,
				.bytes = bytes,
				.id_hint = (uint16_t)rx->got.frames++,
			};
			if (first)
				batch_judge(rx, &frames[n]);
			n++;
			rx->got.offset += bytes;
			left -= bytes;
		}
		if (!left) {
			rx->got.next++;
			rx->got.offset = 0;
		}
	}
	atomic_store_explicit(&rx->got.pending, rx->got.next < rx->got.batches,
			      memory_order_relaxed);
	return n;
}
