/* SPDX-License-Identifier: BSD-2-Clause */
#include "abi/rdmacm/why.h"

#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "abi/rdmacm/addr.h"
#include "abi/rdmacm/id.h"
#include "hub/program.h"
#include "hub/ask/query.h"
#include "run/cm.h"
#include "run/process/log.h"
#include "wire/cm_ip.h"
#include "wire/cm_msg.h"

enum { PLACE_BYTES = INET6_ADDRSTRLEN + 40, NEAREST_BYTES = 160, MS_NS = 1000000 };

/* --- places --- */

/* "192.0.2.1 port 7471 of TCP" */
static const char *place(char text[PLACE_BYTES], const struct vb_cma_id *id,
			 const struct sockaddr *addr)
{
	const struct sockaddr_in6 *ipv6 = (const void *)addr;
	const struct sockaddr_in *ipv4 = (const void *)addr;
	char ip[INET6_ADDRSTRLEN] = "?";

	if (addr->sa_family == AF_INET)
		inet_ntop(AF_INET, &ipv4->sin_addr, ip, sizeof(ip));
	else
		inet_ntop(AF_INET6, &ipv6->sin6_addr, ip, sizeof(ip));
	snprintf(text, PLACE_BYTES, "%s port %u of %s", ip, vb_cma_port_of(addr),
		 vb_cm_port_space_name(id->pub.ps));
	return text;
}

/* Who listens on this host, where the peer is: "; the nearest is port 7470, pid 12 (rping)". */
static const char *nearest(char text[NEAREST_BYTES], const struct vb_cma_id *id)
{
	char number[VB_HUB_NUMBER_BYTES];
	struct vb_hub_cm_row row;
	int rc;

	*text = 0;
	if (!id->path.local)
		return text;
	rc = vb_hub_listener_nearest(id->pub.ps, vb_cma_port_of(&id->pub.route.addr.dst_addr),
				     &row);
	if (rc == ENOENT)
		snprintf(text, NEAREST_BYTES, "; no port of %s is listened to here",
			 vb_cm_port_space_name(id->pub.ps));
	else if (!rc)
		snprintf(text, NEAREST_BYTES, "; the nearest is %s%u, pid %s (%s)",
			 row.bind.port == vb_cma_port_of(&id->pub.route.addr.dst_addr)
				 ? "at another address, port " : "port ",
			 row.bind.port,
			 vb_hub_program_number(number, row.pid, &row.program), row.program.comm);
	return text;
}

/* --- what failed --- */

static void refused(const struct vb_cma_id *id, const char *where, const char *why, int number,
		    bool nobody)
{
	char hint[NEAREST_BYTES] = "";

	vb_log("rdma_connect to %s: refused there: %s (%d)%s", where, why, number,
	       nobody ? nearest(hint, id) : hint);
}

static void unreachable(const struct vb_cma_id *id, const char *where, int status)
{
	if (id->pub.qp_type == IBV_QPT_UD && status > 0)
		refused(id, where, vb_cm_sidr_text((unsigned)status), status,
			status == VB_CM_SIDR_UNSUPPORTED);
	else if (id->passive)
		vb_log("rdma_accept of a request from %s: no answer", where);
	else
		vb_log("rdma_connect to %s: no answer: nothing there speaks RoCEv2, UDP port 4791 "
		       "is not let through, or the backlog of who listens there is full", where);
}

void vb_cma_why(const struct vb_cma_event *event)
{
	const struct vb_cma_id *id = event->id;
	int status = event->pub.status;
	char to[PLACE_BYTES], from[PLACE_BYTES];

	if (!status || !vb_log_is_on())
		return;
	place(to, id, &id->pub.route.addr.dst_addr);
	switch (event->pub.event) {
	case RDMA_CM_EVENT_REJECTED:
		if (id->passive)
			vb_log("rdma_accept of a request from %s: refused there: %s (%d)", to,
			       vb_cm_rej_text((unsigned)status), status);
		else
			refused(id, to, vb_cm_rej_text((unsigned)status), status,
				status == VB_CM_REJ_INVALID_SERVICE_ID);
		break;
	case RDMA_CM_EVENT_UNREACHABLE:
		unreachable(id, to, status);
		break;
	case RDMA_CM_EVENT_CONNECT_ERROR:
		vb_log("rdma_connect to %s: accepted there, but the QP cannot be connected: %s",
		       to, strerror(-status));
		break;
	case RDMA_CM_EVENT_ADDR_ERROR:
		vb_log("rdma_resolve_addr to %s: the way there begins at %s, which is no address "
		       "of the device (`verbatim devices` shows those)", to,
		       place(from, id, &id->pub.route.addr.src_addr));
		break;
	case RDMA_CM_EVENT_DISCONNECTED:
		vb_log("rdma_disconnect from %s: no answer", to);
		break;
	default:
		break;
	}
}

void vb_cma_why_waits(const struct vb_cma_id *id, const char *call)
{
	const struct vb_cma_event *event;
	uint64_t age_ms;

	TAILQ_FOREACH(event, &id->unacked, link) {
		age_ms = (vb_cm_now_ns() - event->fetched_ns) / MS_NS;
		vb_log("%s waits until %s, which was fetched %" PRIu64 ".%" PRIu64 " s ago, is "
		       "acknowledged (rdma_ack_cm_event)", call,
		       rdma_event_str(event->pub.event), age_ms / 1000, age_ms / 100 % 10);
	}
}

void vb_cma_why_type(const struct vb_cma_id *listener, const struct vb_path *path)
{
	static const char *const kinds[] = {
		[IBV_QPT_RC] = "RC", [IBV_QPT_UD] = "UD", [IBV_QPT_XRC_RECV] = "XRC",
	};
	struct sockaddr_storage peer;
	char here[PLACE_BYTES], ip[PLACE_BYTES];
	unsigned type = listener->pub.qp_type;

	vb_cma_sockaddr_set(&peer, vb_gid_is_ipv4(path->src), path->src, 0, path->ifindex);
	place(ip, listener, (struct sockaddr *)&peer);
	*strchr(ip, ' ') = 0;
	vb_log("a request from %s is refused: it is for another type of QP than %s, which listens "
	       "at %s", ip,
	       type < sizeof(kinds) / sizeof(kinds[0]) && kinds[type] ? kinds[type] : "this",
	       place(here, listener, &listener->pub.route.addr.src_addr));
}
