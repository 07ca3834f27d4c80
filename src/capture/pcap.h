/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_CAPTURE_PCAP_H
#define VB_CAPTURE_PCAP_H

/*
 * A link around another one that records frames in both directions as a pcap file, with IP and UDP
 * headers added.
 */

#include "link/link.h"

/* Returns as link.h says. Creates or empties the file; an errno of open(2) if that fails. */
int vb_link_pcap_create(struct vb_link **link, struct vb_link *inner, const char *file,
			vb_identify *identify);

#endif
