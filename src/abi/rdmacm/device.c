/* SPDX-License-Identifier: BSD-2-Clause */

/* The device, which the library opens for its own use, and for whoever asks for the list. */

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "abi/check/check.h"
#include "abi/rdmacm/device.h"
#include "abi/rdmacm/heard.h"
#include "abi/rdmacm/id.h"
#include "abi/verbs/abi.h"
#include "run/cm.h"

/* What a REQ has room for; one more means as many as there are. */
enum { DEPTH_MAX = RDMA_MAX_RESP_RES - 1 };

static struct vb_cm *cm; /* locked */

static struct {
	pthread_mutex_t mutex;
	struct ibv_context *verbs;
	struct ibv_pd *pd; /* of ids that bring none */
	uint8_t depth_max, ack_delay;
	struct ibv_xrcd *xrcd; /* of ids that bring none; NULL: not yet */
} device = {.mutex = PTHREAD_MUTEX_INITIALIZER};

static int device_open(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *verbs = list && list[0] ? ibv_open_device(list[0]) : NULL;
	struct ibv_device_attr attr;
	int rc = verbs ? 0 : errno ? errno : ENODEV;

	ibv_free_device_list(list);
	if (rc)
		return rc;
	device.pd = ibv_alloc_pd(verbs);
	if (!device.pd) {
		rc = errno;
		ibv_close_device(verbs);
		return rc;
	}
	vb_check_is_ours(verbs);
	vb_check_is_ours(device.pd);
	vb_cm_begin(vb_device_of(verbs), &vb_cma_user);
	ibv_query_device(verbs, &attr);
	device.depth_max = (uint8_t)(attr.max_qp_rd_atom < DEPTH_MAX ? attr.max_qp_rd_atom
								     : DEPTH_MAX);
	device.ack_delay = attr.local_ca_ack_delay;
	device.verbs = verbs;
	device.xrcd = NULL;
	return 0;
}

/* The child of a fork has none of its parent's. */
static bool is_gone(void)
{
	return device.verbs && vb_abi_is_gone(device.verbs);
}

int vb_cma_device(struct ibv_context **verbs)
{
	int rc = 0;

	pthread_mutex_lock(&device.mutex);
	if (!device.verbs || is_gone())
		rc = device_open();
	if (verbs)
		*verbs = rc ? NULL : device.verbs;
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
	return vb_device_of(device.verbs);
}

bool vb_cma_is_gone(void)
{
	return !device.verbs || is_gone();
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

void vb_cma_attach(struct vb_cma_id *id)
{
	id->pub.verbs = device.verbs;
	id->pub.port_num = 1;
	if (!id->pub.pd)
		id->pub.pd = device.pd;
}

struct ibv_xrcd *vb_cma_xrcd(void)
{
	struct ibv_xrcd_init_attr attr = {
		.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS,
		.fd = -1,
		.oflags = O_CREAT,
	};

	pthread_mutex_lock(&device.mutex);
	if (!device.xrcd)
		device.xrcd = ibv_open_xrcd(device.verbs, &attr);
	vb_check_is_ours(device.xrcd);
	pthread_mutex_unlock(&device.mutex);
	return device.xrcd;
}

int vb_cma_gid_index(const uint8_t gid[VB_GID_BYTES])
{
	unsigned index = vb_cm_gid_index(vb_cma_run(), gid);

	return index < VB_GIDS_MAX ? (int)index : -1;
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
	struct ibv_context **list, *verbs;
	int rc = vb_cma_device(&verbs);

	if (num_devices)
		*num_devices = rc ? 0 : 1;
	list = rc ? NULL : calloc(2, sizeof(*list));
	if (!list) {
		errno = rc ? rc : ENOMEM;
		return NULL;
	}
	list[0] = verbs;
	return list;
}

void rdma_free_devices(struct ibv_context **list)
{
	free(list);
}
