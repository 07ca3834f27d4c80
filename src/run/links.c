/* SPDX-License-Identifier: BSD-2-Clause */
#include "run/links.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/path.h"
#include "hub/links.h"
#include "hub/program.h"
#include "run/process/cancel.h"
#include "run/device.h"
#include "run/process/log.h"

void vb_links_open(struct vb_device *dev)
{
	vb_lock_init(&dev->links.lock, VB_RANK_LINKS);
}

void vb_links_close(struct vb_device *dev)
{
	vb_lock_fini(&dev->links.lock);
}

static bool same_end(const struct vb_link_told *a, const struct vb_link_told *b)
{
	return a->slot == b->slot && !memcmp(a->gid, b->gid, sizeof(a->gid));
}

/* Stores the report. Returns false if the same one was stored before. */
static bool note(struct vb_device *dev, const struct vb_link_told *now)
{
	struct vb_links_told *links = &dev->links;
	bool is_new = true;
	unsigned i;

	vb_lock_take(&links->lock);
	for (i = 0; i < links->n && !same_end(&links->told[i], now); i++)
		continue;
	if (i < links->n)
		is_new = links->told[i].pid != now->pid || links->told[i].why != now->why ||
			 links->told[i].there != now->there;
	else if (i == VB_LINKS_MAX)
		is_new = false;
	else
		links->n++;
	if (is_new)
		links->told[i] = *now;
	vb_lock_drop(&links->lock);
	return is_new;
}

static struct vb_hub_link link_of(const struct vb_device *dev, enum vb_hub_link_why why)
{
	return (struct vb_hub_link){
		.from = dev->ports[0].slot,
		.why = why,
		.none = why != VB_HUB_LINK_SHM && dev->env.link == VB_ENV_LINK_SHM,
	};
}

static void tell(struct vb_device *dev, const char *who, const struct vb_hub_link *link)
{
	char words[VB_HUB_LINK_WORDS_BYTES];

	vb_log("peer %s: %s", who, vb_hub_link_words(words, link, "here", "there"));
	if (dev->hub)
		vb_hub_client_link(dev->hub, link);
}

static struct vb_hub_link outcome(const struct vb_device *dev, int rc,
				  const struct vb_hub_peer *peer)
{
	struct vb_hub_link link;

	switch (rc) {
	case 0:
		return link_of(dev, VB_HUB_LINK_SHM);
	case ENOENT:
		return link_of(dev, VB_HUB_LINK_NOBODY);
	case EOPNOTSUPP:
		link = link_of(dev, peer ? peer->why : dev->peers.why);
		link.there = peer && peer->why_is_there;
		/* The peer refuses and gives no reason. */
		if (link.why != VB_HUB_LINK_SHM)
			return link;
		break;
	default:
		break;
	}
	link = link_of(dev, VB_HUB_LINK_FAILED);
	link.error = (uint32_t)rc;
	return link;
}

void vb_links_decided(struct vb_device *dev, uint16_t own_slot, uint16_t slot, int rc,
		      const struct vb_hub_peer *peer)
{
	struct vb_hub_link link = outcome(dev, rc, peer);
	const struct vb_link_told now = {
		.slot = slot,
		.pid = peer ? peer->program.pid : 0,
		.why = link.why,
		.there = link.there,
	};
	char number[VB_HUB_NUMBER_BYTES], who[128];
	uint32_t pid = peer ? peer->pid : 0;

	if (!note(dev, &now))
		return;
	if (own_slot)
		link.from = own_slot;
	link.to = slot;
	snprintf(who, sizeof(who), "slot %u", slot);
	if (now.pid) {
		if (!pid && peer->program.pid_ns && peer->program.pid_ns == vb_hub_pid_ns())
			pid = peer->program.pid;
		snprintf(who, sizeof(who), "slot %u (pid %s, %s)", slot,
			 vb_hub_program_number(number, pid, &peer->program), peer->program.comm);
	}
	tell(dev, who, &link);
}

void vb_links_afar(void *arg, const uint8_t gid[VB_GID_BYTES])
{
	struct vb_device *dev = arg;
	struct vb_hub_link link = link_of(dev, VB_HUB_LINK_AFAR);
	struct vb_link_told now = {.why = VB_HUB_LINK_AFAR};
	char who[VB_ADDRESS_BYTES];
	int cancel = vb_cancel_defer();

	memcpy(now.gid, gid, sizeof(now.gid));
	memcpy(link.gid, gid, sizeof(link.gid));
	if (note(dev, &now))
		tell(dev, vb_gid_text(who, gid), &link);
	vb_cancel_restore(cancel);
}
