/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_WIRE_TMH_H
#define VB_WIRE_TMH_H

/*
 * The headers of tag matching, at the beginning of a SEND to a tag-matching SRQ: a TMH of 16 octets
 * and, in a rendezvous request, an RVH of 16 octets behind it that says where to read the data. For
 * the transport both are payload. <infiniband/tm_types.h> has their layout.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define VB_TMH_BYTES 16
#define VB_RVH_BYTES 16

enum vb_tmh_op {
	VB_TMH_NO_TAG, /* for software: no tag to match */
	VB_TMH_RNDV,   /* a rendezvous: the receiver reads the data */
	VB_TMH_FIN,    /* the end of a rendezvous: the data was read */
	VB_TMH_EAGER,  /* the data follows the header */
	VB_TMH_OPS
};

struct vb_tmh {
	enum vb_tmh_op op;
	uint32_t app_ctx; /* the sender's own value, in host order */
	uint64_t tag;
	/* Of a rendezvous. */
	uint64_t va;
	uint32_t rkey;
	uint32_t len;
};

/*
 * Parses the headers before a message. Returns false with *tmh untouched if the message is too
 * short or the operation unknown. Reserved octets are ignored, since some senders use them.
 */
bool vb_tmh_parse(struct vb_tmh *tmh, const uint8_t *octets, size_t bytes);

/* Writes a TMH, without an RVH. */
void vb_tmh_put(uint8_t out[VB_TMH_BYTES], enum vb_tmh_op op, uint32_t app_ctx, uint64_t tag);

#endif
