/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_DAEMON_LINKS_H
#define VB_DAEMON_LINKS_H

/* The links that a client reported, kept for status only. */

#include "hub/proto.h"

struct vb_links;

/* Stores a link, in place of an older one to the same end. Allocates *links if it is NULL. */
void vb_links_put(struct vb_links **links, const struct vb_hub_link *link);

/* Drops links to a slot that has a new holder. links may be NULL here and below. */
void vb_links_forget(struct vb_links *links, unsigned slot);

unsigned vb_links_count(const struct vb_links *links);
void vb_links_send(const struct vb_links *links, int fd);
void vb_links_free(struct vb_links **links);

#endif
