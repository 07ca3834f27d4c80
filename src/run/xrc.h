/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_RUN_XRC_H
#define VB_RUN_XRC_H

/*
 * The memory in which XRC domains live (nic/service/xrc/xrc_store.h). All processes of a hub share
 * it.
 */

#include "run/device.h"

/* What the NIC asks of its host; arg is the struct vb_device. */
extern const struct vb_host_xrc vb_xrc_host;

/* The store, for its parts besides XRC. NULL: not available. */
struct vb_xrc_store *vb_xrc_host_store(void *arg);

/* For struct vb_hub_receivers. */
void vb_xrc_host_noted(void *arg);

/* After the NIC is destroyed. */
void vb_xrc_host_close(struct vb_device *dev);

/* In a forked child. */
void vb_xrc_forget(struct vb_device *dev);

#endif
