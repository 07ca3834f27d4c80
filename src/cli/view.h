/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_CLI_VIEW_H
#define VB_CLI_VIEW_H

/* What all processes of the hub say of themselves: samples, and the names of what is in them. */

#include <stdbool.h>
#include <stdint.h>

#include "hub/program.h"
#include "nic/control/sample.h"

struct vb_cli_process {
	char number[VB_HUB_NUMBER_BYTES]; /* as `verbatim fail` takes it */
	char name[VB_HUB_COMM_BYTES];
	struct vb_sample *sample;
};

struct vb_cli_view {
	struct vb_cli_process *process;
	unsigned count;
	unsigned silent; /* so many did not answer: they are stopped, say */
};

/*
 * Asks them, and waits for their answers for wait_ns at most. ECONNREFUSED: there is no hub, and so
 * nobody to ask; the view is empty then, as after any error. measure_s: when the next view is
 * taken, for latencies (nic/control/sample.h).
 */
int vb_cli_view_take(struct vb_cli_view *view, uint32_t measure_s, uint64_t wait_ns);
void vb_cli_view_free(struct vb_cli_view *view);

/* A number of a QP, and what it is called. */
struct vb_cli_field {
	const char *name, *help;
	bool sum; /* it only grows; otherwise it goes up and down */
	uint16_t offset;
	uint8_t bytes;
};

/* The last one has no name. */
extern const struct vb_cli_field vb_cli_fields[];

/* Latencies are measured while somebody looks: were some of this QP? And is it so now? */
static inline bool vb_cli_was_measured(const struct vb_sample_qp *qp)
{
	return qp->latency.count;
}

static inline bool vb_cli_is_measured(const struct vb_sample_qp *qp)
{
	return qp->latency.max_ns;
}

uint64_t vb_cli_field_get(const struct vb_sample_qp *qp, const struct vb_cli_field *field);

/* "ring", "wire", "none" */
const char *vb_cli_way_name(const struct vb_sample_qp *qp);

#endif
