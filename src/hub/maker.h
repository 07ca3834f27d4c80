/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_HUB_MAKER_H
#define VB_HUB_MAKER_H

/*
 * Who made a unix socket: the kernel keeps the process that made or connected it (SO_PEERCRED),
 * even if other processes have it now.
 */

#include <stdbool.h>

/*
 * Did one process make the peers of both sockets? False if an old kernel cannot tell for a process
 * that has no PID here.
 */
bool vb_hub_same_maker(int fd, int other_fd);

#endif
