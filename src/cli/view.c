/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/view.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "hub/ask/samples.h"
#include "run/process/sample.h"

#define FIELD(word, member, grows, text)                                                          \
	{ word, text, grows, offsetof(struct vb_sample_qp, member),                               \
	  sizeof(((struct vb_sample_qp *)0)->member) }

/* clang-format off */
const struct vb_cli_field vb_cli_fields[] = {
	FIELD("requests", done, true, "Work requests of the send queue that were carried out"),
	FIELD("octets", octets, true, "Octets of these; an estimate where many are carried out"),
	FIELD("served", served, true, "Messages that came from the peer"),
	FIELD("resent", resent, true, "Packets sent again"),
	FIELD("ack_timeouts", timeouts, true, "Waits for an acknowledgement that were too long"),
	FIELD("rnr_naks_seen", rnr_seen, true, "Times that the peer had no receive request"),
	FIELD("rnr_naks_sent", rnr_sent, true, "Times that this QP had no receive request"),
	FIELD("psn_naks_seen", naks_seen, true, "Gaps that the peer found"),
	FIELD("psn_naks_sent", naks_sent, true, "Gaps that this QP found"),
	FIELD("outstanding", outstanding, false, "Work requests posted and not carried out"),
	FIELD("unsent", unsent, false, "Those of them of which nothing was sent"),
	FIELD("receives", receives, false, "Receive requests that wait, without those of an SRQ"),
	{ NULL },
};
/* clang-format on */

uint64_t vb_cli_field_get(const struct vb_sample_qp *qp, const struct vb_cli_field *field)
{
	const char *at = (const char *)qp + field->offset;
	uint64_t wide;
	uint32_t word;

	if (field->bytes == sizeof(wide)) {
		memcpy(&wide, at, sizeof(wide));
		return wide;
	}
	memcpy(&word, at, sizeof(word));
	return word;
}

const char *vb_cli_way_name(const struct vb_sample_qp *qp)
{
	static const char *const names[] = {
		[VB_SAMPLE_NOWHERE] = "none", [VB_SAMPLE_WIRE] = "wire", [VB_SAMPLE_RING] = "ring",
	};

	return qp->way < VB_ARRAY_LEN(names) ? names[qp->way] : "?";
}

static int by_number(const void *a, const void *b)
{
	const struct vb_cli_process *left = a, *right = b;
	size_t n = strlen(left->number), m = strlen(right->number);

	int order = n != m ? (n > m) - (n < m) : strcmp(left->number, right->number);

	return order ? order : strcmp(left->sample->device, right->sample->device);
}

static void process_add(struct vb_cli_view *view, const struct vb_hub_said *said)
{
	struct vb_cli_process *process = &view->process[view->count];

	process->sample = vb_sample_read(said->fd);
	if (!process->sample) {
		view->silent++;
		return;
	}
	vb_hub_program_number(process->number, said->pid, &said->program);
	memcpy(process->name, said->program.comm, sizeof(process->name));
	view->count++;
}

int vb_cli_view_take(struct vb_cli_view *view, uint32_t measure_s, uint64_t wait_ns)
{
	struct vb_hub_said *said;
	unsigned count;
	int rc;

	*view = (struct vb_cli_view){ 0 };
	rc = vb_hub_sample(measure_s, wait_ns, &said, &count, &view->silent);
	if (rc)
		return rc;
	view->process = calloc(count + 1, sizeof(*view->process));
	for (unsigned i = 0; i < count && view->process; i++)
		process_add(view, &said[i]);
	vb_hub_said_free(said, count);
	if (!view->process)
		return ENOMEM;
	qsort(view->process, view->count, sizeof(*view->process), by_number);
	return 0;
}

void vb_cli_view_free(struct vb_cli_view *view)
{
	for (unsigned i = 0; i < view->count; i++)
		free(view->process[i].sample);
	free(view->process);
	*view = (struct vb_cli_view){ 0 };
}
