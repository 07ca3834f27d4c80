/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What is unusual and legal: `verbatim check` has nothing to say about any of it. The argument is
 * the name of one; without one, the names are listed.
 */
#include "corpus.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/wait.h>

enum { HUGE_BYTES = 2 << 20, PIECE = 64 };

static struct ibv_sge sge_of(const void *at, uint32_t bytes, const struct ibv_mr *mr)
{
	return (struct ibv_sge){.addr = (uintptr_t)at, .length = bytes, .lkey = mr->lkey};
}

/* A SEND of this memory into that, and both completions. */
static void exchange(struct pair *p, struct ibv_sge from, struct ibv_sge to)
{
	struct ibv_recv_wr recv = {.wr_id = 1, .sg_list = &to, .num_sge = 1}, *recv_bad;
	struct ibv_send_wr send = {.wr_id = 2,
				   .sg_list = &from,
				   .num_sge = 1,
				   .opcode = IBV_WR_SEND,
				   .send_flags = IBV_SEND_SIGNALED},
			   *bad;

	none(ibv_post_recv(p->b.qp, &recv, &recv_bad));
	none(ibv_post_send(p->a.qp, &send, &bad));
	taken(p->a.cq);
	taken(p->b.cq);
}

/* An inline SEND is done with its data when it is posted; one in four is signaled. */
static void inline_data(void)
{
	struct pair p = {.inline_bytes = PIECE};
	char local[PIECE];

	pair_open(&p);
	for (unsigned i = 0; i < 16; i++)
		recv_post(&p.b, i, i * PIECE, PIECE);
	for (unsigned i = 0; i < 16; i++) {
		struct ibv_sge sge = {.addr = (uintptr_t)local, .length = PIECE};
		struct ibv_send_wr wr = {.wr_id = i,
					 .sg_list = &sge,
					 .num_sge = 1,
					 .opcode = IBV_WR_SEND,
					 .send_flags = IBV_SEND_INLINE},
				   *bad;

		memset(local, (int)i, PIECE);
		wr.send_flags |= i % 4 == 3 ? IBV_SEND_SIGNALED : 0;
		none(ibv_post_send(p.a.qp, &wr, &bad));
		memset(local, 0xff, PIECE);
		if (i % 4 == 3)
			taken(p.a.cq);
	}
	for (unsigned i = 0; i < 16; i++)
		taken(p.b.cq);
	pair_close(&p);
}

/* Batches in which the last is signaled, and all have one wr_id. */
static void one_wr_id(void)
{
	struct pair p = {.rights = ALL_RIGHTS};

	pair_open(&p);
	for (unsigned i = 0; i < 16; i++)
		rdma_post(&p.a, &p.b, IBV_WR_RDMA_WRITE, 0, 0, PIECE, i * PIECE,
			  i % 8 == 7 ? IBV_SEND_SIGNALED : 0);
	taken(p.a.cq);
	taken(p.a.cq);
	pair_close(&p);
}

static void srq_post(struct pair *p, uint64_t place)
{
	struct ibv_sge sge = part(&p->b, (uint32_t)place * PIECE, PIECE);
	struct ibv_recv_wr wr = {.wr_id = place, .sg_list = &sge, .num_sge = 1}, *bad;

	none(ibv_post_srq_recv(p->srq, &wr, &bad));
}

/* Several QPs, an SRQ, a CQ. When the QPs are gone, so may be the memory, before the SRQ. */
static void srq_of_many(void)
{
	struct ibv_srq_init_attr init = {.attr = {.max_wr = 32, .max_sge = 1}};
	struct pair p = {.rights = IBV_ACCESS_LOCAL_WRITE};
	struct ibv_qp_init_attr attr;
	struct end more = {0};
	struct ibv_qp *qp;
	struct ibv_wc wc;

	device_open(&p);
	must(p.srq = ibv_create_srq(p.pd, &init));
	end_make(&p, &p.a, NULL, NULL);
	end_make(&p, &p.b, NULL, p.srq);
	end_make(&p, &more, NULL, NULL);
	attr = qp_attr(&p, p.b.cq);
	attr.srq = p.srq;
	must(qp = ibv_create_qp(p.pd, &attr));
	qp_init(qp);
	qp_connect(&p, p.b.qp, p.a.qp);
	qp_connect(&p, p.a.qp, p.b.qp);
	qp_connect(&p, qp, more.qp);
	qp_connect(&p, more.qp, qp);
	for (unsigned i = 0; i < 32; i++)
		srq_post(&p, i);
	for (unsigned i = 0; i < 40; i++) {
		send_post(&p.a, i, 0, PIECE, IBV_SEND_SIGNALED);
		send_post(&more, i, 0, PIECE, IBV_SEND_SIGNALED);
		taken(p.a.cq);
		taken(more.cq);
		for (unsigned n = 0; n < 2; n++) {
			wc = take(p.b.cq);
			memset(p.b.memory + wc.wr_id * PIECE, (int)i, PIECE);
			srq_post(&p, wc.wr_id);
		}
	}
	none(ibv_destroy_qp(qp));
	end_close(&more);
	pair_close(&p);
}

/* No SGE, one of no octets, and a WRITE of nothing to nowhere. */
static void no_octets(void)
{
	struct ibv_sge sge[2] = {{0}};
	struct ibv_send_wr wr = {.opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED}, *bad;
	struct ibv_recv_wr recv = {.wr_id = 1}, *recv_bad;
	struct pair p = {0};

	pair_open(&p);
	none(ibv_post_recv(p.b.qp, &recv, &recv_bad));
	recv_post(&p.b, 2, 0, 0);
	recv_post(&p.b, 3, 0, PIECE);
	none(ibv_post_send(p.a.qp, &wr, &bad));
	wr.sg_list = sge;
	wr.num_sge = 2;
	sge[1] = part(&p.a, 0, 0);
	none(ibv_post_send(p.a.qp, &wr, &bad));
	sge[1].length = PIECE;
	none(ibv_post_send(p.a.qp, &wr, &bad));
	wr.opcode = IBV_WR_RDMA_WRITE;
	wr.num_sge = 0;
	none(ibv_post_send(p.a.qp, &wr, &bad));
	for (unsigned i = 0; i < 4; i++)
		taken(p.a.cq);
	for (unsigned i = 0; i < 3; i++)
		taken(p.b.cq);
	pair_close(&p);
}

static void window(void)
{
	struct pair p = {.rights = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND |
				   IBV_ACCESS_REMOTE_WRITE};
	struct ibv_send_wr bind = {.opcode = IBV_WR_BIND_MW, .send_flags = IBV_SEND_SIGNALED};
	struct ibv_send_wr end = {.opcode = IBV_WR_LOCAL_INV, .send_flags = IBV_SEND_SIGNALED};
	struct ibv_send_wr wr = {.opcode = IBV_WR_RDMA_WRITE, .send_flags = IBV_SEND_SIGNALED},
			   *bad;
	struct ibv_sge sge;
	struct ibv_mw *mw;

	pair_open(&p);
	must(mw = ibv_alloc_mw(p.pd, IBV_MW_TYPE_2));
	bind.bind_mw.mw = mw;
	bind.bind_mw.rkey = wr.wr.rdma.rkey = end.invalidate_rkey = ibv_inc_rkey(mw->rkey);
	bind.bind_mw.bind_info = (struct ibv_mw_bind_info){p.b.mr, (uintptr_t)p.b.memory, 4096,
							   IBV_ACCESS_REMOTE_WRITE};
	none(ibv_post_send(p.b.qp, &bind, &bad));
	taken(p.b.cq);
	sge = part(&p.a, 0, PIECE);
	wr.sg_list = &sge;
	wr.num_sge = 1;
	wr.wr.rdma.remote_addr = (uintptr_t)p.b.memory;
	none(ibv_post_send(p.a.qp, &wr, &bad));
	taken(p.a.cq);
	none(ibv_post_send(p.b.qp, &end, &bad));
	taken(p.b.cq);
	none(ibv_dealloc_mw(mw));
	pair_close(&p);
}

/* All there is, one region for it; pages go and come again. */
static void on_demand(void)
{
	struct pair p = {0};
	struct ibv_mr *all;
	char *memory;

	pair_open(&p);
	must(all = ibv_reg_mr(p.pd, NULL, SIZE_MAX, IBV_ACCESS_ON_DEMAND | IBV_ACCESS_LOCAL_WRITE));
	memory = mmap(NULL, HUGE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	must(memory != MAP_FAILED);
	for (unsigned i = 0; i < 8; i++) {
		memset(memory, (int)i, 4096);
		exchange(&p, sge_of(memory, 4096, all), sge_of(memory + 65536, 4096, all));
		none(madvise(memory, HUGE_BYTES, MADV_DONTNEED));
	}
	none(munmap(memory, HUGE_BYTES));
	none(ibv_dereg_mr(all));
	pair_close(&p);
}

/* From a file that is mapped twice, once for reading only, into a huge page if there is one. */
static void files(void)
{
	int flags = MAP_PRIVATE | MAP_ANONYMOUS, fd = memfd_create("right", 0);
	struct ibv_mr *file_mr, *huge_mr;
	char *file, *view, *huge;
	struct pair p = {0};

	pair_open(&p);
	none(ftruncate(fd, 65536));
	file = mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	view = mmap(NULL, 65536, PROT_READ, MAP_SHARED, fd, 0);
	huge = mmap(NULL, HUGE_BYTES, PROT_READ | PROT_WRITE, flags | MAP_HUGETLB, -1, 0);
	if (huge == MAP_FAILED)
		huge = mmap(NULL, HUGE_BYTES, PROT_READ | PROT_WRITE, flags, -1, 0);
	must(file_mr = ibv_reg_mr(p.pd, view, 65536, 0));
	must(huge_mr = ibv_reg_mr(p.pd, huge, HUGE_BYTES, IBV_ACCESS_LOCAL_WRITE));
	for (unsigned i = 0; i < 8; i++) {
		memset(file, (int)i, 65536);
		exchange(&p, sge_of(view, 65536, file_mr), sge_of(huge, 65536, huge_mr));
		memset(huge, 0xff, 65536);
	}
	none(ibv_dereg_mr(file_mr));
	none(ibv_dereg_mr(huge_mr));
	munmap(file, 65536);
	munmap(view, 65536);
	munmap(huge, HUGE_BYTES);
	close(fd);
	pair_close(&p);
}

/* A child that only reads what its parent has, and one with a device of its own. */
static void children(void)
{
	struct pair p = {0}, own = {0};
	unsigned sum = 0;
	int status;

	none(ibv_fork_init());
	pair_open(&p);
	if (!fork()) {
		for (unsigned i = 0; i < BYTES; i++)
			sum += (unsigned char)p.a.memory[i];
		exit(sum != 0);
	}
	must(wait(&status) > 0);
	exchange(&p, part(&p.a, 0, PIECE), part(&p.b, 0, PIECE));
	if (!fork()) {
		pair_open(&own);
		exchange(&own, part(&own.a, 0, PIECE), part(&own.b, 0, PIECE));
		pair_close(&own);
		exit(0);
	}
	must(wait(&status) > 0);
	pair_close(&p);
}

/* Events are acknowledged once for all, and by then many completions are taken at a time. */
static void events_at_the_end(void)
{
	struct pair p = {.with_channel = true};
	unsigned events = 0, came = 0;
	struct ibv_wc wc[4];
	struct ibv_cq *cq;
	void *context;
	int got;

	pair_open(&p);
	for (unsigned i = 0; i < 16; i++)
		recv_post(&p.b, i, i * PIECE, PIECE);
	none(ibv_req_notify_cq(p.b.cq, 0));
	for (unsigned i = 0; i < 16; i++)
		send_post(&p.a, i, 0, PIECE, i == 15 ? IBV_SEND_SIGNALED : 0);
	while (came < 16) {
		none(ibv_get_cq_event(p.channel, &cq, &context));
		events++;
		none(ibv_req_notify_cq(cq, 0));
		while ((got = ibv_poll_cq(cq, 4, wc)) > 0)
			came += (unsigned)got;
	}
	taken(p.a.cq);
	ibv_ack_cq_events(p.b.cq, events);
	pair_close(&p);
}

static void state_set(struct ibv_qp *qp, enum ibv_qp_state state)
{
	struct ibv_qp_attr attr = {.qp_state = state};

	none(ibv_modify_qp(qp, &attr, IBV_QP_STATE));
}

/* Drained by way of ERR, then reset, and connected again. */
static void drained(void)
{
	struct pair p = {0};

	pair_open(&p);
	for (unsigned i = 0; i < 8; i++)
		recv_post(&p.b, i, i * PIECE, PIECE);
	state_set(p.b.qp, IBV_QPS_ERR);
	state_set(p.a.qp, IBV_QPS_ERR);
	send_post(&p.a, 9, 0, PIECE, 0);
	take(p.a.cq);
	for (unsigned i = 0; i < 8; i++)
		take(p.b.cq);
	memset(p.b.memory, 1, BYTES);
	state_set(p.b.qp, IBV_QPS_RESET);
	state_set(p.a.qp, IBV_QPS_RESET);
	qp_init(p.a.qp);
	qp_init(p.b.qp);
	qp_connect(&p, p.b.qp, p.a.qp);
	qp_connect(&p, p.a.qp, p.b.qp);
	exchange(&p, part(&p.a, 0, PIECE), part(&p.b, 0, PIECE));
	pair_close(&p);
}

/* Receives are left when the QP goes; then their memory is used for something else. */
static void receives_left(void)
{
	struct pair p = {0};

	pair_open(&p);
	for (unsigned i = 0; i < 8; i++)
		recv_post(&p.b, i, i * PIECE, PIECE);
	none(ibv_destroy_qp(p.b.qp));
	p.b.qp = NULL;
	memset(p.b.memory, 1, BYTES);
	pair_close(&p);
}

/* The same octets read by many SENDs at a time, and registered twice. */
static void shared_source(void)
{
	struct pair p = {.rights = ALL_RIGHTS, .cqe = 4};
	struct ibv_mr *again;

	pair_open(&p);
	none(ibv_resize_cq(p.a.cq, 64));
	none(ibv_resize_cq(p.b.cq, 64));
	must(again = ibv_reg_mr(p.pd, p.a.memory, BYTES, 0));
	for (unsigned i = 0; i < 8; i++)
		recv_post(&p.b, i, i * 100, 100);
	for (unsigned i = 0; i < 8; i++)
		send_post(&p.a, i, 50, 100, IBV_SEND_SIGNALED);
	for (unsigned i = 0; i < 8; i++) {
		taken(p.a.cq);
		taken(p.b.cq);
	}
	none(ibv_dereg_mr(again));
	pair_close(&p);
}

static const struct {
	const char *name;
	void (*run)(void);
} all[] = {
#define ROW(name)           \
	{                   \
#name, name \
	}
	ROW(inline_data), ROW(one_wr_id),     ROW(srq_of_many),
	ROW(no_octets),	  ROW(window),	      ROW(on_demand),
	ROW(files),	  ROW(children),      ROW(events_at_the_end),
	ROW(drained),	  ROW(receives_left), ROW(shared_source),
};

int main(int argc, char **argv)
{
	for (unsigned i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		if (argc < 2)
			puts(all[i].name);
		else if (!strcmp(argv[1], all[i].name))
			all[i].run();
	}
	return 0;
}
