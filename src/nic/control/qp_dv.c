/* SPDX-License-Identifier: BSD-2-Clause */
#include "nic/control/qp_dv.h"

#include <errno.h>

#include "base/check.h"
#include "nic/control/qp.h"
#include "nic/service/dc/dc.h"

enum {
	RC = 1 << 0,
	UC = 1 << 1,
	UD = 1 << 2,
	XRC = 1 << 3,
	RAW = 1 << 4,
	DCI = 1 << 5,
	DCT = 1 << 6,
	ANY = (1 << 7) - 1,
};

/*
 * On which QPs a flag means something. done: it has its effect, wherever it means something.
 * mlx5dv_create_qp(3) leaves the types open; they follow from what a flag is about: credits are in
 * the acknowledgements of RC alone, tunnels and loopback are about Ethernet frames, and the
 * builder's operations are documented for RC, "the same" being available for a DCI
 * (mlx5dv_wr_post(3)).
 */
static const struct flag_row {
	uint32_t flag;
	unsigned types;
	bool done;
} flag_rows[] = {
	{ VB_QP_SCATTER_TO_CQE_OFF, ANY, true },
	{ VB_QP_SCATTER_TO_CQE_ON, ANY, true },
	{ VB_QP_PACKET_CREDITS, RC, true },
	{ VB_QP_TUNNEL_OFFLOADS, RAW, true },
	{ VB_QP_LOOPBACK_UC, RAW, true },
	{ VB_QP_LOOPBACK_MC, RAW, true },
	{ VB_QP_MR_INTERLEAVED, RC | DCI, true },
	{ VB_QP_MR_LIST, RC | DCI, true },
	{ VB_QP_MKEY_CONFIGURE, RC | DCI, true },
	{ VB_QP_MEMCPY, RC | DCI, true },
	{ VB_QP_RAW_WQE, RC | DCI, false },
};

static unsigned type_bit(enum ibv_qp_type type, const struct vb_dc_attr *dc)
{
	switch ((int)type) {
	case IBV_QPT_RC:
		return RC;
	case IBV_QPT_UC:
		return UC;
	case IBV_QPT_UD:
		return UD;
	case IBV_QPT_XRC_SEND:
	case IBV_QPT_XRC_RECV:
		return XRC;
	case IBV_QPT_RAW_PACKET:
		return RAW;
	case IBV_QPT_DRIVER:
		return dc->target ? DCT : DCI;
	default:
		return 0;
	}
}

static int flags_check(uint32_t flags, unsigned type)
{
	static const uint32_t both = VB_QP_SCATTER_TO_CQE_OFF | VB_QP_SCATTER_TO_CQE_ON;
	uint32_t known = 0;

	if ((flags & both) == both)
		return EINVAL;
	for (size_t i = 0; i < VB_ARRAY_LEN(flag_rows); i++) {
		known |= flag_rows[i].flag;
		if ((flags & flag_rows[i].flag) && !(flag_rows[i].types & type))
			return EINVAL;
	}
	for (size_t i = 0; i < VB_ARRAY_LEN(flag_rows); i++) {
		if ((flags & flag_rows[i].flag) && !flag_rows[i].done)
			return EOPNOTSUPP;
	}
	return flags & ~known ? EINVAL : 0;
}

/* An initiator receives nothing; whatever SRQ it names is nobody's. */
static int dc_check(const struct ibv_qp_init_attr_ex *attr, const struct vb_dc_attr *dc)
{
	if ((attr->comp_mask & ~(uint32_t)IBV_QP_INIT_ATTR_SEND_OPS_FLAGS) != IBV_QP_INIT_ATTR_PD)
		return EINVAL;
	if (dc->target)
		return attr->srq && attr->recv_cq && attr->comp_mask == IBV_QP_INIT_ATTR_PD
			       ? 0
			       : EINVAL;
	return attr->cap.max_recv_wr || attr->cap.max_recv_sge ? EINVAL : 0;
}

int vb_qp_create_dv(struct ibv_qp_init_attr_ex *attr, const struct vb_qp_dv_attr *dv,
		    struct vb_qp **out)
{
	struct vb_qp *qp;
	unsigned type;
	int err;

	if ((attr->qp_type == IBV_QPT_DRIVER) != (dv->dc != NULL))
		return EINVAL;
	type = type_bit(attr->qp_type, dv->dc);
	if (!type)
		return EOPNOTSUPP;
	err = flags_check(dv->flags, type);
	if (!err && dv->dc)
		err = dc_check(attr, dv->dc);
	if (err)
		return err;
	err = dv->dc ? vb_qp_create_dc(attr, dv->dc, dv->flags, &qp)
		     : vb_qp_create_with(attr, dv->flags, &qp);
	if (err)
		return err;
	if (!(dv->flags & VB_QP_SCATTER_TO_CQE_OFF))
		err = vb_parcels_make(qp, dv->flags & VB_QP_SCATTER_TO_CQE_ON);
	if (err) {
		vb_qp_destroy(qp);
		vb_qp_free(qp);
		return err;
	}
	*out = qp;
	return 0;
}

/* Of mlx5 too: RoCEv2's source ports are the dynamic ones (RFC 6335). */
#define SPORT_MIN 0xc000

int vb_qp_sport_choose(struct vb_qp *qp, uint16_t port)
{
	const struct vb_nic_host *host = &qp->nic->host;
	enum ibv_qp_type type = qp->ibv.qp.qp_type;
	int err = 0;

	if (type != IBV_QPT_RC && type != IBV_QPT_UC)
		return EOPNOTSUPP;
	if (port < SPORT_MIN)
		return EINVAL;
	vb_lock_take(&qp->lock);
	if (vb_qp_state(qp) != IBV_QPS_RTS)
		err = EOPNOTSUPP;
	else if (!qp->peer && !host->sport_choose)
		err = EOPNOTSUPP;
	else if (!qp->peer)
		err = host->sport_choose(host->arg, (uint16_t)(qp->ibv.qp.qp_num >> VB_INDEX_BITS),
					 &qp->path, (uint16_t)(qp->dqpn >> VB_INDEX_BITS), port);
	if (!err && !qp->peer)
		qp->path.sport = port;
	vb_lock_drop(&qp->lock);
	return err;
}

/* mlx5's bits for VXLAN, GRE, MPLS in GRE and in UDP: what eth/parse.h looks into. */
#define TUNNELS (1u << 0 | 1u << 1 | 1u << 3 | 1u << 4)

void vb_qp_dv_query(struct vb_nic *nic, struct vb_dv_caps *caps)
{
	*caps = (struct vb_dv_caps){
		.tunnels = nic->host.segment ? TUNNELS : 0,
		.dc = true,
		/* Whoever fetches a page does not ask for whom. */
		.dc_odp = IBV_ODP_SUPPORT_SEND | IBV_ODP_SUPPORT_WRITE | IBV_ODP_SUPPORT_READ |
			  IBV_ODP_SUPPORT_ATOMIC | IBV_ODP_SUPPORT_SRQ_RECV,
		.dc_streams_log_max = VB_DCI_STREAMS_LOG_MAX,
		.dc_errored_log_max = VB_DCI_ERRORED_LOG_MAX,
		.memcpy_bytes_max = VB_MEMCPY_BYTES_MAX,
	};
	for (size_t i = 0; i < VB_ARRAY_LEN(flag_rows); i++) {
		if (flag_rows[i].done)
			caps->flags |= flag_rows[i].flag;
	}
}
