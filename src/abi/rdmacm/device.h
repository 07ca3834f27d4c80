/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_ABI_RDMACM_DEVICE_H
#define VB_ABI_RDMACM_DEVICE_H

/* The devices that ids are at, and the lock of all ids. */

#include <rdma/rdma_cma.h>
#include <stdint.h>

#include "abi/rdmacm/id.h"

/* The devices, opened by whoever is first; *verbs is the first. 0 or an errno. */
int vb_cma_device(struct ibv_context **verbs);

void vb_cma_lock(void);
void vb_cma_unlock(void);

/* The id is from now on at the device that has this address; the first if none has. */
void vb_cma_attach(struct vb_cma_id *id, const uint8_t gid[VB_GID_BYTES]);

/* The XRC domain of a device's ids that bring none. NULL with errno. */
struct ibv_xrcd *vb_cma_xrcd(const struct ibv_context *verbs);

/* The index of an address of ours in its device's table, or -1. */
int vb_cma_gid_index(const uint8_t gid[VB_GID_BYTES]);

/* How many READs and atomics may be under way, either way. */
uint8_t vb_cma_depth_max(void);

/* How long it may take to acknowledge, as an exponent. */
uint8_t vb_cma_ack_delay(void);

struct vb_device *vb_cma_run(void);

/* There is no device, or it was the parent's. */
bool vb_cma_is_gone(void);

/* Locked. */
struct vb_cm *vb_cma_cm(void);

/* -1 with errno, or 0. */
int vb_cma_result(int rc);

#endif
