/* SPDX-License-Identifier: BSD-2-Clause */
#include "nic/core/found.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/check.h"
#include "base/refusal.h"
#include "nic/core/internal.h"
#include "nic/core/names.h"

struct vb_finding *vb_finding_begin(const struct vb_nic *nic)
{
	return nic->host.insight && vb_refusals_are_wanted()
		       ? calloc(1, sizeof(struct vb_finding))
		       : NULL;
}

void vb_finding_end(const struct vb_nic *nic, struct vb_finding *finding)
{
	nic->host.insight->found(nic->host.arg, finding);
}

/* What an event is about. */
enum element { QP, CQ, SRQ, WQ, PORT, DEVICE };

struct event_row {
	enum element element;
	const char *words, *look;
};

/* ibv_get_async_event(3) */
static const struct event_row rows[] = {
	[IBV_EVENT_CQ_ERR] = { CQ, "it overran: completions were lost, and it is no more use",
			       "make it as large as all requests that can complete to it" },
	[IBV_EVENT_QP_FATAL] = { QP, "it failed, and no completion says so",
				 "the lines before say why" },
	[IBV_EVENT_QP_REQ_ERR] = { QP, "its peer sent a request that is not valid here, and no "
				       "receive request was taken that could say so",
				   "the line before says what was refused" },
	[IBV_EVENT_QP_ACCESS_ERR] = { QP, "its peer asked for an access that is not allowed, and "
					  "no receive request was taken that could say so",
				      "the line before says what was refused" },
	[IBV_EVENT_COMM_EST] = { QP, "the first request of its peer came before it was in RTS",
				 "move it to RTS" },
	[IBV_EVENT_SQ_DRAINED] = { QP, "in SQD, all that was sent is acknowledged", "" },
	[IBV_EVENT_PATH_MIG] = { QP, "it migrated to its alternate path", "" },
	[IBV_EVENT_PATH_MIG_ERR] = { QP, "its peer migrated to a path that is not our alternate "
					 "path", "compare the alternate paths of both ends" },
	[IBV_EVENT_DEVICE_FATAL] = { DEVICE, "it failed: all QPs are in ERR, and calls fail with "
					     "EIO", "close every context, and open it anew" },
	[IBV_EVENT_PORT_ACTIVE] = { PORT, "it is up", "" },
	[IBV_EVENT_PORT_ERR] = { PORT, "it is down",
			       "is one of its interfaces up, or does a fault script say so?" },
	[IBV_EVENT_SRQ_LIMIT_REACHED] = { SRQ, "it has fewer receive requests than its limit",
					  "post more, and arm the limit again" },
	[IBV_EVENT_QP_LAST_WQE_REACHED] = { QP, "it takes nothing from its SRQ any more",
					    "now it can be destroyed" },
	[IBV_EVENT_GID_CHANGE] = { PORT, "its table of GIDs changed",
				   "look the GID's index up again" },
	[IBV_EVENT_WQ_FATAL] = { WQ, "the receive queue failed", "the lines before say why" },
};

static void say_element(struct vb_finding *finding, enum element element,
			const struct ibv_async_event *event)
{
	const char *name = vb_event_name(event->event_type);
	char *what = finding->what;
	size_t bytes = sizeof(finding->what);

	switch (element) {
	case QP:
		snprintf(what, bytes, "QPN 0x%x: %s", event->element.qp->qp_num, name);
		break;
	case CQ:
		snprintf(what, bytes, "CQ of %d completions: %s", event->element.cq->cqe, name);
		break;
	case SRQ:
		snprintf(what, bytes, "SRQ %u: %s", event->element.srq->handle, name);
		break;
	case WQ:
		snprintf(what, bytes, "WQ 0x%x: %s", event->element.wq->wq_num, name);
		break;
	case PORT:
		snprintf(what, bytes, "port %d: %s", event->element.port_num, name);
		break;
	case DEVICE:
		snprintf(what, bytes, "the device: %s", name);
		break;
	}
}

void vb_finding_event(const struct vb_ctx *ctx, const struct ibv_async_event *event)
{
	const struct event_row *row = event->event_type < VB_ARRAY_LEN(rows)
					      ? &rows[event->event_type]
					      : NULL;
	struct vb_finding *finding;

	if (!row || !row->words)
		return;
	finding = vb_finding_begin(ctx->nic);
	if (!finding)
		return;
	say_element(finding, row->element, event);
	snprintf(finding->why, sizeof(finding->why), "%s", row->words);
	finding->look = row->look;
	vb_finding_end(ctx->nic, finding);
}
