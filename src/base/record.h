/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_BASE_RECORD_H
#define VB_BASE_RECORD_H

/*
 * A packet as a capture is told of it, and what the NIC knows of it. The NIC makes it
 * (nic/way/watch), a capture writes it (capture/pcapng.h); neither needs to know the other.
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/uio.h>

#include "base/path.h"

/* The links that a capture has as interfaces, in this order. */
enum vb_record_link {
	VB_RECORD_UDP,	    /* the wire */
	VB_RECORD_SHM,	    /* a ring to a process of this host */
	VB_RECORD_ETHERNET, /* the Ethernet segment */
	VB_RECORD_LINKS
};

enum { VB_RECORD_PIECES = 3 };

struct vb_record {
	enum vb_record_link link;
	bool sent;    /* else it came */
	bool again;   /* it was sent before */
	bool dropped; /* fate says why */
	bool has_wr;  /* it belongs to a work request of ours */
	uint64_t wr_id;
	uint64_t ns;	  /* of a ring: when it was put in or taken out, by the NIC's clock */
	uint32_t qpn;	  /* of our QP; 0: none */
	const char *fate; /* what became of a packet that came; NULL: nothing special */
	/* Not of Ethernet: where it goes, and its identification in IPv4. */
	struct vb_path path;
	uint16_t id;
	/* The frame, BTH to ICRC or from the MAC address on; empty pieces are at the end. */
	struct iovec piece[VB_RECORD_PIECES];
};

static inline uint32_t vb_record_bytes(const struct vb_record *record)
{
	size_t bytes = 0;

	for (unsigned i = 0; i < VB_RECORD_PIECES; i++)
		bytes += record->piece[i].iov_len;
	return (uint32_t)bytes;
}

#endif
