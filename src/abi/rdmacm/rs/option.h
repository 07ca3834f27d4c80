/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_ABI_RDMACM_RS_OPTION_H
#define VB_ABI_RDMACM_RS_OPTION_H

/* The options of rsocket(7). */

#include "abi/rdmacm/rs/socket.h"

/* What a stream does as one is set. 0 or an errno. */
int vb_rs_stream_option(struct vb_rs *rs, int level, int name, const void *value, socklen_t bytes);

#endif
