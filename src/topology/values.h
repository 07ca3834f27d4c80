/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_TOPOLOGY_VALUES_H
#define VB_TOPOLOGY_VALUES_H

/*
 * Values as topology and persona files have them. Each reads all of a piece; false: it is no such
 * thing. Pure: any thread.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/path.h"
#include "topology/lines.h"

enum { VB_TOPOLOGY_PCI_BYTES = 16 };

/* Decimal, or with 0x. */
bool vb_value_number(struct vb_span piece, uint64_t *number);

/* "yes" or "no". */
bool vb_value_switch(struct vb_span piece, bool *on);

/* Copies a text of 1 to bytes - 1 octets that are printable. */
bool vb_value_text(struct vb_span piece, char *text, size_t bytes);

/* The same of letters, digits and "_-.", none of them a dot at the beginning. */
bool vb_value_name(struct vb_span piece, char *text, size_t bytes);

/* As ibv_query_port(3) says a rate of Ethernet: lanes and speed of a lane, by their codes. */
struct vb_rate {
	uint32_t mbps;
	uint8_t width, speed;
};

/* Another rate: as 100 Gbit/s, which stands for "fast" where there is no such wire. */
const struct vb_rate *vb_rate_of(uint32_t mbps);

/* 100Gbit; one of the rates that Ethernet has (vb_value_rates). */
bool vb_value_rate(struct vb_span piece, uint32_t *mbps);
extern const char vb_value_rates[];

/* IPv4, as ::ffff:a.b.c.d, or IPv6. */
bool vb_value_address(struct vb_span piece, uint8_t gid[VB_GID_BYTES]);

/* 0000:17:00.0, or 17:00.0 of domain 0; or "virtual", then it is empty. */
bool vb_value_pci(struct vb_span piece, char pci[VB_TOPOLOGY_PCI_BYTES]);

#endif
