/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_BASE_FD_TABLE_H
#define VB_BASE_FD_TABLE_H

/*
 * What a library keeps of descriptors, by their numbers. Pages are made as numbers need them, and
 * stay. Any thread; what is found may go if another thread closes the number, as with the kernel's
 * own table.
 */

#include <stdatomic.h>
#include <stddef.h>

enum {
	VB_FD_PAGE_BITS = 10,
	VB_FD_PAGE = 1 << VB_FD_PAGE_BITS,
	VB_FD_PAGES = 1 << 11,
};

typedef void *_Atomic vb_fd_slot;

/* All zero: empty. */
struct vb_fd_table {
	vb_fd_slot *_Atomic pages[VB_FD_PAGES];
};

/* NULL: there is no page for that number. */
static inline vb_fd_slot *vb_fd_table_slot(struct vb_fd_table *table, int fd)
{
	vb_fd_slot *page;

	if (fd < 0 || fd >> VB_FD_PAGE_BITS >= VB_FD_PAGES)
		return NULL;
	page = atomic_load_explicit(&table->pages[fd >> VB_FD_PAGE_BITS], memory_order_acquire);
	return page ? &page[fd & (VB_FD_PAGE - 1)] : NULL;
}

/* What is there, or NULL. */
static inline void *vb_fd_table_at(struct vb_fd_table *table, int fd)
{
	vb_fd_slot *slot = vb_fd_table_slot(table, fd);

	return slot ? atomic_load_explicit(slot, memory_order_acquire) : NULL;
}

/* What has that number or the next higher one, or NULL. */
void *vb_fd_table_from(struct vb_fd_table *table, int fd);

/* 0, EMFILE if the number is too high, or ENOMEM. */
int vb_fd_table_put(struct vb_fd_table *table, int fd, void *thing);

/* What was there, or NULL; afterwards nothing is. Of several threads one gets it. */
static inline void *vb_fd_table_take(struct vb_fd_table *table, int fd)
{
	vb_fd_slot *slot = vb_fd_table_slot(table, fd);

	return slot ? atomic_exchange(slot, NULL) : NULL;
}

/* It is empty again, and holds no memory. Nobody else uses it. */
void vb_fd_table_free(struct vb_fd_table *table);

#endif
