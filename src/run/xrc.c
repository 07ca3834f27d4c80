/* SPDX-License-Identifier: BSD-2-Clause */
#include "run/xrc.h"

#include <unistd.h>

#include "base/check.h"
#include "hub/ask/query.h"
#include "nic/control/store.h"
#include "nic/service/xrc/xrc.h"
#include "run/process/cancel.h"

/*
 * How long to try for the store's lock where nobody may wait: others have it for some microseconds,
 * unless they are stopped.
 */
#define TRY_NS 500000u

static struct vb_store *store_open(struct vb_device *dev, int fd)
{
	struct vb_store *store = vb_robust_memory_map(fd, sizeof(*store));

	if (!store)
		return NULL;
	if (vb_xrc_store_is_ours(&store->xrc) &&
	    !vb_robust_open(&dev->xrc_lock, fd, &store->xrc.held))
		return store;
	vb_robust_memory_unmap(store, sizeof(*store));
	return NULL;
}

struct vb_xrc_store *vb_xrc_host_store(void *arg)
{
	struct vb_device *dev = arg;
	int cancel = vb_cancel_defer(), fd;

	if (!dev->store && vb_hub_client_store(dev->hub, &fd) == 0) {
		dev->store = store_open(dev, fd);
		close(fd);
	}
	vb_cancel_restore(cancel);
	return dev->store ? &dev->store->xrc : NULL;
}

static void store_lock(void *arg)
{
	struct vb_device *dev = arg;
	int cancel = vb_cancel_defer();

	if (vb_robust_take(&dev->xrc_lock) == VB_ROBUST_INHERITED)
		vb_xrc_store_repair(&dev->store->xrc);
	vb_cancel_restore(cancel);
}

static bool store_try_lock(void *arg)
{
	struct vb_device *dev = arg;
	uint64_t until_ns = vb_now_ns() + TRY_NS;
	int cancel = vb_cancel_defer();
	enum vb_robust done;

	do
		done = vb_robust_try(&dev->xrc_lock);
	while (done == VB_ROBUST_BUSY && vb_now_ns() < until_ns);
	if (done == VB_ROBUST_INHERITED)
		vb_xrc_store_repair(&dev->store->xrc);
	vb_cancel_restore(cancel);
	return done != VB_ROBUST_BUSY;
}

static void store_unlock(void *arg)
{
	struct vb_device *dev = arg;
	int cancel = vb_cancel_defer();

	vb_robust_drop(&dev->xrc_lock);
	vb_cancel_restore(cancel);
}

static void tell(void *arg)
{
	int cancel = vb_cancel_defer();

	vb_hub_note();
	vb_cancel_restore(cancel);
}

const struct vb_host_xrc vb_xrc_host = {
	.store = vb_xrc_host_store, .lock = store_lock, .try_lock = store_try_lock,
	.unlock = store_unlock, .tell = tell,
};

void vb_xrc_host_noted(void *arg)
{
	struct vb_device *dev = arg;

	if (dev->nic)
		vb_xrc_look(dev->nic);
}

void vb_xrc_host_close(struct vb_device *dev)
{
	if (!dev->store)
		return;
	vb_robust_close(&dev->xrc_lock);
	vb_robust_memory_unmap(dev->store, sizeof(*dev->store));
	dev->store = NULL;
}

void vb_xrc_forget(struct vb_device *dev)
{
	if (dev->store)
		vb_robust_forget(&dev->xrc_lock);
}
