/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_DAEMON_HUB_H
#define VB_DAEMON_HUB_H

/*
 * The hub: one poll loop, single-threaded, that answers clients (docs/hub.md). It keeps no state
 * that the kernel or the clients could not tell the next hub.
 */

#include <stdint.h>

/*
 * Serve on a listening socket until nobody has been connected for idle_ns, or somebody asks to
 * stop. 0, or a positive errno if there is nothing to serve: EADDRINUSE (port 4791 is somebody
 * else's), ENOMEM, ...
 */
int vb_hub_serve(int listen_fd, uint64_t idle_ns);

#endif
