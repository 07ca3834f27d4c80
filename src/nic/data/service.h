/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_NIC_SERVICE_H
#define VB_NIC_SERVICE_H

/*
 * What differs between the kinds of queue pairs: RC, UC, UD, both ends of XRC, both of DC, those of
 * Ethernet frames. Each has one constant table, in the folder of its service; a QP has its table
 * from creation on (nic/service/services.c), and nothing outside the services asks of what type it
 * is. What is NULL or 0 in a table is as with RC.
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
	/* Whom it sends to and hears. */
	VB_CONNECTS = 1 << 0,	   /* one QP, which the application names on the way to RTR */
	VB_AIMS = 1 << 1,	   /* each work request says which QP or SRQ it is for */
	VB_CHOOSES_PEER = 1 << 2,  /* the service, not the application, says whom it sends to */
	VB_HEARS_ANYBODY = 1 << 3, /* of the address vector only its own address counts */
	VB_IS_REACHED = 1 << 4,	   /* the peer may reach into our memory by itself (direct.h) */
	VB_GROUPS = 1 << 5,	   /* it may join multicast groups */
	/* What it sends. */
	VB_MIGREQ = 1 << 6,	 /* packets say so of a path that has migrated (migrate.h) */
	VB_IS_ANSWERED = 1 << 7, /* what it sends is acknowledged */
	VB_DATAGRAMS = 1 << 8,	 /* a message is one packet */
	VB_WHOLE = 1 << 9,	 /* a work request is one step, whatever its size */
	VB_TSO = 1 << 10,	 /* large sends are cut up: IBV_QP_INIT_ATTR_MAX_TSO_HEADER */
	/* What it receives with. */
	VB_RECEIVES = 1 << 11, /* it has a receive queue, or an SRQ and a receive CQ */
	VB_TAKES_SRQ = 1 << 12,
	VB_TAKES_TAGS = 1 << 13,    /* the SRQ may match tags */
	VB_PARCELS_RECV = 1 << 14,  /* small SENDs may come inside completions (parcel.h) ... */
	VB_PARCELS_FETCH = 1 << 15, /* ... and so may answers */
	/* Its states. */
	VB_RETURNS = 1 << 16, /* to RESET and to ERR, from any state */
};

/* Who goes from one state to another: what it must say, and what it may. */
struct vb_transition {
	enum ibv_qp_state from, to;
	int required, optional; /* enum ibv_qp_attr_mask, without IBV_QP_STATE */
};

/* Creation. QPs of these services begin alike; make and unmake do what is theirs alone. */
struct vb_service_create {
	uint32_t flags;	   /* IBV_QP_CREATE_* that it may have */
	uint32_t dv_flags; /* enum vb_qp_dv_flag that mean something */
	/*
	 * Instead of the checks of ibv_create_qp_ex(3): what is asked for, and, in *plain, what it
	 * comes down to. 0 or an errno.
	 */
	int (*check)(const struct ibv_qp_init_attr_ex *asked, const struct vb_dc_attr *dc,
		     struct ibv_qp_init_attr *plain);
	/* The QP has its number of places in the send queue. 0 or an errno. */
	int (*make)(struct vb_qp *qp, const struct vb_qp_extra *extra);
	/* The room for the data of a work request; bytes: for SGEs and inline data. */
	uint32_t (*room)(struct vb_qp *qp, uint32_t bytes);
	void (*leave)(struct vb_qp *qp);  /* no packet finds it any more; not locked */
	void (*unmake)(struct vb_qp *qp); /* frees what make made, also if that failed */
};

/* Modification. */
struct vb_service_modify {
	const struct vb_transition *transitions;
	size_t rows;
	int not_done;		/* attributes that get EOPNOTSUPP, beside IBV_QP_CAP */
	uint32_t header_bytes;	/* that a packet has beside those of RC */
	uint32_t fetches_min, fetches_max; /* bounds of max_rd_atomic; 0, 0: none */
	void (*reset)(struct vb_qp *qp);   /* the QP forgets all that it was about; locked */
};

/* What comes. QP held by the batch. */
struct vb_service_receive {
	uint8_t transport; /* enum vb_transport: of the packets that it admits */
	/* Judge a packet and give it to the QP, instead of what receive.c does. */
	void (*take)(struct vb_batch *batch, struct vb_qp *qp, const struct vb_from *from,
		     const struct vb_pkt *pkt, const struct vb_op_info *info);
	/*
	 * From a ring, with more headers than the BTH: the short way for a packet in the midst of a
	 * message. False: it is for take.
	 */
	bool (*middle)(struct vb_batch *batch, struct vb_qp *qp, const struct vb_lane *lane,
		       const struct vb_ring_frame *from);
	/* A request that was admitted (vb_batch_packet). */
	void (*request)(struct vb_batch *batch, struct vb_qp *qp, const struct vb_frame *frame,
			const struct vb_pkt *pkt, const struct vb_op_info *info);
	bool (*recv_take)(struct vb_qp *qp); /* a receive request of the SRQ, to resp.recv */
};

/* Posting. */
enum { VB_POST_LATE = -1 }; /* queued all the same, and completed with LOC_QP_OP_ERR in its turn */

#define VB_POSTS(opcode) (1u << (opcode))

struct vb_service_post {
	uint32_t opcodes; /* VB_POSTS() of each that may be posted */
	uint32_t late;	  /* of the others: VB_POST_LATE; the rest is EINVAL */
	unsigned flags;	  /* enum ibv_send_flags that mean something here only */
	/*
	 * Does it say well where it goes? 0, EINVAL or VB_POST_LATE. post: what a builder says, or
	 * NULL.
	 */
	int (*check)(const struct vb_qp *qp, const struct ibv_send_wr *wr,
		     const struct vb_post *post);
	/* Keep that with the work request. */
	void (*address)(struct vb_qp *qp, struct vb_wqe *wqe, const struct ibv_send_wr *wr,
			const struct vb_post *post);
	/* IBV_WR_TSO. 0 or an errno. */
	int (*tso_decode)(const struct vb_qp *qp, const struct ibv_send_wr *wr, struct vb_wqe *wqe);
};

/* What leaves. QP locked. */
struct vb_service_send {
	/* Send all that is owed and may be sent, in this state. NULL: by the ring or the wire. */
	void (*transmit)(struct vb_qp *qp, enum ibv_qp_state state);
	void (*header_fill)(const struct vb_qp *qp, struct vb_pkt *pkt); /* the service's own */
	uint16_t (*slot)(const struct vb_qp *qp); /* that it sends from, if its number has none */
	/* VB_AIMS: is there by now a better way to whom it sends already? */
	bool (*could_do_better)(struct vb_qp *qp);
};

/* What goes wrong, and what happens to a QP. QP locked. */
struct vb_service_fail {
	/* The oldest work request failed, and is completed. True: the QP goes on all the same. */
	bool (*isolate)(struct vb_qp *qp);
	void (*fail)(struct vb_qp *qp); /* it is in the error state, and nothing is flushed yet */
	/* Who hears of events, instead of the context's channel. */
	void (*event)(struct vb_qp *qp, enum ibv_event_type type);
	/* The time that the service set the QP's timer to has come, or about to. */
	void (*on_time)(struct vb_qp *qp);
	/* A process of this host has ended. Rx right held, QP not locked. */
	void (*peer_gone)(struct vb_qp *qp, struct vb_peer *peer);
	/* Of a QP whose path stands elsewhere: which PSN comes next, what becomes of the path. */
	uint32_t (*psn_awaited)(const struct vb_qp *qp);
	void (*migrate)(struct vb_qp *qp, enum vb_migration_step step);
};

/* A QP that is no object of its own here: all that the application may do with it. */
struct vb_service_handle {
	int (*modify)(struct vb_qp *qp, const struct ibv_qp_attr *attr, int mask);
	int (*query)(struct vb_qp *qp, struct ibv_qp_attr *attr, struct ibv_qp_init_attr *init);
	void (*destroy)(struct vb_qp *qp);
};

struct vb_service {
	uint8_t transport; /* enum vb_transport: of what it sends */
	uint32_t traits;   /* enum vb_service_trait */
	struct vb_service_create create;
	struct vb_service_modify modify;
	struct vb_service_post post;
	struct vb_service_send send;
	struct vb_service_receive receive;
	struct vb_service_fail fail;
	const struct vb_service_handle *handle; /* NULL: control does that */
};

/* 0, or EINVAL: no such transition, or with other attributes. */
int vb_service_transition_check(const struct vb_service *service, enum ibv_qp_state from,
				enum ibv_qp_state to, int mask);

#endif
