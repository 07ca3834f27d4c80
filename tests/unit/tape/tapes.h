/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_TESTS_TAPES_H
#define VB_TESTS_TAPES_H

/* A folder for tapes, and a tape in memory, which a test may change. */

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tape/reader.h"

static char folder[] = "/tmp/verbatim-tapes.XXXXXX";

static inline int folder_make(void **state)
{
	return mkdtemp(folder) ? 0 : -1;
}

static inline int folder_remove(void **state)
{
	return rmdir(folder);
}

struct loaded {
	uint8_t *at;
	size_t bytes;
};

/* Loads the tape in the folder, and removes it. */
static inline struct loaded tape_load(void)
{
	struct loaded loaded = { NULL, 0 };
	DIR *dir = opendir(folder);
	struct dirent *entry;

	while (dir && (entry = readdir(dir))) {
		char name[512];
		FILE *file;
		struct stat stat;

		snprintf(name, sizeof(name), "%s/%s", folder, entry->d_name);
		if (!strstr(entry->d_name, ".tape"))
			continue;
		file = fopen(name, "r");
		if (!file || fstat(fileno(file), &stat))
			continue;
		loaded.bytes = (size_t)stat.st_size;
		loaded.at = malloc(loaded.bytes);
		if (fread(loaded.at, 1, loaded.bytes, file) != loaded.bytes)
			loaded.bytes = 0;
		fclose(file);
		unlink(name);
	}
	if (dir)
		closedir(dir);
	return loaded;
}

/* The n-th item of this kind, from 0 on; NULL: there is none. */
static inline struct vb_tape_item_head *item_of(struct loaded tape, enum vb_tape_kind kind,
						unsigned n)
{
	struct vb_tape_reader reader;
	struct vb_tape_item item;

	if (vb_tape_read_begin(&reader, tape.at, tape.bytes))
		return NULL;
	while (vb_tape_read(&reader, &item) == VB_TAPE_READ_ITEM) {
		if (item.head->kind == (uint32_t)kind && n-- == 0)
			return (struct vb_tape_item_head *)item.head;
	}
	return NULL;
}

/* Makes all checksums right again. */
static inline void sums_mend(struct loaded tape)
{
	size_t at = sizeof(struct vb_tape_head);
	uint32_t sum = 0;

	while (at + sizeof(struct vb_tape_item_head) <= tape.bytes) {
		struct vb_tape_item_head *head = (void *)(tape.at + at);

		sum = head->sum = vb_tape_sum(sum, head, head + 1);
		at += sizeof(*head) + vb_tape_room(head->bytes);
	}
}

#endif
