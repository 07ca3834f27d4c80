/* SPDX-License-Identifier: BSD-2-Clause */
#include "run/links/links.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/path.h"
#include "hub/links.h"
#include "hub/program.h"
#include "run/process/cancel.h"
#include "run/process/log.h"

void vb_links_open(struct vb_links_told *links, const struct vb_env *env,
		   struct vb_hub_client *const *hub, const uint16_t *own_slot)
{
	*links = (struct vb_links_told){ .env = env, .hub = hub, .own_slot = own_slot };
	vb_lock_init(&links->lock, VB_RANK_LINKS);
}

void vb_links_close(struct vb_links_told *links)
{
	vb_lock_fini(&links->lock);
}

static bool same_end(const struct vb_link_told *a, const struct vb_link_told *b)
{
	return a->slot == b->slot && !memcmp(a->gid, b->gid, sizeof(a->gid));
}

/* Stores the report. Returns false if the same one was stored before. */
static bool note(struct vb_links_told *links, const struct vb_link_told *now)
{
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

static struct vb_hub_link link_of(const struct vb_links_told *links, enum vb_hub_link_why why)
{
	return (struct vb_hub_link){
		.from = *links->own_slot,
		.why = why,
		.none = why != VB_HUB_LINK_SHM && links->env->link == VB_ENV_LINK_SHM,
	};
}

static void tell(struct vb_links_told *links, const char *who, const struct vb_hub_link *link)
{
	char words[VB_HUB_LINK_WORDS_BYTES];

	vb_log("peer %s: %s", who, vb_hub_link_words(words, link, "here", "there"));
	if (*links->hub)
		vb_hub_client_link(*links->hub, link);
}

static struct vb_hub_link outcome(const struct vb_links_told *links, int rc,
				  const struct vb_hub_peer *peer)
{
	struct vb_hub_link link;

	switch (rc) {
	case 0:
		return link_of(links, VB_HUB_LINK_SHM);
	case ENOENT:
		return link_of(links, VB_HUB_LINK_NOBODY);
	case EOPNOTSUPP:
		link = link_of(links, peer->why);
		link.there = peer->why_is_there;
		/* The peer refuses and gives no reason. */
		if (link.why != VB_HUB_LINK_SHM)
			return link;
		break;
	default:
		break;
	}
	link = link_of(links, VB_HUB_LINK_FAILED);
	link.error = (uint32_t)rc;
	return link;
}

void vb_links_decided(struct vb_links_told *links, uint16_t own_slot, uint16_t slot, int rc,
		      const struct vb_hub_peer *peer)
{
	struct vb_hub_link link = outcome(links, rc, peer);
	const struct vb_link_told now = {
		.slot = slot,
		.pid = peer->program.pid,
		.why = link.why,
		.there = link.there,
	};
	char number[VB_HUB_NUMBER_BYTES], who[128];
	uint32_t pid = peer->pid;

	if (!note(links, &now))
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
	tell(links, who, &link);
}

void vb_links_afar(struct vb_links_told *links, const uint8_t gid[VB_GID_BYTES])
{
	struct vb_hub_link link = link_of(links, VB_HUB_LINK_AFAR);
	struct vb_link_told now = {.why = VB_HUB_LINK_AFAR};
	char who[VB_ADDRESS_BYTES];
	int cancel = vb_cancel_defer();

	memcpy(now.gid, gid, sizeof(now.gid));
	memcpy(link.gid, gid, sizeof(link.gid));
	if (note(links, &now))
		tell(links, vb_gid_text(who, gid), &link);
	vb_cancel_restore(cancel);
}
