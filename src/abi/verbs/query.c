/* SPDX-License-Identifier: BSD-2-Clause */
/* Properties of device and port: attributes, GIDs, P_Keys. */
#include <arpa/inet.h>
#include <string.h>

#include "abi/verbs/abi.h"
#include "abi/newer/newer.h"
#include "abi/verbs/ops.h"
#include "base/check.h"
#include "nic/control/nic.h"
#include "run/address/guid.h"
#include "tape/tape.h"

#undef ibv_query_port

/* A GID's type as in sysfs, different from the enum of verbs.h. */
enum gid_type_sysfs { GID_TYPE_SYSFS_IB_ROCE_V1, GID_TYPE_SYSFS_ROCE_V2 };

int ibv_query_gid_type(struct ibv_context *context, uint8_t port_num, unsigned int index,
		       enum gid_type_sysfs *type);

static bool gid_is_empty(const struct vb_gid_entry *entry)
{
	static const uint8_t none[VB_GID_BYTES];

	return memcmp(entry->gid, none, VB_GID_BYTES) == 0;
}

/* Copies the part that the caller knows, from a structure that grows over time. */
static void copy_out(void *dst, size_t dst_bytes, const void *src, size_t src_bytes)
{
	memset(dst, 0, dst_bytes);
	memcpy(dst, src, vb_min_u64(dst_bytes, src_bytes));
}

/* --- the device --- */

/* The capabilities never change, so this also works in a forked child. */
int ibv_query_device(struct ibv_context *context, struct ibv_device_attr *attr)
{
	vb_nic_query_device(vb_abi_nic(context), attr);
	return 0;
}

int vb_abi_query_device_ex(struct ibv_context *context,
			   const struct ibv_query_device_ex_input *input,
			   struct ibv_device_attr_ex *attr, size_t attr_bytes)
{
	struct ibv_device_attr_ex full;

	if ((input && input->comp_mask) || attr_bytes < sizeof(full.orig_attr))
		return EINVAL;
	vb_nic_query_device_ex(vb_abi_nic(context), &full);
	if (vb_tape_is_on()) /* vb_taped_srq_create_ex() refuses it */
		full.tm_caps = (struct ibv_tm_caps){ 0 };
	copy_out(attr, attr_bytes, &full, sizeof(full));
	return 0;
}

/*
 * The clock is a single number in tv_nsec: programs use it so, to compare it with the timestamps of
 * completions (ibv_query_rt_values_ex(3) does not specify it).
 */
int vb_abi_query_rt_values(struct ibv_context *context, struct ibv_values_ex *values)
{
	uint64_t raw_ns;
	int rc;

	if (vb_abi_is_dead(context))
		return EIO;
	if (values->comp_mask & ~(uint32_t)IBV_VALUES_MASK_RAW_CLOCK)
		return EINVAL;
	if (!values->comp_mask)
		return 0;
	rc = vb_nic_query_clock(vb_abi_nic(context), &raw_ns);
	if (rc == 0)
		values->raw_clock = (struct timespec){ .tv_nsec = (long)raw_ns };
	return rc;
}

/* --- the port --- */

int vb_abi_query_port(struct ibv_context *context, uint8_t port_num, struct ibv_port_attr *attr,
		      size_t attr_bytes)
{
	struct ibv_port_attr full = { .port_cap_flags2 = 0 };
	struct vb_newer_port_attr newer = { .active_speed_ex = 0 };
	int rc;

	if (vb_abi_is_dead(context))
		return EIO;
	vb_device_gids_refresh(vb_device_of(context));
	rc = vb_nic_query_port(vb_abi_nic(context), port_num, &full);
	if (rc == 0) {
		memcpy(newer.older, &full, sizeof(newer.older));
		newer.active_speed_ex = full.active_speed;
		copy_out(attr, attr_bytes, &newer, sizeof(newer));
	}
	return vb_abi_result(rc);
}

/* In units of 100 Mbit/s: what active_speed says of each lane, times active_width's lanes. */
int ibv_query_port_speed(struct ibv_context *context, uint32_t port_num, uint64_t *port_speed);

int ibv_query_port_speed(struct ibv_context *context, uint32_t port_num, uint64_t *port_speed)
{
	static const struct {
		uint8_t code;
		uint32_t units;
	} lanes[] = { { 1, 1 }, { 2, 4 }, { 4, 8 }, { 8, 12 }, { 16, 2 } },
	  speeds[] = { { 1, 25 }, { 2, 50 }, { 4, 100 }, { 8, 100 },
		       { 16, 140 }, { 32, 250 }, { 64, 500 }, { 128, 1000 } };
	struct ibv_port_attr attr;
	uint64_t width = 0, speed = 0;
	int rc = vb_abi_is_dead(context) ? EIO : 0;

	if (rc == 0)
		rc = vb_nic_query_port(vb_abi_nic(context), port_num, &attr);
	if (rc != 0)
		return vb_abi_result(rc);
	for (size_t i = 0; i < VB_ARRAY_LEN(lanes); i++)
		width += lanes[i].code == attr.active_width ? lanes[i].units : 0;
	for (size_t i = 0; i < VB_ARRAY_LEN(speeds); i++)
		speed += speeds[i].code == attr.active_speed ? speeds[i].units : 0;
	*port_speed = width * speed;
	return 0;
}

/* For programs built before the structure grew: only its octets up to `flags`. */
int ibv_query_port(struct ibv_context *context, uint8_t port_num,
		   struct _compat_ibv_port_attr *attr)
{
	return vb_abi_query_port(context, port_num, (struct ibv_port_attr *)attr,
				 offsetof(struct ibv_port_attr, port_cap_flags2));
}

int ibv_query_pkey(struct ibv_context *context, uint8_t port_num, int index, __be16 *pkey)
{
	if (port_num < 1 || port_num > VB_PORTS || index < 0 || index >= VB_PKEYS)
		return vb_abi_minus_one(EINVAL);
	*pkey = htons(VB_PKEY_DEFAULT);
	return 0;
}

int ibv_get_pkey_index(struct ibv_context *context, uint8_t port_num, __be16 pkey)
{
	__be16 at;

	for (int index = 0; ibv_query_pkey(context, port_num, index, &at) == 0; index++) {
		if (at == pkey)
			return index;
	}
	return vb_abi_minus_one(EINVAL);
}

/* --- GIDs --- */

static int gid_get(struct ibv_context *context, uint32_t port_num, uint32_t index,
		   struct vb_gid_entry *entry)
{
	if (vb_abi_is_dead(context))
		return EIO;
	if (port_num < 1 || port_num > VB_PORTS)
		return EINVAL;
	return vb_nic_gid_get(vb_abi_nic(context), index, entry);
}

int ibv_query_gid(struct ibv_context *context, uint8_t port_num, int index, union ibv_gid *gid)
{
	struct vb_gid_entry entry;
	int rc;

	if (!vb_abi_is_gone(context))
		vb_device_gids_refresh(vb_device_of(context));
	rc = gid_get(context, port_num, index, &entry);
	if (rc != 0)
		return vb_abi_minus_one(rc);
	memcpy(gid->raw, entry.gid, sizeof(gid->raw));
	return 0;
}

int ibv_query_gid_type(struct ibv_context *context, uint8_t port_num, unsigned int index,
		       enum gid_type_sysfs *type)
{
	struct vb_gid_entry entry;
	int rc = gid_get(context, port_num, index, &entry);

	if (rc != 0)
		return vb_abi_minus_one(rc);
	*type = gid_is_empty(&entry) || entry.v1 ? GID_TYPE_SYSFS_IB_ROCE_V1
						 : GID_TYPE_SYSFS_ROCE_V2;
	return 0;
}

static struct ibv_gid_entry public_entry(const struct vb_gid_entry *entry, uint32_t index)
{
	struct ibv_gid_entry public = {
		.gid_index = index,
		.port_num = 1,
		.gid_type = entry->v1 ? IBV_GID_TYPE_ROCE_V1 : IBV_GID_TYPE_ROCE_V2,
		.ndev_ifindex = entry->ifindex,
	};

	memcpy(public.gid.raw, entry->gid, sizeof(public.gid.raw));
	return public;
}

int _ibv_query_gid_ex(struct ibv_context *context, uint32_t port_num, uint32_t gid_index,
		      struct ibv_gid_entry *entry, uint32_t flags, size_t entry_size)
{
	struct vb_gid_entry internal;
	struct ibv_gid_entry public;
	int rc;

	if (flags)
		return EOPNOTSUPP;
	if (!vb_abi_is_gone(context))
		vb_device_gids_refresh(vb_device_of(context));
	rc = gid_get(context, port_num, gid_index, &internal);
	if (rc != 0)
		return rc;
	if (gid_is_empty(&internal))
		return ENODATA;
	public = public_entry(&internal, gid_index);
	copy_out(entry, entry_size, &public, sizeof(public));
	return 0;
}

ssize_t _ibv_query_gid_table(struct ibv_context *context, struct ibv_gid_entry *entries,
			     size_t max_entries, uint32_t flags, size_t entry_size)
{
	struct vb_gid_entry internal;
	struct ibv_gid_entry public;
	size_t count = 0;

	if (flags)
		return -EOPNOTSUPP;
	if (vb_abi_is_dead(context))
		return -EIO;
	vb_device_gids_refresh(vb_device_of(context));
	for (uint32_t i = 0; gid_get(context, 1, i, &internal) == 0; i++) {
		if (gid_is_empty(&internal))
			continue;
		if (count == max_entries)
			return -EINVAL;
		public = public_entry(&internal, i);
		copy_out((char *)entries + count * entry_size, entry_size, &public,
			 sizeof(public));
		count++;
	}
	return count;
}

int ibv_resolve_eth_l2_from_gid(struct ibv_context *context, struct ibv_ah_attr *attr,
				uint8_t eth_mac[ETHERNET_LL_SIZE], uint16_t *vid)
{
	int rc;

	if (!attr->is_global)
		return vb_abi_minus_one(EINVAL);
	rc = vb_gids_mac(attr->grh.dgid.raw, eth_mac);
	if (rc != 0)
		return vb_abi_minus_one(rc);
	if (vid)
		*vid = 0xffff; /* no VLAN: its tag is the interface's concern */
	return 0;
}
