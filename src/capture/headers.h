/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_CAPTURE_HEADERS_H
#define VB_CAPTURE_HEADERS_H

/*
 * The IP and UDP headers that a frame has on a wire. No link sees them: the kernel adds and removes
 * them, and a ring has none.
 */

#include "base/path.h"

enum { VB_HEADERS_BYTES_MAX = 48 };

/* Their length for this path. */
uint32_t vb_headers_bytes(const struct vb_path *path);

/* Writes them before the frame, which is in place: the UDP checksum covers it. id: IPv4's. */
void vb_headers_put(uint8_t *headers, const struct vb_path *path, uint16_t id,
		    uint32_t frame_bytes);

#endif
