/* SPDX-License-Identifier: BSD-2-Clause */
#include "lib.h"

#include <linux/if_packet.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/prng.h"
#include "link/udp_one.h"
#include "netns.h"
#include "skip.h"
#include "wire/cm_ip.h"
#include "wire/mad_frame.h"

/*
 * Strangers: processes that send messages of connection managers from sockets of their own, to port
 * 4791. One has seen all that server and client have said, and forges what follows, with one thing
 * wrong each time; others ask without end.
 */

enum {
	UDP_BYTES = 8,
	IPV6_BYTES = 40,
	GUESSES = 200,
	FLOOD = 20000,
	BACKLOG = 16,
	NOBODY_S_PORT = 47110,
	HUB_GROWS_KB = 8192, /* at most: some thousand messages that wait for a process */
	WE_GROW_KB = 16384,
};

static const char *other_ip(void)
{
	return getenv("CT_IPV6") ? "fd00::17" : CT_OTHER_IP;
}

static void gid_of(const char *ip, uint8_t gid[VB_GID_BYTES])
{
	memset(gid, 0, VB_GID_BYTES);
	if (inet_pton(AF_INET6, ip, gid) == 1)
		return;
	gid[10] = gid[11] = 0xff;
	assert_int_equal(inet_pton(AF_INET, ip, gid + 12), 1);
}

/* --- sending --- */

/* By which a stranger sends: a socket at that address. */
struct mouth {
	int fd;
	struct vb_path path;
};

static struct mouth mouth_open(const char *from)
{
	struct sockaddr_storage bound;
	struct sockaddr *addr = ct_addr_of(from, 0);
	socklen_t bytes = addr->sa_family == AF_INET ? sizeof(struct sockaddr_in)
						     : sizeof(struct sockaddr_in6);
	struct mouth mouth = {.fd = socket(addr->sa_family, SOCK_DGRAM, 0)};

	if (mouth.fd < 0 || bind(mouth.fd, addr, bytes) ||
	    getsockname(mouth.fd, (struct sockaddr *)&bound, &bytes))
		_exit(1);
	mouth.path.sport = ntohs(((struct sockaddr_in *)&bound)->sin_port);
	mouth.path.hop_limit = 64;
	gid_of(from, mouth.path.src);
	gid_of(ct_ip(), mouth.path.dst);
	return mouth;
}

static void utter(const struct mouth *mouth, const struct vb_cm_msg *msg)
{
	uint8_t mad[VB_MAD_BYTES], frame[VB_MAD_FRAME_BYTES];

	vb_cm_emit(msg, mad);
	vb_mad_frame_emit(frame, &mouth->path, mad, 0);
	while (vb_udp_one_send(mouth->fd, &mouth->path, frame, sizeof(frame)) == ENOBUFS)
		usleep(100);
}

/* A request to connect, to that port, from somebody who is made up. */
static void ask(const struct mouth *mouth, uint16_t port, uint64_t *rng)
{
	const struct vb_cm_ip ip = {.ipv4 = vb_gid_is_ipv4(mouth->path.src), .sport = 1};
	struct vb_cm_ip filled = ip;
	uint8_t words[VB_CM_IP_BYTES];
	struct vb_cm_msg msg = {
		.attr = VB_CM_REQ,
		.transaction_id = vb_prng_next(rng),
		.local_comm_id = (uint32_t)vb_prng_next(rng),
		.req = {
			.service_id = vb_cm_service_id(VB_CM_PS_TCP, port),
			.local_ca_guid = vb_prng_next(rng),
			.local_qpn = (uint32_t)vb_prng_next(rng) & 0xffffff,
			.path_mtu = IBV_MTU_1024,
			.local_cm_response_timeout = 20,
			.max_cm_retries = 15,
			.primary.local_ack_timeout = 17,
			.primary.hop_limit = 64,
		},
		.private_data = words,
		.private_bytes = sizeof(words),
	};

	memcpy(filled.src, mouth->path.src, VB_GID_BYTES);
	memcpy(filled.dst, mouth->path.dst, VB_GID_BYTES);
	vb_cm_ip_emit(&filled, words);
	memcpy(msg.req.primary.local_gid, mouth->path.src, VB_GID_BYTES);
	memcpy(msg.req.primary.remote_gid, mouth->path.dst, VB_GID_BYTES);
	utter(mouth, &msg);
}

/* --- listening --- */

/* The MAD of communication management in what has come, or NULL. */
static const uint8_t *mad_of(const uint8_t *packet, size_t bytes)
{
	size_t header = packet[0] >> 4 == 6 ? IPV6_BYTES : (size_t)(packet[0] & 15) * 4;

	if (bytes != header + UDP_BYTES + VB_MAD_FRAME_BYTES)
		return NULL;
	return vb_mad_frame_parse(packet + header + UDP_BYTES, VB_MAD_FRAME_BYTES);
}

/* The next message of that kind that a connection manager has sent to the id; 0: to any. */
static struct vb_cm_msg hear(int fd, enum vb_cm_attr attr, uint32_t to)
{
	static uint8_t packet[2048];

	for (;;) {
		struct sockaddr_ll from;
		socklen_t from_bytes = sizeof(from);
		ssize_t bytes = recvfrom(fd, packet, sizeof(packet), 0, (struct sockaddr *)&from,
					 &from_bytes);
		const uint8_t *mad = bytes > 0 ? mad_of(packet, (size_t)bytes) : NULL;
		struct vb_cm_msg msg;

		if (mad && from.sll_pkttype != PACKET_OUTGOING && vb_cm_parse(&msg, mad) &&
		    msg.attr == attr && (!to || msg.remote_comm_id == to))
			return msg;
	}
}

/* --- forging --- */

/* Whom a forgery is for, and what is known of the connection by now. */
struct mark {
	uint32_t to, from; /* communication ids */
	uint32_t qpn;	   /* of whom it is for */
	uint64_t tid;	   /* of the REQ */
};

static struct vb_cm_msg forged(const struct mark *mark, enum vb_cm_attr attr, uint64_t *rng)
{
	struct vb_cm_msg msg = {
		.attr = attr,
		.transaction_id = mark->tid,
		.local_comm_id = mark->from,
		.remote_comm_id = mark->to,
	};

	switch (attr) {
	case VB_CM_REP:
		msg.rep.local_qpn = (uint32_t)vb_prng_next(rng) & 0xffffff;
		msg.rep.local_ca_guid = vb_prng_next(rng);
		break;
	case VB_CM_REJ:
		msg.rej.reason = VB_CM_REJ_CONSUMER_DEFINED;
		msg.rej.message_rejected = (uint8_t)(vb_prng_next(rng) % 3);
		break;
	case VB_CM_DREQ:
		msg.dreq.remote_qpn = mark->qpn;
		break;
	case VB_CM_LAP:
		msg.lap.remote_qpn = mark->qpn;
		break;
	default:
		break;
	}
	return msg;
}

/* With one thing wrong, or, for the last ones, with all but the address guessed. */
static void forge(const struct mouth *peer, const struct mouth *other, const struct mark *mark,
		  uint64_t *rng)
{
	static const enum vb_cm_attr attrs[] = {
		VB_CM_REP, VB_CM_REJ,  VB_CM_RTU, VB_CM_MRA,
		VB_CM_LAP, VB_CM_DREQ, VB_CM_APR, VB_CM_DREP,
	};

	for (unsigned i = 0; i < sizeof(attrs) / sizeof(*attrs); i++) {
		bool own_tid = attrs[i] == VB_CM_DREQ || attrs[i] == VB_CM_LAP;
		struct vb_cm_msg msg = forged(mark, attrs[i], rng);

		utter(other, &msg);
		if (attrs[i] == VB_CM_DREQ)
			msg.dreq.remote_qpn ^= 1;
		else if (own_tid)
			msg.lap.remote_qpn ^= 1;
		else
			msg.transaction_id ^= 1ull << vb_prng_next(rng) % 64;
		utter(peer, &msg);
		msg = forged(mark, attrs[i], rng);
		msg.remote_comm_id ^= 1u << vb_prng_next(rng) % 22;
		utter(peer, &msg);
	}
	for (unsigned i = 0; i < GUESSES; i++) {
		struct mark guess = {
			.to = (mark->to & ~0x3fffffu) | (vb_prng_next(rng) & 0x3fffffu),
			.from = (uint32_t)vb_prng_next(rng),
			.qpn = (uint32_t)vb_prng_next(rng) & 0xffffff,
			.tid = vb_prng_next(rng),
		};
		struct vb_cm_msg msg = forged(&guess, attrs[i % 8], rng);

		utter(peer, &msg);
	}
}

/* --- the stranger: a process --- */

struct stranger {
	pid_t pid;
	int fd;
};

static struct stranger stranger_begin(void (*act)(int fd, uint16_t port), uint16_t port)
{
	struct stranger stranger;
	int fds[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds), 0);
	fflush(stdout);
	stranger = (struct stranger){.pid = fork(), .fd = fds[0]};
	assert_true(stranger.pid >= 0);
	if (!stranger.pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		close(fds[0]);
		act(fds[1], port);
		_exit(0);
	}
	close(fds[1]);
	return stranger;
}

static void signal_to(int fd)
{
	if (write(fd, "", 1) != 1)
		_exit(1);
}

static void wait_for(int fd)
{
	char octet;

	if (read(fd, &octet, 1) != 1)
		_exit(1);
}

static void stranger_end(struct stranger *stranger)
{
	int status;

	assert_int_equal(waitpid(stranger->pid, &status, 0), stranger->pid);
	assert_int_equal(status, 0);
	close(stranger->fd);
}

/*
 * Once what was asked is known, and once all is. Behind the last forgery it asks for itself: when
 * that has come, all has.
 */
static void hears_and_forges(int fd, uint16_t port)
{
	struct mouth peer = mouth_open(ct_ip()), other = mouth_open(other_ip());
	struct mark client, server;
	uint64_t rng = 4711;
	int ear = ct_ear();
	struct vb_cm_msg msg;

	if (ear < 0)
		_exit(1);
	signal_to(fd);
	msg = hear(ear, VB_CM_REQ, 0);
	client = (struct mark){.to = msg.local_comm_id, .from = 4711, .qpn = msg.req.local_qpn,
			       .tid = msg.transaction_id};
	wait_for(fd);
	forge(&peer, &other, &client, &rng);
	/* The old one is full of forgeries. */
	close(ear);
	ear = ct_ear();
	ask(&peer, port, &rng);
	msg = hear(ear, VB_CM_REP, client.to);
	client.from = msg.local_comm_id;
	server = (struct mark){.to = msg.local_comm_id, .from = client.to,
			       .qpn = msg.rep.local_qpn, .tid = client.tid};
	wait_for(fd);
	forge(&peer, &other, &client, &rng);
	forge(&peer, &other, &server, &rng);
	ask(&peer, port, &rng);
}

/* What the stranger has asked at last, by itself, for a listener of its own. */
static void pass_marker(struct rdma_event_channel *channel)
{
	struct rdma_cm_event *event = ct_event(channel, RDMA_CM_EVENT_CONNECT_REQUEST);
	struct rdma_cm_id *id = event->id;

	ct_works(rdma_ack_cm_event(event));
	ct_works(rdma_destroy_id(id));
}

static bool may_hear(void)
{
	int fd = ct_ear();

	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

static void forged_messages_change_nothing(void **state)
{
	struct rdma_event_channel *at_marker = ct_channel();
	struct rdma_cm_id *marker = ct_listener(at_marker, RDMA_PS_TCP);
	struct stranger stranger;
	struct rdma_cm_event *request;
	struct ct_pair pair;

	if (!may_hear())
		SKIP("no packet socket: %s", strerror(errno));
	stranger = stranger_begin(hears_and_forges, ct_src_port(marker));
	wait_for(stranger.fd);
	request = ct_pair_ask(&pair, RDMA_PS_TCP, NULL);
	signal_to(stranger.fd);
	pass_marker(at_marker);
	assert_false(ct_readable(pair.at_client->fd, 0));
	assert_false(ct_readable(pair.at_server->fd, 0));
	ct_works(rdma_ack_cm_event(request));
	ct_pair_accept(&pair, NULL);
	signal_to(stranger.fd);
	pass_marker(at_marker);
	assert_false(ct_readable(pair.at_client->fd, 0));
	assert_false(ct_readable(pair.at_server->fd, 0));
	assert_int_equal(ct_qp_state(pair.client), IBV_QPS_RTS);
	assert_int_equal(ct_qp_state(pair.server), IBV_QPS_RTS);
	ct_exchange(pair.client, pair.server);
	ct_exchange(pair.server, pair.client);
	stranger_end(&stranger);
	ct_pair_part(&pair);
	ct_pair_close(&pair);
	ct_works(rdma_destroy_id(marker));
	rdma_destroy_event_channel(at_marker);
}

/* --- floods --- */

static void floods(int fd, uint16_t port)
{
	struct mouth mouths[2] = {mouth_open(ct_ip()), mouth_open(other_ip())};
	uint64_t rng = 4712;

	signal_to(fd);
	for (unsigned i = 0; i < FLOOD; i++)
		ask(&mouths[i % 2], port, &rng);
	signal_to(fd);
}

static unsigned long resident_kb(const char *pid)
{
	char path[64], line[128];
	unsigned long kb = 0;
	FILE *status;

	snprintf(path, sizeof(path), "/proc/%s/status", pid);
	status = fopen(path, "r");
	assert_non_null(status);
	while (fgets(line, sizeof(line), status))
		sscanf(line, "VmRSS: %lu", &kb);
	fclose(status);
	return kb;
}

static const char *hub_pid(void)
{
	static char pid[16];
	char said[4096], *at;

	ct_verbatim("hub status", said, sizeof(said));
	at = strstr(said, "hub ");
	assert_non_null(at);
	assert_int_equal(sscanf(at, "hub pid %15[0-9]", pid), 1);
	return pid;
}

/* Meanwhile, others are served; and neither the hub nor we keep what was asked. */
static void serve_during_flood(uint16_t port)
{
	unsigned long hub_kb = resident_kb(hub_pid()), own_kb = resident_kb("self");
	struct stranger stranger = stranger_begin(floods, port);
	struct ct_pair pair;

	wait_for(stranger.fd);
	ct_pair_open(&pair);
	ct_exchange(pair.client, pair.server);
	wait_for(stranger.fd);
	stranger_end(&stranger);
	ct_pair_part(&pair);
	ct_pair_close(&pair);
	ct_pair_open(&pair);
	ct_pair_close(&pair);
	assert_in_range(resident_kb(hub_pid()), 0, hub_kb + HUB_GROWS_KB);
	assert_in_range(resident_kb("self"), 0, own_kb + WE_GROW_KB);
}

/* A listener whose application does not fetch has as many as its backlog says, and no more. */
static void a_flood_waits_in_no_more_than_the_backlog(void **state)
{
	struct rdma_event_channel *channel = ct_channel();
	struct rdma_cm_id *listener = ct_id(channel, RDMA_PS_TCP);
	unsigned waiting = 0;

	ct_works(rdma_bind_addr(listener, ct_addr(0)));
	ct_works(rdma_listen(listener, BACKLOG));
	serve_during_flood(ct_src_port(listener));
	for (struct rdma_cm_event *event; ct_readable(channel->fd, 0); waiting++) {
		struct rdma_cm_id *id;

		event = ct_event(channel, RDMA_CM_EVENT_CONNECT_REQUEST);
		id = event->id;
		ct_works(rdma_ack_cm_event(event));
		ct_works(rdma_destroy_id(id));
	}
	assert_int_equal(waiting, BACKLOG);
	ct_works(rdma_destroy_id(listener));
	rdma_destroy_event_channel(channel);
}

static void a_flood_for_nobody_is_answered(void **state)
{
	serve_during_flood(NOBODY_S_PORT);
}

static int begin(void **state)
{
	return !getenv("CT_IPV6") || netns_ipv6_address_add("lo", "fd00::17") ? 0 : -1;
}

int main(void)
{
	const struct CMUnitTest floods[] = {
		cmocka_unit_test_setup(a_flood_waits_in_no_more_than_the_backlog, begin),
		cmocka_unit_test(a_flood_for_nobody_is_answered),
	};
	const struct CMUnitTest all[] = {
		floods[0], floods[1],
		cmocka_unit_test(forged_messages_change_nothing),
	};
	const char *link = getenv("VERBATIM_LINK");

	/* The best forger has heard what is said, and only a wire can be overheard. */
	return link && strcmp(link, "udp") == 0 ? ct_main(all) : ct_main(floods);
}
