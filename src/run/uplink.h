/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_RUN_UPLINK_H
#define VB_RUN_UPLINK_H

/* What joins the Ethernet segment (nic/service/eth/segment.h) with an interface of the host's. */

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/uio.h>

struct vb_device;
struct vb_ethernet;
struct vb_segment_table;

struct vb_uplink {
	_Atomic(struct vb_ethernet *) eth; /* NULL: there is none; else until the device closes */
};

/*
 * What the NIC asks of its host; arg is the struct vb_device. Frames travel through rings, so
 * whoever has none is not on the segment.
 */
extern const struct vb_host_segment vb_uplink_host;

/* Take in what has come: the number of frames. Rx right held. */
unsigned vb_uplink_take(struct vb_device *dev);

/* The descriptor that tells of frames, -1: none. */
int vb_uplink_fd(const struct vb_device *dev);

/* The NIC is gone. */
void vb_uplink_close(struct vb_device *dev);

/* In a forked child. */
void vb_uplink_forget(struct vb_device *dev);

#endif
