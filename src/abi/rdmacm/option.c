/* SPDX-License-Identifier: BSD-2-Clause */

/* rdma_set_option(3), and ECE (rdma_set_local_ece(3)). */

#include <errno.h>
#include <string.h>

#include "abi/rdmacm/id.h"

static int flag_set(bool *flag, const void *value, size_t bytes)
{
	int on;

	if (bytes != sizeof(on))
		return EINVAL;
	memcpy(&on, value, sizeof(on));
	*flag = on;
	return 0;
}

static int set_of_id(struct vb_cma_id *id, int name, const void *value, size_t bytes)
{
	struct vb_cma_options *options = &id->options;

	switch (name) {
	case RDMA_OPTION_ID_TOS:
		if (bytes != sizeof(options->tos))
			return EINVAL;
		options->tos = *(const uint8_t *)value;
		options->tos_set = true;
		id->path.tclass = options->tos;
		return 0;
	case RDMA_OPTION_ID_REUSEADDR:
		/* A loopback or wildcard bind is one, too. */
		return id->state > VB_CMA_BOUND ? EINVAL : flag_set(&options->reuse, value, bytes);
	case RDMA_OPTION_ID_AFONLY:
		return id->state > VB_CMA_BOUND ? EINVAL
						: flag_set(&options->afonly, value, bytes);
	case RDMA_OPTION_ID_ACK_TIMEOUT:
		if (bytes != sizeof(options->ack_timeout))
			return EINVAL;
		options->ack_timeout = *(const uint8_t *)value;
		return options->ack_timeout > 31 ? EINVAL : 0;
	default:
		return ENOSYS;
	}
}

/* The first usable path counts; its GIDs have to be those of the id. */
static int set_path(struct vb_cma_id *id, const void *value, size_t bytes)
{
	const struct ibv_path_data *data = value;
	bool told;

	if (!bytes || bytes % sizeof(*data) || id->state != VB_CMA_ADDR_RESOLVED)
		return EINVAL;
	/* Paths come in the form of the SA; on Ethernet nothing of it but flags has a meaning. */
	vb_cma_lock();
	told = vb_cma_tell(id, RDMA_CM_EVENT_ROUTE_RESOLVED, 0);
	id->state = VB_CMA_ROUTE_RESOLVED;
	vb_cma_unlock();
	return told ? 0 : ENOMEM;
}

int rdma_set_option(struct rdma_cm_id *pub, int level, int optname, void *optval, size_t optlen)
{
	struct vb_cma_id *id = vb_cma_of(pub);

	if (!optval)
		return vb_cma_result(EINVAL);
	if (level == RDMA_OPTION_ID)
		return vb_cma_result(set_of_id(id, optname, optval, optlen));
	if (level != RDMA_OPTION_IB || optname != RDMA_OPTION_IB_PATH)
		return vb_cma_result(ENOSYS);
	if (set_path(id, optval, optlen))
		return vb_cma_result(EINVAL);
	return vb_cma_complete(id);
}

int rdma_set_local_ece(struct rdma_cm_id *pub, struct ibv_ece *ece)
{
	struct vb_cma_id *id = vb_cma_of(pub);

	if (!ece || (pub->qp && !pub->qp->context))
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
