/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_RUN_UPLINK_H
#define VB_RUN_UPLINK_H

/* Joins the Ethernet segment (nic/service/eth/segment.h) with an interface of the host. */

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/uio.h>

struct vb_device;
struct vb_ethernet;
struct vb_segment_table;

struct vb_uplink {
	/* NULL: none; once set it stays until the device closes */
	_Atomic(struct vb_ethernet *) eth;
};

/*
 * What the NIC asks of its host; arg is the struct vb_device. Frames of the segment travel through
 * rings: a process without rings is not on the segment.
 */
extern const struct vb_host_segment vb_uplink_host;

/* Takes in frames from the interface. Returns their number. Rx right held. */
unsigned vb_uplink_take(struct vb_device *dev);

/* The descriptor that becomes readable when frames come; -1: none. */
int vb_uplink_fd(const struct vb_device *dev);

/* After the NIC is destroyed. */
void vb_uplink_close(struct vb_device *dev);

/* In a forked child: closes the descriptor. */
void vb_uplink_forget(struct vb_device *dev);

#endif
