/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_WIRE_MAD_H
#define VB_WIRE_MAD_H

/*
 * Management datagrams (MADs, IBTA 13.4): 256 octets that QP 1 sends to QP 1, the first 24 of which
 * are a header common to all classes.
 */

#include <stdint.h>

#define VB_MAD_BYTES 256
#define VB_MAD_HEADER_BYTES 24
#define VB_MAD_DATA_BYTES (VB_MAD_BYTES - VB_MAD_HEADER_BYTES)

/* The QP of general services, on either side, and its Q_Key (IBTA 10.2.5). */
#define VB_MAD_QPN 1
#define VB_MAD_QKEY 0x80010000

#define VB_MAD_BASE_VERSION 1

enum vb_mad_class {
	VB_MAD_CLASS_CM = 7, /* communication management */
};

enum vb_mad_method {
	VB_MAD_SEND = 3,
};

struct vb_mad {
	uint8_t base_version;
	uint8_t mgmt_class; /* enum vb_mad_class */
	uint8_t class_version;
	uint8_t method; /* enum vb_mad_method; the highest bit says that it is a response */
	uint16_t status;
	uint16_t class_specific;
	uint64_t transaction_id;
	uint16_t attribute;
	uint32_t attribute_modifier;
};

/* Any octets are a header: the caller compares versions, class and method. */
void vb_mad_parse(struct vb_mad *mad, const uint8_t in[VB_MAD_HEADER_BYTES]);

void vb_mad_emit(const struct vb_mad *mad, uint8_t out[VB_MAD_HEADER_BYTES]);

#endif
