/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_RUN_DEVICE_H
#define VB_RUN_DEVICE_H

/*
 * The devices of this process: where a NIC, its links and the hub meet the operating system.
 *
 * There is one for each row of the table (run/process/topology.h). The first open makes it:
 * connects to the hub, leases a slot, puts a link on the slot's socket and starts a progress
 * thread. The last close undoes all of that.
 *
 * A forked child has no progress thread and must not touch its parent's slot. The child's copy of
 * the device is gone from the start: callers ask vb_device_is_gone() before any other call on the
 * device or on the NIC's objects (their locks may have been held when the parent forked), and do
 * nothing or fail with EIO. The child may open the device anew and then has a NIC of its own.
 */

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/lent.h"
#include "hub/client.h"
#include "hub/client_requests.h"
#include "link/link.h"
#include "link/robust.h"
#include "nic/core/nic.h"
#include "run/process/env.h"
#include "topology/persona.h"
#include "topology/table.h"
#include "run/capture/capture.h"
#include "run/cm.h"
#include "run/address/gids.h"
#include "run/faults/faults.h"
#include "run/links/links.h"
#include "run/links/port.h"
#include "run/peers.h"
#include "run/progress.h"
#include "run/share.h"
#include "run/uplink.h"

struct vb_store;

/* Beside the rows of the table: a device with all addresses, for the connection manager. */
enum { VB_DEVICE_WHOLE = VB_TOPOLOGY_DEVICES_MAX, VB_DEVICES };

/* Which device it is. */
struct vb_device_said {
	unsigned row;
	struct vb_persona persona;
};

struct vb_device {
	struct vb_device_said said;
	bool gone;
	struct vb_device *next; /* list of devices that are gone (forked children only) */
	unsigned opens;
	struct vb_env env;
	struct vb_host_order order; /* if VERBATIM_ORDER is set */
	struct vb_nic *nic;
	struct vb_hub_client *hub;

	/*
	 * Ports are only added and never change afterwards: [0, port_count) is read without a lock.
	 */
	struct vb_port ports[VB_SLOTS_PER_NIC_MAX];
	_Atomic unsigned port_count;
	vb_lock lease_lock;
	struct vb_hub_slot first_slot; /* leased at open, given to the NIC when it asks */
	bool first_is_taken;

	vb_lock gids_lock;
	struct vb_gids gids;

	struct vb_peers peers;
	struct vb_links_told links;
	struct vb_share share;
	struct vb_uplink uplink;
	struct vb_store *store; /* NULL if it is not mapped (xrc.h) */
	struct vb_robust_lock xrc_lock;	/* guards the store */
	struct vb_cm_device cm;
	struct vb_capture capture;
	struct vb_progress progress;
	struct vb_faults *faults; /* NULL: there is no script */
};

/*
 * Opens the device of a row of the table, or VB_DEVICE_WHOLE. Returns 0, an errno of the hub
 * (hub/client.h), ENOMEM, EMFILE, EAGAIN (no thread), or EINVAL: a setting is invalid (the log says
 * which). Any thread.
 */
VB_LENT int vb_device_open(unsigned row, struct vb_device **dev);

/* Logs why the device, or a part of a context, does not open. Returns rc. */
int vb_device_failed(int rc);

/* All contexts of this open must be destroyed. Does nothing in a forked child. */
void vb_device_close(struct vb_device *dev);

static inline bool vb_device_is_gone(const struct vb_device *dev)
{
	return __builtin_expect(dev->gone, false);
}

/* Brings the NIC's GID table up to date. Cheap if nothing changed. Any thread. */
void vb_device_gids_refresh(struct vb_device *dev);

/* CLOCK_MONOTONIC in ns. */
uint64_t vb_now_ns(void);

#endif
