/* SPDX-License-Identifier: BSD-2-Clause */
/* ibv_get_cq_event(3), ibv_get_async_event(3): channels, events, and who waits for whom. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>

#include "verbs.h"

static bool is_readable(int fd, int timeout_ms)
{
	struct pollfd poller = { .fd = fd, .events = POLLIN };

	return poll(&poller, 1, timeout_ms) == 1;
}

static void set_nonblocking(int fd)
{
	assert_int_equal(fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK), 0);
}

/* A CQ with a channel, and RC QPs whose receives complete there. */
static struct {
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq;
	struct ibv_qp *qp[2];
} r;

static int receiver_begin(void **state)
{
	struct ibv_qp_init_attr attr;

	verbs_begin(&v);
	attr = verbs_init_attr(&v, IBV_QPT_RC);
	r.channel = ibv_create_comp_channel(v.context);
	assert_non_null(r.channel);
	r.cq = ibv_create_cq(v.context, VERBS_DEPTH, &v, r.channel, 1);
	assert_non_null(r.cq);
	attr.recv_cq = r.cq;
	r.qp[0] = ibv_create_qp(v.pd, &attr);
	r.qp[1] = ibv_create_qp(v.pd, &attr);
	assert_true(r.qp[0] && r.qp[1]);
	verbs_connect(&v, r.qp[0], r.qp[1]->qp_num);
	verbs_connect(&v, r.qp[1], r.qp[0]->qp_num);
	return 0;
}

/* What completes; a test may do it before. */
static void receiver_destroy(void)
{
	assert_int_equal(ibv_destroy_qp(r.qp[0]), 0);
	assert_int_equal(ibv_destroy_qp(r.qp[1]), 0);
	assert_int_equal(ibv_destroy_cq(r.cq), 0);
	r.cq = NULL;
}

static int receiver_end(void **state)
{
	if (r.cq)
		receiver_destroy();
	assert_int_equal(ibv_destroy_comp_channel(r.channel), 0);
	return verbs_teardown(state);
}

#define RECEIVER_TEST(name) TEST_BETWEEN(name, receiver_begin, receiver_end)

/* The event that waits, acknowledged by whoever asks for it. */
static struct ibv_cq *event_get(void)
{
	struct ibv_cq *cq;
	void *context;

	assert_int_equal(ibv_get_cq_event(r.channel, &cq, &context), 0);
	assert_ptr_equal(cq, r.cq);
	assert_ptr_equal(context, &v);
	return cq;
}

/* One message to qp[1], its send completed. */
static void send_one(unsigned flags)
{
	verbs_post_recv(&v, r.qp[1], 1, 64, 64);
	verbs_post_send(&v, r.qp[0], 2, 0, 4, IBV_SEND_SIGNALED | flags);
	verbs_wait(v.cq, IBV_WC_SUCCESS);
}

/* --- completion channels --- */

RECEIVER_TEST(a_completion_wakes_who_asked)
{
	assert_int_equal(ibv_req_notify_cq(r.cq, 0), 0);
	assert_false(is_readable(r.channel->fd, 0));
	send_one(0);
	assert_true(is_readable(r.channel->fd, 5000));
	ibv_ack_cq_events(event_get(), 1);
	/* ibv_req_notify_cq(3): one shot. */
	send_one(0);
	assert_false(is_readable(r.channel->fd, 20));
}

/* ibv_req_notify_cq(3): only completions of sends with the solicited flag, or failed ones. */
RECEIVER_TEST(solicited_only_waits_for_solicited)
{
	assert_int_equal(ibv_req_notify_cq(r.cq, 1), 0);
	send_one(0);
	assert_false(is_readable(r.channel->fd, 20));
	send_one(IBV_SEND_SOLICITED);
	assert_true(is_readable(r.channel->fd, 5000));
	ibv_ack_cq_events(event_get(), 1);
}

RECEIVER_TEST(nonblocking_get_says_eagain)
{
	struct ibv_cq *cq;
	void *context;

	set_nonblocking(r.channel->fd);
	errno = 0;
	assert_int_equal(ibv_get_cq_event(r.channel, &cq, &context), -1);
	assert_int_equal(errno, EAGAIN);
}

static void *send_later(void *arg)
{
	usleep(50000);
	send_one(0);
	return NULL;
}

/* The application sleeps, so the NIC's own thread has to take what comes. */
RECEIVER_TEST(blocking_get_waits)
{
	pthread_t thread;

	assert_int_equal(ibv_req_notify_cq(r.cq, 0), 0);
	pthread_create(&thread, NULL, send_later, NULL);
	ibv_ack_cq_events(event_get(), 1);
	pthread_join(thread, NULL);
}

/* ibv_create_comp_channel(3): EBUSY while completion queues use it. */
VERBS_TEST(a_channel_in_use_is_busy)
{
	struct ibv_comp_channel *channel = ibv_create_comp_channel(v.context);
	struct ibv_cq *cq = ibv_create_cq(v.context, 1, NULL, channel, 0);

	assert_int_equal(ibv_destroy_comp_channel(channel), EBUSY);
	assert_int_equal(ibv_destroy_cq(cq), 0);
	assert_int_equal(ibv_destroy_comp_channel(channel), 0);
}

RECEIVER_TEST(events_of_a_destroyed_cq_vanish)
{
	struct ibv_cq *cq;
	void *context;

	assert_int_equal(ibv_req_notify_cq(r.cq, 0), 0);
	send_one(0);
	assert_true(is_readable(r.channel->fd, 5000));
	receiver_destroy();
	assert_false(is_readable(r.channel->fd, 0));
	set_nonblocking(r.channel->fd);
	assert_int_equal(ibv_get_cq_event(r.channel, &cq, &context), -1);
}

/* --- waiting for acknowledgements --- */

static _Atomic bool is_destroyed;

static void *destroy_cq(void *arg)
{
	receiver_destroy();
	is_destroyed = true;
	return NULL;
}

/* ibv_get_cq_event(3), NOTES: destroying a CQ waits until every event is acknowledged. */
RECEIVER_TEST(destroying_a_cq_waits_for_acks)
{
	struct ibv_cq *cq;
	pthread_t thread;

	assert_int_equal(ibv_req_notify_cq(r.cq, 0), 0);
	send_one(0);
	cq = event_get();
	is_destroyed = false;
	pthread_create(&thread, NULL, destroy_cq, NULL);
	usleep(50000);
	assert_false(is_destroyed);
	ibv_ack_cq_events(cq, 1);
	pthread_join(thread, NULL);
	assert_true(is_destroyed);
}

static struct ibv_qp *qp_with_event(struct ibv_srq **srq)
{
	struct ibv_srq_init_attr srq_attr = { .attr = { .max_wr = 4, .max_sge = 1 } };
	struct ibv_qp_init_attr attr = verbs_init_attr(&v, IBV_QPT_RC);
	struct ibv_qp_attr error = { .qp_state = IBV_QPS_ERR };
	struct ibv_qp *qp;

	*srq = ibv_create_srq(v.pd, &srq_attr);
	assert_non_null(*srq);
	attr.srq = *srq;
	qp = ibv_create_qp(v.pd, &attr);
	assert_non_null(qp);
	verbs_connect(&v, qp, qp->qp_num);
	/* LAST_WQE_REACHED: what a QP with an SRQ tells in the error state. */
	assert_int_equal(ibv_modify_qp(qp, &error, IBV_QP_STATE), 0);
	return qp;
}

static void *destroy_qp(void *arg)
{
	assert_int_equal(ibv_destroy_qp(arg), 0);
	is_destroyed = true;
	return NULL;
}

/*
 * ibv_destroy_qp, rdmamojo: "calling to ibv_destroy_qp() will never end until that event will be
 * acknowledged."
 */
VERBS_TEST(destroying_a_qp_waits_for_acks)
{
	struct ibv_async_event event;
	struct ibv_srq *srq;
	struct ibv_qp *qp = qp_with_event(&srq);
	pthread_t thread;

	assert_true(is_readable(v.context->async_fd, 5000));
	assert_int_equal(ibv_get_async_event(v.context, &event), 0);
	assert_int_equal(event.event_type, IBV_EVENT_QP_LAST_WQE_REACHED);
	assert_ptr_equal(event.element.qp, qp);
	is_destroyed = false;
	pthread_create(&thread, NULL, destroy_qp, qp);
	usleep(50000);
	assert_false(is_destroyed);
	ibv_ack_async_event(&event);
	pthread_join(thread, NULL);
	assert_true(is_destroyed);
	assert_int_equal(ibv_destroy_srq(srq), 0);
}

/* An event that was never read needs no acknowledgement, and is not read later. */
VERBS_TEST(events_of_a_destroyed_qp_vanish)
{
	struct ibv_async_event event;
	struct ibv_srq *srq;
	struct ibv_qp *qp = qp_with_event(&srq);

	assert_true(is_readable(v.context->async_fd, 5000));
	assert_int_equal(ibv_destroy_qp(qp), 0);
	assert_false(is_readable(v.context->async_fd, 0));
	set_nonblocking(v.context->async_fd);
	errno = 0;
	assert_int_equal(ibv_get_async_event(v.context, &event), -1);
	assert_int_equal(errno, EAGAIN);
	assert_int_equal(ibv_destroy_srq(srq), 0);
}

VERBS_TEST(events_go_to_the_context_of_their_object)
{
	struct ibv_context *other = verbs_open();
	struct ibv_srq *srq;
	struct ibv_qp *qp = qp_with_event(&srq);

	assert_true(is_readable(v.context->async_fd, 5000));
	assert_false(is_readable(other->async_fd, 0));
	assert_int_equal(ibv_destroy_qp(qp), 0);
	assert_int_equal(ibv_destroy_srq(srq), 0);
	ibv_close_device(other);
}
