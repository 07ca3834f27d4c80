/* SPDX-License-Identifier: BSD-2-Clause */

/* Faults that last. Their lock is for threads that show GIDs; the others have the rx right. */

#include "run/faults/spells.h"

#include <string.h>

#include "nic/core/nic.h"
#include "run/faults/strike.h"

/* The port and the GIDs are shown anew, by the thread that may. */
static void show(struct vb_faults *faults, const struct vb_rule *rule)
{
	if (rule->how.what == VB_FAULT_SILENCE)
		return;
	atomic_store(&faults->shows_gids, true);
	atomic_store(&faults->is_left_to_turn, true);
	faults->host.wake(faults->host.arg);
}

void vb_spell_begin(struct vb_faults *faults, const struct vb_rule *rule, uint32_t qpn)
{
	struct vb_spell spell = { .rule = rule, .until_ns = UINT64_MAX };
	struct vb_gid_entry entry;

	if (rule->how.ns)
		spell.until_ns = vb_faults_now_ns() + rule->how.ns;
	if (rule->how.what == VB_FAULT_SILENCE && !rule->how.all)
		spell.qpn = qpn;
	if (rule->how.what == VB_FAULT_GID) {
		if (vb_nic_gid_get(faults->nic, rule->how.number, &entry))
			return;
		memcpy(spell.was, entry.gid, VB_GID_BYTES);
	}
	vb_lock_take(&faults->lock);
	if (faults->spells_count < VB_SPELLS_MAX)
		faults->spells[faults->spells_count++] = spell;
	vb_lock_drop(&faults->lock);
	show(faults, rule);
}

uint64_t vb_spells_end(struct vb_faults *faults, uint64_t now_ns)
{
	uint64_t next_ns = UINT64_MAX;

	for (unsigned i = 0; i < faults->spells_count;) {
		const struct vb_spell spell = faults->spells[i];

		if (spell.until_ns > now_ns) {
			next_ns = spell.until_ns < next_ns ? spell.until_ns : next_ns;
			i++;
			continue;
		}
		vb_lock_take(&faults->lock);
		faults->spells[i] = faults->spells[--faults->spells_count];
		vb_lock_drop(&faults->lock);
		vb_faults_say(faults, spell.rule, "that is over");
		show(faults, spell.rule);
	}
	return next_ns;
}

static bool has_end(const struct vb_path *path, const uint8_t gid[VB_GID_BYTES])
{
	return memcmp(path->src, gid, VB_GID_BYTES) == 0 ||
	       memcmp(path->dst, gid, VB_GID_BYTES) == 0;
}

bool vb_spells_block(const struct vb_faults *faults, uint32_t qpn, const struct vb_path *path)
{
	for (unsigned i = 0; i < faults->spells_count; i++) {
		const struct vb_spell *spell = &faults->spells[i];

		switch (spell->rule->how.what) {
		case VB_FAULT_GID:
			if (path && has_end(path, spell->was))
				return true;
			break;
		case VB_FAULT_SILENCE:
			if (!spell->qpn || spell->qpn == qpn)
				return true;
			break;
		default:
			return true;
		}
	}
	return false;
}

void vb_faults_gids(struct vb_faults *faults, struct vb_gid_entry *entries, unsigned *count)
{
	if (!faults)
		return;
	vb_lock_take(&faults->lock);
	for (unsigned i = 0; i < faults->spells_count; i++) {
		const struct vb_fault_how *how = &faults->spells[i].rule->how;

		if (how->what == VB_FAULT_GID && how->number < *count) {
			struct vb_gid_entry *entry = &entries[how->number];

			if (how->has_gid)
				memcpy(entry->gid, how->gid, VB_GID_BYTES);
			else
				memset(entry, 0, sizeof(*entry));
		}
		for (unsigned k = 0; how->what == VB_FAULT_PORT && k < *count; k++)
			entries[k].no_carrier = true;
	}
	vb_lock_drop(&faults->lock);
}
