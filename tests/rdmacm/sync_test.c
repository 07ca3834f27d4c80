/* SPDX-License-Identifier: BSD-2-Clause */
#include "lib.h"

#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

/* Endpoints, and ids whose calls wait for their events. */

static struct rdma_addrinfo *info(bool passive, uint16_t port)
{
	const struct rdma_addrinfo hints = { .ai_flags = passive ? RAI_PASSIVE : 0,
					     .ai_port_space = RDMA_PS_TCP };
	struct rdma_addrinfo *res;
	char service[8];

	snprintf(service, sizeof(service), "%u", port);
	ct_works(rdma_getaddrinfo(ct_ip(), service, &hints, &res));
	return res;
}

static struct rdma_cm_id *endpoint(bool passive, uint16_t port, struct ibv_pd *pd,
				   struct ibv_qp_init_attr *attr)
{
	struct rdma_addrinfo *res = info(passive, port);
	struct rdma_cm_id *id = NULL;

	ct_works(rdma_create_ep(&id, res, pd, attr));
	rdma_freeaddrinfo(res);
	return id;
}

/* A server that listens, and a thread that connects to it with a QP. */
struct meeting {
	struct rdma_cm_id *listener, *server, *client;
	uint16_t port;
	pthread_t thread;
	struct rdma_conn_param param; /* what the client says */
	int rc, err;
	_Atomic bool done;
};

static void *connect_to(void *arg)
{
	struct meeting *meeting = arg;

	meeting->rc = rdma_connect(meeting->client, &meeting->param);
	meeting->err = errno;
	meeting->done = true;
	return NULL;
}

/* The listener's attributes, or NULL. */
static void meeting_begin(struct meeting *meeting, struct ibv_qp_init_attr *attr)
{
	struct ibv_qp_init_attr own = ct_qp_attr();

	memset(meeting, 0, sizeof(*meeting));
	meeting->param = (struct rdma_conn_param){ .responder_resources = 1, .initiator_depth = 1,
						   .retry_count = 7, .rnr_retry_count = 7 };
	meeting->listener = endpoint(true, 0, NULL, attr);
	ct_works(rdma_listen(meeting->listener, 0));
	meeting->port = ct_src_port(meeting->listener);
	meeting->client = endpoint(false, meeting->port, NULL, &own);
}

static void meeting_ask(struct meeting *meeting)
{
	ct_works(pthread_create(&meeting->thread, NULL, connect_to, meeting));
	ct_works(rdma_get_request(meeting->listener, &meeting->server));
}

static void *disconnect(void *arg)
{
	struct meeting *meeting = arg;

	meeting->rc = rdma_disconnect(meeting->client);
	return NULL;
}

/* Each waits for the other. */
static void meeting_part(struct meeting *meeting)
{
	ct_works(pthread_create(&meeting->thread, NULL, disconnect, meeting));
	ct_works(rdma_disconnect(meeting->server));
	pthread_join(meeting->thread, NULL);
	assert_int_equal(meeting->rc, 0);
}

static void meeting_end(struct meeting *meeting)
{
	rdma_destroy_ep(meeting->client);
	if (meeting->server)
		rdma_destroy_ep(meeting->server);
	rdma_destroy_ep(meeting->listener);
}

/* --- the side that connects --- */

/*
 * rdma_create_ep: "Creates an identifier that is used to track communication information."
 * rdma_create_ep: "Returns 0 on success, or -1 on error."
 * rdma_create_ep: "rdma_create_ep will automatically create a QP on the rdma_cm_id if qp_init_attr
 * is not NULL"
 * rdma_create_ep: "a default protection domain if not"
 * rdma_create_ep: "The active side calls rdma_resolve_addr and rdma_resolve_route are not
 * necessary."
 * rdma_create_ep: "Users must release the created rdma_cm_id by calling rdma_destroy_ep."
 * rdma_create_ep: "After resolving address information using rdma_getaddrinfo, a user may use this
 * call to allocate an rdma_cm_id based on the results."
 * rdma_cm: "Abstracted calls, such as rdma_create_ep encapsulate several of these calls under a
 * single API."
 * rdma_cm: "retrieve address information of the destination"
 * rdma_create_ep: "If the rdma_cm_id will be used on the active side of a connection, meaning that
 * res->ai_flag does not have RAI_PASSIVE set"
 */
static void an_active_one_has_its_route_and_its_qp(void **state)
{
	struct ibv_qp_init_attr attr = ct_qp_attr();
	struct rdma_cm_id *id = endpoint(false, 7471, NULL, &attr);

	assert_non_null(id->verbs);
	assert_int_equal(ntohs(rdma_get_dst_port(id)), 7471);
	assert_int_equal(id->route.num_paths, 1);
	assert_non_null(id->qp);
	assert_ptr_equal(id->qp->pd, id->pd);
	assert_int_equal(id->qp->qp_type, IBV_QPT_RC);
	assert_int_equal(ct_qp_state(id), IBV_QPS_INIT);
	assert_true(attr.cap.max_send_wr >= 8);
	rdma_destroy_ep(id);
}

/*
 * rdma_create_ep: "Optional initial QP attributes."
 * rdma_create_ep: "Users should see rdma_create_qp for details on the use of the pd and
 * qp_init_attr parameters."
 */
static void without_attributes_it_has_no_qp(void **state)
{
	struct rdma_cm_id *id = endpoint(false, 7471, NULL, NULL);

	assert_null(id->qp);
	ct_qp(id);
	rdma_destroy_ep(id);
}

/* rdma_create_ep: "The QP will be associated with the specified protection domain, if provided" */
static void the_qp_is_of_the_pd_it_was_given(void **state)
{
	struct ibv_context **devices = rdma_get_devices(NULL);
	struct ibv_pd *pd = ibv_alloc_pd(devices[0]);
	struct ibv_qp_init_attr attr = ct_qp_attr();
	struct rdma_cm_id *id = endpoint(false, 7471, pd, &attr);

	assert_ptr_equal(id->qp->pd, pd);
	assert_ptr_equal(id->pd, pd);
	rdma_destroy_ep(id);
	ct_works(ibv_dealloc_pd(pd));
	rdma_free_devices(devices);
}

/* rdma_create_ep: "If an error occurs, errno will be set to indicate the failure reason." */
static void what_cannot_be_is_refused(void **state)
{
	struct rdma_addrinfo *res = info(false, 7471);
	struct rdma_cm_id *id = NULL;
	struct ibv_qp_init_attr attr = ct_qp_attr();

	res->ai_qp_type = IBV_QPT_UD;
	ct_fails(rdma_create_ep(&id, res, NULL, NULL), EINVAL);
	res->ai_qp_type = IBV_QPT_RC;
	res->ai_port_space = 0x107;
	ct_fails(rdma_create_ep(&id, res, NULL, NULL), EINVAL);
	res->ai_port_space = RDMA_PS_TCP;
	attr.cap.max_send_wr = UINT32_MAX;
	assert_int_equal(rdma_create_ep(&id, res, NULL, &attr), -1);
	rdma_freeaddrinfo(res);
	res = info(true, 7471);
	res->ai_src_addr->sa_family = AF_UNIX;
	ct_fails(rdma_create_ep(&id, res, NULL, NULL), EAFNOSUPPORT);
	rdma_freeaddrinfo(res);
	assert_null(id);
}

/*
 * rdma_getaddrinfo: "If provided, ai_connect data must be transferred as private data, with any
 * user supplied private data following it."
 * rdma_getaddrinfo: "Data exchanged as part of the connection establishment process."
 */
static void what_the_information_says_comes_first(void **state)
{
	struct rdma_addrinfo *res;
	struct meeting meeting;
	const char *said;

	meeting_begin(&meeting, NULL);
	rdma_destroy_ep(meeting.client);
	res = info(false, meeting.port);
	res->ai_connect = strdup("first ");
	res->ai_connect_len = 6;
	ct_works(rdma_create_ep(&meeting.client, res, NULL, NULL));
	rdma_freeaddrinfo(res);
	meeting.param.private_data = "second";
	meeting.param.private_data_len = 7;
	meeting_ask(&meeting);
	said = meeting.server->event->param.conn.private_data;
	assert_string_equal(said, "first second");
	ct_works(rdma_reject(meeting.server, NULL, 0));
	pthread_join(meeting.thread, NULL);
	assert_int_equal(meeting.rc, -1);
	meeting_end(&meeting);
}

/* --- the side that listens --- */

/*
 * rdma_create_ep: "this call will save the provided pd and qp_init_attr parameters"
 * rdma_create_ep: "the returned rdma_cm_id may be placed into a listening state by immediately
 * calling rdma_listen"
 * rdma_create_ep: "The passive side call rdma_bind_addr is not necessary."
 * rdma_create_ep: "Connection requests may then be retrieved by calling rdma_get_request."
 * rdma_create_ep: "the rdma_cm_id associated with the new connection will automatically be
 * associated with a QP using the pd and qp_init_attr parameters"
 * rdma_create_ep: "After calling rdma_create_ep, the returned rdma_cm_id may be connected by
 * calling rdma_connect."
 * rdma_get_request: "If QP attributes are associated with the listening endpoint, the returned
 * rdma_cm_id will also reference an allocated QP."
 * rdma_get_request: "Retrieves a connection request event."
 * rdma_get_request: "Returns 0 on success, or -1 on error."
 * rdma_get_request: "On success, a new rdma_cm_id representing the connection request will be
 * returned to the user."
 * rdma_create_ep: "A reference where the allocated communication identifier will be returned."
 * rdma_create_ep: "If the rdma_cm_id will be used on the passive side of a connection, indicated
 * by having res->ai_flag RAI_PASSIVE set"
 * rdma_create_ep: "When a new connection request is retrieved by calling rdma_get_request"
 * rdma_create_ep: "After calling rdma_create_ep"
 */
static void children_have_the_qps_that_their_listener_was_given(void **state)
{
	struct ibv_qp_init_attr attr = ct_qp_attr();
	struct meeting meeting;

	attr.qp_context = &meeting;
	meeting_begin(&meeting, &attr);
	assert_null(meeting.listener->qp);
	memset(&attr, 0, sizeof(attr)); /* they were kept */
	for (int i = 0; i < 2; i++) {
		meeting_ask(&meeting);
		assert_ptr_not_equal(meeting.server, meeting.listener);
		assert_non_null(meeting.server->qp);
		assert_ptr_equal(meeting.server->qp->qp_context, &meeting);
		assert_int_equal(meeting.server->qp->qp_type, IBV_QPT_RC);
		assert_non_null(meeting.server->send_cq);
		assert_non_null(meeting.server->recv_cq);
		ct_works(rdma_accept(meeting.server, NULL));
		pthread_join(meeting.thread, NULL);
		assert_int_equal(meeting.rc, 0);
		ct_exchange(meeting.client, meeting.server);
		ct_exchange(meeting.server, meeting.client);
		meeting_part(&meeting);
		if (i == 0) {
			attr = ct_qp_attr();
			rdma_destroy_ep(meeting.client);
			rdma_destroy_ep(meeting.server);
			meeting.client = endpoint(false, meeting.port, NULL, &attr);
		}
	}
	meeting_end(&meeting);
}

/* rdma_create_ep: "Optional protection domain if a QP is associated with the rdma_cm_id." */
static void children_are_of_the_pd_that_their_listener_was_given(void **state)
{
	struct ibv_context **devices = rdma_get_devices(NULL);
	struct ibv_pd *pd = ibv_alloc_pd(devices[0]);
	struct ibv_qp_init_attr attr = ct_qp_attr();
	struct meeting meeting;

	meeting_begin(&meeting, NULL);
	rdma_destroy_ep(meeting.listener);
	meeting.listener = endpoint(true, meeting.port, pd, &attr);
	ct_works(rdma_listen(meeting.listener, 0));
	meeting_ask(&meeting);
	assert_ptr_equal(meeting.server->qp->pd, pd);
	assert_ptr_equal(meeting.server->pd, pd);
	ct_works(rdma_reject(meeting.server, NULL, 0));
	pthread_join(meeting.thread, NULL);
	meeting_end(&meeting);
	ct_works(ibv_dealloc_pd(pd));
	rdma_free_devices(devices);
}

/*
 * rdma_get_request: "The new rdma_cm_id will reference event information associated with the
 * request until the user calls rdma_reject, rdma_accept, or rdma_destroy_id on the newly created
 * identifier."
 * rdma_get_request: "rdma_cm_id associated with the new connection."
 */
static void a_child_refers_to_its_request(void **state)
{
	struct meeting meeting;
	struct rdma_cm_event *event;

	meeting_begin(&meeting, NULL);
	meeting.param.private_data = "please";
	meeting.param.private_data_len = 7;
	meeting_ask(&meeting);
	event = meeting.server->event;
	assert_non_null(event);
	assert_int_equal(event->event, RDMA_CM_EVENT_CONNECT_REQUEST);
	assert_ptr_equal(event->id, meeting.server);
	assert_ptr_equal(event->listen_id, meeting.listener);
	assert_string_equal((const char *)event->param.conn.private_data, "please");
	assert_int_equal(event->param.conn.qp_num, meeting.client->qp->qp_num);
	assert_null(meeting.server->qp);
	rdma_destroy_ep(meeting.server);
	meeting.server = NULL;
	pthread_join(meeting.thread, NULL);
	assert_int_equal(meeting.rc, -1);
	assert_int_equal(meeting.err, ECONNREFUSED);
	meeting_end(&meeting);
}

static void *get_request(void *arg)
{
	struct meeting *meeting = arg;

	meeting->rc = rdma_get_request(meeting->listener, &meeting->server);
	meeting->done = true;
	return NULL;
}

/*
 * rdma_get_request: "If no requests are pending, the call will block until an event is received."
 */
static void it_waits_for_a_request(void **state)
{
	struct rdma_event_channel *channel = ct_channel();
	struct meeting meeting;

	meeting_begin(&meeting, NULL);
	ct_works(pthread_create(&meeting.thread, NULL, get_request, &meeting));
	usleep(CT_QUIET_MS * 1000);
	assert_false(meeting.done);
	ct_works(rdma_migrate_id(meeting.client, channel));
	ct_works(rdma_connect(meeting.client, &meeting.param));
	pthread_join(meeting.thread, NULL);
	assert_int_equal(meeting.rc, 0);
	ct_works(rdma_reject(meeting.server, NULL, 0));
	ct_pass(channel, RDMA_CM_EVENT_REJECTED);
	meeting_end(&meeting);
	rdma_destroy_event_channel(channel);
}

/*
 * rdma_get_request: "This call may only be used on listening rdma_cm_id's operating synchronously."
 * rdma_get_request: "If an error occurs, errno will be set to indicate the failure reason."
 */
static void only_who_listens_and_waits_gets_requests(void **state)
{
	struct rdma_event_channel *channel = ct_channel();
	struct rdma_cm_id *listener = ct_listener(channel, RDMA_PS_TCP);
	struct rdma_cm_id *bound = endpoint(true, 0, NULL, NULL), *made = NULL;

	ct_fails(rdma_get_request(listener, &made), EINVAL);
	ct_fails(rdma_get_request(bound, &made), EINVAL);
	assert_null(made);
	ct_works(rdma_destroy_id(listener));
	rdma_destroy_ep(bound);
	rdma_destroy_event_channel(channel);
}

/* Whoever cannot have his QP is not there; the peer is turned away. */
static void a_child_whose_qp_cannot_be_is_rejected(void **state)
{
	struct ibv_qp_init_attr attr = ct_qp_attr();
	struct meeting meeting;

	attr.cap.max_send_wr = UINT32_MAX;
	meeting_begin(&meeting, &attr);
	ct_works(pthread_create(&meeting.thread, NULL, connect_to, &meeting));
	assert_int_equal(rdma_get_request(meeting.listener, &meeting.server), -1);
	assert_null(meeting.server);
	pthread_join(meeting.thread, NULL);
	assert_int_equal(meeting.rc, -1);
	assert_int_equal(meeting.err, ECONNREFUSED);
	meeting_end(&meeting);
}

/* --- waiting for one's own calls --- */

/*
 * rdma_create_ep: "The newly created rdma_cm_id will be set to use synchronous operation."
 * rdma_create_id: "While operating synchronously, calls that result in an event will block until
 * the operation completes."
 * rdma_create_id: "The event will be returned to the user through the rdma_cm_id structure, and be
 * available for access until another rdma_cm call is made."
 * rdma_cm: "For synchronous operation, calls to rdma_create_event_channel, rdma_get_cm_event,
 * rdma_ack_cm_event, and rdma_destroy_event_channel would be eliminated."
 * rdma_cm: "If a channel is not provided, then all rdma_cm operations for the selected rdma_cm
 * identifier will block until they complete."
 */
static void calls_leave_their_event_behind(void **state)
{
	struct meeting meeting;
	struct rdma_cm_id *id = ct_id(NULL, RDMA_PS_TCP);

	assert_null(id->event);
	ct_works(rdma_resolve_addr(id, NULL, ct_addr(7471), CT_RESOLVE_MS));
	assert_int_equal(id->event->event, RDMA_CM_EVENT_ADDR_RESOLVED);
	ct_works(rdma_resolve_route(id, CT_RESOLVE_MS));
	assert_int_equal(id->event->event, RDMA_CM_EVENT_ROUTE_RESOLVED);
	ct_works(rdma_destroy_id(id));

	meeting_begin(&meeting, NULL);
	meeting_ask(&meeting);
	ct_qp(meeting.server);
	assert_false(meeting.done);
	ct_works(rdma_accept(meeting.server, NULL));
	pthread_join(meeting.thread, NULL);
	assert_int_equal(meeting.rc, 0);
	assert_int_equal(meeting.server->event->event, RDMA_CM_EVENT_ESTABLISHED);
	assert_int_equal(meeting.client->event->event, RDMA_CM_EVENT_ESTABLISHED);
	meeting_part(&meeting);
	assert_int_equal(meeting.client->event->event, RDMA_CM_EVENT_DISCONNECTED);
	assert_int_equal(meeting.server->event->event, RDMA_CM_EVENT_DISCONNECTED);
	meeting_end(&meeting);
}

/* Whoever is rejected learns it from the call, and why from the event. */
static void who_is_rejected_is_refused(void **state)
{
	struct meeting meeting;

	meeting_begin(&meeting, NULL);
	meeting_ask(&meeting);
	ct_works(rdma_reject(meeting.server, "no", 3));
	pthread_join(meeting.thread, NULL);
	assert_int_equal(meeting.rc, -1);
	assert_int_equal(meeting.err, ECONNREFUSED);
	assert_int_equal(meeting.client->event->event, RDMA_CM_EVENT_REJECTED);
	assert_int_equal(meeting.client->event->status, 28);
	assert_string_equal((const char *)meeting.client->event->param.conn.private_data, "no");
	meeting_end(&meeting);
}

/* Nobody listens: the same, with another reason. */
static void who_finds_nobody_is_refused(void **state)
{
	struct rdma_cm_id *id = endpoint(false, 7471, NULL, NULL);

	ct_fails(rdma_connect(id, NULL), ECONNREFUSED);
	assert_int_equal(id->event->status, 8);
	rdma_destroy_ep(id);
}

/*
 * rdma_create_ep: "Users that wish asynchronous operation must migrate the rdma_cm_id to a user
 * created event channel using rdma_migrate_id."
 */
static void moved_to_a_channel_it_does_not_wait(void **state)
{
	struct rdma_event_channel *channel = ct_channel();
	struct rdma_cm_id *id = endpoint(false, 7471, NULL, NULL);

	ct_works(rdma_migrate_id(id, channel));
	ct_works(rdma_connect(id, NULL));
	assert_int_equal(ct_pass(channel, RDMA_CM_EVENT_REJECTED), 8);
	assert_null(id->event);
	rdma_destroy_ep(id);
	rdma_destroy_event_channel(channel);
}

/* --- destroying --- */

/*
 * rdma_destroy_ep: "Destroys the specified rdma_cm_id and all associated resources"
 * rdma_destroy_ep: "rdma_destroy_ep will automatically destroy any QP and SRQ associated with the
 * rdma_cm_id."
 * rdma_destroy_srq: "Users should destroy any SRQ associated with an rdma_cm_id before destroying
 * the ID."
 */
static void the_qp_and_the_srq_go_with_it(void **state)
{
	struct ibv_context **devices = rdma_get_devices(NULL);
	struct ibv_pd *pd = ibv_alloc_pd(devices[0]);
	struct ibv_srq_init_attr srq = { .attr = { .max_wr = 4, .max_sge = 1 } };
	struct rdma_cm_id *id = endpoint(false, 7471, NULL, NULL);
	struct ibv_qp_init_attr attr = ct_qp_attr();

	ct_works(rdma_create_srq(id, pd, &srq));
	assert_non_null(id->srq);
	ct_works(rdma_create_qp(id, pd, &attr));
	assert_ptr_equal(id->qp->srq, id->srq);
	rdma_destroy_ep(id);
	/* Nothing of it is left that needs the PD. */
	ct_works(ibv_dealloc_pd(pd));
	rdma_free_devices(devices);
}

/* A connection that is there is parted. */
static void the_peer_hears_of_it(void **state)
{
	struct rdma_event_channel *channel = ct_channel();
	struct ibv_qp_init_attr attr = ct_qp_attr();
	struct meeting meeting;

	meeting_begin(&meeting, &attr);
	meeting_ask(&meeting);
	ct_works(rdma_accept(meeting.server, NULL));
	pthread_join(meeting.thread, NULL);
	ct_works(rdma_migrate_id(meeting.server, channel));
	rdma_destroy_ep(meeting.client);
	ct_pass(channel, RDMA_CM_EVENT_DISCONNECTED);
	rdma_destroy_ep(meeting.server);
	rdma_destroy_ep(meeting.listener);
	rdma_destroy_event_channel(channel);
}

int main(void)
{
	const struct CMUnitTest sync[] = {
		cmocka_unit_test(an_active_one_has_its_route_and_its_qp),
		cmocka_unit_test(without_attributes_it_has_no_qp),
		cmocka_unit_test(the_qp_is_of_the_pd_it_was_given),
		cmocka_unit_test(what_cannot_be_is_refused),
		cmocka_unit_test(what_the_information_says_comes_first),
		cmocka_unit_test(children_have_the_qps_that_their_listener_was_given),
		cmocka_unit_test(children_are_of_the_pd_that_their_listener_was_given),
		cmocka_unit_test(a_child_refers_to_its_request),
		cmocka_unit_test(it_waits_for_a_request),
		cmocka_unit_test(only_who_listens_and_waits_gets_requests),
		cmocka_unit_test(a_child_whose_qp_cannot_be_is_rejected),
		cmocka_unit_test(calls_leave_their_event_behind),
		cmocka_unit_test(who_is_rejected_is_refused),
		cmocka_unit_test(who_finds_nobody_is_refused),
		cmocka_unit_test(moved_to_a_channel_it_does_not_wait),
		cmocka_unit_test(the_qp_and_the_srq_go_with_it),
		cmocka_unit_test(the_peer_hears_of_it),
	};

	return ct_main(sync);
}
