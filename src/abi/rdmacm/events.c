/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The calls of librdmacm that need no connection manager to be answered truthfully.
 */

#include <errno.h>
#include <rdma/rdma_cma.h>

#define NAME(event) [event] = #event

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
	};

	if ((unsigned int)event >= sizeof names / sizeof names[0])
		return "UNKNOWN EVENT";
	return names[event];
}
