/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * What plain UDP can do on a path, for comparison: the limit for verbatim.
 *
 *   udp serve PORT                     answers the others, one after another, until killed
 *   udp ping HOST PORT OCTETS COUNT    ping-pong, both sides polling: half a round trip, median, us
 *   udp stream HOST PORT OCTETS SEGMENTS MS
 *        datagrams of OCTETS, SEGMENTS in each UDP_SEGMENT send, into a UDP_GRO receiver, unpaced:
 *        what arrived: GB/s, and millions of datagrams per second
 *
 *   udp sums HOST PORT OCTETS SEGMENTS MS
 *        the same with what RoCE adds for each datagram: its data comes from 1 MiB of memory, has a
 *        CRC-32 behind it that the receiver checks, and is copied to 1 MiB of memory
 *
 * Both sides use an unconnected dual-stack socket, as a NIC does; the sender of a stream connects
 * it, which is a little faster.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <isa-l/crc.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>

#include "bench.h"

#ifndef UDP_SEGMENT
#define UDP_SEGMENT 103
#define UDP_GRO 104
#endif

#define BUFFER_BYTES 65536
#define SOCKET_BYTES (8 << 20)
#define PINGS_MAX 1000000
#define IDLE_NS 100000000u /* a stream that was silent for this long is over */

/* The first octet of a datagram: its kind. */
enum { PING = 1, STREAM, SUMS, REPORT };

/* Before and behind the data of a datagram with a sum; the first octet is its kind. */
enum { HEAD = 12, SUM = 4, DATA_BYTES = 1 << 20 };

struct report {
	uint8_t kind;
	uint64_t octets, datagrams, ns;
} __attribute__((packed));

static uint8_t buffer[BUFFER_BYTES];
static uint8_t data[DATA_BYTES];
static size_t data_at;

static int socket_make(int family)
{
	int fd = socket(family, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	int bytes = SOCKET_BYTES;

	if (fd < 0)
		die("socket");
	/* Root gets the size requested, others what the system allows. */
	if (setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &bytes, sizeof(bytes)))
		setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof(bytes));
	if (setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &bytes, sizeof(bytes)))
		setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof(bytes));
	return fd;
}

/* Receives once: returns the octets, and the size of datagrams (GRO); 0 if there are none. */
static size_t receive(int fd, struct sockaddr_in6 *from, size_t *each)
{
	struct iovec iov = {buffer, sizeof(buffer)};
	union {
		char octets[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control;
	struct msghdr msg = {
		.msg_name = from,
		.msg_namelen = sizeof(*from),
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = sizeof(control),
	};
	ssize_t n = recvmsg(fd, &msg, 0);
	int segment;

	if (n < 0 && errno != EAGAIN && errno != ECONNREFUSED)
		die("recvmsg");
	if (n <= 0)
		return 0;
	*each = (size_t)n;
	for (struct cmsghdr *c = CMSG_FIRSTHDR(&msg); c; c = CMSG_NXTHDR(&msg, c)) {
		if (c->cmsg_level == SOL_UDP && c->cmsg_type == UDP_GRO) {
			memcpy(&segment, CMSG_DATA(c), sizeof(segment));
			*each = (size_t)segment;
		}
	}
	return (size_t)n;
}

/* The next piece of the data memory, which is used in turn. */
static uint8_t *data_next(size_t octets)
{
	if (data_at + octets > DATA_BYTES)
		data_at = 0;
	data_at += octets;
	return data + data_at - octets;
}

static void sum_put(uint8_t *datagram, size_t octets)
{
	size_t bytes = octets - HEAD - SUM;
	const uint8_t *from = data_next(bytes);
	uint32_t sum;

	datagram[0] = SUMS;
	/* Over the source: the copy was only just written, and takes a tenth longer to read. */
	sum = crc32_gzip_refl(0, datagram, HEAD);
	sum = crc32_gzip_refl(sum, from, bytes);
	memcpy(datagram + HEAD, from, bytes);
	memcpy(datagram + octets - SUM, &sum, SUM);
}

/* Counts the valid datagrams and copies their data. */
static size_t sums_take(size_t n, size_t each)
{
	size_t right = 0;
	uint32_t sum;

	if (each <= HEAD + SUM)
		return 0;
	for (size_t at = 0; at + each <= n; at += each) {
		memcpy(&sum, buffer + at + each - SUM, SUM);
		if (crc32_gzip_refl(0, buffer + at, each - SUM) != sum)
			continue;
		memcpy(data_next(each - HEAD - SUM), buffer + at + HEAD, each - HEAD - SUM);
		right++;
	}
	return right;
}

/* Counts a stream from its first datagram to the last, then reports to its sender. */
static void stream_count(int fd, struct sockaddr_in6 *from, size_t n, size_t each)
{
	struct report report = {.kind = REPORT, .octets = n, .datagrams = (n + each - 1) / each};
	uint64_t start = now_ns(), last = start;
	bool sums = buffer[0] == SUMS;

	while (now_ns() - last < IDLE_NS) {
		n = receive(fd, from, &each);
		if (!n)
			continue;
		if (sums)
			n = sums_take(n, each) * each;
		report.octets += n;
		report.datagrams += (n + each - 1) / each;
		last = now_ns();
	}
	report.ns = last - start;
	sendto(fd, &report, sizeof(report), 0, (struct sockaddr *)from, sizeof(*from));
}

static _Noreturn void serve(uint16_t port)
{
	struct sockaddr_in6 from, at = {.sin6_family = AF_INET6, .sin6_port = htons(port)};
	int fd = socket_make(AF_INET6), on = 1;
	size_t n, each;

	if (bind(fd, (struct sockaddr *)&at, sizeof(at)))
		die("bind");
	setsockopt(fd, SOL_UDP, UDP_GRO, &on, sizeof(on));
	for (;;) {
		n = receive(fd, &from, &each);
		if (n && buffer[0] == PING)
			sendto(fd, buffer, n, 0, (struct sockaddr *)&from, sizeof(from));
		else if (n && (buffer[0] == STREAM || buffer[0] == SUMS))
			stream_count(fd, &from, n, each);
	}
}

/* An unconnected socket, and the address in its family. */
static int socket_to(const char *host, const char *port, struct sockaddr_in6 *to)
{
	struct addrinfo hints =
				{
					.ai_family = AF_INET6,
					.ai_socktype = SOCK_DGRAM,
					.ai_flags = AI_V4MAPPED,
				},
			*found;

	if (getaddrinfo(host, port, &hints, &found)) {
		fprintf(stderr, "udp: no such host: %s\n", host);
		exit(1);
	}
	memcpy(to, found->ai_addr, sizeof(*to));
	freeaddrinfo(found);
	return socket_make(AF_INET6);
}

/* A ping and its answer; repeated if lost. */
static uint64_t ping_once(int fd, struct sockaddr_in6 *to, size_t octets)
{
	struct sockaddr_in6 from;
	uint64_t start;
	size_t each;

	for (;;) {
		start = now_ns();
		if (sendto(fd, buffer, octets, 0, (struct sockaddr *)to, sizeof(*to)) < 0 &&
		    errno != EAGAIN && errno != ECONNREFUSED)
			die("sendto");
		while (now_ns() - start < IDLE_NS) {
			if (receive(fd, &from, &each))
				return now_ns() - start;
		}
	}
}

static int ping(int fd, struct sockaddr_in6 *to, size_t octets, size_t count)
{
	double *took_us = calloc(count, sizeof(*took_us));

	if (!took_us)
		die("calloc");
	buffer[0] = PING;
	for (size_t i = 0; i < count; i++)
		took_us[i] = (double)ping_once(fd, to, octets) / 2e3;
	printf("%.3f us\n", median(took_us, count));
	free(took_us);
	return 0;
}

static int stream(int fd, struct sockaddr_in6 *to, bool sums, size_t octets, size_t segments,
		  size_t ms)
{
	int each = (int)octets;
	uint64_t end = now_ns() + ms * 1000000u;
	struct report report = {.kind = 0};

	if (connect(fd, (struct sockaddr *)to, sizeof(*to)))
		die("connect");
	if (segments > 1 && setsockopt(fd, SOL_UDP, UDP_SEGMENT, &each, sizeof(each)))
		die("UDP_SEGMENT");
	memset(data, 1, sizeof(data)); /* touched, so that it has pages of its own */
	for (size_t i = 0; i < segments; i++)
		buffer[i * octets] = STREAM;
	while (now_ns() < end) {
		for (size_t i = 0; sums && i < segments; i++)
			sum_put(buffer + i * octets, octets);
		if (send(fd, buffer, octets * segments, 0) < 0 && errno != EAGAIN &&
		    errno != ECONNREFUSED && errno != ENOBUFS)
			die("send");
	}
	end = now_ns() + 10ull * IDLE_NS;
	while (report.kind != REPORT && now_ns() < end) {
		if (recv(fd, &report, sizeof(report), 0) < 0)
			usleep(1000);
	}
	if (report.kind != REPORT || !report.ns) {
		fputs("udp: nobody counted\n", stderr);
		return 1;
	}
	printf("%.3f GB/s %.3f M/s\n", (double)report.octets / (double)report.ns,
	       (double)report.datagrams * 1e3 / (double)report.ns);
	return 0;
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";
	size_t octets = argc > 4 ? strtoul(argv[4], NULL, 0) : 0;
	size_t count = argc > 5 ? strtoul(argv[5], NULL, 0) : 0;
	struct sockaddr_in6 to;
	int fd;

	if (!strcmp(what, "serve") && argc == 3)
		serve((uint16_t)atoi(argv[2]));
	if (!octets || !count || octets > BUFFER_BYTES || count > PINGS_MAX) {
		fputs("usage: udp serve PORT | ping HOST PORT OCTETS COUNT | "
		      "stream|sums HOST PORT OCTETS SEGMENTS MS\n",
		      stderr);
		return 2;
	}
	fd = socket_to(argv[2], argv[3], &to);
	if (!strcmp(what, "ping") && argc == 6)
		return ping(fd, &to, octets, count);
	if ((!strcmp(what, "stream") || (!strcmp(what, "sums") && octets > HEAD + SUM)) &&
	    argc == 7 && octets * count < BUFFER_BYTES)
		return stream(fd, &to, what[1] == 'u', octets, count, strtoul(argv[6], NULL, 0));
	return 2;
}
