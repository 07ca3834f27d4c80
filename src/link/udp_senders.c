/* SPDX-License-Identifier: BSD-2-Clause */
#include "link/udp_senders.h"

#include <errno.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/check.h"
#include "link/udp_socket.h"
#include "link/udp_address.h"

enum { NOT_ASKED = 0, NONE = -1 };

void vb_udp_senders_init(struct vb_udp_senders *senders, int family)
{
	senders->family = family;
	vb_lock_init(&senders->lock, VB_RANK_UDP_SENDERS);
}

static void close_one(struct vb_udp_sender *sender)
{
	int entry = atomic_load(&sender->fd_plus_1);

	if (entry == NOT_ASKED)
		return;
	atomic_store(&sender->fd_plus_1, NONE);
	if (entry != NONE)
		close(entry - 1);
	vb_udp_counted_close(&sender->counted);
}

static void close_all(struct vb_udp_sender sender[VB_UDP_SLOTS])
{
	for (unsigned slot = 0; slot < VB_UDP_SLOTS; slot++)
		close_one(&sender[slot]);
}

void vb_udp_senders_close(struct vb_udp_senders *senders)
{
	close_all(senders->ipv4);
	close_all(senders->ipv6);
	close_one(&senders->answers);
	for (unsigned i = 0; i < VB_UDP_CHOSEN_MAX; i++)
		close_one(&senders->chosen[i].sender);
}

/* The kernel gives the lowest free number, so a high one means that many are in use. */
static bool descriptors_are_few(int fd)
{
	struct rlimit limit;

	return getrlimit(RLIMIT_NOFILE, &limit) || (rlim_t)fd >= limit.rlim_cur / 2;
}

/* A link-local address would tie the socket to one interface. */
static bool may_bind(const uint8_t gid[VB_GID_BYTES])
{
	return !vb_gid_is_zero(gid) && !vb_gid_is_link_local(gid);
}

static void counted_make(struct vb_udp_senders *senders, struct vb_udp_sender *sender,
			 const struct vb_path *path, uint16_t port)
{
	struct vb_udp_counted *counted = &sender->counted;

	if (senders->counted == VB_UDP_COUNTED_MAX ||
	    vb_udp_counted_open(counted, sender->src, path->dst, port, sender->hop_limit))
		return;
	if (descriptors_are_few(atomic_load(&counted->fd_plus_1) - 1))
		vb_udp_counted_close(counted);
	else
		senders->counted++;
}

/*
 * If connecting fails, each datagram carries its address and gets the error. So does IPv4: there
 * the kernel would count identifications, which the ICRC covers; unconnected sockets send 0.
 */
static void connect_with(struct vb_udp_senders *senders, struct vb_udp_sender *sender, int fd,
			 const struct vb_path *path, uint16_t port)
{
	union vb_udp_address to;
	socklen_t bytes;

	if (!may_bind(path->dst))
		return;
	if (vb_gid_is_ipv4(path->dst))
		counted_make(senders, sender, path, port);
	else if (vb_udp_address_set(&to, &bytes, senders->family, path->dst, VB_UDP_PORT, 0) &&
		 connect(fd, &to.any, bytes) == 0)
		memcpy(sender->dst, path->dst, VB_GID_BYTES);
}

static int sender_make(struct vb_udp_senders *senders, struct vb_udp_sender *sender,
		       const struct vb_path *path, uint16_t slot, enum vb_whom whom)
{
	const uint8_t *src = may_bind(path->src) ? path->src : NULL;
	int fd;

	sender->hop_limit = path->hop_limit ? path->hop_limit : VB_UDP_HOP_LIMIT_DEFAULT;
	if (vb_udp_socket_sender(&fd, senders->family, src, VB_UDP_SENDER_PORT | slot,
				 sender->hop_limit, false))
		return NONE;
	if (descriptors_are_few(fd)) {
		close(fd);
		return NONE;
	}
	if (src) {
		memcpy(sender->src, src, VB_GID_BYTES);
		if (whom == VB_OURS)
			connect_with(senders, sender, fd, path, VB_UDP_SENDER_PORT | slot);
	}
	memcpy(sender->whom, path->dst, VB_GID_BYTES);
	senders->count++;
	return fd + 1;
}

static struct vb_udp_sender *sender_of(struct vb_udp_senders *senders, const struct vb_path *path,
				       unsigned slot)
{
	return vb_gid_is_ipv4(path->dst) ? &senders->ipv4[slot] : &senders->ipv6[slot];
}

/* Remembers a failure for ours, but not for guests: others must not cause lasting effects. */
static int sender_ask(struct vb_udp_senders *senders, struct vb_udp_sender *sender,
		      const struct vb_path *path, uint16_t slot, enum vb_whom whom)
{
	unsigned max = whom == VB_OURS ? VB_UDP_SENDERS_MAX : VB_UDP_GUESTS_MAX;
	int entry;

	vb_lock_take(&senders->lock);
	entry = atomic_load(&sender->fd_plus_1);
	if (entry == NOT_ASKED) {
		entry = NONE;
		if (senders->count < max)
			entry = sender_make(senders, sender, path, slot, whom);
		if (entry != NONE || whom == VB_OURS)
			atomic_store(&sender->fd_plus_1, entry);
	}
	vb_lock_drop(&senders->lock);
	return entry;
}

static int answers_make(struct vb_udp_senders *senders)
{
	int fd;

	senders->answers.hop_limit = VB_UDP_HOP_LIMIT_DEFAULT;
	if (vb_udp_socket_sender(&fd, senders->family, NULL, VB_UDP_ANSWER_PORT,
				 VB_UDP_HOP_LIMIT_DEFAULT, false))
		return NONE;
	if (descriptors_are_few(fd) || vb_udp_socket_unsum(fd, senders->family)) {
		close(fd);
		return NONE;
	}
	return fd + 1;
}

static uint16_t answers_port(struct vb_udp_senders *senders)
{
	int entry = atomic_load_explicit(&senders->answers.fd_plus_1, memory_order_relaxed);

	if (entry == NOT_ASKED) {
		vb_lock_take(&senders->lock);
		entry = atomic_load(&senders->answers.fd_plus_1);
		if (entry == NOT_ASKED) {
			entry = answers_make(senders);
			atomic_store(&senders->answers.fd_plus_1, entry);
		}
		vb_lock_drop(&senders->lock);
	}
	return entry > 0 ? VB_UDP_ANSWER_PORT : VB_UDP_PORT;
}

uint16_t vb_udp_senders_port(struct vb_udp_senders *senders, const struct vb_path *path,
			     uint16_t slot, enum vb_whom whom)
{
	struct vb_udp_sender *sender;
	int entry = NONE;

	if (slot < VB_UDP_SLOTS) {
		sender = sender_of(senders, path, slot);
		entry = atomic_load_explicit(&sender->fd_plus_1, memory_order_relaxed);
		if (__builtin_expect(entry == NOT_ASKED, false) && whom != VB_STRANGER)
			entry = sender_ask(senders, sender, path, slot, whom);
	}
	if (entry > 0)
		return VB_UDP_SENDER_PORT | slot;
	return whom == VB_STRANGER ? answers_port(senders) : VB_UDP_PORT;
}

bool vb_udp_senders_reach(struct vb_udp_senders *senders, const uint8_t gid[VB_GID_BYTES])
{
	const struct vb_udp_sender *sender =
		vb_gid_is_ipv4(gid) ? senders->ipv4 : senders->ipv6;

	for (unsigned slot = 0; slot < VB_UDP_SLOTS; slot++) {
		if (atomic_load_explicit(&sender[slot].fd_plus_1, memory_order_acquire) > 0 &&
		    memcmp(sender[slot].whom, gid, VB_GID_BYTES) == 0)
			return true;
	}
	return false;
}

/* --- chosen ports --- */

static struct vb_udp_chosen *chosen_find(struct vb_udp_senders *senders, uint16_t port)
{
	unsigned count = atomic_load_explicit(&senders->chosen_count, memory_order_acquire);

	for (unsigned i = 0; i < count; i++) {
		if (senders->chosen[i].port == port)
			return &senders->chosen[i];
	}
	return NULL;
}

/* Such a socket may serve different paths, so each datagram carries hop limit and addresses. */
static int chosen_add(struct vb_udp_senders *senders, uint16_t slot, uint16_t port)
{
	unsigned count = atomic_load(&senders->chosen_count);
	struct vb_udp_chosen *chosen = &senders->chosen[count];
	int fd, rc;

	if (count == VB_UDP_CHOSEN_MAX)
		return ENOSPC;
	rc = vb_udp_socket_sender(&fd, senders->family, NULL, port, VB_UDP_HOP_LIMIT_DEFAULT, true);
	if (rc)
		return rc;
	if (descriptors_are_few(fd)) {
		close(fd);
		return ENOSPC;
	}
	chosen->port = port;
	chosen->slot = slot;
	chosen->sender.hop_limit = VB_UDP_HOP_LIMIT_DEFAULT;
	atomic_store(&chosen->sender.fd_plus_1, fd + 1);
	atomic_store_explicit(&senders->chosen_count, count + 1, memory_order_release);
	return 0;
}

int vb_udp_senders_choose(struct vb_udp_senders *senders, const struct vb_path *path,
			  uint16_t slot, uint16_t port)
{
	struct vb_udp_chosen *chosen;
	int rc;

	if (port < VB_UDP_SENDER_PORT + VB_UDP_SLOTS ||
	    (vb_gid_is_ipv4(path->dst) ? 0 : senders->family != AF_INET6))
		return EADDRINUSE;
	vb_lock_take(&senders->lock);
	chosen = chosen_find(senders, port);
	if (chosen)
		rc = chosen->slot == slot ? 0 : EADDRINUSE;
	else
		rc = chosen_add(senders, slot, port);
	vb_lock_drop(&senders->lock);
	return rc;
}

int vb_udp_senders_fd(struct vb_udp_senders *senders, const struct vb_path *path,
		      const struct vb_udp_sender **sender)
{
	unsigned slot = path->sport - (unsigned)VB_UDP_SENDER_PORT;
	struct vb_udp_chosen *chosen;
	int entry;

	if (path->sport == VB_UDP_ANSWER_PORT) {
		*sender = &senders->answers;
		return atomic_load(&senders->answers.fd_plus_1) - 1;
	}
	if (slot >= VB_UDP_SLOTS) {
		chosen = chosen_find(senders, path->sport);
		if (!chosen)
			return -1;
		*sender = &chosen->sender;
		return atomic_load(&chosen->sender.fd_plus_1) - 1;
	}
	*sender = sender_of(senders, path, slot);
	entry = atomic_load_explicit(&(*sender)->fd_plus_1, memory_order_acquire);
	return entry > 0 ? entry - 1 : -1;
}

struct vb_udp_counted *vb_udp_senders_counted(struct vb_udp_senders *senders,
					      const struct vb_path *path)
{
	unsigned slot = path->sport - (unsigned)VB_UDP_SENDER_PORT;
	struct vb_udp_sender *sender;

	if (slot >= VB_UDP_SLOTS || path->tclass || !vb_gid_is_ipv4(path->dst))
		return NULL;
	sender = &senders->ipv4[slot];
	/* The maker wrote the other members before fd_plus_1. */
	if (atomic_load_explicit(&sender->fd_plus_1, memory_order_acquire) <= 0 ||
	    memcmp(path->dst, sender->counted.dst, VB_GID_BYTES) != 0 ||
	    memcmp(path->src, sender->src, VB_GID_BYTES) != 0 ||
	    (path->hop_limit && path->hop_limit != sender->hop_limit))
		return NULL;
	return &sender->counted;
}
