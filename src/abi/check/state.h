/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_ABI_CHECK_STATE_H
#define VB_ABI_CHECK_STATE_H

/*
 * What the checker knows: a record of each object, with the place where it was made, and of each
 * request that the application may not know to be completed. Inside abi/check.
 *
 * All is under one lock, which is never held while the NIC is called. Requests of one queue are
 * recorded in the order of their posting: `order` of the queue is held around record and post.
 */

#include <pthread.h>
#include <sys/queue.h>
#include <sys/types.h>

#include "abi/verbs/known.h"
#include "nic/mem/mem.h"
#include "nic/data/qp.h"
#include "nic/queue/cq.h"
#include "nic/queue/srq.h"
#include "run/process/flaw.h"

/* An SGE of a request: where its memory is, and what was in it, in blocks. */
struct vb_check_piece {
	uint8_t *at; /* NULL: not known, or not looked at */
	uint32_t bytes, lkey;
	uint32_t block_bytes;
	uint32_t *sums; /* one for each block; NULL: the content is not watched */
	bool paged;	/* mapped memory is not needed: on-demand paging */
};

struct vb_check_queue;

struct vb_check_request {
	TAILQ_ENTRY(vb_check_request) link; /* in its queue */
	TAILQ_ENTRY(vb_check_request) all;  /* of all queues */
	struct vb_check_queue *queue;
	uint64_t wr_id;
	const void *site;
	uint32_t position; /* of a receive: in the NIC's queue */
	enum ibv_wr_opcode opcode; /* of a send */
	bool signaled;
	bool placed;  /* of a receive: position is known */
	bool writes;  /* the NIC writes to its memory */
	bool unanswered; /* a datagram, and nothing was received since */
	bool shared;  /* its memory is also another's in flight */
	bool fenced;  /* what is before it in its queue is done when it begins */
	bool filled;  /* its data is the result of a request before it */
	bool pages_closed; /* --pages: some of its pages are forbidden to the program */
	uint32_t count;
	struct vb_check_piece piece[];
};

struct vb_check_object;

TAILQ_HEAD(vb_check_requests, vb_check_request);

struct vb_check_queue {
	struct vb_check_requests requests;
	struct vb_check_object *owner; /* QP or SRQ */
	pthread_mutex_t order;
	bool is_recv;
	uint32_t count;	     /* in flight */
	uint32_t signaled;   /* of these */
	uint32_t unsignaled; /* at the end, without a signaled one behind */
	uint32_t distinct;   /* signaled ones whose wr_id no other in flight had */
	bool repeats;	     /* wr_ids are no names here */
	uint32_t late_told;  /* of vb_qp.recv.late */
};

/* A CQ's. */
struct vb_check_cq {
	struct vb_check_object *srq[8]; /* whose receives may complete into it */
	unsigned srqs;
	uint32_t can_complete; /* beside those of srq */
	bool too_small;	       /* that was said */
	uint32_t events_taken;
	pid_t taken_by;	       /* the last event */
	const void *armed_at;  /* not polled since; NULL: it was */
	bool armed_late;       /* something was in it then */
};

/* What is looked up of a region, which its owner may be about to free. */
struct vb_check_region {
	uint32_t lkey;
	unsigned access;
	uint64_t iova, bytes;
	uint8_t *base; /* NULL: no memory that the program can touch */
};

struct vb_check_object {
	struct vb_check_object *next;
	LIST_ENTRY(vb_check_object) all;
	enum vb_known_kind kind;
	void *object;
	const void *site;
	bool ours;	/* not the application's */
	unsigned inside; /* threads in calls that use it */
	pid_t inside_last;
	const void *inside_site;
	unsigned holders; /* of this record */
	bool gone;
	struct vb_check_queue send, recv; /* QP; SRQ: recv */
	struct vb_check_cq cq;
	struct vb_check_region region;
	pid_t event_by; /* QP, SRQ: who took its last asynchronous event */
	uint32_t qps;	/* SRQ: that receive from it */
};

LIST_HEAD(vb_check_objects, vb_check_object);

struct vb_check_state {
	pthread_mutex_t lock;
	struct vb_check_objects objects;
	struct vb_check_requests requests;
	uint32_t unanswered; /* requests */
	bool poison, pages;
};
extern struct vb_check_state vb_checker; /* objects.c */

#endif
