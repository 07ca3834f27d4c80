/* SPDX-License-Identifier: BSD-2-Clause */
/* Sockets whose datagrams the kernel counts: do we count as it does, whatever happens? */
#include <errno.h>
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
	OCTETS_MAX = 2048,
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
		return group_lacks(NO_NETWORK_NAMESPACE);
	wire_fd = socket(AF_INET, SOCK_RAW | SOCK_NONBLOCK, IPPROTO_UDP);
	if (wire_fd < 0)
		return group_lacks("no raw socket");
	setsockopt(wire_fd, SOL_SOCKET, SO_RCVBUFFORCE, &bytes, sizeof(bytes));
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

/* Each frame says at its end what identification it was told that it would have. */
static struct vb_burst burst_make(struct iovec *iov, uint8_t *octets, uint16_t frames,
				  uint32_t bytes, uint16_t first_id)
{
	*iov = (struct iovec){octets, (size_t)frames * bytes};
	for (uint16_t i = 0; i < frames; i++) {
		octets[(i + 1) * bytes - 2] = (uint8_t)((first_id + i) >> 8);
		octets[(i + 1) * bytes - 1] = (uint8_t)(first_id + i);
	}
	return (struct vb_burst){
		.path = path,
		.slot = 1,
		.frames = frames,
		.frame_bytes = bytes,
		.last_bytes = bytes,
		.iovcnt = 1,
		.iov = iov,
		.first_id = first_id,
	};
}

/* EBUSY: there is no claim to be had. */
static int send_of(uint16_t frames, uint32_t bytes)
{
	uint8_t octets[OCTETS_MAX] = {0};
	struct vb_burst burst;
	struct iovec iov;
	uint16_t id;

	if (!vb_udp_counted_claim(&counted, &id))
		return EBUSY;
	burst = burst_make(&iov, octets, frames, bytes, id);
	return vb_udp_counted_send(&counted, &burst);
}

static bool send_frames(uint16_t frames)
{
	return send_of(frames, FRAME) == 0;
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

TEST(each_send_is_counted_once)
{
	int fd;
	uint16_t id, first;

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
TEST(what_does_not_leave_is_not_counted)
{
	uint16_t id;

	counted_open();
	for (unsigned i = 0; i < 20; i++) {
		/* Tried again at once, so that it leaves in the end. */
		assert_true(send_frames(1));
		assert_int_equal(packet_see(&id), 1);
	}
	vb_udp_counted_close(&counted);
}

/* Counted or not? Nobody knows: it never sends again. */
TEST(one_that_was_refused_is_given_up)
{
	uint16_t id;

	counted_open();
	assert_true(send_frames(1));
	assert_int_equal(packet_see(&id), 1);
	assert_true(netns_interface_up("lo", 300));
	assert_int_equal(send_of(1, 400), EMSGSIZE);
	assert_true(netns_interface_up("lo", LO_MTU));
	assert_int_equal(atomic_load(&counted.fd_plus_1), 0);
	assert_int_equal(send_of(1, FRAME), EBUSY);
	assert_int_equal(packet_see(&id), 0);
}

/* What a listener gets, which sees each frame by itself. */
static void expect_cut(int fd, unsigned frames, unsigned bytes)
{
	uint8_t octets[OCTETS_MAX];

	while (frames--)
		assert_int_equal(recv(fd, octets, sizeof(octets), MSG_DONTWAIT), bytes);
	assert_int_equal(recv(fd, octets, sizeof(octets), MSG_DONTWAIT), -1);
}

/* Once it has been told how to cut long bursts, it cuts others as they have to be cut, too. */
TEST(bursts_are_cut_each_in_its_way)
{
	static const struct {
		uint16_t frames;
		uint32_t bytes;
	} bursts[] = {
		{1, 60}, {3, 60}, {32, 60}, {32, 60}, {1, 60}, {1, 40}, {1, 400}, {4, 60}, {4, 40},
		{32, 40}, {1, 60}, {2, 60}, {2, 40}, {1, 36}, {32, 64}, {32, 40},
	};
	uint16_t first;
	int fd;

	fd = listener_make();
	counted_open();
	first = counted.id;
	for (unsigned i = 0; i < sizeof(bursts) / sizeof(bursts[0]); i++) {
		assert_int_equal(send_of(bursts[i].frames, bursts[i].bytes), 0);
		expect_cut(fd, bursts[i].frames, bursts[i].bytes);
		assert_int_equal(counted.id, (uint16_t)(first + i + 1));
	}
	vb_udp_counted_close(&counted);
	close(fd);
}

/* Pieces that the kernel has to gather; one that is not there is no reason to give up. */
TEST(pieces_are_gathered)
{
	uint8_t octets[3 * FRAME] = {0};
	struct vb_burst burst;
	struct iovec iov[2];
	uint16_t id, seen;

	counted_open();
	for (unsigned there = 0; there < 2; there++) {
		assert_true(vb_udp_counted_claim(&counted, &id));
		burst = burst_make(iov, octets, 3, FRAME, id);
		burst.iovcnt = 2;
		iov[0].iov_len = FRAME + 3;
		iov[1] = (struct iovec){there ? octets + FRAME + 3 : NULL, 2 * FRAME - 3};
		assert_int_equal(vb_udp_counted_send(&counted, &burst), there ? 0 : EFAULT);
		assert_int_equal(packet_see(&seen), there ? 3 : 0);
	}
	assert_int_equal(seen, id);
	vb_udp_counted_close(&counted);
}

TEST(there_is_one_claim_at_a_time)
{
	uint16_t id, other;

	counted_open();
	assert_true(vb_udp_counted_claim(&counted, &id));
	assert_false(vb_udp_counted_claim(&counted, &other));
	vb_udp_counted_unclaim(&counted);
	assert_true(vb_udp_counted_claim(&counted, &other));
	assert_int_equal(id, other);
	vb_udp_counted_unclaim(&counted);
	assert_true(send_frames(1));
	vb_udp_counted_close(&counted);
	assert_false(vb_udp_counted_claim(&counted, &id));
}

static void *send_many(void *sent)
{
	for (unsigned i = 0; i < SENDS; i++)
		*(unsigned *)sent += send_frames(1 + i % 2);
	return NULL;
}

TEST(threads_are_counted_in_their_order)
{
	unsigned sent[THREADS] = {0}, all = 0, seen = 0;
	pthread_t thread[THREADS];
	uint16_t id;
	int fd;

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

static void expect_way(struct vb_link *link, const struct vb_path *by, bool by_counted)
{
	uint8_t octets[FRAME] = {0};
	uint16_t claimed = 0, id;
	void *claim = vb_link_claim(link, by, &claimed);
	struct vb_burst burst;
	struct iovec iov;

	assert_int_equal(claim != NULL, by_counted);
	burst = burst_make(&iov, octets, 1, FRAME, claimed);
	burst.path = *by;
	burst.claim = claim;
	frame_slot_set(octets, 1);
	assert_int_equal(vb_link_tx(link, &burst), 0);
	assert_int_equal(packet_see(&id), 1);
}

TEST(it_serves_the_path_that_it_is_made_for)
{
	struct vb_link *slot[2];
	struct vb_path other;

	assert_true(slots_make(slot, 2));
	path.sport = slot[0]->ops->sport(slot[0], &path, 1, VB_OURS);
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

GROUP(group_create, NULL)
