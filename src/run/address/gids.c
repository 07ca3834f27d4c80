/* SPDX-License-Identifier: BSD-2-Clause */
#include "run/address/gids.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/check.h"
#include "base/failure.h"
#include "base/fd.h"

/* How often to read the interfaces where the kernel does not report changes. */
#define REREAD_NS 100000000u

/* The order of the table. */
enum rank { RANK_IPV4, RANK_IPV6, RANK_LINK_LOCAL, RANK_LOOPBACK, RANKS };

static enum rank rank_of(const struct vb_gid_entry *entry)
{
	const uint8_t *gid = entry->gid;

	if (entry->loopback)
		return RANK_LOOPBACK;
	if (vb_gid_is_ipv4(gid))
		return gid[12] == 169 && gid[13] == 254 ? RANK_LINK_LOCAL : RANK_IPV4;
	return gid[0] == 0xfe && (gid[1] & 0xc0) == 0x80 ? RANK_LINK_LOCAL : RANK_IPV6;
}

/* By rank, then by interface. Insertion is stable: equals keep the order of getifaddrs(). */
static bool goes_before(const struct vb_gid_entry *a, const struct vb_gid_entry *b)
{
	if (rank_of(a) != rank_of(b))
		return rank_of(a) < rank_of(b);
	return a->ifindex < b->ifindex;
}

static bool gid_from_sockaddr(uint8_t gid[VB_GID_BYTES], const struct sockaddr *addr)
{
	static const uint8_t none[VB_GID_BYTES];

	if (addr->sa_family == AF_INET) {
		memset(gid, 0, 10);
		memset(gid + 10, 0xff, 2);
		memcpy(gid + 12, &((const struct sockaddr_in *)addr)->sin_addr, 4);
		return memcmp(gid + 12, none, 4) != 0;
	}
	if (addr->sa_family == AF_INET6) {
		memcpy(gid, &((const struct sockaddr_in6 *)addr)->sin6_addr, VB_GID_BYTES);
		return memcmp(gid, none, VB_GID_BYTES) != 0;
	}
	return false;
}

unsigned vb_gids_collect(struct vb_gid_entry *found, unsigned max, const struct ifaddrs *list)
{
	unsigned count = 0, place;
	const struct ifaddrs *ifa;

	for (ifa = list; ifa && count < max; ifa = ifa->ifa_next) {
		struct vb_gid_entry entry = {
			.loopback = ifa->ifa_flags & IFF_LOOPBACK,
			.no_carrier = !(ifa->ifa_flags & IFF_RUNNING),
		};

		if (!ifa->ifa_addr || !(ifa->ifa_flags & IFF_UP) ||
		    !gid_from_sockaddr(entry.gid, ifa->ifa_addr))
			continue;
		entry.ifindex = if_nametoindex(ifa->ifa_name);
		for (place = count; place > 0 && goes_before(&entry, &found[place - 1]); place--)
			found[place] = found[place - 1];
		found[place] = entry;
		count++;
	}
	return count;
}

static bool is_empty(const struct vb_gid_entry *entry)
{
	static const struct vb_gid_entry none;

	return memcmp(entry->gid, none.gid, VB_GID_BYTES) == 0;
}

static bool is_same_address(const struct vb_gid_entry *a, const struct vb_gid_entry *b)
{
	return a->ifindex == b->ifindex && memcmp(a->gid, b->gid, VB_GID_BYTES) == 0;
}

static const struct vb_gid_entry *find(const struct vb_gid_entry *list, unsigned count,
				       const struct vb_gid_entry *wanted)
{
	for (unsigned i = 0; i < count; i++) {
		if (is_same_address(&list[i], wanted))
			return &list[i];
	}
	return NULL;
}

void vb_gids_merge(struct vb_gids *gids, const struct vb_gid_entry *found, unsigned count)
{
	static const struct vb_gid_entry none;
	unsigned free_index = 0;

	if (gids->of.anew) {
		memset(gids->entry, 0, sizeof(gids->entry));
		gids->count = 0;
	}
	for (unsigned i = 0; i < gids->count; i++) {
		const struct vb_gid_entry *now = find(found, count, &gids->entry[i]);

		gids->entry[i] = now ? *now : none;
	}
	for (unsigned i = 0; i < count; i++) {
		if (find(gids->entry, gids->count, &found[i]))
			continue;
		while (free_index < VB_GIDS_MAX && !is_empty(&gids->entry[free_index]))
			free_index++;
		if (free_index == VB_GIDS_MAX)
			break;
		gids->entry[free_index] = found[i];
		if (free_index >= gids->count)
			gids->count = free_index + 1;
	}
	while (gids->count > 0 && is_empty(&gids->entry[gids->count - 1]))
		gids->count--;
	/* Many programs use GID 0 without looking: if its address is gone, it gets another. */
	if (gids->count > 0 && is_empty(&gids->entry[0]))
		gids->entry[0] = gids->entry[gids->count - 1];
}

static void fill_mtu(struct vb_gid_entry *found, unsigned count)
{
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	for (unsigned i = 0; i < count; i++) {
		struct ifreq request = { 0 };

		/* The minimum of IPv6, which IPv4 also allows, until the interface says more. */
		found[i].mtu_bytes = 1280;
		if (fd >= 0 && if_indextoname(found[i].ifindex, request.ifr_name) &&
		    ioctl(fd, SIOCGIFMTU, &request) == 0)
			found[i].mtu_bytes = request.ifr_mtu;
	}
	if (fd >= 0)
		close(fd);
}

/* --- several devices --- */

/* Are two devices of the table in one fabric? */
static bool meet(const struct vb_topology_device *a, const struct vb_topology_device *b)
{
	return strcmp(a->fabric, b->fabric) == 0;
}

/* An address that is not ours: apart, unless somebody of our fabric has it, or no device at all. */
static bool is_apart(const struct vb_gids_of *of, const char *interface, const uint8_t *gid)
{
	bool has_owner = false;

	for (unsigned i = 0; i < of->topology->count; i++) {
		const struct vb_topology_device *other = &of->topology->device[i];

		if (!vb_topology_has(of->topology, other, interface, gid))
			continue;
		if (meet(of->device, other))
			return false;
		has_owner = true;
	}
	return has_owner;
}

/* Leaves what is the device's; the others are its neighbours. Returns how many are left. */
static unsigned own_keep(struct vb_gids *gids, struct vb_gid_entry *found, unsigned count)
{
	const struct vb_gids_of *of = &gids->of;
	unsigned own = 0;

	gids->neighbour_count = 0;
	if (!of->device)
		return count;
	for (unsigned i = 0; i < count; i++) {
		char interface[IF_NAMESIZE] = "";
		struct vb_neighbour *neighbour;

		if_indextoname(found[i].ifindex, interface);
		if (vb_topology_has(of->topology, of->device, interface, found[i].gid)) {
			found[own++] = found[i];
			continue;
		}
		neighbour = &gids->neighbour[gids->neighbour_count++];
		memcpy(neighbour->gid, found[i].gid, VB_GID_BYTES);
		neighbour->apart = is_apart(of, interface, found[i].gid);
	}
	return own;
}

/* Puts link-local addresses before all others. Both keep their order. */
static void local_first(struct vb_gid_entry *found, unsigned count)
{
	unsigned front = 0;

	for (unsigned i = 0; i < count; i++) {
		struct vb_gid_entry entry = found[i];

		if (rank_of(&entry) != RANK_LINK_LOCAL)
			continue;
		memmove(&found[front + 1], &found[front], (i - front) * sizeof(*found));
		found[front++] = entry;
	}
}

void vb_gids_shown(const struct vb_gids *gids, struct vb_gid_entry shown[VB_GIDS_MAX],
		   unsigned *count)
{
	unsigned rows = gids->of.variety & VB_GIDS_V1 ? 2 : 1;

	memset(shown, 0, VB_GIDS_MAX * sizeof(*shown));
	*count = 0;
	for (unsigned i = 0; i < gids->count * rows; i++) {
		/* Rows 1, 4, 7 and so on are the holes. */
		unsigned at = gids->of.variety & VB_GIDS_HOLES ? i + (i + 1) / 2 : i;

		if (at >= VB_GIDS_MAX)
			break;
		shown[at] = gids->entry[i / rows];
		shown[at].v1 = rows > 1 && i % 2 == 0 && shown[at].mtu_bytes;
		*count = at + 1;
	}
}

static int read_interfaces(struct vb_gids *gids)
{
	struct vb_gid_entry *found;
	struct ifaddrs *list;
	unsigned count;

	if (getifaddrs(&list) != 0)
		return vb_failed(errno, "getifaddrs");
	found = calloc(VB_GIDS_MAX, sizeof(*found));
	if (!found) {
		freeifaddrs(list);
		return vb_failed(ENOMEM, "calloc");
	}
	count = vb_gids_collect(found, VB_GIDS_MAX, list);
	freeifaddrs(list);
	count = own_keep(gids, found, count);
	if (gids->of.variety & VB_GIDS_LOCAL_FIRST)
		local_first(found, count);
	fill_mtu(found, count);
	vb_gids_merge(gids, found, count);
	free(found);
	return 0;
}

static int watch_open(void)
{
	struct sockaddr_nl addr = {
		.nl_family = AF_NETLINK,
		.nl_groups = RTMGRP_LINK | RTMGRP_IPV4_IFADDR | RTMGRP_IPV6_IFADDR,
	};
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_ROUTE);

	if (fd >= 0 && bind(fd, (struct sockaddr *)&addr, sizeof(addr)) != 0) {
		close(fd);
		fd = -1;
	}
	return fd;
}

/* The content of the messages does not matter: the table is read anew after any of them. */
static bool watch_fired(int fd)
{
	char octets[64];
	bool fired = false;

	while (recv(fd, octets, sizeof(octets), MSG_TRUNC) > 0 || errno == ENOBUFS)
		fired = true;
	return fired;
}

int vb_gids_open(struct vb_gids *gids, const struct vb_gids_of *of)
{
	int rc;

	memset(gids, 0, sizeof(*gids));
	gids->of = *of;
	/* Watch first: the first refresh then sees a change that comes between the two. */
	gids->watch_fd = watch_open();
	rc = read_interfaces(gids);
	if (rc != 0)
		vb_gids_close(gids);
	return rc;
}

void vb_gids_close(struct vb_gids *gids)
{
	vb_fd_close(&gids->watch_fd);
}

bool vb_gids_refresh(struct vb_gids *gids, uint64_t now_ns)
{
	if (gids->watch_fd >= 0) {
		if (!watch_fired(gids->watch_fd))
			return false;
	} else if (now_ns - gids->read_ns < REREAD_NS) {
		return false;
	}
	gids->read_ns = now_ns;
	return read_interfaces(gids) == 0;
}
