/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_TESTS_VERBS_RAW_H
#define VB_TESTS_VERBS_RAW_H

/* RAW_PACKET queue pairs: ends that send and receive Ethernet frames (raw.c). */

#include "lib.h"

enum {
	RAW_SLOTS = 4096, /* parts of an end's buffer, one for each frame */
	RAW_SLOT_BYTES = 2048,
	RAW_FRAME_MAX = 9018,
	RAW_HEADER = 14,
	RAW_MAC = 6,
};

struct raw_options {
	uint32_t create_flags;
	uint32_t wr;		    /* 64 */
	uint32_t tso_header;	    /* 0 */
	enum ibv_qp_state state;    /* RTS; 7 (UNKNOWN) means RESET */
	struct ibv_context *ctx;    /* a new one */
	struct ibv_cq_init_attr_ex *cq_attr;
};

/* A QP in a context of its own: what a context sends does not come back to it. */
struct raw_end {
	struct ibv_context *ctx;
	bool own_ctx;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_cq_ex *cq_ex; /* the same, if there is a cq_attr */
	struct ibv_qp *qp;
	struct ibv_mr *mr;
	uint8_t *buf;
	struct ibv_flow *flow[4];
	unsigned flows;
};

extern const uint8_t raw_mac[4][RAW_MAC]; /* some addresses */
extern const uint8_t raw_group[RAW_MAC];
extern const uint8_t raw_broadcast[RAW_MAC];

/* Is there a segment here? If not, the test is skipped. */
void raw_needed(void);

void raw_open(struct raw_end *end, const struct raw_options *opt);
void raw_close(struct raw_end *end);
int raw_climb(struct ibv_qp *qp, enum ibv_qp_state state);

/* A rule: frames to this address. */
void raw_listen(struct raw_end *end, const uint8_t mac[RAW_MAC]);

/* A frame at that place of the buffer: from, to, and octets that tell where they come from. */
uint8_t *raw_frame(struct raw_end *end, unsigned slot, const uint8_t to[RAW_MAC],
		   const uint8_t from[RAW_MAC], uint32_t bytes, unsigned seed);

/* Send what is at that place; flags besides SIGNALED. The errno of ibv_post_send(). */
int raw_post(struct raw_end *end, unsigned slot, uint32_t bytes, unsigned flags);

/* Send, which completes with success. */
void raw_send(struct raw_end *end, unsigned slot, uint32_t bytes);

/* A receive request for that place, whose wr_id is its number. */
void raw_recv(struct raw_end *end, unsigned slot, uint32_t bytes);

static inline uint8_t *raw_at(struct raw_end *end, unsigned slot)
{
	return end->buf + (size_t)slot * RAW_SLOT_BYTES;
}

/* Of Internet checksums: the sum in ones' complement; a number in the order of the network. */
uint32_t raw_sum(const uint8_t *octets, uint32_t bytes);
void raw_put16(uint8_t *at, unsigned value);

#endif
