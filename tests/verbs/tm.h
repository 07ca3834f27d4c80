/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_TESTS_VERBS_TM_H
#define VB_TESTS_VERBS_TM_H

/*
 * What the tests of tag matching share: an end `a` that sends what begins with the headers of
 * <infiniband/tm_types.h>, and an end `b` whose SRQ has the tags.
 */

#include "lib.h"

#include <endian.h>
#include <infiniband/tm_types.h>

enum {
	TM_TMH = sizeof(struct ibv_tmh),
	TM_RVH = sizeof(struct ibv_rvh),
	TM_TAGS = 64,
	/* In b's buffer: tagged ones from the start on, ordinary ones from here on. */
	TM_ORDINARY = 49152,
	TM_FIN_AT = 60000, /* in a's buffer */
};

struct tm_scene {
	struct vt_options opt;
	struct vt_end a, b;
	struct ibv_cq_ex *cq; /* b's */
};

struct ibv_cq_ex *tm_cq(void);
struct ibv_srq_init_attr_ex tm_srq_init(struct ibv_cq *cq);

/* A QP that receives from it, in RESET, with a CQ of its own that nobody needs. */
struct ibv_qp *tm_receiver(struct ibv_srq *srq, uint32_t send_wr);
void tm_receiver_close(struct ibv_qp *qp);

/* opt->state is b's. By itself b cannot send, unless send_wr says so. */
void tm_open_with(struct tm_scene *s, const struct vt_options *opt, uint32_t send_wr);
void tm_open(struct tm_scene *s);
void tm_close(struct tm_scene *s);
#define tm_test(f)                                                                                \
	vt_with(vt_test, f, struct tm_scene, s, tm_open(&s), tm_close(&s))

/* --- completions --- */

#define TM_MATCHED (IBV_WC_TM_MATCH | IBV_WC_TM_DATA_VALID)

struct tm_done {
	uint64_t wr_id, tag;
	enum ibv_wc_status status;
	enum ibv_wc_opcode opcode;
	unsigned flags;
	uint32_t bytes, priv, qpn, imm;
};

bool tm_poll(struct ibv_cq_ex *cq, struct tm_done *done, int ms);

/* The next completion of b's, which must come, have succeeded, and have this opcode and flags. */
struct tm_done tm_expect(struct tm_scene *s, uint64_t wr_id, enum ibv_wc_opcode opcode,
			 unsigned flags);
struct tm_done tm_expect_status(struct tm_scene *s, uint64_t wr_id, enum ibv_wc_status status);
void tm_expect_none(struct tm_scene *s);

/* --- operations --- */

struct tm_op {
	struct ibv_ops_wr wr;
	struct ibv_sge sge;
};

void tm_op(struct tm_op *o, enum ibv_ops_wr_opcode opcode, uint64_t wr_id);

/* ibv_post_srq_ops() of one. */
int tm_post(struct tm_scene *s, struct tm_op *o);

/* A tag for `bytes` octets at `offset` of b's buffer. The ADD and its receive have this wr_id. */
void tm_tag(struct tm_op *o, const struct tm_scene *s, uint64_t wr_id, uint64_t of, size_t offset,
	    uint32_t bytes);

/* Add it, which must succeed: its handle. */
uint32_t tm_add_at(struct tm_scene *s, uint64_t wr_id, uint64_t of, size_t offset, uint32_t bytes);
uint32_t tm_add(struct tm_scene *s, uint64_t wr_id, uint64_t of);

/* The same with a count of the unexpected messages; flags: what its completion has. */
void tm_add_counting(struct tm_scene *s, uint64_t wr_id, uint64_t of, uint32_t count,
		     unsigned flags);
void tm_sync(struct tm_scene *s, uint32_t count, unsigned flags);
enum ibv_wc_status tm_del(struct tm_scene *s, uint32_t handle);

/* An ordinary receive request. */
void tm_ordinary(struct tm_scene *s, uint64_t wr_id);

/* --- messages, from the start of a's buffer --- */

#define TM_CTX 0xabcd1234u

void tm_put_header(uint8_t *at, enum ibv_tmh_op opcode, uint64_t of);

/* Whatever is there; a header and so many octets behind it. */
void tm_send_raw(struct tm_scene *s, uint32_t bytes);
void tm_send_header(struct tm_scene *s, enum ibv_tmh_op opcode, uint64_t of, uint32_t bytes);
void tm_send_eager(struct tm_scene *s, uint64_t of, uint32_t bytes);

/* a's completion of it. */
void tm_sent(struct tm_scene *s);

/* Into a tagged buffer, or an ordinary one with all that stands in front. a's completion, too. */
void tm_expect_matched(struct tm_scene *s, uint64_t wr_id, uint64_t of, uint32_t bytes);
void tm_expect_unexpected(struct tm_scene *s, uint64_t wr_id, uint64_t of, uint32_t bytes,
			  unsigned flags);

#endif
