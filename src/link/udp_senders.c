/* SPDX-License-Identifier: BSD-2-Clause */
#include "link/udp_senders.h"

#include <sys/resource.h>
#include <unistd.h>

#include "base/check.h"
#include "link/udp.h"

enum { NOT_ASKED = 0, NONE = -1 };

void vb_udp_senders_init(struct vb_udp_senders *senders, int family)
{
	senders->family = family;
	vb_lock_init(&senders->lock);
}

void vb_udp_senders_close(struct vb_udp_senders *senders)
{
	for (unsigned slot = 0; slot < VB_UDP_SLOTS; slot++) {
		int entry = atomic_exchange(&senders->fd_plus_1[slot], NONE);

		if (entry > 0)
			close(entry - 1);
	}
}

/* The kernel gives the lowest number that is free, so a high one says that many are in use. */
static bool descriptors_are_few(int fd)
{
	struct rlimit limit;

	return getrlimit(RLIMIT_NOFILE, &limit) || (rlim_t)fd >= limit.rlim_cur / 2;
}

static int sender_make(struct vb_udp_senders *senders, uint16_t slot)
{
	int fd;

	if (senders->count == VB_UDP_SENDERS_MAX ||
	    vb_udp_socket_sender(&fd, senders->family, VB_UDP_SENDER_PORT | slot))
		return NONE;
	if (descriptors_are_few(fd)) {
		close(fd);
		return NONE;
	}
	senders->count++;
	return fd + 1;
}

uint16_t vb_udp_senders_port(struct vb_udp_senders *senders, uint16_t slot)
{
	int entry;

	if (slot >= VB_UDP_SLOTS)
		return VB_UDP_PORT;
	entry = atomic_load_explicit(&senders->fd_plus_1[slot], memory_order_relaxed);
	if (__builtin_expect(entry == NOT_ASKED, false)) {
		vb_lock_take(&senders->lock);
		entry = atomic_load(&senders->fd_plus_1[slot]);
		if (entry == NOT_ASKED) {
			entry = sender_make(senders, slot);
			atomic_store(&senders->fd_plus_1[slot], entry);
		}
		vb_lock_drop(&senders->lock);
	}
	return entry > 0 ? VB_UDP_SENDER_PORT | slot : VB_UDP_PORT;
}

int vb_udp_senders_fd(struct vb_udp_senders *senders, uint16_t port)
{
	unsigned slot = port - (unsigned)VB_UDP_SENDER_PORT;
	int entry;

	if (slot >= VB_UDP_SLOTS)
		return -1;
	entry = atomic_load_explicit(&senders->fd_plus_1[slot], memory_order_relaxed);
	return entry > 0 ? entry - 1 : -1;
}
