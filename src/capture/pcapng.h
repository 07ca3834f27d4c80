/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_CAPTURE_PCAPNG_H
#define VB_CAPTURE_PCAPNG_H

/*
 * Blocks of a pcapng file, each in one piece of memory (draft-ietf-opsawg-pcapng). A file has the
 * beginning, packets in the order of their times, and the end. Numbers are in host order, as the
 * format allows. Pure: no system calls; any thread.
 */

#include <stddef.h>

#include "base/record.h"

enum {
	VB_PCAPNG_COMMENT_BYTES = 256,
	/* What the longest of the blocks takes. */
	VB_PCAPNG_BYTES_MAX = 67 << 10,
};

/* What a capture counted, by link. */
struct vb_pcapng_counts {
	uint64_t taken, lost;
};

/*
 * The head of the file, and an interface for each link. program: what is captured. Returns the
 * blocks' length, as the following do.
 */
size_t vb_pcapng_begin(uint8_t out[VB_PCAPNG_BYTES_MAX], const char *program);

/*
 * A packet, with the IP and UDP headers of a wire; ns since 1970. comment may be "". Returns 0: it
 * is longer than any of ours.
 */
size_t vb_pcapng_packet(uint8_t out[VB_PCAPNG_BYTES_MAX], const struct vb_record *record,
			uint64_t ns, const char *comment);

/* The statistics of each link. */
size_t vb_pcapng_end(uint8_t out[VB_PCAPNG_BYTES_MAX],
		     const struct vb_pcapng_counts counts[VB_RECORD_LINKS], uint64_t ns);

/*
 * The words of a packet's comment, as users read them: "NAME (pid 7), QPN 0x4141, wr_id 0x1, sent
 * again". program is the part before the comma.
 */
void vb_pcapng_comment(char out[VB_PCAPNG_COMMENT_BYTES], const struct vb_record *record,
		       const char *program);

#endif
