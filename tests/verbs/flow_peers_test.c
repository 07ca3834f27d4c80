/* SPDX-License-Identifier: BSD-2-Clause */
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "flows.h"
#include "frames.h"
#include "raw.h"

/*
 * Flow rules of several processes on one segment. The others are this program once more, executed
 * afresh, with a socket for standard input, by which they are told what to do.
 */

enum { GOT = 100, FROM = 0, IPV4 = 0x0800, UDP = 17, FRAMES = 32 };

static struct raw_end from;

static void send_udp(const uint8_t mac[6])
{
	struct frame frame = { .bytes = 0 };

	frame_eth(&frame, mac, IPV4);
	frame_ipv4(&frame, UDP, 0);
	frame_udp(&frame, 1);
	frame_close(&frame);
	memcpy(raw_at(&from, FROM), frame.octets, frame.bytes);
	raw_send(&from, FROM, frame.bytes);
}

/* What a member does: make a rule, say how many frames came up to the marker, end. */
struct order {
	char what; /* 'r', 'c', 'x' */
	enum ibv_flow_attr_type type;
	uint8_t mac[6];
	bool drops;
};

static const uint8_t marker[6] = { 0x01, 0x80, 0xc2, 0, 0, 0x77 };

/* How many frames came before the marker; -1: it did not come. */
static int count_frames(struct raw_end *end)
{
	struct ibv_wc wc;
	int frames = 0;

	while (vt_poll_ms(end->cq, &wc, VT_WAIT_MS) && wc.status == IBV_WC_SUCCESS) {
		raw_recv(end, (unsigned)wc.wr_id, RAW_SLOT_BYTES);
		if (!memcmp(raw_at(end, (unsigned)wc.wr_id), marker, 6))
			return frames;
		frames++;
	}
	return -1;
}

static int member(void)
{
	struct raw_end end;
	struct order order;
	struct flow flow;

	raw_open(&end, NULL);
	for (unsigned k = 0; k < FRAMES; k++)
		raw_recv(&end, GOT + k, RAW_SLOT_BYTES);
	raw_listen(&end, marker);
	while (read(0, &order, sizeof(order)) == sizeof(order) && order.what != 'x') {
		int answer = 0;

		if (order.what == 'c') {
			answer = count_frames(&end);
		} else {
			flow_begin(&flow, order.type);
			if (order.type == IBV_FLOW_ATTR_NORMAL)
				flow_mac(&flow, order.mac);
			if (order.drops)
				flow_drop(&flow);
			/* Left to the end of the process. */
			answer = ibv_create_flow(end.qp, &flow.attr) ? 0 : errno;
		}
		if (write(0, &answer, sizeof(answer)) != sizeof(answer))
			return 1;
	}
	return 0;
}

static pid_t member_start(int *fd)
{
	char *const arguments[] = { (char *)"flow_peers_test", (char *)"member", NULL };
	int pair[2];
	pid_t pid;

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
	pid = fork();
	if (pid == 0) {
		dup2(pair[1], 0);
		execv("/proc/self/exe", arguments);
		_exit(127);
	}
	assert_true(pid > 0);
	close(pair[1]);
	*fd = pair[0];
	return pid;
}

static int member_do(int fd, const struct order *order)
{
	int answer;

	assert_int_equal(write(fd, order, sizeof(*order)), sizeof(*order));
	assert_true(vt_readable(fd, 2 * VT_WAIT_MS));
	assert_int_equal(read(fd, &answer, sizeof(answer)), sizeof(answer));
	return answer;
}

static void member_rule(int fd, enum ibv_flow_attr_type type, const uint8_t mac[6], bool drops)
{
	struct order order = { .what = 'r', .type = type, .drops = drops };

	if (mac)
		memcpy(order.mac, mac, 6);
	assert_int_equal(member_do(fd, &order), 0);
}

/* A frame to each address, then the marker: so many of them came to the two members. */
static void members_get(const int fd[2], int first, int second)
{
	struct order order = { .what = 'c' };

	send_udp(raw_mac[1]);
	send_udp(raw_mac[2]);
	send_udp(raw_mac[3]);
	send_udp(raw_group);
	send_udp(raw_broadcast);
	send_udp(marker);
	assert_int_equal(member_do(fd[0], &order), first);
	assert_int_equal(member_do(fd[1], &order), second);
}

/* The rules of one process are nothing to another, and die with it. */
vt_test(each_process_has_its_own_rules)
{
	struct order end = { .what = 'x' };
	pid_t pid[2];
	int fd[2], status;

	raw_needed();
	raw_open(&from, NULL);
	for (unsigned i = 0; i < 2; i++)
		pid[i] = member_start(&fd[i]);
	member_rule(fd[0], IBV_FLOW_ATTR_NORMAL, raw_mac[1], false);
	member_rule(fd[1], IBV_FLOW_ATTR_NORMAL, raw_mac[2], false);
	members_get(fd, 1, 1);
	member_rule(fd[0], IBV_FLOW_ATTR_NORMAL, raw_group, false);
	member_rule(fd[1], IBV_FLOW_ATTR_NORMAL, raw_group, false);
	members_get(fd, 2, 2);
	/* The same address in both: each has its copy. */
	member_rule(fd[1], IBV_FLOW_ATTR_NORMAL, raw_mac[1], false);
	members_get(fd, 2, 3);
	member_rule(fd[1], IBV_FLOW_ATTR_MC_DEFAULT, NULL, false);
	members_get(fd, 2, 4);
	/* One drops what it would get as what is left, the other takes it all. */
	member_rule(fd[1], IBV_FLOW_ATTR_NORMAL, raw_broadcast, true);
	members_get(fd, 2, 3);
	member_rule(fd[0], IBV_FLOW_ATTR_ALL_DEFAULT, NULL, false);
	members_get(fd, 5, 3);
	/* And then has a copy of everything besides. */
	member_rule(fd[0], IBV_FLOW_ATTR_SNIFFER, NULL, false);
	members_get(fd, 10, 3);
	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(write(fd[i], &end, sizeof(end)), sizeof(end));
		assert_int_equal(waitpid(pid[i], &status, 0), pid[i]);
		assert_int_equal(status, 0);
		close(fd[i]);
	}
	raw_close(&from);
}

int main(int argc, char **argv)
{
	return argc > 1 ? member() : vt_main();
}
