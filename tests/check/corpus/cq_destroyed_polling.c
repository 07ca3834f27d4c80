/* SPDX-License-Identifier: BSD-2-Clause */
/* Destroys a CQ while a thread is between ibv_start_poll and ibv_end_poll. */
#include "../corpus.h"

static pthread_barrier_t polled, destroyed;
static struct ibv_cq_ex *ex;
static bool ends;

static void *poller(void *arg)
{
	struct ibv_poll_cq_attr attr = {.comp_mask = 0};

	while (ibv_start_poll(ex, &attr))
		;
	if (ends)
		ibv_end_poll(ex);
	pthread_barrier_wait(&polled);
	/* The other would end its poll here. */
	pthread_barrier_wait(&destroyed);
	return arg;
}

int main(int argc, char **argv)
{
	struct pair p = {0};
	bool ok = argc > 1;
	struct ibv_cq_init_attr_ex init = {.cqe = 16};
	struct ibv_qp_init_attr attr;
	pthread_t thread;

	pthread_barrier_init(&polled, NULL, 2);
	pthread_barrier_init(&destroyed, NULL, 2);

	p.cqe = 1;
	device_open(&p);
	must(ex = ibv_create_cq_ex(p.verbs, &init));
	attr = qp_attr(&p, ibv_cq_ex_to_cq(ex));
	end_make(&p, &p.a, NULL, NULL);
	end_make(&p, &p.b, NULL, NULL);
	none(ibv_destroy_qp(p.a.qp));
	must(p.a.qp = ibv_create_qp(p.pd, &attr));
	qp_init(p.a.qp);
	qp_connect(&p, p.b.qp, p.a.qp);
	qp_connect(&p, p.a.qp, p.b.qp);
	recv_post(&p.b, 1, 0, 64);
	send_post(&p.a, 2, 0, 8, IBV_SEND_SIGNALED);
	taken(p.b.cq);
	ends = ok;
	none(pthread_create(&thread, NULL, poller, NULL));
	pthread_barrier_wait(&polled);
	none(ibv_destroy_qp(p.a.qp));
	p.a.qp = NULL;
	none(ibv_destroy_cq(ibv_cq_ex_to_cq(ex))); /* FLAW: destroyed-in-use */
	pthread_barrier_wait(&destroyed);
	none(pthread_join(thread, NULL));
	pair_close(&p);
	return argv == NULL;
}
