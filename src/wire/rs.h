/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_WIRE_RS_H
#define VB_WIRE_RS_H

/*
 * What two rsockets say to each other (rsocket(7)).
 *
 * Streams: both sides put a hello of 40 octets into the private data of REQ and REP. It names where
 * the sender's targets lie: a list of two entries, each of which tells the peer a piece of the
 * receive buffer, and behind them the entries of the I/O maps. Data is written into the pieces, and
 * the entries are written by the owner of the buffer; each such WRITE carries a message of 32 bits
 * as its immediate. An entry is in the byte order of the host whose memory it is written to.
 *
 * Datagrams: each begins with a header that says from where it is. The first one to a peer goes
 * through a UDP socket with a header that says of which QP the sender is.
 */

#include <stdbool.h>
#include <stdint.h>

#define VB_RS_HELLO_BYTES 40
#define VB_RS_AREA_BYTES 16
#define VB_RS_MAP_BYTES 24
#define VB_RS_TARGETS 2 /* entries in the list of a stream's receiver */

/* --- messages of streams --- */

enum vb_rs_op {
	VB_RS_DATA = 0,	 /* octets written into the receive buffer */
	VB_RS_WRITE = 2, /* never sent: how a WRITE into an I/O map is known to its sender */
	VB_RS_CREDIT = 4, /* the number of the last data message that may be sent, 16 bits of it */
	VB_RS_MAPPED = 6, /* which entry of the I/O maps was written */
	VB_RS_CONTROL = 7,
};

enum vb_rs_control {
	VB_RS_DISCONNECT = 0,
	VB_RS_KEEPALIVE = 1, /* never sent, either: a WRITE of nothing, answered by the NIC */
	VB_RS_SHUTDOWN = 2,
};

#define VB_RS_DATA_MAX 0x1fffffffu

static inline uint32_t vb_rs_msg(enum vb_rs_op op, uint32_t data)
{
	return (uint32_t)op << 29 | (data & VB_RS_DATA_MAX);
}

static inline unsigned vb_rs_msg_op(uint32_t msg)
{
	return msg >> 29;
}

static inline uint32_t vb_rs_msg_data(uint32_t msg)
{
	return msg & VB_RS_DATA_MAX;
}

/* A piece of memory; of a list of entries, length counts entries. */
struct vb_rs_area {
	uint64_t addr;
	uint32_t key, length;
};

/* An I/O map: where the octets from offset on are. */
struct vb_rs_map {
	uint64_t offset;
	struct vb_rs_area area;
};

/* As they lie in memory; swapped: for a peer of the other byte order. */
void vb_rs_area_put(uint8_t out[VB_RS_AREA_BYTES], const struct vb_rs_area *area, bool swapped);
void vb_rs_map_put(uint8_t out[VB_RS_MAP_BYTES], const struct vb_rs_map *map, bool swapped);

/* From our own memory, where the peer puts them in our byte order. */
void vb_rs_area_get(struct vb_rs_area *area, const uint8_t in[VB_RS_AREA_BYTES]);
void vb_rs_map_get(struct vb_rs_map *map, const uint8_t in[VB_RS_MAP_BYTES]);

struct vb_rs_hello {
	bool swapped;	  /* the two hosts differ in byte order; not emitted */
	bool has_maps;	  /* the sender knows of I/O maps; emitted as true */
	uint16_t credits; /* receives that are posted */
	uint16_t maps;	  /* room for so many I/O maps */
	struct vb_rs_area targets, buffer;
};

/* False, and *hello untouched, if it is of another version. */
bool vb_rs_hello_parse(struct vb_rs_hello *hello, const uint8_t in[VB_RS_HELLO_BYTES]);
void vb_rs_hello_emit(const struct vb_rs_hello *hello, uint8_t out[VB_RS_HELLO_BYTES]);

/* The number of I/O maps that 8 bits can say: what is asked for, or the next lower one. */
uint16_t vb_rs_maps_round(unsigned maps);

/* --- headers of datagrams --- */

#define VB_RS_FROM_IPV4_BYTES 8
#define VB_RS_FROM_IPV6_BYTES 24
#define VB_RS_FROM_BYTES_MAX VB_RS_FROM_IPV6_BYTES

/* Whom a datagram is from. */
struct vb_rs_from {
	bool ipv4;
	uint16_t port;	   /* host order */
	uint32_t flowinfo; /* as in a sockaddr_in6: network order */
	uint8_t addr[16];  /* of IPv4, four of them */
};

/* The octets that it takes; 0: there is none. */
unsigned vb_rs_from_parse(struct vb_rs_from *from, const uint8_t *in, unsigned bytes);
unsigned vb_rs_from_emit(const struct vb_rs_from *from, uint8_t out[VB_RS_FROM_BYTES_MAX]);

#define VB_RS_FIRST_IPV4_BYTES 16
#define VB_RS_FIRST_IPV6_BYTES 28
#define VB_RS_FIRST_BYTES_MAX VB_RS_FIRST_IPV6_BYTES

/* What goes through the UDP socket. Its data, if any, is behind it. */
struct vb_rs_first {
	bool ipv4;
	bool answers;	  /* tells the QP, and brings no data: VB_RS_CONTROL; else VB_RS_DATA */
	uint32_t qpn;
	uint8_t addr[16]; /* the address of that QP; of IPv4, four of them */
};

unsigned vb_rs_first_parse(struct vb_rs_first *first, const uint8_t *in, unsigned bytes);
unsigned vb_rs_first_emit(const struct vb_rs_first *first, uint8_t out[VB_RS_FIRST_BYTES_MAX]);

#endif
