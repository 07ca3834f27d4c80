/* SPDX-License-Identifier: BSD-2-Clause */
#include "run/memory/files.h"

#include <dirent.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
	NONE = -1,
	RECENT = 4,	   /* how many below the lowest free descriptor are tried */
	ENTRY_BYTES = 24,  /* of a directory entry with a name of up to four digits */
	TEXT_BYTES = VB_FILES_LOOKS * ENTRY_BYTES,
	FIRST_OFFSET = 2, /* of descriptor 0, behind "." and ".." */
};

/* The layout of getdents64(2). */
struct entry {
	uint64_t inode, next;
	uint16_t bytes;
	uint8_t type;
	char name[];
};

/*
 * Reads the next descriptors of /proc/self/fd, whose offsets are the descriptors' numbers.
 * readdir(3) would read far more at a time.
 */
static unsigned entries_read(int dir, int *from, int fds[VB_FILES_LOOKS])
{
	_Alignas(struct entry) char text[TEXT_BYTES];
	unsigned count = 0;
	long bytes;

	if (lseek(dir, *from + FIRST_OFFSET, SEEK_SET) < 0)
		return 0;
	bytes = syscall(SYS_getdents64, dir, text, sizeof(text));
	for (long at = 0; at < bytes && count < VB_FILES_LOOKS;) {
		const struct entry *entry = (const struct entry *)(text + at);

		if (entry->name[0] != '.')
			fds[count++] = atoi(entry->name);
		at += entry->bytes;
	}
	if (count)
		*from = fds[count - 1] + 1;
	return count;
}

static int list_open(void)
{
	return open("/proc/self/fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

unsigned vb_files_list(int *from, int fds[VB_FILES_LOOKS])
{
	int dir = list_open();
	unsigned count;

	if (dir == NONE)
		return 0;
	count = entries_read(dir, from, fds);
	close(dir);
	return count;
}

static bool is_it(struct vb_files *files, const struct vb_vma *vma, int fd)
{
	if (fd < 0 || !vb_vma_is_file(vma, fd))
		return false;
	files->next = fd + 1;
	return true;
}

/* Searches once around, starting where the last search stopped. Returns the descriptor or NONE. */
static int search(struct vb_files *files, const struct vb_vma *vma, int dir, bool *all)
{
	int from = files->next, begin = from, fds[VB_FILES_LOOKS];
	bool wrapped = false;

	for (unsigned looks = 0; looks < VB_FILES_LOOKS;) {
		unsigned count = entries_read(dir, &from, fds);

		if (!count && (wrapped || !begin)) {
			*all = true;
			return NONE;
		}
		if (!count) {
			wrapped = true;
			from = 0;
		}
		for (unsigned i = 0; i < count && looks < VB_FILES_LOOKS; i++, looks++) {
			if (wrapped && fds[i] >= begin) {
				*all = true;
				return NONE;
			}
			if (is_it(files, vma, fds[i]))
				return fds[i];
			files->next = fds[i] + 1;
		}
	}
	return NONE;
}

int vb_files_find(struct vb_files *files, const struct vb_vma *vma, bool thorough, bool *all)
{
	/* The directory gets the lowest free number: recently opened files often lie just below. */
	int dir = list_open(), fd = files->next;

	*all = dir == NONE;
	if (!is_it(files, vma, fd)) {
		for (fd = dir - 1; fd >= dir - RECENT && !is_it(files, vma, fd);)
			fd--;
		if (fd < dir - RECENT)
			fd = thorough && dir != NONE ? search(files, vma, dir, all) : NONE;
	}
	if (fd != NONE)
		fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	if (dir != NONE)
		close(dir);
	return fd;
}
