/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_EXPLAIN_SAY_H
#define VB_EXPLAIN_SAY_H

/* Flows and requests in words, as users read them. Pure. */

#include "explain/story.h"

enum { VB_SAY_BYTES = 256 };

/* "QPN 0x4141 at 10.0.0.1 (client, pid 12)": the end that a half comes from, or goes to. */
const char *vb_say_sender(char text[VB_SAY_BYTES], const struct vb_story *story, uint32_t half);
const char *vb_say_receiver(char text[VB_SAY_BYTES], const struct vb_story *story, uint32_t half);

/* "RC", "UD" ... */
const char *vb_say_transport(const struct vb_half *half);

/* "RDMA WRITE of 4096 octets at 0x7f00 by rkey 0x12 (PSN 0x31, wr_id 0x7)" */
void vb_say_request(struct vb_trouble *trouble, const struct vb_story *story, uint32_t event);

/* What a noun ends with. */
static inline const char *vb_say_s(uint64_t count)
{
	return count == 1 ? "" : "s";
}

/* "0.5 ms", "1.2 s" */
const char *vb_say_time(char text[32], uint64_t ns);

#endif
