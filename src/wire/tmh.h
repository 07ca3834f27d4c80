/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_WIRE_TMH_H
#define VB_WIRE_TMH_H

/*
 * The headers of tag matching, with which a SEND to a tag-matching SRQ begins: a TMH of 16 octets,
 * and behind it, in the request of a rendezvous, an RVH of 16 that says where the data is to be
 * read from. To the transport both are payload. <infiniband/tm_types.h> has their layout.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define VB_TMH_BYTES 16
#define VB_RVH_BYTES 16

enum vb_tmh_op {
	VB_TMH_NO_TAG, /* for software: no tag to match */
	VB_TMH_RNDV,   /* a rendezvous: the data is to be read */
	VB_TMH_FIN,    /* the end of one: its data was read */
	VB_TMH_EAGER,  /* the data follows the header */
	VB_TMH_OPS
};

struct vb_tmh {
	enum vb_tmh_op op;
	uint32_t app_ctx; /* the sender's own, in host order */
	uint64_t tag;
	/* Of a rendezvous. */
	uint64_t va;
	uint32_t rkey;
	uint32_t len;
};

/*
 * Reads the headers in front of a message. False, and *tmh untouched: there are none, since the
 * message is shorter than they are or the operation is unknown. The reserved octets are not looked
 * at: there are senders that use them.
 */
bool vb_tmh_parse(struct vb_tmh *tmh, const uint8_t *octets, size_t bytes);

/* Writes a TMH; no RVH. */
void vb_tmh_put(uint8_t out[VB_TMH_BYTES], enum vb_tmh_op op, uint32_t app_ctx, uint64_t tag);

#endif
