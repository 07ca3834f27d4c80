/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_DAEMON_LINKS_H
#define VB_DAEMON_LINKS_H

/* What a client has told of the links by which it reaches others: for status, and nothing else. */

#include "hub/proto.h"

struct vb_links;

/* Put one in, in the place of an older one to the same end. *links is made if it is NULL. */
void vb_links_put(struct vb_links **links, const struct vb_hub_link *link);

/* That slot is another's now. links may be NULL here and below. */
void vb_links_forget(struct vb_links *links, unsigned slot);

unsigned vb_links_count(const struct vb_links *links);
void vb_links_send(const struct vb_links *links, int fd);
void vb_links_free(struct vb_links **links);

#endif
