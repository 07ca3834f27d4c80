/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_CM_RECORD_H
#define VB_CM_RECORD_H

/*
 * What closing an id takes once its process has died, in memory that outlives the process. The
 * process writes it, with its lock held; who buries the process reads it. The process may die at
 * any instruction: what a state needs is written before the state.
 *
 * The layout is fixed, and states keep their numbers (rows of rules.def): the reader may be older
 * or newer than the writer.
 */

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/path.h"
#include "cm/rules.h"
#include "wire/mad.h"

struct vb_cm_record {
	_Atomic uint32_t state; /* enum vb_cm_state; IDLE: there is nothing to close */
	uint32_t local_id;
	uint32_t remote_id;
	uint32_t remote_qpn;
	uint64_t tid;	   /* of the REQ */
	uint64_t peer_tid; /* of the peer's last request */
	uint64_t guid;	   /* our CA's */
	uint64_t service_id;
	uint8_t src[VB_GID_BYTES];
	uint8_t dst[VB_GID_BYTES];
	uint32_t flow_label;
	uint32_t ifindex;
	uint8_t tclass;
	uint8_t hop_limit;
	uint8_t local; /* the peer is on this host: 1 */
	uint8_t zero[5];
};

struct vb_cm_id;

/* The id as it is now; and that there is none any more. */
void vb_cm_record_write(struct vb_cm_record *record, const struct vb_cm_id *id);
void vb_cm_record_clear(struct vb_cm_record *record);

/*
 * The message that closes it, and by which path it goes, as Linux would send it. False: none is
 * needed, or nobody wrote that record.
 */
bool vb_cm_record_close(const struct vb_cm_record *record, struct vb_path *path,
			uint8_t mad[VB_MAD_BYTES]);

#endif
