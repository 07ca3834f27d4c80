/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_ABI_RDMACM_RS_IOMAP_H
#define VB_ABI_RDMACM_RS_IOMAP_H

/* I/O maps: memory of the application's into which the peer of a stream writes (riomap()). */

#include "abi/rdmacm/rs/stream.h"

/* Tells the peer of maps that are new. Locked; sending. 0 or an errno. */
int vb_rs_mappings_tell(struct vb_rs_stream *s, uint64_t end_ns);

void vb_rs_mappings_free(struct vb_rs_stream *s);

#endif
