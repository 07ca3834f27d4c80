/* SPDX-License-Identifier: BSD-2-Clause */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/check.h"
#include "udp_lib.h"

/* A group of slots as the hub makes it, with a link on each, in a namespace of the test's own. */

enum { SLOTS = 5, FRAMES_MAX = 256, LO_MTU = 4242 };

static struct vb_link *slot[SLOTS];

static int group_create(void **state)
{
	int fd[SLOTS];

	if (!netns_enter())
		return group_lacks(NO_NETWORK_NAMESPACE);
	for (unsigned i = 0; i < SLOTS; i++) {
		if (vb_udp_socket_create(&fd[i]) || (i == 0 && vb_udp_socket_steer(fd[i])) ||
		    vb_udp_socket_bound(fd[i]) || vb_udp_socket_bind(fd[i]) ||
		    !vb_udp_socket_bound(fd[i]) ||
		    vb_link_udp_create(&slot[i], fd[i], any_is_right))
			return -1;
	}
	*state = slot;
	return 0;
}

static int group_destroy(void **state)
{
	for (unsigned i = 0; *state && i < SLOTS; i++)
		slot[i]->ops->destroy(slot[i]);
	*state = NULL;
	return 0;
}

#define GROUP_TEST(name) TEST_BETWEEN(name, group_create, group_destroy)

/* Octets that begin as a BTH for that slot and go on with a pattern. */
static void frame_fill(uint8_t *data, uint32_t bytes, unsigned to, uint8_t tag)
{
	uint32_t qpn = to << 14 | 77;

	for (uint32_t i = 0; i < bytes; i++)
		data[i] = (uint8_t)(i * 7 + tag);
	/* No request of XRC, which goes elsewhere. */
	data[0] &= 0x1f;
	data[5] = (uint8_t)(qpn >> 16);
	data[6] = (uint8_t)(qpn >> 8);
	data[7] = (uint8_t)qpn;
}

static int burst_send(struct vb_link *link, const struct vb_path *path, unsigned to,
		      const uint8_t *data, uint32_t bytes, uint32_t frame_bytes)
{
	struct iovec iov[VB_LINK_BURST_FRAMES_MAX];
	struct vb_burst burst = {.path = *path,
				 .slot = (uint16_t)to,
				 .frame_bytes = frame_bytes,
				 .iov = iov};

	for (uint32_t at = 0; at < bytes; at += burst.last_bytes) {
		burst.last_bytes = bytes - at < frame_bytes ? bytes - at : frame_bytes;
		iov[burst.frames++] = (struct iovec){(void *)(data + at), burst.last_bytes};
	}
	burst.iovcnt = burst.frames;
	return vb_link_tx(link, &burst);
}

/* All that has arrived. The octets of the frames are valid until the next call. */
static unsigned receive(struct vb_link *link, struct vb_frame frames[FRAMES_MAX])
{
	struct pollfd pollfd = {link->ops->rx_fd(link, 0), POLLIN, 0};

	poll(&pollfd, 1, 100);
	return vb_link_rx(link, frames, FRAMES_MAX);
}

static unsigned receive_all(void)
{
	struct vb_frame frames[FRAMES_MAX];
	unsigned all = 0, n;

	for (unsigned i = 0; i < SLOTS; i++) {
		while ((n = vb_link_rx(slot[i], frames, FRAMES_MAX)))
			all += n;
	}
	return all;
}

/* --- tests --- */

GROUP_TEST(a_burst_arrives_frame_by_frame)
{
	static const char *const addresses[] = {"127.0.0.1", "::1"};
	static uint8_t data[50 * 1000 + 123];
	struct vb_frame frames[FRAMES_MAX];

	for (unsigned a = 0; a < VB_ARRAY_LEN(addresses); a++) {
		struct vb_path path = path_make(addresses[a], addresses[a]);

		frame_fill(data, sizeof(data), 2, (uint8_t)a);
		assert_int_equal(burst_send(slot[1], &path, 2, data, sizeof(data), 1000), 0);
		assert_int_equal(receive(slot[2], frames), 51);
		for (unsigned i = 0; i < 51; i++) {
			assert_int_equal(frames[i].bytes, i < 50 ? 1000 : 123);
			assert_memory_equal(frames[i].data, data + i * 1000, frames[i].bytes);
			assert_memory_equal(frames[i].path.src, path.src, VB_GID_BYTES);
			assert_memory_equal(frames[i].path.dst, path.dst, VB_GID_BYTES);
			assert_int_equal(frames[i].path.sport, VB_UDP_PORT);
			assert_int_equal(frames[i].id_hint, i);
		}
		assert_int_equal(receive_all(), 0);
	}
}

GROUP_TEST(the_path_is_put_into_the_header_and_read_back)
{
	static const char *const addresses[] = {"127.0.0.1", "::1"};
	struct vb_frame frames[FRAMES_MAX];
	uint8_t data[64];

	for (unsigned a = 0; a < VB_ARRAY_LEN(addresses); a++) {
		struct vb_path path = path_make(addresses[a], addresses[a]);

		path.tclass = 0xb8;
		path.hop_limit = 3;
		path.flow_label = a ? 0xabcde : 0;
		frame_fill(data, sizeof(data), 4, 0);
		assert_int_equal(burst_send(slot[3], &path, 4, data, sizeof(data), 64), 0);
		assert_int_equal(receive(slot[4], frames), 1);
		assert_int_equal(frames[0].path.tclass, 0xb8);
		assert_int_equal(frames[0].path.hop_limit, 3);
		assert_int_equal(frames[0].path.flow_label, path.flow_label);
		assert_int_equal(frames[0].path.ifindex, 0);
		path.tclass = 0;
		path.hop_limit = VB_UDP_HOP_LIMIT_DEFAULT;
		assert_int_equal(burst_send(slot[3], &path, 4, data, sizeof(data), 64), 0);
		assert_int_equal(receive(slot[4], frames), 1);
		assert_int_equal(frames[0].path.tclass, 0);
		assert_int_equal(frames[0].path.hop_limit, VB_UDP_HOP_LIMIT_DEFAULT);
	}
}

GROUP_TEST(the_source_address_is_the_paths)
{
	struct vb_path path = path_make("127.0.0.5", "127.0.0.9");
	struct vb_frame frames[FRAMES_MAX];
	uint8_t data[64];

	frame_fill(data, sizeof(data), 1, 0);
	assert_int_equal(burst_send(slot[3], &path, 1, data, sizeof(data), 64), 0);
	assert_int_equal(receive(slot[1], frames), 1);
	assert_memory_equal(frames[0].path.src, path.src, VB_GID_BYTES);
	assert_memory_equal(frames[0].path.dst, path.dst, VB_GID_BYTES);
}

/* Slot 0 is nobody's: a request of XRC goes to the slot of the SRQ that it names (IBTA A14). */
GROUP_TEST(a_request_of_xrc_goes_to_its_srq_s_slot)
{
	static const struct {
		uint8_t opcode;
		unsigned to, srq_slot, arrives;
	} rows[] = {
		{0xa4, 0, 3, 3}, {0xa0, 0, 1, 1}, {0xb4, 0, 2, 2}, /* requests to slot 0 */
		{0x04, 0, 3, 0}, {0x64, 0, 2, 0}, {0xc4, 0, 1, 0}, /* of other transports */
		{0xb1, 2, 3, 2}, {0xa4, 1, 3, 1},		   /* to others: it is their QP */
	};
	struct vb_path path = path_make("127.0.0.1", "127.0.0.1");
	struct vb_frame frames[FRAMES_MAX];
	uint8_t data[32];

	for (unsigned i = 0; i < VB_ARRAY_LEN(rows); i++) {
		uint32_t srqn = rows[i].srq_slot << 14 | 5;

		frame_fill(data, sizeof(data), rows[i].to, 0);
		data[0] = rows[i].opcode;
		data[13] = (uint8_t)(srqn >> 16);
		data[14] = (uint8_t)(srqn >> 8);
		data[15] = (uint8_t)srqn;
		assert_int_equal(burst_send(slot[0], &path, rows[i].to, data, sizeof(data),
					    sizeof(data)),
				 0);
		assert_int_equal(receive(slot[rows[i].arrives], frames), 1);
		assert_memory_equal(frames[0].data, data, sizeof(data));
		assert_int_equal(receive_all(), 0);
	}
}

GROUP_TEST(every_slot_gets_its_own)
{
	static const char *const addresses[] = {"127.0.0.1", "127.0.0.2", "::1"};
	struct vb_frame frames[FRAMES_MAX];
	uint8_t data[3 * 256];

	for (unsigned i = 0; i < 500; i++) {
		const char *address = addresses[i % VB_ARRAY_LEN(addresses)];
		struct vb_path path = path_make(address, address);
		unsigned to = i % SLOTS, from = i / 7 % SLOTS;
		uint32_t bytes = i % 2 ? 256 : sizeof(data);

		frame_fill(data, bytes, to, (uint8_t)i);
		assert_int_equal(burst_send(slot[from], &path, to, data, bytes, 256), 0);
		assert_int_equal(receive(slot[to], frames), bytes / 256);
		assert_memory_equal(frames[0].data, data, 256);
		assert_int_equal(receive_all(), 0);
	}
}

GROUP_TEST(what_names_no_slot_goes_to_slot_0)
{
	struct vb_path path = path_make("127.0.0.1", "127.0.0.1");
	struct vb_frame frames[FRAMES_MAX];
	uint8_t data[6];

	memset(data, 0xff, sizeof(data));
	assert_int_equal(burst_send(slot[1], &path, 0, data, sizeof(data), sizeof(data)), 0);
	assert_int_equal(receive(slot[0], frames), 1);
	assert_int_equal(frames[0].bytes, sizeof(data));
}

GROUP_TEST(frames_that_found_no_room_come_with_the_next_call)
{
	struct vb_path path = path_make("::1", "::1");
	struct vb_frame frames[FRAMES_MAX];
	static uint8_t data[20 * 100];

	frame_fill(data, sizeof(data), 2, 0);
	assert_int_equal(burst_send(slot[1], &path, 2, data, sizeof(data), 100), 0);
	assert_int_equal(vb_link_rx(slot[2], frames, 7), 7);
	/* The socket is empty; only the deadline says that there is more. */
	assert_true(slot[2]->ops->deadline_ns(slot[2]) == 0);
	assert_int_equal(vb_link_rx(slot[2], frames, 13), 13);
	assert_memory_equal(frames[0].data, data + 700, 100);
	assert_int_equal(frames[0].id_hint, 7);
	assert_true(slot[2]->ops->deadline_ns(slot[2]) == UINT64_MAX);
	assert_int_equal(vb_link_rx(slot[2], frames, 13), 0);
}

GROUP_TEST(an_unmapped_piece_is_efault)
{
	struct vb_path path = path_make("127.0.0.1", "127.0.0.1");
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	uint8_t *gone;

	gone = mmap(NULL, page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_int_equal(burst_send(slot[1], &path, 2, gone, 100, 100), EFAULT);
	assert_int_equal(burst_send(slot[1], &path, 2, gone, 300, 100), EFAULT);
	assert_int_equal(slot[1]->ops->burst_frames_max(slot[1]), VB_LINK_BURST_FRAMES_MAX);
	assert_int_equal(receive_all(), 0);
	munmap(gone, page);
}

GROUP_TEST(no_route_is_an_error_and_no_mtu)
{
	struct vb_path path = path_make("127.0.0.1", "192.0.2.1");
	struct vb_path nobody = path_make("127.0.0.1", "127.0.0.1");
	uint8_t data[64] = {0};

	assert_int_not_equal(burst_send(slot[1], &path, 2, data, sizeof(data), 64), 0);
	assert_int_equal(slot[1]->ops->frame_bytes_max(slot[1], &path), 0);
	/* A source address that is not ours. */
	gid_set(nobody.src, "192.0.2.2");
	assert_int_not_equal(burst_send(slot[1], &nobody, 2, data, sizeof(data), 64), 0);
	assert_int_not_equal(burst_send(slot[1], &nobody, 2, data, sizeof(data), 32), 0);
	assert_int_equal(slot[1]->ops->burst_frames_max(slot[1]), VB_LINK_BURST_FRAMES_MAX);
}

/* Where the kernel cannot be asked, that is no reason to take a peer for unreachable. */
GROUP_TEST(without_a_descriptor_any_mtu_will_do)
{
	struct vb_path path = path_make("127.0.0.1", "127.0.0.1");
	struct rlimit before, none;

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	none = before;
	none.rlim_cur = 0;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	assert_true(slot[1]->ops->frame_bytes_max(slot[1], &path) > 4096);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
}

GROUP_TEST(the_mtu_bounds_frames_not_segmentation)
{
	struct vb_path ipv4 = path_make("127.0.0.1", "127.0.0.1"), ipv6 = path_make("::1", "::1");
	static uint8_t data[2 * LO_MTU];

	assert_true(netns_interface_up("lo", LO_MTU));
	assert_int_equal(slot[1]->ops->frame_bytes_max(slot[1], &ipv4), LO_MTU - 28);
	assert_int_equal(slot[1]->ops->frame_bytes_max(slot[1], &ipv6), LO_MTU - 48);
	frame_fill(data, sizeof(data), 2, 0);
	assert_int_equal(burst_send(slot[1], &ipv4, 2, data, LO_MTU - 28, LO_MTU), 0);
	assert_int_equal(burst_send(slot[1], &ipv4, 2, data, LO_MTU - 27, LO_MTU), EMSGSIZE);
	assert_int_equal(burst_send(slot[1], &ipv4, 2, data, LO_MTU, LO_MTU - 28), 0);
	assert_int_equal(burst_send(slot[1], &ipv4, 2, data, LO_MTU, LO_MTU - 27), EMSGSIZE);
	assert_int_equal(burst_send(slot[1], &ipv6, 2, data, LO_MTU, LO_MTU - 48), 0);
	assert_int_equal(burst_send(slot[1], &ipv6, 2, data, LO_MTU, LO_MTU - 47), EMSGSIZE);
	assert_int_equal(slot[1]->ops->burst_frames_max(slot[1]), VB_LINK_BURST_FRAMES_MAX);
	assert_int_equal(receive_all(), 1 + 2 + 2);
}

GROUP_TEST(a_kernel_that_cannot_segment_is_asked_once)
{
	struct vb_path path = path_make("127.0.0.1", "127.0.0.1");
	struct vb_frame frames[FRAMES_MAX];
	int on = 1;
	uint8_t data[300];

	/* Without checksums Linux refuses to segment: udp_send_skb() returns EINVAL. */
	setsockopt(slot[1]->ops->rx_fd(slot[1], 0), SOL_SOCKET, SO_NO_CHECK, &on, sizeof(on));
	frame_fill(data, sizeof(data), 2, 0);
	assert_int_equal(burst_send(slot[1], &path, 2, data, sizeof(data), 100), EIO);
	assert_int_equal(slot[1]->ops->burst_frames_max(slot[1]), 1);
	assert_int_equal(receive(slot[2], frames), 1);
	assert_memory_equal(frames[0].data, data, 100);
	assert_int_equal(burst_send(slot[1], &path, 2, data, 100, 100), 0);
	assert_int_equal(receive(slot[2], frames), 1);
}

GROUP_TEST(a_shut_socket_has_nothing_and_gets_nothing)
{
	struct vb_path path = path_make("127.0.0.1", "127.0.0.1");
	struct vb_frame frames[FRAMES_MAX];
	uint8_t data[64];

	frame_fill(data, sizeof(data), 2, 0);
	for (unsigned i = 0; i < 1000; i++)
		assert_int_equal(burst_send(slot[1], &path, 2, data, sizeof(data), 64), 0);
	vb_udp_socket_shut(slot[2]->ops->rx_fd(slot[2], 0));
	assert_int_equal(receive_all(), 0);
	assert_int_equal(burst_send(slot[1], &path, 2, data, sizeof(data), 64), 0);
	assert_int_equal(receive_all(), 0);
	vb_udp_socket_open(slot[2]->ops->rx_fd(slot[2], 0));
	assert_int_equal(burst_send(slot[1], &path, 2, data, sizeof(data), 64), 0);
	assert_int_equal(receive(slot[2], frames), 1);
}

GROUP_TEST(datagrams_without_checksum_are_taken)
{
	struct sockaddr_in6 to = {.sin6_family = AF_INET6, .sin6_port = htons(VB_UDP_PORT)};
	struct vb_frame frames[FRAMES_MAX];
	int fd, on = 1;
	uint8_t data[64];

	/* As rdma_rxe sends them. 101: UDP_NO_CHECK6_TX. */
	fd = socket(AF_INET6, SOCK_DGRAM, 0);
	assert_int_equal(setsockopt(fd, IPPROTO_UDP, 101, &on, sizeof(on)), 0);
	to.sin6_addr = in6addr_loopback;
	frame_fill(data, sizeof(data), 3, 0);
	assert_int_equal(sendto(fd, data, sizeof(data), 0, (struct sockaddr *)&to, sizeof(to)),
			 sizeof(data));
	assert_int_equal(receive(slot[3], frames), 1);
	assert_int_not_equal(frames[0].path.sport, VB_UDP_PORT);
	close(fd);
}

GROUP_TEST(the_port_is_seen_taken_by_our_own_group)
{
	assert_int_equal(vb_udp_port_probe(), EADDRINUSE);
	group_destroy(state);
	assert_int_equal(vb_udp_port_probe(), 0);
}

GROUP_TEST(what_is_delivered_is_taken)
{
	struct vb_path path = path_make("127.0.0.1", "127.0.0.2");
	struct vb_frame frames[4], by_hand = {.path = path, .data = (const uint8_t *)"octets"};

	by_hand.bytes = 7;
	assert_true(slot[1]->ops->deadline_ns(slot[1]) == UINT64_MAX);
	assert_true(slot[1]->ops->deliver(slot[1], &by_hand));
	assert_true(slot[1]->ops->deadline_ns(slot[1]) == 0);
	assert_int_equal(vb_link_rx(slot[1], frames, 4), 1);
	assert_memory_equal(frames[0].path.dst, path.dst, VB_GID_BYTES);
	assert_string_equal(frames[0].data, "octets");
	assert_true(slot[1]->ops->deadline_ns(slot[1]) == UINT64_MAX);
}
