/* SPDX-License-Identifier: BSD-2-Clause */
#include "abi/verbs/ah.h"

#include <string.h>

#include "abi/verbs/abi.h"
#include "nic/control/nic.h"
#include "nic/core/ah.h"
#include "run/process/log.h"
#include "wire/grh.h"
#include "tape/calls.h"

enum { HOP_LIMIT_OF_ANSWERS = 255 };

/* What is wrong with the GIDs of an address; NULL: nothing. */
static const char *gid_fault(struct vb_nic *nic, const struct ibv_ah_attr *attr)
{
	static const uint8_t zero[VB_GID_BYTES];
	struct vb_gid_entry entry;

	if (!attr->is_global)
		return "the address has no GID (ah_attr.is_global is 0), and an Ethernet port "
		       "needs one";
	if (vb_nic_gid_get(nic, attr->grh.sgid_index, &entry) || !entry.mtu_bytes)
		return "this side has no GID of that index (ah_attr.grh.sgid_index)";
	if (entry.v1)
		return "this side's GID of that index (ah_attr.grh.sgid_index) is one of RoCE v1, "
		       "which is not spoken: the next index is mostly the same address in RoCE v2";
	if (!memcmp(attr->grh.dgid.raw, zero, sizeof(zero)))
		return "the other side's GID is zero (ah_attr.grh.dgid)";
	if (vb_gid_is_ipv4(entry.gid) != vb_gid_is_ipv4(attr->grh.dgid.raw))
		return "the GID of one side is an IPv4 address, that of the other an IPv6 address";
	return NULL;
}

void vb_abi_look_at_gids(const char *call, struct vb_nic *nic, const struct ibv_ah_attr *attr)
{
	const char *fault = gid_fault(nic, attr);

	if (fault)
		vb_log_hint(VB_HINT_GID,
			    "%s: %s: most programs take a GID's index by -g or -x, on both sides; "
			    "`verbatim devices` shows which there are",
			    call, fault);
}

struct ibv_ah *ibv_create_ah(struct ibv_pd *pd, struct ibv_ah_attr *attr)
{
	struct vb_ah *ah;
	int rc = vb_abi_check(PD, pd);

	if (rc == 0) {
		vb_device_gids_refresh(vb_device_of(pd->context));
		rc = vb_taped_ah_create((struct vb_pd *)pd, attr, &ah);
	}
	if (rc == ENOENT) {
		vb_abi_result(rc);
		return NULL;
	}
	if (rc != 0) {
		vb_abi_look_at_gids("ibv_create_ah", vb_abi_nic(pd->context), attr);
		vb_abi_result(rc);
		return NULL;
	}
	vb_known_add(VB_KNOWN_AH, &ah->ibv);
	return &ah->ibv;
}

int ibv_destroy_ah(struct ibv_ah *ah)
{
	int rc = vb_known_end(VB_KNOWN_AH, ah);

	if (rc == 0 && !vb_abi_is_gone(ah->context))
		rc = vb_known_ended(VB_KNOWN_AH, ah, vb_taped_ah_destroy((struct vb_ah *)ah));
	return vb_abi_result(rc);
}

/* The reply goes to where the header came from, from where it went. */
static int route_from_grh(struct vb_nic *nic, const struct ibv_grh *grh,
			  struct ibv_global_route *route)
{
	struct vb_grh parsed;
	unsigned index;

	if (!vb_grh_parse(&parsed, (const uint8_t *)grh))
		return vb_refuse(EINVAL, "the first 40 octets of the receive buffer are no GRH: is "
					 "grh the buffer's address, and the QP of type UD?");
	index = vb_nic_gid_find(nic, parsed.dgid);
	if (index == VB_GIDS_MAX)
		return vb_refuse(EINVAL, "the GRH's destination is no GID of ours");
	memcpy(route->dgid.raw, parsed.sgid, VB_GID_BYTES);
	route->sgid_index = index;
	route->flow_label = parsed.flow_label;
	route->traffic_class = parsed.tclass;
	route->hop_limit = HOP_LIMIT_OF_ANSWERS;
	return 0;
}

int ibv_init_ah_from_wc(struct ibv_context *context, uint8_t port_num, struct ibv_wc *wc,
			struct ibv_grh *grh, struct ibv_ah_attr *attr)
{
	struct ibv_ah_attr found = {
		.dlid = wc->slid,
		.sl = wc->sl,
		.src_path_bits = wc->dlid_path_bits,
		.port_num = port_num,
	};
	int rc = 0;

	if (vb_abi_is_gone(context))
		return vb_abi_minus_one(EIO);
	if (wc->wc_flags & IBV_WC_GRH) {
		found.is_global = 1;
		rc = route_from_grh(vb_abi_nic(context), grh, &found.grh);
	}
	if (rc != 0)
		return vb_abi_minus_one(vb_report_refused(__func__, rc));
	*attr = found;
	return 0;
}

struct ibv_ah *ibv_create_ah_from_wc(struct ibv_pd *pd, struct ibv_wc *wc, struct ibv_grh *grh,
				     uint8_t port_num)
{
	struct ibv_ah_attr attr;

	if (ibv_init_ah_from_wc(pd->context, port_num, wc, grh, &attr) != 0)
		return NULL;
	return ibv_create_ah(pd, &attr);
}
