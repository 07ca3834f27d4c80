/* SPDX-License-Identifier: BSD-2-Clause */
#include <endian.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "group.h"
#include "../link/mock_link.h"

#include "capture/pcap.h"

/* Reads the file as pcap-savefile(5) describes it, with nothing of ours. */

static char file[] = "/tmp/verbatim-pcap-XXXXXX";
static uint8_t content[100000];
static size_t content_bytes;

static int file_make(void **state)
{
	int fd;

	strcpy(file + strlen(file) - 6, "XXXXXX");
	fd = mkstemp(file);
	close(fd);
	return fd < 0;
}

static int file_remove(void **state)
{
	return unlink(file);
}

#define PCAP_TEST(name) TEST_BETWEEN(name, file_make, file_remove)

static void file_read(void)
{
	int fd = open(file, O_RDONLY);
	ssize_t n = read(fd, content, sizeof(content));

	assert_true(n >= 24);
	content_bytes = (size_t)n;
	close(fd);
}

static uint32_t u32(const uint8_t *at)
{
	uint32_t value;

	memcpy(&value, at, sizeof(value));
	return value;
}

static unsigned be16(const uint8_t *at)
{
	return (unsigned)at[0] << 8 | at[1];
}

/* The packet of the nth record, and its length. */
static const uint8_t *packet(unsigned n, uint32_t *bytes)
{
	const uint8_t *at = content + 24;

	for (;; n--) {
		assert_true(at + 16 <= content + content_bytes);
		*bytes = u32(at + 8);
		assert_int_equal(u32(at + 12), *bytes);
		assert_true(at + 16 + *bytes <= content + content_bytes);
		if (n == 0)
			return at + 16;
		at += 16 + *bytes;
	}
}

/* RFC 1071: over a header with its right checksum, and all that it covers, this is 0. */
static uint16_t checksum(uint32_t sum, const uint8_t *at, size_t bytes)
{
	for (; bytes > 1; bytes -= 2, at += 2)
		sum += be16(at);
	if (bytes)
		sum += (uint32_t)*at << 8;
	while (sum >> 16)
		sum = (sum >> 16) + (sum & 0xffff);
	return (uint16_t)~sum;
}

static const struct vb_path ipv4 = {
	.src = {[10] = 0xff, [11] = 0xff, [12] = 10, [15] = 1},
	.dst = {[10] = 0xff, [11] = 0xff, [12] = 10, [15] = 2},
	.tclass = 0x28,
	.hop_limit = 9,
	.sport = 1234,
};

static const struct vb_path ipv6 = {
	.src = {0xfd, [15] = 1},
	.dst = {0xfd, [15] = 2},
	.tclass = 0x28,
	.flow_label = 0x12345,
	.hop_limit = 9,
	.sport = 1234,
};

static void assert_udp(const uint8_t *udp, uint32_t pseudo, unsigned sport, const uint8_t *frame,
		       unsigned bytes)
{
	assert_int_equal(be16(udp), sport);
	assert_int_equal(be16(udp + 2), 4791);
	assert_int_equal(be16(udp + 4), bytes + 8);
	assert_memory_equal(udp + 8, frame, bytes);
	assert_int_equal(checksum(pseudo + 17 + bytes + 8, udp, bytes + 8), 0);
}

static void assert_ipv4(const uint8_t *ip, uint32_t bytes, unsigned id, unsigned sport,
			const uint8_t *frame)
{
	uint32_t pseudo = be16(ip + 12) + be16(ip + 14) + be16(ip + 16) + be16(ip + 18);

	assert_int_equal(ip[0], 0x45);
	assert_int_equal(ip[1], 0x28);
	assert_int_equal(be16(ip + 2), bytes);
	assert_int_equal(be16(ip + 4), id);
	assert_int_equal(be16(ip + 6), 0x4000);
	assert_int_equal(ip[8], 9);
	assert_int_equal(ip[9], 17);
	assert_int_equal(checksum(0, ip, 20), 0);
	assert_memory_equal(ip + 12, ipv4.src + 12, 4);
	assert_memory_equal(ip + 16, ipv4.dst + 12, 4);
	assert_udp(ip + 20, pseudo, sport, frame, bytes - 28);
}

/* Frames here have no ICRC; one that begins with 9 says its identification itself. */
static bool by_hint(const struct vb_path *path, const uint8_t *frame, size_t bytes,
		    uint16_t id_hint, uint16_t *id)
{
	if (frame[0] == 9)
		*id = (uint16_t)be16(frame + 1);
	return frame[0] == 9;
}

PCAP_TEST(sent_bursts_are_recorded_frame_by_frame)
{
	struct mock_link *mock = mock_create();
	uint8_t data[25];
	struct iovec iov[] = {{data, 10}, {data + 10, 3}, {data + 13, 7}, {data + 20, 5}};
	struct vb_burst burst = {ipv4, 1, 3, 10, 5, 4, iov};
	struct vb_link *link;
	const uint8_t *ip;
	uint32_t bytes;

	memset(data, 0xa5, sizeof(data));
	data[12] = 1;
	assert_int_equal(vb_link_pcap_create(&link, &mock->link, file, by_hint), 0);
	assert_int_equal(vb_link_tx(link, &burst), 0);
	mock->error = EAGAIN;
	assert_int_equal(vb_link_tx(link, &burst), EAGAIN);
	/* Read before it is closed: what was recorded is in the file. */
	file_read();
	assert_int_equal(u32(content), 0xa1b23c4d);
	assert_int_equal(u32(content + 20), 101);
	for (unsigned i = 0; i < 3; i++) {
		ip = packet(i, &bytes);
		assert_int_equal(bytes, 28 + (i < 2 ? 10 : 5));
		assert_ipv4(ip, bytes, i, 1234, data + 10 * i);
	}
	assert_ptr_equal(ip + bytes, content + content_bytes);
	link->ops->destroy(link);
}

/* What the link promised is what it is recorded with. */
PCAP_TEST(claims_pass_through)
{
	struct mock_link *mock = mock_create();
	uint8_t data[20] = {0};
	struct iovec iov = {data, sizeof(data)};
	struct vb_burst burst = {.path = ipv4, .slot = 1, .frames = 2, .frame_bytes = 10,
				 .last_bytes = 10, .iovcnt = 1, .iov = &iov};
	struct vb_link *link;
	uint32_t bytes;

	assert_int_equal(vb_link_pcap_create(&link, &mock->link, file, by_hint), 0);
	assert_null(vb_link_claim(link, &ipv4, &burst.first_id));
	mock->id = 0xffff;
	burst.claim = vb_link_claim(link, &ipv4, &burst.first_id);
	assert_non_null(burst.claim);
	link->ops->unclaim(link, burst.claim);
	assert_false(mock->claimed);
	burst.claim = vb_link_claim(link, &ipv4, &burst.first_id);
	assert_int_equal(vb_link_tx(link, &burst), 0);
	file_read();
	assert_ipv4(packet(0, &bytes), 38, 0xffff, 1234, data);
	assert_ipv4(packet(1, &bytes), 38, 0, 1234, data);
	link->ops->destroy(link);
}

PCAP_TEST(received_frames_are_recorded_with_their_senders_port)
{
	struct mock_link *mock = mock_create();
	uint8_t data[33] = {1, 2, 3};
	struct vb_frame frames[2];
	struct vb_link *link;
	const uint8_t *ip;
	uint32_t bytes;

	mock->rx = (struct vb_frame){ipv4, data, sizeof(data), 7};
	mock->rx_n = 1;
	assert_int_equal(vb_link_pcap_create(&link, &mock->link, file, by_hint), 0);
	assert_int_equal(vb_link_rx(link, frames, 2), 1);
	file_read();
	ip = packet(0, &bytes);
	assert_ipv4(ip, bytes, 7, 1234, data);
	data[0] = 9;
	mock->rx_n = 1;
	assert_int_equal(vb_link_rx(link, frames, 2), 1);
	file_read();
	ip = packet(1, &bytes);
	assert_ipv4(ip, bytes, 0x203, 1234, data);
	link->ops->destroy(link);
}

PCAP_TEST(ipv6_headers_are_put_back)
{
	struct mock_link *mock = mock_create();
	uint8_t data[33] = {1, 2, 3};
	uint32_t bytes, pseudo = 0;
	struct vb_link *link;
	const uint8_t *ip;

	assert_int_equal(vb_link_pcap_create(&link, &mock->link, file, by_hint), 0);
	assert_int_equal(frame_send(link, &ipv6, data, sizeof(data)), 0);
	file_read();
	ip = packet(0, &bytes);
	assert_int_equal(bytes, 48 + sizeof(data));
	assert_int_equal(be32toh(u32(ip)), 0x62812345);
	assert_int_equal(be16(ip + 4), 8 + sizeof(data));
	assert_int_equal(ip[6], 17);
	assert_int_equal(ip[7], 9);
	assert_memory_equal(ip + 8, ipv6.src, 16);
	assert_memory_equal(ip + 24, ipv6.dst, 16);
	for (unsigned i = 8; i < 40; i += 2)
		pseudo += be16(ip + i);
	assert_udp(ip + 40, pseudo, 1234, data, sizeof(data));
	link->ops->destroy(link);
}

PCAP_TEST(a_capture_is_its_owners_alone_or_fails)
{
	struct mock_link *mock = mock_create();
	struct vb_link *link;
	struct stat stat_;

	assert_int_equal(vb_link_pcap_create(&link, &mock->link, "/nonexistent/file",
					     by_hint), ENOENT);
	unlink(file);
	assert_int_equal(vb_link_pcap_create(&link, &mock->link, file, by_hint), 0);
	assert_int_equal(stat(file, &stat_), 0);
	assert_int_equal(stat_.st_mode & 0777, 0600);
	assert_int_equal(link->ops->burst_frames_max(link), VB_LINK_BURST_FRAMES_MAX);
	assert_int_equal(link->ops->rx_fd(link, 0), 42);
	assert_true(link->ops->deadline_ns(link) == UINT64_MAX);
	assert_int_equal(link->ops->frame_bytes_max(link, &ipv4), 4242);
	assert_int_equal(link->ops->sport(link, &ipv4, 7, VB_OURS), 5007);
	assert_int_equal(link->ops->sport(link, &ipv4, 7, VB_STRANGER), 5207);
	assert_int_equal(link->ops->sport_choose(link, &ipv4, 7, 600), 607);
	assert_int_equal(link->ops->join(link, ipv4.dst, 3), 0);
	assert_int_equal(mock->joined, 3);
	link->ops->leave(link, ipv4.dst);
	assert_int_equal(mock->joined, 0);
	link->ops->destroy(link);
}
