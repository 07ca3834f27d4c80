/* SPDX-License-Identifier: BSD-2-Clause */
#include "hub/client_requests.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/loose.h"
#include "hub/channel.h"
#include "hub/client_internal.h"
#include "hub/holders.h"
#include "hub/program.h"
#include "hub/words.h"

/* The pause before a request is repeated to a busy hub. */
static const uint64_t busy_ns = 3 * MS_NS;

static int held_add(struct vb_hub_client *client, const struct vb_hub_held *held)
{
	struct vb_hub_held *more, *less;

	vb_lock_take(&client->lock);
	more = calloc(client->held_n + 1, sizeof(*more));
	if (more) {
		/* A forked child reads either array; both are complete. */
		less = client->held;
		if (less)
			memcpy(more, less, client->held_n * sizeof(*more));
		more[client->held_n] = *held;
		vb_lock_take(&client->asks.lock);
		client->held = more;
		client->held_n++;
		vb_lock_drop(&client->asks.lock);
		free(less);
		vb_hub_marks_send(client);
	}
	vb_lock_drop(&client->lock);
	return more ? 0 : ENOMEM;
}

static int answer_wait(struct vb_hub_client *client, int fd, struct vb_hub_msg *msg,
		       int fds[VB_HUB_FDS_MAX], unsigned *n, uint64_t deadline_ns)
{
	uint64_t doubt_ns = vb_hub_now_ns() + VB_HUB_CALL_NS;

	for (;;) {
		int rc = vb_hub_recv(fd, msg, fds, n);
		uint64_t now = vb_hub_now_ns();

		if (rc != EAGAIN)
			return rc;
		if (now >= deadline_ns || (now >= doubt_ns && vb_hub_is_stopped(fd)))
			return vb_hub_silent(fd);
		vb_hub_news_wait(client, fd, deadline_ns);
	}
}

int vb_hub_request_by(struct vb_hub_client *client, int fd, struct vb_hub_msg *msg,
		      int fds[VB_HUB_FDS_MAX], unsigned fds_n, enum vb_hub_type answer,
		      uint64_t deadline_ns)
{
	int rc = vb_hub_fds_send(fd, msg, fds, fds_n);

	if (!rc)
		rc = answer_wait(client, fd, msg, fds, &fds_n, deadline_ns);
	if (rc || msg->type == answer)
		return rc;
	vb_hub_fds_close(fds, fds_n);
	return EPROTO;
}

int vb_hub_request(struct vb_hub_client *client, struct vb_hub_msg *msg, int fds[VB_HUB_FDS_MAX],
	       unsigned fds_n, enum vb_hub_type answer, uint64_t deadline_ns)
{
	int fd, rc;

	rc = vb_hub_connect(&fd);
	if (rc)
		return rc;
	rc = vb_hub_request_by(client, fd, msg, fds, fds_n, answer, deadline_ns);
	close(fd);
	return rc;
}

static int lease_once(struct vb_hub_client *client, struct vb_hub_slot *slot, uint64_t deadline_ns)
{
	struct vb_hub_msg msg = vb_hub_msg_make(VB_HUB_LEASE);
	int fds[VB_HUB_FDS_MAX], rc;
	struct vb_hub_held held;

	vb_hub_program_self(&msg.lease.program);
	rc = vb_hub_request(client, &msg, fds, 0, VB_HUB_GRANT, deadline_ns);
	if (!rc && msg.grant.error)
		rc = vb_hub_refused(msg.grant.error, msg.grant.why);
	if (rc)
		return rc;
	held = (struct vb_hub_held){
		.slot = (uint16_t)msg.grant.slot,
		.next_index = msg.grant.next_index,
		.name_fd = fds[1],
	};
	rc = held_add(client, &held);
	if (rc) {
		vb_hub_fds_close(fds, VB_HUB_GRANT_FDS);
		return rc;
	}
	*slot = (struct vb_hub_slot){held.slot, held.next_index, fds[0]};
	return 0;
}

bool vb_hub_was_missing(int rc)
{
	return rc == ECONNREFUSED || rc == ECONNRESET || rc == EPIPE || rc == EAGAIN ||
	       rc == EADDRINUSE;
}

int vb_hub_out_of_time(int rc)
{
	char why[VB_FAILURE_BYTES / 2];

	return vb_failed_words(ETIMEDOUT,
			       "the hub gave no answer in time, the last time because of this: %s",
			       vb_failure_words(why, sizeof(why), rc));
}

int vb_hub_again_wait(struct vb_hub_client *client, int rc, uint64_t deadline_ns)
{
	uint64_t now = vb_hub_now_ns();

	if (!vb_hub_was_missing(rc))
		return rc;
	if (now >= deadline_ns)
		return rc == EADDRINUSE ? vb_holders_failed() : vb_hub_out_of_time(rc);
	rc = vb_hub_news_wait(client, VB_FD_NONE, rc == EAGAIN ? now + busy_ns : deadline_ns);
	return vb_hub_was_missing(rc) ? 0 : rc;
}

int vb_hub_client_lease(struct vb_hub_client *client, struct vb_hub_slot *slot)
{
	uint64_t deadline_ns = vb_hub_now_ns() + VB_HUB_PATIENCE_NS;
	int rc;

	do {
		vb_loose_begin();
		rc = lease_once(client, slot, deadline_ns);
		vb_loose_end();
		if (!rc)
			return 0;
		rc = vb_hub_again_wait(client, rc, deadline_ns);
	} while (!rc);
	return rc;
}
