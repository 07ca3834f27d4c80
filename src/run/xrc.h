/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_RUN_XRC_H
#define VB_RUN_XRC_H

/*
 * The memory in which XRC domains live (nic/service/xrc/xrc_store.h). All processes of a hub share
 * it.
 */

#include "run/device.h"

/* For struct vb_nic_host; arg is the struct vb_device. */
struct vb_xrc_store *vb_xrc_host_store(void *arg);
void vb_xrc_host_lock(void *arg);
void vb_xrc_host_unlock(void *arg);
void vb_xrc_host_tell(void *arg);

/* For vb_hub_client_on_noted(). */
void vb_xrc_host_noted(void *arg);

/* The NIC is gone. */
void vb_xrc_host_close(struct vb_device *dev);

/* In the child of a fork. */
void vb_xrc_forget(struct vb_device *dev);

#endif
