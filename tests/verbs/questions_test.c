/* SPDX-License-Identifier: BSD-2-Clause */
#include "lib.h"

#include "descriptors.h"
#include "forge.h"
#include "netns.h"

/*
 * Questions between NICs (docs/wire.md) from strangers: they are answered, as many as come and from
 * wherever, and take nothing away from those that this process has to do with.
 */

enum {
	QUESTIONS = 1024,
	SOURCES = 8,
	SLOT_SHIFT = 14, /* of a QPN */
	PEER_SLOT = 700, /* which the strangers ask for as well */
	OWN_PORTS = 0xc000,
	QUESTION_BYTES = 32,
	ASK = 0xc0,
	TELL = 0xc1,
};

static struct {
	int fd;
	union forge_address at;
} source[SOURCES];

/* Addresses that this host speaks from, and that none of its NICs knows. */
static void sources_open(bool ipv6)
{
	for (unsigned i = 0; i < SOURCES; i++) {
		char address[32];

		snprintf(address, sizeof(address), ipv6 ? "fd77::%u" : "127.0.0.%u", i + 2);
		if (ipv6)
			assert_true(netns_ipv6_address_add("lo", address));
		source[i].fd = forge_socket_at(address, FORGE_PORT, &source[i].at);
		assert_true(source[i].fd >= 0);
	}
}

static void sources_close(void)
{
	for (unsigned i = 0; i < SOURCES; i++)
		close(source[i].fd);
}

static size_t receive(unsigned i, uint8_t *octets, size_t bytes, uint16_t *port)
{
	union forge_address from;
	socklen_t size = sizeof(from);
	ssize_t got;

	assert_true(vt_readable(source[i].fd, VT_WAIT_MS));
	got = recvfrom(source[i].fd, octets, bytes, 0, &from.any, &size);
	assert_true(got > 0);
	*port = ntohs(from.in.sin_port);
	return (size_t)got;
}

/* Who asks says he has that slot. The port that the answer came from. */
static uint16_t ask(unsigned i, uint32_t qpn, uint16_t slot)
{
	static const union forge_address to_ipv6 = {
		.in6 = { .sin6_family = AF_INET6, .sin6_port = FORGE_PORT_BE,
			 .sin6_addr = IN6ADDR_LOOPBACK_INIT } };
	uint8_t answer[2 * QUESTION_BYTES];
	struct forged f;
	uint16_t port;

	forge_bth(&f, (enum forge_opcode)ASK, qpn, 0);
	forge_be(&f, 0x76626d31, 4);
	forge_be(&f, slot, 4);
	forge_be(&f, 77777, 8);
	if (source[i].at.any.sa_family == AF_INET6) {
		forge_seal_ipv6(&f, &source[i].at.in6);
		assert_int_equal(sendto(source[i].fd, f.octets, f.bytes, 0, &to_ipv6.any,
					sizeof(to_ipv6.in6)), f.bytes);
	} else {
		forge_seal(&f, &source[i].at.in);
		assert_true(forge_throw(source[i].fd, f.octets, f.bytes));
	}
	assert_int_equal(receive(i, answer, sizeof(answer), &port), QUESTION_BYTES);
	assert_int_equal(answer[0], TELL);
	assert_int_equal((answer[5] << 8 | answer[6]) >> 6, slot);
	assert_memory_equal(answer + 20, f.octets + 20, 8);
	return port;
}

/* A QP connected to one of them, after all. */
static void peer_open(struct vt_end *end, unsigned i)
{
	struct vt_options opt = vt_options(&(struct vt_options){ .for_ever = true });
	const uint32_t qpn = PEER_SLOT << SLOT_SHIFT | 5;
	struct ibv_qp_attr attr;
	int mask;

	vt_end_open(end, &opt);
	vt_climb(end->qp, &opt, IBV_QPS_INIT, qpn);
	mask = vt_attr(&attr, &opt, IBV_QPS_RTR, qpn);
	attr.ah_attr.grh.dgid = (union ibv_gid){ .raw = { [10] = 0xff, [11] = 0xff } };
	if (source[i].at.any.sa_family == AF_INET6)
		memcpy(attr.ah_attr.grh.dgid.raw, &source[i].at.in6.sin6_addr, 16);
	else
		memcpy(attr.ah_attr.grh.dgid.raw + 12, &source[i].at.in.sin_addr, 4);
	assert_int_equal(ibv_modify_qp(end->qp, &attr, mask), 0);
	mask = vt_attr(&attr, &opt, IBV_QPS_RTS, qpn);
	assert_int_equal(ibv_modify_qp(end->qp, &attr, mask), 0);
}

/* Frames to each slot come from a port of that slot's (docs/wire.md). */
static void expect_own_port(struct vt_end *end, unsigned i)
{
	uint8_t octets[256];
	uint16_t port;

	vt_send(end, end, 1);
	receive(i, octets, sizeof(octets), &port);
	assert_int_equal(octets[0], RC_SEND_ONLY);
	assert_int_equal(port, OWN_PORTS + PEER_SLOT);
}

static void strangers_open_nothing(bool ipv6)
{
	struct vt_options opt = { .type = IBV_QPT_UD };
	struct vt_end asked, peer;
	unsigned before;
	uint16_t port;

	sources_open(ipv6);
	vt_end_open(&asked, &opt);
	/* All of them are answered by one socket, which is there from now on. */
	port = ask(0, asked.qp->qp_num, 1);
	before = descriptors_of(getpid());
	for (unsigned n = 0; n < QUESTIONS; n++)
		assert_int_equal(ask(n % SOURCES, asked.qp->qp_num, (uint16_t)n), port);
	assert_int_equal(descriptors_of(getpid()), before);
	peer_open(&peer, 1);
	expect_own_port(&peer, 1);
	/* Who is known is answered from there. */
	assert_int_equal(ask(1, asked.qp->qp_num, PEER_SLOT), OWN_PORTS + PEER_SLOT);
	vt_end_close(&peer);
	vt_end_close(&asked);
	sources_close();
}

vt_test(questions_of_strangers_open_nothing)
{
	strangers_open_nothing(false);
}

static int setup_ipv6(void **state)
{
	setenv("VT_IPV6", "1", 1);
	return vt_setup(state);
}

static int teardown_ipv6(void **state)
{
	unsetenv("VT_IPV6");
	return vt_teardown(state);
}

vt_case(questions_of_strangers_by_ipv6_open_nothing, setup_ipv6, teardown_ipv6, NULL)
{
	strangers_open_nothing(true);
}

int main(void)
{
	setenv("VERBATIM_LINK", "udp", 1);
	return vt_main();
}
