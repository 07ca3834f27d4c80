/* SPDX-License-Identifier: BSD-2-Clause */
#include "peer.h"

#include <unistd.h>

/*
 * What goes from process to process, whichever way: every operation in sizes around what the ways
 * cut it into, queues that are full in both directions, memory that vanishes on the way.
 */


static const struct {
	enum ibv_wr_opcode op;
	int types; /* how many of vt_types[] */
	bool takes_recv;
} ops[] = {
	{ IBV_WR_SEND, 3, true },	 { IBV_WR_SEND_WITH_IMM, 3, true },
	{ IBV_WR_RDMA_WRITE, 1, false }, { IBV_WR_RDMA_WRITE_WITH_IMM, 2, true },
	{ IBV_WR_RDMA_READ, 1, false },
};
enum { OPS = VT_COUNT(ops), BYTES = 1 << 20, UD_BYTES_MAX = 4096, GRH = 40 };

/* What fits a slot of a ring (56 octets with the headers), pages, and pieces of 32 KiB. */
static const uint32_t sizes[] = {
	0,    4,    5,	  24,	 25,	28,    29,    36,    37,    40,	   41,	  44,
	45,   56,   57,	  4096,	 4097,	32767, 32768, 32769, 65536, 65537, 98304, 98305,
	BYTES - 1, BYTES,
};
enum { SIZES = VT_COUNT(sizes) };

static void one_message(struct vp_pair *p, unsigned op, uint32_t bytes)
{
	bool read = ops[op].op == IBV_WR_RDMA_READ;
	uint32_t grh = p->opt.type == IBV_QPT_UD ? GRH : 0;
	struct vt_wr w;

	if (read)
		vp_fill(p, bytes, bytes);
	else
		vt_fill(p->a.buf, bytes, bytes);
	if (ops[op].takes_recv)
		vp_recv(p, 7, 0, bytes + grh);
	vt_wr(&w, ops[op].op, &p->a, &p->b, bytes);
	w.wr.imm_data = htobe32(bytes);
	vt_done(&p->a, &w, IBV_WC_SUCCESS);
	if (ops[op].takes_recv) {
		struct ibv_wc wc = vp_expect(p, 7, IBV_WC_SUCCESS);

		assert_int_equal(wc.byte_len, bytes + grh);
		if (wc.wc_flags & IBV_WC_WITH_IMM)
			assert_int_equal(be32toh(wc.imm_data), bytes);
	}
	assert_true(read ? vt_is_filled(p->a.buf, bytes, bytes)
			 : vp_is_filled(p, grh, bytes, bytes));
}

vp_peer_test(every_operation_crosses)
{
	for (int type = 0; type < 3; type++) {
		struct vt_options opt = { .type = vt_types[type], .bytes = BYTES + GRH,
					  .mtu = IBV_MTU_4096 };
		uint32_t max = vt_types[type] == IBV_QPT_UD ? UD_BYTES_MAX : BYTES;
		struct vp_pair p;

		/* Over the wire UC has nobody who sends again. */
		if (vt_types[type] == IBV_QPT_UC)
			max = 65537;
		vp_pair_open(&p, peer, &opt);
		for (unsigned op = 0; op < OPS; op++)
			for (int i = 0; i < SIZES; i++)
				if (type < ops[op].types && sizes[i] <= max)
					one_message(&p, op, sizes[i]);
		vt_expect_none(p.a.cq);
		vp_expect_none(&p);
		vp_pair_close(&p);
	}
}

/* Shared receive queues on the far side, and messages of several pieces. */
vp_peer_test(shared_receive_queues_cross)
{
	struct vt_options opt = { .type = IBV_QPT_RC, .srq = true };
	struct vp_pair p[3];

	for (int i = 0; i < 3; i++) {
		vp_pair_open(&p[i], peer, &opt);
		for (uint64_t id = 0; id < 5; id++)
			vp_recv(&p[i], id, 0, 60000);
	}
	for (uint64_t id = 0; id < 5; id++)
		for (int i = 0; i < 3; i++) {
			vt_fill(p[i].a.buf, 8, (unsigned)id);
			vt_send(&p[i].a, &p[i].b, id);
			vt_expect(p[i].a.cq, id, IBV_WC_SUCCESS);
			vp_expect(&p[i], id, IBV_WC_SUCCESS);
			assert_true(vp_is_filled(&p[i], 0, 8, (unsigned)id));
		}
	for (int i = 0; i < 3; i++)
		vp_pair_close(&p[i]);
}

/* ibv_post_send(3), IBV_SEND_INLINE: the buffer may be used again at once. */
vp_pair_test(inline_data_may_be_overwritten, NULL, &(struct vt_options){ .inline_bytes = 1024 })
{
	static const uint32_t bytes[] = { 0, 1, 28, 44, 45, 56, 1023, 1024 };
	struct vt_wr w;

	for (unsigned i = 0; i < 8; i++) {
		for (int write = 0; write < 2; write++) {
			vp_recv(p, 1, 0, 1024);
			vt_fill(p->a.buf, bytes[i], i);
			vt_wr(&w, write ? IBV_WR_RDMA_WRITE_WITH_IMM : IBV_WR_SEND, &p->a, &p->b,
			      bytes[i]);
			w.wr.send_flags |= IBV_SEND_INLINE;
			w.sge.lkey = 0; /* not looked at */
			vt_post(&p->a, &w);
			memset(p->a.buf, 0xee, 1024);
			vt_expect(p->a.cq, 1, IBV_WC_SUCCESS);
			vp_expect(p, 1, IBV_WC_SUCCESS);
			assert_true(vp_is_filled(p, 0, bytes[i], i));
		}
	}
}

/* --- full --- */

enum { QPS = 16, DEPTH = 64, LARGE = 100000 };

static void pairs_open(struct vp_pair *p, struct vp *peer, size_t bytes)
{
	struct vt_options opt = { .for_ever = true, .bytes = bytes, .recv_wr = DEPTH,
				  .send_wr = DEPTH };

	for (unsigned i = 0; i < QPS; i++)
		vp_pair_open(&p[i], peer, &opt);
}

static void post(struct vp_pair *p, enum ibv_wr_opcode op, uint64_t wr_id, uint32_t bytes)
{
	struct vt_wr w;

	vt_wr(&w, op, &p->a, &p->b, bytes);
	w.wr.wr_id = wr_id;
	vt_post(&p->a, &w);
}

/* 100 MB for a process that stands still; others go on meanwhile, and nothing is lost. */
vp_test(a_full_ring_holds_up_nobody_else)
{
	struct vp *still = vp_start(NULL), *other = vp_start(NULL);
	struct vp_pair p[QPS], q;

	pairs_open(p, still, LARGE);
	vp_pair_open(&q, other, NULL);
	for (unsigned i = 0; i < QPS; i++) {
		vt_fill(p[i].a.buf, LARGE, i);
		for (uint64_t id = 0; id < DEPTH; id++)
			vp_recv(&p[i], id, 0, LARGE);
	}
	vp_stop(still);
	for (uint64_t id = 0; id < DEPTH; id++)
		for (unsigned i = 0; i < QPS; i++)
			post(&p[i], IBV_WR_SEND, id, LARGE);
	for (unsigned n = 0; n < 100; n++)
		vp_exchange(&q, 50000, n);
	for (unsigned i = 0; i < QPS; i++) {
		struct ibv_wc wc;

		assert_int_equal(ibv_poll_cq(p[i].a.cq, 1, &wc), 0);
	}
	vp_go_on(still);
	for (unsigned i = 0; i < QPS; i++) {
		for (uint64_t id = 0; id < DEPTH; id++) {
			vt_expect(p[i].a.cq, id, IBV_WC_SUCCESS);
			vp_expect(&p[i], id, IBV_WC_SUCCESS);
		}
		assert_true(vp_is_filled(&p[i], 0, LARGE, i));
		vp_pair_close(&p[i]);
	}
	vp_pair_close(&q);
	vp_end(still);
	vp_end(other);
}

/* Both rings are full of data, and acknowledgements and answers have to get through as well. */
vp_peer_test(both_ways_full)
{
	static const enum ibv_wr_opcode kinds[] = { IBV_WR_SEND, IBV_WR_RDMA_WRITE,
						    IBV_WR_RDMA_READ };
	struct vp_pair p[QPS];

	pairs_open(p, peer, 2 * LARGE);
	for (unsigned kind = 0; kind < 3; kind++) {
		struct vp_order order = { .what = VP_SEND, .op = kinds[kind], .bytes = LARGE };
		bool send = kinds[kind] == IBV_WR_SEND;

		for (unsigned i = 0; i < QPS; i++) {
			for (uint64_t id = 0; id < 20 && send; id++) {
				vp_recv(&p[i], id, LARGE, LARGE);
				assert_int_equal(vt_recv_at(&p[i].a, id, LARGE, LARGE), 0);
			}
			order.end = p[i].end;
			order.addr = (uintptr_t)p[i].a.buf + LARGE;
			order.rkey = p[i].a.mr->rkey;
			for (order.wr_id = 100; order.wr_id < 120; order.wr_id++) {
				assert_int_equal(vp_do(peer, &order).rc, 0);
				post(&p[i], kinds[kind], order.wr_id, LARGE);
			}
		}
		for (unsigned i = 0; i < QPS; i++) {
			struct vp_order poll = { .what = VP_POLL, .end = p[i].end,
						 .count = VT_WAIT_MS };

			for (unsigned n = 0; n < (send ? 40 : 20); n++) {
				struct vp_answer there = vp_do(peer, &poll);
				struct ibv_wc here;

				assert_true(there.got && vt_poll_ms(p[i].a.cq, &here, VT_WAIT_MS));
				assert_int_equal(there.wc.status, IBV_WC_SUCCESS);
				assert_int_equal(here.status, IBV_WC_SUCCESS);
			}
		}
	}
	for (unsigned i = 0; i < QPS; i++)
		vp_pair_close(&p[i]);
}

/* --- memory that vanishes --- */

enum { HOLE_AT = 40000, HOLE_BYTES = 20000 };

/* Of the receiver, of whoever is written to or read from: it says so, and only this QP fails. */
vp_test(memory_vanishes_there)
{
	static const enum ibv_wr_opcode kinds[] = { IBV_WR_SEND, IBV_WR_RDMA_WRITE,
						    IBV_WR_RDMA_READ };
	struct vt_options opt = { .bytes = 200000 };
	struct vp *peer = vp_start(NULL);
	struct vp_pair p, bystander;

	vp_pair_open(&bystander, peer, NULL);
	for (unsigned i = 0; i < 6; i++) {
		uint32_t bytes = i < 3 ? 100000 : 8;
		struct vp_order hole = { .what = VP_HOLE, .offset = HOLE_AT, .bytes = HOLE_BYTES };
		struct vt_wr w;

		vp_pair_open(&p, peer, &opt);
		hole.end = p.end;
		hole.addr = vp_do(peer, &hole).addr;
		if (i < 3)
			hole.addr = (uintptr_t)p.b.buf;
		vp_recv(&p, 7, (size_t)(hole.addr - (uintptr_t)p.b.buf), bytes);
		vt_wr(&w, kinds[i % 3], &p.a, &p.b, bytes);
		if (kinds[i % 3] != IBV_WR_SEND)
			w.wr.wr.rdma.remote_addr = hole.addr;
		vt_done(&p.a, &w, IBV_WC_REM_OP_ERR);
		vp_expect(&p, 7, kinds[i % 3] == IBV_WR_SEND ? IBV_WC_LOC_PROT_ERR
							     : IBV_WC_WR_FLUSH_ERR);
		vp_exchange(&bystander, 60000, i);
		vp_pair_close(&p);
	}
	vp_pair_close(&bystander);
	vp_kill(peer); /* it has events that nobody took */
}

/* Of the sender's, before or in the middle of a message; and of whoever has asked for data. */
vp_peer_test(memory_vanishes_here)
{
	struct vt_options opt = { .bytes = 200000 };
	struct vp_pair p, bystander;
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), hole;

	vt_faults_to_library();
	vp_pair_open(&bystander, peer, NULL);
	for (unsigned i = 0; i < 6; i++) {
		uint32_t bytes = i < 3 ? 100000 : 8;
		static const enum ibv_wr_opcode kinds[] = { IBV_WR_SEND, IBV_WR_RDMA_WRITE,
							    IBV_WR_RDMA_READ };
		struct vt_wr w;

		vp_pair_open(&p, peer, &opt);
		hole = ((uintptr_t)p.a.buf + HOLE_AT) & ~(page - 1);
		vp_recv(&p, 7, 0, bytes);
		vt_hole((void *)hole, 4 * page);
		vt_wr(&w, kinds[i % 3], &p.a, &p.b, bytes);
		if (bytes == 8)
			w.sge.addr = hole;
		vt_done(&p.a, &w, IBV_WC_LOC_PROT_ERR);
		assert_int_equal(vt_state(p.a.qp), IBV_QPS_ERR);
		vp_expect_none(&p);
		vp_exchange(&bystander, 60000, i);
		vt_hole_mend((void *)hole, 4 * page);
		vp_pair_close(&p);
	}
	vp_pair_close(&bystander);
}
