/* SPDX-License-Identifier: BSD-2-Clause */
#include "abi/rdmacm/rs/option.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <rdma/rsocket.h>
#include <stdlib.h>
#include <string.h>

#include "abi/rdmacm/device.h"
#include "abi/rdmacm/rs/keepalive.h"
#include "abi/rdmacm/rs/stream.h"
#include "base/check.h"
#include "wire/rs.h"

enum kind {
	KIND_FLAG,	/* kept, and told again */
	KIND_WHOLE,	/* as well, with all that it has: most octets */
	KIND_BUFFER,	/* octets: half of what is taken, as with TCP */
	KIND_SIZE,	/* places, octets, maps */
	KIND_SECONDS,
	KIND_IGNORED,	/* of a reliable connection: told as 1 */
	KIND_ERROR,	/* told once */
	KIND_SEGMENT,
	KIND_ROUTE,
};

#define AT(member) offsetof(struct vb_rs, member)

/* Every option there is; of a size, what it may be at most. */
static const struct option {
	int level, name;
	enum kind kind;
	size_t at;
	uint32_t most;
} rows[] = {
	{SOL_SOCKET, SO_REUSEADDR, KIND_FLAG, AT(options.reuse), 0},
	{SOL_SOCKET, SO_KEEPALIVE, KIND_FLAG, AT(options.keepalive), 0},
	{SOL_SOCKET, SO_OOBINLINE, KIND_FLAG, AT(options.oob_inline), 0},
	{SOL_SOCKET, SO_LINGER, KIND_WHOLE, AT(options.linger), sizeof(struct linger)},
	{SOL_SOCKET, SO_RCVTIMEO, KIND_WHOLE, AT(options.receive_time), sizeof(struct timeval)},
	{SOL_SOCKET, SO_SNDTIMEO, KIND_WHOLE, AT(options.send_time), sizeof(struct timeval)},
	{SOL_SOCKET, SO_RCVBUF, KIND_BUFFER, AT(sizes.receive_bytes), 0},
	{SOL_SOCKET, SO_SNDBUF, KIND_BUFFER, AT(sizes.send_bytes), 0},
	{SOL_SOCKET, SO_ERROR, KIND_ERROR, AT(error), 0},
	{IPPROTO_TCP, TCP_NODELAY, KIND_FLAG, AT(options.no_delay), 0},
	{IPPROTO_TCP, TCP_KEEPIDLE, KIND_SECONDS, AT(options.keep_idle_s), 0},
	{IPPROTO_TCP, TCP_KEEPINTVL, KIND_IGNORED, 0, 0},
	{IPPROTO_TCP, TCP_KEEPCNT, KIND_IGNORED, 0, 0},
	{IPPROTO_TCP, TCP_MAXSEG, KIND_SEGMENT, 0, 0},
	{IPPROTO_IPV6, IPV6_V6ONLY, KIND_FLAG, AT(options.v6_only), 0},
	{SOL_RDMA, RDMA_SQSIZE, KIND_SIZE, AT(sizes.sends), 0xfffe},
	{SOL_RDMA, RDMA_RQSIZE, KIND_SIZE, AT(sizes.receives), 0xfffe},
	{SOL_RDMA, RDMA_INLINE, KIND_SIZE, AT(sizes.inline_bytes), 0xfffe},
	{SOL_RDMA, RDMA_IOMAPSIZE, KIND_SIZE, AT(sizes.maps), 0xffff},
	{SOL_RDMA, RDMA_ROUTE, KIND_ROUTE, 0, 0},
};

static const struct option *option_of(int level, int name)
{
	for (unsigned i = 0; i < VB_ARRAY_LEN(rows); i++) {
		if (rows[i].level == level && rows[i].name == name)
			return &rows[i];
	}
	return NULL;
}

static void *place(struct vb_rs *rs, const struct option *option)
{
	return (char *)rs + option->at;
}

/* --- setting --- */

static int route_keep(struct vb_rs *rs, const void *value, socklen_t bytes)
{
	struct vb_rs_stream *s = vb_rs_stream_of(rs);
	void *route;

	if (rs->type != &vb_rs_stream_type || !bytes)
		return ENOPROTOOPT;
	route = malloc(bytes);
	if (!route)
		return ENOMEM;
	memcpy(route, value, bytes);
	free(s->route);
	s->route = route;
	s->route_bytes = bytes;
	return 0;
}

static int size_set(struct vb_rs *rs, const struct option *option, uint32_t value)
{
	if (rs->has_buffers)
		return EINVAL;
	value = value < option->most ? value : option->most;
	*(uint32_t *)place(rs, option) =
		option->name == RDMA_IOMAPSIZE ? vb_rs_maps_round(value) : value;
	return 0;
}

static int keep(struct vb_rs *rs, const struct option *option, const void *value, socklen_t bytes)
{
	int number = 0;

	if (option->kind == KIND_ROUTE)
		return route_keep(rs, value, bytes);
	if (bytes < (option->kind == KIND_WHOLE ? option->most : sizeof(number)))
		return EINVAL;
	memcpy(&number, value, sizeof(number));
	switch (option->kind) {
	case KIND_FLAG:
		*(bool *)place(rs, option) = number;
		return 0;
	case KIND_WHOLE:
		memcpy(place(rs, option), value, option->most);
		return 0;
	case KIND_BUFFER:
		/* What is in use stays as it is. */
		if (!rs->has_buffers && number > 0 && number < INT32_MAX / 2)
			*(uint32_t *)place(rs, option) = (uint32_t)number * 2;
		return 0;
	case KIND_SIZE:
		return size_set(rs, option, (uint32_t)number);
	case KIND_SECONDS:
		if (number <= 0)
			return EINVAL;
		*(unsigned *)place(rs, option) = (unsigned)number;
		return 0;
	case KIND_IGNORED:
	case KIND_SEGMENT:
		return 0;
	default:
		return ENOPROTOOPT;
	}
}

int vb_rs_stream_option(struct vb_rs *rs, int level, int name, const void *value, socklen_t bytes)
{
	struct vb_rs_stream *s = vb_rs_stream_of(rs);
	int number = 0;

	memcpy(&number, value, bytes < sizeof(number) ? bytes : sizeof(number));
	if (level == SOL_SOCKET && name == SO_KEEPALIVE)
		return vb_rs_keepalive_set(s, number);
	/* The time begins anew. */
	if (level == IPPROTO_TCP && name == TCP_KEEPIDLE && s->keepalive.is_on)
		return vb_rs_keepalive_set(s, true);
	/* Once there is a port they come too late, which is no error of TCP's. */
	if (level == SOL_SOCKET && name == SO_REUSEADDR)
		rdma_set_option(s->id, RDMA_OPTION_ID, RDMA_OPTION_ID_REUSEADDR, &number,
				sizeof(number));
	if (level == IPPROTO_IPV6 && name == IPV6_V6ONLY &&
	    rdma_set_option(s->id, RDMA_OPTION_ID, RDMA_OPTION_ID_AFONLY, &number, sizeof(number)))
		return errno;
	return 0;
}

int rsetsockopt(int fd, int level, int name, const void *value, socklen_t bytes)
{
	struct vb_rs *rs = vb_rs_of(fd);
	const struct option *option = option_of(level, name);
	int rc;

	if (!rs)
		return vb_cma_result(EBADF);
	if (!value)
		return vb_cma_result(EFAULT);
	/* A datagram's socket knows more of them. */
	if (!option && rs->type == &vb_rs_stream_type)
		return vb_cma_result(ENOPROTOOPT);
	rc = option ? keep(rs, option, value, bytes) : 0;
	if (!rc && level != SOL_RDMA)
		rc = rs->type->option(rs, level, name, value, bytes);
	return vb_cma_result(rc);
}

/* --- asking --- */

static uint32_t segment_bytes(const struct vb_rs *rs)
{
	const struct rdma_route *route = &vb_rs_stream_of((struct vb_rs *)rs)->id->route;

	if (rs->type != &vb_rs_stream_type || !route->num_paths)
		return 2048;
	return 1u << (7 + route->path_rec->mtu);
}

/* As ibv_path_data has it (IBTA 15.2.5.16). */
static void path_fill(const struct ibv_sa_path_rec *from, struct ibv_path_data *to)
{
	enum { EXACTLY = 2 << 6 };

	memset(to, 0, sizeof(*to));
	to->flags = from->preference;
	to->path.dgid = from->dgid;
	to->path.sgid = from->sgid;
	to->path.dlid = from->dlid;
	to->path.slid = from->slid;
	to->path.flowlabel_hoplimit =
		htonl(ntohl(from->flow_label) << 8 | from->hop_limit);
	to->path.tclass = from->traffic_class;
	to->path.reversible_numpath = (uint8_t)(from->reversible << 7 | 1);
	to->path.pkey = from->pkey;
	to->path.qosclass_sl = htons(from->sl);
	to->path.mtu = EXACTLY | from->mtu;
	to->path.rate = EXACTLY | from->rate;
	to->path.packetlifetime = EXACTLY | from->packet_life_time;
}

static int route_tell(struct vb_rs *rs, void *value, socklen_t *bytes)
{
	struct vb_rs_stream *s = vb_rs_stream_of(rs);
	struct ibv_path_data path;
	socklen_t told = 0;

	if (rs->type != &vb_rs_stream_type)
		return ENOPROTOOPT;
	if (s->route) {
		if (*bytes < s->route_bytes)
			return EINVAL;
		memcpy(value, s->route, s->route_bytes);
		*bytes = s->route_bytes;
		return 0;
	}
	if (*bytes < sizeof(path))
		return EINVAL;
	for (int i = 0; i < s->id->route.num_paths && *bytes - told >= sizeof(path); i++) {
		path_fill(&s->id->route.path_rec[i], &path);
		memcpy((char *)value + told, &path, sizeof(path));
		told += sizeof(path);
	}
	*bytes = told;
	return 0;
}

static int number_of(struct vb_rs *rs, const struct option *option)
{
	void *at = place(rs, option);
	int number;

	switch (option->kind) {
	case KIND_FLAG:
		return *(bool *)at;
	case KIND_BUFFER:
	case KIND_SIZE:
		return (int)*(uint32_t *)at;
	case KIND_SECONDS:
		return (int)vb_rs_keepalive_idle_s(rs);
	case KIND_ERROR:
		number = *(int *)at;
		*(int *)at = 0;
		return number;
	case KIND_SEGMENT:
		return (int)segment_bytes(rs);
	default:
		return 1;
	}
}

static int tell(struct vb_rs *rs, const struct option *option, void *value, socklen_t *bytes)
{
	const void *told = place(rs, option);
	socklen_t most = option->most;
	int number;

	if (option->kind == KIND_ROUTE)
		return route_tell(rs, value, bytes);
	if (option->kind != KIND_WHOLE) {
		number = number_of(rs, option);
		told = &number;
		most = sizeof(number);
	}
	if (*bytes > most)
		*bytes = most;
	memcpy(value, told, *bytes);
	return 0;
}

int rgetsockopt(int fd, int level, int name, void *value, socklen_t *bytes)
{
	struct vb_rs *rs = vb_rs_of(fd);
	const struct option *option = option_of(level, name);

	if (!rs)
		return vb_cma_result(EBADF);
	if (!value || !bytes)
		return vb_cma_result(EFAULT);
	if (rs->type != &vb_rs_stream_type && level != SOL_RDMA &&
	    !(option && option->kind == KIND_ERROR && rs->error))
		return getsockopt(fd, level, name, value, bytes);
	return vb_cma_result(option ? tell(rs, option, value, bytes) : ENOPROTOOPT);
}
