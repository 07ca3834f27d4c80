/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_VIEW_COUNTERS_H
#define VB_VIEW_COUNTERS_H

/*
 * The counters of the ports (counters.def): sums over the processes of this user, in this network
 * namespace, since the keeper started. Those that live are asked; a device that is closed leaves
 * its last counters as a file (run/process/sample.h). Of a process that was killed the last answer
 * counts. So no sum ever becomes smaller. One thread.
 */

#include <stdbool.h>
#include <stdint.h>

#include "nic/core/stats.h"
#include "view/files.h"

struct vb_sample;

/* What one NIC has counted, as far as is known. */
struct vb_view_living {
	uint64_t origin;
	unsigned device;
	bool answered; /* the last time that all were asked */
	uint64_t stat[VB_STATS];
};

/* Of a device: what NICs have counted that are closed; and how the port was seen. */
struct vb_view_ended {
	uint64_t stat[VB_STATS];
	uint64_t downs;
	bool was_up;
};

struct vb_view_counters {
	const struct vb_view_root *root;
	const struct vb_view_device *device; /* as facts.h has them ... */
	unsigned devices;		     /* ... so many */
	struct vb_view_ended *ended;	     /* ... of each */
	struct vb_view_living *living;
	unsigned count, room;
	int left_fd, watch_fd; /* the folder of what is left; tells when something is */
	uint64_t asked_ns;
};

/* All files, with zeros. Returns 0 or an errno. What is given has to stay. */
int vb_view_counters_open(struct vb_view_counters *counters, const struct vb_view_root *root,
			  const struct vb_view_device *device, unsigned devices);
void vb_view_counters_close(struct vb_view_counters *counters);

/*
 * Brings the files up to date: with what was left, and, if the last time was a second ago, with
 * what those say that live.
 */
void vb_view_counters_refresh(struct vb_view_counters *counters, uint64_t now_ns);

/* A NIC has answered, or, if it is closed, has left these. One of no device of ours is ignored. */
void vb_view_counters_add(struct vb_view_counters *counters, const struct vb_sample *sample,
			  bool closed);

/* All that NICs of that device have counted. */
void vb_view_counters_sum(const struct vb_view_counters *counters, unsigned device,
			  uint64_t stat[VB_STATS]);

#endif
