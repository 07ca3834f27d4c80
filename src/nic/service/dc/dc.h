/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_NIC_DC_H
#define VB_NIC_DC_H

/*
 * Dynamically connected transport (docs/dc.md): initiators (DCI) whose work requests say to whom
 * they go, and targets (DCT) that many initiators drive at once. Three kinds of struct vb_qp have a
 * struct vb_dc:
 *
 *  - an initiator (dc.c) is an RC requester that is connected to one target at a time;
 *  - a target (dc_target.c) only is who packets are for, and takes none by itself;
 *  - a context of a target is the RC responder towards one initiator. It is nobody's handle, no
 *    packet finds it but through its target, and it goes with that.
 */

#include "nic/data/qp_extra.h"
#include "nic/data/demux.h"
#include "nic/data/post.h"
#include "nic/service/dc/dc_attr.h"

/* Behind enum ibv_mtu, and in a ring only: pieces of VB_LANE_MTU_BYTES. */
#define VB_DC_MTU_LARGE 7

/* What all of them have, and what the DCETH says of an initiator or a context. */
struct vb_dc {
	bool connected;
	uint8_t mtu_code; /* enum ibv_mtu, or VB_DC_MTU_LARGE */
	uint32_t start_psn;
	uint64_t connection;
};

/* Where a work request goes. Compared as octets, so every bit of it is set. */
struct vb_dc_to {
	struct vb_path path;
	uint64_t key;
	uint32_t dctn;
	uint16_t stream;
};

struct vb_dci {
	struct vb_dc dc;
	struct vb_dc_to *to; /* one for each place in the send queue */
	struct vb_dc_to last; /* of the one that was posted last ... */
	uint32_t run;	      /* ... and its vb_wqe.remote.target */
	uint64_t key;	  /* of the target that it is connected to */
	bool asked;	  /* the target has asked for a CONNECT that got lost */
	uint64_t used_ns; /* when something was last sent to it with nothing outstanding */
	bool streams;
	unsigned errored, errored_max; /* so many are; with so many the QP is */
	uint16_t errored_id[1 << VB_DCI_ERRORED_LOG_MAX];
};

struct vb_dcx {
	struct vb_dc dc;
	struct vb_qp *target;
	struct vb_dcx *next; /* in its bucket; the target's lock */
	uint8_t gid[VB_GID_BYTES]; /* of whom; zeros: it comes through shared memory */
	uint32_t dci;
	uint64_t used_ns;
	bool spare; /* qp.resp.recv was taken for a message that came to no end */
	struct vb_qp qp;
};

enum { VB_DC_BUCKETS = 256 };

struct vb_dct {
	struct vb_dc dc;
	uint64_t access_key;
	struct vb_dcx *bucket[VB_DC_BUCKETS];
	_Atomic unsigned count;
	struct vb_dcx *all[VB_DC_CONTEXTS_MAX];
};

extern const struct vb_service vb_service_dc_initiator, vb_service_dc_target,
	vb_service_dc_context;

/*
 * mlx5dv_dci_stream_id_reset(3): work requests of that stream are sent again. EINVAL: the QP has no
 * streams, or that one is not in error.
 */
VB_LENT int vb_dc_stream_reset(struct vb_qp *qp, uint16_t stream);

/* --- inside nic. QP locked, unless they say otherwise --- */

/* What the DCETH has. */
void vb_dc_pkt_fill(const struct vb_qp *qp, struct vb_pkt *pkt);

/* Send a packet without payload by itself: false if there is no room for it now. */
bool vb_dc_send(struct vb_qp *qp, struct vb_pkt *pkt, const struct vb_path *path,
		struct vb_lane *lane);

/* --- initiators (dc_table.c names what of it is in the table) --- */

int vb_dc_initiator_make(struct vb_qp *qp, const struct vb_qp_extra *extra);
void vb_dc_initiator_unmake(struct vb_qp *qp);
void vb_dc_initiator_leave(struct vb_qp *qp); /* not locked */

/*
 * Is there an address in what a builder posts, and a good one? 0 or EINVAL. Only a builder can say
 * it: mlx5dv_wr_set_dc_addr(3).
 */
int vb_dc_address_check(const struct vb_qp *qp, const struct ibv_send_wr *wr,
			const struct vb_post *post);

/* Keep the address of a work request that stands in the send queue. */
void vb_dc_address_keep(struct vb_qp *qp, struct vb_wqe *wqe, const struct ibv_send_wr *wr,
			const struct vb_post *post);

/*
 * By the wire: is there a ring to the target of the request that is next by now, which waits for
 * nothing but ACKs of what was sent?
 */
bool vb_dc_could_do_better(struct vb_qp *qp);

/* Requests go to one target after the other, to each by the way that there is. */
void vb_dc_initiator_transmit(struct vb_qp *qp, enum ibv_qp_state state);

/* Part from the target. */
void vb_dc_part(struct vb_qp *qp);

/* Back to how it was made, but for the numbers that go on. */
void vb_dc_reset(struct vb_qp *qp);

/* The oldest work request failed, and is completed: true if that is its stream's business only. */
bool vb_dc_isolate(struct vb_qp *qp);

/* An answer. */
void vb_dc_initiator_take(struct vb_batch *batch, struct vb_qp *qp, const struct vb_from *from,
			  const struct vb_pkt *pkt, const struct vb_op_info *info);

#endif
