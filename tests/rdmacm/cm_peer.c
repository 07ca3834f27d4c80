/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One end of rdma_cm, which prints what it is told: each event with all that is in it, and nothing
 * that is another thing on another run. So the two ends of ours, of Linux's connection manager, and
 * one of each, have to print the same.
 *
 *   cm_peer server|client ADDRESS PORT [WORD[=NUMBER] ...]
 *
 * Both: ud (port space UDP), data=OCTETS (private data of connect, accept or reject), resources=,
 * depth=, rnr=, flow=, tos=, leave (the process ends once connected, and closes nothing), part
 * (disconnects once connected), timewait (waits for its end). Server: reject, ece (rejects its
 * options), drop (destroys the new id), vanish (the process ends, asked), deaf (it ends before it
 * hears), slow=MS (before it accepts). Client: hurry (ends as soon as it has asked), beside (asks
 * where nobody listens).
 */
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <rdma/rdma_cma.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { USAGE = 2, GRH_BYTES = 40, TEXT_BYTES = 64, DEADLINE_S = 150, WAY_US = 500000 };

static struct {
	unsigned ud, data, resources, depth, rnr, flow, tos, leave, part;
	unsigned timewait, reject, ece, drop, vanish, deaf, slow, hurry, beside;
} words = {.resources = 2, .depth = 3, .rnr = 5, .flow = 1};

static const struct word {
	const char *name;
	unsigned *value;
} known[] = {
	{"ud", &words.ud},
	{"data", &words.data},
	{"resources", &words.resources},
	{"depth", &words.depth},
	{"rnr", &words.rnr},
	{"flow", &words.flow},
	{"tos", &words.tos},
	{"leave", &words.leave},
	{"part", &words.part},
	{"timewait", &words.timewait},
	{"reject", &words.reject},
	{"ece", &words.ece},
	{"drop", &words.drop},
	{"vanish", &words.vanish},
	{"deaf", &words.deaf},
	{"slow", &words.slow},
	{"hurry", &words.hurry},
	{"beside", &words.beside},
};

static bool is_server;
static struct sockaddr *given;
static struct rdma_event_channel *channel;
static struct ibv_cq *cq;
static struct ibv_mr *mr;
static char text[GRH_BYTES + TEXT_BYTES];
static uint8_t private_data[256];
static const char *const said[] = {"from the client", "from the server"};

static void need(bool is_so, const char *what)
{
	if (is_so)
		return;
	printf("%s fails: %s\n", what, strerrorname_np(errno));
	exit(EXIT_FAILURE);
}

static void word_take(const char *text_given)
{
	size_t bytes = strcspn(text_given, "=");

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		if (strlen(known[i].name) != bytes || strncmp(known[i].name, text_given, bytes))
			continue;
		*known[i].value = 1;
		if (text_given[bytes])
			*known[i].value = (unsigned)atoi(text_given + bytes + 1);
		return;
	}
	fprintf(stderr, "cm_peer: %s?\n", text_given);
	exit(USAGE);
}

/* --- what is told --- */

static void data_print(const uint8_t *data, unsigned bytes)
{
	unsigned same = 0, zeros;

	while (same < bytes && data[same] && data[same] == private_data[same])
		same++;
	for (zeros = same; zeros < bytes && !data[zeros]; zeros++)
		;
	printf(", data %u%s", bytes, data ? "" : " at NULL");
	if (bytes)
		printf(" (%u said%s)", same, zeros == bytes ? "" : ", then others");
}

static void conn_print(const struct rdma_conn_param *conn)
{
	printf(", resources %u, depth %u, flow %u, retries %u, rnr %u, srq %u, %s",
	       conn->responder_resources, conn->initiator_depth, conn->flow_control,
	       conn->retry_count, conn->rnr_retry_count, conn->srq, conn->qp_num ? "QP" : "no QP");
	data_print(conn->private_data, conn->private_data_len);
}

static void ud_print(const struct rdma_ud_param *ud)
{
	printf(", %s, qkey %#x, hops %u, class %u, port %u", ud->qp_num ? "QP" : "no QP", ud->qkey,
	       ud->ah_attr.grh.hop_limit, ud->ah_attr.grh.traffic_class, ud->ah_attr.port_num);
	data_print(ud->private_data, ud->private_data_len);
}

static void event_print(const struct rdma_cm_event *event)
{
	printf("%s %d", rdma_event_str(event->event) + strlen("RDMA_CM_EVENT_"), event->status);
	switch (event->event) {
	case RDMA_CM_EVENT_CONNECT_REQUEST:
	case RDMA_CM_EVENT_ESTABLISHED:
	case RDMA_CM_EVENT_REJECTED:
	case RDMA_CM_EVENT_UNREACHABLE:
	case RDMA_CM_EVENT_DISCONNECTED:
		if (words.ud)
			ud_print(&event->param.ud);
		else
			conn_print(&event->param.conn);
		break;
	default:
		break;
	}
	printf("\n");
}

static void route_print(const struct rdma_route *route)
{
	const struct ibv_sa_path_rec *path = route->path_rec;

	/* Its lifetime is 18 in older kernels, 16 in newer ones. */
	printf("%d path, hops %u, class %u, mtu %u, reversible %u\n", route->num_paths,
	       path->hop_limit, path->traffic_class, path->mtu, path->reversible);
}

static void address_print(const char *whose, const struct sockaddr *addr)
{
	bool same = addr->sa_family == given->sa_family;

	if (same && addr->sa_family == AF_INET)
		same = !memcmp(&((const struct sockaddr_in *)addr)->sin_addr,
			       &((const struct sockaddr_in *)given)->sin_addr,
			       sizeof(struct in_addr));
	else if (same)
		same = !memcmp(&((const struct sockaddr_in6 *)addr)->sin6_addr,
			       &((const struct sockaddr_in6 *)given)->sin6_addr,
			       sizeof(struct in6_addr));
	printf("%s: %s\n", whose, same ? "the address given" : "another address");
}

/* Not the time that the QP waits, which follows from the lifetime. */
static void attr_print(struct rdma_cm_id *id, enum ibv_qp_state state)
{
	struct ibv_qp_attr attr = {.qp_state = state};
	int mask = 0;

	need(!rdma_init_qp_attr(id, &attr, &mask), "rdma_init_qp_attr");
	printf("state %d: mask %#x, access %#x, mtu %d, qkey %#x, ", state, (unsigned)mask,
	       attr.qp_access_flags, attr.path_mtu, attr.qkey);
	printf("depths %u %u, retries %u %u, timer %u\n", attr.max_rd_atomic,
	       attr.max_dest_rd_atomic, attr.retry_cnt, attr.rnr_retry, attr.min_rnr_timer);
	printf("way: global %u, hops %u, class %u, sl %u, port %u\n", attr.ah_attr.is_global,
	       attr.ah_attr.grh.hop_limit, attr.ah_attr.grh.traffic_class, attr.ah_attr.sl,
	       attr.ah_attr.port_num);
}

/* --- QPs and what goes through them --- */

static void qp_make(struct rdma_cm_id *id)
{
	struct ibv_qp_init_attr attr = {
		.cap = {.max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1},
		.qp_type = words.ud ? IBV_QPT_UD : IBV_QPT_RC,
		.sq_sig_all = 1,
	};
	struct ibv_sge sge;
	struct ibv_recv_wr recv = {.sg_list = &sge, .num_sge = 1}, *bad;

	cq = ibv_create_cq(id->verbs, 8, NULL, NULL, 0);
	need(cq, "ibv_create_cq");
	attr.send_cq = attr.recv_cq = cq;
	need(!rdma_create_qp(id, id->pd, &attr), "rdma_create_qp");
	mr = ibv_reg_mr(id->pd, text, sizeof(text), IBV_ACCESS_LOCAL_WRITE);
	need(mr, "ibv_reg_mr");
	sge = (struct ibv_sge){(uintptr_t)text, sizeof(text), mr->lkey};
	need(!ibv_post_recv(id->qp, &recv, &bad), "ibv_post_recv");
}

static void completion_await(const char *what)
{
	struct ibv_wc wc;
	int count;

	while (!(count = ibv_poll_cq(cq, 1, &wc)))
		;
	need(count == 1, "ibv_poll_cq");
	printf("%s: %s\n", what, ibv_wc_status_str(wc.status));
}

static void text_send(struct rdma_cm_id *id, const struct rdma_ud_param *ud)
{
	static char own[TEXT_BYTES];
	struct ibv_mr *own_mr = ibv_reg_mr(id->pd, own, sizeof(own), IBV_ACCESS_LOCAL_WRITE);
	struct ibv_sge sge = {(uintptr_t)own, sizeof(own), own_mr->lkey};
	struct ibv_send_wr send = {.opcode = IBV_WR_SEND, .sg_list = &sge, .num_sge = 1}, *bad;

	snprintf(own, sizeof(own), "%s", said[is_server]);
	if (ud) {
		struct ibv_ah_attr attr = ud->ah_attr;

		send.wr.ud.ah = ibv_create_ah(id->pd, &attr);
		need(send.wr.ud.ah, "ibv_create_ah");
		send.wr.ud.remote_qpn = ud->qp_num;
		send.wr.ud.remote_qkey = ud->qkey;
	}
	need(!ibv_post_send(id->qp, &send, &bad), "ibv_post_send");
	completion_await("sent");
	if (send.wr.ud.ah)
		ibv_destroy_ah(send.wr.ud.ah);
	ibv_dereg_mr(own_mr);
}

static void text_receive(void)
{
	completion_await("received");
	printf("%s\n", text + (words.ud ? GRH_BYTES : 0));
}

static void talk(struct rdma_cm_id *id)
{
	if (is_server)
		text_receive();
	text_send(id, NULL);
	if (!is_server)
		text_receive();
}

static void qp_drop(struct rdma_cm_id *id)
{
	if (!id->qp)
		return;
	rdma_destroy_qp(id);
	ibv_dereg_mr(mr);
	ibv_destroy_cq(cq);
}

/* --- both ends --- */

static struct rdma_conn_param param(void)
{
	return (struct rdma_conn_param){
		.private_data = private_data,
		.private_data_len = (uint8_t)words.data,
		.responder_resources = (uint8_t)words.resources,
		.initiator_depth = (uint8_t)words.depth,
		.flow_control = (uint8_t)words.flow,
		.retry_count = 6,
		.rnr_retry_count = (uint8_t)words.rnr,
	};
}

static struct sockaddr *address_of(const char *name, const char *port)
{
	struct addrinfo *found;

	char beside[16];

	snprintf(beside, sizeof(beside), "%d", atoi(port) + (words.beside ? 1000 : 0));
	need(!getaddrinfo(name, beside, NULL, &found), "getaddrinfo");
	return found->ai_addr;
}

/* As kill -9 has it. What was asked is on its way. */
static void vanish(void)
{
	printf("leaves\n");
	usleep(WAY_US);
	_exit(0);
}

/* Whether that was its last event. */
static bool common(struct rdma_cm_id *id, enum rdma_cm_event_type event)
{
	switch (event) {
	case RDMA_CM_EVENT_ESTABLISHED:
		for (int state = IBV_QPS_INIT; state <= IBV_QPS_RTS; state++)
			attr_print(id, (enum ibv_qp_state)state);
		talk(id);
		if (words.leave)
			_exit(0);
		if (words.part)
			need(!rdma_disconnect(id), "rdma_disconnect");
		return false;
	case RDMA_CM_EVENT_DISCONNECTED:
		need(!rdma_disconnect(id), "rdma_disconnect again");
		return !words.timewait;
	default:
		return true;
	}
}

/* --- the server --- */

/* Whether an answer of the client's is awaited. */
static bool answer(struct rdma_cm_id *id)
{
	struct rdma_conn_param conn = param();

	if (words.ece) {
		need(!rdma_reject_ece(id, private_data, (uint8_t)words.data), "rdma_reject_ece");
		return false;
	}
	if (words.reject) {
		need(!rdma_reject(id, private_data, (uint8_t)words.data), "rdma_reject");
		return false;
	}
	if (words.drop)
		return false;
	qp_make(id);
	usleep(words.slow * 1000);
	conn.qp_num = id->qp->qp_num;
	if (rdma_accept(id, &conn)) {
		printf("rdma_accept: %s\n", strerrorname_np(errno));
		return false;
	}
	if (words.ud)
		text_receive();
	return !words.ud;
}

static void serve(void)
{
	struct rdma_cm_id *listener, *id;
	struct rdma_cm_event *event;
	bool more;

	need(!rdma_create_id(channel, &listener, NULL, words.ud ? RDMA_PS_UDP : RDMA_PS_TCP),
	     "rdma_create_id");
	need(!rdma_bind_addr(listener, given), "rdma_bind_addr");
	need(!rdma_listen(listener, 4), "rdma_listen");
	printf("listens\n");
	if (words.deaf) {
		struct pollfd asked = {.fd = channel->fd, .events = POLLIN};

		poll(&asked, 1, -1);
		vanish();
	}
	need(!rdma_get_cm_event(channel, &event), "rdma_get_cm_event");
	event_print(event);
	if (words.vanish)
		vanish();
	id = event->id;
	printf("ports: %s, %s\n",
	       rdma_get_src_port(id) == rdma_get_src_port(listener) ? "the listener's" : "another",
	       rdma_get_dst_port(id) ? "the client's" : "none");
	address_print("here", rdma_get_local_addr(id));
	rdma_ack_cm_event(event);
	more = answer(id);
	while (more) {
		need(!rdma_get_cm_event(channel, &event), "rdma_get_cm_event");
		event_print(event);
		more = !common(id, event->event);
		rdma_ack_cm_event(event);
	}
	qp_drop(id);
	rdma_destroy_id(id);
	rdma_destroy_id(listener);
}

/* --- the client --- */

static void ask(struct rdma_cm_id *id)
{
	struct rdma_conn_param conn = param();

	route_print(&id->route);
	address_print("to", rdma_get_peer_addr(id));
	qp_make(id);
	need(!rdma_connect(id, &conn), "rdma_connect");
	if (words.hurry)
		vanish();
}

/* Whether that was the last event. */
static bool client_event(struct rdma_cm_id *id, const struct rdma_cm_event *event)
{
	switch (event->event) {
	case RDMA_CM_EVENT_ADDR_RESOLVED:
		need(!rdma_resolve_route(id, 5000), "rdma_resolve_route");
		return false;
	case RDMA_CM_EVENT_ROUTE_RESOLVED:
		ask(id);
		return false;
	case RDMA_CM_EVENT_ESTABLISHED:
		if (!words.ud)
			return common(id, event->event);
		text_send(id, &event->param.ud);
		return true;
	default:
		return common(id, event->event);
	}
}

static void call(void)
{
	struct rdma_cm_id *id;
	struct rdma_cm_event *event;
	uint8_t tos = (uint8_t)words.tos;
	bool over = false;

	need(!rdma_create_id(channel, &id, NULL, words.ud ? RDMA_PS_UDP : RDMA_PS_TCP),
	     "rdma_create_id");
	if (tos)
		need(!rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, &tos, sizeof(tos)),
		     "rdma_set_option");
	need(!rdma_resolve_addr(id, NULL, given, 5000), "rdma_resolve_addr");
	while (!over) {
		need(!rdma_get_cm_event(channel, &event), "rdma_get_cm_event");
		event_print(event);
		over = client_event(id, event);
		rdma_ack_cm_event(event);
	}
	qp_drop(id);
	rdma_destroy_id(id);
}

int main(int argc, char **argv)
{
	if (argc < 4)
		return USAGE;
	is_server = strcmp(argv[1], "server") == 0;
	for (int i = 4; i < argc; i++)
		word_take(argv[i]);
	for (unsigned i = 0; i < sizeof(private_data); i++)
		private_data[i] = (uint8_t)(i + 1);
	setvbuf(stdout, NULL, _IOLBF, 0);
	alarm(DEADLINE_S);
	given = address_of(argv[2], argv[3]);
	channel = rdma_create_event_channel();
	need(channel, "rdma_create_event_channel");
	if (is_server)
		serve();
	else
		call();
	rdma_destroy_event_channel(channel);
	printf("done\n");
	return 0;
}
