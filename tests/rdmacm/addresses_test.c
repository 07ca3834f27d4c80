/* SPDX-License-Identifier: BSD-2-Clause */
#include "lib.h"

#include <net/if.h>

#include "netns.h"

/* Addresses, ports and routes of ids. */

enum { FREE_PORT = 7471 };

static struct rdma_event_channel *channel;

static int setup(void **state)
{
	channel = ct_channel();
	return 0;
}

static int teardown(void **state)
{
	ct_no_event(channel);
	rdma_destroy_event_channel(channel);
	return 0;
}

static bool is_zero(const void *octets, size_t bytes)
{
	const uint8_t *octet = octets;

	while (bytes-- > 0) {
		if (*octet++)
			return false;
	}
	return true;
}

static bool is_at(const struct sockaddr *addr, const char *ip, uint16_t port)
{
	const struct sockaddr *wanted = ct_addr_of(ip, port);
	size_t bytes = wanted->sa_family == AF_INET ? 8 : sizeof(struct sockaddr_in6);

	return !memcmp(addr, wanted, bytes);
}

/* --- before anything is known --- */

/*
 * rdma_get_src_port: "If the rdma_cm_id is not bound to a port, the returned value is 0."
 * rdma_get_dst_port: "If the rdma_cm_id is not connected, the returned value is 0."
 * rdma_get_local_addr: "If the rdma_cm_id is not bound to an address, the contents of the sockaddr
 * structure will be set to all zeroes."
 * rdma_get_peer_addr: "If the rdma_cm_id is not connected, the contents of the sockaddr structure
 * will be set to all zeroes."
 */
static void a_new_one_is_nowhere(void **state)
{
	struct rdma_cm_id *id = ct_id(channel, RDMA_PS_TCP);

	assert_int_equal(rdma_get_src_port(id), 0);
	assert_int_equal(rdma_get_dst_port(id), 0);
	assert_true(is_zero(rdma_get_local_addr(id), sizeof(struct sockaddr_storage)));
	assert_true(is_zero(rdma_get_peer_addr(id), sizeof(struct sockaddr_storage)));
	ct_works(rdma_destroy_id(id));
}

/* --- binding --- */

/*
 * rdma_bind_addr: "Associates a source address with an rdma_cm_id."
 * rdma_bind_addr: "Returns 0 on success, or -1 on error."
 * rdma_get_src_port: "Returns the local port number for an rdma_cm_id that has been bound to a
 * local address."
 * rdma_get_src_port: "Returns the 16-bit port identifier associated with the local endpoint."
 * rdma_get_local_addr: "Returns the local IP address for an rdma_cm_id that has been bound to a
 * local device."
 * rdma_get_local_addr: "Returns a pointer to the local sockaddr address of the rdma_cm_id."
 */
static void it_is_where_it_is_bound(void **state)
{
	struct rdma_cm_id *id = ct_id(channel, RDMA_PS_TCP);

	ct_works(rdma_bind_addr(id, ct_addr(FREE_PORT)));
	assert_int_equal(ct_src_port(id), FREE_PORT);
	assert_true(is_at(rdma_get_local_addr(id), ct_ip(), FREE_PORT));
	assert_int_equal(rdma_get_dst_port(id), 0);
	ct_works(rdma_destroy_id(id));
}

/*
 * rdma_bind_addr: "The address may be wildcarded."
 * rdma_bind_addr: "Wildcard values are permitted."
 */
static void everywhere_is_no_device(void **state)
{
	struct rdma_cm_id *id = ct_id(channel, RDMA_PS_TCP);

	ct_works(rdma_bind_addr(id, ct_any(FREE_PORT)));
	assert_null(id->verbs);
	assert_null(id->pd);
	assert_int_equal(ct_src_port(id), FREE_PORT);
	ct_works(rdma_destroy_id(id));
}

/*
 * rdma_bind_addr: "If binding to a specific local address, the rdma_cm_id will also be bound to a
 * local RDMA device."
 */
static void an_address_of_its_own_is_a_device(void **state)
{
	struct rdma_cm_id *id = ct_id(channel, RDMA_PS_TCP);

	ct_works(rdma_bind_addr(id, ct_addr_of(CT_OTHER_IP, 0)));
	assert_non_null(id->verbs);
	assert_non_null(id->pd);
	assert_int_equal(id->port_num, 1);
	ct_works(rdma_destroy_id(id));
}

/*
 * rdma_bind_addr: "If used to bind to port 0, the rdma_cm will select an available port, which can
 * be retrieved with rdma_get_src_port(3)."
 */
static void port_0_is_any_that_is_free(void **state)
{
	struct rdma_cm_id *one = ct_id(channel, RDMA_PS_TCP), *other = ct_id(channel, RDMA_PS_TCP);

	ct_works(rdma_bind_addr(one, ct_addr(0)));
	ct_works(rdma_bind_addr(other, ct_addr(0)));
	assert_int_not_equal(rdma_get_src_port(one), 0);
	assert_int_not_equal(rdma_get_src_port(other), 0);
	assert_int_not_equal(rdma_get_src_port(one), rdma_get_src_port(other));
	ct_works(rdma_destroy_id(one));
	ct_works(rdma_destroy_id(other));
}

/*
 * rdma_bind_addr: "If an error occurs, errno will be set to indicate the failure reason."
 */
static void addresses_that_cannot_be_are_refused(void **state)
{
	struct rdma_cm_id *id = ct_id(channel, RDMA_PS_TCP);
	struct sockaddr_in6 local = { .sin6_family = AF_INET6 };
	struct sockaddr other = { .sa_family = AF_UNIX };

	ct_fails(rdma_bind_addr(id, NULL), EINVAL);
	ct_fails(rdma_bind_addr(id, &other), EAFNOSUPPORT);
	ct_fails(rdma_bind_addr(id, ct_addr_of("203.0.113.1", 0)), ENODEV);
	ct_fails(rdma_bind_addr(id, ct_addr_of("2001:db8::1", 0)), ENODEV);
	inet_pton(AF_INET6, "fe80::1", &local.sin6_addr);
	ct_fails(rdma_bind_addr(id, (struct sockaddr *)&local), EINVAL);
	/* And nothing of it stays. */
	assert_int_equal(rdma_get_src_port(id), 0);
	ct_works(rdma_bind_addr(id, ct_addr(FREE_PORT)));
	ct_fails(rdma_bind_addr(id, ct_addr(FREE_PORT + 1)), EINVAL);
	assert_int_equal(ct_src_port(id), FREE_PORT);
	ct_works(rdma_destroy_id(id));
}

/*
 * rdma_bind_addr: "Typically, this routine is called before calling rdma_listen to bind to a
 * specific port number"
 */
static void a_port_is_one_ids(void **state)
{
	struct rdma_cm_id *one = ct_id(channel, RDMA_PS_TCP), *other = ct_id(channel, RDMA_PS_TCP);
	struct rdma_cm_id *datagrams = ct_id(channel, RDMA_PS_UDP);

	ct_works(rdma_bind_addr(one, ct_addr(FREE_PORT)));
	ct_fails(rdma_bind_addr(other, ct_addr(FREE_PORT)), EADDRINUSE);
	ct_fails(rdma_bind_addr(other, ct_any(FREE_PORT)), EADDRNOTAVAIL);
	/* Another port space has ports of its own. */
	ct_works(rdma_bind_addr(datagrams, ct_addr(FREE_PORT)));
	/* And so has another address. */
	if (!getenv("CT_IPV6"))
		ct_works(rdma_bind_addr(other, ct_addr_of(CT_OTHER_IP, FREE_PORT)));
	ct_works(rdma_destroy_id(one));
	ct_works(rdma_destroy_id(other));
	ct_works(rdma_destroy_id(datagrams));
}

/* --- resolving addresses --- */

/*
 * rdma_resolve_addr: "Resolve destination and optional source addresses from IP addresses to an
 * RDMA address. If successful, the specified rdma_cm_id will be bound to a local device."
 * rdma_resolve_addr: "Returns 0 on success, or -1 on error."
 * rdma_resolve_addr: "After this call, the rdma_cm_id will be bound to an RDMA device."
 * rdma_resolve_addr: "If no source address is given, and the rdma_cm_id has not yet been bound to a
 * device, then the rdma_cm_id will be bound to a source address based on the local routing tables."
 * rdma_resolve_addr: "This call is used to map a given destination IP address to a usable RDMA
 * address."
 * rdma_get_dst_port: "Returns the 16-bit port identifier associated with the peer endpoint."
 * rdma_get_dst_port: "Returns the remote port number for an rdma_cm_id that has been bound to a
 * remote address."
 * rdma_get_peer_addr: "Returns the remote IP address associated with an rdma_cm_id."
 * rdma_get_peer_addr: "Returns a pointer to the sockaddr address of the connected peer."
 * rdma_get_cm_event: "Address resolution (rdma_resolve_addr) completed successfully."
 * rdma_resolve_addr: "This call is typically made from the active side of a connection before
 * calling rdma_resolve_route and rdma_connect."
 * rdma_resolve_addr: "This call maps the destination and, if given, source IP addresses to GIDs."
 * rdma_resolve_addr: "The IP to RDMA address mapping is done using the local routing tables"
 */
static void both_ends_are_known(void **state)
{
	struct rdma_cm_id *id = ct_id(channel, RDMA_PS_TCP);
	struct rdma_cm_event *event;
	union ibv_gid gid;

	ct_works(rdma_resolve_addr(id, NULL, ct_addr(FREE_PORT), CT_RESOLVE_MS));
	event = ct_event(channel, RDMA_CM_EVENT_ADDR_RESOLVED);
	assert_ptr_equal(event->id, id);
	assert_int_equal(event->status, 0);
	ct_works(rdma_ack_cm_event(event));
	assert_non_null(id->verbs);
	assert_non_null(id->pd);
	assert_true(is_at(rdma_get_local_addr(id), ct_ip(), ct_src_port(id)));
	assert_int_not_equal(rdma_get_src_port(id), 0);
	assert_true(is_at(rdma_get_peer_addr(id), ct_ip(), FREE_PORT));
	assert_int_equal(ntohs(rdma_get_dst_port(id)), FREE_PORT);
	/* "The RDMA address" of an Ethernet device is a GID. */
	gid = id->route.addr.addr.ibaddr.sgid;
	assert_false(is_zero(gid.raw, sizeof(gid.raw)));
	gid = id->route.addr.addr.ibaddr.dgid;
	assert_int_equal(gid.raw[15], 1);
	ct_works(rdma_destroy_id(id));
}

/*
 * rdma_resolve_addr: "If a source address is given, the rdma_cm_id is bound to that address, the
 * same as if rdma_bind_addr were called."
 */
static void the_source_is_bound(void **state)
{
	struct rdma_cm_id *id = ct_id(channel, RDMA_PS_TCP);

	ct_works(rdma_resolve_addr(id, ct_addr_of(CT_OTHER_IP, 4711),
				   ct_addr_of("127.0.0.1", FREE_PORT), CT_RESOLVE_MS));
	assert_int_equal(ct_pass(channel, RDMA_CM_EVENT_ADDR_RESOLVED), 0);
	assert_true(is_at(rdma_get_local_addr(id), CT_OTHER_IP, 4711));
	ct_works(rdma_destroy_id(id));
}

/*
 * rdma_bind_addr: "it may also be called on the active side of a connection before calling
 * rdma_resolve_addr to bind to a specific address"
 */
static void what_was_bound_stays(void **state)
{
	struct rdma_cm_id *id = ct_id(channel, RDMA_PS_TCP);

	ct_works(rdma_bind_addr(id, ct_addr_of(CT_OTHER_IP, 4711)));
	ct_works(rdma_resolve_addr(id, NULL, ct_addr_of("127.0.0.1", FREE_PORT), CT_RESOLVE_MS));
	assert_int_equal(ct_pass(channel, RDMA_CM_EVENT_ADDR_RESOLVED), 0);
	assert_true(is_at(rdma_get_local_addr(id), CT_OTHER_IP, 4711));
	ct_works(rdma_destroy_id(id));
}

/* To the wildcard is to this host. */
static void nowhere_in_particular_is_here(void **state)
{
	struct rdma_cm_id *id = ct_id(channel, RDMA_PS_TCP);

	ct_works(rdma_resolve_addr(id, NULL, ct_any(FREE_PORT), CT_RESOLVE_MS));
	assert_int_equal(ct_pass(channel, RDMA_CM_EVENT_ADDR_RESOLVED), 0);
	assert_true(is_at(rdma_get_peer_addr(id), ct_ip(), FREE_PORT));
	ct_works(rdma_destroy_id(id));
}

/*
 * rdma_resolve_addr: "If an error occurs, errno will be set to indicate the failure reason."
 * rdma_resolve_addr: "This parameter may be NULL."
 */
static void where_no_way_leads_is_refused(void **state)
{
	struct rdma_cm_id *id = ct_id(channel, RDMA_PS_TCP);
	struct sockaddr other = { .sa_family = AF_UNIX };

	ct_fails(rdma_resolve_addr(id, NULL, NULL, CT_RESOLVE_MS), EINVAL);
	ct_fails(rdma_resolve_addr(id, NULL, &other, CT_RESOLVE_MS), EAFNOSUPPORT);
	ct_fails(rdma_resolve_addr(id, NULL, ct_addr_of("203.0.113.1", 1), CT_RESOLVE_MS),
		 ENETUNREACH);
	/* It may look elsewhere. */
	ct_works(rdma_resolve_addr(id, NULL, ct_addr_of("127.0.0.1", 1), CT_RESOLVE_MS));
	assert_int_equal(ct_pass(channel, RDMA_CM_EVENT_ADDR_RESOLVED), 0);
	ct_fails(rdma_resolve_addr(id, NULL, ct_addr_of("127.0.0.1", 1), CT_RESOLVE_MS), EINVAL);
	ct_works(rdma_destroy_id(id));
}

/* One family does not lead to the other. */
static void families_do_not_mix(void **state)
{
	struct rdma_cm_id *id = ct_id(channel, RDMA_PS_TCP);

	ct_fails(rdma_resolve_addr(id, ct_addr_of("127.0.0.1", 0), ct_addr_of("::1", 1),
				   CT_RESOLVE_MS), EINVAL);
	ct_works(rdma_destroy_id(id));
}

/* --- resolving routes --- */

/*
 * rdma_resolve_route: "Resolves an RDMA route to the destination address in order to establish a
 * connection."
 * rdma_resolve_route: "This is called on the client side of a connection after calling
 * rdma_resolve_addr, but before calling rdma_connect."
 * rdma_resolve_route: "This call obtains a path record that is used by the connection."
 * rdma_resolve_route: "Returns 0 on success, or -1 on error."
 * rdma_get_cm_event: "Route resolution (rdma_resolve_route) completed successfully."
 */
static void a_route_is_a_path_record(void **state)
{
	struct rdma_cm_id *id = ct_client(channel, RDMA_PS_TCP, FREE_PORT);
	struct ibv_sa_path_rec *path = id->route.path_rec;

	assert_int_equal(id->route.num_paths, 1);
	assert_non_null(path);
	assert_memory_equal(&path->sgid, &id->route.addr.addr.ibaddr.sgid, sizeof(path->sgid));
	assert_memory_equal(&path->dgid, &id->route.addr.addr.ibaddr.dgid, sizeof(path->dgid));
	assert_int_equal(path->pkey, htons(0xffff));
	assert_true(path->mtu >= IBV_MTU_256 && path->mtu <= IBV_MTU_4096);
	ct_works(rdma_destroy_id(id));
}

/*
 * rdma_resolve_route: "The destination address must have already been resolved by calling
 * rdma_resolve_addr."
 * rdma_resolve_route: "If an error occurs, errno will be set to indicate the failure reason."
 * rdma_resolve_route: "Time to wait for resolution to complete."
 */
static void without_an_address_there_is_no_route(void **state)
{
	struct rdma_cm_id *id = ct_id(channel, RDMA_PS_TCP);

	ct_fails(rdma_resolve_route(id, CT_RESOLVE_MS), EINVAL);
	ct_works(rdma_bind_addr(id, ct_addr(0)));
	ct_fails(rdma_resolve_route(id, CT_RESOLVE_MS), EINVAL);
	ct_works(rdma_resolve_addr(id, NULL, ct_addr(1), CT_RESOLVE_MS));
	ct_pass(channel, RDMA_CM_EVENT_ADDR_RESOLVED);
	ct_fails(rdma_resolve_route(id, 0), EINVAL);
	ct_works(rdma_resolve_route(id, CT_RESOLVE_MS));
	ct_pass(channel, RDMA_CM_EVENT_ROUTE_RESOLVED);
	ct_fails(rdma_resolve_route(id, CT_RESOLVE_MS), EINVAL);
	ct_works(rdma_destroy_id(id));
}

#define addresses_test(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest addresses[] = {
		addresses_test(a_new_one_is_nowhere),
		addresses_test(it_is_where_it_is_bound),
		addresses_test(everywhere_is_no_device),
		addresses_test(an_address_of_its_own_is_a_device),
		addresses_test(port_0_is_any_that_is_free),
		addresses_test(addresses_that_cannot_be_are_refused),
		addresses_test(a_port_is_one_ids),
		addresses_test(both_ends_are_known),
		addresses_test(the_source_is_bound),
		addresses_test(what_was_bound_stays),
		addresses_test(nowhere_in_particular_is_here),
		addresses_test(where_no_way_leads_is_refused),
		addresses_test(families_do_not_mix),
		addresses_test(a_route_is_a_path_record),
		addresses_test(without_an_address_there_is_no_route),
	};

	return ct_main(addresses);
}
