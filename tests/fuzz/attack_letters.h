/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_FUZZ_ATTACK_LETTERS_H
#define VB_FUZZ_ATTACK_LETTERS_H

/* What attack_hub hands to the hub, and what it says of rdma_cm: as it should be, or nearly so. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "hub/proto.h"

/* --- memory: descriptors --- */

int attack_memory(size_t bytes, bool sealed);
int attack_export_make(void);

/* Of some ids that somebody might have connected. */
int attack_records_make(void);

/* --- messages --- */

void attack_bind_fill(struct vb_hub_msg *msg, uint64_t *rng, uint32_t slot);
void attack_unbind_fill(struct vb_hub_msg *msg, uint64_t *rng, uint32_t slot);

/* A message of connection management of that slot's, mostly for an id of the other one. */
void attack_mad_fill(struct vb_hub_msg *msg, uint64_t *rng, uint32_t slot, uint32_t to);

/* The hub's own words, said to it: anything. */
void attack_any_fill(struct vb_hub_msg *msg, uint64_t *rng);

#endif
