/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/fd_table.h"

#include <errno.h>
#include <stdlib.h>

static int page_make(struct vb_fd_table *table, int fd)
{
	vb_fd_slot *page, *none = NULL;

	if (fd < 0 || fd >> VB_FD_PAGE_BITS >= VB_FD_PAGES)
		return EMFILE;
	if (table->pages[fd >> VB_FD_PAGE_BITS])
		return 0;
	page = calloc(VB_FD_PAGE, sizeof(*page));
	if (!page)
		return ENOMEM;
	if (!atomic_compare_exchange_strong(&table->pages[fd >> VB_FD_PAGE_BITS], &none, page))
		free(page);
	return 0;
}

int vb_fd_table_put(struct vb_fd_table *table, int fd, void *thing)
{
	int rc = page_make(table, fd);

	if (!rc)
		*vb_fd_table_slot(table, fd) = thing;
	return rc;
}

void *vb_fd_table_from(struct vb_fd_table *table, int fd)
{
	void *thing = NULL;

	for (; !thing && fd >> VB_FD_PAGE_BITS < VB_FD_PAGES; fd++) {
		if (table->pages[fd >> VB_FD_PAGE_BITS])
			thing = vb_fd_table_at(table, fd);
		else
			fd |= VB_FD_PAGE - 1;
	}
	return thing;
}

void vb_fd_table_free(struct vb_fd_table *table)
{
	for (unsigned i = 0; i < VB_FD_PAGES; i++)
		free(atomic_exchange(&table->pages[i], NULL));
}
