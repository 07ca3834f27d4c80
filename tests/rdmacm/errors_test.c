/* SPDX-License-Identifier: BSD-2-Clause */
#include "lib.h"

#include <fcntl.h>
#include <sys/un.h>
#include <unistd.h>

/*
 * Each call with each input that it refuses: -1, errno, and all is as it was. A case is a call upon
 * an id that has come as far as it says; what an id is does not change by it, no event comes, and
 * what it can do it still does.
 */

enum stage { NEW, BOUND, RESOLVED, ROUTED, LISTENING, ASKED, CONNECTED, DATAGRAMS };

struct refusal {
	const char *call;
	enum stage stage;
	int (*does)(struct rdma_cm_id *id);
	int err;
};

static struct ct_pair pair;
static uint8_t octets[256];
static struct sockaddr_un nowhere = { .sun_family = AF_UNIX };

/* --- addresses --- */

static int bind_null(struct rdma_cm_id *id)
{
	return rdma_bind_addr(id, NULL);
}

static int bind_family(struct rdma_cm_id *id)
{
	return rdma_bind_addr(id, (struct sockaddr *)&nowhere);
}

static int bind_foreign(struct rdma_cm_id *id)
{
	return rdma_bind_addr(id, ct_addr_of("198.51.100.1", 0));
}

static int bind_no_scope(struct rdma_cm_id *id)
{
	return rdma_bind_addr(id, ct_addr_of("fe80::1", 0));
}

static int bind_here(struct rdma_cm_id *id)
{
	return rdma_bind_addr(id, ct_addr(0));
}

static int bind_taken(struct rdma_cm_id *id)
{
	return rdma_bind_addr(id, ct_addr(ct_src_port(pair.listener)));
}

static int bind_taken_everywhere(struct rdma_cm_id *id)
{
	return rdma_bind_addr(id, ct_any(ct_src_port(pair.listener)));
}

static int resolve_null(struct rdma_cm_id *id)
{
	return rdma_resolve_addr(id, NULL, NULL, CT_RESOLVE_MS);
}

static int resolve_family(struct rdma_cm_id *id)
{
	return rdma_resolve_addr(id, NULL, (struct sockaddr *)&nowhere, CT_RESOLVE_MS);
}

static int resolve_other_family(struct rdma_cm_id *id)
{
	return rdma_resolve_addr(id, NULL, ct_addr_of(getenv("CT_IPV6") ? "127.0.0.1" : "::1", 9),
				 CT_RESOLVE_MS);
}

static int resolve_no_route(struct rdma_cm_id *id)
{
	return rdma_resolve_addr(id, NULL, ct_addr_of("198.51.100.1", 9), CT_RESOLVE_MS);
}

static int resolve_from_foreign(struct rdma_cm_id *id)
{
	return rdma_resolve_addr(id, ct_addr_of("198.51.100.1", 0), ct_addr_of("127.0.0.1", 9),
				 CT_RESOLVE_MS);
}

static int resolve_here(struct rdma_cm_id *id)
{
	return rdma_resolve_addr(id, NULL, ct_addr(9), CT_RESOLVE_MS);
}

static int route(struct rdma_cm_id *id)
{
	return rdma_resolve_route(id, CT_RESOLVE_MS);
}

static int route_no_time(struct rdma_cm_id *id)
{
	return rdma_resolve_route(id, 0);
}

/* --- connections --- */

static int connect_(struct rdma_cm_id *id)
{
	return rdma_connect(id, NULL);
}

static struct rdma_conn_param saying(unsigned bytes)
{
	return (struct rdma_conn_param){ .private_data = octets,
					 .private_data_len = (uint8_t)bytes };
}

static int connect_much(struct rdma_cm_id *id)
{
	struct rdma_conn_param param = saying(57);

	return rdma_connect(id, &param);
}

static int connect_nothing_said(struct rdma_cm_id *id)
{
	struct rdma_conn_param param = { .private_data_len = 1 };

	return rdma_connect(id, &param);
}

static int connect_deep(struct rdma_cm_id *id)
{
	struct rdma_conn_param param = { .responder_resources = 254 };

	return rdma_connect(id, &param);
}

static int connect_deep_too(struct rdma_cm_id *id)
{
	struct rdma_conn_param param = { .initiator_depth = 254 };

	return rdma_connect(id, &param);
}

static int listen_(struct rdma_cm_id *id)
{
	return rdma_listen(id, 1);
}

static int accept_(struct rdma_cm_id *id)
{
	return rdma_accept(id, NULL);
}

static int accept_much(struct rdma_cm_id *id)
{
	struct rdma_conn_param param = saying(197);

	return rdma_accept(id, &param);
}

static int accept_nothing_said(struct rdma_cm_id *id)
{
	struct rdma_conn_param param = { .private_data_len = 1 };

	return rdma_accept(id, &param);
}

static int accept_deep(struct rdma_cm_id *id)
{
	struct rdma_conn_param param = { .initiator_depth = 254 };

	return rdma_accept(id, &param);
}

static int reject(struct rdma_cm_id *id)
{
	return rdma_reject(id, NULL, 0);
}

static int reject_much(struct rdma_cm_id *id)
{
	return rdma_reject(id, octets, 149);
}

static int reject_nothing_said(struct rdma_cm_id *id)
{
	return rdma_reject(id, NULL, 1);
}

static int reject_ece(struct rdma_cm_id *id)
{
	return rdma_reject_ece(id, NULL, 0);
}

static int reject_ece_much(struct rdma_cm_id *id)
{
	return rdma_reject_ece(id, octets, 149);
}

static int disconnect(struct rdma_cm_id *id)
{
	return rdma_disconnect(id);
}

static int establish(struct rdma_cm_id *id)
{
	return rdma_establish(id);
}

static int notify(struct rdma_cm_id *id)
{
	return rdma_notify(id, IBV_EVENT_COMM_EST);
}

static int notify_other(struct rdma_cm_id *id)
{
	return rdma_notify(id, IBV_EVENT_SQ_DRAINED);
}

static int notify_migrated(struct rdma_cm_id *id)
{
	return rdma_notify(id, IBV_EVENT_PATH_MIG);
}

static int request_get(struct rdma_cm_id *id)
{
	struct rdma_cm_id *child;

	return rdma_get_request(id, &child);
}

/* --- QPs --- */

static int qp(struct rdma_cm_id *id)
{
	struct ibv_qp_init_attr attr = ct_qp_attr(), before;
	int rc;

	attr.qp_type = id->qp_type;
	before = attr;
	rc = rdma_create_qp(id, NULL, &attr);
	assert_memory_equal(&attr, &before, sizeof(attr));
	return rc;
}

static int qp_type(struct rdma_cm_id *id)
{
	struct ibv_qp_init_attr attr = ct_qp_attr();

	attr.qp_type = id->qp_type == IBV_QPT_RC ? IBV_QPT_UD : IBV_QPT_RC;
	return rdma_create_qp(id, NULL, &attr);
}

static int qp_large(struct rdma_cm_id *id)
{
	struct ibv_qp_init_attr attr = ct_qp_attr(), before;
	int rc;

	attr.cap.max_send_sge = 100000;
	before = attr;
	rc = rdma_create_qp(id, NULL, &attr);
	assert_memory_equal(&attr, &before, sizeof(attr));
	return rc;
}

static int srq(struct rdma_cm_id *id)
{
	struct ibv_srq_init_attr attr = { .attr = { .max_wr = 4, .max_sge = 1 } };

	return rdma_create_srq(id, NULL, &attr);
}

static int srq_large(struct rdma_cm_id *id)
{
	struct ibv_srq_init_attr attr = { .attr = { .max_wr = 4, .max_sge = 100000 } };

	return rdma_create_srq(id, NULL, &attr);
}

static int attr_of(struct rdma_cm_id *id, enum ibv_qp_state state)
{
	struct ibv_qp_attr attr = { .qp_state = state };
	int mask;

	return rdma_init_qp_attr(id, &attr, &mask);
}

static int attr_init(struct rdma_cm_id *id)
{
	return attr_of(id, IBV_QPS_INIT);
}

static int attr_rtr(struct rdma_cm_id *id)
{
	return attr_of(id, IBV_QPS_RTR);
}

static int attr_err(struct rdma_cm_id *id)
{
	return attr_of(id, IBV_QPS_ERR);
}

static int send_early(struct rdma_cm_id *id)
{
	int rc;

	ct_qp(id);
	rc = rdma_post_send(id, NULL, octets, 1, NULL, IBV_SEND_INLINE);
	if (rc == -1) {
		int err = errno;

		rdma_destroy_qp(id);
		errno = err;
	}
	return rc;
}

/* --- options, ECE, channels --- */

static int option(struct rdma_cm_id *id, int level, int name, int value, size_t bytes)
{
	return rdma_set_option(id, level, name, &value, bytes);
}

static int option_null(struct rdma_cm_id *id)
{
	return rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, NULL, 1);
}

static int option_level(struct rdma_cm_id *id)
{
	return option(id, 2, 0, 0, 1);
}

static int option_name(struct rdma_cm_id *id)
{
	return option(id, RDMA_OPTION_ID, 4, 0, 1);
}

static int option_ib_name(struct rdma_cm_id *id)
{
	return option(id, RDMA_OPTION_IB, 2, 0, 1);
}

static int option_tos_long(struct rdma_cm_id *id)
{
	return option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, 0, 4);
}

static int option_reuse_short(struct rdma_cm_id *id)
{
	return option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_REUSEADDR, 1, 1);
}

static int option_reuse(struct rdma_cm_id *id)
{
	return option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_REUSEADDR, 1, 4);
}

static int option_afonly_short(struct rdma_cm_id *id)
{
	return option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_AFONLY, 1, 1);
}

static int option_afonly(struct rdma_cm_id *id)
{
	return option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_AFONLY, 1, 4);
}

static int option_ack_long(struct rdma_cm_id *id)
{
	return option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT, 1, 4);
}

static int option_ack_32(struct rdma_cm_id *id)
{
	return option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT, 32, 1);
}

static int option_path_short(struct rdma_cm_id *id)
{
	return option(id, RDMA_OPTION_IB, RDMA_OPTION_IB_PATH, 0, 4);
}

static int option_path_flags(struct rdma_cm_id *id)
{
	struct ibv_path_data path = { .flags = IBV_PATH_FLAG_GMP };

	return rdma_set_option(id, RDMA_OPTION_IB, RDMA_OPTION_IB_PATH, &path, sizeof(path));
}

static int option_path(struct rdma_cm_id *id)
{
	struct ibv_path_data path = { .flags = IBV_PATH_FLAG_GMP | IBV_PATH_FLAG_PRIMARY |
					       IBV_PATH_FLAG_BIDIRECTIONAL };

	return rdma_set_option(id, RDMA_OPTION_IB, RDMA_OPTION_IB_PATH, &path, sizeof(path));
}

static int ece_local_null(struct rdma_cm_id *id)
{
	return rdma_set_local_ece(id, NULL);
}

static int ece_remote_null(struct rdma_cm_id *id)
{
	return rdma_get_remote_ece(id, NULL);
}

static int event_null(struct rdma_cm_id *id)
{
	return rdma_get_cm_event(id->channel, NULL);
}

static int event_none(struct rdma_cm_id *id)
{
	struct rdma_cm_event *event;
	int flags = fcntl(id->channel->fd, F_GETFL), rc;

	fcntl(id->channel->fd, F_SETFL, flags | O_NONBLOCK);
	rc = rdma_get_cm_event(id->channel, &event);
	fcntl(id->channel->fd, F_SETFL, flags);
	return rc;
}

static int ack_null(struct rdma_cm_id *id)
{
	return rdma_ack_cm_event(NULL);
}

static int create_space(struct rdma_cm_id *id)
{
	struct rdma_cm_id *made;

	return rdma_create_id(id->channel, &made, NULL, (enum rdma_port_space)0x107);
}

static int ep_mixed(struct rdma_cm_id *id)
{
	struct rdma_addrinfo info = { .ai_port_space = RDMA_PS_TCP, .ai_qp_type = IBV_QPT_UD };
	struct rdma_cm_id *made;

	return rdma_create_ep(&made, &info, NULL, NULL);
}

static int names_nothing(struct rdma_cm_id *id)
{
	struct rdma_addrinfo *info;

	return rdma_getaddrinfo(NULL, NULL, NULL, &info);
}

/* --- groups --- */

static int join_null(struct rdma_cm_id *id)
{
	return rdma_join_multicast(id, NULL, NULL);
}

static int join_no_group(struct rdma_cm_id *id)
{
	return rdma_join_multicast(id, ct_addr_of("192.0.2.1", 0), NULL);
}

static int join(struct rdma_cm_id *id)
{
	return rdma_join_multicast(id, ct_addr_of("239.1.2.3", 0), NULL);
}

static int join_ex(struct rdma_cm_id *id, uint32_t mask, uint32_t flags)
{
	struct rdma_cm_join_mc_attr_ex attr = { .comp_mask = mask, .join_flags = flags,
						.addr = ct_addr_of("239.1.2.3", 0) };

	return rdma_join_multicast_ex(id, &attr, NULL);
}

static int join_ex_null(struct rdma_cm_id *id)
{
	return rdma_join_multicast_ex(id, NULL, NULL);
}

static int join_ex_no_address(struct rdma_cm_id *id)
{
	return join_ex(id, RDMA_CM_JOIN_MC_ATTR_JOIN_FLAGS, 0);
}

static int join_ex_mask(struct rdma_cm_id *id)
{
	return join_ex(id, RDMA_CM_JOIN_MC_ATTR_ADDRESS | RDMA_CM_JOIN_MC_ATTR_RESERVED, 0);
}

static int join_ex_flags(struct rdma_cm_id *id)
{
	return join_ex(id, RDMA_CM_JOIN_MC_ATTR_ADDRESS | RDMA_CM_JOIN_MC_ATTR_JOIN_FLAGS,
		       RDMA_MC_JOIN_FLAG_RESERVED);
}

static int leave_null(struct rdma_cm_id *id)
{
	return rdma_leave_multicast(id, NULL);
}

static int leave_unknown(struct rdma_cm_id *id)
{
	return rdma_leave_multicast(id, ct_addr_of("239.1.2.3", 0));
}

/* --- the table --- */

/* clang-format off */
static const struct refusal refusals[] = {
	{ "rdma_create_id: a port space that there is not", NEW, create_space, EINVAL },
	{ "rdma_get_cm_event: nowhere", NEW, event_null, EINVAL },
	{ "rdma_get_cm_event: none is there", NEW, event_none, EAGAIN },
	{ "rdma_ack_cm_event: none", NEW, ack_null, EINVAL },
	{ "rdma_bind_addr: no address", NEW, bind_null, EINVAL },
	{ "rdma_bind_addr: no IP address", NEW, bind_family, EAFNOSUPPORT },
	{ "rdma_bind_addr: not ours", NEW, bind_foreign, ENODEV },
	{ "rdma_bind_addr: link-local without an interface", NEW, bind_no_scope, EINVAL },
	{ "rdma_bind_addr: taken", NEW, bind_taken, EADDRINUSE },
	{ "rdma_bind_addr: taken somewhere", NEW, bind_taken_everywhere, EADDRNOTAVAIL },
	{ "rdma_bind_addr: bound", BOUND, bind_here, EINVAL },
	{ "rdma_bind_addr: resolved", RESOLVED, bind_here, EINVAL },
	{ "rdma_bind_addr: listening", LISTENING, bind_here, EINVAL },
	{ "rdma_resolve_addr: no address", NEW, resolve_null, EINVAL },
	{ "rdma_resolve_addr: no IP address", NEW, resolve_family, EAFNOSUPPORT },
	{ "rdma_resolve_addr: the other family", BOUND, resolve_other_family, EINVAL },
	{ "rdma_resolve_addr: no way leads there", NEW, resolve_no_route, ENETUNREACH },
	{ "rdma_resolve_addr: from an address not ours", NEW, resolve_from_foreign, ENODEV },
	{ "rdma_resolve_addr: resolved", RESOLVED, resolve_here, EINVAL },
	{ "rdma_resolve_addr: listening", LISTENING, resolve_here, EINVAL },
	{ "rdma_resolve_addr: connected", CONNECTED, resolve_here, EINVAL },
	{ "rdma_resolve_route: no address", NEW, route, EINVAL },
	{ "rdma_resolve_route: not resolved", BOUND, route, EINVAL },
	{ "rdma_resolve_route: no time", RESOLVED, route_no_time, EINVAL },
	{ "rdma_resolve_route: routed", ROUTED, route, EINVAL },
	{ "rdma_connect: nowhere", NEW, connect_, EINVAL },
	{ "rdma_connect: no route", RESOLVED, connect_, EINVAL },
	{ "rdma_connect: more than 56 octets", ROUTED, connect_much, EINVAL },
	{ "rdma_connect: octets that are nowhere", ROUTED, connect_nothing_said, EINVAL },
	{ "rdma_connect: too many responder resources", ROUTED, connect_deep, EINVAL },
	{ "rdma_connect: too deep", ROUTED, connect_deep_too, EINVAL },
	{ "rdma_connect: listening", LISTENING, connect_, EINVAL },
	{ "rdma_connect: connected", CONNECTED, connect_, EINVAL },
	{ "rdma_listen: resolved", RESOLVED, listen_, EINVAL },
	{ "rdma_listen: listening", LISTENING, listen_, EINVAL },
	{ "rdma_listen: connected", CONNECTED, listen_, EINVAL },
	{ "rdma_accept: nobody has asked", NEW, accept_, EINVAL },
	{ "rdma_accept: who listens", LISTENING, accept_, EINVAL },
	{ "rdma_accept: who asks", ROUTED, accept_, EINVAL },
	{ "rdma_accept: more than 196 octets", ASKED, accept_much, EINVAL },
	{ "rdma_accept: octets that are nowhere", ASKED, accept_nothing_said, EINVAL },
	{ "rdma_accept: too deep", ASKED, accept_deep, EINVAL },
	{ "rdma_accept: connected", CONNECTED, accept_, EINVAL },
	{ "rdma_reject: nobody has asked", NEW, reject, EINVAL },
	{ "rdma_reject: who listens", LISTENING, reject, EINVAL },
	{ "rdma_reject: more than 148 octets", ASKED, reject_much, EINVAL },
	{ "rdma_reject: octets that are nowhere", ASKED, reject_nothing_said, EINVAL },
	{ "rdma_reject: connected", CONNECTED, reject, EINVAL },
	{ "rdma_reject_ece: nobody has asked", NEW, reject_ece, EINVAL },
	{ "rdma_reject_ece: more than 148 octets", ASKED, reject_ece_much, EINVAL },
	{ "rdma_disconnect: new", NEW, disconnect, EINVAL },
	{ "rdma_disconnect: not connected", ROUTED, disconnect, EINVAL },
	{ "rdma_disconnect: who listens", LISTENING, disconnect, EINVAL },
	{ "rdma_disconnect: datagrams", DATAGRAMS, disconnect, EINVAL },
	{ "rdma_establish: new", NEW, establish, EINVAL },
	{ "rdma_establish: nobody has answered", ROUTED, establish, EINVAL },
	{ "rdma_establish: with a QP of the id's", CONNECTED, establish, EINVAL },
	{ "rdma_notify: new", NEW, notify, EINVAL },
	{ "rdma_notify: who listens", LISTENING, notify, EINVAL },
	{ "rdma_notify: established", CONNECTED, notify, EISCONN },
	{ "rdma_notify: another event", CONNECTED, notify_other, EINVAL },
	{ "rdma_notify: migrated to no path", CONNECTED, notify_migrated, EINVAL },
	{ "rdma_get_request: not listening", NEW, request_get, EINVAL },
	{ "rdma_get_request: with a channel", LISTENING, request_get, EINVAL },
	{ "rdma_create_qp: at no device", NEW, qp, EINVAL },
	{ "rdma_create_qp: another type", ROUTED, qp_type, EINVAL },
	{ "rdma_create_qp: larger than there are", ROUTED, qp_large, EINVAL },
	{ "rdma_create_qp: it has one", CONNECTED, qp, EINVAL },
	{ "rdma_create_srq: at no device", NEW, srq, EINVAL },
	{ "rdma_create_srq: larger than there are", ROUTED, srq_large, EINVAL },
	{ "rdma_create_srq: larger than there are, beside a QP", CONNECTED, srq_large, EINVAL },
	{ "rdma_init_qp_attr: at no device", NEW, attr_init, EINVAL },
	{ "rdma_init_qp_attr: nobody has answered", ROUTED, attr_rtr, EINVAL },
	{ "rdma_init_qp_attr: a state that it does not lead to", CONNECTED, attr_err, EINVAL },
	{ "rdma_post_send: not connected", ROUTED, send_early, EINVAL },
	{ "rdma_set_option: no value", NEW, option_null, EINVAL },
	{ "rdma_set_option: another level", NEW, option_level, ENOSYS },
	{ "rdma_set_option: no such option", NEW, option_name, ENOSYS },
	{ "rdma_set_option: no such option of IB", NEW, option_ib_name, ENOSYS },
	{ "rdma_set_option: TOS of four octets", NEW, option_tos_long, EINVAL },
	{ "rdma_set_option: REUSEADDR of one octet", NEW, option_reuse_short, EINVAL },
	{ "rdma_set_option: REUSEADDR too late", RESOLVED, option_reuse, EINVAL },
	{ "rdma_set_option: AFONLY of one octet", NEW, option_afonly_short, EINVAL },
	{ "rdma_set_option: AFONLY too late", RESOLVED, option_afonly, EINVAL },
	{ "rdma_set_option: ACK_TIMEOUT of four octets", NEW, option_ack_long, EINVAL },
	{ "rdma_set_option: ACK_TIMEOUT above 31", NEW, option_ack_32, EINVAL },
	{ "rdma_set_option: IB_PATH, not an array of paths", RESOLVED, option_path_short, EINVAL },
	{ "rdma_set_option: IB_PATH one way", RESOLVED, option_path_flags, EINVAL },
	{ "rdma_set_option: IB_PATH before an address", NEW, option_path, EINVAL },
	{ "rdma_set_local_ece: none", NEW, ece_local_null, EINVAL },
	{ "rdma_get_remote_ece: nowhere", NEW, ece_remote_null, EINVAL },
	{ "rdma_create_ep: a type that the port space has not", NEW, ep_mixed, EINVAL },
	{ "rdma_getaddrinfo: nothing is asked", NEW, names_nothing, EINVAL },
	{ "rdma_join_multicast: no address", DATAGRAMS, join_null, EINVAL },
	{ "rdma_join_multicast: no group", DATAGRAMS, join_no_group, EINVAL },
	{ "rdma_join_multicast: at no device", NEW, join, EINVAL },
	{ "rdma_join_multicast: connections", ROUTED, join, EINVAL },
	{ "rdma_join_multicast_ex: nothing", DATAGRAMS, join_ex_null, EINVAL },
	{ "rdma_join_multicast_ex: no address", DATAGRAMS, join_ex_no_address, EINVAL },
	{ "rdma_join_multicast_ex: unknown attributes", DATAGRAMS, join_ex_mask, EINVAL },
	{ "rdma_join_multicast_ex: unknown flags", DATAGRAMS, join_ex_flags, EINVAL },
	{ "rdma_leave_multicast: no address", DATAGRAMS, leave_null, EINVAL },
	{ "rdma_leave_multicast: not a member", DATAGRAMS, leave_unknown, EADDRNOTAVAIL },
};
/* clang-format on */

/* --- the trial --- */

/* One that has come so far; *own: it is this function's, and to be destroyed. */
static struct rdma_cm_id *id_at(enum stage stage, struct rdma_event_channel *channel, bool *own)
{
	struct rdma_cm_id *id;

	*own = stage != CONNECTED;
	if (stage == CONNECTED)
		return pair.client;
	if (stage == ROUTED || stage == DATAGRAMS)
		return ct_client(channel, stage == ROUTED ? RDMA_PS_TCP : RDMA_PS_UDP,
				 ct_src_port(pair.listener));
	if (stage == LISTENING)
		return ct_listener(channel, RDMA_PS_TCP);
	id = ct_id(channel, RDMA_PS_TCP);
	if (stage == BOUND)
		ct_works(rdma_bind_addr(id, ct_addr(0)));
	if (stage == RESOLVED) {
		ct_works(rdma_resolve_addr(id, NULL, ct_addr(ct_src_port(pair.listener)),
					   CT_RESOLVE_MS));
		ct_pass(channel, RDMA_CM_EVENT_ADDR_RESOLVED);
	}
	return id;
}

/* The call is refused, and the id is what it was. */
static void refuse(const struct refusal *refusal, struct rdma_cm_id *id)
{
	struct rdma_cm_id before = *id;
	int rc;

	errno = 0;
	rc = refusal->does(id);
	if (rc != -1 || errno != refusal->err)
		fail_msg("%s: %d, %s; not %s", refusal->call, rc, strerror(errno),
			 strerror(refusal->err));
	if (memcmp(id, &before, sizeof(before)))
		fail_msg("%s: the id has changed", refusal->call);
	if (ct_readable(id->channel->fd, 0))
		fail_msg("%s: an event has come", refusal->call);
}

/* What it could do before it still does: up to asking, and being refused. */
static void go_on(struct rdma_cm_id *id, enum stage stage)
{
	if (stage == NEW || stage == BOUND) {
		ct_works(resolve_here(id));
		ct_pass(id->channel, RDMA_CM_EVENT_ADDR_RESOLVED);
		stage = RESOLVED;
	}
	if (stage == RESOLVED) {
		ct_works(route(id));
		ct_pass(id->channel, RDMA_CM_EVENT_ROUTE_RESOLVED);
		stage = ROUTED;
	}
	if (stage == ROUTED)
		ct_qp(id);
}

/*
 * rdma_cm: "Most librdmacm functions return 0 to indicate success, and a -1 return value to
 * indicate failure."
 * rdma_cm: "If the return value is -1, then errno will contain additional information regarding
 * the reason for the failure."
 * rdma_cm: "success; error - see errno for more details"
 * rdma_*: "If an error occurs, errno will be set to indicate the failure reason."
 */
static void what_is_refused_changes_nothing(void **state)
{
	struct rdma_event_channel *channel = ct_channel();
	bool own;

	ct_pair_open(&pair);
	for (size_t i = 0; i < sizeof(refusals) / sizeof(refusals[0]); i++) {
		struct rdma_cm_id *id;

		if (refusals[i].stage == ASKED)
			continue;
		id = id_at(refusals[i].stage, channel, &own);
		refuse(&refusals[i], id);
		if (!own)
			continue;
		go_on(id, refusals[i].stage);
		if (id->qp)
			rdma_destroy_qp(id);
		ct_works(rdma_destroy_id(id));
	}
	ct_exchange(pair.client, pair.server);
	ct_exchange(pair.server, pair.client);
	ct_pair_part(&pair);
	ct_pair_close(&pair);
	rdma_destroy_event_channel(channel);
}

/* After all those who is asked accepts, and they talk. */
static void who_is_asked_may_try_again(void **state)
{
	ct_works(rdma_ack_cm_event(ct_pair_ask(&pair, RDMA_PS_TCP, NULL)));
	for (size_t i = 0; i < sizeof(refusals) / sizeof(refusals[0]); i++) {
		if (refusals[i].stage == ASKED)
			refuse(&refusals[i], pair.server);
	}
	ct_no_event(pair.at_client);
	ct_pair_accept(&pair, NULL);
	ct_exchange(pair.client, pair.server);
	ct_pair_part(&pair);
	ct_pair_close(&pair);
}

/* Below 1024 only root binds. */
static void low_ports_are_roots(void **state)
{
	struct rdma_event_channel *channel = ct_channel();
	struct rdma_cm_id *id = ct_id(channel, RDMA_PS_TCP);

	if (geteuid() == 0)
		ct_works(rdma_bind_addr(id, ct_addr(1023)));
	else
		ct_fails(rdma_bind_addr(id, ct_addr(1023)), EACCES);
	ct_works(rdma_destroy_id(id));
	rdma_destroy_event_channel(channel);
}

/* Waiting for its calls, an id leaves its events to them, and cannot be made to do so twice. */
static void who_waits_already_is_not_moved(void **state)
{
	struct rdma_cm_id *id;

	ct_works(rdma_create_id(NULL, &id, NULL, RDMA_PS_TCP));
	ct_fails(rdma_migrate_id(id, NULL), EINVAL);
	ct_works(rdma_destroy_id(id));
}

int main(void)
{
	const struct CMUnitTest errors[] = {
		cmocka_unit_test(what_is_refused_changes_nothing),
		cmocka_unit_test(who_is_asked_may_try_again),
		cmocka_unit_test(low_ports_are_roots),
		cmocka_unit_test(who_waits_already_is_not_moved),
	};

	return ct_main(errors);
}
