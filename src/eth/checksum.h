/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_ETH_CHECKSUM_H
#define VB_ETH_CHECKSUM_H

/*
 * What a network adapter does to the octets of a frame: Internet checksums (RFC 1071) on their way
 * out and in, VLAN tags and the frame check sequence on the way in. Pure; any thread.
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/uio.h>

#include "eth/parse.h"

enum { VB_ETH_FCS_BYTES = 4, VB_ETH_VLAN_BYTES = 4 };

/*
 * ibv_post_send(3), IBV_SEND_IP_CSUM: write the checksums of the IPv4 header and of TCP or UDP,
 * whatever stands there. A fragment has no checksum of its own but the header's; over IPv6 with
 * segments left in a routing header, TCP's and UDP's stay what they are: not every type of those
 * headers tells the final destination, which they are about. The packet in a tunnel is data, and
 * stays what it is, unless `inner`: then its checksums are written first, and that of GRE behind
 * them, if there is room for one.
 */
void vb_eth_tx_checksums(uint8_t *octets, uint32_t bytes, bool inner);

/*
 * ibv_poll_cq(3), IBV_WC_IP_CSUM_OK: is it TCP or UDP over IPv4, whole, and are both checksums
 * right? UDP without one counts as right. Whole: IP's length is not 0 and within the frame, UDP's
 * within the packet. With `inner`, and a tunnel: is the packet inside so, be it over IPv4 or IPv6,
 * and the one outside whole, if it is one of IP, its IPv4 header's checksum right?
 */
bool vb_eth_rx_csum_ok(const struct vb_eth_frame *frame, bool inner);

/* The octets that follow a frame on a wire (IEEE 802.3 clause 3.2.9), as they follow it there. */
void vb_eth_fcs(const uint8_t *octets, uint32_t bytes, uint8_t fcs[VB_ETH_FCS_BYTES]);

/* What is to be scattered of a frame: at most three pieces, one behind the other. */
struct vb_eth_pieces {
	struct iovec iov[3];
	unsigned count;
	uint32_t bytes;
	bool stripped; /* there was a C-VLAN tag ... */
	uint16_t tci;  /* ... with this in it, in host order */
	uint8_t fcs[VB_ETH_FCS_BYTES];
};

/*
 * strip: without the C-VLAN tag (IEEE 802.1Q, ethertype 0x8100), if it begins with one.
 * fcs: with the frame check sequence behind it, which is that of the frame as it came.
 * The pieces point into the frame, and into themselves: do not copy the structure.
 */
void vb_eth_rx_pieces(struct vb_eth_pieces *pieces, const uint8_t *octets, uint32_t bytes,
		      bool strip, bool fcs);

#endif
