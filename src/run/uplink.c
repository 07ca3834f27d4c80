/* SPDX-License-Identifier: BSD-2-Clause */
#include "run/uplink.h"

#include <errno.h>
#include <string.h>
#include <time.h>

#include "base/lock.h"
#include "link/ethernet.h"
#include "link/shm.h"
#include "nic/control/store.h"
#include "nic/service/eth/segment.h"
#include "run/process/cancel.h"
#include "run/device.h"
#include "run/process/log.h"
#include "run/xrc.h"

/* The last user of the interface may be exiting, and closes its files one by one: try again. */
enum { BUSY_TRIES = 100 };
static const struct timespec busy_pause = { .tv_nsec = 1000000 };

static struct vb_ethernet *ethernet_of(const struct vb_device *dev)
{
	return atomic_load_explicit(&dev->uplink.eth, memory_order_acquire);
}

static struct vb_segment_table *uplink_table(void *arg)
{
	struct vb_device *dev = arg;

	return vb_xrc_host_store(dev) ? &dev->store->segment : NULL;
}

static bool uplink_open(void *arg)
{
	struct vb_device *dev = arg;
	struct vb_ethernet *eth;
	const char *why;
	int cancel, rc;

	if (!dev->env.ethernet || ethernet_of(dev))
		return ethernet_of(dev) != NULL;
	cancel = vb_cancel_defer();
	rc = vb_ethernet_open(&eth, dev->env.ethernet, &why);
	for (unsigned i = 0; rc == EBUSY && i < BUSY_TRIES; i++) {
		vb_lock_order_wait("the uplink");
		nanosleep(&busy_pause, NULL);
		rc = vb_ethernet_open(&eth, dev->env.ethernet, &why);
	}
	if (rc != 0) {
		vb_log_hint(VB_HINT_UPLINK, "VERBATIM_ETH: %s: %s", dev->env.ethernet,
			    why ? why : strerror(rc));
	} else {
		atomic_store_explicit(&dev->uplink.eth, eth, memory_order_release);
		/* Wake sleepers so that they include its descriptor. */
		vb_progress_wake(dev);
		vb_peers_wake_self(dev);
	}
	vb_cancel_restore(cancel);
	return rc == 0;
}

static unsigned uplink_tx(void *arg, const struct iovec *frames, unsigned count)
{
	struct vb_device *dev = arg;
	int cancel = vb_cancel_defer();
	unsigned sent = vb_ethernet_tx(ethernet_of(dev), frames, count);

	vb_cancel_restore(cancel);
	return sent;
}

const struct vb_host_segment vb_uplink_host = {
	.table = uplink_table, .uplink_open = uplink_open, .uplink_tx = uplink_tx,
};

unsigned vb_uplink_take(struct vb_device *dev)
{
	struct vb_ethernet_frame frames[VB_ETHERNET_FRAMES_MAX];
	struct vb_ethernet *eth = ethernet_of(dev);
	unsigned count;
	int cancel;

	if (!eth)
		return 0;
	cancel = vb_cancel_defer();
	count = vb_ethernet_rx(eth, frames);
	vb_cancel_restore(cancel);
	for (unsigned i = 0; i < count; i++)
		vb_nic_uplink_rx(dev->nic, frames[i].octets, frames[i].bytes, frames[i].mss);
	return count;
}

int vb_uplink_fd(const struct vb_device *dev)
{
	struct vb_ethernet *eth = ethernet_of(dev);

	return eth ? vb_ethernet_fd(eth) : -1;
}

void vb_uplink_close(struct vb_device *dev)
{
	if (ethernet_of(dev))
		vb_ethernet_close(ethernet_of(dev));
	atomic_store(&dev->uplink.eth, NULL);
}

void vb_uplink_forget(struct vb_device *dev)
{
	if (ethernet_of(dev))
		vb_ethernet_forget(ethernet_of(dev));
}
