/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_EXPLAIN_STORY_H
#define VB_EXPLAIN_STORY_H

/*
 * The packets of one or several captures, sorted into flows, and what went wrong in them. Files are
 * added, then all is judged once. Their octets have to stay as long as the story. Pure; one thread.
 *
 * A packet names its destination QP alone, so a flow is first seen as two halves, one for each
 * direction. Who belongs together is known from comments, from rdma_cm's messages, or else from the
 * PSNs that answers have.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/path.h"
#include "explain/seen.h"
#include "explain/trouble.h"

#define VB_NONE UINT32_MAX

enum vb_event_flag {
	VB_EVENT_AGAIN = 1 << 0,   /* a comment says that it was sent before */
	VB_EVENT_HAS_WR = 1 << 1,
	VB_EVENT_DROPPED = 1 << 2, /* a comment says so; fate says why */
	VB_EVENT_MARKED = 1 << 3,
	VB_EVENT_ICRC = 1 << 4, /* is wrong */
	VB_EVENT_CUT = 1 << 5,	/* not all of the frame is there */
	VB_EVENT_SHM = 1 << 6,
	VB_EVENT_MERGED = 1 << 7, /* several packets yet, which cannot be told apart */
};

/* A packet in a capture. */
struct vb_event {
	uint64_t ns, wr_id;
	const uint8_t *frame;
	uint32_t bytes, wire_bytes, payload_bytes; /* bytes: of the frame, on the wire */
	uint32_t number;			   /* in its file */
	uint32_t half, psn, program;		   /* index, or VB_NONE */
	uint32_t local_qpn;			   /* of a packet that was sent; 0: not known */
	uint16_t file, flags, fate;		   /* fate: index; 0: nothing special */
	uint16_t place;				   /* where it was captured: index */
	uint8_t opcode, syndrome, direction;
	uint8_t head_bytes; /* of its headers, in the capture */
};

/* From one address to a QP of another one. */
struct vb_half {
	struct vb_path path;
	uint32_t dqpn, sqpn; /* sqpn 0: not known */
	uint8_t transport;   /* enum vb_transport */
	bool has_sqpn;	     /* each packet says it: UD, DC */
	uint16_t pkey;
	uint32_t peer;			 /* the other half; VB_NONE: none was found */
	uint32_t sender, receiver;	 /* programs; VB_NONE: not known */
	uint32_t first, count;		 /* its events */
	uint32_t mtu;			 /* how long the middle packets are; 0: there is none */
	uint32_t longest;		 /* payload of a packet */
	uint32_t hash_next;		 /* VB_NONE: the last */
	uint32_t last_psn, last_request; /* while halves are joined */
	uint64_t again;			 /* packets of requests that were repeated */
	bool shm;
	bool holes; /* the captures do not show all of its packets for sure */
};

/* An interface of a file: the same packet may pass several. */
struct vb_place {
	uint16_t file;
	uint32_t interface;
};

struct vb_file {
	const char *name;
	uint64_t first_ns, last_ns, lost;
	uint32_t packets, roce;
	bool damaged, killed;
	char program[VB_READER_PROGRAM_BYTES];
};

struct vb_program {
	uint32_t pid;
	char name[VB_COMMENT_PROGRAM_BYTES];
};

/* An array that grows. */
struct vb_array {
	uint32_t count, room;
};

struct vb_story {
	struct vb_event *event;
	struct vb_half *half;
	struct vb_file *file;
	struct vb_place *place;
	struct vb_program *program;
	char (*fate)[VB_COMMENT_FATE_BYTES];
	struct vb_trouble *trouble;
	struct vb_array events, halves, files, places, programs, fates, troubles;
	uint32_t *bucket; /* of halves */
	uint64_t zero_ns; /* the first packet of all */
	uint64_t malformed[VB_PARSE_COUNT];
	uint32_t first_malformed, first_merged; /* events; VB_NONE: none */
	uint64_t merged, fragments, cut, foreign;
	uint32_t foreign_linktype; /* of the first one */
	bool no_memory; /* not all was read, or not all was said */
};

/* False: no memory. */
bool vb_story_begin(struct vb_story *story);
void vb_story_end(struct vb_story *story);

/* Reads a capture. False: it is none. The name stays as well. */
bool vb_story_add(struct vb_story *story, const char *name, const uint8_t *octets, size_t bytes);

/* Joins halves, and sorts the packets of each by their time. Called once, behind the last file. */
void vb_story_sort(struct vb_story *story);

/* Room for one more in an array of items of that size. NULL: no memory, which is noted. */
void *vb_story_grow(struct vb_story *story, void *array, struct vb_array *state, size_t item_bytes);

/* A new trouble of count 1; never NULL, though it may be one that is not kept. */
struct vb_trouble *vb_story_trouble(struct vb_story *story, enum vb_trouble_kind kind,
				    uint32_t half, uint32_t event);

/* The row of an event's opcode: it has one. */
const struct vb_op_info *vb_event_op(const struct vb_event *event);

/* Is it an acknowledgement, a READ response or the like? */
bool vb_event_is_answer(const struct vb_event *event);

/* Its headers once more. */
void vb_event_parse(const struct vb_event *event, struct vb_pkt *pkt);

/* An event and its time: to look at some of them in the order of their times. */
struct vb_moment {
	uint64_t ns;
	uint32_t event;
};

void vb_moments_sort(struct vb_moment *moments, uint32_t count);

/* Since the first packet. */
double vb_story_seconds(const struct vb_story *story, uint64_t ns);

#endif
