/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_NIC_DC_ATTR_H
#define VB_NIC_DC_ATTR_H

/* Attributes of DC, and of SRD, that the application sets. */

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>

/* Dynamically connected transport: a target, or an initiator; or a QP of SRD (service/srd). */
struct vb_dc_attr {
	bool target;
	bool srd; /* neither; nothing else is set but: */
	bool unsolicited; /* ... of SRD: WRITEs with immediate data take no receive request */
	uint64_t access_key; /* of a target */
	bool streams;	     /* of an initiator, with log2 of their number */
	uint8_t streams_log, errored_log;
};

#endif
