/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_ABI_RDMACM_ADDR_H
#define VB_ABI_RDMACM_ADDR_H

/* Addresses, ports and routes of ids. */

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "abi/rdmacm/id.h"

/* Binds a port, with the flags of the options and these. 0 or an errno. Not locked. */
int vb_cma_port_bind(struct vb_cma_id *id, unsigned flags);
void vb_cma_port_drop(struct vb_cma_id *id);

/* The address is resolved: so is the route, and the id is told. 0 or an errno. Not locked. */
int vb_cma_route_set(struct vb_cma_id *id);

bool vb_cma_gid_of(const struct sockaddr *addr, uint8_t gid[VB_GID_BYTES], uint32_t *scope);
void vb_cma_sockaddr_set(struct sockaddr_storage *addr, bool ipv4, const uint8_t gid[VB_GID_BYTES],
			 uint16_t port, uint32_t scope);
/* An address of IPv4 as that, or as IPv6 has it (::ffff:a.b.c.d). Others stay what they are. */
void vb_cma_sockaddr_map(struct sockaddr_storage *addr, bool to_ipv6);

uint16_t vb_cma_port_of(const struct sockaddr *addr);
void vb_cma_port_set(struct sockaddr *addr, uint16_t port);
bool vb_cma_is_any(const struct sockaddr *addr);
socklen_t vb_cma_sockaddr_bytes(const struct sockaddr *addr);

#endif
