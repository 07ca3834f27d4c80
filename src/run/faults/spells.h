/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_RUN_FAULTS_SPELLS_H
#define VB_RUN_FAULTS_SPELLS_H

/* Faults that last. Rx right held unless it says something else. */

#include "run/faults/internal.h"

struct vb_gid_entry;

/* Begins what the rule says; qpn: of the packet that it met, or 0. */
void vb_spell_begin(struct vb_faults *faults, const struct vb_rule *rule, uint32_t qpn);

/* Ends those that are over. Returns when the next ends. */
uint64_t vb_spells_end(struct vb_faults *faults, uint64_t now_ns);

/* Does a spell keep this packet from going on? path NULL: not known. */
bool vb_spells_block(const struct vb_faults *faults, uint32_t qpn, const struct vb_path *path);

/* Changes a copy of the GID table as rules say. Any thread. */
void vb_faults_gids(struct vb_faults *faults, struct vb_gid_entry *entries, unsigned *count);

#endif
