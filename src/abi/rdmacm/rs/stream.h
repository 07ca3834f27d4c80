/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_ABI_RDMACM_RS_STREAM_H
#define VB_ABI_RDMACM_RS_STREAM_H

/*
 * Stream rsockets: what there is of one, and its sending and receiving. connect.h makes the
 * connection, endpoint.h its QP and buffers, flow.h looks after completions and credits.
 *
 * All of it is guarded by lock, which nobody waits or copies much with. One call at a time sends
 * (sending) and one receives (receiving): what they have begun stays theirs while lock is dropped.
 */

#include <pthread.h>
#include <rdma/rdma_cma.h>

#include "abi/rdmacm/rs/socket.h"
#include "wire/rs.h"

/* In the order of a connection's life; connecting is all from RESOLVING_ADDR to ACCEPTING. */
enum vb_rs_phase {
	VB_RS_IDLE,
	VB_RS_LISTENING,
	VB_RS_DEAF,	/* it has listened */
	VB_RS_RESOLVING_ADDR,
	VB_RS_RESOLVING_ROUTE,
	VB_RS_CONNECTING,
	VB_RS_ACCEPTING,
	VB_RS_CONNECTED,
	VB_RS_OVER,	/* the peer has gone, or we have */
	VB_RS_REFUSED,	/* there was never a connection */
	VB_RS_BROKEN,	/* the connection was lost */
};

/* Messages under way that need no credit of the peer's: its receives are more by so many. */
#define VB_RS_CONTROLS 4

/* What goes out. */
struct vb_rs_out {
	uint8_t *buffer; /* a ring, and behind it places for entries: one for each control */
	struct ibv_mr *mr;
	uint32_t bytes, at, free;
	unsigned wrs_free; /* places of the send queue, but for controls */
	unsigned controls; /* of them, under way */
	unsigned control_next;
	uint16_t sent, may_send; /* data messages; equal: no credit */
	uint8_t *targets;	 /* where the peer tells its pieces and maps */
	struct ibv_mr *targets_mr;
	struct vb_rs_area piece; /* where to write next; length 0: nowhere */
	unsigned target_next;	 /* which entry tells the one after it */
};

/* What comes in. */
struct vb_rs_in {
	uint8_t *buffer; /* a ring of two halves, each of which is a piece */
	struct ibv_mr *mr;
	uint32_t bytes, at, ready;
	uint32_t spent;	  /* octets that have been read, or never filled, and not been told again */
	uint32_t told_at; /* the half that is told next */
	uint16_t received, credit_due; /* data messages; when the peer hears of new credits */
	struct vb_rs_area peer_targets, peer_maps;
	unsigned peer_target_next;
	bool swapped;
};

struct vb_rs_mapping;

struct vb_rs_stream {
	struct vb_rs rs;
	pthread_mutex_t setting_up; /* one goes on with the connection */
	pthread_mutex_t lock;
	pthread_cond_t turned; /* whoever slept has looked, sent or received */
	bool sending, receiving;
	struct rdma_cm_id *id;
	enum vb_rs_phase phase;
	bool readable, writable;
	bool is_answer_due; /* connect() has not said yet how it went */
	void *route; /* RDMA_ROUTE, until it is used */
	socklen_t route_bytes;
	/* endpoint.c */
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq;
	unsigned cq_events;
	/* flow.c */
	bool armed, asleep;
	unsigned idle_looks;
	struct vb_rs_watches watches;
	struct vb_rs_out out;
	struct vb_rs_in in;
	struct { /* keepalive.c */
		TAILQ_ENTRY(vb_rs_stream) link;
		uint64_t due_ns;
		bool is_on;
	} keepalive;
	/* iomap.c; under sending */
	LIST_HEAD(, vb_rs_mapping) mappings;
	bool has_news_of_maps;
};

static inline struct vb_rs_stream *vb_rs_stream_of(struct vb_rs *rs)
{
	return (struct vb_rs_stream *)rs;
}

extern const struct vb_rs_type vb_rs_stream_type;

/* domain: AF_INET or AF_INET6. 0 or an errno. */
int vb_rs_stream_make(int domain, struct vb_rs **made);

/* Of a request that the listener's application has fetched. NULL: no memory. */
struct vb_rs_stream *vb_rs_stream_wrap(struct rdma_cm_id *id, const struct vb_rs *listener);

/* Nobody knows it any more. */
void vb_rs_stream_free(struct vb_rs_stream *s);

/*
 * A process that returns from main() closes its sockets: the peer reads all that was sent.
 * librspreload calls it where a process ends otherwise. In any state, also in a signal handler.
 */
__attribute__((destructor)) void vb_rs_leave(void);

/* Where data goes that is not for the peer's buffer. */
struct vb_rs_destination {
	uint64_t addr;
	uint32_t key;
	bool is_told; /* by this message */
	uint32_t msg;
};

/*
 * Waits until no other call does that (sending or receiving), and locks: 0. EAGAIN at end_ns;
 * nothing is locked then.
 */
int vb_rs_stream_begin(struct vb_rs_stream *s, bool *doing, uint64_t end_ns);
void vb_rs_stream_finish(struct vb_rs_stream *s, bool *doing);

/* Waits for room, and writes at most step octets of the data. Locked; sending. 0 or an errno. */
int vb_rs_stream_write(struct vb_rs_stream *s, struct vb_rs_data *data, uint32_t step,
		       const struct vb_rs_destination *to, uint64_t end_ns);

#endif
