/* SPDX-License-Identifier: BSD-2-Clause */
#include "nic/way/mcast.h"

#include <errno.h>
#include <stdlib.h>

#include "base/refusal.h"
#include "nic/core/ah.h"
#include "nic/core/lowered.h"

#define BUCKETS 64u

struct group {
	struct group *next;
	uint8_t gid[VB_GID_BYTES];
	uint32_t count, size;
	struct vb_qp **qp;
};

/* Changes take the lock and, for what packets look at, the rx right. */
struct vb_groups {
	vb_lock lock;
	uint32_t count;
	struct group *bucket[BUCKETS];
};

int vb_groups_init(struct vb_nic *nic)
{
	nic->special.groups = calloc(1, sizeof(*nic->special.groups));
	if (!nic->special.groups)
		return ENOMEM;
	vb_lock_init(&nic->special.groups->lock, VB_RANK_GROUPS);
	return 0;
}

static void group_free(struct group *group)
{
	free(group->qp);
	free(group);
}

void vb_groups_fini(struct vb_nic *nic)
{
	/* Groups of QPs that were never destroyed. */
	for (unsigned i = 0; i < BUCKETS; i++) {
		struct group *group, *next;

		for (group = nic->special.groups->bucket[i]; group; group = next) {
			next = group->next;
			group_free(group);
		}
	}
	vb_lock_fini(&nic->special.groups->lock);
	free(nic->special.groups);
}

/* The place of the group in its list, or where it would be. */
static struct group **find(struct vb_groups *groups, const uint8_t gid[VB_GID_BYTES])
{
	struct group **at;
	uint32_t h = 0;

	for (unsigned i = 0; i < VB_GID_BYTES; i++)
		h = (h ^ gid[i]) * 16777619u;
	at = &groups->bucket[(h >> 8) % BUCKETS];
	while (*at && memcmp((*at)->gid, gid, VB_GID_BYTES) != 0)
		at = &(*at)->next;
	return at;
}

static uint32_t place_of(const struct group *group, const struct vb_qp *qp)
{
	uint32_t i = 0;

	while (i < group->count && group->qp[i] != qp)
		i++;
	return i;
}

/* --- joining --- */

/* Finds the interfaces with an address of the group's family. Returns their number. */
static unsigned interfaces(struct vb_nic *nic, const uint8_t gid[VB_GID_BYTES],
			   uint32_t ifindex[VB_GIDS_MAX])
{
	unsigned count = 0;

	vb_lock_take(&nic->lock);
	for (unsigned i = 0; i < VB_GIDS_MAX; i++) {
		const struct vb_gid_entry *entry = &nic->identity.gids[i];
		unsigned k = 0;

		if (!entry->mtu_bytes || vb_gid_is_ipv4(entry->gid) != vb_gid_is_ipv4(gid))
			continue;
		while (k < count && ifindex[k] != entry->ifindex)
			k++;
		if (k == count)
			ifindex[count++] = entry->ifindex;
	}
	vb_lock_drop(&nic->lock);
	return count;
}

/* ENETUNREACH: joined nowhere. An interface that has just gone does not matter. */
static int join(struct vb_nic *nic, const uint8_t gid[VB_GID_BYTES])
{
	const struct vb_nic_host *host = &nic->host;
	uint32_t ifindex[VB_GIDS_MAX];
	unsigned count = interfaces(nic, gid, ifindex), joined = 0;

	for (unsigned i = 0; i < count; i++) {
		int err = host->groups->join(host->arg, gid, ifindex[i]);

		if (err && err != ENODEV)
			return err;
		joined += !err;
	}
	return joined ? 0 : ENETUNREACH;
}

void vb_groups_rejoin(struct vb_nic *nic)
{
	struct vb_groups *groups = nic->special.groups;

	vb_lock_take(&groups->lock);
	for (unsigned i = 0; groups->count && i < BUCKETS; i++) {
		/* Errors are ignored; what could not be joined is tried again next time. */
		for (struct group *group = groups->bucket[i]; group; group = group->next)
			join(nic, group->gid);
	}
	vb_lock_drop(&groups->lock);
}

/* --- attaching --- */

static int check(const struct vb_qp *qp, const uint8_t gid[VB_GID_BYTES])
{
	const struct vb_nic_host *host = &qp->nic->host;

	/* ibv_attach_mcast(3): only UD; the GID has to be a group's. */
	if (!vb_qp_is(qp, VB_GROUPS))
		return vb_refuse(EINVAL, "QPN 0x%x has the type %s; only UD receives from groups",
				 qp->ibv.qp.qp_num, qp->service->name);
	if (!vb_gid_is_group(gid))
		return vb_refuse(EINVAL, "gid is no multicast address: it begins with 0xff");
	if ((qp->made.create_flags & IBV_QP_CREATE_SOURCE_QPN) || !host->groups)
		return EOPNOTSUPP;
	return host->no_wire ? ENETUNREACH : 0;
}

/* A larger array, for packets to look at from then on; NULL: no memory. */
static struct vb_qp **grown(const struct group *group)
{
	uint32_t size = group->size ? 2 * group->size : 1;
	struct vb_qp **qp;

	if (group->count < group->size)
		return group->qp;
	qp = calloc(size, sizeof(struct vb_qp *));
	if (qp && group->count)
		memcpy(qp, group->qp, group->count * sizeof(struct vb_qp *));
	return qp;
}

static int add(struct vb_nic *nic, struct group *group, struct vb_qp *qp)
{
	struct vb_qp **room = grown(group), **old = group->qp;

	if (!room)
		return ENOMEM;
	vb_lock_take(&nic->rx);
	if (room != old) {
		group->qp = room;
		group->size = group->size ? 2 * group->size : 1;
	}
	group->qp[group->count++] = qp;
	vb_lock_drop(&nic->rx);
	if (room != old)
		free(old);
	qp->special.attached++;
	return 0;
}

/* Makes a group with its first QP, and enters it when complete. */
static int begin(struct vb_nic *nic, struct group **at, const uint8_t gid[VB_GID_BYTES],
		 struct vb_qp *qp)
{
	const struct vb_nic_host *host = &nic->host;
	struct group *group;
	int err;

	if (nic->special.groups->count >= vb_lowered(nic, VB_LIMIT_MCAST_GRP))
		return vb_lowered_full(nic, VB_LIMIT_MCAST_GRP);
	group = calloc(1, sizeof(*group));
	if (!group)
		return ENOMEM;
	memcpy(group->gid, gid, VB_GID_BYTES);
	err = add(nic, group, qp);
	if (!err)
		err = join(nic, gid);
	vb_lock_take(&nic->rx);
	if (!err)
		*at = group;
	else if (group->count)
		host->groups->leave(host->arg, gid); /* leaves where it did join */
	vb_lock_drop(&nic->rx);
	if (!err) {
		nic->special.groups->count++;
		return 0;
	}
	qp->special.attached -= group->count;
	group_free(group);
	return err;
}

int vb_group_attach(struct vb_qp *qp, const uint8_t gid[VB_GID_BYTES])
{
	struct vb_nic *nic = qp->nic;
	struct group **at;
	int err = check(qp, gid);

	if (err)
		return err;
	vb_lock_take(&nic->special.groups->lock);
	at = find(nic->special.groups, gid);
	if (!*at)
		err = begin(nic, at, gid, qp);
	else if (place_of(*at, qp) == (*at)->count) /* a QP is entered once, and gets one copy */
		err = (*at)->count < vb_lowered(nic, VB_LIMIT_MCAST_QP_ATTACH)
			      ? add(nic, *at, qp)
			      : vb_lowered_full(nic, VB_LIMIT_MCAST_QP_ATTACH);
	vb_lock_drop(&nic->special.groups->lock);
	return err;
}

/* With packets kept out, so that the host may close the group's sockets. */
static void remove_locked(struct vb_nic *nic, struct group **at, uint32_t place)
{
	const struct vb_nic_host *host = &nic->host;
	struct group *group = *at;

	group->qp[place] = group->qp[--group->count];
	if (group->count)
		return;
	host->groups->leave(host->arg, group->gid);
	*at = group->next;
	nic->special.groups->count--;
	group_free(group);
}

int vb_group_detach(struct vb_qp *qp, const uint8_t gid[VB_GID_BYTES])
{
	struct vb_nic *nic = qp->nic;
	struct group **at;
	uint32_t place;
	int err = EINVAL;

	vb_lock_take(&nic->special.groups->lock);
	at = find(nic->special.groups, gid);
	if (*at && (place = place_of(*at, qp)) < (*at)->count) {
		vb_lock_take(&nic->rx);
		remove_locked(nic, at, place);
		vb_lock_drop(&nic->rx);
		qp->special.attached--;
		err = 0;
	}
	vb_lock_drop(&nic->special.groups->lock);
	return vb_refuse(err, "QPN 0x%x is not attached to this group", qp->ibv.qp.qp_num);
}

/* --- packets --- */

/* IBV_QP_CREATE_BLOCK_SELF_MCAST_LB: a packet that the QP itself sent. */
static bool is_blocked(const struct vb_qp *qp, const struct vb_frame *frame,
		       const struct vb_pkt *pkt)
{
	return (qp->made.create_flags & IBV_QP_CREATE_BLOCK_SELF_MCAST_LB) &&
	       pkt->sqpn == qp->ibv.qp.qp_num && vb_gid_is_ours(qp->nic, frame->path.src);
}

void vb_group_packet(struct vb_batch *batch, const struct vb_frame *frame,
		     const struct vb_pkt *pkt, const struct vb_op_info *info)
{
	const struct group *group = *find(batch->nic->special.groups, frame->path.dst);

	/* IBA 9.6.1: that QPN is only for groups and datagrams. */
	if (!group || info->transport != VB_UD) {
		vb_batch_count(batch, VB_STAT_DROP_GROUP);
		return;
	}
	for (uint32_t i = 0; i < group->count; i++) {
		struct vb_qp *qp = group->qp[i];

		if (is_blocked(qp, frame, pkt))
			continue;
		vb_batch_hold(batch, qp);
		if (vb_batch_admit(batch, qp, pkt, info))
			vb_batch_packet(batch, qp, frame, pkt, info);
	}
}
