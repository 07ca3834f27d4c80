/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_TAPE_REPLAY_HOST_H
#define VB_TAPE_REPLAY_HOST_H

/* The host of a NIC that is replayed: answers what the tape says. Its arg is the player. */

#include "tape/replay/player.h"

struct vb_nic_host vb_replay_host(struct vb_player *player, const struct vb_tape_nic *how);

#endif
