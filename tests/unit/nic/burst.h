/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_TESTS_NIC_BURST_H
#define VB_TESTS_NIC_BURST_H

/* What a host is given to send, looked at as a receiver would. */

#include <stdint.h>
#include <string.h>

#include "base/frame.h"
#include "wire/icrc.h"

/* How many of a burst's frames have an ICRC that is right for what they are and will be called. */
static inline unsigned burst_right(const struct vb_burst *burst)
{
	static uint8_t octets[VB_LINK_BURST_BYTES_MAX];
	size_t bytes = 0;
	unsigned right = 0;

	for (uint32_t i = 0; i < burst->iovcnt; i++) {
		assert_true(bytes + burst->iov[i].iov_len <= sizeof(octets));
		memcpy(octets + bytes, burst->iov[i].iov_base, burst->iov[i].iov_len);
		bytes += burst->iov[i].iov_len;
	}
	for (uint16_t i = 0; i < burst->frames; i++) {
		const uint8_t *frame = octets + (size_t)i * burst->frame_bytes;
		uint32_t n = i + 1u < burst->frames ? burst->frame_bytes : burst->last_bytes;

		right += vb_icrc_frame(&burst->path, frame, n, (uint16_t)(burst->first_id + i)) ==
			 vb_icrc_get(frame + n - VB_ICRC_BYTES);
	}
	return right;
}

#endif
