/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_NIC_DC_H
#define VB_NIC_DC_H

/*
 * Dynamically connected transport (docs/dc.md): initiators (DCI), whose work requests name their
 * destination, and targets (DCT), which many initiators use at once. Three kinds of struct vb_qp
 * have a struct vb_dc (SRD has the same three, service/srd/srd.h):
 *
 *  - an initiator (dc.c) is an RC requester that is connected to one target at a time;
 *  - a target (dc_target.c) only has the number that packets name, and takes none itself;
 *  - a context of a target is the RC responder for one initiator. It has no handle, packets find it
 *    only through its target, and it ends with that.
 */

#include "nic/data/qp_extra.h"
#include "nic/data/demux.h"
#include "nic/data/post.h"
#include "nic/service/dc/dc_attr.h"

/* Beyond enum ibv_mtu, in rings only: pieces of VB_LANE_MTU_BYTES. */
#define VB_DC_MTU_LARGE 7

/* Common to all, and what the DCETH of an initiator's or context's packet says. */
struct vb_dc {
	bool connected;
	uint8_t mtu_code; /* enum ibv_mtu, or VB_DC_MTU_LARGE */
	uint32_t start_psn;
	uint64_t connection;
};

/* The destination of a work request. Compared by memcmp(), so every bit is set. */
struct vb_dc_to {
	struct vb_path path;
	uint64_t key;
	uint32_t dctn;
	uint16_t stream;
};

struct vb_dci {
	struct vb_dc dc;
	struct vb_dc_to *to; /* one for each place in the send queue */
	struct vb_dc_to last; /* of the last work request posted ... */
	uint32_t run;	      /* ... and its vb_wqe.remote.target */
	uint64_t key;	  /* of the target that it is connected to */
	bool asked;	  /* the target has asked for a CONNECT, which was lost */
	uint64_t used_ns; /* when it last sent with nothing outstanding */
	/* SRD: the QP that it sends for, which CONNECT names; NULL: it is an initiator itself. */
	const struct vb_qp *owner;
	bool streams;
	unsigned errored, errored_max; /* streams in error; at the maximum the QP fails */
	uint16_t errored_id[1 << VB_DCI_ERRORED_LOG_MAX];
};

struct vb_dcx {
	struct vb_dc dc;
	struct vb_qp *target;
	struct vb_dcx *next; /* in its bucket; the target's lock */
	uint8_t gid[VB_GID_BYTES]; /* of the initiator; zeros: it uses shared memory */
	uint32_t dci;
	uint64_t used_ns;
	bool spare; /* qp.resp.recv was taken for a message that never ended */
	uint32_t src_qpn; /* SRD: the QP that its initiator sends for ... */
	uint8_t src_gid[VB_GID_BYTES]; /* ... the GID that it sends from ... */
	uint16_t src_ahn; /* ... and its number (core/ahn.h); 0: not looked up yet */
	struct vb_qp qp;
};

/* What differs between the targets of DC and of SRD. */
struct vb_dct_kind {
	const struct vb_service *context;
	uint8_t connect; /* enum vb_kind: what begins a connection */
	unsigned contexts_max;
	/* Does the target accept this CONNECT? */
	bool (*admits)(const struct vb_qp *target, const struct vb_pkt *pkt);
};

enum { VB_DC_BUCKETS = 256 };

struct vb_dct {
	struct vb_dc dc;
	const struct vb_dct_kind *kind;
	struct ibv_srq *srq; /* SRD: instead of the target's, which has none */
	uint64_t access_key;
	bool unsolicited; /* SRD: vb_dc_attr's */
	struct vb_dcx *bucket[VB_DC_BUCKETS];
	_Atomic unsigned count;
	struct vb_dcx **all; /* kind->contexts_max */
	unsigned hand;	     /* where to look next for one that may be forgotten */
	uint64_t full_until_ns; /* before that, none may be */
};

extern const struct vb_service vb_service_dc_initiator, vb_service_dc_target,
	vb_service_dc_context;

/*
 * mlx5dv_dci_stream_id_reset(3): work requests of that stream are sent again. EINVAL: the QP has no
 * streams, or that stream is not in error.
 */
int vb_dc_stream_reset(struct vb_qp *qp, uint16_t stream);

/* --- inside nic; QP locked unless stated otherwise --- */

/* Fills in the DCETH. */
void vb_dc_pkt_fill(const struct vb_qp *qp, struct vb_pkt *pkt);

/*
 * Sends a single packet without payload. qp: whose it is, or NULL: nobody's (vb_dc_nobody()).
 * Returns false if there is no room now.
 */
bool vb_dc_send(struct vb_nic *nic, const struct vb_qp *qp, struct vb_pkt *pkt,
		const struct vb_path *path, struct vb_lane *lane);

/* --- initiators (dc_table.c puts most of these in the table) --- */

/* Prepares the DC part of a QP whose send queue has its size. 0 or ENOMEM. */
int vb_dci_begin(struct vb_qp *qp, struct vb_dci *dci);

int vb_dc_initiator_make(struct vb_qp *qp, const struct vb_qp_extra *extra);
void vb_dc_initiator_unmake(struct vb_qp *qp);
void vb_dc_initiator_leave(struct vb_qp *qp); /* not locked */

/*
 * Has the posted work request a valid address? 0 or EINVAL. Only a builder can set one:
 * mlx5dv_wr_set_dc_addr(3).
 */
int vb_dc_address_check(const struct vb_qp *qp, const struct ibv_send_wr *wr,
			const struct vb_post *post);

/* The same for an address: 0 or EINVAL. */
int vb_dc_to_check(const struct vb_qp *qp, const struct vb_dc_address *to);

/* Its destination, as work requests and initiators have it. */
void vb_dc_to_set(struct vb_dc_to *to, const struct vb_dc_address *address);

/* Stores a destination with the work request. */
void vb_dc_to_keep(struct vb_qp *qp, struct vb_wqe *wqe, const struct vb_dc_to *to);

/* Stores the address of a work request in the send queue. */
void vb_dc_address_keep(struct vb_qp *qp, struct vb_wqe *wqe, const struct ibv_send_wr *wr,
			const struct vb_post *post);

/* By the wire: is there a ring to the next request's target by now, with only ACKs outstanding? */
bool vb_dc_could_do_better(struct vb_qp *qp);

/* Sends requests to one target after the other, each by the way available. */
void vb_dc_initiator_transmit(struct vb_qp *qp, enum ibv_qp_state state);

/* Disconnects from the target. */
void vb_dc_part(struct vb_qp *qp);

/* Resets the QP, except for numbers that continue. */
void vb_dc_reset(struct vb_qp *qp);

/*
 * The oldest work request failed, and is completed. Returns true if this concerns only its stream.
 */
bool vb_dc_isolate(struct vb_qp *qp);

/* An answer arrived. */
void vb_dc_initiator_take(struct vb_batch *batch, struct vb_qp *qp, const struct vb_from *from,
			  const struct vb_pkt *pkt, const struct vb_op_info *info);

#endif
