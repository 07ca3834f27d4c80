/* SPDX-License-Identifier: BSD-2-Clause */
#include "lib.h"

#include <netdb.h>

/* rdma_getaddrinfo(3): what comes of names, services and hints. */

static struct rdma_addrinfo *resolved(const char *node, const char *service,
				      const struct rdma_addrinfo *hints)
{
	struct rdma_addrinfo *res = NULL;

	ct_works(rdma_getaddrinfo(node, service, hints, &res));
	assert_non_null(res);
	return res;
}

static void is_addr(const struct sockaddr *addr, socklen_t bytes, const char *ip, uint16_t port)
{
	const struct sockaddr *wanted = ct_addr_of(ip, port);

	assert_non_null(addr);
	assert_int_equal(bytes, wanted->sa_family == AF_INET ? sizeof(struct sockaddr_in)
							      : sizeof(struct sockaddr_in6));
	assert_memory_equal(addr, wanted, bytes);
}

/*
 * rdma_getaddrinfo: "Resolves the destination node and service address and returns information
 * needed to establish communication."
 * rdma_getaddrinfo: "Provides the RDMA functional equivalent to getaddrinfo."
 * rdma_getaddrinfo: "Returns 0 on success"
 * rdma_getaddrinfo: "If provided, the address for the destination RDMA device."
 * rdma_getaddrinfo: "Will be NULL if no more structures exist."
 * rdma_getaddrinfo: "The length of the destination address referenced by ai_dst_addr."
 * rdma_getaddrinfo: "Pointer to the next rdma_addrinfo structure in the list."
 */
static void a_node_is_where_to_connect(void **state)
{
	struct rdma_addrinfo *res = resolved(ct_ip(), "7471", NULL);

	is_addr(res->ai_dst_addr, res->ai_dst_len, ct_ip(), 7471);
	assert_int_equal(res->ai_family, res->ai_dst_addr->sa_family);
	assert_int_equal(res->ai_flags & RAI_PASSIVE, 0);
	assert_null(res->ai_next);
	rdma_freeaddrinfo(res);
}

/*
 * rdma_getaddrinfo: "This will be 0 if an appropriate source address could not be discovered for a
 * given destination."
 */
static void the_source_is_left_to_the_route(void **state)
{
	struct rdma_addrinfo *res = resolved(ct_ip(), "7471", NULL);

	assert_int_equal(res->ai_src_len, 0);
	assert_null(res->ai_src_addr);
	rdma_freeaddrinfo(res);
}

/*
 * rdma_getaddrinfo: "Indicates that the results will be used on the passive/listening side of a
 * connection."
 * rdma_getaddrinfo: "If RAI_PASSIVE is specified, the call will resolve address information for use
 * on the passive side of a connection."
 * rdma_getaddrinfo: "If provided, the address for the local RDMA device."
 * rdma_getaddrinfo: "This will be 0 if the RAI_PASSIVE flag was specified as part of the hints."
 */
static void passive_it_is_where_to_listen(void **state)
{
	const struct rdma_addrinfo hints = { .ai_flags = RAI_PASSIVE,
					     .ai_port_space = RDMA_PS_TCP };
	struct rdma_addrinfo *res = resolved(ct_ip(), "7471", &hints);

	is_addr(res->ai_src_addr, res->ai_src_len, ct_ip(), 7471);
	assert_int_equal(res->ai_dst_len, 0);
	assert_null(res->ai_dst_addr);
	assert_int_equal(res->ai_flags, RAI_PASSIVE);
	rdma_freeaddrinfo(res);
}

/* Everywhere, then. */
static void passive_without_a_node_it_is_the_wildcard(void **state)
{
	const struct rdma_addrinfo hints = { .ai_flags = RAI_PASSIVE, .ai_family = AF_INET6,
					     .ai_port_space = RDMA_PS_TCP };
	struct rdma_addrinfo *res = resolved(NULL, "7471", &hints);

	is_addr(res->ai_src_addr, res->ai_src_len, "::", 7471);
	rdma_freeaddrinfo(res);
}

/* Where one is active, nobody's name is this host. */
static void active_without_a_node_it_is_this_host(void **state)
{
	const struct rdma_addrinfo hints = { .ai_family = AF_INET, .ai_port_space = RDMA_PS_TCP };
	struct rdma_addrinfo *res = resolved(NULL, "7471", &hints);

	is_addr(res->ai_dst_addr, res->ai_dst_len, "127.0.0.1", 7471);
	rdma_freeaddrinfo(res);
}

/*
 * rdma_getaddrinfo: "If specified, then the node parameter, if provided, must be a numerical
 * network address. This flag suppresses any lengthy address resolution."
 * rdma_getaddrinfo: "The node or service is not known; or both node and service are NULL."
 */
static void a_number_has_to_be_one(void **state)
{
	const struct rdma_addrinfo hints = { .ai_flags = RAI_NUMERICHOST,
					     .ai_port_space = RDMA_PS_TCP };
	struct rdma_addrinfo *res = resolved(ct_ip(), "1", &hints);

	is_addr(res->ai_dst_addr, res->ai_dst_len, ct_ip(), 1);
	rdma_freeaddrinfo(res);
	res = NULL;
	assert_int_equal(rdma_getaddrinfo("localhost", "1", &hints, &res), EAI_NONAME);
	assert_null(res);
}

/* rdma_getaddrinfo: "Optional, name, dotted-decimal IPv4, or IPv6 hex address to resolve." */
static void a_name_is_looked_up(void **state)
{
	const struct rdma_addrinfo hints = { .ai_family = AF_INET, .ai_port_space = RDMA_PS_TCP };
	struct rdma_addrinfo *res = resolved("localhost", "7471", &hints);

	is_addr(res->ai_dst_addr, res->ai_dst_len, "127.0.0.1", 7471);
	rdma_freeaddrinfo(res);
}

/* rdma_getaddrinfo: "Service name or port number of address." */
static void a_service_is_a_number_or_a_name(void **state)
{
	const struct rdma_addrinfo hints = { .ai_port_space = RDMA_PS_TCP };
	struct servent *http = getservbyname("http", "tcp");
	struct rdma_addrinfo *res;

	res = resolved(ct_ip(), "65535", &hints);
	is_addr(res->ai_dst_addr, res->ai_dst_len, ct_ip(), 65535);
	rdma_freeaddrinfo(res);
	if (http) {
		res = resolved(ct_ip(), "http", &hints);
		is_addr(res->ai_dst_addr, res->ai_dst_len, ct_ip(), ntohs((uint16_t)http->s_port));
		rdma_freeaddrinfo(res);
	}
	res = resolved(ct_ip(), NULL, &hints);
	is_addr(res->ai_dst_addr, res->ai_dst_len, ct_ip(), 0);
	rdma_freeaddrinfo(res);
}

/* rdma_getaddrinfo: "The requested service is not available for the requested QP type." */
static void services_that_there_are_not_are_unknown(void **state)
{
	const struct rdma_addrinfo hints = { .ai_port_space = RDMA_PS_TCP };
	struct rdma_addrinfo *res = NULL;

	assert_int_equal(rdma_getaddrinfo(ct_ip(), "no-such-service", &hints, &res), EAI_SERVICE);
	assert_null(res);
}

/*
 * rdma_getaddrinfo: "Indicates the type of RDMA QP used for communication. Supported types are:
 * IBV_QPT_UD (unreliable datagram) and IBV_QPT_RC (reliable connected)."
 * rdma_getaddrinfo: "RDMA port space in use. Supported values are: RDMA_PS_UDP, RDMA_PS_TCP, and
 * RDMA_PS_IB."
 */
static void type_and_port_space_follow_from_each_other(void **state)
{
	static const struct {
		int type, ps, made_type, made_ps;
	} all[] = {
		{ 0, 0, IBV_QPT_RC, RDMA_PS_TCP },
		{ IBV_QPT_RC, 0, IBV_QPT_RC, RDMA_PS_TCP },
		{ IBV_QPT_UD, 0, IBV_QPT_UD, RDMA_PS_UDP },
		{ 0, RDMA_PS_TCP, IBV_QPT_RC, RDMA_PS_TCP },
		{ 0, RDMA_PS_UDP, IBV_QPT_UD, RDMA_PS_UDP },
		{ IBV_QPT_RC, RDMA_PS_IB, IBV_QPT_RC, RDMA_PS_IB },
		{ IBV_QPT_UD, RDMA_PS_IB, IBV_QPT_UD, RDMA_PS_IB },
		{ IBV_QPT_XRC_SEND, RDMA_PS_IB, IBV_QPT_XRC_SEND, RDMA_PS_IB },
		{ IBV_QPT_XRC_RECV, RDMA_PS_IB, IBV_QPT_XRC_RECV, RDMA_PS_IB },
	};

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		const struct rdma_addrinfo hints = { .ai_qp_type = all[i].type,
						     .ai_port_space = all[i].ps };
		struct rdma_addrinfo *res = resolved(ct_ip(), "7471", &hints);

		assert_int_equal(res->ai_qp_type, all[i].made_type);
		assert_int_equal(res->ai_port_space, all[i].made_ps);
		rdma_freeaddrinfo(res);
	}
}

/*
 * rdma_getaddrinfo: "The requested socket type is not supported. This could occur, for example, if
 * hints.ai_qptype and hints.ai_port_space are inconsistent"
 * rdma_getaddrinfo: "or one of the following nonzero error codes"
 * rdma_getaddrinfo: "This could occur, for example, if hints.ai_qptype and hints.ai_port_space are
 * inconsistent (e.g., IBV_QPT_UD and RDMA_PS_TCP, respectively)."
 */
static void types_that_their_port_space_has_not_are_refused(void **state)
{
	static const struct rdma_addrinfo all[] = {
		{ .ai_qp_type = IBV_QPT_UD, .ai_port_space = RDMA_PS_TCP },
		{ .ai_qp_type = IBV_QPT_RC, .ai_port_space = RDMA_PS_UDP },
	};
	struct rdma_addrinfo *res = NULL;

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		assert_int_equal(rdma_getaddrinfo(ct_ip(), "7471", &all[i], &res), EAI_SOCKTYPE);
	assert_null(res);
}

/*
 * rdma_getaddrinfo: "If set, the ai_family setting should be used as an input hint for
 * interpretting the node parameter."
 * rdma_getaddrinfo: "Address family for the source and destination address."
 * rdma_getaddrinfo: "The specified network host does not have any network addresses in the
 * requested address family."
 */
static void the_family_has_to_be_that_of_the_node(void **state)
{
	struct rdma_addrinfo hints = { .ai_flags = RAI_FAMILY | RAI_NUMERICHOST,
				       .ai_family = AF_INET, .ai_port_space = RDMA_PS_TCP };
	struct rdma_addrinfo *res = resolved("127.0.0.1", "1", &hints);

	assert_int_equal(res->ai_family, AF_INET);
	rdma_freeaddrinfo(res);
	res = NULL;
	assert_int_equal(rdma_getaddrinfo("::1", "1", &hints, &res), EAI_ADDRFAMILY);
	hints.ai_family = AF_INET6;
	assert_int_equal(rdma_getaddrinfo("127.0.0.1", "1", &hints, &res), EAI_ADDRFAMILY);
	assert_null(res);
	res = resolved("::1", "1", &hints);
	assert_int_equal(res->ai_family, AF_INET6);
	rdma_freeaddrinfo(res);
}

/*
 * rdma_getaddrinfo: "The requested address family is not supported."
 * rdma_getaddrinfo: "Supported families are: AF_INET, AF_INET6, and AF_IB."
 */
static void other_families_are_refused(void **state)
{
	struct rdma_addrinfo hints = { .ai_flags = RAI_FAMILY, .ai_family = 27 /* AF_IB */ };
	struct rdma_addrinfo *res = NULL;

	assert_int_equal(rdma_getaddrinfo(ct_ip(), "1", &hints, &res), EAI_FAMILY);
	hints.ai_family = AF_UNIX;
	assert_int_equal(rdma_getaddrinfo(ct_ip(), "1", &hints, &res), EAI_FAMILY);
	assert_null(res);
}

/*
 * rdma_getaddrinfo: "hints.ai_flags contains invalid flags."
 * rdma_getaddrinfo: "If hints are provided, the operation will be controlled by hints.ai_flags."
 * rdma_getaddrinfo: "Hint flags that control the operation. Supported flags are:"
 */
static void flags_that_nobody_knows_are_refused(void **state)
{
	const struct rdma_addrinfo hints = { .ai_flags = 1 << 20 };
	struct rdma_addrinfo *res = NULL;

	assert_int_equal(rdma_getaddrinfo(ct_ip(), "1", &hints, &res), EAI_BADFLAGS);
	assert_null(res);
}

/*
 * rdma_getaddrinfo: "If set, this flag suppresses any lengthy route resolution."
 * rdma_getaddrinfo: "This will be 0 if the underlying transport does not require routing data, or
 * none could be resolved."
 * rdma_getaddrinfo: "This will be 0 if the underlying transport does not require additional
 * connection information."
 * rdma_getaddrinfo: "Size of the routing information buffer referenced by ai_route."
 * rdma_getaddrinfo: "Size of connection information referenced by ai_connect."
 */
static void there_are_no_routes_and_no_words_to_say(void **state)
{
	static const int flags[] = { 0, RAI_NOROUTE };

	for (size_t i = 0; i < 2; i++) {
		const struct rdma_addrinfo hints = { .ai_flags = flags[i],
						     .ai_port_space = RDMA_PS_TCP };
		struct rdma_addrinfo *res = resolved(ct_ip(), "7471", &hints);

		assert_int_equal(res->ai_route_len, 0);
		assert_null(res->ai_route);
		assert_int_equal(res->ai_connect_len, 0);
		assert_null(res->ai_connect);
		rdma_freeaddrinfo(res);
	}
}

/*
 * rdma_getaddrinfo: "If node is provided, rdma_getaddrinfo will attempt to resolve the RDMA
 * address, route, and connection data to the given node."
 * rdma_getaddrinfo: "The hints parameter, if provided, may be used to control the resulting output
 * as indicated below."
 * rdma_getaddrinfo: "The length of the source address referenced by ai_src_addr."
 */
static void the_source_of_the_hints_is_taken_along(void **state)
{
	struct rdma_addrinfo hints = { .ai_port_space = RDMA_PS_TCP };
	struct rdma_addrinfo *res;

	hints.ai_src_addr = ct_addr(4711);
	hints.ai_src_len = sizeof(struct sockaddr_in6);
	if (hints.ai_src_addr->sa_family == AF_INET)
		hints.ai_src_len = sizeof(struct sockaddr_in);
	res = resolved(ct_ip(), "7471", &hints);
	is_addr(res->ai_src_addr, res->ai_src_len, ct_ip(), 4711);
	is_addr(res->ai_dst_addr, res->ai_dst_len, ct_ip(), 7471);
	assert_ptr_not_equal(res->ai_src_addr, hints.ai_src_addr);
	rdma_freeaddrinfo(res);
}

/*
 * rdma_getaddrinfo: "If node is not given, rdma_getaddrinfo will attempt to resolve the RDMA
 * addressing information based on the hints.ai_src_addr, hints.ai_dst_addr, or hints.ai_route."
 */
static void without_names_the_hints_are_the_answer(void **state)
{
	struct sockaddr *dst = ct_addr(7471), *src = ct_addr(4711);
	socklen_t bytes = dst->sa_family == AF_INET ? sizeof(struct sockaddr_in)
						     : sizeof(struct sockaddr_in6);
	const struct rdma_addrinfo hints = {
		.ai_family = dst->sa_family, .ai_qp_type = IBV_QPT_RC,
		.ai_port_space = RDMA_PS_TCP, .ai_src_len = bytes, .ai_dst_len = bytes,
		.ai_src_addr = src, .ai_dst_addr = dst,
	};
	struct rdma_addrinfo *res = resolved(NULL, NULL, &hints);

	is_addr(res->ai_src_addr, res->ai_src_len, ct_ip(), 4711);
	is_addr(res->ai_dst_addr, res->ai_dst_len, ct_ip(), 7471);
	assert_int_equal(res->ai_family, dst->sa_family);
	assert_int_equal(res->ai_qp_type, IBV_QPT_RC);
	assert_int_equal(res->ai_port_space, RDMA_PS_TCP);
	rdma_freeaddrinfo(res);
}

/*
 * rdma_getaddrinfo: "Either node, service, or hints must be provided."
 * rdma_getaddrinfo: "or -1 on error (errno will be set to indicate the failure reason)"
 */
static void something_has_to_be_asked(void **state)
{
	struct rdma_addrinfo *res = NULL;

	ct_fails(rdma_getaddrinfo(NULL, NULL, NULL, &res), EINVAL);
	assert_null(res);
	rdma_freeaddrinfo(NULL);
}

int main(void)
{
	const struct CMUnitTest names[] = {
		cmocka_unit_test(a_node_is_where_to_connect),
		cmocka_unit_test(the_source_is_left_to_the_route),
		cmocka_unit_test(passive_it_is_where_to_listen),
		cmocka_unit_test(passive_without_a_node_it_is_the_wildcard),
		cmocka_unit_test(active_without_a_node_it_is_this_host),
		cmocka_unit_test(a_number_has_to_be_one),
		cmocka_unit_test(a_name_is_looked_up),
		cmocka_unit_test(a_service_is_a_number_or_a_name),
		cmocka_unit_test(services_that_there_are_not_are_unknown),
		cmocka_unit_test(type_and_port_space_follow_from_each_other),
		cmocka_unit_test(types_that_their_port_space_has_not_are_refused),
		cmocka_unit_test(the_family_has_to_be_that_of_the_node),
		cmocka_unit_test(other_families_are_refused),
		cmocka_unit_test(flags_that_nobody_knows_are_refused),
		cmocka_unit_test(there_are_no_routes_and_no_words_to_say),
		cmocka_unit_test(the_source_of_the_hints_is_taken_along),
		cmocka_unit_test(without_names_the_hints_are_the_answer),
		cmocka_unit_test(something_has_to_be_asked),
	};

	return ct_main(names);
}
