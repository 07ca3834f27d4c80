/* SPDX-License-Identifier: BSD-2-Clause */
#include "link/around/net_ports.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/prng.h"

enum { NAME_BYTES_MAX = 128 };

struct vb_net_ports {
	int fd; /* has a shared lock while the file is in use */
	struct vb_net_port *port;
	char name[NAME_BYTES_MAX];
};

#define SHARED_BYTES (sizeof(struct vb_net_port) * VB_NET_PORTS)

/* Is it ours alone, and still in its place? A leaver may have removed it since it was opened. */
static int check(int fd)
{
	struct stat at;

	if (fstat(fd, &at))
		return errno;
	if (at.st_uid != geteuid() || !S_ISREG(at.st_mode) || (at.st_mode & 077))
		return EPERM;
	/* Who was killed left it, perhaps with a queue that a slower port had for minutes. */
	if (!flock(fd, LOCK_EX | LOCK_NB) && ftruncate(fd, 0))
		return errno;
	if (flock(fd, LOCK_SH) || fstat(fd, &at))
		return errno;
	if (!at.st_nlink)
		return ESTALE;
	return ftruncate(fd, (off_t)SHARED_BYTES) ? errno : 0;
}

static int file_open(struct vb_net_ports *ports)
{
	int rc;

	do {
		ports->fd = open(ports->name, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
		if (ports->fd < 0)
			return errno;
		rc = check(ports->fd);
		if (rc)
			vb_fd_close(&ports->fd);
	} while (rc == ESTALE);
	return rc;
}

int vb_net_ports_open(struct vb_net_ports **out, const char *name)
{
	struct vb_net_ports *ports = calloc(1, sizeof(*ports));
	void *memory;
	int rc;

	if (!ports)
		return ENOMEM;
	snprintf(ports->name, sizeof(ports->name), "/dev/shm/verbatim-net.%u.%s",
		 (unsigned)geteuid(), name);
	rc = file_open(ports);
	if (rc) {
		free(ports);
		return rc;
	}
	memory = mmap(NULL, SHARED_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, ports->fd, 0);
	if (memory == MAP_FAILED) {
		rc = errno;
		vb_fd_close(&ports->fd);
		free(ports);
		return rc;
	}
	ports->port = memory;
	*out = ports;
	return 0;
}

void vb_net_ports_close(struct vb_net_ports *ports)
{
	munmap(ports->port, SHARED_BYTES);
	/* Nobody else has it: whoever opens it now waits for the lock, and finds it gone. */
	if (!flock(ports->fd, LOCK_EX | LOCK_NB))
		unlink(ports->name);
	vb_fd_close(&ports->fd);
	free(ports);
}

void vb_net_ports_forget(struct vb_net_ports *ports)
{
	vb_fd_close(&ports->fd);
}

static struct vb_net_port *port_of(struct vb_net_ports *ports, const uint8_t gid[VB_GID_BYTES])
{
	uint64_t half[2], who;

	memcpy(half, gid, VB_GID_BYTES);
	who = half[0];
	who = vb_prng_next(&who) ^ half[1];
	who = vb_prng_next(&who) | 1;
	for (unsigned i = 0; i < VB_NET_PORTS; i++) {
		struct vb_net_port *port = &ports->port[(who + i) % VB_NET_PORTS];
		uint64_t found = 0;

		if (atomic_load_explicit(&port->who, memory_order_relaxed) == who)
			return port;
		if (!atomic_compare_exchange_strong(&port->who, &found, who) && found != who)
			continue;
		atomic_store_explicit(&port->gid[0], half[0], memory_order_relaxed);
		atomic_store_explicit(&port->gid[1], half[1], memory_order_relaxed);
		return port;
	}
	return &ports->port[0];
}

struct vb_net_way *vb_net_ports_way(struct vb_net_ports *ports, const uint8_t gid[VB_GID_BYTES],
				    enum vb_net_ways way)
{
	return &port_of(ports, gid)->way[way];
}

bool vb_net_way_queue(struct vb_net_way *way, const struct vb_net_load *load, uint64_t most_ns,
		      uint64_t *before_ns, uint64_t *done_ns)
{
	uint64_t found = atomic_load_explicit(&way->done_ns, memory_order_relaxed), most;

	do {
		*before_ns = found > load->at_ns ? found - load->at_ns : 0;
		if (*before_ns > most_ns)
			return false;
		*done_ns = load->at_ns + *before_ns + load->takes_ns;
	} while (!atomic_compare_exchange_weak(&way->done_ns, &found, *done_ns));
	vb_net_count(&way->frames, load->frames);
	vb_net_count(&way->bytes, load->bytes);
	most = atomic_load_explicit(&way->most_ns, memory_order_relaxed);
	while (*before_ns > most &&
	       !atomic_compare_exchange_weak(&way->most_ns, &most, *before_ns))
		;
	return true;
}
