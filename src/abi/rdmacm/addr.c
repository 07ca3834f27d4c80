/* SPDX-License-Identifier: BSD-2-Clause */

/* Addresses, ports and routes. */

#include <arpa/inet.h>
#include <errno.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "abi/rdmacm/addr.h"
#include "abi/rdmacm/channel.h"
#include "abi/rdmacm/device.h"
#include "abi/rdmacm/id.h"
#include "run/cm.h"

/* Without CAP_NET_BIND_SERVICE nobody binds below (ip(7), ip_unprivileged_port_start). */
enum { PORTS_PRIVILEGED = 1024 };

/* --- addresses --- */

static bool is_ip(const struct sockaddr *addr)
{
	return addr->sa_family == AF_INET || addr->sa_family == AF_INET6;
}

socklen_t vb_cma_sockaddr_bytes(const struct sockaddr *addr)
{
	return addr->sa_family == AF_INET ? sizeof(struct sockaddr_in)
					  : sizeof(struct sockaddr_in6);
}

/* False: it is no IP address. */
bool vb_cma_gid_of(const struct sockaddr *addr, uint8_t gid[VB_GID_BYTES], uint32_t *scope)
{
	const struct sockaddr_in6 *ipv6 = (const void *)addr;
	const struct sockaddr_in *ipv4 = (const void *)addr;

	*scope = 0;
	memset(gid, 0, VB_GID_BYTES);
	if (addr->sa_family == AF_INET) {
		gid[10] = gid[11] = 0xff;
		memcpy(gid + 12, &ipv4->sin_addr, 4);
		return true;
	}
	if (addr->sa_family != AF_INET6)
		return false;
	memcpy(gid, &ipv6->sin6_addr, VB_GID_BYTES);
	if (vb_gid_is_link_local(gid))
		*scope = ipv6->sin6_scope_id;
	return true;
}

void vb_cma_sockaddr_set(struct sockaddr_storage *addr, bool ipv4, const uint8_t gid[VB_GID_BYTES],
			 uint16_t port, uint32_t scope)
{
	struct sockaddr_in6 *in6 = (void *)addr;
	struct sockaddr_in *in = (void *)addr;

	memset(addr, 0, sizeof(*addr));
	if (ipv4) {
		in->sin_family = AF_INET;
		in->sin_port = htons(port);
		memcpy(&in->sin_addr, gid + 12, 4);
		return;
	}
	in6->sin6_family = AF_INET6;
	in6->sin6_port = htons(port);
	in6->sin6_scope_id = scope;
	memcpy(&in6->sin6_addr, gid, VB_GID_BYTES);
}

/* Both families have it in the same place. */
uint16_t vb_cma_port_of(const struct sockaddr *addr)
{
	return is_ip(addr) ? ntohs(((const struct sockaddr_in *)addr)->sin_port) : 0;
}

void vb_cma_port_set(struct sockaddr *addr, uint16_t port)
{
	((struct sockaddr_in *)addr)->sin_port = htons(port);
}

bool vb_cma_is_any(const struct sockaddr *addr)
{
	uint8_t gid[VB_GID_BYTES];
	uint32_t scope;

	vb_cma_gid_of(addr, gid, &scope);
	return addr->sa_family == AF_INET ? !memcmp(gid + 12, "\0\0\0", 4)
					  : IN6_IS_ADDR_UNSPECIFIED((struct in6_addr *)gid);
}

void vb_cma_sockaddr_map(struct sockaddr_storage *addr, bool to_ipv6)
{
	uint8_t gid[VB_GID_BYTES];
	uint32_t scope;

	vb_cma_gid_of((struct sockaddr *)addr, gid, &scope);
	if (vb_gid_is_ipv4(gid))
		vb_cma_sockaddr_set(addr, !to_ipv6, gid, vb_cma_port_of((struct sockaddr *)addr),
				    scope);
}

static bool is_loopback(const struct sockaddr *addr)
{
	uint8_t gid[VB_GID_BYTES];
	uint32_t scope;

	vb_cma_gid_of(addr, gid, &scope);
	return vb_gid_is_ipv4(gid) ? gid[12] == 127
				   : IN6_IS_ADDR_LOOPBACK((struct in6_addr *)gid);
}

__be16 rdma_get_src_port(struct rdma_cm_id *id)
{
	return htons(vb_cma_port_of(&id->route.addr.src_addr));
}

__be16 rdma_get_dst_port(struct rdma_cm_id *id)
{
	return htons(vb_cma_port_of(&id->route.addr.dst_addr));
}

/* --- ports --- */

static unsigned bind_flags(const struct vb_cma_id *id)
{
	return (id->options.reuse ? VB_HUB_BIND_REUSE : 0) |
	       (id->options.afonly ? VB_HUB_BIND_AFONLY : 0);
}

/* The number by which the hub knows it, for as long as the process lives. */
static uint32_t number_next(void)
{
	static _Atomic uint32_t last;

	return ++last;
}

int vb_cma_port_bind(struct vb_cma_id *id, unsigned flags)
{
	struct sockaddr *src = &id->pub.route.addr.src_addr;
	struct vb_hub_bind bind = id->bind;
	int rc;

	if (!bind.id)
		bind.id = number_next();
	bind.space = id->pub.ps;
	bind.port = vb_cma_port_of(src);
	bind.flags = bind_flags(id) | flags;
	vb_cma_gid_of(src, bind.gid, &bind.scope);
	rc = vb_cm_bind(vb_cma_run(), &bind);
	if (rc)
		return rc;
	id->bind = bind;
	vb_cma_port_set(src, (uint16_t)bind.port);
	return 0;
}

void vb_cma_port_drop(struct vb_cma_id *id)
{
	if (id->bind.port)
		vb_cm_unbind(vb_cma_run(), &id->bind);
	id->bind.port = 0;
}

static bool may_bind(uint16_t port)
{
	return port == 0 || port >= PORTS_PRIVILEGED || geteuid() == 0;
}

/* Is it an address of ours? 0 or an errno. */
static int source_check(struct vb_cma_id *id, const struct sockaddr *addr)
{
	uint8_t gid[VB_GID_BYTES];
	int index;

	if (!vb_cma_gid_of(addr, gid, &id->scope))
		return EAFNOSUPPORT;
	if (vb_gid_is_link_local(gid) && !id->scope)
		return EINVAL;
	if (vb_cma_is_any(addr))
		return 0;
	index = vb_cma_gid_index(gid);
	if (index < 0)
		return ENODEV;
	id->sgid_index = (uint8_t)index;
	return 0;
}

static int bind_to(struct vb_cma_id *id, const struct sockaddr *addr)
{
	struct rdma_addr *to = &id->pub.route.addr;
	uint8_t gid[VB_GID_BYTES];
	uint32_t scope;
	int rc;

	if (id->state != VB_CMA_IDLE)
		return EINVAL;
	if (!is_ip(addr))
		return EAFNOSUPPORT;
	if (!may_bind(vb_cma_port_of(addr)))
		return EACCES;
	rc = source_check(id, addr);
	if (rc)
		return rc;
	memcpy(&to->src_storage, addr, vb_cma_sockaddr_bytes(addr));
	rc = vb_cma_port_bind(id, 0);
	if (rc) {
		memset(&to->src_storage, 0, sizeof(to->src_storage));
		return rc;
	}
	/* Who has an address of ours is at the device; loopback is everybody's. */
	if (!vb_cma_is_any(addr) && !is_loopback(addr)) {
		vb_cma_gid_of(addr, gid, &scope);
		vb_cma_attach(id, gid);
	}
	id->state = VB_CMA_BOUND;
	return 0;
}

/* As if it had never been bound. */
static void unbind(struct vb_cma_id *id)
{
	vb_cma_port_drop(id);
	memset(&id->pub.route.addr.src_storage, 0, sizeof(id->pub.route.addr.src_storage));
	id->pub.verbs = NULL;
	id->pub.port_num = 0;
	id->pub.pd = NULL;
	id->state = VB_CMA_IDLE;
}

int rdma_bind_addr(struct rdma_cm_id *id, struct sockaddr *addr)
{
	if (!addr)
		return vb_cma_result(EINVAL);
	return vb_cma_result(bind_to(vb_cma_of(id), addr));
}

/* --- routes --- */

/*
 * Which source address the kernel would take to get there, and by which interface. Nothing is sent.
 * 0 or an errno of connect(2): ENETUNREACH.
 */
static int route_find(const struct sockaddr *src, const struct sockaddr *dst,
		      struct sockaddr_storage *found)
{
	int fd = socket(dst->sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0), rc = 0;
	socklen_t bytes = sizeof(*found);
	struct sockaddr_storage to, from;

	if (fd < 0)
		return errno;
	memcpy(&to, dst, vb_cma_sockaddr_bytes(dst));
	vb_cma_port_set((struct sockaddr *)&to, 9); /* any but 0 */
	memset(&from, 0, sizeof(from));
	if (src && src->sa_family == dst->sa_family && !vb_cma_is_any(src)) {
		memcpy(&from, src, vb_cma_sockaddr_bytes(src));
		vb_cma_port_set((struct sockaddr *)&from, 0);
		if (bind(fd, (struct sockaddr *)&from, vb_cma_sockaddr_bytes(src)))
			rc = errno;
	}
	if (!rc && connect(fd, (struct sockaddr *)&to, vb_cma_sockaddr_bytes(dst)))
		rc = errno;
	if (!rc && getsockname(fd, (struct sockaddr *)found, &bytes))
		rc = errno;
	close(fd);
	return rc;
}

/* To nobody in particular is to this host. */
static void dst_set(struct rdma_addr *to, const struct sockaddr *dst)
{
	memcpy(&to->dst_storage, dst, vb_cma_sockaddr_bytes(dst));
	if (!vb_cma_is_any(dst))
		return;
	if (dst->sa_family == AF_INET)
		to->dst_sin.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	else
		to->dst_sin6.sin6_addr = in6addr_loopback;
}

static int path_set(struct vb_cma_id *id)
{
	struct rdma_addr *addr = &id->pub.route.addr;
	uint8_t src[VB_GID_BYTES], dst[VB_GID_BYTES];
	uint32_t scope, dst_scope;
	int index;

	vb_cma_gid_of(&addr->src_addr, src, &scope);
	vb_cma_gid_of(&addr->dst_addr, dst, &dst_scope);
	index = vb_cma_gid_index(src);
	if (index < 0)
		return ENODEV;
	id->sgid_index = (uint8_t)index;
	id->path = (struct vb_path){
		.ifindex = dst_scope ? dst_scope : scope,
		.tclass = id->options.tos,
		.hop_limit = 64,
		.local = vb_cma_gid_index(dst) >= 0,
	};
	memcpy(id->path.src, src, VB_GID_BYTES);
	memcpy(id->path.dst, dst, VB_GID_BYTES);
	memcpy(addr->addr.ibaddr.sgid.raw, src, VB_GID_BYTES);
	memcpy(addr->addr.ibaddr.dgid.raw, dst, VB_GID_BYTES);
	addr->addr.ibaddr.pkey = htons(0xffff);
	return 0;
}

/* The addresses of both ends, for one that is bound. */
static int ends_set(struct vb_cma_id *id, const struct sockaddr *dst)
{
	struct rdma_addr *addr = &id->pub.route.addr;
	struct sockaddr_storage found;
	uint16_t port = vb_cma_port_of(&addr->src_addr);
	int rc;

	if (addr->src_addr.sa_family != dst->sa_family)
		return EINVAL;
	dst_set(addr, dst);
	rc = route_find(&addr->src_addr, &addr->dst_addr, &found);
	if (rc) {
		memset(&addr->dst_storage, 0, sizeof(addr->dst_storage));
		return rc;
	}
	memcpy(&addr->src_storage, &found, sizeof(found));
	vb_cma_port_set(&addr->src_addr, port);
	return 0;
}

/* Binds it, if nobody has, and sets both ends; refused, it is as it was. */
static int ends_find(struct vb_cma_id *id, const struct sockaddr *src, const struct sockaddr *dst)
{
	struct sockaddr_storage any = {.ss_family = dst->sa_family};
	bool was_idle = id->state == VB_CMA_IDLE;
	int rc;

	if (!is_ip(dst))
		return EAFNOSUPPORT;
	if (was_idle)
		rc = bind_to(id, src ? src : (struct sockaddr *)&any);
	else
		rc = id->state == VB_CMA_BOUND ? 0 : EINVAL;
	if (rc)
		return rc;
	rc = ends_set(id, dst);
	if (rc && was_idle)
		unbind(id);
	return rc;
}

static int resolve(struct vb_cma_id *id, const struct sockaddr *src, const struct sockaddr *dst)
{
	struct vb_cma_event *event = vb_cma_event_make(id, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
	int rc = event ? ends_find(id, src, dst) : ENOMEM;

	if (rc) {
		free(event);
		return rc;
	}
	rc = path_set(id);
	vb_cma_lock();
	if (rc) {
		/* No device has that address: the kernel tells by an event as well. */
		event->pub.event = RDMA_CM_EVENT_ADDR_ERROR;
		event->pub.status = -rc;
	} else {
		vb_cma_attach(id, id->path.src);
		id->state = VB_CMA_ADDR_RESOLVED;
	}
	vb_cma_event_queue(event);
	vb_cma_unlock();
	return 0;
}

int rdma_resolve_addr(struct rdma_cm_id *pub, struct sockaddr *src, struct sockaddr *dst,
		      int timeout_ms)
{
	struct vb_cma_id *id = vb_cma_of(pub);
	int rc;

	if (!dst)
		return vb_cma_result(EINVAL);
	rc = resolve(id, src, dst);
	return rc ? vb_cma_result(rc) : vb_cma_complete(id);
}

/* --- path records --- */

enum { LIFETIME = 16, LIDS_NONE = 0xffff };

static void path_record_fill(struct vb_cma_id *id)
{
	struct ibv_sa_path_rec *path = &id->path_rec;
	struct ibv_port_attr port = {.active_mtu = IBV_MTU_1024};

	ibv_query_port(id->pub.verbs, 1, &port);
	*path = (struct ibv_sa_path_rec){
		.sgid = id->pub.route.addr.addr.ibaddr.sgid,
		.dgid = id->pub.route.addr.addr.ibaddr.dgid,
		.hop_limit = id->path.hop_limit,
		.traffic_class = id->path.tclass,
		.reversible = 1,
		.numb_path = 1,
		.pkey = htons(0xffff),
		.mtu_selector = 2,
		.mtu = (uint8_t)port.active_mtu,
		.rate_selector = 2,
		.rate = IBV_RATE_10_GBPS,
		.packet_life_time_selector = 2,
		.packet_life_time = LIFETIME,
	};
	id->pub.route.path_rec = path;
	id->pub.route.num_paths = 1;
	id->agreed.path_mtu = path->mtu;
}

int vb_cma_route_set(struct vb_cma_id *id)
{
	struct vb_cma_event *event;

	if (id->state != VB_CMA_ADDR_RESOLVED)
		return EINVAL;
	event = vb_cma_event_make(id, RDMA_CM_EVENT_ROUTE_RESOLVED, 0);
	if (!event)
		return ENOMEM;
	path_record_fill(id);
	vb_cma_lock();
	id->state = VB_CMA_ROUTE_RESOLVED;
	vb_cma_event_queue(event);
	vb_cma_unlock();
	return 0;
}

int rdma_resolve_route(struct rdma_cm_id *pub, int timeout_ms)
{
	struct vb_cma_id *id = vb_cma_of(pub);
	int rc = timeout_ms > 0 ? vb_cma_route_set(id) : EINVAL;

	return rc ? vb_cma_result(rc) : vb_cma_complete(id);
}
