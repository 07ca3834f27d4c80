/* SPDX-License-Identifier: BSD-2-Clause */
#include "run/memory/vma.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/fd.h"

enum { NONE = -1, TEXT_BYTES = 8192 };

/* Linux 6.11; libc's headers may be older. */
struct query {
	uint64_t size;
	uint64_t flags;
	uint64_t address;
	uint64_t start, end;
	uint64_t vma_flags;
	uint64_t page_bytes;
	uint64_t offset;
	uint64_t inode;
	uint32_t major, minor;
	uint32_t name_bytes;
	uint32_t build_id_bytes;
	uint64_t name, build_id;
};

#define QUERY _IOWR('f', 17, struct query)

enum { IS_READABLE = 1, IS_WRITABLE = 2, IS_SHARED = 8, OR_NEXT = 16 };

static bool ask(int fd, uint64_t address, struct vb_vma *vma)
{
	struct query query = {
		.size = sizeof(query),
		.flags = OR_NEXT,
		.address = address,
		.name = (uintptr_t)vma->name,
		.name_bytes = sizeof(vma->name),
	};

	/*
	 * The kernel leaves the name of an anonymous mapping alone; valgrind does not know that it
	 * writes others.
	 */
	memset(vma->name, 0, sizeof(vma->name));
	if (ioctl(fd, QUERY, &query))
		return false;
	vma->start = query.start;
	vma->end = query.end;
	vma->offset = query.offset;
	vma->device = makedev(query.major, query.minor);
	vma->inode = query.inode;
	vma->readable = query.vma_flags & IS_READABLE;
	vma->writable = query.vma_flags & IS_WRITABLE;
	vma->shared = query.vma_flags & IS_SHARED;
	return true;
}

/* Parses a line of /proc/PID/maps. False if it is malformed. */
static bool line_parse(const char *line, struct vb_vma *vma)
{
	unsigned long long start, end, offset, inode;
	unsigned major, minor;
	char rights[5];
	int name = 0;

	if (sscanf(line, "%llx-%llx %4s %llx %x:%x %llu %n", &start, &end, rights, &offset, &major,
		   &minor, &inode, &name) < 7)
		return false;
	vma->start = start;
	vma->end = end;
	vma->offset = offset;
	vma->device = makedev(major, minor);
	vma->inode = inode;
	vma->readable = rights[0] == 'r';
	vma->writable = rights[1] == 'w';
	vma->shared = rights[3] == 's';
	snprintf(vma->name, sizeof(vma->name), "%s", line + name);
	return true;
}

/* Reads on from where the last line ended. Lines longer than the buffer are skipped. */
static bool search(int fd, uint64_t address, struct vb_vma *vma)
{
	char text[TEXT_BYTES + 1];
	size_t have = 0;
	off_t at = 0;
	ssize_t n;

	while ((n = pread(fd, text + have, TEXT_BYTES - have, at)) > 0) {
		char *line = text, *end;

		at += n;
		have += (size_t)n;
		text[have] = '\0';
		for (; (end = strchr(line, '\n')); line = end + 1) {
			*end = '\0';
			if (line_parse(line, vma) && address < vma->end)
				return true;
		}
		have = line == text && have == TEXT_BYTES ? 0 : have - (size_t)(line - text);
		memmove(text, line, have);
	}
	return false;
}

void vb_vmas_open_at(struct vb_vmas *vmas, int proc_fd)
{
	struct vb_vma vma;

	vmas->fd = openat(proc_fd, "maps", O_RDONLY | O_CLOEXEC);
	vmas->is_fast = vmas->fd != NONE && ask(vmas->fd, 0, &vma);
}

void vb_vmas_open(struct vb_vmas *vmas)
{
	int proc_fd = open("/proc/self", O_PATH | O_DIRECTORY | O_CLOEXEC);

	vb_vmas_open_at(vmas, proc_fd);
	vb_fd_close(&proc_fd);
}

void vb_vmas_close(struct vb_vmas *vmas)
{
	vb_fd_close(&vmas->fd);
}

bool vb_vma_find(const struct vb_vmas *vmas, const void *address, struct vb_vma *vma)
{
	if (vmas->fd == NONE)
		return false;
	return vmas->is_fast ? ask(vmas->fd, (uintptr_t)address, vma)
			     : search(vmas->fd, (uintptr_t)address, vma);
}

bool vb_vma_is_file(const struct vb_vma *vma, int fd)
{
	struct stat st;

	/* Only memory has seals; files on a disk are not for peers to write to. */
	return fstat(fd, &st) == 0 && st.st_dev == vma->device && st.st_ino == vma->inode &&
	       S_ISREG(st.st_mode) && fcntl(fd, F_GET_SEALS) >= 0 &&
	       (fcntl(fd, F_GETFL) & O_ACCMODE) == O_RDWR;
}

int vb_vma_file_by_name(const struct vb_vma *vma)
{
	struct stat st;
	int fd;

	/* Opening anything but a regular file could have side effects. */
	if (vma->name[0] != '/' || lstat(vma->name, &st) || !S_ISREG(st.st_mode) ||
	    st.st_ino != vma->inode)
		return NONE;
	fd = open(vma->name, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (fd == NONE || vb_vma_is_file(vma, fd))
		return fd;
	close(fd);
	return NONE;
}
