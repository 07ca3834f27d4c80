/* SPDX-License-Identifier: BSD-2-Clause */

/* The devices, which the library opens for its own use, and for whoever asks for the list. */

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "abi/check/check.h"
#include "abi/rdmacm/device.h"
#include "abi/rdmacm/heard.h"
#include "abi/rdmacm/id.h"
#include "abi/verbs/abi.h"
#include "nic/control/nic.h"
#include "run/cm.h"
#include "run/device.h"

/* What a REQ has room for; one more means as many as there are. */
enum { DEPTH_MAX = RDMA_MAX_RESP_RES - 1 };

static struct vb_cm *cm; /* locked */

/* A device as ids are at it, by its row. */
struct home {
	struct ibv_context *verbs;
	struct ibv_pd *pd;	/* of ids that bring none */
	struct ibv_xrcd *xrcd;	/* the same; NULL: not yet */
};

static struct {
	pthread_mutex_t mutex;
	struct home home[VB_TOPOLOGY_DEVICES_MAX];
	unsigned count;
	struct vb_device *run; /* with the connection manager: it has all addresses */
	uint8_t depth_max, ack_delay;
} device = {.mutex = PTHREAD_MUTEX_INITIALIZER};

static int home_open(struct home *home, struct ibv_device *which)
{
	int rc;

	*home = (struct home){ .verbs = ibv_open_device(which) };
	if (!home->verbs)
		return errno ? errno : ENODEV;
	home->pd = ibv_alloc_pd(home->verbs);
	if (!home->pd) {
		rc = errno;
		ibv_close_device(home->verbs);
		return rc;
	}
	vb_check_is_ours(home->verbs);
	vb_check_is_ours(home->pd);
	return 0;
}

static void homes_close(struct home *home, unsigned count)
{
	for (unsigned i = 0; i < count; i++) {
		ibv_dealloc_pd(home[i].pd);
		ibv_close_device(home[i].verbs);
	}
}

/* What no device may exceed, since an id may come to any. */
static void bounds_find(unsigned count)
{
	struct ibv_device_attr attr;

	device.depth_max = DEPTH_MAX;
	for (unsigned i = 0; i < count; i++) {
		ibv_query_device(device.home[i].verbs, &attr);
		if (attr.max_qp_rd_atom < device.depth_max)
			device.depth_max = (uint8_t)attr.max_qp_rd_atom;
		device.ack_delay = attr.local_ca_ack_delay;
	}
}

static int device_open(void)
{
	int count = 0, rc;
	unsigned opened = 0;
	struct ibv_device **list = ibv_get_device_list(&count);

	rc = list && count ? 0 : ENODEV;
	while (!rc && opened < (unsigned)count) {
		rc = home_open(&device.home[opened], list[opened]);
		opened += !rc;
	}
	ibv_free_device_list(list);
	/* A single device has all addresses itself. */
	if (!rc && count > 1)
		rc = vb_device_open(VB_DEVICE_WHOLE, &device.run);
	else if (!rc)
		device.run = vb_device_of(device.home[0].verbs);
	if (rc) {
		homes_close(device.home, opened);
		return rc;
	}
	vb_cm_begin(device.run, &vb_cma_user);
	bounds_find(opened);
	device.count = opened;
	return 0;
}

/* The child of a fork has none of its parent's. */
static bool is_gone(void)
{
	return device.count && vb_device_is_gone(device.run);
}

int vb_cma_device(struct ibv_context **verbs)
{
	int rc = 0;

	pthread_mutex_lock(&device.mutex);
	if (!device.count || is_gone()) {
		device.count = 0;
		rc = device_open();
	}
	if (verbs)
		*verbs = rc ? NULL : device.home[0].verbs;
	pthread_mutex_unlock(&device.mutex);
	return rc;
}

uint8_t vb_cma_depth_max(void)
{
	return device.depth_max;
}

uint8_t vb_cma_ack_delay(void)
{
	return device.ack_delay;
}

struct vb_device *vb_cma_run(void)
{
	return device.run;
}

bool vb_cma_is_gone(void)
{
	return !device.count || is_gone();
}

void vb_cma_lock(void)
{
	cm = vb_cm_lock(vb_cma_run());
}

struct vb_cm *vb_cma_cm(void)
{
	return cm;
}

void vb_cma_unlock(void)
{
	vb_cm_unlock(vb_cma_run());
}

void vb_cma_attach(struct vb_cma_id *id, const uint8_t gid[VB_GID_BYTES])
{
	const struct home *home = &device.home[0];

	for (unsigned i = 0; i < device.count && device.count > 1; i++) {
		if (vb_nic_gid_find(vb_abi_nic(device.home[i].verbs), gid) < VB_GIDS_MAX)
			home = &device.home[i];
	}
	id->pub.verbs = home->verbs;
	id->pub.port_num = 1;
	if (!id->pub.pd)
		id->pub.pd = home->pd;
}

/* The place of a context among the homes; the first if it is the application's own. */
static struct home *home_of(const struct ibv_context *verbs)
{
	for (unsigned i = 0; i < device.count; i++) {
		if (device.home[i].verbs == verbs)
			return &device.home[i];
	}
	return &device.home[0];
}

struct ibv_xrcd *vb_cma_xrcd(const struct ibv_context *verbs)
{
	struct ibv_xrcd_init_attr attr = {
		.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS,
		.fd = -1,
		.oflags = O_CREAT,
	};
	struct home *home = home_of(verbs);

	pthread_mutex_lock(&device.mutex);
	if (!home->xrcd)
		home->xrcd = ibv_open_xrcd(home->verbs, &attr);
	vb_check_is_ours(home->xrcd);
	pthread_mutex_unlock(&device.mutex);
	return home->xrcd;
}

int vb_cma_gid_index(const uint8_t gid[VB_GID_BYTES])
{
	for (unsigned i = 0; i < device.count; i++) {
		unsigned index = vb_cm_gid_index(vb_device_of(device.home[i].verbs), gid);

		if (index < VB_GIDS_MAX)
			return (int)index;
	}
	return -1;
}

int vb_cma_result(int rc)
{
	if (!rc)
		return 0;
	errno = rc;
	return -1;
}

struct ibv_context **rdma_get_devices(int *num_devices)
{
	int rc = vb_cma_device(NULL);
	struct ibv_context **list = rc ? NULL : calloc(device.count + 1u, sizeof(*list));

	if (num_devices)
		*num_devices = list ? (int)device.count : 0;
	if (!list) {
		errno = rc ? rc : ENOMEM;
		return NULL;
	}
	for (unsigned i = 0; i < device.count; i++)
		list[i] = device.home[i].verbs;
	return list;
}

void rdma_free_devices(struct ibv_context **list)
{
	free(list);
}
