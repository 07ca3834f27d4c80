/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_LINK_UDP_H
#define VB_LINK_UDP_H

/*
 * The UDP link over a slot's socket, made as udp_socket.h says and bound to port 4791. It calls
 * identify before it trusts a frame.
 */

#include "link/link.h"

/* Returns as link.h says. */
int vb_link_udp_create(struct vb_link **link, int fd, vb_identify *identify);

#endif
