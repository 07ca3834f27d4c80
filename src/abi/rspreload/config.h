/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_ABI_RSPRELOAD_CONFIG_H
#define VB_ABI_RSPRELOAD_CONFIG_H

/*
 * Which sockets become rsockets, and how (rsocket(7)): /etc/rdma/rsocket/preload_config, and the
 * variables RS_SQ_SIZE, RS_RQ_SIZE, RS_INLINE and RDMAV_FORK_SAFE. Read once.
 */

#include <stdbool.h>

/* type: without the flags of socket(2). */
bool vb_config_wants(int domain, int type, int protocol);

/* RDMAV_FORK_SAFE: connections begin as TCP's, and migrate when they are used. */
bool vb_config_fork_safe(void);

/* What the variables say of a new rsocket. */
void vb_config_apply(int rs);

#endif
