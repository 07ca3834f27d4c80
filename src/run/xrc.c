/* SPDX-License-Identifier: BSD-2-Clause */
#include "run/xrc.h"

#include <unistd.h>

#include "base/check.h"
#include "hub/query.h"
#include "link/robust.h"
#include "nic/xrc.h"
#include "run/cancel.h"

_Static_assert((int)VB_ROBUST_LOCK_BYTES <= (int)VB_XRC_LOCK_BYTES, "the lock has room");

struct vb_xrc_store *vb_xrc_host_store(void *arg)
{
	struct vb_device *dev = arg;
	int cancel = vb_cancel_defer(), fd;

	if (!dev->xrc_store && vb_hub_client_store(dev->hub, &fd) == 0) {
		dev->xrc_store = vb_robust_memory_map(fd, sizeof(*dev->xrc_store));
		close(fd);
		if (dev->xrc_store && !vb_xrc_store_is_ours(dev->xrc_store))
			vb_xrc_host_close(dev);
	}
	vb_cancel_restore(cancel);
	return dev->xrc_store;
}

void vb_xrc_host_lock(void *arg)
{
	struct vb_device *dev = arg;

	if (vb_robust_take(dev->xrc_store->lock) == VB_ROBUST_INHERITED)
		vb_xrc_store_repair(dev->xrc_store);
}

void vb_xrc_host_unlock(void *arg)
{
	struct vb_device *dev = arg;

	vb_robust_drop(dev->xrc_store->lock);
}

void vb_xrc_host_tell(void *arg)
{
	int cancel = vb_cancel_defer();

	vb_hub_note();
	vb_cancel_restore(cancel);
}

void vb_xrc_host_noted(void *arg)
{
	struct vb_device *dev = arg;

	if (dev->nic)
		vb_xrc_look(dev->nic);
}

void vb_xrc_host_close(struct vb_device *dev)
{
	if (dev->xrc_store)
		vb_robust_memory_unmap(dev->xrc_store, sizeof(*dev->xrc_store));
	dev->xrc_store = NULL;
}
