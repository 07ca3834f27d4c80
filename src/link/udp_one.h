/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_LINK_UDP_ONE_H
#define VB_LINK_UDP_ONE_H

/*
 * Single datagrams by a slot's socket, for whoever takes and sends few: no link, no flow, no group.
 * Neither function waits.
 */

#include <stdint.h>

#include "base/path.h"

enum { VB_UDP_ONE_BYTES = 65536 };

/*
 * The next datagram, or run of datagrams that the kernel has merged: the number of octets, or -1 if
 * there is none. All but the last have *segment_bytes octets.
 */
int vb_udp_one_take(int fd, uint8_t octets[VB_UDP_ONE_BYTES], struct vb_path *path,
		    uint32_t *segment_bytes);

/* Send from the path's source to port 4791 of its destination. 0 or a positive errno. */
int vb_udp_one_send(int fd, const struct vb_path *path, const void *octets, uint32_t bytes);

#endif
