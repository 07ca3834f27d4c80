/* SPDX-License-Identifier: BSD-2-Clause */
/* I/O maps: memory into which the peer of a stream writes. */
#include "rs.h"

static const int one_map[] = {RDMA_IOMAPSIZE, 1, -1}, two_maps[] = {RDMA_IOMAPSIZE, 2, -1};

/* What was mapped before is known to whoever reads this. */
static void tell(int from, int to)
{
	rt_send(from, "!", 1);
	rt_expect(to, "!");
}

static void expect_write(int fd, const void *data, size_t bytes, off_t offset)
{
	assert_int_equal(riowrite(fd, data, bytes, offset, 0), bytes);
}

static void expect_no_write(int fd, off_t offset, int err)
{
	errno = 0;
	assert_int_equal(riowrite(fd, "x", 1, offset, 0), (size_t)-1);
	assert_int_equal(errno, err);
}

/*
 * rsocket: "Riomap registers an application buffer with the RDMA hardware associated with an
 * rsocket."
 * rsocket: "When registered for remote access, the buffer is mapped to a given offset."
 * rsocket: "The remote peer may access an iomapped buffer directly by specifying the correct
 * offset."
 * rsocket: "The mapping is not guaranteed to be available until after the remote peer receives a
 * data transfer initiated after riomap has completed."
 * rsocket: "Riowrite allows an application to transfer data over an rsocket directly into a
 * remotely iomapped buffer."
 * rsocket: "The remote buffer is specified through an offset parameter, which corresponds to a
 * remote iomapped buffer."
 * rsocket: "A message sent immediately after initiating an iowrite may be used to notify the
 * receiver of the iowrite."
 * rsocket: "However, iowrite data is still considered part of the data stream, such that iowrite
 * data will be written before a subsequent transfer is received."
 */
static void the_peer_writes_at_an_offset(void **state)
{
	struct rt_pair pair = rt_pair_with(two_maps);
	char here[100] = {0};

	assert_int_equal(riomap(pair.server, here, sizeof(here), PROT_WRITE, 0, 5000), 5000);
	tell(pair.server, pair.client);
	expect_write(pair.client, "middle", 6, 5040);
	expect_write(pair.client, "first", 5, 5000);
	rt_send(pair.client, "done", 4);
	rt_expect(pair.server, "done");
	assert_memory_equal(here, "first", 5);
	assert_memory_equal(here + 40, "middle", 6);
	rt_pair_close(pair);
}

/*
 * rsocket: "The offset is either provided by the user, or if the user selects -1 for the offset,
 * rsockets selects one."
 */
static void an_offset_may_be_left_to_the_library(void **state)
{
	struct rt_pair pair = rt_pair_with(one_map);
	char here[10] = {0};
	off_t at = riomap(pair.server, here, sizeof(here), PROT_WRITE, 0, -1);

	assert_int_not_equal(at, -1);
	tell(pair.server, pair.client);
	expect_write(pair.client, "ten octets", 10, at);
	tell(pair.client, pair.server);
	assert_memory_equal(here, "ten octets", 10);
	rt_pair_close(pair);
}

/*
 * rsocket: "From the sender's perspective, riowrite behaves similar to rwrite."
 * rsocket: "From a receiver's view, riowrite transfers are silently redirected into a
 * pre-determined data buffer."
 * rsocket: "Data is received automatically, and the receiver is not informed of the transfer."
 */
static void the_receiver_is_not_told(void **state)
{
	struct rt_pair pair = rt_pair_with(one_map);
	static char here[300000], block[sizeof(here)];
	size_t at = 0;

	memset(block, 'w', sizeof(block));
	assert_int_equal(riomap(pair.server, here, sizeof(here), PROT_WRITE, 0, 0), 0);
	tell(pair.server, pair.client);
	expect_write(pair.client, block, sizeof(block) / 2, 0);
	assert_int_equal(rt_poll(pair.server, POLLIN, CT_QUIET_MS), 0);
	/* Without waiting as much is written as there is room for. */
	for (at = sizeof(block) / 2; at < sizeof(block);) {
		size_t n = riowrite(pair.client, block + at, sizeof(block) - at, (off_t)at,
				    MSG_DONTWAIT);

		if (n == (size_t)-1)
			assert_int_equal(errno, EAGAIN);
		else
			at += n;
	}
	tell(pair.client, pair.server);
	assert_memory_equal(here, block, sizeof(block));
	rt_pair_close(pair);
}

/*
 * rsocket: "The buffer is registered either for local only access (PROT_NONE) or for remote write
 * access (PROT_WRITE)."
 */
static void what_is_for_local_access_is_nowhere_for_the_peer(void **state)
{
	struct rt_pair pair = rt_pair_with(one_map);
	char here[10];

	assert_int_equal(riomap(pair.server, here, sizeof(here), PROT_NONE, 0, 0), 0);
	tell(pair.server, pair.client);
	expect_no_write(pair.client, 0, EINVAL);
	ct_fails(riomap(pair.server, here, sizeof(here), PROT_READ, 0, 0), EINVAL);
	ct_fails(riomap(pair.server, here, sizeof(here), PROT_WRITE, 1, 0), EINVAL);
	ct_works(riounmap(pair.server, here, sizeof(here)));
	rt_pair_close(pair);
}

/*
 * rsocket: "In order to enable the use of remote IO mapping calls on an rsocket, an application
 * must set the number of IO mappings that are available to the remote peer."
 * rsocket: "This may be done using the rsetsockopt RDMA_IOMAPSIZE option."
 * rsocket: "By default, an rsocket does not support remote IO mappings."
 */
static void the_peer_says_how_many_there_may_be(void **state)
{
	struct rt_pair pair = rt_pair_open(), with = rt_pair_with(one_map);
	char here[2][10];

	ct_fails(riomap(pair.server, here[0], 10, PROT_WRITE, 0, 0), ENOMEM);
	assert_int_equal(riomap(with.server, here[0], 10, PROT_WRITE, 0, 0), 0);
	ct_fails(riomap(with.server, here[1], 10, PROT_WRITE, 0, 100), ENOMEM);
	rt_pair_close(pair);
	rt_pair_close(with);
}

/* rsocket: "Riounmap removes the mapping between a buffer and an rsocket." */
static void what_is_unmapped_makes_room(void **state)
{
	struct rt_pair pair = rt_pair_with(one_map);
	char here[2][10] = {{0}};

	assert_int_equal(riomap(pair.server, here[0], 10, PROT_WRITE, 0, 0), 0);
	tell(pair.server, pair.client);
	ct_works(riounmap(pair.server, here[0], 10));
	ct_fails(riounmap(pair.server, here[0], 10), EINVAL);
	assert_int_equal(riomap(pair.server, here[1], 10, PROT_WRITE, 0, 50), 50);
	tell(pair.server, pair.client);
	expect_no_write(pair.client, 0, EINVAL);
	expect_write(pair.client, "second map", 10, 50);
	tell(pair.client, pair.server);
	assert_memory_equal(here[1], "second map", 10);
	rt_pair_close(pair);
}

/* More than fits behind the offset is not written into what lies there. */
static void maps_have_ends(void **state)
{
	struct rt_pair pair = rt_pair_with(two_maps);
	char here[3][10] = {{0}};

	assert_int_equal(riomap(pair.server, here[0], 10, PROT_WRITE, 0, 0), 0);
	assert_int_equal(riomap(pair.server, here[2], 10, PROT_WRITE, 0, 10), 10);
	tell(pair.server, pair.client);
	expect_write(pair.client, "0123456789abcdefghij", 20, 0);
	assert_int_equal(riowrite(pair.client, "uvwxyz", 6, 17, 0), 3);
	expect_no_write(pair.client, 20, EINVAL);
	tell(pair.client, pair.server);
	assert_memory_equal(here[0], "0123456789", 10);
	assert_memory_equal(here[2], "abcdefguvw", 10);
	assert_int_equal(here[1][0], 0);
	rt_pair_close(pair);
}

static void only_connected_streams_have_maps(void **state)
{
	int stream = rt_socket(SOCK_STREAM), datagrams = rt_socket(SOCK_DGRAM);
	char here[10];

	ct_fails(riomap(stream, here, 10, PROT_WRITE, 0, 0), ENOTCONN);
	ct_fails(riomap(datagrams, here, 10, PROT_WRITE, 0, 0), EOPNOTSUPP);
	expect_no_write(stream, 0, ENOTCONN);
	expect_no_write(datagrams, 0, EOPNOTSUPP);
	ct_works(rclose(stream));
	ct_works(rclose(datagrams));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_peer_writes_at_an_offset),
		cmocka_unit_test(an_offset_may_be_left_to_the_library),
		cmocka_unit_test(the_receiver_is_not_told),
		cmocka_unit_test(what_is_for_local_access_is_nowhere_for_the_peer),
		cmocka_unit_test(the_peer_says_how_many_there_may_be),
		cmocka_unit_test(what_is_unmapped_makes_room),
		cmocka_unit_test(maps_have_ends),
		cmocka_unit_test(only_connected_streams_have_maps),
	};

	return ct_main(tests);
}
