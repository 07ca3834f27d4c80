/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_NIC_SLOTS_H
#define VB_NIC_SLOTS_H

/*
 * The slots that a NIC has leased, and the owners of the numbers in them: QPs and XRC SRQs. Any
 * thread.
 */

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/lent.h"
#include "nic/core/limits.h"

struct vb_nic;
struct vb_qp;
struct vb_srq;

/* A leased slot and its QPs. */
struct vb_slot {
	uint16_t slot;
	unsigned place; /* in nic->leased.slot */
	uint32_t next_index;
	uint32_t count;
	/* indices that must not be given out (the NIC's lock) */
	uint64_t reserved[VB_INDICES / 64];
	_Atomic(struct vb_qp *) qp[VB_INDICES];
	_Atomic(struct vb_srq *) srq[VB_INDICES]; /* of XRC */
};

/* The slots leased so far, and the next index of each. Returns their number. */
unsigned vb_nic_slots(struct vb_nic *nic, uint16_t slot[VB_SLOTS_PER_NIC_MAX],
		      uint32_t next_index[VB_SLOTS_PER_NIC_MAX]);

/*
 * Reserves a QPN that no QP and no SRQ of this NIC will be given (mlx5dv_reserved_qpn_alloc(3)).
 * ENOMEM, or as lease(). Release: EINVAL if it is not reserved.
 */
int vb_nic_qpn_reserve(struct vb_nic *nic, uint32_t *qpn);
int vb_nic_qpn_release(struct vb_nic *nic, uint32_t qpn);

/* Is there a QP with this number at this moment? */
VB_LENT bool vb_nic_qpn_is_used(struct vb_nic *nic, uint32_t qpn);

/* --- inside nic --- */

/* The slot with that number; NULL: not ours. */
struct vb_slot *vb_nic_slot_find(struct vb_nic *nic, uint32_t number);

struct vb_qp *vb_nic_qp_find(struct vb_nic *nic, uint32_t qpn);
int vb_nic_qp_add(struct vb_nic *nic, struct vb_qp *qp, uint32_t *qpn);
/* The same under a QP's lock: leases no slot. ENOMEM: those leased are full. */
int vb_nic_qp_add_here(struct vb_nic *nic, struct vb_qp *qp, uint32_t *qpn);

/*
 * Programs for EFA keep 16 bits of a QPN. On such a device the numbers that they see can be told
 * from these: the index begins with those bits of the slot that its own place has no room for, and
 * 6 bits are left to count. Other numbers of such a NIC are not of that form. ENOMEM: all in use.
 */
int vb_nic_qp_add_narrow(struct vb_nic *nic, struct vb_qp *qp, uint32_t *qpn);

/* The number of which a program has kept at least 16 bits. */
static inline uint32_t vb_qpn_widen(uint32_t qpn)
{
	uint32_t slot = (qpn >> VB_INDEX_BITS & 3) | (qpn >> 6 & 0xff) << 2;

	return slot << VB_INDEX_BITS | (qpn & (VB_INDICES - 1));
}

void vb_nic_qp_remove(struct vb_nic *nic, uint32_t qpn);

/*
 * Makes the thread that turns the NIC next look at this QP, if it exists. For callers that hold a
 * CQ's lock and must not take the QP's.
 */
void vb_nic_qp_look(struct vb_nic *nic, uint32_t qpn);

/* The same for XRC SRQs, whose numbers come from the same range as QPNs. */
struct vb_srq *vb_nic_srq_find(struct vb_nic *nic, uint32_t srqn);
int vb_nic_srq_add(struct vb_nic *nic, struct vb_srq *srq, uint32_t *srqn);
void vb_nic_srq_remove(struct vb_nic *nic, uint32_t srqn);

/* A slot of this NIC, always the same one. 0, or as lease(). */
int vb_nic_slot_any(struct vb_nic *nic, uint16_t *slot);

#endif
