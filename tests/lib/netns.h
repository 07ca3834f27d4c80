/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_TESTS_NETNS_H
#define VB_TESTS_NETNS_H

/*
 * A network namespace for a test: nobody else's port 4791, nobody else's hub. Root makes one as
 * it is; anybody else becomes root of a user namespace first, where the system allows that.
 */

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

/* Why a test without one is skipped. */
#define NO_NETWORK_NAMESPACE "this system lets us make no network namespace"

static inline bool netns_file_write(const char *file, const char *text)
{
	int fd = open(file, O_WRONLY | O_CLOEXEC);
	bool ok = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);

	if (fd >= 0)
		close(fd);
	return ok;
}

/* Set an interface's MTU (0: leave it) and bring it up. */
static inline bool netns_interface_up(const char *name, int mtu)
{
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct ifreq request;
	bool ok = fd >= 0;

	memset(&request, 0, sizeof(request));
	snprintf(request.ifr_name, sizeof(request.ifr_name), "%s", name);
	if (mtu) {
		request.ifr_mtu = mtu;
		ok = ok && !ioctl(fd, SIOCSIFMTU, &request);
	}
	request.ifr_flags = IFF_UP | IFF_RUNNING;
	ok = ok && !ioctl(fd, SIOCSIFFLAGS, &request);
	if (fd >= 0)
		close(fd);
	return ok;
}

/* Take an interface down. */
static inline bool netns_interface_down(const char *name)
{
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct ifreq request;
	bool ok = fd >= 0;

	memset(&request, 0, sizeof(request));
	snprintf(request.ifr_name, sizeof(request.ifr_name), "%s", name);
	ok = ok && !ioctl(fd, SIOCSIFFLAGS, &request);
	if (fd >= 0)
		close(fd);
	return ok;
}

/* Give lo another IPv4 address, under a label such as "lo:1"; to take the label down removes it. */
static inline bool netns_address_add(const char *label, const char *ipv4)
{
	struct sockaddr_in addr = { .sin_family = AF_INET };
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct ifreq request;
	bool ok = fd >= 0 && inet_pton(AF_INET, ipv4, &addr.sin_addr) == 1;

	memset(&request, 0, sizeof(request));
	snprintf(request.ifr_name, sizeof(request.ifr_name), "%s", label);
	memcpy(&request.ifr_addr, &addr, sizeof(addr));
	ok = ok && !ioctl(fd, SIOCSIFADDR, &request);
	if (fd >= 0)
		close(fd);
	return ok;
}

/* Give an interface another IPv6 address, and wait until the kernel lets it be used. */
static inline bool netns_ipv6_address_add(const char *interface, const char *ipv6)
{
	/* struct in6_ifreq of <linux/ipv6.h>, which cannot be read with <netinet/in.h>. */
	struct {
		struct in6_addr addr;
		uint32_t prefix_bits;
		int ifindex;
	} request = { .prefix_bits = 128, .ifindex = (int)if_nametoindex(interface) };
	int fd = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	bool ok = fd >= 0 && inet_pton(AF_INET6, ipv6, &request.addr) == 1 &&
		  !ioctl(fd, SIOCSIFADDR, &request);
	struct sockaddr_in6 name = { .sin6_family = AF_INET6, .sin6_addr = request.addr };

	while (ok && bind(fd, (struct sockaddr *)&name, sizeof(name)) && errno == EADDRNOTAVAIL)
		usleep(1000);
	if (fd >= 0)
		close(fd);
	return ok;
}

/*
 * Move this process, which has one thread, to a new network namespace with lo up. May be called
 * again. False if this system does not let us: the test is to be skipped.
 */
static inline bool netns_enter(void)
{
	unsigned uid = geteuid(), gid = getegid();
	char map[64];

	if (unshare(CLONE_NEWNET)) {
		if (unshare(CLONE_NEWUSER | CLONE_NEWNET))
			return false;
		netns_file_write("/proc/self/setgroups", "deny");
		snprintf(map, sizeof(map), "0 %u 1", uid);
		if (!netns_file_write("/proc/self/uid_map", map))
			return false;
		snprintf(map, sizeof(map), "0 %u 1", gid);
		netns_file_write("/proc/self/gid_map", map);
	}
	return netns_interface_up("lo", 0);
}

#endif
