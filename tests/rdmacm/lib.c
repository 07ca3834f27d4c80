/* SPDX-License-Identifier: BSD-2-Clause */
#include "lib.h"

#include <limits.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <poll.h>
#include <unistd.h>

#include "netns.h"

/* --- running --- */

int ct_run(const char *name, const struct CMUnitTest *tests, size_t count)
{
	cmocka_set_test_filter(getenv("CT_TEST"));
	if (netns_enter() && netns_address_add("lo:1", CT_OTHER_IP))
		return _cmocka_run_group_tests(name, tests, count, NULL, NULL);
	printf("1..%zu\n", count);
	for (size_t i = 0; i < count; i++)
		printf("ok %zu - %s # SKIP " NO_NETWORK_NAMESPACE "\n", i + 1, tests[i].name);
	return 0;
}

/* The command is BUILD/verbatim, and we are BUILD/tests/rdmacm/TEST. */
void ct_verbatim(const char *args, char *said, size_t bytes)
{
	char command[PATH_MAX + 64], self[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
	size_t length = 0, got;
	FILE *output;

	assert_true(n > 0);
	self[n] = 0;
	for (unsigned up = 0; up < 3; up++)
		*strrchr(self, '/') = 0;
	snprintf(command, sizeof(command), "%s/verbatim %s 2>/dev/null%s", self, args,
		 said ? "" : " >/dev/null");
	output = popen(command, "r");
	assert_non_null(output);
	while (said && (got = fread(said + length, 1, bytes - 1 - length, output)) > 0)
		length += got;
	if (said)
		said[length] = 0;
	assert_int_equal(pclose(output), 0);
}

int ct_ear(void)
{
	struct sockaddr_ll lo = {
		.sll_family = AF_PACKET,
		.sll_protocol = htons(getenv("CT_IPV6") ? ETH_P_IPV6 : ETH_P_IP),
		.sll_ifindex = (int)if_nametoindex("lo"),
	};
	int fd = socket(AF_PACKET, SOCK_DGRAM, lo.sll_protocol);

	if (fd >= 0 && bind(fd, (struct sockaddr *)&lo, sizeof(lo))) {
		close(fd);
		fd = -1;
	}
	return fd;
}

/* --- addresses --- */

struct sockaddr *ct_addr_of(const char *ip, uint16_t port)
{
	static struct sockaddr_storage places[4];
	static unsigned next;
	struct sockaddr_storage *place = &places[next++ % 4];
	struct sockaddr_in6 *in6 = (void *)place;
	struct sockaddr_in *in = (void *)place;

	memset(place, 0, sizeof(*place));
	if (inet_pton(AF_INET, ip, &in->sin_addr) == 1) {
		in->sin_family = AF_INET;
		in->sin_port = htons(port);
	} else {
		memset(place, 0, sizeof(*place));
		assert_int_equal(inet_pton(AF_INET6, ip, &in6->sin6_addr), 1);
		in6->sin6_family = AF_INET6;
		in6->sin6_port = htons(port);
	}
	return (struct sockaddr *)place;
}

const char *ct_ip(void)
{
	return getenv("CT_IPV6") ? "::1" : "127.0.0.1";
}

struct sockaddr *ct_addr(uint16_t port)
{
	return ct_addr_of(ct_ip(), port);
}

struct sockaddr *ct_any(uint16_t port)
{
	return ct_addr_of(getenv("CT_IPV6") ? "::" : "0.0.0.0", port);
}

uint16_t ct_src_port(struct rdma_cm_id *id)
{
	return ntohs(rdma_get_src_port(id));
}

/* --- events --- */

struct rdma_event_channel *ct_channel(void)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();

	assert_non_null(channel);
	return channel;
}

bool ct_readable(int fd, int ms)
{
	struct pollfd poll_fd = { .fd = fd, .events = POLLIN };

	return poll(&poll_fd, 1, ms) == 1;
}

struct rdma_cm_event *ct_event(struct rdma_event_channel *channel, enum rdma_cm_event_type type)
{
	struct rdma_cm_event *event;

	if (!ct_readable(channel->fd, CT_WAIT_MS))
		fail_msg("%s does not come", rdma_event_str(type));
	ct_works(rdma_get_cm_event(channel, &event));
	assert_string_equal(rdma_event_str(event->event), rdma_event_str(type));
	return event;
}

int ct_pass(struct rdma_event_channel *channel, enum rdma_cm_event_type type)
{
	struct rdma_cm_event *event = ct_event(channel, type);
	int status = event->status;

	ct_works(rdma_ack_cm_event(event));
	return status;
}

void ct_no_event(struct rdma_event_channel *channel)
{
	assert_false(ct_readable(channel->fd, CT_QUIET_MS));
}

/* --- ids --- */

struct rdma_cm_id *ct_id(struct rdma_event_channel *channel, enum rdma_port_space ps)
{
	struct rdma_cm_id *id;

	ct_works(rdma_create_id(channel, &id, NULL, ps));
	return id;
}

struct rdma_cm_id *ct_listener(struct rdma_event_channel *channel, enum rdma_port_space ps)
{
	struct rdma_cm_id *id = ct_id(channel, ps);

	ct_works(rdma_bind_addr(id, ct_addr(0)));
	ct_works(rdma_listen(id, 0));
	return id;
}

struct rdma_cm_id *ct_client(struct rdma_event_channel *channel, enum rdma_port_space ps,
			     uint16_t port)
{
	struct rdma_cm_id *id = ct_id(channel, ps);

	ct_works(rdma_resolve_addr(id, NULL, ct_addr(port), CT_RESOLVE_MS));
	if (channel)
		assert_int_equal(ct_pass(channel, RDMA_CM_EVENT_ADDR_RESOLVED), 0);
	ct_works(rdma_resolve_route(id, CT_RESOLVE_MS));
	if (channel)
		assert_int_equal(ct_pass(channel, RDMA_CM_EVENT_ROUTE_RESOLVED), 0);
	return id;
}

struct ibv_qp_init_attr ct_qp_attr(void)
{
	return (struct ibv_qp_init_attr){
		.cap = { .max_send_wr = 8, .max_recv_wr = 8, .max_send_sge = 1,
			 .max_recv_sge = 1, .max_inline_data = 16 },
		.sq_sig_all = 1,
		.qp_type = IBV_QPT_RC,
	};
}

void ct_qp(struct rdma_cm_id *id)
{
	struct ibv_qp_init_attr attr = ct_qp_attr();

	attr.qp_type = id->qp_type;
	ct_works(rdma_create_qp(id, NULL, &attr));
}

enum ibv_qp_state ct_qp_state(struct rdma_cm_id *id)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	ct_works(ibv_query_qp(id->qp, &attr, IBV_QP_STATE, &init));
	return attr.qp_state;
}

/* --- connections --- */

struct rdma_cm_event *ct_pair_ask(struct ct_pair *pair, enum rdma_port_space ps,
				  struct rdma_conn_param *param)
{
	struct rdma_cm_event *event;

	pair->at_server = ct_channel();
	pair->at_client = ct_channel();
	pair->listener = ct_listener(pair->at_server, ps);
	pair->client = ct_client(pair->at_client, ps, ct_src_port(pair->listener));
	ct_qp(pair->client);
	ct_works(rdma_connect(pair->client, param));
	event = ct_event(pair->at_server, RDMA_CM_EVENT_CONNECT_REQUEST);
	pair->server = event->id;
	return event;
}

void ct_pair_accept(struct ct_pair *pair, struct rdma_conn_param *param)
{
	ct_qp(pair->server);
	ct_works(rdma_accept(pair->server, param));
	ct_pass(pair->at_client, RDMA_CM_EVENT_ESTABLISHED);
	ct_pass(pair->at_server, RDMA_CM_EVENT_ESTABLISHED);
}

void ct_pair_open(struct ct_pair *pair)
{
	ct_works(rdma_ack_cm_event(ct_pair_ask(pair, RDMA_PS_TCP, NULL)));
	ct_pair_accept(pair, NULL);
}

void ct_pair_part(struct ct_pair *pair)
{
	ct_works(rdma_disconnect(pair->client));
	ct_pass(pair->at_server, RDMA_CM_EVENT_DISCONNECTED);
	ct_works(rdma_disconnect(pair->server));
	ct_pass(pair->at_client, RDMA_CM_EVENT_DISCONNECTED);
}

static void end_close(struct rdma_cm_id *id)
{
	if (!id)
		return;
	if (id->qp)
		rdma_destroy_qp(id);
	ct_works(rdma_destroy_id(id));
}

void ct_pair_close(struct ct_pair *pair)
{
	end_close(pair->client);
	end_close(pair->server);
	end_close(pair->listener);
	rdma_destroy_event_channel(pair->at_client);
	rdma_destroy_event_channel(pair->at_server);
}

void ct_exchange(struct rdma_cm_id *from, struct rdma_cm_id *to)
{
	static uint8_t here[16];
	struct ibv_mr *mr = rdma_reg_msgs(to, here, sizeof(here));
	struct ibv_wc wc;

	assert_non_null(mr);
	memset(here, 0, sizeof(here));
	ct_works(rdma_post_recv(to, NULL, here, sizeof(here), mr));
	ct_works(rdma_post_send(from, NULL, (void *)"good morning", 13, NULL, IBV_SEND_INLINE));
	assert_int_equal(rdma_get_send_comp(from, &wc), 1);
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	assert_int_equal(rdma_get_recv_comp(to, &wc), 1);
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	assert_string_equal((char *)here, "good morning");
	ct_works(rdma_dereg_mr(mr));
}
