/* SPDX-License-Identifier: BSD-2-Clause */
#include "nic/core/ah.h"

#include <errno.h>
#include <stdlib.h>

#include "base/refusal.h"
#include "nic/core/ahn.h"
#include "nic/core/internal.h"
#include "nic/core/lowered.h"
#include "wire/icrc.h"

/* Replaces 0, which many programs leave there; kernels of hardware take the route's hop limit. */
#define HOP_LIMIT_DEFAULT 64

/* Locked. NULL: it is no other device's of this host. */
static const struct vb_neighbour *neighbour_of(const struct vb_nic *nic,
					       const uint8_t gid[VB_GID_BYTES])
{
	for (unsigned i = 0; i < nic->identity.neighbour_count; i++) {
		if (!memcmp(nic->identity.neighbours[i].gid, gid, VB_GID_BYTES))
			return &nic->identity.neighbours[i];
	}
	return NULL;
}

static bool is_apart(struct vb_nic *nic, const uint8_t gid[VB_GID_BYTES])
{
	const struct vb_neighbour *neighbour;
	bool apart;

	vb_lock_take(&nic->lock);
	neighbour = neighbour_of(nic, gid);
	apart = neighbour && neighbour->apart;
	vb_lock_drop(&nic->lock);
	return apart;
}

bool vb_gid_is_ours(struct vb_nic *nic, const uint8_t gid[VB_GID_BYTES])
{
	bool ours = false;

	vb_lock_take(&nic->lock);
	for (unsigned i = 0; i < VB_GIDS_MAX && !ours; i++)
		ours = nic->identity.gids[i].mtu_bytes &&
		       !memcmp(nic->identity.gids[i].gid, gid, VB_GID_BYTES);
	ours = ours || neighbour_of(nic, gid);
	vb_lock_drop(&nic->lock);
	return ours;
}

static unsigned gids_in_use(struct vb_nic *nic)
{
	struct vb_gid_entry entry;
	unsigned count = 0;

	for (unsigned i = 0; i < VB_GIDS_MAX; i++)
		count += !vb_nic_gid_get(nic, i, &entry) && entry.mtu_bytes;
	return count;
}

/* The row of RoCE v2 of an address. */
static unsigned gid_find(struct vb_nic *nic, const uint8_t gid[VB_GID_BYTES])
{
	struct vb_gid_entry entry;
	unsigned i = 0;

	while (!vb_nic_gid_get(nic, i, &entry) &&
	       (entry.v1 || memcmp(entry.gid, gid, VB_GID_BYTES)))
		i++;
	return i;
}

/* What needs no table of GIDs. */
static int check(const struct ibv_ah_attr *attr)
{
	if (!attr->is_global)
		return vb_refuse(EINVAL, "ah_attr.is_global is 0; an Ethernet port needs a "
					 "GID: set it to 1 and fill in ah_attr.grh");
	if (attr->port_num != 1)
		return vb_refuse(EINVAL, "ah_attr.port_num is %u; the only port is 1",
				 attr->port_num);
	if (attr->static_rate > IBV_RATE_1200_GBPS)
		return vb_refuse(EINVAL, "ah_attr.static_rate is %u, which no enum ibv_rate is",
				 attr->static_rate);
	if (attr->sl > 15)
		return vb_refuse(EINVAL, "ah_attr.sl is %u; service levels are 0 to 15", attr->sl);
	return 0;
}

static int resolve(struct vb_nic *nic, const struct ibv_ah_attr *attr, struct vb_path *path)
{
	static const uint8_t zero[VB_GID_BYTES];
	struct vb_gid_entry entry;
	int err = check(attr);

	if (err)
		return err;
	if (vb_nic_gid_get(nic, attr->grh.sgid_index, &entry) || !entry.mtu_bytes)
		return vb_refuse(EINVAL, "sgid_index %u is empty; the table has %u GIDs",
				 attr->grh.sgid_index, gids_in_use(nic));
	if (entry.v1)
		return vb_refuse(EOPNOTSUPP, "sgid_index %u is a row of RoCE v1, which is not "
					     "spoken here; row %u has this address in RoCE v2",
				 attr->grh.sgid_index, gid_find(nic, entry.gid));
	if (is_apart(nic, attr->grh.dgid.raw))
		return vb_refuse(ENETUNREACH, "ah_attr.grh.dgid is an address of another device of "
					      "this host, whose fabric this one does not reach");
	if (!memcmp(attr->grh.dgid.raw, zero, sizeof(zero)))
		return vb_refuse(EINVAL, "ah_attr.grh.dgid, the peer's GID, is zero");
	if (vb_gid_is_ipv4(attr->grh.dgid.raw) != vb_gid_is_ipv4(entry.gid))
		return vb_refuse(EINVAL, "sgid_index %u is an IPv%d address, and ah_attr.grh.dgid, "
					 "the peer's, an IPv%d address",
				 attr->grh.sgid_index, vb_gid_is_ipv4(entry.gid) ? 4 : 6,
				 vb_gid_is_ipv4(entry.gid) ? 6 : 4);
	*path = (struct vb_path){
		.flow_label = attr->grh.flow_label & 0xfffff,
		.ifindex = entry.ifindex,
		.sport = VB_ROCE_PORT,
		.tclass = attr->grh.traffic_class,
		.hop_limit = attr->grh.hop_limit ? attr->grh.hop_limit : HOP_LIMIT_DEFAULT,
	};
	memcpy(path->src, entry.gid, sizeof(path->src));
	memcpy(path->dst, attr->grh.dgid.raw, sizeof(path->dst));
	path->local = vb_gid_is_ours(nic, path->dst);
	return 0;
}

int vb_path_resolve(struct vb_nic *nic, const struct ibv_ah_attr *attr, struct vb_path *path)
{
	if (vb_gid_is_group(attr->grh.dgid.raw))
		return vb_refuse(EINVAL, "ah_attr.grh.dgid is a multicast group; a QP of this type "
					 "is connected to one peer");
	return resolve(nic, attr, path);
}

void vb_path_sport_answer(struct vb_nic *nic, struct vb_path *path, uint16_t src_slot,
			  uint32_t dqpn, enum vb_whom whom)
{
	path->sport = nic->host.wire.sport(nic->host.arg, src_slot, path,
					   (uint16_t)(dqpn >> VB_INDEX_BITS), whom);
}

void vb_path_sport_set(struct vb_nic *nic, struct vb_path *path, uint16_t src_slot, uint32_t dqpn)
{
	vb_path_sport_answer(nic, path, src_slot, dqpn, VB_OURS);
}

int vb_ah_create(struct vb_pd *pd, const struct ibv_ah_attr *attr, struct vb_ah **out)
{
	struct vb_nic *nic = vb_nic_of(pd->ibv.context);
	struct vb_path path;
	struct vb_ah *ah;
	int err = resolve(nic, attr, &path);

	if (!err && !path.local && nic->host.no_wire)
		err = ENETUNREACH;
	/* An interface may lack a route for groups, as loopback does for IPv6. */
	if (!err && vb_gid_is_group(path.dst) &&
	    !nic->host.wire.frame_bytes_max(nic->host.arg, &path))
		err = ENETUNREACH;
	if (err)
		return err;
	err = vb_lowered_count_up(nic, &nic->counts.ahs, VB_LIMIT_AH);
	if (err)
		return err;
	ah = calloc(1, sizeof(*ah));
	if (!ah) {
		atomic_fetch_sub(&nic->counts.ahs, 1);
		return ENOMEM;
	}
	if (!path.local && !vb_gid_is_group(path.dst))
		nic->host.wire.afar(nic->host.arg, path.dst);
	ah->ibv.context = pd->ibv.context;
	ah->ibv.pd = &pd->ibv;
	ah->path = path;
	ah->attr = *attr;
	atomic_fetch_add(&pd->users, 1);
	*out = ah;
	return 0;
}

int vb_ah_destroy(struct vb_ah *ah)
{
	vb_ahn_leave(ah);
	atomic_fetch_sub(&vb_nic_of(ah->ibv.context)->counts.ahs, 1);
	atomic_fetch_sub(&((struct vb_pd *)ah->ibv.pd)->users, 1);
	free(ah);
	return 0;
}
