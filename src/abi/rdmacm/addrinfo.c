/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * rdma_getaddrinfo(3): names to addresses, by the C library's getaddrinfo(3). Ethernet needs no
 * routes and no data of the connection's own, so ai_route and ai_connect stay empty.
 */

#include "abi/rdmacm/addrinfo.h"

#include <errno.h>
#include <netdb.h>
#include <stdlib.h>
#include <string.h>

#include "abi/rdmacm/device.h"

#ifndef AF_IB
#define AF_IB 27
#endif

enum { FLAGS = RAI_PASSIVE | RAI_NUMERICHOST | RAI_NOROUTE | RAI_FAMILY };

/* --- our words, and those of getaddrinfo(3) --- */

static bool is_stream(int qp_type)
{
	return qp_type == IBV_QPT_RC || qp_type == IBV_QPT_UC || qp_type == IBV_QPT_XRC_SEND ||
	       qp_type == IBV_QPT_XRC_RECV;
}

static int socktype_of(const struct rdma_addrinfo *hints)
{
	if (is_stream(hints->ai_qp_type))
		return SOCK_STREAM;
	return hints->ai_qp_type == IBV_QPT_UD ? SOCK_DGRAM : 0;
}

static int protocol_of(const struct rdma_addrinfo *hints)
{
	switch (hints->ai_port_space) {
	case RDMA_PS_TCP:
		return IPPROTO_TCP;
	case RDMA_PS_UDP:
	case RDMA_PS_IPOIB:
		return IPPROTO_UDP;
	case RDMA_PS_IB:
		if (!hints->ai_qp_type)
			return 0;
		return is_stream(hints->ai_qp_type) ? IPPROTO_TCP : IPPROTO_UDP;
	default:
		return 0;
	}
}

/* --- what is answered --- */

static int addr_copy(struct sockaddr **to, socklen_t *to_bytes, const struct sockaddr *from,
		     socklen_t bytes)
{
	if (!bytes)
		return 0;
	*to = malloc(bytes);
	if (!*to)
		return EAI_MEMORY;
	memcpy(*to, from, bytes);
	*to_bytes = bytes;
	return 0;
}

struct rdma_addrinfo *vb_cma_info_copy(const struct rdma_addrinfo *info)
{
	struct rdma_addrinfo *copy = calloc(1, sizeof(*copy));

	if (!copy)
		return NULL;
	copy->ai_flags = info->ai_flags;
	copy->ai_family = info->ai_family;
	copy->ai_qp_type = info->ai_qp_type;
	copy->ai_port_space = info->ai_port_space;
	if (!addr_copy(&copy->ai_src_addr, &copy->ai_src_len, info->ai_src_addr,
		       info->ai_src_len) &&
	    !addr_copy(&copy->ai_dst_addr, &copy->ai_dst_len, info->ai_dst_addr,
		       info->ai_dst_len))
		return copy;
	rdma_freeaddrinfo(copy);
	return NULL;
}

/* What the hints leave open follows from what was found. */
static int found_copy(struct rdma_addrinfo *info, const struct rdma_addrinfo *hints,
		      const struct addrinfo *found)
{
	bool passive = hints->ai_flags & RAI_PASSIVE, stream = found->ai_socktype == SOCK_STREAM;

	info->ai_flags = passive ? RAI_PASSIVE : 0;
	info->ai_family = found->ai_family;
	info->ai_qp_type = hints->ai_qp_type ? hints->ai_qp_type : stream ? IBV_QPT_RC
									    : IBV_QPT_UD;
	info->ai_port_space = hints->ai_port_space ? hints->ai_port_space
			      : found->ai_protocol == IPPROTO_TCP ? RDMA_PS_TCP : RDMA_PS_UDP;
	if (passive)
		return addr_copy(&info->ai_src_addr, &info->ai_src_len, found->ai_addr,
				 found->ai_addrlen);
	return addr_copy(&info->ai_dst_addr, &info->ai_dst_len, found->ai_addr,
			 found->ai_addrlen);
}

static int names_resolve(struct rdma_addrinfo *info, const char *node, const char *service,
			 const struct rdma_addrinfo *hints)
{
	struct addrinfo wanted = {
		.ai_flags = (hints->ai_flags & RAI_PASSIVE ? AI_PASSIVE : 0) |
			    (hints->ai_flags & RAI_NUMERICHOST ? AI_NUMERICHOST : 0),
		.ai_family = hints->ai_family == AF_IB ? AF_UNSPEC : hints->ai_family,
		.ai_socktype = socktype_of(hints),
		.ai_protocol = protocol_of(hints),
	};
	struct addrinfo *found;
	int rc = getaddrinfo(node, service, &wanted, &found);

	if (rc)
		return rc;
	rc = found_copy(info, hints, found);
	freeaddrinfo(found);
	return rc;
}

/* Without names the addresses of the hints are what there is. */
static int hints_copy(struct rdma_addrinfo *info, const struct rdma_addrinfo *hints)
{
	info->ai_flags = hints->ai_flags;
	info->ai_family = hints->ai_family;
	info->ai_qp_type = hints->ai_qp_type;
	info->ai_port_space = hints->ai_port_space;
	return addr_copy(&info->ai_dst_addr, &info->ai_dst_len, hints->ai_dst_addr,
			 hints->ai_dst_len);
}

static int hints_check(const struct rdma_addrinfo *hints)
{
	if (hints->ai_flags & ~FLAGS)
		return EAI_BADFLAGS;
	/* Only InfiniBand has such addresses. */
	if ((hints->ai_flags & RAI_FAMILY) && hints->ai_family == AF_IB)
		return EAI_FAMILY;
	return 0;
}

static int resolve(struct rdma_addrinfo *info, const char *node, const char *service,
		   const struct rdma_addrinfo *hints)
{
	int rc = hints_check(hints);

	if (!rc)
		rc = node || service ? names_resolve(info, node, service, hints)
				     : hints_copy(info, hints);
	if (!rc && !info->ai_src_len)
		rc = addr_copy(&info->ai_src_addr, &info->ai_src_len, hints->ai_src_addr,
			       hints->ai_src_len);
	return rc;
}

/* -1 with errno, or one of the error codes of getaddrinfo(3), as rdma-core has it. */
int rdma_getaddrinfo(const char *node, const char *service, const struct rdma_addrinfo *hints,
		     struct rdma_addrinfo **res)
{
	static const struct rdma_addrinfo none;
	struct rdma_addrinfo *info;
	int rc;

	if (!node && !service && !hints)
		return vb_cma_result(EINVAL);
	rc = vb_cma_device(NULL);
	if (rc)
		return vb_cma_result(rc);
	info = calloc(1, sizeof(*info));
	if (!info)
		return vb_cma_result(ENOMEM);
	rc = resolve(info, node, service, hints ? hints : &none);
	if (rc) {
		rdma_freeaddrinfo(info);
		return rc;
	}
	*res = info;
	return 0;
}

void rdma_freeaddrinfo(struct rdma_addrinfo *res)
{
	while (res) {
		struct rdma_addrinfo *next = res->ai_next;

		free(res->ai_src_addr);
		free(res->ai_dst_addr);
		free(res->ai_src_canonname);
		free(res->ai_dst_canonname);
		free(res->ai_route);
		free(res->ai_connect);
		free(res);
		res = next;
	}
}
