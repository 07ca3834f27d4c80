/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_TESTS_MOCK_LINK_H
#define VB_TESTS_MOCK_LINK_H

/* A link that keeps what was sent, and receives what the test wants it to. */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "link/link.h"

enum { MOCK_SENT_MAX = 300000, MOCK_FRAME_MAX = 64 };

struct mock_sent {
	uint32_t bytes;
	uint16_t slot;
	uint8_t tclass;
	uint8_t data[MOCK_FRAME_MAX]; /* as much as fits */
};

struct mock_link {
	struct vb_link link;
	int error; /* what tx returns */
	uint16_t id;  /* what a claim is told, if not 0 */
	bool claimed;
	unsigned sent_n;
	struct mock_sent *sent;
	struct vb_frame rx; /* what rx returns, while rx_n */
	unsigned rx_n;
	bool *destroyed;
	bool forgotten;
	const struct vb_frame *delivered;
	uint32_t joined; /* the interface at which it was joined last; 0: it was left */
};

static struct mock_link *mock_of(struct vb_link *link)
{
	return vb_container_of(link, struct mock_link, link);
}

static int mock_tx(struct vb_link *link, const struct vb_burst *burst)
{
	struct mock_link *mock = mock_of(link);
	uint32_t piece = 0;
	size_t used = 0;

	vb_check(burst->claim == (mock->claimed ? mock : NULL));
	mock->claimed = false;
	if (mock->error)
		return mock->error;
	for (unsigned i = 0; i < burst->frames; i++) {
		uint32_t bytes = i + 1 < burst->frames ? burst->frame_bytes : burst->last_bytes;
		struct mock_sent *sent = &mock->sent[mock->sent_n++];
		uint32_t done = 0;

		vb_check(mock->sent_n <= MOCK_SENT_MAX);
		sent->bytes = bytes;
		sent->slot = burst->slot;
		sent->tclass = burst->path.tclass;
		for (; done < bytes; done++) {
			const struct iovec *iov = &burst->iov[piece];

			if (done < MOCK_FRAME_MAX)
				sent->data[done] = ((uint8_t *)iov->iov_base)[used];
			if (++used == iov->iov_len) {
				piece++;
				used = 0;
			}
		}
	}
	return 0;
}

static unsigned mock_rx(struct vb_link *link, struct vb_frame *frames, unsigned max)
{
	struct mock_link *mock = mock_of(link);
	unsigned n = 0;

	for (; n < max && mock->rx_n; mock->rx_n--)
		frames[n++] = mock->rx;
	return n;
}

static unsigned mock_burst_frames_max(struct vb_link *link)
{
	return VB_LINK_BURST_FRAMES_MAX;
}

static int mock_rx_fd(struct vb_link *link, unsigned i)
{
	return i == 0 ? 42 : -1;
}

static uint64_t mock_deadline_ns(struct vb_link *link)
{
	return UINT64_MAX;
}

static uint32_t mock_frame_bytes_max(struct vb_link *link, const struct vb_path *path)
{
	return 4242;
}

static uint16_t mock_sport(struct vb_link *link, const struct vb_path *path, uint16_t slot,
			   enum vb_whom whom)
{
	return (uint16_t)(5000 + 100 * whom + slot);
}

/* What it was asked for comes back, so that a wrapper can be seen to pass it on. */
static int mock_sport_choose(struct vb_link *link, const struct vb_path *path, uint16_t slot,
			     uint16_t port)
{
	return port + slot;
}

static int mock_join(struct vb_link *link, const uint8_t gid[VB_GID_BYTES], uint32_t ifindex)
{
	mock_of(link)->joined = ifindex;
	return 0;
}

static void mock_leave(struct vb_link *link, const uint8_t gid[VB_GID_BYTES])
{
	mock_of(link)->joined = 0;
}

static void *mock_claim(struct vb_link *link, const struct vb_path *path, uint16_t *first_id)
{
	struct mock_link *mock = mock_of(link);

	*first_id = mock->id;
	mock->claimed = mock->id != 0;
	return mock->claimed ? mock : NULL;
}

static void mock_unclaim(struct vb_link *link, void *claim)
{
	struct mock_link *mock = mock_of(link);

	vb_check(claim == mock && mock->claimed);
	mock->claimed = false;
}

static bool mock_deliver(struct vb_link *link, const struct vb_frame *frame)
{
	mock_of(link)->delivered = frame;
	return true;
}

static void mock_forget(struct vb_link *link)
{
	struct mock_link *mock = mock_of(link);

	mock->forgotten = true;
}

static void mock_destroy(struct vb_link *link)
{
	struct mock_link *mock = mock_of(link);

	if (mock->destroyed)
		*mock->destroyed = true;
	free(mock->sent);
	free(mock);
}

static const struct vb_link_ops mock_ops = {
	.tx = mock_tx,
	.claim = mock_claim,
	.unclaim = mock_unclaim,
	.rx = mock_rx,
	.burst_frames_max = mock_burst_frames_max,
	.rx_fd = mock_rx_fd,
	.deadline_ns = mock_deadline_ns,
	.frame_bytes_max = mock_frame_bytes_max,
	.sport = mock_sport,
	.sport_choose = mock_sport_choose,
	.join = mock_join,
	.leave = mock_leave,
	.deliver = mock_deliver,
	.forget = mock_forget,
	.destroy = mock_destroy,
};

static struct mock_link *mock_create(void)
{
	struct mock_link *mock = calloc(1, sizeof(*mock));

	vb_check(mock);
	mock->link.ops = &mock_ops;
	mock->sent = calloc(MOCK_SENT_MAX, sizeof(*mock->sent));
	vb_check(mock->sent);
	return mock;
}

/* One frame as a burst of its own. */
static int frame_send(struct vb_link *link, const struct vb_path *path, const void *data,
		      uint32_t bytes)
{
	struct iovec iov = {(void *)data, bytes};
	struct vb_burst burst = {
		.path = *path,
		.slot = 1,
		.frames = 1,
		.frame_bytes = bytes,
		.last_bytes = bytes,
		.iovcnt = 1,
		.iov = &iov,
	};

	return vb_link_tx(link, &burst);
}

#endif
