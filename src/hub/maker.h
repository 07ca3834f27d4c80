/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_HUB_MAKER_H
#define VB_HUB_MAKER_H

/* Whose a unix socket is: the kernel keeps who made it, or connected it, whoever has it by now. */

#include <stdbool.h>

/*
 * Is what stands behind these two sockets (SO_PEERCRED) one process? False also where the kernel
 * cannot tell: it is an old one, and the process has no number here.
 */
bool vb_hub_same_maker(int fd, int other_fd);

#endif
