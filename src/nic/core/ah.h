/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_NIC_AH_H
#define VB_NIC_AH_H

/* Address handles, and address vectors in general. */

#include "nic/core/ctx.h"

struct vb_ah {
	struct ibv_ah ibv;
	struct vb_path path;
	struct ibv_ah_attr attr;
	uint16_t number; /* core/ahn.h; 0: it has none */
};

/* Is it an address of this host? */
bool vb_gid_is_ours(struct vb_nic *nic, const uint8_t gid[VB_GID_BYTES]);

/*
 * attr must be global (on Ethernet the GRH holds the address), port 1, sgid valid; else EINVAL.
 * ENETUNREACH: not an address of this host, and there is no wire; or a group that cannot be reached
 * from that interface.
 */
int vb_ah_create(struct vb_pd *pd, const struct ibv_ah_attr *attr, struct vb_ah **ah);
int vb_ah_destroy(struct vb_ah *ah);

/* --- for the rest of the NIC --- */

/* For one host: EINVAL for a group as well. */
int vb_path_resolve(struct vb_nic *nic, const struct ibv_ah_attr *attr, struct vb_path *path);

/* Sets the source port of frames from our slot src_slot to a QP, whose slot it stands for. */
void vb_path_sport_set(struct vb_nic *nic, struct vb_path *path, uint16_t src_slot, uint32_t dqpn);

/* The same for an answer to a peer that has addressed us. */
void vb_path_sport_answer(struct vb_nic *nic, struct vb_path *path, uint16_t src_slot,
			  uint32_t dqpn, enum vb_whom whom);

#endif
