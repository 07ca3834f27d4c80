/* SPDX-License-Identifier: BSD-2-Clause */
#include "abi/rdmacm/rs/iomap.h"

#include <errno.h>
#include <rdma/rsocket.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "abi/rdmacm/device.h"
#include "abi/rdmacm/rs/connect.h"
#include "base/check.h"

/* Of one WRITE. Nobody reads before all has come, so the first need not be small. */
enum { STEP = 65536 };

struct vb_rs_mapping {
	LIST_ENTRY(vb_rs_mapping) link;
	struct ibv_mr *mr;
	uint64_t offset;
	bool is_local;	/* the peer does not hear of it */
	uint32_t index; /* of the peer's entries */
	bool is_told;
};

/* NULL with errno: the socket is not a connected stream. */
static struct vb_rs_stream *stream_get(int fd)
{
	struct vb_rs *rs = vb_rs_of(fd);
	int rc = !rs ? EBADF : rs->type != &vb_rs_stream_type ? EOPNOTSUPP : 0;

	/* A matter of one message. */
	if (!rc && vb_rs_is_connecting(vb_rs_stream_of(rs)))
		rc = vb_rs_stream_go_on(vb_rs_stream_of(rs), VB_RS_FOREVER);
	if (!rc && vb_rs_stream_of(rs)->phase != VB_RS_CONNECTED)
		rc = ENOTCONN;
	if (rc)
		errno = rc;
	return rc ? NULL : vb_rs_stream_of(rs);
}

/* --- mapping --- */

static bool is_taken(const struct vb_rs_stream *s, uint32_t index)
{
	const struct vb_rs_mapping *mapping;

	LIST_FOREACH(mapping, &s->mappings, link) {
		if (!mapping->is_local && mapping->index == index)
			return true;
	}
	return false;
}

/* The first entry of the peer's that is free. */
static int index_choose(const struct vb_rs_stream *s, uint32_t *index)
{
	for (*index = 0; *index < s->in.peer_maps.length; ++*index) {
		if (!is_taken(s, *index))
			return 0;
	}
	return ENOMEM;
}

static int map(struct vb_rs_stream *s, void *buf, size_t len, bool is_local, uint64_t offset)
{
	struct vb_rs_mapping *mapping = calloc(1, sizeof(*mapping));
	int access = IBV_ACCESS_LOCAL_WRITE | (is_local ? 0 : IBV_ACCESS_REMOTE_WRITE);
	int rc;

	if (!mapping)
		return ENOMEM;
	rc = is_local ? 0 : index_choose(s, &mapping->index);
	if (!rc) {
		mapping->mr = ibv_reg_mr(s->id->pd, buf, len, access);
		rc = mapping->mr ? 0 : errno;
	}
	if (rc) {
		free(mapping);
		return rc;
	}
	mapping->offset = offset;
	mapping->is_local = is_local;
	LIST_INSERT_HEAD(&s->mappings, mapping, link);
	s->has_news_of_maps |= !is_local;
	return 0;
}

off_t riomap(int fd, void *buf, size_t len, int prot, int flags, off_t offset)
{
	struct vb_rs_stream *s = stream_get(fd);
	int rc;

	if (!s)
		return -1;
	if (prot & ~(PROT_WRITE | PROT_NONE) || flags || len > UINT32_MAX)
		return vb_cma_result(EINVAL);
	if (offset == -1)
		offset = (off_t)(uintptr_t)buf;
	vb_rs_stream_begin(s, &s->sending, VB_RS_FOREVER);
	rc = map(s, buf, len, !(prot & PROT_WRITE), (uint64_t)offset);
	vb_rs_stream_finish(s, &s->sending);
	return rc ? vb_cma_result(rc) : offset;
}

static void unmap(struct vb_rs_mapping *mapping)
{
	LIST_REMOVE(mapping, link);
	ibv_dereg_mr(mapping->mr);
	free(mapping);
}

int riounmap(int fd, void *buf, size_t len)
{
	struct vb_rs *rs = vb_rs_of(fd);
	struct vb_rs_stream *s = rs ? vb_rs_stream_of(rs) : NULL;
	struct vb_rs_mapping *mapping;

	if (!rs || rs->type != &vb_rs_stream_type)
		return vb_cma_result(EBADF);
	vb_rs_stream_begin(s, &s->sending, VB_RS_FOREVER);
	LIST_FOREACH(mapping, &s->mappings, link) {
		if (mapping->mr->addr == buf && mapping->mr->length == len)
			break;
	}
	if (mapping)
		unmap(mapping);
	vb_rs_stream_finish(s, &s->sending);
	return vb_cma_result(mapping ? 0 : EINVAL);
}

void vb_rs_mappings_free(struct vb_rs_stream *s)
{
	while (!LIST_EMPTY(&s->mappings))
		unmap(LIST_FIRST(&s->mappings));
}

static int tell(struct vb_rs_stream *s, struct vb_rs_mapping *mapping, uint64_t end_ns)
{
	const struct vb_rs_map map = {
		.offset = mapping->offset,
		.area = {(uintptr_t)mapping->mr->addr, mapping->mr->rkey,
			 (uint32_t)mapping->mr->length},
	};
	const struct vb_rs_destination to = {
		.addr = s->in.peer_maps.addr + (uint64_t)mapping->index * VB_RS_MAP_BYTES,
		.key = s->in.peer_maps.key,
		.is_told = true,
		.msg = vb_rs_msg(VB_RS_MAPPED, mapping->index),
	};
	uint8_t entry[VB_RS_MAP_BYTES];
	struct iovec iov = {entry, sizeof(entry)};
	struct vb_rs_data data = {.iov = &iov, .left = sizeof(entry)};

	vb_rs_map_put(entry, &map, s->in.swapped);
	return vb_rs_stream_write(s, &data, sizeof(entry), &to, end_ns);
}

int vb_rs_mappings_tell(struct vb_rs_stream *s, uint64_t end_ns)
{
	struct vb_rs_mapping *mapping;
	int rc = 0;

	if (!s->has_news_of_maps)
		return 0;
	LIST_FOREACH(mapping, &s->mappings, link) {
		if (mapping->is_local || mapping->is_told)
			continue;
		rc = tell(s, mapping, end_ns);
		if (rc)
			return rc;
		mapping->is_told = true;
	}
	s->has_news_of_maps = false;
	return 0;
}

/* --- writing into the peer's --- */

/* The map of the peer's that has the offset. */
static bool find(const struct vb_rs_stream *s, uint64_t offset, struct vb_rs_map *map)
{
	const uint8_t *at = s->out.targets + VB_RS_TARGETS * VB_RS_AREA_BYTES;

	for (uint32_t i = 0; i < s->rs.sizes.maps; i++, at += VB_RS_MAP_BYTES) {
		vb_rs_map_get(map, at);
		if (offset >= map->offset && offset - map->offset < map->area.length)
			return true;
	}
	return false;
}

static int write_some(struct vb_rs_stream *s, struct vb_rs_data *data, uint64_t offset,
		      uint64_t end_ns)
{
	struct vb_rs_destination to = {.is_told = false};
	struct vb_rs_map map;
	uint64_t into;

	if (!find(s, offset, &map))
		return EINVAL;
	into = offset - map.offset;
	to.addr = map.area.addr + into;
	to.key = map.area.key;
	return vb_rs_stream_write(s, data, (uint32_t)vb_min_u64(STEP, map.area.length - into), &to,
				  end_ns);
}

size_t riowrite(int fd, const void *buf, size_t count, off_t offset, int flags)
{
	struct vb_rs_stream *s = stream_get(fd);
	struct iovec iov = {(void *)(uintptr_t)buf, count};
	struct vb_rs_data data = {.iov = &iov, .left = count};
	uint64_t end_ns;
	int rc;

	if (!s)
		return (size_t)-1;
	end_ns = vb_rs_wait_end_ns(&s->rs, flags, &s->rs.options.send_time);
	rc = vb_rs_stream_begin(s, &s->sending, end_ns);
	if (rc)
		return (size_t)vb_cma_result(rc);
	rc = vb_rs_mappings_tell(s, end_ns);
	while (!rc && data.left) {
		uint64_t at = (uint64_t)offset + (count - data.left);

		rc = write_some(s, &data, at, end_ns);
	}
	vb_rs_stream_finish(s, &s->sending);
	if (rc && data.left == count)
		return (size_t)vb_cma_result(rc);
	return count - data.left;
}
