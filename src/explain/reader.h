/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_EXPLAIN_READER_H
#define VB_EXPLAIN_READER_H

/*
 * Packets of a capture that lies in memory: pcap (pcap-savefile(5)) and pcapng
 * (draft-ietf-opsawg-pcapng), of either byte order. Comments and directions are options of pcapng,
 * which libpcap does not hand out. The octets may be anything: what does not fit ends the file, and
 * nothing beyond it is read. Pure; any thread, each with a reader of its own.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { VB_READER_INTERFACES = 64, VB_READER_PROGRAM_BYTES = 64 };

enum vb_reader_form { VB_READER_PCAP, VB_READER_PCAPNG };

/* Whether the machine that captured has sent a packet. */
enum vb_direction { VB_DIRECTION_UNKNOWN, VB_DIRECTION_IN, VB_DIRECTION_OUT };

struct vb_reader_interface {
	uint32_t linktype;
	uint64_t units;	     /* of time, in a second */
	uint32_t snap_bytes; /* of a packet that are kept; 0: all */
	bool shm;	/* the rings of one of our captures: no wire */
};

struct vb_reader {
	const uint8_t *octets;
	size_t bytes, at;
	enum vb_reader_form form;
	bool swapped; /* numbers are of the other byte order */
	struct vb_reader_interface interface[VB_READER_INTERFACES]; /* of pcap: the first */
	uint32_t interfaces;
	uint32_t packets; /* so far */
	bool damaged;	  /* it ends within a packet, or with something else */
	bool ours;	  /* pcapng that we wrote: `program` is what was captured */
	bool ended;	  /* it has the statistics with which a capture ends */
	uint64_t lost;	  /* packets, as those say */
	char program[VB_READER_PROGRAM_BYTES];
};

struct vb_reader_packet {
	uint64_t ns; /* since 1970 */
	const uint8_t *octets;
	uint32_t bytes; /* that are there */
	uint32_t whole; /* that there were: more, if it was cut */
	uint32_t linktype;
	uint32_t interface; /* within the file */
	uint32_t number;    /* in the file, from 1 on, as other programs count */
	enum vb_direction direction;
	bool shm;
	const char *comment; /* not terminated; NULL: none */
	uint32_t comment_bytes;
};

/* False: it is neither pcap nor pcapng. The octets have to stay. */
bool vb_reader_open(struct vb_reader *reader, const uint8_t *octets, size_t bytes);

/* False: there are no more. */
bool vb_reader_next(struct vb_reader *reader, struct vb_reader_packet *packet);

#endif
