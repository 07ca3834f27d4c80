/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_NIC_STORE_H
#define VB_NIC_STORE_H

/*
 * The memory that the processes of a hub share beside rings: the hub makes it, run maps it. Its
 * lock guards the part of XRC; the part of the Ethernet segment needs none.
 */

#include "nic/service/eth/segment_table.h"
#include "nic/service/xrc/xrc_store.h"

struct vb_store {
	struct vb_xrc_store xrc;
	struct vb_segment_table segment;
};

#endif
