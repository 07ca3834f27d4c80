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

#include "nic/data/demux.h"
#include "nic/data/qp.h"
#include "nic/service/dc/dc_attr.h"

enum vb_dc_role { VB_DC_INITIATOR, VB_DC_TARGET, VB_DC_CONTEXT };

/* Behind enum ibv_mtu, and in a ring only: pieces of VB_LANE_MTU_BYTES. */
#define VB_DC_MTU_LARGE 7

/* What all of them have, and what the DCETH says of an initiator or a context. */
struct vb_dc {
	enum vb_dc_role role;
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
	uint32_t run;	      /* ... and what it has in common with those that go along */
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

/* How a packet came: by the wire, in this frame; or from this ring. */
struct vb_dc_from {
	const struct vb_frame *frame;
	struct vb_lane *lane;
};

static inline bool vb_dc_is_context(const struct vb_qp *qp)
{
	return qp->dc && qp->dc->role == VB_DC_CONTEXT;
}

/*
 * vb_qp_create_dv() for an end of DC, with its errors, after its checks. EINVAL: beyond the
 * device's limits, or objects of another context.
 */
int vb_qp_create_dc(struct ibv_qp_init_attr_ex *attr, const struct vb_dc_attr *dc,
		    uint32_t dv_flags, struct vb_qp **qp);

/*
 * mlx5dv_dci_stream_id_reset(3): work requests of that stream are sent again. EINVAL: the QP has no
 * streams, or that one is not in error.
 */
VB_LENT int vb_dc_stream_reset(struct vb_qp *qp, uint16_t stream);

/* --- inside nic. QP locked, unless they say otherwise --- */

/* What a QP of that kind has beside; the QP is made but for that. 0 or ENOMEM. */
int vb_dc_init(struct vb_qp *qp, const struct vb_dc_attr *attr);
void vb_dc_fini(struct vb_qp *qp);

/* The table of an end's states (qp_attr.c): 0 or EINVAL. */
int vb_dc_transition_check(bool target, enum ibv_qp_state from, enum ibv_qp_state to, int mask);

/* What the DCETH has. */
void vb_dc_pkt_fill(const struct vb_qp *qp, struct vb_pkt *pkt);

/* A packet of DC for this QP of the application's, which is held; after that another may be. */
void vb_dc_rx(struct vb_batch *batch, struct vb_qp *qp, const struct vb_dc_from *from,
	      const struct vb_pkt *pkt, const struct vb_op_info *info);

/* Send a packet without payload by itself: false if there is no room for it now. */
bool vb_dc_send(struct vb_qp *qp, struct vb_pkt *pkt, const struct vb_path *path,
		struct vb_lane *lane);

/* --- initiators --- */

/* Is there an address in the work request, and a good one? 0 or EINVAL. */
int vb_dc_wr_check(const struct vb_qp *qp, const struct ibv_send_wr *wr);

/* ... then it is written down. */
void vb_dc_wr_fill(struct vb_qp *qp, struct vb_wqe *wqe, const struct ibv_send_wr *wr);

/*
 * Before all that: carry out what goes nowhere, where nothing is outstanding. False: it failed, and
 * the QP with it.
 */
bool vb_dc_local(struct vb_qp *qp);

/*
 * Before something is sent: have the QP be connected to the target of the work request that is
 * next. Nothing is outstanding where that changes. False: there is nothing to send, or no room.
 */
bool vb_dc_aim(struct vb_qp *qp);

/*
 * By the wire: is there a ring to the target of the request that is next by now, which waits for
 * nothing but ACKs of what was sent? With nothing outstanding vb_dc_aim() has had its say.
 */
bool vb_dc_has_ring(struct vb_qp *qp);

/* Part from the target. */
void vb_dc_part(struct vb_qp *qp);

/* Nobody finds it any more. Not locked. */
void vb_dc_leave(struct vb_qp *qp);

/* Back to how it was made, but for the numbers that go on. */
void vb_dc_reset(struct vb_qp *qp);

/* The oldest work request failed, and is completed: true if that is its stream's business only. */
bool vb_dc_isolate(struct vb_qp *qp);

/* --- targets --- */

/* The receive request for a message that begins; false: there is none. */
bool vb_dc_recv_take(struct vb_qp *context);

/* A request, or what connects. */
void vb_dct_rx(struct vb_batch *batch, struct vb_qp *target, const struct vb_dc_from *from,
	       const struct vb_pkt *pkt, const struct vb_op_info *info);

/* Contexts of the other process: nobody is there any more. Rx right held, target not locked. */
void vb_dct_peer_gone(struct vb_qp *target, struct vb_peer *peer);

/* Nobody finds the target any more: what its contexts owe leaves, and nothing finds them either. */
void vb_dct_leave(struct vb_qp *target);

#endif
