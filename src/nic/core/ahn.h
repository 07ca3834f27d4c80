/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_NIC_AHN_H
#define VB_NIC_AHN_H

/*
 * Numbers of addresses, 16 bits: EFA numbers address handles, and a receive completion names
 * its sender by that number. Handles for one GID have one number here, and a GID keeps its number
 * as long as the NIC lives, so that a completion not yet taken stays right. Any thread.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/lent.h"
#include "base/lock.h"
#include "nic/core/nic_host.h"

struct vb_ah;
struct vb_nic;

/* No number: no handle has one for this GID, or there are too many. Numbers begin with 1. */
#define VB_AHN_NONE 0xffffu

struct vb_ahn;

/* Of a NIC. */
struct vb_ahns {
	vb_lock lock;
	struct vb_ahn *all; /* of VB_AHN_NONE; NULL: none is numbered yet */
	uint16_t *bucket;
	uint32_t count;
};

void vb_ahns_init(struct vb_ahns *ahns);
void vb_ahns_fini(struct vb_ahns *ahns);

/*
 * The number of this handle (efadv_query_ah(3)): from now on until its end, completions say it.
 * VB_AHN_NONE: too many, or no memory.
 */
VB_LENT uint16_t vb_ah_number(struct vb_ah *ah);

/* The GID of a number that vb_ahn_enter() gave; false: there is none. */
VB_LENT bool vb_ahn_gid(struct vb_nic *nic, uint16_t number, uint8_t gid[VB_GID_BYTES]);

/* --- inside nic --- */

/* The number of this GID, which it gets if it has none. VB_AHN_NONE: as above. */
uint16_t vb_ahn_enter(struct vb_nic *nic, const uint8_t gid[VB_GID_BYTES]);

/*
 * A sender as a completion has it: by the number of its GID, and by the same once more as `slid`,
 * if a handle has it, else VB_AHN_NONE.
 */
struct vb_ahn_sender {
	uint16_t ahn, slid;
};

/* The sender whose GID has that number. */
struct vb_ahn_sender vb_ahn_sender(struct vb_nic *nic, uint16_t number);

/* The handle ends. */
void vb_ahn_leave(struct vb_ah *ah);

#endif
