/* SPDX-License-Identifier: BSD-2-Clause */
#include "run/address/guid.h"

#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <net/if_arp.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/prng.h"
#include "run/address/gids.h"

enum { MAC_BYTES = 6 };

static const struct sockaddr_ll *mac_of(const struct ifaddrs *ifa)
{
	static const uint8_t none[MAC_BYTES];
	const struct sockaddr_ll *link = (const struct sockaddr_ll *)ifa->ifa_addr;

	if (!link || link->sll_family != AF_PACKET || link->sll_halen != MAC_BYTES ||
	    memcmp(link->sll_addr, none, MAC_BYTES) == 0)
		return NULL;
	return link;
}

uint64_t vb_guid_of(const struct ifaddrs *list)
{
	const struct sockaddr_ll *first = NULL;
	uint8_t guid[8];
	uint64_t guid_be;

	for (const struct ifaddrs *ifa = list; ifa; ifa = ifa->ifa_next) {
		const struct sockaddr_ll *link = mac_of(ifa);

		if (link && (!first || link->sll_ifindex < first->sll_ifindex))
			first = link;
	}
	if (!first)
		return 0;
	/* EUI-64 from a 48-bit MAC: ff:fe in the middle, the universal bit inverted (RFC 4291). */
	memcpy(guid, first->sll_addr, 3);
	guid[0] ^= 2;
	guid[3] = 0xff;
	guid[4] = 0xfe;
	memcpy(guid + 5, first->sll_addr + 3, 3);
	memcpy(&guid_be, guid, sizeof(guid_be));
	return guid_be;
}

static uint64_t hash_of(uint64_t hash, const char *text)
{
	for (; *text; text++) {
		hash ^= (unsigned char)*text;
		hash = vb_prng_next(&hash);
	}
	return hash;
}

/* Without a MAC, host name and boot ID identify the host. */
static uint64_t guid_from_host(void)
{
	char text[64] = "";
	uint64_t hash;
	ssize_t got;
	int fd;

	gethostname(text, sizeof(text) - 1);
	hash = hash_of(0, text);
	fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
	if (fd >= 0) {
		got = read(fd, text, sizeof(text) - 1);
		text[got > 0 ? got : 0] = '\0';
		close(fd);
		hash = hash_of(hash, text);
	}
	/* The locally administered bit also keeps it from being zero. */
	return htobe64(hash | 0x0200000000000000u);
}

static pthread_once_t once = PTHREAD_ONCE_INIT;
static uint64_t node_guid;

static void find_guid(void)
{
	struct ifaddrs *list;

	if (getifaddrs(&list) == 0) {
		node_guid = vb_guid_of(list);
		freeifaddrs(list);
	}
	if (node_guid == 0)
		node_guid = guid_from_host();
}

uint64_t vb_guid_get(void)
{
	pthread_once(&once, find_guid);
	return node_guid;
}

uint64_t vb_guid_of_device(const struct vb_topology *topology, unsigned row)
{
	uint64_t system_be = vb_guid_get();

	if (topology->count == 1 || row >= topology->count)
		return system_be;
	/* Locally administered, as of a host without a MAC. */
	return htobe64(hash_of(system_be, topology->device[row].name) | 0x0200000000000000u);
}

void vb_port_mac(uint64_t node_guid_be, uint8_t mac[MAC_BYTES])
{
	uint64_t hash = node_guid_be ^ (uint64_t)getuid() << 20;

	hash = vb_prng_next(&hash);
	memcpy(mac, &hash, MAC_BYTES);
	/* IEEE 802 8.2: locally administered, and not a group address. */
	mac[0] = (uint8_t)((mac[0] & ~1u) | 2);
}

static bool has_address(const struct ifaddrs *ifa, const uint8_t gid[VB_GID_BYTES])
{
	struct ifaddrs one = *ifa;
	struct vb_gid_entry entry;

	one.ifa_next = NULL;
	return vb_gids_collect(&entry, 1, &one) == 1 && memcmp(entry.gid, gid, VB_GID_BYTES) == 0;
}

static bool own_mac(const uint8_t gid[VB_GID_BYTES], uint8_t mac[MAC_BYTES])
{
	const char *name = NULL;
	struct ifaddrs *list;

	if (getifaddrs(&list) != 0)
		return false;
	for (const struct ifaddrs *ifa = list; ifa && !name; ifa = ifa->ifa_next) {
		if (has_address(ifa, gid))
			name = ifa->ifa_name;
	}
	if (name)
		memset(mac, 0, MAC_BYTES);
	for (const struct ifaddrs *ifa = list; ifa && name; ifa = ifa->ifa_next) {
		if (mac_of(ifa) && strcmp(ifa->ifa_name, name) == 0)
			memcpy(mac, mac_of(ifa)->sll_addr, MAC_BYTES);
	}
	freeifaddrs(list);
	return name != NULL;
}

/* A line has: address, hardware type, flags, MAC, mask, device. */
static bool arp_mac(const uint8_t gid[VB_GID_BYTES], uint8_t mac[MAC_BYTES])
{
	char line[256], wanted[INET_ADDRSTRLEN], address[64];
	bool found = false;
	unsigned flags;
	FILE *file;

	if (!vb_gid_is_ipv4(gid) || !inet_ntop(AF_INET, gid + 12, wanted, sizeof(wanted)))
		return false;
	file = fopen("/proc/net/arp", "re");
	if (!file)
		return false;
	while (!found && fgets(line, sizeof(line), file))
		found = sscanf(line, "%63s %*x %x %hhx:%hhx:%hhx:%hhx:%hhx:%hhx", address, &flags,
			       &mac[0], &mac[1], &mac[2], &mac[3], &mac[4], &mac[5]) == 8 &&
			(flags & ATF_COM) && strcmp(address, wanted) == 0;
	fclose(file);
	return found;
}

int vb_gids_mac(const uint8_t gid[VB_GID_BYTES], uint8_t mac[MAC_BYTES])
{
	uint8_t found[MAC_BYTES];

	if (!own_mac(gid, found) && !arp_mac(gid, found))
		return ENETUNREACH;
	memcpy(mac, found, MAC_BYTES);
	return 0;
}
