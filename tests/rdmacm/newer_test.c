/* SPDX-License-Identifier: BSD-2-Clause */
#include "lib.h"

#include <dlfcn.h>
#include <netdb.h>

/*
 * What came to librdmacm after the header that we are compiled with: rdma_resolve_addrinfo(3),
 * rdma_query_addrinfo(3), rdma_write_cm_event(3) of version RDMACM_1.4, as programs of that time
 * find them.
 */

enum { EVENT_RESOLVED = 16, EVENT_ERROR = 17, EVENT_USER = 18, EVENT_INTERNAL = 19 };
enum { FLAG_SA = 0x10, FLAG_DNS = 0x20 };

static int (*resolve)(struct rdma_cm_id *, const char *, const char *,
		      const struct rdma_addrinfo *);
static int (*query)(struct rdma_cm_id *, struct rdma_addrinfo **);
static int (*write_event)(struct rdma_cm_id *, enum rdma_cm_event_type, int, uint64_t);
static struct rdma_event_channel *channel;

static void *newer(const char *name)
{
	void *found = dlvsym(RTLD_DEFAULT, name, "RDMACM_1.4");

	if (!found)
		fail_msg("no %s@RDMACM_1.4", name);
	return found;
}

static int setup(void **state)
{
	*(void **)&resolve = newer("rdma_resolve_addrinfo");
	*(void **)&query = newer("rdma_query_addrinfo");
	*(void **)&write_event = newer("rdma_write_cm_event");
	channel = ct_channel();
	return 0;
}

static int teardown(void **state)
{
	ct_no_event(channel);
	rdma_destroy_event_channel(channel);
	return 0;
}

/* --- names --- */

/*
 * rdma_resolve_addrinfo: "This call submits an asynchronous address resolution request."
 * rdma_resolve_addrinfo: "Returns 0 on success. Success indicates that asynchronous address
 * resolution was initiated."
 * rdma_resolve_addrinfo: "RAI_DNS: Performs address resolution using DNS."
 * rdma_resolve_addrinfo: "The cm event RDMA_CM_EVENT_ADDRINFO_RESOLVED (on success) or
 * RDMA_CM_EVENT_ADDRINFO_ERROR (on failure) is generated."
 * rdma_query_addrinfo: "This function retrieves the resulting rdma_addrinfo structures from a
 * successful rdma_resolve_addrinfo() operation."
 * rdma_query_addrinfo: "On success 0 is returned, info contains a resolved address information"
 */
static void a_name_is_resolved_and_an_event_tells(void **state)
{
	static const int flags[] = { 0, FLAG_DNS, RAI_NUMERICHOST | FLAG_DNS };

	for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++) {
		struct rdma_addrinfo hints = { .ai_flags = flags[i], .ai_port_space = RDMA_PS_TCP };
		struct rdma_addrinfo *info, *again;
		struct rdma_cm_id *id = ct_id(channel, RDMA_PS_TCP);

		ct_fails(query(id, &info), ENODATA);
		ct_works(resolve(id, ct_ip(), "7471", &hints));
		/* The hints were the caller's, and may be anything by now. */
		memset(&hints, 0xff, sizeof(hints));
		assert_int_equal(ct_pass(channel, (enum rdma_cm_event_type)EVENT_RESOLVED), 0);
		ct_works(query(id, &info));
		assert_int_equal(info->ai_port_space, RDMA_PS_TCP);
		assert_int_equal(info->ai_qp_type, IBV_QPT_RC);
		assert_null(info->ai_next);
		assert_memory_equal(info->ai_dst_addr, ct_addr(7471), info->ai_dst_len);
		/* Each gets one of his own. */
		ct_works(query(id, &again));
		assert_ptr_not_equal(info, again);
		rdma_freeaddrinfo(info);
		ct_works(rdma_resolve_addr(id, NULL, again->ai_dst_addr, CT_RESOLVE_MS));
		ct_pass(channel, RDMA_CM_EVENT_ADDR_RESOLVED);
		rdma_freeaddrinfo(again);
		ct_works(rdma_destroy_id(id));
	}
}

/*
 * rdma_resolve_addrinfo: "The result of the resolution, whether successful or failed, will be
 * reported as an event on the related event channel."
 */
static void a_name_that_there_is_not_is_told_by_an_event(void **state)
{
	struct rdma_addrinfo hints = { .ai_flags = RAI_NUMERICHOST }, *info;
	struct rdma_cm_id *id = ct_id(channel, RDMA_PS_TCP);

	ct_works(resolve(id, "no-number", "7471", &hints));
	assert_int_equal(ct_pass(channel, (enum rdma_cm_event_type)EVENT_ERROR), EAI_NONAME);
	ct_fails(query(id, &info), ENODATA);
	/* What was found before is what another name does not have. */
	ct_works(resolve(id, ct_ip(), NULL, NULL));
	ct_pass(channel, (enum rdma_cm_event_type)EVENT_RESOLVED);
	ct_works(query(id, &info));
	rdma_freeaddrinfo(info);
	ct_works(resolve(id, "no-number", NULL, &hints));
	ct_pass(channel, (enum rdma_cm_event_type)EVENT_ERROR);
	ct_fails(query(id, &info), ENODATA);
	ct_works(rdma_destroy_id(id));
}

/*
 * rdma_resolve_addrinfo: "Returns -1 on error, errno will be set to indicate the failure reason.
 * The address resolution was not started, and no event will be generated on the event channel."
 * rdma_resolve_addrinfo: "These 2 flags are mutual-exclusive; If none of them is set then DNS is
 * the default."
 * rdma_resolve_addrinfo: "The rdma_cm_id associated with the call must be bound to an Infiniband
 * port, or an error will occur. The %node parameter must be null (not supported)."
 * rdma_query_addrinfo: "On error -1 is returned, errno will be set to indicate the failure reason."
 */
static void there_is_no_subnet_administrator(void **state)
{
	struct rdma_addrinfo hints = { .ai_flags = FLAG_SA };
	struct rdma_cm_id *id = ct_id(channel, RDMA_PS_TCP);

	ct_fails(resolve(id, NULL, NULL, NULL), EINVAL);
	ct_fails(resolve(id, NULL, "1", &hints), EINVAL);
	ct_works(rdma_resolve_addr(id, NULL, ct_addr(7471), CT_RESOLVE_MS));
	ct_pass(channel, RDMA_CM_EVENT_ADDR_RESOLVED);
	ct_fails(resolve(id, ct_ip(), "1", &hints), EINVAL);
	ct_fails(resolve(id, NULL, NULL, &hints), EINVAL);
	ct_fails(resolve(id, NULL, "1", &hints), EOPNOTSUPP);
	hints.ai_flags = FLAG_SA | FLAG_DNS;
	ct_fails(resolve(id, NULL, "1", &hints), EINVAL);
	ct_fails(query(id, NULL), EINVAL);
	ct_no_event(channel);
	ct_works(rdma_destroy_id(id));
}

/* Who does not wait for the answer gets none. */
static void who_goes_is_not_told(void **state)
{
	for (int i = 0; i < 100; i++) {
		struct rdma_cm_id *id = ct_id(channel, RDMA_PS_TCP);

		ct_works(resolve(id, ct_ip(), "7471", NULL));
		ct_works(rdma_destroy_id(id));
	}
	ct_no_event(channel);
}

/* Without a channel the call waits. */
static void without_a_channel_it_waits(void **state)
{
	struct rdma_addrinfo hints = { .ai_flags = RAI_NUMERICHOST }, *info;
	struct rdma_cm_id *id;

	ct_works(rdma_create_id(NULL, &id, NULL, RDMA_PS_TCP));
	ct_works(resolve(id, ct_ip(), "7471", NULL));
	assert_int_equal(id->event->event, EVENT_RESOLVED);
	ct_works(query(id, &info));
	rdma_freeaddrinfo(info);
	ct_fails(resolve(id, "no-number", NULL, &hints), ENOENT);
	assert_int_equal(id->event->event, EVENT_ERROR);
	assert_int_equal(id->event->status, EAI_NONAME);
	ct_works(rdma_destroy_id(id));
}

/* --- events of the application's own --- */

/*
 * rdma_write_cm_event: "Write an event into a CM, with a status and an argument."
 * rdma_write_cm_event: "This call allows an application to write a user-defined event to the event
 * channel associated with the specified rdma_cm_id."
 * rdma_write_cm_event: "On success 0 is returned, on error -1 is returned, errno will be set to
 * indicate the failure reason."
 */
static void what_is_written_is_read(void **state)
{
	struct rdma_cm_id *id = ct_id(channel, RDMA_PS_UDP);

	for (int i = 0; i < 3; i++)
		ct_works(write_event(id, (enum rdma_cm_event_type)EVENT_USER, -i,
				     0x55667788aabbccddull + (uint64_t)i));
	for (int i = 0; i < 3; i++) {
		struct rdma_cm_event *event = ct_event(channel,
						       (enum rdma_cm_event_type)EVENT_USER);
		uint64_t arg;

		memcpy(&arg, &event->param, sizeof(arg));
		assert_true(arg == 0x55667788aabbccddull + (uint64_t)i);
		assert_int_equal(event->status, -i);
		assert_ptr_equal(event->id, id);
		assert_null(event->listen_id);
		ct_works(rdma_ack_cm_event(event));
	}
	ct_works(rdma_destroy_id(id));
}

/* rdma_write_cm_event: "Valid user events are: RDMA_CM_EVENT_USER." */
static void no_other_event_can_be_written(void **state)
{
	struct rdma_cm_id *id = ct_id(channel, RDMA_PS_TCP);

	for (int type = -1; type < 22; type++) {
		if (type != EVENT_USER)
			ct_fails(write_event(id, (enum rdma_cm_event_type)type, 0, 0), EINVAL);
	}
	ct_no_event(channel);
	ct_works(rdma_destroy_id(id));
}

/* What was not fetched goes with its id, or to where that moves. */
static void they_are_the_ids(void **state)
{
	struct rdma_event_channel *other = ct_channel();
	struct rdma_cm_id *id = ct_id(channel, RDMA_PS_TCP);

	ct_works(write_event(id, (enum rdma_cm_event_type)EVENT_USER, 0, 0));
	ct_works(rdma_migrate_id(id, other));
	ct_no_event(channel);
	ct_pass(other, (enum rdma_cm_event_type)EVENT_USER);
	ct_works(write_event(id, (enum rdma_cm_event_type)EVENT_USER, 0, 0));
	ct_works(rdma_destroy_id(id));
	ct_no_event(other);
	rdma_destroy_event_channel(other);
}

int main(void)
{
	const struct CMUnitTest newer_calls[] = {
		cmocka_unit_test_setup_teardown(a_name_is_resolved_and_an_event_tells, setup,
						teardown),
		cmocka_unit_test_setup_teardown(a_name_that_there_is_not_is_told_by_an_event,
						setup, teardown),
		cmocka_unit_test_setup_teardown(there_is_no_subnet_administrator, setup, teardown),
		cmocka_unit_test_setup_teardown(who_goes_is_not_told, setup, teardown),
		cmocka_unit_test_setup_teardown(without_a_channel_it_waits, setup, teardown),
		cmocka_unit_test_setup_teardown(what_is_written_is_read, setup, teardown),
		cmocka_unit_test_setup_teardown(no_other_event_can_be_written, setup, teardown),
		cmocka_unit_test_setup_teardown(they_are_the_ids, setup, teardown),
	};

	return ct_main(newer_calls);
}
