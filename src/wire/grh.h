/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_WIRE_GRH_H
#define VB_WIRE_GRH_H

/*
 * The 40 octets that a UD receiver finds before its data (IBTA 11.4.1.2, Annex A17).
 *
 * IPv6: the IPv6 header of the datagram. Its next header is 17 (UDP), not 0x1b as in a native
 * InfiniBand GRH: RoCEv2 delivers the header as received, as hardware and Linux rxe do. IPv4: 20
 * octets of zero and then the IPv4 header, with a valid checksum. The payload length is that of the
 * datagram, UDP header included.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/path.h"

#define VB_GRH_BYTES 40

struct vb_grh {
	uint8_t sgid[VB_GID_BYTES];
	uint8_t dgid[VB_GID_BYTES]; /* both IPv4-mapped if ipv4 */
	uint32_t flow_label;        /* 20 bits, 0 for IPv4 */
	uint8_t tclass;             /* IPv4: the TOS octet */
	uint8_t hop_limit;
	bool ipv4;
};

/* Writes the 40 octets for a datagram of udp_payload_bytes (BTH to ICRC) received on path. */
void vb_grh_build(uint8_t out[VB_GRH_BYTES], const struct vb_path *path, size_t udp_payload_bytes);

/*
 * Parses 40 octets of either form; a native GRH (next header 0x1b) is accepted, too. Returns false
 * with *grh untouched if version, next header or IPv4 checksum is wrong.
 */
bool vb_grh_parse(struct vb_grh *grh, const uint8_t in[VB_GRH_BYTES]);

#endif
