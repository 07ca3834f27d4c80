/* SPDX-License-Identifier: BSD-2-Clause */
#include "nic/service/services.h"

#include <errno.h>

#include "base/refusal.h"
#include "nic/core/internal.h"
#include "nic/service/dc/dc.h"
#include "nic/service/eth/raw.h"
#include "nic/service/rc/rc.h"
#include "nic/service/srd/srd.h"
#include "nic/service/uc/uc.h"
#include "nic/service/ud/ud.h"
#include "nic/service/xrc/xrc.h"

const struct vb_service *vb_service_of(enum ibv_qp_type type, const struct vb_dc_attr *dc)
{
	switch ((int)type) {
	case IBV_QPT_RC:
		return &vb_service_rc;
	case IBV_QPT_UC:
		return &vb_service_uc;
	case IBV_QPT_UD:
		return &vb_service_ud;
	case IBV_QPT_RAW_PACKET:
		return &vb_service_raw;
	case IBV_QPT_XRC_SEND:
		return &vb_service_xrc_send;
	case IBV_QPT_XRC_RECV:
		return &vb_service_xrc_recv;
	case IBV_QPT_DRIVER:
		if (dc && dc->srd)
			return &vb_service_srd;
		return !dc ? NULL : dc->target ? &vb_service_dc_target : &vb_service_dc_initiator;
	default:
		vb_refuse(EOPNOTSUPP, "qp_type is %d, and there is no such type here", (int)type);
		return NULL;
	}
}

const struct vb_service *vb_service_at(const struct ibv_pd *pd, enum ibv_qp_type type,
				       const struct vb_dc_attr *dc)
{
	if (type == IBV_QPT_UD && pd && vb_nic_offers_srd(vb_nic_of(pd->context)))
		return &vb_service_ud_efa;
	return vb_service_of(type, dc);
}
