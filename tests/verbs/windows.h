/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_TESTS_VERBS_WINDOWS_H
#define VB_TESTS_VERBS_WINDOWS_H

#include "lib.h"

/*
 * What the tests of memory windows share: ibv_alloc_mw(3), ibv_bind_mw(3), and the work requests
 * that bind and invalidate those of type 2 (IBA 10.6.7, 11.2.8). b has the memory and the windows,
 * a is the peer.
 */

enum { AT = 8192, BYTES = 4096, SEED = 7 };

#define REGION_ACCESS (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND)
#define REMOTE (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC)

struct scene {
	struct vt_pair p;
	struct ibv_mr *mr; /* of b's buffer: no remote access of its own */
	struct ibv_mw *mw;
	uint32_t rkey; /* what it was bound to last */
};

static inline void scene_open_as(struct scene *s, enum ibv_qp_type qp_type, enum ibv_mw_type type,
			  int access)
{
	struct vt_options opt = { .type = qp_type };

	vt_pair_open(&s->p, &opt);
	s->mr = vt_mr(vt.pd, s->p.b.buf, s->p.b.bytes, access);
	s->mw = vt_made(ibv_alloc_mw(vt.pd, type));
	s->rkey = s->mw->rkey;
	vt_fill(s->p.a.buf, 64, SEED);
}

static inline void scene_open(struct scene *s, enum ibv_mw_type type)
{
	scene_open_as(s, IBV_QPT_RC, type, REGION_ACCESS);
}

static inline void scene_close(struct scene *s)
{
	if (s->mw)
		assert_int_equal(ibv_dealloc_mw(s->mw), 0);
	if (s->mr)
		assert_int_equal(ibv_dereg_mr(s->mr), 0);
	vt_pair_close(&s->p);
}

#define scene_as_test(f, ...)                                                                     \
	vt_with(vt_test, f, struct scene, s, scene_open_as(&s, __VA_ARGS__), scene_close(&s))
#define scenes_as_test(f, i, from, to, ...)                                                       \
	vt_with_each(vt_test, f, i, from, to, struct scene, s, scene_open_as(&s, __VA_ARGS__),    \
		     scene_close(&s))
#define scene_test(f, ...)                                                                        \
	vt_with(vt_test, f, struct scene, s, scene_open(&s, __VA_ARGS__), scene_close(&s))
#define scenes_test(f, i, from, to, ...)                                                          \
	vt_with_each(vt_test, f, i, from, to, struct scene, s, scene_open(&s, __VA_ARGS__),       \
		     scene_close(&s))

static inline struct ibv_mw_bind_info stretch(const struct scene *s, uint64_t offset,
					      uint64_t bytes, unsigned access)
{
	return (struct ibv_mw_bind_info){ .mr = s->mr,
					  .addr = (uintptr_t)s->p.b.buf + offset,
					  .length = bytes,
					  .mw_access_flags = access };
}

/* A BIND as a work request, whose new key is the last one's successor. */
static inline struct ibv_send_wr bind_wr(struct scene *s, const struct ibv_mw_bind_info *info)
{
	s->rkey = ibv_inc_rkey(s->rkey);
	return (struct ibv_send_wr){
		.wr_id = 10,
		.opcode = IBV_WR_BIND_MW,
		.send_flags = IBV_SEND_SIGNALED,
		.bind_mw = { .mw = s->mw, .rkey = s->rkey, .bind_info = *info },
	};
}

static inline int post(struct ibv_qp *qp, struct ibv_send_wr *wr)
{
	struct ibv_send_wr *bad = NULL;

	return ibv_post_send(qp, wr, &bad);
}

/* Bind, by the way that the window's type has, and see it done. */
static inline void bind_on(struct scene *s, struct vt_end *end, const struct ibv_mw_bind_info *info)
{
	struct ibv_mw_bind by_verb = { .wr_id = 10, .send_flags = IBV_SEND_SIGNALED,
				       .bind_info = *info };
	struct ibv_send_wr wr;
	struct ibv_wc wc;

	if (s->mw->type == IBV_MW_TYPE_1) {
		assert_int_equal(ibv_bind_mw(end->qp, s->mw, &by_verb), 0);
		s->rkey = s->mw->rkey;
	} else {
		wr = bind_wr(s, info);
		assert_int_equal(post(end->qp, &wr), 0);
	}
	wc = vt_expect(end->cq, 10, IBV_WC_SUCCESS);
	assert_int_equal(wc.opcode, IBV_WC_BIND_MW);
	assert_int_equal(wc.qp_num, end->qp->qp_num);
}

static inline void bind_all(struct scene *s)
{
	struct ibv_mw_bind_info info = stretch(s, AT, BYTES, REMOTE);

	bind_on(s, &s->p.b, &info);
}

static inline struct ibv_send_wr inv_wr(enum ibv_wr_opcode opcode, uint32_t rkey)
{
	return (struct ibv_send_wr){ .wr_id = 11, .opcode = opcode, .invalidate_rkey = rkey,
				     .send_flags = IBV_SEND_SIGNALED };
}

/* An access of a's through this key; it succeeds, or it is refused and breaks both QPs. */
static inline void access_as(struct vt_end *from, struct vt_end *to, enum ibv_wr_opcode op,
			     uint64_t va, uint32_t rkey, uint32_t bytes, bool good)
{
	struct vt_wr w;

	vt_wr(&w, op, from, to, bytes);
	if (op == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		w.wr.wr.atomic.remote_addr = va;
		w.wr.wr.atomic.rkey = rkey;
	} else {
		w.wr.wr.rdma.remote_addr = va;
		w.wr.wr.rdma.rkey = rkey;
	}
	vt_done(from, &w, good ? IBV_WC_SUCCESS : IBV_WC_REM_ACCESS_ERR);
	if (good)
		return;
	vt_event_acked(IBV_EVENT_QP_ACCESS_ERR);
	assert_int_equal(vt_state(from->qp), IBV_QPS_ERR);
	assert_int_equal(vt_state(to->qp), IBV_QPS_ERR);
}

static inline void write_at(struct scene *s, uint64_t offset, uint32_t bytes, bool good)
{
	access_as(&s->p.a, &s->p.b, IBV_WR_RDMA_WRITE, (uintptr_t)s->p.b.buf + offset, s->rkey,
		  bytes, good);
}

static const enum ibv_mw_type both_types[] = { IBV_MW_TYPE_1, IBV_MW_TYPE_2 };

#endif
