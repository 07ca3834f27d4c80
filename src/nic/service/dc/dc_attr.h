/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_NIC_DC_ATTR_H
#define VB_NIC_DC_ATTR_H

/* What the application says of ends of DC. */

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>

/* An end of the dynamically connected transport: a target, or an initiator. */
struct vb_dc_attr {
	bool target;
	uint64_t access_key; /* of a target */
	bool streams;	     /* of an initiator; so many, as powers of two */
	uint8_t streams_log, errored_log;
};

#endif
