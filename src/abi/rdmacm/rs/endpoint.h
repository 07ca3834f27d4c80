/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_ABI_RDMACM_RS_ENDPOINT_H
#define VB_ABI_RDMACM_RS_ENDPOINT_H

/* What a stream needs for a connection: a QP with its CQ, and registered buffers. */

#include "abi/rdmacm/rs/stream.h"

/* Once the id is at a device. 0 or an errno; what is made is freed with the rest either way. */
int vb_rs_endpoint_make(struct vb_rs_stream *s);
void vb_rs_endpoint_free(struct vb_rs_stream *s);

/* What this side tells the other in the private data of REQ or REP. */
void vb_rs_endpoint_hello(const struct vb_rs_stream *s, uint8_t out[VB_RS_HELLO_BYTES]);

/* What the other has told. EPROTO: it cannot be. */
int vb_rs_endpoint_heard(struct vb_rs_stream *s, const void *data, unsigned bytes);

/* Connected: who finds no receive is to ask again soon. */
void vb_rs_endpoint_settle(struct vb_rs_stream *s);

/* Both queues are flushed: whoever waits for completions wakes up. */
void vb_rs_endpoint_stop(struct vb_rs_stream *s);

#endif
