/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Ethernet frames per second from one process to another, each on a core of its own:
 *
 *   frames CORE CORE OCTETS [INTERFACE INTERFACE]
 *
 * Prints millions per second, medians of alternating windows: "verbs", RAW_PACKET QPs; "packet",
 * packet sockets (packet(7), sendmmsg and recvmmsg) on the two interfaces, which are the ends of a
 * cable (default: both `lo`); "ring", a copy into shared memory and one out of it, slot by slot,
 * and nothing else.
 */
#include <arpa/inet.h>
#include <infiniband/verbs.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>

#include "bench.h"

enum {
	BATCH = 32,
	DEPTH = 1024,
	FRAME_MAX = 2048,
	SLOTS = 256,
	WINDOWS = 7,
	WINDOW_US = 50000,
	ETHERTYPE = 0x88b5, /* for experiments */
};

enum way { VERBS, PACKET, RING, WAYS };

static const char *const names[WAYS] = { "verbs", "packet", "ring" };

struct slot {
	_Atomic uint64_t seq;
	uint8_t octets[FRAME_MAX - 8];
} __attribute__((aligned(64)));

static struct field {
	_Atomic int way; /* the way being measured; -1: the end */
	_Atomic bool ready;
	_Atomic uint64_t got __attribute__((aligned(LINE_BYTES)));
	_Atomic uint64_t taken __attribute__((aligned(LINE_BYTES)));
	struct slot slot[SLOTS] __attribute__((aligned(LINE_BYTES)));
} *field;

static const uint8_t here[6] = { 2, 0x76, 0x62, 0, 0, 1 }, there[6] = { 2, 0x76, 0x62, 0, 0, 2 };
static uint32_t octets;
static uint8_t frame[FRAME_MAX];

/* --- verbs --- */

static struct ibv_qp *qp;
static struct ibv_cq *cq;
static struct ibv_mr *mr;
static uint8_t *buffers;

static void verbs_open(void)
{
	struct ibv_qp_init_attr init = {
		.cap = { .max_send_wr = DEPTH, .max_recv_wr = DEPTH, .max_send_sge = 1,
			 .max_recv_sge = 1 },
		.qp_type = IBV_QPT_RAW_PACKET,
	};
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *context = list && list[0] ? ibv_open_device(list[0]) : NULL;
	struct ibv_pd *pd = context ? ibv_alloc_pd(context) : NULL;

	if (!pd)
		die("device");
	cq = ibv_create_cq(context, 2 * DEPTH, NULL, NULL, 0);
	buffers = aligned_alloc(4096, (size_t)DEPTH * FRAME_MAX);
	memset(buffers, 0, (size_t)DEPTH * FRAME_MAX);
	mr = ibv_reg_mr(pd, buffers, (size_t)DEPTH * FRAME_MAX, IBV_ACCESS_LOCAL_WRITE);
	init.send_cq = init.recv_cq = cq;
	qp = ibv_create_qp(pd, &init);
	if (!cq || !mr || !qp)
		die("queues");
	for (int state = IBV_QPS_INIT; state <= IBV_QPS_RTS; state++) {
		struct ibv_qp_attr attr = { .qp_state = (enum ibv_qp_state)state, .port_num = 1 };
		int mask = IBV_QP_STATE | (state == IBV_QPS_INIT ? IBV_QP_PORT : 0);

		if (ibv_modify_qp(qp, &attr, mask))
			die("ibv_modify_qp");
	}
}

static void verbs_receive(uint64_t i)
{
	struct ibv_sge sge = { (uintptr_t)buffers + i * FRAME_MAX, FRAME_MAX, mr->lkey };
	struct ibv_recv_wr wr = { .wr_id = i, .sg_list = &sge, .num_sge = 1 }, *bad;

	if (ibv_post_recv(qp, &wr, &bad))
		die("ibv_post_recv");
}

static void verbs_listen(void)
{
	struct {
		struct ibv_flow_attr attr;
		struct ibv_flow_spec_eth eth;
	} rule = {
		.attr = { .type = IBV_FLOW_ATTR_NORMAL, .size = sizeof(rule), .num_of_specs = 1,
			  .port = 1 },
		.eth = { .type = IBV_FLOW_SPEC_ETH, .size = sizeof(rule.eth) },
	};

	memcpy(rule.eth.val.dst_mac, there, sizeof(there));
	memset(rule.eth.mask.dst_mac, 0xff, sizeof(there));
	if (!ibv_create_flow(qp, &rule.attr))
		die("ibv_create_flow");
	for (uint64_t i = 0; i < DEPTH; i++)
		verbs_receive(i);
}

static unsigned verbs_take(void)
{
	struct ibv_wc wc[BATCH];
	int n = ibv_poll_cq(cq, BATCH, wc);

	for (int i = 0; i < n; i++)
		verbs_receive(wc[i].wr_id);
	return n > 0 ? (unsigned)n : 0;
}

/* Posts a list, of which the last is signaled. */
static void verbs_send(void)
{
	static unsigned under_way;
	struct ibv_sge sge = { (uintptr_t)buffers, octets, mr->lkey };
	struct ibv_send_wr wr[BATCH], *bad;
	struct ibv_wc wc[BATCH];

	memset(wr, 0, sizeof(wr));
	for (unsigned i = 0; i < BATCH; i++) {
		wr[i].next = i + 1 < BATCH ? &wr[i + 1] : NULL;
		wr[i].sg_list = &sge;
		wr[i].num_sge = 1;
		wr[i].opcode = IBV_WR_SEND;
	}
	wr[BATCH - 1].send_flags = IBV_SEND_SIGNALED;
	while (under_way + BATCH > DEPTH)
		under_way -= BATCH * (unsigned)ibv_poll_cq(cq, BATCH, wc);
	if (ibv_post_send(qp, wr, &bad))
		die("ibv_post_send");
	under_way += BATCH;
}

/* --- packet sockets --- */

static int packet_fd;

static void packet_open(const char *name)
{
	struct sockaddr_ll address = { .sll_family = AF_PACKET, .sll_protocol = htons(ETHERTYPE) };
	int buffer = 8 << 20, on = 1;

	address.sll_ifindex = (int)if_nametoindex(name);
	packet_fd = socket(AF_PACKET, SOCK_RAW, 0);
	if (packet_fd < 0)
		die("packet socket");
	setsockopt(packet_fd, SOL_SOCKET, SO_RCVBUF, &buffer, sizeof(buffer));
	setsockopt(packet_fd, SOL_PACKET, PACKET_IGNORE_OUTGOING, &on, sizeof(on));
	if (bind(packet_fd, (struct sockaddr *)&address, sizeof(address)))
		die(name);
}

static void batch_make(struct mmsghdr *messages, struct iovec *pieces, uint8_t *from, size_t step,
		       size_t bytes)
{
	memset(messages, 0, BATCH * sizeof(*messages));
	for (unsigned i = 0; i < BATCH; i++) {
		pieces[i] = (struct iovec){ from + i * step, bytes };
		messages[i].msg_hdr.msg_iov = &pieces[i];
		messages[i].msg_hdr.msg_iovlen = 1;
	}
}

static unsigned packet_take(void)
{
	static uint8_t room[BATCH][FRAME_MAX];
	struct mmsghdr messages[BATCH];
	struct iovec pieces[BATCH];
	int n;

	batch_make(messages, pieces, room[0], FRAME_MAX, FRAME_MAX);
	n = recvmmsg(packet_fd, messages, BATCH, MSG_DONTWAIT, NULL);
	return n > 0 ? (unsigned)n : 0;
}

static void packet_send(void)
{
	struct mmsghdr messages[BATCH];
	struct iovec pieces[BATCH];

	batch_make(messages, pieces, frame, 0, octets);
	sendmmsg(packet_fd, messages, BATCH, MSG_DONTWAIT);
}

/* --- a ring --- */

static unsigned ring_take(void)
{
	static uint64_t next;
	static uint8_t room[FRAME_MAX];
	unsigned n = 0;

	for (; n < BATCH; n++, next++) {
		struct slot *slot = &field->slot[next % SLOTS];

		if (atomic_load_explicit(&slot->seq, memory_order_acquire) != next + 1)
			break;
		memcpy(room, slot->octets, octets);
		__asm__ volatile("" ::"r"(room) : "memory");
	}
	atomic_store_explicit(&field->taken, next, memory_order_release);
	return n;
}

static void ring_send(void)
{
	static uint64_t next;

	for (unsigned i = 0; i < BATCH; i++, next++) {
		struct slot *slot = &field->slot[next % SLOTS];

		while (next - atomic_load_explicit(&field->taken, memory_order_acquire) >= SLOTS &&
		       atomic_load_explicit(&field->way, memory_order_relaxed) == RING)
			;
		if (next - atomic_load_explicit(&field->taken, memory_order_acquire) >= SLOTS)
			return;
		memcpy(slot->octets, frame, octets);
		atomic_store_explicit(&slot->seq, next + 1, memory_order_release);
	}
}

/* --- both sides --- */

static unsigned (*const takes[WAYS])(void) = { verbs_take, packet_take, ring_take };
static void (*const sends[WAYS])(void) = { verbs_send, packet_send, ring_send };

static void receiver(const char *interface)
{
	int way;

	packet_open(interface);
	verbs_open();
	verbs_listen();
	atomic_store(&field->ready, true);
	while ((way = atomic_load(&field->way)) >= 0) {
		unsigned n = takes[way]();

		/* Late frames of another way do not count. */
		if (n)
			atomic_fetch_add(&field->got, n);
	}
}

static double window(enum way way)
{
	uint64_t from_ns, from, end_ns;

	atomic_store(&field->way, way);
	end_ns = now_ns() + WINDOW_US * 200ull; /* warm-up before the count */
	while (now_ns() < end_ns)
		sends[way]();
	from = atomic_load(&field->got);
	from_ns = now_ns();
	while (now_ns() < from_ns + WINDOW_US * 1000ull)
		sends[way]();
	return (double)(atomic_load(&field->got) - from) * 1e3 / (double)(now_ns() - from_ns);
}

int main(int argc, char **argv)
{
	static double figures[WAYS][WINDOWS];
	pid_t pid;

	if ((argc != 4 && argc != 6) || atoi(argv[3]) < 60 || atoi(argv[3]) > FRAME_MAX - 8) {
		fputs("usage: frames CORE CORE OCTETS [INTERFACE INTERFACE]\n", stderr);
		return 2;
	}
	octets = (uint32_t)atoi(argv[3]);
	memcpy(frame, there, sizeof(there));
	memcpy(frame + sizeof(there), here, sizeof(here));
	frame[12] = ETHERTYPE >> 8;
	frame[13] = ETHERTYPE & 0xff;
	field = shared_new(sizeof(*field));
	pid = fork_child();
	pin(atoi(argv[pid ? 1 : 2]));
	if (!pid) {
		receiver(argc == 6 ? argv[5] : "lo");
		_exit(0);
	}
	packet_open(argc == 6 ? argv[4] : "lo");
	verbs_open();
	memcpy(buffers, frame, octets);
	while (!atomic_load(&field->ready))
		usleep(1000);
	for (unsigned w = 0; w < WINDOWS; w++) {
		for (int way = 0; way < WAYS; way++)
			figures[way][w] = window((enum way)way);
	}
	atomic_store(&field->way, -1);
	for (int way = 0; way < WAYS; way++)
		printf("%s %.3f\n", names[way], median(figures[way], WINDOWS));
	return 0;
}
