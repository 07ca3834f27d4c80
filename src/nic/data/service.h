/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_NIC_SERVICE_H
#define VB_NIC_SERVICE_H

/*
 * What differs between the kinds of queue pairs: RC, UC, UD, both ends of XRC, both of DC, and
 * Ethernet. Each has one constant table in the folder of its service. A QP gets its table at
 * creation (nic/service/services.c), and only services ask for a QP's type. NULL or 0 in a table
 * means: as for RC.
 */

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "nic/data/migration.h"

struct vb_bare;
struct vb_batch;
struct vb_dc_attr;
struct vb_frame;
struct vb_from;
struct vb_lane;
struct vb_op_info;
struct vb_peer;
struct vb_post;
struct vb_pkt;
struct vb_qp;
struct vb_qp_extra;
struct vb_ring_frame;
struct vb_wqe;

/* Plain properties. */
enum vb_service_trait {
	/* Destinations and sources. */
	VB_CONNECTS = 1 << 0,	   /* one QP, which the application names on the way to RTR */
	VB_AIMS = 1 << 1,	   /* each work request names its QP or SRQ */
	VB_CHOOSES_PEER = 1 << 2,  /* the service, not the application, chooses the destination */
	VB_HEARS_ANYBODY = 1 << 3, /* only its own address of the address vector matters */
	VB_IS_REACHED = 1 << 4,	   /* the peer may access our memory directly (direct.h) */
	VB_GROUPS = 1 << 5,	   /* it may join multicast groups */
	/* Sending. */
	VB_MIGREQ = 1 << 6,	 /* packets tell whether the path has migrated (migrate.h) */
	VB_IS_ANSWERED = 1 << 7, /* what it sends is acknowledged */
	VB_DATAGRAMS = 1 << 8,	 /* a message is one packet */
	VB_WHOLE = 1 << 9,	 /* a work request is one step, whatever its size */
	VB_TSO = 1 << 10,	 /* large sends are segmented: IBV_QP_INIT_ATTR_MAX_TSO_HEADER */
	/* Receiving. */
	VB_RECEIVES = 1 << 11, /* it has a receive queue, or an SRQ and a receive CQ */
	VB_TAKES_SRQ = 1 << 12,
	VB_TAKES_TAGS = 1 << 13,    /* the SRQ may match tags */
	VB_PARCELS_RECV = 1 << 14,  /* small SENDs may come inside completions (parcel.h) ... */
	VB_PARCELS_FETCH = 1 << 15, /* ... and so may answers */
	/* States. */
	VB_RETURNS = 1 << 16, /* to RESET and to ERR, from any state */
	/* Posting. */
	VB_UD_ADDRESS = 1 << 17, /* ibv_wr_set_ud_addr() sets vb_post.dc */
	/* Completions. */
	VB_IS_COUNTED = 1 << 18, /* a completion counter can be attached (comp_cntr.h) */
};

/* A transition: the attributes that it requires, and those that it allows. */
struct vb_transition {
	enum ibv_qp_state from, to;
	int required, optional; /* enum ibv_qp_attr_mask, without IBV_QP_STATE */
};

/* Creation. All QPs begin alike; make and unmake add what only the service has. */
struct vb_service_create {
	uint32_t flags;	   /* IBV_QP_CREATE_* that are allowed */
	uint32_t dv_flags; /* enum vb_qp_dv_flag that have an effect */
	/*
	 * Replaces the checks of ibv_create_qp_ex(3): checks what is asked for, and reduces it to
	 * *plain. 0 or an errno.
	 */
	int (*check)(const struct ibv_qp_init_attr_ex *asked, const struct vb_dc_attr *dc,
		     struct ibv_qp_init_attr *plain);
	/* The QP has its number of send queue places already. 0 or an errno. */
	int (*make)(struct vb_qp *qp, const struct vb_qp_extra *extra);
	/* The size of a work request's data; bytes: for SGEs and inline data. */
	uint32_t (*room)(struct vb_qp *qp, uint32_t bytes);
	void (*leave)(struct vb_qp *qp);  /* packets no longer find it; not locked */
	void (*unmake)(struct vb_qp *qp); /* frees what make made, also if make failed */
};

/* Modification. */
struct vb_service_modify {
	const struct vb_transition *transitions;
	size_t rows;
	int not_done;		/* attributes that get EOPNOTSUPP, beside IBV_QP_CAP */
	uint32_t header_bytes;	/* of a packet's headers beyond those of RC */
	uint32_t fetches_min, fetches_max; /* bounds of max_rd_atomic; 0, 0: none */
	void (*reset)(struct vb_qp *qp);   /* the QP forgets its state; locked */
	/* Attributes that it has from RTR on, and the application cannot or need not set. */
	struct vb_preset {
		uint8_t rnr_retry, min_rnr_timer;
		unsigned access;
	} preset;
};

/* Receiving. QP held by the batch. */
struct vb_service_receive {
	uint8_t transport; /* enum vb_transport: of accepted packets */
	/* Checks a packet and gives it to the QP, instead of receive.c. */
	void (*take)(struct vb_batch *batch, struct vb_qp *qp, const struct vb_from *from,
		     const struct vb_pkt *pkt, const struct vb_op_info *info);
	/*
	 * The fast path for a packet from a ring, in the middle of a message, with more headers
	 * than the BTH. False: use take.
	 */
	bool (*middle)(struct vb_batch *batch, struct vb_qp *qp, const struct vb_lane *lane,
		       const struct vb_ring_frame *from);
	/* A request that was admitted (vb_batch_packet). */
	void (*request)(struct vb_batch *batch, struct vb_qp *qp, const struct vb_frame *frame,
			const struct vb_pkt *pkt, const struct vb_op_info *info);
	bool (*recv_take)(struct vb_qp *qp); /* takes a receive request of the SRQ into resp.recv */
};

/* Posting. */
enum {
	VB_POST_LATE = -1, /* queued nevertheless, and completed with LOC_QP_OP_ERR in its turn */
	VB_POST_ELSEWHERE = -2, /* the service has send queues of its own */
};

#define VB_POSTS(opcode) (1u << (opcode))

struct vb_service_post {
	uint32_t opcodes; /* VB_POSTS() of each opcode allowed */
	uint32_t late;	  /* of the others: VB_POST_LATE; the rest is EINVAL */
	unsigned flags;	  /* enum ibv_send_flags that only this service has */
	/* Is its destination valid? 0, EINVAL or VB_POST_LATE. post: from a builder, or NULL. */
	int (*check)(const struct vb_qp *qp, const struct ibv_send_wr *wr,
		     const struct vb_post *post);
	/* Stores the destination in the work request. */
	void (*address)(struct vb_qp *qp, struct vb_wqe *wqe, const struct ibv_send_wr *wr,
			const struct vb_post *post);
	/*
	 * Posts a list, or a batch of `count` from a builder, instead of post.c, to send queues
	 * that are not the QP's own. QP locked, RTS or beyond. As vb_qp_post_send(), _batch().
	 */
	int (*list)(struct vb_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad);
	int (*batch)(struct vb_qp *qp, const struct vb_post *posts, uint32_t count,
		     uint32_t *done);
	/* IBV_WR_TSO. 0 or an errno. */
	int (*tso_decode)(const struct vb_qp *qp, const struct ibv_send_wr *wr, struct vb_wqe *wqe);
};

/* Sending. QP locked. */
struct vb_service_send {
	/* Sends all that is owed and may be sent, in this state. NULL: by the ring or the wire. */
	void (*transmit)(struct vb_qp *qp, enum ibv_qp_state state);
	/* the service's own headers */
	void (*header_fill)(const struct vb_qp *qp, struct vb_pkt *pkt);
	uint16_t (*slot)(const struct vb_qp *qp); /* the slot to send from, if its QPN has none */
	/* VB_AIMS: is there a better way to the current destination by now? */
	bool (*could_do_better)(struct vb_qp *qp);
};

/* Failures and events. QP locked. */
struct vb_service_fail {
	/* What a work request that failed completes with. */
	void (*translate)(struct vb_qp *qp, enum ibv_wc_status *status);
	/* The oldest work request failed, and is completed. Returns true if the QP continues. */
	bool (*isolate)(struct vb_qp *qp);
	void (*fail)(struct vb_qp *qp); /* it is in the error state, before anything is flushed */
	/* Replaces the context's event queue. */
	void (*event)(struct vb_qp *qp, enum ibv_event_type type);
	/* The QP's timer, set by the service, has expired or is about to. */
	void (*on_time)(struct vb_qp *qp);
	/* A process of this host has ended. Rx right held, QP not locked. */
	void (*peer_gone)(struct vb_qp *qp, struct vb_peer *peer);
	/* For a QP whose path is stored elsewhere: the expected PSN; changes its path. */
	uint32_t (*psn_awaited)(const struct vb_qp *qp);
	void (*migrate)(struct vb_qp *qp, enum vb_migration_step step);
};

/* A QP that is not an object of its own here: what the application may do with it. */
struct vb_service_handle {
	int (*modify)(struct vb_qp *qp, const struct ibv_qp_attr *attr, int mask);
	int (*query)(struct vb_qp *qp, struct ibv_qp_attr *attr, struct ibv_qp_init_attr *init);
	void (*destroy)(struct vb_qp *qp);
};

struct vb_service {
	const char *name;  /* as users know it: "RC" */
	uint8_t offered;   /* enum vb_offered: a persona has to offer one of these; 0: none */
	uint8_t transport; /* enum vb_transport: of packets sent */
	uint32_t traits;   /* enum vb_service_trait */
	struct vb_service_create create;
	struct vb_service_modify modify;
	struct vb_service_post post;
	struct vb_service_send send;
	struct vb_service_receive receive;
	struct vb_service_fail fail;
	const struct vb_service_handle *handle; /* NULL: control handles these */
};

/* Returns 0, or EINVAL: no such transition, or other attributes. */
int vb_service_transition_check(const struct vb_service *service, enum ibv_qp_state from,
				enum ibv_qp_state to, int mask);

#endif
