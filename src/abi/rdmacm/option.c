/* SPDX-License-Identifier: BSD-2-Clause */

/* rdma_set_option(3), and ECE (rdma_set_local_ece(3)). */

#include <errno.h>
#include <string.h>

#include "abi/rdmacm/addr.h"
#include "abi/rdmacm/channel.h"
#include "abi/rdmacm/device.h"
#include "abi/rdmacm/id.h"

enum { ACK_TIMEOUT_MAX = 31 };

static int flag_set(bool *flag, const void *value, size_t bytes)
{
	int on;

	if (bytes != sizeof(on))
		return EINVAL;
	memcpy(&on, value, sizeof(on));
	*flag = on;
	return 0;
}

static int octet_set(uint8_t *octet, const void *value, size_t bytes, uint8_t max)
{
	if (bytes != sizeof(*octet) || *(const uint8_t *)value > max)
		return EINVAL;
	*octet = *(const uint8_t *)value;
	return 0;
}

static int tos_set(struct vb_cma_id *id, const void *value, size_t bytes)
{
	int rc = octet_set(&id->options.tos, value, bytes, UINT8_MAX);

	if (rc)
		return rc;
	id->path.tclass = id->options.tos;
	return 0;
}

static int set_of_id(struct vb_cma_id *id, int name, const void *value, size_t bytes)
{
	struct vb_cma_options *options = &id->options;

	switch (name) {
	case RDMA_OPTION_ID_TOS:
		return tos_set(id, value, bytes);
	case RDMA_OPTION_ID_REUSEADDR:
		/* A loopback or wildcard bind is one, too. */
		return id->state > VB_CMA_BOUND ? EINVAL : flag_set(&options->reuse, value, bytes);
	case RDMA_OPTION_ID_AFONLY:
		return id->state > VB_CMA_BOUND ? EINVAL
						: flag_set(&options->afonly, value, bytes);
	case RDMA_OPTION_ID_ACK_TIMEOUT:
		return octet_set(&options->ack_timeout, value, bytes, ACK_TIMEOUT_MAX);
	default:
		return ENOSYS;
	}
}

/*
 * One of the paths has to lead there and back, and be for messages of the connection manager as
 * well. On Ethernet nothing else of it has a meaning.
 */
static int set_path(struct vb_cma_id *id, const void *value, size_t bytes)
{
	static const uint32_t whole = IBV_PATH_FLAG_GMP | IBV_PATH_FLAG_PRIMARY |
				      IBV_PATH_FLAG_BIDIRECTIONAL;
	const struct ibv_path_data *data = value;
	size_t count = bytes / sizeof(*data);

	if (!bytes || bytes % sizeof(*data))
		return EINVAL;
	while (count > 0 && data[count - 1].flags != whole)
		count--;
	return count > 0 ? vb_cma_route_set(id) : EINVAL;
}

int rdma_set_option(struct rdma_cm_id *pub, int level, int optname, void *optval, size_t optlen)
{
	struct vb_cma_id *id = vb_cma_of(pub);
	int rc;

	if (!optval)
		return vb_cma_result(EINVAL);
	if (level == RDMA_OPTION_ID)
		return vb_cma_result(set_of_id(id, optname, optval, optlen));
	if (level != RDMA_OPTION_IB || optname != RDMA_OPTION_IB_PATH)
		return vb_cma_result(ENOSYS);
	rc = set_path(id, optval, optlen);
	return rc ? vb_cma_result(rc) : vb_cma_complete(id);
}

int rdma_set_local_ece(struct rdma_cm_id *pub, struct ibv_ece *ece)
{
	struct vb_cma_id *id = vb_cma_of(pub);

	if (!ece)
		return vb_cma_result(EINVAL);
	id->local_ece = *ece;
	return 0;
}

int rdma_get_remote_ece(struct rdma_cm_id *pub, struct ibv_ece *ece)
{
	if (!ece)
		return vb_cma_result(EINVAL);
	*ece = vb_cma_of(pub)->remote_ece;
	ece->comp_mask = 0;
	return 0;
}
