/* SPDX-License-Identifier: BSD-2-Clause */
#include "lib.h"

#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

/* Events: fetched, acknowledged, and what is in them. */

enum { OCTETS = 256 };

/* Octets that are all different from zero. */
static const uint8_t *words(void)
{
	static uint8_t octets[OCTETS];

	for (int i = 0; i < OCTETS; i++)
		octets[i] = (uint8_t)(i % 255 + 1);
	return octets;
}

/* So many octets are those that were said, and the rest of the buffer is zeros. */
static void says(const void *data, uint8_t room, uint8_t wanted_room, uint8_t said)
{
	static const uint8_t zeros[OCTETS];
	const uint8_t *octets = data;

	assert_int_equal(room, wanted_room);
	assert_non_null(data);
	assert_memory_equal(octets, words(), said);
	assert_memory_equal(octets + said, zeros, (size_t)(room - said));
}

static void *get_event(void *arg)
{
	struct rdma_event_channel *channel = arg;
	struct rdma_cm_event *event;

	ct_works(rdma_get_cm_event(channel, &event));
	return event;
}

/*
 * rdma_get_cm_event: "Retrieves a communication event. If no events are pending, by default, the
 * call will block until an event is received."
 * rdma_get_cm_event: "Returns 0 on success, or -1 on error."
 */
static void who_asks_waits_for_the_next(void **state)
{
	struct rdma_event_channel *channel = ct_channel();
	struct rdma_cm_id *id = ct_id(channel, RDMA_PS_TCP);
	struct rdma_cm_event *event;
	pthread_t thread;
	void *result;

	ct_works(pthread_create(&thread, NULL, get_event, channel));
	usleep(CT_QUIET_MS * 1000);
	ct_works(rdma_resolve_addr(id, NULL, ct_addr(7471), CT_RESOLVE_MS));
	pthread_join(thread, &result);
	event = result;
	assert_int_equal(event->event, RDMA_CM_EVENT_ADDR_RESOLVED);
	assert_ptr_equal(event->id, id);
	assert_null(event->listen_id);
	ct_works(rdma_ack_cm_event(event));
	ct_works(rdma_destroy_id(id));
	rdma_destroy_event_channel(channel);
}

/*
 * rdma_get_cm_event: "If an error occurs, errno will be set to indicate the failure reason."
 * rdma_ack_cm_event: "If an error occurs, errno will be set to indicate the failure reason."
 */
static void without_a_place_there_is_none(void **state)
{
	struct rdma_event_channel *channel = ct_channel();

	ct_fails(rdma_get_cm_event(channel, NULL), EINVAL);
	ct_fails(rdma_ack_cm_event(NULL), EINVAL);
	rdma_destroy_event_channel(channel);
}

/*
 * rdma_ack_cm_event: "All events which are allocated by rdma_get_cm_event must be released, there
 * should be a one-to-one correspondence between successful gets and acks."
 * rdma_ack_cm_event: "This call frees the event structure and any memory that it references."
 * rdma_ack_cm_event: "Returns 0 on success, or -1 on error."
 * rdma_get_cm_event: "All events that are reported must be acknowledged by calling
 * rdma_ack_cm_event."
 * rdma_get_cm_event: "This structure is allocated by the rdma_cm and released by the
 * rdma_ack_cm_event routine."
 */
static void events_may_be_acknowledged_in_any_order(void **state)
{
	struct rdma_event_channel *channel = ct_channel();
	struct rdma_cm_event *events[8];
	struct rdma_cm_id *ids[8];

	for (int i = 0; i < 8; i++) {
		ids[i] = ct_id(channel, RDMA_PS_TCP);
		ct_works(rdma_resolve_addr(ids[i], NULL, ct_addr(7471), CT_RESOLVE_MS));
	}
	for (int i = 0; i < 8; i++) {
		events[i] = ct_event(channel, RDMA_CM_EVENT_ADDR_RESOLVED);
		assert_ptr_equal(events[i]->id, ids[i]);
	}
	for (int i = 0; i < 8; i++)
		ct_works(rdma_ack_cm_event(events[(i * 3) % 8]));
	for (int i = 0; i < 8; i++)
		ct_works(rdma_destroy_id(ids[i]));
	rdma_destroy_event_channel(channel);
}

/*
 * rdma_get_cm_event: "The rdma_cm identifier associated with the event."
 * rdma_get_cm_event: "then this references a new id for that communication"
 * rdma_get_cm_event: "this references the corresponding listening request identifier"
 * rdma_get_cm_event: "Generated on the passive side to notify the user of a new connection
 * request."
 * rdma_get_cm_event: "The status is zero if the operation was successful"
 * rdma_get_cm_event: "Communication event details are returned in the rdma_cm_event structure."
 * rdma_get_cm_event: "Specifies the type of communication event which occurred."
 * rdma_get_cm_event: "Provides additional details based on the type of event."
 * rdma_get_cm_event: "If the event type is RDMA_CM_EVENT_CONNECT_REQUEST"
 * rdma_get_cm_event: "For RDMA_CM_EVENT_CONNECT_REQUEST event types"
 */
static void a_request_brings_an_id(void **state)
{
	struct ct_pair pair;
	struct rdma_cm_event *event = ct_pair_ask(&pair, RDMA_PS_TCP, NULL);

	assert_ptr_equal(event->listen_id, pair.listener);
	assert_ptr_not_equal(event->id, pair.listener);
	assert_ptr_not_equal(event->id, pair.client);
	assert_int_equal(event->id->ps, RDMA_PS_TCP);
	assert_ptr_equal(event->id->channel, pair.at_server);
	assert_int_equal(event->status, 0);
	ct_works(rdma_ack_cm_event(event));
	ct_pair_close(&pair);
}

static void has_no_words(const struct rdma_cm_event *event)
{
	assert_null(event->param.conn.private_data);
	assert_int_equal(event->param.conn.private_data_len, 0);
}

/*
 * rdma_get_cm_event: "Indicates that a connection has been established with the remote end point."
 * Who accepted is told no words, by which libfabric knows that it did not ask.
 */
static void both_ends_are_established(void **state)
{
	struct rdma_cm_event *event;
	struct ct_pair pair;

	ct_works(rdma_ack_cm_event(ct_pair_ask(&pair, RDMA_PS_TCP, NULL)));
	ct_qp(pair.server);
	ct_works(rdma_accept(pair.server, NULL));
	event = ct_event(pair.at_client, RDMA_CM_EVENT_ESTABLISHED);
	assert_ptr_equal(event->id, pair.client);
	assert_int_equal(event->status, 0);
	ct_works(rdma_ack_cm_event(event));
	event = ct_event(pair.at_server, RDMA_CM_EVENT_ESTABLISHED);
	assert_ptr_equal(event->id, pair.server);
	assert_int_equal(event->status, 0);
	has_no_words(event);
	ct_works(rdma_ack_cm_event(event));
	ct_works(rdma_disconnect(pair.client));
	event = ct_event(pair.at_server, RDMA_CM_EVENT_DISCONNECTED);
	has_no_words(event);
	ct_works(rdma_ack_cm_event(event));
	ct_works(rdma_disconnect(pair.server));
	event = ct_event(pair.at_client, RDMA_CM_EVENT_DISCONNECTED);
	has_no_words(event);
	ct_works(rdma_ack_cm_event(event));
	ct_pair_close(&pair);
}

/* --- private data --- */

/* Both sides say so much; the events have rooms of fixed size. */
static void exchange_words(enum rdma_port_space ps, uint8_t asked, uint8_t ask_room,
			   uint8_t answered, uint8_t answer_room)
{
	struct rdma_conn_param param = { .private_data = words(), .private_data_len = asked };
	bool ud = ps == RDMA_PS_UDP;
	struct rdma_cm_event *event;
	struct ct_pair pair;

	event = ct_pair_ask(&pair, ps, &param);
	if (ud)
		says(event->param.ud.private_data, event->param.ud.private_data_len, ask_room,
		     asked);
	else
		says(event->param.conn.private_data, event->param.conn.private_data_len, ask_room,
		     asked);
	ct_works(rdma_ack_cm_event(event));
	ct_qp(pair.server);
	param.private_data_len = (uint8_t)(answer_room + 1);
	ct_fails(rdma_accept(pair.server, &param), EINVAL);
	param.private_data_len = answered;
	ct_works(rdma_accept(pair.server, &param));
	event = ct_event(pair.at_client, RDMA_CM_EVENT_ESTABLISHED);
	if (ud)
		says(event->param.ud.private_data, event->param.ud.private_data_len, answer_room,
		     answered);
	else
		says(event->param.conn.private_data, event->param.conn.private_data_len,
		     answer_room, answered);
	ct_works(rdma_ack_cm_event(event));
	if (!ud) {
		ct_pass(pair.at_server, RDMA_CM_EVENT_ESTABLISHED);
		ct_pair_part(&pair);
	}
	ct_pair_close(&pair);
}

/*
 * rdma_connect: "The contents of the buffer are copied and transparently passed to the remote side
 * as part of the communication request."
 * rdma_connect: "The length of the private data provided by the user is limited to 56 bytes for
 * RDMA_PS_TCP, or 180 bytes for RDMA_PS_UDP."
 * rdma_connect: "Note that the actual amount of data transferred to the remote side is transport
 * dependent and may be larger than that requested."
 * rdma_accept: "The contents of the buffer are copied and transparently passed to the remote side
 * as part of the communication request."
 * rdma_accept: "The length of the private data provided by the user is limited to 196 bytes for
 * RDMA_PS_TCP, or 136 bytes for RDMA_PS_UDP."
 * rdma_accept: "Note that the actual amount of data transferred to the remote side is transport
 * dependent and may be larger than that requested."
 * rdma_get_cm_event: "Users should note that the size of the private data buffer may be larger than
 * the amount of private data sent by the remote side. Any additional space in the buffer will be
 * zeroed out."
 * rdma_get_cm_event: "The data referenced by this field matches that specified by the remote side
 * when calling rdma_connect or rdma_accept."
 * rdma_get_cm_event: "The buffer referenced by this pointer is deallocated when calling
 * rdma_ack_cm_event."
 * rdma_accept: "References a user-controlled data buffer."
 * rdma_accept: "May be NULL if private_data is not required."
 * rdma_accept: "Specifies the size of the user-controlled data buffer."
 * rdma_connect: "References a user-controlled data buffer."
 * rdma_connect: "May be NULL if private_data is not required."
 * rdma_get_cm_event: "References any user-specified data associated with
 * RDMA_CM_EVENT_CONNECT_REQUEST or RDMA_CM_EVENT_ESTABLISHED events."
 * rdma_get_cm_event: "References any user-specified data associated with the event."
 */
static void words_of_each_length_pass(void **state)
{
	static const uint8_t asked[] = { 0, 1, 55, 56 }, answered[] = { 0, 1, 195, 196 };
	static const uint8_t ud_asked[] = { 0, 1, 179, 180 }, ud_answered[] = { 0, 1, 135, 136 };

	for (int i = 0; i < 4; i++) {
		exchange_words(RDMA_PS_TCP, asked[i], 56, answered[i], 196);
		exchange_words(RDMA_PS_UDP, ud_asked[i], 180, ud_answered[i], 136);
	}
}

/* rdma_connect: "Specifies the size of the user-controlled data buffer." */
static void more_words_than_fit_are_refused(void **state)
{
	static const struct {
		enum rdma_port_space ps;
		uint8_t room;
	} all[] = { { RDMA_PS_TCP, 56 }, { RDMA_PS_UDP, 180 }, { RDMA_PS_IB, 56 } };
	struct rdma_event_channel *channel = ct_channel();

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		struct rdma_conn_param param = { .private_data = words() };
		struct rdma_cm_id *id = ct_client(channel, all[i].ps, 7471);

		param.private_data_len = (uint8_t)(all[i].room + 1);
		ct_fails(rdma_connect(id, &param), EINVAL);
		param.private_data_len = 255;
		ct_fails(rdma_connect(id, &param), EINVAL);
		ct_works(rdma_destroy_id(id));
	}
	rdma_destroy_event_channel(channel);
}

/*
 * rdma_reject: "Specifies the size of the user-controlled data buffer."
 * rdma_reject: "Note that the actual amount of data transferred to the remote side is transport
 * dependent and may be larger than that requested."
 */
static void a_refusal_has_room_for_words(void **state)
{
	static const uint8_t said[] = { 0, 1, 147, 148 };

	for (int i = 0; i < 4; i++) {
		struct rdma_cm_event *event;
		struct ct_pair pair;

		ct_works(rdma_ack_cm_event(ct_pair_ask(&pair, RDMA_PS_TCP, NULL)));
		ct_fails(rdma_reject(pair.server, words(), 149), EINVAL);
		ct_works(rdma_reject(pair.server, words(), said[i]));
		event = ct_event(pair.at_client, RDMA_CM_EVENT_REJECTED);
		says(event->param.conn.private_data, event->param.conn.private_data_len, 148,
		     said[i]);
		ct_works(rdma_ack_cm_event(event));
		ct_pair_close(&pair);
	}
}

/* The next event, which brings no words. */
static void brings_no_words(struct rdma_event_channel *channel, enum rdma_cm_event_type type)
{
	struct rdma_cm_event *event = ct_event(channel, type);

	assert_null(event->param.conn.private_data);
	assert_int_equal(event->param.conn.private_data_len, 0);
	ct_works(rdma_ack_cm_event(event));
}

/*
 * rdma_get_cm_event: "This field is NULL if the event does not include private data."
 * The messages behind ESTABLISHED and DISCONNECTED have room, but not for users of rdma_cm.
 */
static void where_nothing_can_be_said_there_is_nothing(void **state)
{
	struct rdma_event_channel *channel = ct_channel();
	struct rdma_cm_id *id = ct_id(channel, RDMA_PS_TCP);
	struct ct_pair pair;

	ct_works(rdma_resolve_addr(id, NULL, ct_addr(7471), CT_RESOLVE_MS));
	brings_no_words(channel, RDMA_CM_EVENT_ADDR_RESOLVED);
	ct_works(rdma_destroy_id(id));
	rdma_destroy_event_channel(channel);

	ct_works(rdma_ack_cm_event(ct_pair_ask(&pair, RDMA_PS_TCP, NULL)));
	ct_qp(pair.server);
	ct_works(rdma_accept(pair.server, NULL));
	ct_pass(pair.at_client, RDMA_CM_EVENT_ESTABLISHED);
	brings_no_words(pair.at_server, RDMA_CM_EVENT_ESTABLISHED);
	ct_works(rdma_disconnect(pair.client));
	brings_no_words(pair.at_server, RDMA_CM_EVENT_DISCONNECTED);
	ct_works(rdma_disconnect(pair.server));
	brings_no_words(pair.at_client, RDMA_CM_EVENT_DISCONNECTED);
	ct_pair_close(&pair);
}

/* A service that refuses says words, but names no queue pair and no way to one. */
static void who_refuses_names_no_queue_pair(void **state)
{
	static const struct ibv_ah_attr none;
	struct rdma_cm_event *event;
	struct ct_pair pair;

	ct_works(rdma_ack_cm_event(ct_pair_ask(&pair, RDMA_PS_UDP, NULL)));
	ct_works(rdma_reject(pair.server, words(), 136));
	event = ct_event(pair.at_client, RDMA_CM_EVENT_UNREACHABLE);
	says(event->param.ud.private_data, event->param.ud.private_data_len, 136, 136);
	assert_int_equal(event->param.ud.qp_num, 0);
	assert_memory_equal(&event->param.ud.ah_attr, &none, sizeof(none));
	ct_works(rdma_ack_cm_event(event));
	ct_pair_close(&pair);
}

/*
 * rdma_accept: "If the rdma_conn_param structure from an event is referenced, the event must not be
 * acked until after this call returns."
 * rdma_accept: "Users may reference the rdma_conn_param structure in the connection event
 * directly, or can reference their own structure."
 */
static void the_parameters_of_the_request_may_be_used(void **state)
{
	struct rdma_conn_param asks = { .responder_resources = 2, .initiator_depth = 3 };
	struct rdma_cm_event *request;
	struct ct_pair pair;

	request = ct_pair_ask(&pair, RDMA_PS_TCP, &asks);
	ct_qp(pair.server);
	request->param.conn.private_data = NULL;
	request->param.conn.private_data_len = 0;
	ct_works(rdma_accept(pair.server, &request->param.conn));
	ct_works(rdma_ack_cm_event(request));
	ct_pass(pair.at_client, RDMA_CM_EVENT_ESTABLISHED);
	ct_pass(pair.at_server, RDMA_CM_EVENT_ESTABLISHED);
	ct_exchange(pair.client, pair.server);
	ct_pair_part(&pair);
	ct_pair_close(&pair);
}

/* --- names --- */

/*
 * rdma_event_str: "Returns a string representation of an asynchronous event."
 * rdma_event_str: "Returns a pointer to a static character string corresponding to the event."
 */
static void each_event_has_a_name(void **state)
{
	static const char *const names[] = {
		"ADDR_RESOLVED", "ADDR_ERROR", "ROUTE_RESOLVED", "ROUTE_ERROR", "CONNECT_REQUEST",
		"CONNECT_RESPONSE", "CONNECT_ERROR", "UNREACHABLE", "REJECTED", "ESTABLISHED",
		"DISCONNECTED", "DEVICE_REMOVAL", "MULTICAST_JOIN", "MULTICAST_ERROR",
		"ADDR_CHANGE", "TIMEWAIT_EXIT", "ADDRINFO_RESOLVED", "ADDRINFO_ERROR", "USER",
		"INTERNAL",
	};
	char name[64];

	for (int i = 0; i < 20; i++) {
		snprintf(name, sizeof(name), "RDMA_CM_EVENT_%s", names[i]);
		assert_string_equal(rdma_event_str((enum rdma_cm_event_type)i), name);
		assert_ptr_equal(rdma_event_str((enum rdma_cm_event_type)i),
				 rdma_event_str((enum rdma_cm_event_type)i));
	}
	assert_string_equal(rdma_event_str((enum rdma_cm_event_type)20), "UNKNOWN EVENT");
	assert_string_equal(rdma_event_str((enum rdma_cm_event_type)4711), "UNKNOWN EVENT");
	assert_string_equal(rdma_event_str((enum rdma_cm_event_type)-1), "UNKNOWN EVENT");
}

int main(void)
{
	const struct CMUnitTest events[] = {
		cmocka_unit_test(who_asks_waits_for_the_next),
		cmocka_unit_test(without_a_place_there_is_none),
		cmocka_unit_test(events_may_be_acknowledged_in_any_order),
		cmocka_unit_test(a_request_brings_an_id),
		cmocka_unit_test(both_ends_are_established),
		cmocka_unit_test(words_of_each_length_pass),
		cmocka_unit_test(more_words_than_fit_are_refused),
		cmocka_unit_test(a_refusal_has_room_for_words),
		cmocka_unit_test(where_nothing_can_be_said_there_is_nothing),
		cmocka_unit_test(who_refuses_names_no_queue_pair),
		cmocka_unit_test(the_parameters_of_the_request_may_be_used),
		cmocka_unit_test(each_event_has_a_name),
	};

	return ct_main(events);
}
