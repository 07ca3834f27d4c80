/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_DAEMON_ESTATES_H
#define VB_DAEMON_ESTATES_H

/*
 * What the dead had connected by rdma_cm: a process lends the hub the records of its ids
 * (cm/records.h), and when it has died the hub says goodbye to its peers, as a kernel does that
 * closes what a process had.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/path.h"
#include "wire/mad.h"

struct vb_cm_records;
struct vb_estate;

/* Maps the records behind a descriptor, which stays the caller's. NULL: they are none. */
struct vb_cm_records *vb_estate_map(int fd);
void vb_estate_unmap(struct vb_cm_records *records);

/* Who has gone, and perhaps died: its records are the list's now. NULL: it had none. */
void vb_estates_add(struct vb_estate **list, struct vb_cm_records *records, uint32_t slot,
		    uint64_t now_ns);

struct vb_estates_host {
	/* Does anybody hold the slot? */
	bool (*is_held)(void *arg, uint32_t slot);
	/* Send a MAD to where path leads. */
	void (*send)(void *arg, const struct vb_path *path, const uint8_t mad[VB_MAD_BYTES]);
	void *arg;
};

/*
 * Closes what those had whose slots nobody holds any more. Who still holds its slot, after a while,
 * has not died, and has its records to itself. Returns whether any are left to look at.
 */
bool vb_estates_settle(struct vb_estate **list, const struct vb_estates_host *host,
		       uint64_t now_ns);

void vb_estates_free(struct vb_estate **list);

#endif
