/* SPDX-License-Identifier: BSD-2-Clause */
#include "lib.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <unistd.h>

/* Ids and channels: made, moved, destroyed; and the devices that they are at. */

enum { REJECTED_BY_USER = 28 };

/* --- ids --- */

/*
 * rdma_create_id: "Creates an identifier that is used to track communication information."
 * rdma_create_id: "Returns 0 on success, or -1 on error. If an error occurs, errno will be set to
 * indicate the failure reason."
 * rdma_create_id: "Users must release the rdma_cm_id by calling rdma_destroy_id."
 * rdma_destroy_id: "Returns 0 on success, or -1 on error. If an error occurs, errno will be set to
 * indicate the failure reason."
 * rdma_create_id: "A reference where the allocated communication identifier will be returned."
 */
static void an_id_is_made_and_destroyed(void **state)
{
	struct rdma_event_channel *channel = ct_channel();
	struct rdma_cm_id *id = NULL;

	ct_works(rdma_create_id(channel, &id, NULL, RDMA_PS_TCP));
	assert_non_null(id);
	ct_works(rdma_destroy_id(id));
	rdma_destroy_event_channel(channel);
}

/*
 * rdma_create_id: "User specified context associated with the rdma_cm_id."
 * rdma_create_id: "The communication channel that events associated with the allocated rdma_cm_id
 * will be reported on."
 * rdma_create_id: "This may be NULL."
 */
static void it_has_the_context_and_the_channel_it_was_given(void **state)
{
	struct rdma_event_channel *channel = ct_channel();
	struct rdma_cm_id *id;

	ct_works(rdma_create_id(channel, &id, &channel, RDMA_PS_TCP));
	assert_ptr_equal(id->context, &channel);
	assert_ptr_equal(id->channel, channel);
	assert_null(id->qp);
	assert_null(id->verbs);
	assert_null(id->event);
	ct_works(rdma_destroy_id(id));
	rdma_destroy_event_channel(channel);
}

/*
 * rdma_create_id: "Provides reliable, connection-oriented QP communication."
 * rdma_create_id: "Provides unreliable, connectionless QP communication. Supports both datagram and
 * multicast communication."
 * rdma_create_id: "Provides for any IB services (UD, UC, RC, XRC, etc.)."
 * rdma_create_id: "Details of the services provided by the different port spaces are outlined
 * below."
 */
static void each_port_space_has_its_type(void **state)
{
	static const struct {
		enum rdma_port_space ps;
		enum ibv_qp_type type;
	} all[] = {
		{ RDMA_PS_TCP, IBV_QPT_RC },
		{ RDMA_PS_UDP, IBV_QPT_UD },
		{ RDMA_PS_IB, IBV_QPT_RC },
	};
	struct rdma_event_channel *channel = ct_channel();

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		struct rdma_cm_id *id = ct_id(channel, all[i].ps);

		assert_int_equal(id->ps, all[i].ps);
		assert_int_equal(id->qp_type, all[i].type);
		ct_works(rdma_destroy_id(id));
	}
	rdma_destroy_event_channel(channel);
}

/* rdma_create_id: "RDMA port space." */
static void port_spaces_that_there_are_not_are_refused(void **state)
{
	struct rdma_event_channel *channel = ct_channel();
	struct rdma_cm_id *id = NULL;

	ct_fails(rdma_create_id(channel, &id, NULL, (enum rdma_port_space)0), EINVAL);
	ct_fails(rdma_create_id(channel, &id, NULL, (enum rdma_port_space)0x107), EINVAL);
	ct_fails(rdma_create_id(channel, &id, NULL, RDMA_PS_IPOIB), EINVAL);
	assert_null(id);
	rdma_destroy_event_channel(channel);
}

/*
 * rdma_create_id: "If the channel parameter is NULL, the rdma_cm_id will be placed into synchronous
 * operation."
 */
static void without_a_channel_it_has_one_of_its_own(void **state)
{
	struct rdma_cm_id *one = ct_id(NULL, RDMA_PS_TCP), *other = ct_id(NULL, RDMA_PS_TCP);

	assert_non_null(one->channel);
	assert_ptr_not_equal(one->channel, other->channel);
	ct_works(rdma_destroy_id(one));
	ct_works(rdma_destroy_id(other));
}

/*
 * rdma_create_id: "most operations are asynchronous in nature. Asynchronous communication events on
 * an rdma_cm_id are reported through the associated event channel."
 * rdma_cm: "The RDMA CM can operate asynchronously or synchronously. The mode of operation is
 * controlled by the user through the use of the rdma_cm event channel parameter in specific calls.
 * If an event channel is provided, an rdma_cm identifier will report its event data (results of
 * connecting, for example), on that channel."
 * rdma_cm: "If a function operates asynchronously, a return value of 0 means that the operation
 * was successfully started."
 * rdma_create_id: "The difference is that RDMA communication requires explicitly binding to a
 * specified RDMA device before communication can occur, and most operations are asynchronous in
 * nature."
 */
static void calls_return_before_their_event(void **state)
{
	struct rdma_event_channel *one = ct_channel(), *other = ct_channel();
	struct rdma_cm_id *id = ct_id(one, RDMA_PS_TCP);

	ct_works(rdma_resolve_addr(id, NULL, ct_addr(7471), CT_RESOLVE_MS));
	assert_true(ct_readable(one->fd, CT_WAIT_MS));
	ct_no_event(other);
	ct_pass(one, RDMA_CM_EVENT_ADDR_RESOLVED);
	ct_works(rdma_destroy_id(id));
	rdma_destroy_event_channel(one);
	rdma_destroy_event_channel(other);
}

/* --- destroying --- */

/*
 * rdma_destroy_id: "Destroys the specified rdma_cm_id and cancels any outstanding asynchronous
 * operation."
 * rdma_destroy_event_channel: "All rdma_cm_id's associated with the event channel must be
 * destroyed, and all returned events must be acked before calling this function."
 */
static void what_is_outstanding_is_cancelled(void **state)
{
	struct rdma_event_channel *channel = ct_channel();
	struct rdma_cm_id *id = ct_id(channel, RDMA_PS_TCP);

	ct_works(rdma_resolve_addr(id, NULL, ct_addr(7471), CT_RESOLVE_MS));
	ct_works(rdma_destroy_id(id));
	ct_no_event(channel);
	rdma_destroy_event_channel(channel);
}

/* rdma_destroy_id: "cancels any outstanding asynchronous operation" */
static void who_asked_and_goes_is_not_answered(void **state)
{
	struct ct_pair pair;
	struct rdma_cm_event *request = ct_pair_ask(&pair, RDMA_PS_TCP, NULL);

	ct_works(rdma_ack_cm_event(request));
	rdma_destroy_qp(pair.client);
	ct_works(rdma_destroy_id(pair.client));
	pair.client = NULL;
	ct_qp(pair.server);
	/* It learns now, or as it is told that nobody is there any more. */
	if (!rdma_accept(pair.server, NULL))
		assert_int_not_equal(ct_pass(pair.at_server, RDMA_CM_EVENT_REJECTED), 0);
	ct_pair_close(&pair);
}

/* A port is free again as its id goes. */
static void its_port_is_free_again(void **state)
{
	struct rdma_event_channel *channel = ct_channel();
	struct rdma_cm_id *id = ct_listener(channel, RDMA_PS_TCP);
	uint16_t port = ct_src_port(id);

	ct_works(rdma_destroy_id(id));
	id = ct_id(channel, RDMA_PS_TCP);
	ct_works(rdma_bind_addr(id, ct_addr(port)));
	ct_works(rdma_listen(id, 1));
	ct_works(rdma_destroy_id(id));
	rdma_destroy_event_channel(channel);
}

/* Who waits to be let in is turned away as the listener goes. */
static void a_listener_that_goes_rejects_who_waits(void **state)
{
	struct rdma_event_channel *at_server = ct_channel(), *at_client = ct_channel();
	struct rdma_cm_id *listener = ct_listener(at_server, RDMA_PS_TCP);
	struct rdma_cm_id *client = ct_client(at_client, RDMA_PS_TCP, ct_src_port(listener));

	ct_qp(client);
	ct_works(rdma_connect(client, NULL));
	assert_true(ct_readable(at_server->fd, CT_WAIT_MS));
	ct_works(rdma_destroy_id(listener));
	assert_int_equal(ct_pass(at_client, RDMA_CM_EVENT_REJECTED), REJECTED_BY_USER);
	ct_no_event(at_server);
	rdma_destroy_qp(client);
	ct_works(rdma_destroy_id(client));
	rdma_destroy_event_channel(at_server);
	rdma_destroy_event_channel(at_client);
}

/* So it is as the channel goes where it could have been fetched; and who asks later is, too. */
static void without_a_channel_who_asks_is_turned_away(void **state)
{
	struct rdma_event_channel *at_server = ct_channel(), *at_client = ct_channel();
	struct rdma_cm_id *listener = ct_listener(at_server, RDMA_PS_TCP), *client;
	uint16_t port = ct_src_port(listener);

	client = ct_client(at_client, RDMA_PS_TCP, port);
	ct_works(rdma_connect(client, NULL));
	assert_true(ct_readable(at_server->fd, CT_WAIT_MS));
	rdma_destroy_event_channel(at_server);
	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(ct_pass(at_client, RDMA_CM_EVENT_REJECTED), REJECTED_BY_USER);
		ct_works(rdma_destroy_id(client));
		client = ct_client(at_client, RDMA_PS_TCP, port);
		ct_works(rdma_connect(client, NULL));
	}
	at_server = ct_channel();
	assert_int_equal(ct_pass(at_client, RDMA_CM_EVENT_REJECTED), REJECTED_BY_USER);
	/* It may be given another one. */
	ct_works(rdma_migrate_id(listener, at_server));
	ct_works(rdma_connect(client, NULL));
	assert_true(ct_readable(at_server->fd, CT_WAIT_MS));
	ct_works(rdma_destroy_id(listener));
	ct_pass(at_client, RDMA_CM_EVENT_REJECTED);
	ct_works(rdma_destroy_id(client));
	rdma_destroy_event_channel(at_server);
	rdma_destroy_event_channel(at_client);
}

/* A thread that does something that waits. */
struct waiter {
	pthread_t thread;
	struct rdma_cm_id *id;
	struct rdma_event_channel *channel;
	_Atomic bool done;
};

static void *destroy(void *arg)
{
	struct waiter *waiter = arg;

	ct_works(rdma_destroy_id(waiter->id));
	waiter->done = true;
	return NULL;
}

static void *migrate(void *arg)
{
	struct waiter *waiter = arg;

	ct_works(rdma_migrate_id(waiter->id, waiter->channel));
	waiter->done = true;
	return NULL;
}

/* An id with an event that is not acknowledged, and a call that waits for that. */
static void waits_for_the_ack(void *(*call)(void *), struct waiter *waiter,
			      struct rdma_event_channel *channel)
{
	struct rdma_cm_event *event;

	waiter->id = ct_id(channel, RDMA_PS_TCP);
	ct_works(rdma_resolve_addr(waiter->id, NULL, ct_addr(7471), CT_RESOLVE_MS));
	event = ct_event(channel, RDMA_CM_EVENT_ADDR_RESOLVED);
	ct_works(pthread_create(&waiter->thread, NULL, call, waiter));
	usleep(CT_QUIET_MS * 1000);
	assert_false(waiter->done);
	ct_works(rdma_ack_cm_event(event));
	pthread_join(waiter->thread, NULL);
	assert_true(waiter->done);
}

/*
 * rdma_destroy_id: "ack all related events."
 * rdma_get_cm_event: "Destruction of an rdma_cm_id will block until related events have been
 * acknowledged."
 * rdma_destroy_id: "and ack all related events"
 */
static void destroying_waits_for_acknowledgements(void **state)
{
	struct rdma_event_channel *channel = ct_channel();
	struct waiter waiter = { .done = false };

	waits_for_the_ack(destroy, &waiter, channel);
	rdma_destroy_event_channel(channel);
}

/*
 * rdma_destroy_id: "Users must free any associated QP with the rdma_cm_id before calling this
 * routine"
 * rdma_destroy_qp: "Users must destroy any QP associated with an rdma_cm_id before destroying the
 * ID."
 */
static void who_frees_the_qp_first_leaves_nothing(void **state)
{
	struct ct_pair pair;

	ct_pair_open(&pair);
	ct_pair_part(&pair);
	ct_pair_close(&pair);
}

/* --- moving --- */

/*
 * rdma_migrate_id: "Migrates a communication identifier to a different event channel."
 * rdma_migrate_id: "moves any pending events associated with the rdma_cm_id to the new channel"
 * rdma_migrate_id: "Returns 0 on success, or -1 on error."
 * rdma_migrate_id: "This routine migrates a communication identifier to the specified event
 * channel and"
 */
static void events_move_with_their_id(void **state)
{
	struct rdma_event_channel *one = ct_channel(), *other = ct_channel();
	struct rdma_cm_id *id = ct_id(one, RDMA_PS_TCP), *stays = ct_id(one, RDMA_PS_TCP);
	struct rdma_cm_event *event;

	ct_works(rdma_resolve_addr(id, NULL, ct_addr(7471), CT_RESOLVE_MS));
	ct_works(rdma_resolve_addr(stays, NULL, ct_addr(7471), CT_RESOLVE_MS));
	ct_works(rdma_migrate_id(id, other));
	assert_ptr_equal(id->channel, other);
	event = ct_event(other, RDMA_CM_EVENT_ADDR_RESOLVED);
	assert_ptr_equal(event->id, id);
	ct_works(rdma_ack_cm_event(event));
	event = ct_event(one, RDMA_CM_EVENT_ADDR_RESOLVED);
	assert_ptr_equal(event->id, stays);
	ct_works(rdma_ack_cm_event(event));
	ct_no_event(one);
	ct_works(rdma_resolve_route(id, CT_RESOLVE_MS));
	ct_pass(other, RDMA_CM_EVENT_ROUTE_RESOLVED);
	ct_works(rdma_destroy_id(id));
	ct_works(rdma_destroy_id(stays));
	rdma_destroy_event_channel(one);
	rdma_destroy_event_channel(other);
}

/*
 * rdma_migrate_id: "This call will block while there are any unacknowledged events on the current
 * event channel."
 */
static void moving_waits_for_acknowledgements(void **state)
{
	struct rdma_event_channel *one = ct_channel();
	struct waiter waiter = { .channel = ct_channel() };

	waits_for_the_ack(migrate, &waiter, one);
	assert_ptr_equal(waiter.id->channel, waiter.channel);
	ct_works(rdma_destroy_id(waiter.id));
	rdma_destroy_event_channel(one);
	rdma_destroy_event_channel(waiter.channel);
}

/*
 * rdma_migrate_id: "If the channel parameter is NULL, the specified rdma_cm_id will be placed into
 * synchronous operation mode."
 * rdma_migrate_id: "All calls on the id will block until the operation completes."
 * rdma_migrate_id: "The communication channel that events associated with the allocated rdma_cm_id
 * will be reported on. May be NULL."
 */
static void without_a_channel_it_waits_for_its_calls(void **state)
{
	struct rdma_event_channel *channel = ct_channel();
	struct rdma_cm_id *id = ct_id(channel, RDMA_PS_TCP);

	ct_works(rdma_migrate_id(id, NULL));
	assert_ptr_not_equal(id->channel, channel);
	ct_works(rdma_resolve_addr(id, NULL, ct_addr(7471), CT_RESOLVE_MS));
	assert_int_equal(id->event->event, RDMA_CM_EVENT_ADDR_RESOLVED);
	/* It does so already. */
	ct_fails(rdma_migrate_id(id, NULL), EINVAL);
	ct_works(rdma_migrate_id(id, channel));
	assert_ptr_equal(id->channel, channel);
	assert_null(id->event);
	ct_works(rdma_resolve_route(id, CT_RESOLVE_MS));
	ct_pass(channel, RDMA_CM_EVENT_ROUTE_RESOLVED);
	ct_works(rdma_destroy_id(id));
	rdma_destroy_event_channel(channel);
}

/* A request that waits moves with its listener, and the id that it brings is at the new channel. */
static void requests_move_with_their_listener(void **state)
{
	struct rdma_event_channel *one = ct_channel(), *other = ct_channel();
	struct rdma_event_channel *at_client = ct_channel();
	struct rdma_cm_id *listener = ct_listener(one, RDMA_PS_TCP);
	struct rdma_cm_id *client = ct_client(at_client, RDMA_PS_TCP, ct_src_port(listener));
	struct rdma_cm_event *event;
	struct rdma_cm_id *server;

	ct_qp(client);
	ct_works(rdma_connect(client, NULL));
	assert_true(ct_readable(one->fd, CT_WAIT_MS));
	ct_works(rdma_migrate_id(listener, other));
	ct_no_event(one);
	rdma_destroy_event_channel(one);
	event = ct_event(other, RDMA_CM_EVENT_CONNECT_REQUEST);
	server = event->id;
	assert_ptr_equal(server->channel, other);
	ct_works(rdma_ack_cm_event(event));
	ct_qp(server);
	ct_works(rdma_accept(server, NULL));
	ct_pass(at_client, RDMA_CM_EVENT_ESTABLISHED);
	ct_pass(other, RDMA_CM_EVENT_ESTABLISHED);
	ct_exchange(client, server);
	rdma_destroy_qp(client);
	rdma_destroy_qp(server);
	ct_works(rdma_destroy_id(client));
	ct_works(rdma_destroy_id(server));
	ct_works(rdma_destroy_id(listener));
	rdma_destroy_event_channel(other);
	rdma_destroy_event_channel(at_client);
}

/* --- channels --- */

/* Whoever destroys its channel first may still destroy an id, whatever comes for it meanwhile. */
static void an_id_may_outlive_its_channel(void **state)
{
	struct rdma_event_channel *at_server = ct_channel(), *at_client = ct_channel();
	struct rdma_cm_id *listener = ct_listener(at_server, RDMA_PS_TCP);
	struct rdma_cm_id *id = ct_client(at_client, RDMA_PS_TCP, ct_src_port(listener));
	struct rdma_cm_event *event;

	rdma_destroy_event_channel(at_client);
	ct_works(rdma_connect(id, NULL));
	event = ct_event(at_server, RDMA_CM_EVENT_CONNECT_REQUEST);
	ct_works(rdma_reject(event->id, NULL, 0));
	ct_works(rdma_destroy_id(event->id));
	ct_works(rdma_ack_cm_event(event));
	ct_no_event(at_server);
	ct_works(rdma_destroy_id(id));
	ct_works(rdma_destroy_id(listener));
	rdma_destroy_event_channel(at_server);
}

/*
 * rdma_create_event_channel: "Returns a pointer to the created event channel"
 * rdma_create_event_channel: "Each event channel is mapped to a file descriptor."
 * rdma_create_event_channel: "All created event channels must be destroyed by calling
 * rdma_destroy_event_channel."
 * rdma_destroy_event_channel: "Release all resources associated with an event channel and closes
 * the associated file descriptor."
 */
static void a_channel_is_a_descriptor(void **state)
{
	struct rdma_event_channel *channel = ct_channel();
	int fd = channel->fd;

	assert_true(fcntl(fd, F_GETFD) >= 0);
	rdma_destroy_event_channel(channel);
	assert_int_equal(fcntl(fd, F_GETFD), -1);
}

/*
 * rdma_create_event_channel: "Event channels are used to direct all events on an rdma_cm_id."
 * rdma_create_event_channel: "direct events for different cm_id's to different channels for
 * processing"
 * rdma_create_event_channel: "Asynchronous events are reported to users through event channels."
 * rdma_create_event_channel: "Users should call rdma_get_cm_event to retrieve events on an event
 * channel."
 */
static void events_go_to_the_channel_of_their_id(void **state)
{
	struct rdma_event_channel *channels[3];
	struct rdma_cm_id *ids[3];

	for (size_t i = 0; i < 3; i++) {
		channels[i] = ct_channel();
		ids[i] = ct_id(channels[i], RDMA_PS_TCP);
		ct_works(rdma_resolve_addr(ids[i], NULL, ct_addr(7471), CT_RESOLVE_MS));
	}
	for (size_t i = 0; i < 3; i++) {
		struct rdma_cm_event *event = ct_event(channels[i], RDMA_CM_EVENT_ADDR_RESOLVED);

		assert_ptr_equal(event->id, ids[i]);
		ct_works(rdma_ack_cm_event(event));
		ct_no_event(channels[i]);
		ct_works(rdma_destroy_id(ids[i]));
		rdma_destroy_event_channel(channels[i]);
	}
}

/*
 * rdma_create_event_channel: "The associated file descriptor can be used and manipulated like any
 * other fd to change its behavior. Users may make the fd non-blocking, poll or select the fd, etc."
 * rdma_get_cm_event: "The default synchronous behavior of this routine can be changed by modifying
 * the file descriptor associated with the given channel."
 */
static void it_can_be_made_to_wait_for_nothing(void **state)
{
	struct rdma_event_channel *channel = ct_channel();
	struct rdma_cm_id *id = ct_id(channel, RDMA_PS_TCP);
	struct rdma_cm_event *event;
	fd_set set;

	ct_works(fcntl(channel->fd, F_SETFL, fcntl(channel->fd, F_GETFL) | O_NONBLOCK));
	ct_fails(rdma_get_cm_event(channel, &event), EAGAIN);
	ct_works(rdma_resolve_addr(id, NULL, ct_addr(7471), CT_RESOLVE_MS));
	FD_ZERO(&set);
	FD_SET(channel->fd, &set);
	assert_int_equal(select(channel->fd + 1, &set, NULL, NULL, NULL), 1);
	ct_works(rdma_get_cm_event(channel, &event));
	ct_works(rdma_ack_cm_event(event));
	ct_fails(rdma_get_cm_event(channel, &event), EAGAIN);
	assert_false(ct_readable(channel->fd, 0));
	ct_works(rdma_destroy_id(id));
	rdma_destroy_event_channel(channel);
}

/*
 * rdma_create_event_channel: "or NULL if the request fails. On failure, errno will be set to
 * indicate the failure reason."
 * rdma_create_event_channel: "or NULL if the request fails"
 */
static void without_descriptors_there_is_none(void **state)
{
	struct rdma_event_channel *channel = ct_channel();
	int fds[4096], count = 0;

	while (count < 4096 && (fds[count] = dup(channel->fd)) >= 0)
		count++;
	if (count < 4096) {
		errno = 0;
		assert_null(rdma_create_event_channel());
		assert_int_equal(errno, EMFILE);
	}
	while (count--)
		close(fds[count]);
	rdma_destroy_event_channel(channel);
	/* Who has none may give it back. */
	rdma_destroy_event_channel(NULL);
}

/* --- devices --- */

/*
 * rdma_get_devices: "Return a NULL-terminated array of opened RDMA devices."
 * rdma_get_devices: "If non-NULL, set to the number of devices returned."
 * rdma_get_devices: "Devices remain opened while the librdmacm is loaded."
 * rdma_get_devices: "The returned array must be released by calling rdma_free_devices."
 * rdma_free_devices: "Frees the device array returned by rdma_get_devices."
 * rdma_get_devices: "Callers can use this routine to allocate resources on specific RDMA devices
 * that will be shared across multiple rdma_cm_id's."
 * rdma_get_devices: "Returns an array of available RDMA devices"
 */
static void devices_stay_open_and_are_those_of_ids(void **state)
{
	struct rdma_event_channel *channel = ct_channel();
	int count = 0;
	struct ibv_context **list = rdma_get_devices(&count), **again = rdma_get_devices(NULL);
	struct ibv_port_attr port;
	struct ibv_context *verbs;
	struct rdma_cm_id *id;

	assert_int_equal(count, 1);
	assert_non_null(list);
	assert_null(list[1]);
	assert_ptr_equal(list[0], again[0]);
	verbs = list[0];
	rdma_free_devices(list);
	rdma_free_devices(again);
	ct_works(ibv_query_port(verbs, 1, &port));
	id = ct_client(channel, RDMA_PS_TCP, 7471);
	assert_ptr_equal(id->verbs, verbs);
	assert_non_null(id->pd);
	assert_ptr_equal(id->pd->context, verbs);
	assert_int_equal(id->port_num, 1);
	ct_works(rdma_destroy_id(id));
	rdma_destroy_event_channel(channel);
}

/* It has them in name only, and a connection manager of its own. */
static void a_forked_child_ends_nothing_of_its_parents(void **state)
{
	struct rdma_event_channel *channel = ct_channel(), *other = ct_channel();
	struct rdma_cm_id *listener = ct_listener(channel, RDMA_PS_TCP), *client, *child;
	struct rdma_conn_param param = { .qp_num = 7 };
	struct rdma_cm_event *event;
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		struct rdma_event_channel *own;

		rdma_destroy_id(listener);
		own = rdma_create_event_channel();
		_exit(own && !rdma_create_id(own, &child, NULL, RDMA_PS_TCP) &&
			      !rdma_bind_addr(child, ct_any(0)) && !rdma_destroy_id(child)
		      ? 0 : 1);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	client = ct_client(other, RDMA_PS_TCP, ct_src_port(listener));
	ct_works(rdma_connect(client, &param));
	event = ct_event(channel, RDMA_CM_EVENT_CONNECT_REQUEST);
	child = event->id;
	ct_works(rdma_ack_cm_event(event));
	ct_works(rdma_reject(child, NULL, 0));
	ct_works(rdma_destroy_id(child));
	assert_int_equal(ct_pass(other, RDMA_CM_EVENT_REJECTED), 28);
	ct_works(rdma_destroy_id(client));
	ct_works(rdma_destroy_id(listener));
	rdma_destroy_event_channel(other);
	rdma_destroy_event_channel(channel);
}

int main(void)
{
	const struct CMUnitTest ids[] = {
		cmocka_unit_test(an_id_is_made_and_destroyed),
		cmocka_unit_test(it_has_the_context_and_the_channel_it_was_given),
		cmocka_unit_test(each_port_space_has_its_type),
		cmocka_unit_test(port_spaces_that_there_are_not_are_refused),
		cmocka_unit_test(without_a_channel_it_has_one_of_its_own),
		cmocka_unit_test(calls_return_before_their_event),
		cmocka_unit_test(what_is_outstanding_is_cancelled),
		cmocka_unit_test(who_asked_and_goes_is_not_answered),
		cmocka_unit_test(its_port_is_free_again),
		cmocka_unit_test(a_listener_that_goes_rejects_who_waits),
		cmocka_unit_test(without_a_channel_who_asks_is_turned_away),
		cmocka_unit_test(destroying_waits_for_acknowledgements),
		cmocka_unit_test(who_frees_the_qp_first_leaves_nothing),
		cmocka_unit_test(events_move_with_their_id),
		cmocka_unit_test(moving_waits_for_acknowledgements),
		cmocka_unit_test(without_a_channel_it_waits_for_its_calls),
		cmocka_unit_test(requests_move_with_their_listener),
		cmocka_unit_test(an_id_may_outlive_its_channel),
		cmocka_unit_test(a_channel_is_a_descriptor),
		cmocka_unit_test(events_go_to_the_channel_of_their_id),
		cmocka_unit_test(it_can_be_made_to_wait_for_nothing),
		cmocka_unit_test(without_descriptors_there_is_none),
		cmocka_unit_test(devices_stay_open_and_are_those_of_ids),
		cmocka_unit_test(a_forked_child_ends_nothing_of_its_parents),
	};

	return ct_main(ids);
}
