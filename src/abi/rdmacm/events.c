/* SPDX-License-Identifier: BSD-2-Clause */

/* The names of events, and those that the application makes itself. */

#include "abi/rdmacm/events.h"

#include <errno.h>
#include <string.h>

#include "abi/rdmacm/channel.h"
#include "abi/rdmacm/device.h"
#include "abi/rdmacm/newer.h"

#define NAME(event) [event] = #event
#define NEWER(name) [VB_CMA_EVENT_##name] = "RDMA_CM_EVENT_" #name

const char *rdma_event_str(enum rdma_cm_event_type event)
{
	static const char *const names[] = {
		NAME(RDMA_CM_EVENT_ADDR_RESOLVED),    NAME(RDMA_CM_EVENT_ADDR_ERROR),
		NAME(RDMA_CM_EVENT_ROUTE_RESOLVED),   NAME(RDMA_CM_EVENT_ROUTE_ERROR),
		NAME(RDMA_CM_EVENT_CONNECT_REQUEST),  NAME(RDMA_CM_EVENT_CONNECT_RESPONSE),
		NAME(RDMA_CM_EVENT_CONNECT_ERROR),    NAME(RDMA_CM_EVENT_UNREACHABLE),
		NAME(RDMA_CM_EVENT_REJECTED),         NAME(RDMA_CM_EVENT_ESTABLISHED),
		NAME(RDMA_CM_EVENT_DISCONNECTED),     NAME(RDMA_CM_EVENT_DEVICE_REMOVAL),
		NAME(RDMA_CM_EVENT_MULTICAST_JOIN),   NAME(RDMA_CM_EVENT_MULTICAST_ERROR),
		NAME(RDMA_CM_EVENT_ADDR_CHANGE),      NAME(RDMA_CM_EVENT_TIMEWAIT_EXIT),
		NEWER(ADDRINFO_RESOLVED),	      NEWER(ADDRINFO_ERROR),
		NEWER(USER),			      NEWER(INTERNAL),
	};

	if ((unsigned int)event >= sizeof names / sizeof names[0])
		return "UNKNOWN EVENT";
	return names[event];
}

/* INTERNAL is for librdmacm's own use, and we have none for it. */
int rdma_write_cm_event(struct rdma_cm_id *pub, enum rdma_cm_event_type type, int status,
			uint64_t arg)
{
	struct vb_cma_event *event;

	if ((int)type != VB_CMA_EVENT_USER)
		return vb_cma_result(EINVAL);
	event = vb_cma_event_make(vb_cma_of(pub), type, status);
	if (!event)
		return vb_cma_result(ENOMEM);
	memcpy(&event->pub.param, &arg, sizeof(arg));
	vb_cma_lock();
	vb_cma_event_queue(event);
	vb_cma_unlock();
	return 0;
}
