/* SPDX-License-Identifier: BSD-2-Clause */
#include "tape/replay/memory.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/mman.h>

#define PAGE_BYTES 4096ull

/* Pages that we have mapped. */
struct vb_tape_range {
	struct vb_tape_range *next;
	uint64_t from, to;
};

static bool is_ours(const struct vb_tape_memory *memory, uint64_t from, uint64_t to)
{
	for (const struct vb_tape_range *range = memory->first; range; range = range->next) {
		if (from >= range->from && to <= range->to)
			return true;
	}
	return false;
}

static int map(struct vb_tape_memory *memory, uint64_t from, uint64_t to, int flags, void **at)
{
	struct vb_tape_range *range = malloc(sizeof(*range));

	if (!range)
		return ENOMEM;
	*at = mmap((void *)(uintptr_t)from, to - from, PROT_READ | PROT_WRITE,
		   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | flags, -1, 0);
	if (*at == MAP_FAILED) {
		free(range);
		return errno;
	}
	range->from = (uintptr_t)*at;
	range->to = range->from + (to - from);
	range->next = memory->first;
	memory->first = range;
	return 0;
}

/* Regions overlap: a part may be there already. */
static int map_at(struct vb_tape_memory *memory, uint64_t from, uint64_t to)
{
	uint64_t middle = (from + (to - from) / 2) & ~(PAGE_BYTES - 1);
	void *at;
	int rc;

	if (is_ours(memory, from, to))
		return 0;
	rc = map(memory, from, to, MAP_FIXED_NOREPLACE, &at);
	if (rc != EEXIST || middle <= from)
		return rc;
	rc = map_at(memory, from, middle);
	return rc != 0 ? rc : map_at(memory, middle, to);
}

int vb_tape_memory_at(struct vb_tape_memory *memory, uint64_t address, uint64_t bytes)
{
	uint64_t from = address & ~(PAGE_BYTES - 1), to;

	if (!bytes || bytes > UINT64_MAX - address - PAGE_BYTES)
		return bytes ? ENOMEM : 0;
	to = (address + bytes + PAGE_BYTES - 1) & ~(PAGE_BYTES - 1);
	return map_at(memory, from, to);
}

void *vb_tape_memory_elsewhere(struct vb_tape_memory *memory, uint64_t address, uint64_t bytes)
{
	uint64_t offset = address & (PAGE_BYTES - 1);
	void *at;

	if (bytes > INT64_MAX / 2 || map(memory, 0, offset + bytes + 1, 0, &at))
		return NULL;
	return (uint8_t *)at + offset;
}

void vb_tape_memory_free(struct vb_tape_memory *memory)
{
	while (memory->first) {
		struct vb_tape_range *range = memory->first;

		memory->first = range->next;
		munmap((void *)(uintptr_t)range->from, range->to - range->from);
		free(range);
	}
}
