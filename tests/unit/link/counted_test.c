/* SPDX-License-Identifier: BSD-2-Clause */
/* Sockets whose datagrams the kernel counts: do we count as it does, whatever happens? */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <netinet/in.h>
#include <pthread.h>
#include <unistd.h>

#include "link/udp_counted.h"
#include "link/udp_senders.h"
#include "udp_lib.h"

enum {
	PORT = VB_UDP_SENDER_PORT + 1,
	FRAME = 20,
	HEADERS = 28,
	FRAMES_MAX = 8,
	LO_MTU = 65536,
	THREADS = 3,
	SENDS = 300
};

static struct vb_udp_counted counted;
static struct vb_path path;
static int wire_fd; /* sees whole IPv4 packets */

static int group_create(void **state)
{
	int bytes = 8 << 20;

	path = path_make("127.0.0.1", "127.0.0.2");
	if (!netns_enter())
		return 0;
	wire_fd = socket(AF_INET, SOCK_RAW | SOCK_NONBLOCK, IPPROTO_UDP);
	if (wire_fd < 0)
		return 0;
	setsockopt(wire_fd, SOL_SOCKET, SO_RCVBUFFORCE, &bytes, sizeof(bytes));
	*state = &counted;
	return 0;
}

static void counted_open(void)
{
	uint8_t octets[256];

	memset(&counted, 0, sizeof(counted));
	assert_int_equal(vb_udp_counted_open(&counted, path.src, path.dst, PORT, 64), 0);
	/* What it took to learn. */
	while (recv(wire_fd, octets, sizeof(octets), 0) > 0)
		continue;
}

/* The frame says at its end what identification it was told it would have. */
static void note_down(uint8_t *frame, uint32_t bytes, uint16_t from, uint16_t to)
{
	frame[bytes - 2] = (uint8_t)(to >> 8);
	frame[bytes - 1] = (uint8_t)to;
}

static struct vb_burst burst_make(struct iovec *iov, uint8_t *octets, uint16_t frames)
{
	*iov = (struct iovec){octets, (size_t)frames * FRAME};
	return (struct vb_burst){
		.path = path,
		.slot = 1,
		.frames = frames,
		.frame_bytes = FRAME,
		.last_bytes = FRAME,
		.iovcnt = 1,
		.iov = iov,
		.renumber = note_down,
	};
}

static bool send_frames(uint16_t frames)
{
	uint8_t octets[FRAMES_MAX * FRAME] = {0};
	struct iovec iov;
	struct vb_burst burst = burst_make(&iov, octets, frames);

	return vb_udp_counted_send(&counted, &burst);
}

static uint16_t be16(const uint8_t *at)
{
	return (uint16_t)(at[0] << 8 | at[1]);
}

/* The next packet to port 4791: how many frames it has, or 0; all are as they were told. */
static unsigned packet_see(uint16_t *id)
{
	uint8_t octets[2048];
	unsigned frames = 0;
	ssize_t got;

	do {
		got = recv(wire_fd, octets, sizeof(octets), 0);
		if (got < HEADERS)
			return 0;
	} while (be16(octets + 22) != VB_UDP_PORT);
	*id = be16(octets + 4);
	for (ssize_t at = HEADERS; at < got; at += FRAME, frames++)
		assert_int_equal(be16(octets + at + FRAME - 2), (uint16_t)(*id + frames));
	return frames;
}

/* Somebody is there: nothing comes back that says otherwise. */
static int listener_make(void)
{
	struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(VB_UDP_PORT)};
	int fd = socket(AF_INET, SOCK_DGRAM, 0);

	memcpy(&to.sin_addr, path.dst + 12, 4);
	assert_int_equal(bind(fd, (struct sockaddr *)&to, sizeof(to)), 0);
	return fd;
}

static void each_send_is_counted_once(void **state)
{
	int fd;
	uint16_t id, first;

	NEEDS_GROUP(state);
	fd = listener_make();
	counted_open();
	first = counted.id;
	for (unsigned i = 0; i < 200; i++) {
		assert_true(send_frames((uint16_t)(1 + i % 3)));
		assert_int_equal(packet_see(&id), 1 + i % 3);
		assert_int_equal(id, (uint16_t)(first + i));
	}
	vb_udp_counted_close(&counted);
	close(fd);
}

/* Nobody is there, and the socket says so in place of sending: that is not counted. */
static void what_does_not_leave_is_not_counted(void **state)
{
	unsigned refused = 0;
	uint16_t id;

	NEEDS_GROUP(state);
	counted_open();
	for (unsigned i = 0; i < 20; i++) {
		bool sent = send_frames(1);

		refused += !sent;
		assert_int_equal(packet_see(&id), sent);
	}
	/* As often as the kernel tells, which it does not always. */
	assert_true(refused > 0);
	vb_udp_counted_close(&counted);
}

/* Counted or not? Nobody knows: it never sends again. */
static void one_that_was_refused_is_given_up(void **state)
{
	uint8_t octets[400] = {0};
	struct iovec iov = {octets, sizeof(octets)};
	struct vb_burst burst = {.path = path, .frames = 1, .frame_bytes = sizeof(octets),
				 .last_bytes = sizeof(octets), .iovcnt = 1, .iov = &iov,
				 .renumber = note_down};
	uint16_t id;

	NEEDS_GROUP(state);
	counted_open();
	assert_true(send_frames(1));
	assert_int_equal(packet_see(&id), 1);
	assert_true(netns_interface_up("lo", 300));
	/* The first time it may be told of what came before. */
	assert_false(vb_udp_counted_send(&counted, &burst));
	assert_false(vb_udp_counted_send(&counted, &burst));
	assert_true(netns_interface_up("lo", LO_MTU));
	assert_int_equal(atomic_load(&counted.fd_plus_1), 0);
	assert_false(send_frames(1));
	assert_int_equal(packet_see(&id), 0);
}

static void what_is_large_goes_the_other_way(void **state)
{
	uint8_t octets[2 * 300] = {0};
	struct iovec iov = {octets, sizeof(octets)};
	struct vb_burst burst = {.path = path, .frames = 2, .frame_bytes = 300, .last_bytes = 300,
				 .iovcnt = 1, .iov = &iov, .renumber = note_down};
	uint16_t id;

	NEEDS_GROUP(state);
	counted_open();
	assert_false(vb_udp_counted_send(&counted, &burst));
	burst.renumber = NULL;
	burst.frames = 1;
	assert_false(vb_udp_counted_send(&counted, &burst));
	assert_int_equal(packet_see(&id), 0);
	assert_true(send_frames(1));
	vb_udp_counted_close(&counted);
}

static void *send_many(void *sent)
{
	for (unsigned i = 0; i < SENDS; i++)
		*(unsigned *)sent += send_frames(1 + i % 2);
	return NULL;
}

static void threads_are_counted_in_their_order(void **state)
{
	unsigned sent[THREADS] = {0}, all = 0, seen = 0;
	pthread_t thread[THREADS];
	uint16_t id;
	int fd;

	NEEDS_GROUP(state);
	fd = listener_make();
	counted_open();
	for (unsigned i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, send_many, &sent[i]), 0);
	for (unsigned i = 0; i < THREADS; i++) {
		pthread_join(thread[i], NULL);
		all += sent[i];
	}
	while (packet_see(&id))
		seen++;
	assert_int_equal(seen, all);
	assert_true(all > 0);
	vb_udp_counted_close(&counted);
	close(fd);
}

/* --- of a link --- */

static unsigned renumbered;

static void note_and_count(uint8_t *frame, uint32_t bytes, uint16_t from, uint16_t to)
{
	renumbered++;
	note_down(frame, bytes, from, to);
}

static void expect_way(struct vb_link *link, const struct vb_path *by, bool by_counted)
{
	uint8_t octets[FRAME] = {0};
	struct iovec iov;
	struct vb_burst burst = burst_make(&iov, octets, 1);
	unsigned before = renumbered;
	uint16_t id;

	burst.path = *by;
	burst.renumber = note_and_count;
	frame_slot_set(octets, 1);
	assert_int_equal(vb_link_tx(link, &burst), 0);
	/* Of one that goes the other way nothing is changed, and its identification is 0. */
	assert_int_equal(packet_see(&id), 1);
	assert_int_equal(renumbered - before, by_counted);
	assert_true(by_counted || id == 0);
}

static void it_serves_the_path_that_it_is_made_for(void **state)
{
	struct vb_link *slot[2];
	struct vb_path other;

	NEEDS_GROUP(state);
	assert_true(slots_make(slot, 2));
	path.sport = slot[0]->ops->sport(slot[0], &path, 1);
	assert_int_equal(path.sport, PORT);
	expect_way(slot[0], &path, true);
	other = path;
	other.tclass = 4;
	expect_way(slot[0], &other, false);
	other = path;
	other.hop_limit = 3;
	expect_way(slot[0], &other, false);
	other = path;
	other.dst[15] = 3;
	expect_way(slot[0], &other, false);
	other = path;
	other.src[15] = 9;
	expect_way(slot[0], &other, false);
	expect_way(slot[0], &path, true);
	slots_destroy(slot, 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_send_is_counted_once),
		cmocka_unit_test(what_does_not_leave_is_not_counted),
		cmocka_unit_test(one_that_was_refused_is_given_up),
		cmocka_unit_test(what_is_large_goes_the_other_way),
		cmocka_unit_test(threads_are_counted_in_their_order),
		cmocka_unit_test(it_serves_the_path_that_it_is_made_for),
	};

	return cmocka_run_group_tests(tests, group_create, NULL);
}
