/* SPDX-License-Identifier: BSD-2-Clause */
#include "lib.h"

#include <fcntl.h>

/*
 * Objects whose public fields the program has written over, or that are destroyed already: a kernel
 * looks for their handles, and answers ENOENT. So does each control verb here, and what was meant
 * is as good as before.
 */

/* What most of them are made of. */
struct scene {
	struct vt_end end; /* its CQ is no QP's */
	struct ibv_cq *cq;
	uint8_t octets[64];
};

/* How to make one of each kind, and destroy it; NULL: it cannot be had here. */
struct kind {
	const char *name;
	void *(*make)(struct scene *s);
	int (*destroy)(void *object);
	size_t context, handle; /* 0: it has no handle that is public */
	int says;		/* what destroying returns for ENOENT: that, or -1 */
	/*
	 * The verb is one of the header's, which itself goes by the object's context: into memory
	 * that may be freed, or to wherever the program wrote. There no library can help.
	 */
	bool inlined;
};

static void *make_pd(struct scene *s)
{
	return ibv_alloc_pd(vt.ctx);
}

static int destroy_pd(void *pd)
{
	return ibv_dealloc_pd(pd);
}

static void *make_mr(struct scene *s)
{
	return ibv_reg_mr(vt.pd, s->octets, sizeof(s->octets), IBV_ACCESS_LOCAL_WRITE);
}

static int destroy_mr(void *mr)
{
	return ibv_dereg_mr(mr);
}

static void *make_mw(struct scene *s)
{
	return ibv_alloc_mw(vt.pd, IBV_MW_TYPE_2);
}

static int destroy_mw(void *mw)
{
	return ibv_dealloc_mw(mw);
}

static void *make_cq(struct scene *s)
{
	return ibv_create_cq(vt.ctx, 8, NULL, NULL, 0);
}

static int destroy_cq(void *cq)
{
	return ibv_destroy_cq(cq);
}

static void *make_srq(struct scene *s)
{
	struct ibv_srq_init_attr attr = { .attr = { .max_wr = 8, .max_sge = 1 } };

	return ibv_create_srq(vt.pd, &attr);
}

static int destroy_srq(void *srq)
{
	return ibv_destroy_srq(srq);
}

static void *make_qp(struct scene *s)
{
	struct ibv_qp_init_attr attr = {
		.send_cq = s->cq,
		.recv_cq = s->cq,
		.cap = { .max_send_wr = 1, .max_recv_wr = 1 },
		.qp_type = IBV_QPT_UD,
	};

	return ibv_create_qp(vt.pd, &attr);
}

static int destroy_qp(void *qp)
{
	return ibv_destroy_qp(qp);
}

static void *make_ah(struct scene *s)
{
	return vt_ah();
}

static int destroy_ah(void *ah)
{
	return ibv_destroy_ah(ah);
}

static void *make_channel(struct scene *s)
{
	return ibv_create_comp_channel(vt.ctx);
}

static int destroy_channel(void *channel)
{
	return ibv_destroy_comp_channel(channel);
}

static void *make_td(struct scene *s)
{
	struct ibv_td_init_attr attr = { .comp_mask = 0 };

	return ibv_alloc_td(vt.ctx, &attr);
}

static int destroy_td(void *td)
{
	return ibv_dealloc_td(td);
}

static void *make_dm(struct scene *s)
{
	struct ibv_alloc_dm_attr attr = { .length = 64 };

	return ibv_alloc_dm(vt.ctx, &attr);
}

static int destroy_dm(void *dm)
{
	return ibv_free_dm(dm);
}

static void *make_counters(struct scene *s)
{
	struct ibv_counters_init_attr attr = { .comp_mask = 0 };

	return ibv_create_counters(vt.ctx, &attr);
}

static int destroy_counters(void *counters)
{
	return ibv_destroy_counters(counters);
}

static void *make_xrcd(struct scene *s)
{
	struct ibv_xrcd_init_attr attr = {
		.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS,
		.fd = -1,
		.oflags = O_CREAT,
	};

	return ibv_open_xrcd(vt.ctx, &attr);
}

static int destroy_xrcd(void *xrcd)
{
	return ibv_close_xrcd(xrcd);
}

static void *make_wq(struct scene *s)
{
	struct ibv_wq_init_attr attr = {
		.wq_type = IBV_WQT_RQ, .max_wr = 4, .max_sge = 1, .pd = vt.pd, .cq = s->cq,
	};

	return ibv_create_wq(vt.ctx, &attr);
}

static int destroy_wq(void *wq)
{
	return ibv_destroy_wq(wq);
}

static void *make_context(struct scene *s)
{
	return ibv_open_device(vt.ctx->device);
}

static int destroy_context(void *context)
{
	return ibv_close_device(context);
}

#define KIND(name, type) #name, make_##name, destroy_##name, offsetof(struct type, context)

/* clang-format off */
static const struct kind kinds[] = {
	{ KIND(pd, ibv_pd), offsetof(struct ibv_pd, handle), ENOENT, false },
	{ KIND(mr, ibv_mr), offsetof(struct ibv_mr, handle), ENOENT, false },
	{ KIND(cq, ibv_cq), offsetof(struct ibv_cq, handle), ENOENT, false },
	{ KIND(srq, ibv_srq), offsetof(struct ibv_srq, handle), ENOENT, false },
	{ KIND(qp, ibv_qp), offsetof(struct ibv_qp, handle), ENOENT, false },
	{ KIND(ah, ibv_ah), offsetof(struct ibv_ah, handle), ENOENT, false },
	{ KIND(channel, ibv_comp_channel), 0, ENOENT, false },
	{ KIND(mw, ibv_mw), offsetof(struct ibv_mw, handle), ENOENT, true },
	{ KIND(td, ibv_td), 0, ENOENT, true },
	{ KIND(dm, ibv_dm), offsetof(struct ibv_dm, handle), ENOENT, true },
	{ KIND(counters, ibv_counters), 0, ENOENT, true },
	{ KIND(xrcd, ibv_xrcd), 0, ENOENT, true },
	{ KIND(wq, ibv_wq), offsetof(struct ibv_wq, handle), ENOENT, true },
	{ "context", make_context, destroy_context, 0, 0, -1, false },
};
/* clang-format on */
enum { KINDS = VT_COUNT(kinds) };

static void scene_open(struct scene *s)
{
	s->cq = vt_cq(16, NULL);
}

static void scene_close(struct scene *s)
{
	assert_int_equal(ibv_destroy_cq(s->cq), 0);
}

#define scene_test(f)                                                                             \
	vt_with(vt_test, f, struct scene, s, scene_open(&s), scene_close(&s))

static void *make(struct scene *s, const struct kind *kind)
{
	void *object = kind->make(s);

	if (!object)
		assert_int_equal(errno, EOPNOTSUPP);
	return object;
}

static void expect_unknown(const struct kind *kind, void *object)
{
	errno = 0;
	print_message("%s\n", kind->name);
	assert_int_equal(kind->destroy(object), kind->says);
	assert_int_equal(errno, ENOENT);
}

scene_test(another_handle_is_no_such_object)
{
	for (int i = 0; i < KINDS; i++) {
		void *object = make(s, &kinds[i]);
		uint32_t *handle = (uint32_t *)((uint8_t *)object + kinds[i].handle), mine;

		if (!object)
			continue;
		if (kinds[i].handle) {
			mine = *handle;
			*handle ^= 0x5a5a;
			expect_unknown(&kinds[i], object);
			*handle = mine;
		}
		assert_int_equal(kinds[i].destroy(object), 0);
	}
}

vt_test(another_context_is_no_such_object)
{
	struct ibv_context *other = vt_made(ibv_open_device(vt.ctx->device));
	static uint8_t nowhere[4096];
	struct scene s;

	scene_open(&s);
	for (int i = 0; i < KINDS; i++) {
		void *object = make(&s, &kinds[i]), *mine;
		void **context = (void **)((uint8_t *)object + kinds[i].context);

		if (!object)
			continue;
		if (kinds[i].destroy != destroy_context) {
			mine = *context;
			*context = other;
			expect_unknown(&kinds[i], object);
			for (int k = 0; k < 2 && !kinds[i].inlined; k++) {
				*context = k ? nowhere : NULL;
				expect_unknown(&kinds[i], object);
			}
			*context = mine;
		}
		assert_int_equal(kinds[i].destroy(object), 0);
	}
	scene_close(&s);
	assert_int_equal(ibv_close_device(other), 0);
}

/* Its memory is not looked at, so nothing but the address has to be there. */
scene_test(what_is_destroyed_is_no_such_object)
{
	for (int i = 0; i < KINDS; i++) {
		void *object = make(s, &kinds[i]);

		if (!object)
			continue;
		assert_int_equal(kinds[i].destroy(object), 0);
		for (int k = 0; k < 2 && !kinds[i].inlined; k++)
			expect_unknown(&kinds[i], object);
	}
	for (int i = 0; i < KINDS; i++) {
		if (!kinds[i].inlined)
			expect_unknown(&kinds[i], s); /* never was one */
	}
}

/* What cannot be destroyed yet stays what it is. */
scene_test(what_is_in_use_stays_known)
{
	struct ibv_qp *qp;

	qp = make_qp(s);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(ibv_destroy_cq(s->cq), EBUSY);
		assert_int_equal(ibv_dealloc_pd(vt.pd), EBUSY);
	}
	assert_int_equal(ibv_resize_cq(s->cq, 32), 0);
	assert_int_equal(ibv_destroy_qp(qp), 0);
}

/* The verbs that change an object, ask it, or make another with it. */
scene_test(no_control_verb_knows_it)
{
	struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_UD };
	struct ibv_srq_attr srq_attr = { .max_wr = 8 };
	struct ibv_ah_attr ah_attr = { .port_num = 1 };
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_ERR };
	union ibv_gid group = { .raw = { 0xff, 0x0e, [15] = 9 } };
	struct ibv_srq *srq;
	struct ibv_mr *mr;
	struct ibv_qp *qp;

	srq = make_srq(s);
	mr = make_mr(s);
	qp = make_qp(s);
	init.send_cq = init.recv_cq = s->cq;
	mr->handle++;
	qp->handle++;
	srq->handle++;
	s->cq->handle++;
	assert_int_equal(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, 0),
			 IBV_REREG_MR_ERR_INPUT);
	assert_int_equal(errno, ENOENT);
	assert_int_equal(ibv_modify_qp(qp, &attr, IBV_QP_STATE), ENOENT);
	assert_int_equal(ibv_query_qp(qp, &attr, IBV_QP_STATE, &init), ENOENT);
	assert_int_equal(ibv_attach_mcast(qp, &group, 0), ENOENT);
	assert_int_equal(ibv_detach_mcast(qp, &group, 0), ENOENT);
	assert_int_equal(ibv_modify_srq(srq, &srq_attr, IBV_SRQ_MAX_WR), ENOENT);
	assert_int_equal(ibv_query_srq(srq, &srq_attr), ENOENT);
	assert_int_equal(ibv_resize_cq(s->cq, 64), ENOENT);
	vt_refused(ENOENT, ibv_create_qp(vt.pd, &init));
	mr->handle--;
	qp->handle--;
	srq->handle--;
	s->cq->handle--;
	vt.pd->handle++;
	errno = 0;
	assert_null(make_mr(s));
	assert_null(make_mw(s));
	assert_null(make_srq(s));
	assert_null(make_qp(s));
	vt_refused(ENOENT, ibv_create_ah(vt.pd, &ah_attr));
	vt.pd->handle--;
	assert_int_equal(vt_state(qp), IBV_QPS_RESET);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	assert_int_equal(ibv_destroy_qp(qp), 0);
	assert_int_equal(ibv_destroy_srq(srq), 0);
}
