/* SPDX-License-Identifier: BSD-2-Clause */
#include "lib.h"

#include <endian.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "forge.h"
#include "netns.h"

#define OTHER "127.0.0.2"

/*
 * Threads that send from one address to another, each by QPs of its own: they share the socket
 * that goes there, whose datagrams the kernel counts (link/udp_counted.c), and the ICRC of each
 * has to be right for its place in that count. A receiver of ours cannot see the identification;
 * a socket that gets whole packets can.
 */

enum { THREADS = 4, ROUNDS = 100, BYTES = 150000, WITNESS_BYTES = 256 << 20 };

static const uint32_t sizes[] = { 8, 300, 1024, 5000, 40000, BYTES };

struct lane {
	struct vt_end a, b;
	struct vt_options opt;
	pthread_t thread;
	unsigned number;
	const char *failed;
};

static struct lane lanes[THREADS];

static int setup(void **state)
{
	assert_true(netns_address_add("lo:1", OTHER));
	return vt_setup(state);
}

static int teardown(void **state)
{
	netns_interface_down("lo:1");
	return vt_teardown(state);
}

/* Where a QP is and where the other is, for the attributes that the library makes. */
static void stand(int index, const union ibv_gid *there)
{
	vt.gid_index = index;
	vt.gid = *there;
}

static void lanes_open(const struct vt_options *opt)
{
	union ibv_gid here = vt.gid, there = vt.gid;
	int index = vt.gid_index, other;

	assert_int_equal(inet_pton(AF_INET, OTHER, there.raw + 12), 1);
	other = vt_gid_index(there.raw);
	for (unsigned i = 0; i < THREADS; i++) {
		struct lane *lane = &lanes[i];

		*lane = (struct lane){ .number = i, .opt = *opt };
		stand(index, &there);
		vt_end_open(&lane->a, &lane->opt);
		vt_end_open(&lane->b, &lane->opt);
		vt_climb(lane->a.qp, &lane->opt, IBV_QPS_RTS, lane->b.qp->qp_num);
		stand(other, &here);
		vt_climb(lane->b.qp, &lane->opt, IBV_QPS_RTS, lane->a.qp->qp_num);
	}
	stand(index, &here);
}

static void lanes_close(void)
{
	for (unsigned i = 0; i < THREADS; i++) {
		vt_end_close(&lanes[i].a);
		vt_end_close(&lanes[i].b);
	}
}

/* Another thread must not assert: it says what is wrong. */
static const char *await(struct ibv_cq *cq)
{
	struct ibv_wc wc;

	if (!vt_poll_ms(cq, &wc, VT_WAIT_MS))
		return "there is no completion";
	return wc.status == IBV_WC_SUCCESS ? NULL : ibv_wc_status_str(wc.status);
}

static const char *pass(struct vt_end *from, struct vt_end *to, uint32_t bytes, unsigned seed)
{
	struct vt_wr wr;
	const char *failed;

	vt_fill(from->buf, bytes, seed);
	vt_recv(to, 1);
	vt_wr(&wr, IBV_WR_SEND, from, to, bytes);
	vt_post(from, &wr);
	failed = await(to->cq);
	if (!failed)
		failed = await(from->cq);
	if (!failed && !vt_is_filled(to->buf, bytes, seed))
		failed = "the octets are others";
	return failed;
}

static void *lane_run(void *arg)
{
	struct lane *lane = arg;

	for (unsigned i = 0; i < ROUNDS && !lane->failed; i++) {
		uint32_t bytes = sizes[(i + lane->number) % (VT_COUNT(sizes))];

		lane->failed = i % 2 ? pass(&lane->a, &lane->b, bytes, i)
				     : pass(&lane->b, &lane->a, bytes, i);
	}
	return NULL;
}

/* Sees packets as a cable would carry them, each by itself. -1: nobody lets us. */
static int witness_open(void)
{
	int fd = socket(AF_INET, SOCK_RAW | SOCK_NONBLOCK | SOCK_CLOEXEC, IPPROTO_UDP);
	int bytes = WITNESS_BYTES;

	if (fd < 0)
		return -1;
	setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &bytes, sizeof(bytes));
	assert_int_equal(system("ip link set lo gso_max_segs 1"), 0);
	return fd;
}

/* What did not fit its buffer it has missed. */
static unsigned witness_judge(int fd)
{
	uint8_t ip[65536];
	unsigned counted = 0;
	ssize_t n;

	while ((n = recv(fd, ip, sizeof(ip), 0)) > 0) {
		uint32_t icrc;

		if (n < 28 + FORGE_BTH_BYTES + 4 || (ip[22] << 8 | ip[23]) != FORGE_PORT)
			continue;
		memcpy(&icrc, ip + n - 4, 4);
		assert_int_equal(icrc, htole32(forge_icrc(ip, (size_t)n - 4)));
		counted += ip[4] || ip[5];
	}
	assert_int_equal(errno, EAGAIN);
	return counted;
}

vt_case(threads_share_the_way, setup, teardown, NULL)
{
	const struct vt_options opt = { .type = IBV_QPT_RC, .bytes = BYTES };
	int fd = witness_open();

	lanes_open(&opt);
	for (unsigned i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&lanes[i].thread, NULL, lane_run, &lanes[i]), 0);
	for (unsigned i = 0; i < THREADS; i++)
		pthread_join(lanes[i].thread, NULL);
	for (unsigned i = 0; i < THREADS; i++) {
		if (lanes[i].failed)
			fail_msg("thread %u: %s", i, lanes[i].failed);
	}
	lanes_close();
	if (fd < 0)
		return;
	/* Where rings serve there are none. */
	if (witness_judge(fd) == 0 && vt_by_udp())
		fail_msg("no packet was seen that was counted");
	close(fd);
}
