/* SPDX-License-Identifier: BSD-2-Clause */
#include "run/process/trail.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

static struct vb_trail *_Atomic trail;

enum { TRAIL_BYTES = sizeof(struct vb_trail) + VB_TRAIL_ROOM * sizeof(struct vb_trail_event) };

uint64_t vb_trail_now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000000ull + now.tv_nsec;
}

/* The room is made at once: a full disk is an error here, and no signal later. */
static int file_map(const char *path, struct vb_trail **at)
{
	int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600), rc;
	void *map;

	if (fd < 0)
		return errno;
	rc = posix_fallocate(fd, 0, TRAIL_BYTES);
	map = rc ? MAP_FAILED : mmap(NULL, TRAIL_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (!rc && map == MAP_FAILED)
		rc = errno;
	close(fd);
	if (rc)
		return rc;
	madvise(map, TRAIL_BYTES, MADV_DONTFORK);
	*at = map;
	return 0;
}

int vb_trail_open(const char *folder)
{
	struct vb_trail *new = NULL;
	char path[4096];
	int rc;

	if (atomic_load(&trail))
		return 0;
	rc = snprintf(path, sizeof(path), "%s/%d.trail", folder, (int)getpid());
	if (rc < 0 || (size_t)rc >= sizeof(path))
		return ENAMETOOLONG;
	rc = file_map(path, &new);
	if (rc)
		return rc;
	new->event_bytes = sizeof(struct vb_trail_event);
	new->pid = (uint32_t)getpid();
	new->room = VB_TRAIL_ROOM;
	snprintf(new->comm, sizeof(new->comm), "%s", program_invocation_short_name);
	gethostname(new->host, sizeof(new->host) - 1);
	new->magic = VB_TRAIL_MAGIC;
	atomic_store(&trail, new);
	return 0;
}

bool vb_trail_is_open(void)
{
	return atomic_load_explicit(&trail, memory_order_relaxed);
}

void vb_trail_add(struct vb_trail_event event)
{
	static _Thread_local uint32_t thread;
	struct vb_trail *to = atomic_load_explicit(&trail, memory_order_acquire);
	uint8_t kind = event.kind;
	uint64_t place;

	if (!to)
		return;
	if (!thread)
		thread = (uint32_t)gettid();
	place = atomic_fetch_add_explicit(&to->count, 1, memory_order_relaxed);
	if (place >= VB_TRAIL_ROOM)
		return;
	if (!event.ns)
		event.ns = vb_trail_now_ns();
	event.thread = thread;
	event.kind = VB_TRAIL_NONE;
	to->event[place] = event;
	atomic_store_explicit(&to->event[place].kind, kind, memory_order_release);
}

void vb_trail_forget(void)
{
	/* The child has not inherited the mapping. */
	atomic_store(&trail, NULL);
}
