/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_RUN_TRACE_H
#define VB_RUN_TRACE_H

/* Notes each packet on the wire, and of rings, in the trail (process/trail.h). */

#include "base/record.h"
#include "link/link.h"

/* From now on for this link, and all that the process makes. They are of one kind. */
void vb_trace_link(struct vb_link *link);

/* Notes a packet that the NIC tells of, if it was put into a ring or taken out. */
void vb_trace_see(const struct vb_record *record);

#endif
