/* SPDX-License-Identifier: BSD-2-Clause */
#include "abi/rdmacm/check.h"

#include <unistd.h>

#include "abi/check/check.h"
#include "run/process/callsite.h"
#include "run/process/flaw.h"

void vb_cma_check_made(struct vb_cma_id *id)
{
	if (vb_check_is_on())
		id->site = vb_caller();
}

/* What says how a request of the application's went, or is a request of a peer's. */
static bool matters(enum rdma_cm_event_type type)
{
	switch ((int)type) {
	case RDMA_CM_EVENT_ADDR_ERROR:
	case RDMA_CM_EVENT_ROUTE_ERROR:
	case RDMA_CM_EVENT_CONNECT_REQUEST:
	case RDMA_CM_EVENT_CONNECT_ERROR:
	case RDMA_CM_EVENT_UNREACHABLE:
	case RDMA_CM_EVENT_REJECTED:
	case RDMA_CM_EVENT_ESTABLISHED:
		return true;
	default:
		return false;
	}
}

/* An id of a request of a peer's was made by no call of the application's. */
void vb_cma_check_left(const struct vb_cma_id *id, const struct rdma_cm_event *event)
{
	if (vb_check_is_on() && matters(event->event))
		vb_flaw_say(VB_FLAW_CM_LEFT, id->site ? id->site : vb_caller(),
			    "%s was not taken when its id%s was destroyed%s",
			    rdma_event_str(event->event), id->site ? ", which was made here," : "",
			    id->site ? "" : " here");
}

void vb_cma_check_fetched(struct vb_cma_event *event)
{
	if (vb_check_is_on())
		event->fetched_by = gettid();
}

void vb_cma_check_waits(const struct vb_cma_event *event, const char *call)
{
	if (vb_check_is_on() && event->fetched_by == gettid())
		vb_flaw_say(VB_FLAW_CM_UNACKED, vb_caller(),
			    "%s waits until %s is acknowledged, which this thread has taken", call,
			    rdma_event_str(event->pub.event));
}
