/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef CM_FIXTURE_H
#define CM_FIXTURE_H

/*
 * Two connection managers, A and B, with a network between them that delivers when it is told to.
 * B listens for SERVICE. What A and B hear of is kept in the order in which it came.
 */

#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "cm/cm.h"
#include "cm/hear.h"
#include "cm/id.h"
#include "cm/nobody.h"
#include "cm/record.h"
#include "cm/say.h"
#include "group.h"

#define MS 1000000ull
#define SERVICE 0x01061234ull

enum { MADS_MAX = 64, EVENTS_MAX = 64, RECORDS_MAX = 4, QPN_A = 0x100, QPN_B = 0x200 };

struct mad {
	struct vb_path path;
	uint8_t data[VB_MAD_BYTES];
};

/* What of an event outlives it. */
struct told {
	enum vb_cm_event_type type;
	struct vb_cm_id *id, *listener;
	struct vb_cm_msg msg; /* without what it points to */
	uint8_t private_data[8];
};

struct end {
	struct vb_cm cm;
	uint8_t gid[VB_GID_BYTES];
	struct told told[EVENTS_MAX];
	unsigned events, heard_of; /* come, and asked for */
	unsigned blocks;
	bool poor;  /* it gets no memory */
	bool quick; /* it answers a REQ at once, by rejecting it */
	struct vb_cm_record record[RECORDS_MAX];
	unsigned lent;
};

static struct net {
	uint64_t now_ns;
	struct end a, b;
	struct vb_cm_id *listener;
	struct mad mad[MADS_MAX];
	unsigned mads; /* under way */
	uint32_t qpn;  /* of A, next; that of B is QPN_B - QPN_A more */
	bool unmarked; /* others, who leave no marks */
} net;

/* --- hosts --- */

static inline void host_send(void *arg, const struct vb_path *path, const uint8_t *mad)
{
	(void)arg;
	assert_in_range(net.mads, 0, MADS_MAX - 1);
	net.mad[net.mads].path = *path;
	memcpy(net.mad[net.mads].data, mad, VB_MAD_BYTES);
	if (net.unmarked)
		memset(net.mad[net.mads].data + 18, 0, 2);
	net.mads++;
}

static inline void host_event(void *arg, struct vb_cm_id *id, const struct vb_cm_event *event)
{
	struct end *end = arg;
	struct told *told = &end->told[end->events++];

	assert_in_range(end->events, 1, EVENTS_MAX);
	*told = (struct told){.type = event->type, .id = id, .listener = event->listener};
	if (event->msg) {
		told->msg = *event->msg;
		memcpy(told->private_data, event->msg->private_data, 8);
	}
	if (end->quick && event->type == VB_CM_EVENT_REQ)
		vb_cm_id_release(id, net.now_ns);
}

static inline void *host_alloc(void *arg, size_t bytes)
{
	struct end *end = arg;

	if (end->poor)
		return NULL;
	end->blocks++;
	return calloc(1, bytes);
}

static inline void host_release(void *arg, void *memory)
{
	struct end *end = arg;

	end->blocks--;
	free(memory);
}

static inline struct vb_cm_record *host_lend(void *arg)
{
	struct end *end = arg;

	return end->lent < RECORDS_MAX ? &end->record[end->lent++] : NULL;
}

static inline void host_take_back(void *arg, struct vb_cm_record *record)
{
	(void)arg;
	assert_int_equal(record->state, VB_CM_STATE_IDLE);
}

static inline void end_open(struct end *end, uint16_t slot, uint8_t last)
{
	const struct vb_cm_settings settings = {
		.guid = 0x1100000000000000u + last,
		.slot = slot,
		.secret = {last, 77},
	};
	const struct vb_cm_host host = {
		.arg = end,
		.send = host_send,
		.event = host_event,
		.alloc = host_alloc,
		.release = host_release,
		.lend = host_lend,
		.take_back = host_take_back,
	};

	end->gid[10] = end->gid[11] = 0xff;
	end->gid[12] = 10;
	end->gid[15] = last;
	vb_cm_init(&end->cm, &settings, &host);
}

static inline int net_open(void **state)
{
	memset(&net, 0, sizeof(net));
	net.now_ns = 1000 * MS;
	net.qpn = QPN_A;
	end_open(&net.a, 5, 1);
	end_open(&net.b, 6, 2);
	net.listener = vb_cm_id_make(&net.b.cm, NULL);
	assert_int_equal(vb_cm_id_listen(net.listener, SERVICE, 2), 0);
	return 0;
}

static inline int net_close(void **state)
{
	vb_cm_fini(&net.a.cm);
	vb_cm_fini(&net.b.cm);
	assert_int_equal(net.a.blocks, 0);
	assert_int_equal(net.b.blocks, 0);
	return 0;
}

/* --- the network --- */

/* Takes the first MAD that is under way. */
static inline struct mad net_take(void)
{
	struct mad mad;

	assert_true(net.mads > 0);
	mad = net.mad[0];
	memmove(net.mad, net.mad + 1, --net.mads * sizeof(net.mad[0]));
	return mad;
}

static inline void net_bring(const struct mad *mad)
{
	struct end *to = memcmp(mad->path.dst, net.a.gid, VB_GID_BYTES) == 0 ? &net.a : &net.b;

	if (memcmp(mad->path.dst, to->gid, VB_GID_BYTES) == 0)
		vb_cm_hear(&to->cm, net.now_ns, &mad->path, mad->data);
}

/* The one message that is under way: what it is, and it arrives. */
static inline struct mad net_pass(enum vb_cm_attr attr)
{
	struct mad mad = net_take();
	struct vb_cm_msg msg;

	assert_true(vb_cm_parse(&msg, mad.data));
	assert_string_equal(vb_cm_attr_name(msg.attr), vb_cm_attr_name(attr));
	assert_int_equal(net.mads, 0);
	net_bring(&mad);
	return mad;
}

/* The same, and it is lost. */
static inline struct mad net_lose(enum vb_cm_attr attr)
{
	struct mad mad = net_take();
	struct vb_cm_msg msg;

	assert_true(vb_cm_parse(&msg, mad.data));
	assert_string_equal(vb_cm_attr_name(msg.attr), vb_cm_attr_name(attr));
	return mad;
}

/* Nothing is under way. */
static inline void net_quiet(void)
{
	assert_int_equal(net.mads, 0);
}

/* A forged or repeated one comes. */
static inline void net_bring_msg(const struct vb_cm_msg *msg, const struct end *from,
				 const struct end *to)
{
	struct mad mad = {0};

	memcpy(mad.path.src, from->gid, VB_GID_BYTES);
	memcpy(mad.path.dst, to->gid, VB_GID_BYTES);
	vb_cm_emit(msg, mad.data);
	vb_cm_mark(mad.data);
	net_bring(&mad);
}

/* --- time --- */

/* To the next deadline of that one; how many ms that took. */
static inline unsigned net_wait(struct end *end)
{
	uint64_t before_ns = net.now_ns;

	assert_true(vb_cm_deadline_ns(&end->cm) != VB_CM_NEVER);
	net.now_ns = vb_cm_deadline_ns(&end->cm);
	vb_cm_turn(&end->cm, net.now_ns);
	return (unsigned)((net.now_ns - before_ns) / MS);
}

/* --- applications --- */

/* The next event that came to that one; it is of this type. */
static inline const struct told *end_hears(struct end *end, enum vb_cm_event_type type)
{
	assert_true(end->heard_of < end->events);
	assert_string_equal(vb_cm_event_name(end->told[end->heard_of].type),
			    vb_cm_event_name(type));
	return &end->told[end->heard_of++];
}

static inline void end_hears_nothing(const struct end *end)
{
	assert_int_equal(end->heard_of, end->events);
}

static inline struct vb_cm_ask net_way(void)
{
	struct vb_cm_ask ask = {
		.path.hop_limit = 64,
		.timeout_ns = 4608 * MS,
		.retries = 3,
	};

	memcpy(ask.path.src, net.a.gid, VB_GID_BYTES);
	memcpy(ask.path.dst, net.b.gid, VB_GID_BYTES);
	return ask;
}

static inline struct vb_cm_msg req_of(uint32_t qpn)
{
	return (struct vb_cm_msg){
		.attr = VB_CM_REQ,
		.req =
			{
				.service_id = SERVICE,
				.local_qpn = qpn,
				.starting_psn = 7,
				.remote_cm_response_timeout = 20,
				.local_cm_response_timeout = 20,
				.max_cm_retries = 3,
				.primary.local_ack_timeout = 17,
			},
		.private_data = (const uint8_t *)"request",
		.private_bytes = 8,
	};
}

/* A asks; the REQ is under way. */
static inline struct vb_cm_id *a_asks(bool ours)
{
	struct vb_cm_id *id = vb_cm_id_make(&net.a.cm, NULL);
	const struct vb_cm_msg msg = req_of(net.qpn++);
	struct vb_cm_ask ask = net_way();

	ask.ours = ours;
	assert_int_equal(vb_cm_say_ask(id, net.now_ns, &msg, &ask), 0);
	return id;
}

static inline int says(struct vb_cm_id *id, enum vb_cm_attr attr)
{
	struct vb_cm_msg msg = {.attr = attr};

	if (attr == VB_CM_REP)
		msg.rep.local_qpn = id->remote.qpn + QPN_B - QPN_A;
	if (attr == VB_CM_REJ)
		msg.rej.reason = VB_CM_REJ_CONSUMER_DEFINED;
	return vb_cm_say(id, net.now_ns, &msg, NULL);
}

/* Both ends of a connection, that of A first. */
struct pair {
	struct vb_cm_id *a, *b;
};

/* As far as that: B has the REQ, A has the REP, both are connected. */
static inline struct pair pair_asked(bool ours)
{
	struct pair pair = {.a = a_asks(ours)};

	net_pass(VB_CM_REQ);
	pair.b = end_hears(&net.b, VB_CM_EVENT_REQ)->id;
	vb_cm_id_take(pair.b);
	return pair;
}

static inline struct pair pair_answered(bool ours)
{
	struct pair pair = pair_asked(ours);

	assert_int_equal(says(pair.b, VB_CM_REP), 0);
	net_pass(VB_CM_REP);
	end_hears(&net.a, VB_CM_EVENT_REP);
	return pair;
}

static inline struct pair pair_connected(bool ours)
{
	struct pair pair = pair_answered(ours);

	assert_int_equal(says(pair.a, VB_CM_RTU), 0);
	net_pass(VB_CM_RTU);
	end_hears(&net.b, VB_CM_EVENT_RTU);
	return pair;
}

static inline void is_in(const struct vb_cm_id *id, enum vb_cm_state state)
{
	assert_string_equal(vb_cm_state_name(id->state), vb_cm_state_name(state));
}

#define BETWEEN_TWO(name) TEST_BETWEEN(name, net_open, net_close)

#endif
