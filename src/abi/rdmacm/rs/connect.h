/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_ABI_RDMACM_RS_CONNECT_H
#define VB_ABI_RDMACM_RS_CONNECT_H

/* How streams come to be connected. The id's channel does not block: who may wait, polls it. */

#include "abi/rdmacm/rs/stream.h"

int vb_rs_stream_bind(struct vb_rs *rs, const struct sockaddr *addr, socklen_t bytes);
int vb_rs_stream_listen(struct vb_rs *rs, int backlog);

/* Who waits for requests, in whatever call, learns that there will be none. */
void vb_rs_stream_deafen(struct vb_rs_stream *s);
int vb_rs_stream_accept(struct vb_rs *rs, struct vb_rs **child);

/* EINPROGRESS: it goes on whenever somebody looks at the socket. */
int vb_rs_stream_connect(struct vb_rs *rs, const struct sockaddr *addr, socklen_t bytes);

/* Goes on with what has been begun. 0: connected, or nothing had been. EAGAIN: not yet. */
int vb_rs_stream_go_on(struct vb_rs_stream *s, uint64_t end_ns);

static inline bool vb_rs_is_connecting(const struct vb_rs_stream *s)
{
	return s->phase >= VB_RS_RESOLVING_ADDR && s->phase <= VB_RS_ACCEPTING;
}

#endif
