/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_TESTS_NIC_PACKETS_H
#define VB_TESTS_NIC_PACKETS_H

/* Packets as a peer sends them; and what a host is given to send, looked at as a receiver would. */

#include <stdint.h>
#include <string.h>

#include "base/frame.h"
#include "nic_fixture.h"
#include "nic/way/receive.h"
#include "wire/icrc.h"
#include "wire/packet.h"

static inline struct vb_pkt packet_for(const struct vb_qp *qp, uint8_t opcode, uint32_t psn)
{
	struct vb_pkt pkt;

	memset(&pkt, 0, sizeof(pkt));
	vb_pkt_begin(&pkt, qp->ibv.qp.qp_num, VB_PKEY_DEFAULT);
	pkt.opcode = opcode;
	pkt.psn = psn;
	return pkt;
}

/* The packet as it comes, in these octets; payload NULL: what lies there already. */
static inline struct vb_frame packet_seal(uint8_t *octets, const struct vb_pkt *pkt,
					  const void *payload, uint32_t payload_bytes,
					  const uint8_t from[VB_GID_BYTES],
					  const uint8_t to[VB_GID_BYTES])
{
	struct vb_frame frame = { .path.sport = VB_ROCE_PORT, .data = octets };
	size_t bytes = vb_pkt_emit(octets, pkt);

	if (payload)
		memcpy(octets + bytes, payload, payload_bytes);
	frame.bytes = (uint32_t)bytes + payload_bytes + VB_ICRC_BYTES;
	memcpy(frame.path.src, from, VB_GID_BYTES);
	memcpy(frame.path.dst, to, VB_GID_BYTES);
	vb_icrc_put(octets + frame.bytes - VB_ICRC_BYTES,
		    vb_icrc_frame(&frame.path, octets, frame.bytes, 0));
	return frame;
}

static inline void frames_come(const struct vb_frame *frames, unsigned count)
{
	assert_true(vb_nic_rx_try(fix.nic));
	vb_nic_rx(fix.nic, frames, count);
	vb_nic_rx_drop(fix.nic);
}

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
