/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_ABI_RDMACM_RS_KEEPALIVE_H
#define VB_ABI_RDMACM_RS_KEEPALIVE_H

/*
 * SO_KEEPALIVE of streams: a thread writes nothing to the peer now and then, and a connection whose
 * peer does not acknowledge that breaks. The thread lives as long as there is such a stream.
 */

#include "abi/rdmacm/rs/stream.h"

/* Also after TCP_KEEPIDLE has changed: the time begins anew. 0 or an errno. */
int vb_rs_keepalive_set(struct vb_rs_stream *s, bool on);

/* After how many seconds without data. */
unsigned vb_rs_keepalive_idle_s(const struct vb_rs *rs);

#endif
