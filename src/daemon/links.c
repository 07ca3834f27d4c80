/* SPDX-License-Identifier: BSD-2-Clause */
#include "daemon/links.h"

#include <stdlib.h>
#include <string.h>

#include "hub/channel.h"

struct vb_links {
	unsigned n;
	struct vb_hub_link link[VB_HUB_LINKS_MAX];
};

void vb_links_put(struct vb_links **links, const struct vb_hub_link *link)
{
	unsigned i;

	if (!*links)
		*links = calloc(1, sizeof(**links));
	if (!*links)
		return;
	for (i = 0; i < (*links)->n; i++) {
		const struct vb_hub_link *old = &(*links)->link[i];

		if (old->to == link->to && !memcmp(old->gid, link->gid, sizeof(old->gid)))
			break;
	}
	if (i == VB_HUB_LINKS_MAX)
		return;
	(*links)->link[i] = *link;
	(*links)->n += i == (*links)->n;
}

void vb_links_forget(struct vb_links *links, unsigned slot)
{
	for (unsigned i = 0; links && i < links->n;) {
		if (links->link[i].to == slot)
			links->link[i] = links->link[--links->n];
		else
			i++;
	}
}

unsigned vb_links_count(const struct vb_links *links)
{
	return links ? links->n : 0;
}

void vb_links_send(const struct vb_links *links, int fd)
{
	struct vb_hub_msg msg = vb_hub_msg_make(VB_HUB_LINKS);

	if (!vb_links_count(links))
		return;
	msg.links.count = links->n;
	memcpy(msg.links.link, links->link, links->n * sizeof(*links->link));
	vb_hub_send(fd, &msg, NULL, 0);
}

void vb_links_free(struct vb_links **links)
{
	free(*links);
	*links = NULL;
}
