/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_ETH_CHECKSUM_H
#define VB_ETH_CHECKSUM_H

/*
 * What a network adapter does to a frame: Internet checksums (RFC 1071) when sending and receiving,
 * VLAN tags and the frame check sequence when receiving. Pure; any thread.
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/uio.h>

#include "eth/parse.h"

enum { VB_ETH_FCS_BYTES = 4, VB_ETH_VLAN_BYTES = 4 };

/*
 * ibv_post_send(3), IBV_SEND_IP_CSUM: writes the checksums of the IPv4 header and of TCP or UDP,
 * over whatever is there. A fragment gets only its header's checksum. Over IPv6 with segments left
 * in a routing header, TCP and UDP are left alone: their checksum covers the final destination,
 * which not every type of routing header tells. A packet in a tunnel is data and left alone, unless
 * `inner`: then its checksums are written first, and after them that of GRE, if it has one.
 */
void vb_eth_tx_checksums(uint8_t *octets, uint32_t bytes, bool inner);

/*
 * ibv_poll_cq(3), IBV_WC_IP_CSUM_OK: is this complete TCP or UDP over IPv4 with both checksums
 * valid? UDP without a checksum counts as valid. Complete: IP's length is not 0 and within the
 * frame, UDP's within the packet. With `inner` and a tunnel, this is asked of the packet inside,
 * over IPv4 or IPv6; the packet outside, if it is IP, must be complete, with a valid IPv4 header
 * checksum.
 */
bool vb_eth_rx_csum_ok(const struct vb_eth_frame *frame, bool inner);

/* The frame check sequence (IEEE 802.3 clause 3.2.9), as it follows the frame on a wire. */
void vb_eth_fcs(const uint8_t *octets, uint32_t bytes, uint8_t fcs[VB_ETH_FCS_BYTES]);

/* What is to be scattered of a frame: at most three consecutive pieces. */
struct vb_eth_pieces {
	struct iovec iov[3];
	unsigned count;
	uint32_t bytes;
	bool stripped; /* a C-VLAN tag was removed ... */
	uint16_t tci;  /* ... which had this content, in host order */
	uint8_t fcs[VB_ETH_FCS_BYTES];
};

/*
 * strip: without the C-VLAN tag (IEEE 802.1Q, ethertype 0x8100), if the frame begins with one.
 * fcs: followed by the frame check sequence, computed over the frame as received.
 * The pieces point into the frame and into this structure: do not copy it.
 */
void vb_eth_rx_pieces(struct vb_eth_pieces *pieces, const uint8_t *octets, uint32_t bytes,
		      bool strip, bool fcs);

#endif
