/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Small programs about the order of connections' events (docs/order.md), for
 * tests/clients/order.sh, named as in tests/verbs/order_programs.c: luck_ relies on what nobody
 * promised, right_ does not.
 */
#include "lib.h"

#include <unistd.h>

enum { ROUNDS = 10, MANY = 5, TOGETHER_US = 2000 };

/* Events that wait together. */
static void together(void)
{
	usleep(TOGETHER_US);
}

static unsigned place_of(struct rdma_cm_id *const ids[MANY], const struct rdma_cm_id *id)
{
	unsigned i = 0;

	while (i < MANY && ids[i] != id)
		i++;
	assert_int_not_equal(i, MANY);
	return i;
}

/* The next event, of this type; whose it is. */
static unsigned whose(struct rdma_event_channel *channel, enum rdma_cm_event_type type,
		      struct rdma_cm_id *const ids[MANY])
{
	struct rdma_cm_event *event = ct_event(channel, type);
	unsigned place = place_of(ids, event->id);

	ct_works(rdma_ack_cm_event(event));
	return place;
}

static void each_once(struct rdma_event_channel *channel, enum rdma_cm_event_type type,
		      struct rdma_cm_id *const ids[MANY], bool in_turn)
{
	unsigned seen = 0, place;

	for (unsigned i = 0; i < MANY; i++) {
		place = whose(channel, type, ids);
		if (in_turn && place != i)
			fail_msg("event %u is of id %u", i, place);
		seen |= 1u << place;
	}
	assert_int_equal(seen, (1u << MANY) - 1);
}

/* --- several ids of one channel --- */

static void resolve(bool in_turn)
{
	struct rdma_event_channel *channel = ct_channel();
	struct rdma_cm_id *ids[MANY];

	for (unsigned i = 0; i < MANY; i++) {
		ids[i] = ct_id(channel, RDMA_PS_TCP);
		ct_works(rdma_resolve_addr(ids[i], NULL, ct_addr(7471), CT_RESOLVE_MS));
	}
	each_once(channel, RDMA_CM_EVENT_ADDR_RESOLVED, ids, in_turn);
	for (unsigned i = 0; i < MANY; i++)
		ct_works(rdma_destroy_id(ids[i]));
	rdma_destroy_event_channel(channel);
}

static void luck_who_asks_first_is_answered_first(void **state)
{
	for (unsigned i = 0; i < ROUNDS; i++)
		resolve(true);
}

static void right_an_event_says_whose_it_is(void **state)
{
	for (unsigned i = 0; i < ROUNDS; i++)
		resolve(false);
}

/* --- several connections --- */

struct several {
	struct rdma_event_channel *at_server, *at_client;
	struct rdma_cm_id *listener, *client[MANY], *server[MANY];
};

/* Each client says which it is. */
static void several_ask(struct several *s)
{
	s->at_server = ct_channel();
	s->at_client = ct_channel();
	s->listener = ct_listener(s->at_server, RDMA_PS_TCP);
	for (unsigned i = 0; i < MANY; i++) {
		s->client[i] = ct_client(s->at_client, RDMA_PS_TCP, ct_src_port(s->listener));
		ct_qp(s->client[i]);
	}
	for (uint8_t i = 0; i < MANY; i++)
		ct_works(rdma_connect(s->client[i], &(struct rdma_conn_param){
							     .private_data = &i,
							     .private_data_len = sizeof(i) }));
	together();
}

/* in_turn: server[i] is whoever asked as the i-th; else who said so. */
static void several_answer(struct several *s, bool in_turn)
{
	for (unsigned i = 0; i < MANY; i++) {
		struct rdma_cm_event *event =
			ct_event(s->at_server, RDMA_CM_EVENT_CONNECT_REQUEST);
		uint8_t said = *(const uint8_t *)event->param.conn.private_data;

		if (in_turn && said != i)
			fail_msg("request %u is of client %u", i, said);
		assert_true(said < MANY);
		s->server[said] = event->id;
		ct_works(rdma_ack_cm_event(event));
	}
	for (unsigned i = 0; i < MANY; i++) {
		ct_qp(s->server[i]);
		ct_works(rdma_accept(s->server[i], NULL));
	}
	together();
}

static void several_close(struct several *s)
{
	for (unsigned i = 0; i < MANY; i++) {
		rdma_destroy_qp(s->client[i]);
		rdma_destroy_qp(s->server[i]);
		ct_works(rdma_destroy_id(s->client[i]));
		ct_works(rdma_destroy_id(s->server[i]));
	}
	ct_works(rdma_destroy_id(s->listener));
	rdma_destroy_event_channel(s->at_client);
	rdma_destroy_event_channel(s->at_server);
}

static void connect_all(bool asked_in_turn, bool told_in_turn)
{
	struct several s = { 0 };

	several_ask(&s);
	several_answer(&s, asked_in_turn);
	each_once(s.at_client, RDMA_CM_EVENT_ESTABLISHED, s.client, told_in_turn);
	each_once(s.at_server, RDMA_CM_EVENT_ESTABLISHED, s.server, told_in_turn);
	several_close(&s);
}

static void luck_who_connects_first_is_asked_for_first(void **state)
{
	for (unsigned i = 0; i < ROUNDS; i++)
		connect_all(true, false);
}

static void luck_who_is_accepted_first_is_told_first(void **state)
{
	for (unsigned i = 0; i < ROUNDS; i++)
		connect_all(false, true);
}

static void right_a_request_says_who_asks(void **state)
{
	for (unsigned i = 0; i < ROUNDS; i++)
		connect_all(false, false);
}

/* --- one id --- */

/* Nothing is fetched until there is all: of one id the order stays, whatever the others do. */
static void right_one_ids_events_come_in_order(void **state)
{
	for (unsigned round = 0; round < ROUNDS; round++) {
		unsigned established = 0, over = 0;
		struct several s = { 0 };

		several_ask(&s);
		several_answer(&s, false);
		each_once(s.at_client, RDMA_CM_EVENT_ESTABLISHED, s.client, false);
		for (unsigned i = 0; i < MANY; i++)
			ct_works(rdma_disconnect(s.client[i]));
		together();
		for (unsigned i = 0; i < 2 * MANY; i++) {
			struct rdma_cm_event *event;
			unsigned bit;

			ct_works(rdma_get_cm_event(s.at_server, &event));
			bit = 1u << place_of(s.server, event->id);
			if (event->event == RDMA_CM_EVENT_ESTABLISHED) {
				assert_int_equal((established | over) & bit, 0);
				established |= bit;
			} else {
				assert_int_equal(event->event, RDMA_CM_EVENT_DISCONNECTED);
				assert_int_equal(established & bit, bit);
				assert_int_equal(over & bit, 0);
				over |= bit;
			}
			ct_works(rdma_ack_cm_event(event));
		}
		several_close(&s);
	}
}

int main(void)
{
	const struct CMUnitTest programs[] = {
		cmocka_unit_test(luck_who_asks_first_is_answered_first),
		cmocka_unit_test(right_an_event_says_whose_it_is),
		cmocka_unit_test(luck_who_connects_first_is_asked_for_first),
		cmocka_unit_test(luck_who_is_accepted_first_is_told_first),
		cmocka_unit_test(right_a_request_says_who_asks),
		cmocka_unit_test(right_one_ids_events_come_in_order),
	};

	return ct_main(programs);
}
