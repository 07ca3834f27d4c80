/* SPDX-License-Identifier: BSD-2-Clause */
#include "hub/client_rings.h"

#include <string.h>
#include <sys/eventfd.h>
#include <sys/stat.h>

#include "hub/channel.h"
#include "hub/client.h"

static bool slot_is_ours(const struct vb_hub_client *client, uint32_t slot)
{
	for (unsigned i = 0; i < client->held_n; i++) {
		if (client->held[i].slot == slot)
			return true;
	}
	return false;
}

uint32_t vb_hub_pid_here(int token_fd, bool proven)
{
	pid_t pid;

	return !proven || vb_hub_peer_check(token_fd, &pid) ? 0 : (uint32_t)pid;
}

void vb_hub_wake_hush(struct vb_hub_client *client)
{
	eventfd_t times;

	if (client->news.rings || client->news.fatal || client->news.noted ||
	    client->news.sample_fd != VB_FD_NONE)
		return;
	eventfd_read(client->wake_fd, &times);
	/* Ordered after the read: either we see it here, or its wake comes after the read. */
	if (atomic_load(&client->links.wait))
		eventfd_write(client->wake_fd, 1);
}

/* Clears an entry; closes nothing, so a forked child has nothing to close in it. */
void vb_hub_ring_clear(struct vb_hub_client_ring *ring)
{
	*ring = (struct vb_hub_client_ring){.fd = VB_FD_NONE,
					    .peer = {.line_fd = VB_FD_NONE,
						     .export_fd = VB_FD_NONE}};
}

/*
 * If a hub dies between telling us and telling the asker, the asker asks the next hub and the ring
 * comes again, when we may have taken packets from it already. A new file in memory never has the
 * inode number of an earlier one.
 */
static bool ring_is_new(struct vb_hub_client *client, int fd)
{
	struct stat stat;

	if (fstat(fd, &stat))
		return true;
	for (unsigned i = 0; i < VB_HUB_RINGS_SEEN; i++) {
		if (client->news.seen[i] == stat.st_ino)
			return false;
	}
	client->news.seen[client->news.seen_next++ % VB_HUB_RINGS_SEEN] = stat.st_ino;
	return true;
}

void vb_hub_ring_take(struct vb_hub_client *client, const struct vb_hub_msg *msg, int *fds)
{
	struct vb_hub_client_news *news = &client->news;
	struct vb_hub_client_ring *ring =
		&news->ring[(news->ring_first + news->rings) % VB_HUB_RINGS_MAX];

	if (!news->ring_fn || !slot_is_ours(client, msg->ring.to) ||
	    !ring_is_new(client, fds[0])) {
		vb_hub_fds_close(fds, VB_HUB_RING_FDS);
		return;
	}
	*ring = (struct vb_hub_client_ring){
		.from = (uint16_t)msg->ring.from,
		.to = (uint16_t)msg->ring.to,
		.fd = fds[0],
		.peer = {.pid = vb_hub_pid_here(fds[2], msg->ring.proven),
			 .line_fd = fds[1],
			 .export_fd = fds[3]},
	};
	vb_fd_close(&fds[2]);
	if (client->news.rings++ == 0)
		eventfd_write(client->wake_fd, 1);
}

void vb_hub_rings_deliver(struct vb_hub_client *client)
{
	struct vb_hub_client_news *news = &client->news;

	news->delivering = true;
	while (news->rings) {
		struct vb_hub_client_ring *first = &news->ring[news->ring_first], ring = *first;

		vb_hub_ring_clear(first);
		news->ring_first = (news->ring_first + 1) % VB_HUB_RINGS_MAX;
		if (--news->rings == 0)
			vb_hub_wake_hush(client);
		vb_lock_drop(&client->lock);
		news->ring_fn(news->ring_arg, ring.from, ring.to, ring.fd, &ring.peer);
		vb_lock_take(&client->lock);
	}
	news->delivering = false;
}
