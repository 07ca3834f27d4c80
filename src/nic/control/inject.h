/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_NIC_INJECT_H
#define VB_NIC_INJECT_H

/*
 * For a host that injects faults (run/faults): what it may know of a QP, and do to it. The rx right
 * is held throughout, so no QP is destroyed meanwhile; no QP is locked.
 */

#include "nic/core/nic.h"
#include "wire/packet.h"

struct vb_peer;

struct vb_qp_facts {
	uint32_t dqpn; /* of the peer; 0: it has none */
	uint8_t state; /* enum ibv_qp_state */
	bool acks;     /* requests to it are acknowledged */
	struct vb_path path;
};

/* Returns false if there is no such QP. */
bool vb_inject_facts(struct vb_nic *nic, uint32_t qpn, struct vb_qp_facts *facts);

/* Which QP of this slot is connected to that one? 0: none is. Slow: looks at all of them. */
uint32_t vb_inject_qpn_towards(struct vb_nic *nic, uint16_t slot, uint32_t dqpn);

/* A rule has met this QP: explanations say so from now on. The text lives as long as the QP. */
void vb_inject_blame(struct vb_nic *nic, uint32_t qpn, const char *rule);

/* Why a request is refused. */
enum vb_refusal_kind {
	VB_REFUSE_RNR,
	VB_REFUSE_SEQUENCE,
	VB_REFUSE_INVALID,
	VB_REFUSE_ACCESS,
	VB_REFUSE_OPERATION,
};

/*
 * Has an RC QP refuse this request, in its turn, as if it had found that wrong. rule: who says so,
 * for explanations. Returns false if the QP is none that does.
 */
bool vb_inject_refuse(struct vb_nic *nic, const struct vb_pkt *pkt, enum vb_refusal_kind why,
		      const char *rule);

/*
 * Moves a QP to the error state, with IBV_EVENT_QP_FATAL or without. Returns false if there is
 * none, or it is in RESET or ERR already.
 */
bool vb_inject_fail(struct vb_nic *nic, uint32_t qpn, bool with_event, const char *rule);

#endif
