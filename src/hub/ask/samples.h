/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_HUB_SAMPLES_H
#define VB_HUB_SAMPLES_H

/* A question to all processes of a hub, for the command line: how are you? Errors as in query.h. */

#include <stdbool.h>

#include "hub/proto.h"

/* A process that has the device open, and what it says of itself (nic/control/sample.h). */
struct vb_hub_said {
	struct vb_hub_program program;
	uint32_t pid; /* in our PID namespace; 0: none there, or not known */
	int fd;	      /* the file in memory */
};

/*
 * Asks all processes how they are, and waits for their answers, but not longer than wait_ns.
 * *said has *count entries; the caller ends with vb_hub_said_free(). *silent: so many did not
 * answer, since they are stopped, say. measure_s: when it will ask again (proto.h).
 */
int vb_hub_sample(uint32_t measure_s, uint64_t wait_ns, struct vb_hub_said **said, unsigned *count,
		  unsigned *silent);
void vb_hub_said_free(struct vb_hub_said *said, unsigned count);

#endif
