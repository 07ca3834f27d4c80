/* SPDX-License-Identifier: BSD-2-Clause */
#include "nic/core/slots.h"

#include <errno.h>
#include <stdlib.h>

#include "base/check.h"
#include "nic/core/internal.h"
#include "nic/core/lowered.h"

/* Narrow numbers of a slot: what 16 bits have room for beside the slot. */
enum { NARROW_BITS = 16 - VB_SLOT_BITS };

struct vb_slot *vb_nic_slot_find(struct vb_nic *nic, uint32_t number)
{
	for (unsigned i = 0; i < VB_SLOTS_PER_NIC_MAX; i++) {
		struct vb_slot *slot =
			atomic_load_explicit(&nic->leased.slot[i], memory_order_acquire);

		if (!slot)
			break;
		if (slot->slot == number)
			return slot;
	}
	return NULL;
}

static struct vb_slot *slot_of(struct vb_nic *nic, uint32_t qpn)
{
	return vb_nic_slot_find(nic, qpn >> VB_INDEX_BITS);
}

struct vb_qp *vb_nic_qp_find(struct vb_nic *nic, uint32_t qpn)
{
	struct vb_slot *slot = slot_of(nic, qpn);

	if (!slot)
		return NULL;
	return atomic_load_explicit(&slot->qp[qpn & (VB_INDICES - 1)], memory_order_acquire);
}

void vb_nic_qp_look(struct vb_nic *nic, uint32_t qpn)
{
	struct vb_qp *qp = vb_nic_qp_find(nic, qpn);

	if (qp)
		vb_timer_set(nic, nic->later.timer_of(qp), 0);
}

/* The lease lock is held, but not the NIC's: the hub is slow. */
static int slot_add(struct vb_nic *nic)
{
	struct vb_slot *slot;
	int err;

	if (nic->leased.count == VB_SLOTS_PER_NIC_MAX)
		return ENOMEM;
	slot = calloc(1, sizeof(*slot));
	if (!slot)
		return ENOMEM;
	err = nic->host.wire.lease(nic->host.arg, &slot->slot, &slot->next_index);
	if (err) {
		free(slot);
		return err;
	}
	slot->place = nic->leased.count;
	vb_lock_take(&nic->lock);
	atomic_store_explicit(&nic->leased.slot[nic->leased.count++], slot, memory_order_release);
	vb_lock_drop(&nic->lock);
	return 0;
}

/* Leases one more than `seen`, unless another thread has done so. */
static int lease_slot(struct vb_nic *nic, unsigned seen)
{
	int err = 0;

	vb_lock_take(&nic->leased.lock);
	if (nic->leased.count == seen)
		err = slot_add(nic);
	vb_lock_drop(&nic->leased.lock);
	return err;
}

static bool index_is_reserved(const struct vb_slot *slot, uint32_t index)
{
	return slot->reserved[index / 64] >> (index % 64) & 1;
}

/* 0 and 1 are management QPs; the last index of the last slot is VB_QPN_GROUP. */
static bool index_is_free(struct vb_slot *slot, uint32_t index)
{
	return index >= 2 && index != VB_INDICES - 1 && !atomic_load(&slot->qp[index]) &&
	       !atomic_load(&slot->srq[index]) && !index_is_reserved(slot, index);
}

/* Is it one of the numbers that 16 bits are enough for? */
static bool index_is_narrow(const struct vb_slot *slot, uint32_t index)
{
	return index >> NARROW_BITS == (uint32_t)slot->slot >> 2;
}

/* A number that no QP and no SRQ of the slot has; on EFA none of those that are kept for others. */
static uint32_t slot_index_take(struct vb_nic *nic, struct vb_slot *slot)
{
	bool keeps = vb_nic_offers_srd(nic);
	uint32_t index;

	do
		index = slot->next_index++ & (VB_INDICES - 1);
	while (!index_is_free(slot, index) || (keeps && index_is_narrow(slot, index)));
	slot->count++;
	return index;
}

/* The same of these alone. VB_INDICES: all are in use. */
static uint32_t slot_index_take_narrow(struct vb_nic *nic, struct vb_slot *slot)
{
	uint32_t first = (uint32_t)slot->slot >> 2 << NARROW_BITS, index;

	for (unsigned i = 0; i < 1 << NARROW_BITS; i++) {
		index = first | (slot->next_index++ & ((1u << NARROW_BITS) - 1));
		if (index_is_free(slot, index)) {
			slot->count++;
			return index;
		}
	}
	return VB_INDICES;
}

/* With the NIC's lock held. */
static struct vb_slot *slot_with_room(struct vb_nic *nic)
{
	for (unsigned i = 0; i < nic->leased.count; i++) {
		struct vb_slot *slot = atomic_load(&nic->leased.slot[i]);

		if (slot->count < VB_INDICES_USED)
			return slot;
	}
	return NULL;
}

/*
 * Finds a slot with room and returns with the NIC's lock held. The lock is not held while a slot is
 * leased.
 */
static int slot_take_locked(struct vb_nic *nic, struct vb_slot **out)
{
	int err = 0;

	for (;;) {
		unsigned seen;

		vb_lock_take(&nic->lock);
		*out = slot_with_room(nic);
		if (*out)
			return 0;
		seen = nic->leased.count;
		vb_lock_drop(&nic->lock);
		err = lease_slot(nic, seen);
		if (err)
			return err;
	}
}

typedef uint32_t take_fn(struct vb_nic *nic, struct vb_slot *slot);

/* Gives a number to either a QP or an SRQ. */
static int number_take(struct vb_nic *nic, take_fn *take, struct vb_qp *qp, struct vb_srq *srq,
		       uint32_t *number)
{
	struct vb_slot *slot;
	uint32_t index;
	int err;

	err = slot_take_locked(nic, &slot);
	if (err)
		return err;
	index = take(nic, slot);
	if (index == VB_INDICES) {
		vb_lock_drop(&nic->lock);
		return ENOMEM;
	}
	*number = (uint32_t)slot->slot << VB_INDEX_BITS | index;
	if (qp)
		atomic_store_explicit(&slot->qp[index], qp, memory_order_release);
	else
		atomic_store_explicit(&slot->srq[index], srq, memory_order_release);
	vb_lock_drop(&nic->lock);
	return 0;
}

int vb_nic_qpn_reserve(struct vb_nic *nic, uint32_t *qpn)
{
	struct vb_slot *slot;
	uint32_t index;
	int err;

	err = slot_take_locked(nic, &slot);
	if (err)
		return err;
	index = slot_index_take(nic, slot);
	slot->reserved[index / 64] |= 1ull << (index % 64);
	*qpn = (uint32_t)slot->slot << VB_INDEX_BITS | index;
	vb_lock_drop(&nic->lock);
	return 0;
}

int vb_nic_qpn_release(struct vb_nic *nic, uint32_t qpn)
{
	struct vb_slot *slot = slot_of(nic, qpn);
	uint32_t index = qpn & (VB_INDICES - 1);
	int err = EINVAL;

	if (!slot)
		return err;
	vb_lock_take(&nic->lock);
	if (index_is_reserved(slot, index)) {
		slot->reserved[index / 64] &= ~(1ull << (index % 64));
		slot->count--;
		err = 0;
	}
	vb_lock_drop(&nic->lock);
	return err;
}

bool vb_nic_qpn_is_used(struct vb_nic *nic, uint32_t qpn)
{
	return vb_nic_qp_find(nic, qpn) != NULL;
}

int vb_nic_qp_add(struct vb_nic *nic, struct vb_qp *qp, uint32_t *qpn)
{
	int err = vb_lowered_count_up(nic, &nic->counts.qps, VB_LIMIT_QP);

	if (err)
		return err;
	err = number_take(nic, slot_index_take, qp, NULL, qpn);
	if (err)
		atomic_fetch_sub(&nic->counts.qps, 1);
	return err;
}

/* Their own number limits them: streams, which count as well, have other numbers. */
int vb_nic_qp_add_narrow(struct vb_nic *nic, struct vb_qp *qp, uint32_t *qpn)
{
	int err = number_take(nic, slot_index_take_narrow, qp, NULL, qpn);

	if (!err)
		atomic_fetch_add(&nic->counts.qps, 1);
	return err;
}

int vb_nic_qp_add_here(struct vb_nic *nic, struct vb_qp *qp, uint32_t *qpn)
{
	struct vb_slot *slot;
	uint32_t index;

	vb_lock_take(&nic->lock);
	slot = slot_with_room(nic);
	if (slot) {
		index = slot_index_take(nic, slot);
		*qpn = (uint32_t)slot->slot << VB_INDEX_BITS | index;
		atomic_store_explicit(&slot->qp[index], qp, memory_order_release);
	}
	vb_lock_drop(&nic->lock);
	if (!slot)
		return ENOMEM;
	atomic_fetch_add(&nic->counts.qps, 1);
	return 0;
}

int vb_nic_srq_add(struct vb_nic *nic, struct vb_srq *srq, uint32_t *srqn)
{
	return number_take(nic, slot_index_take, NULL, srq, srqn);
}

struct vb_srq *vb_nic_srq_find(struct vb_nic *nic, uint32_t srqn)
{
	struct vb_slot *slot = slot_of(nic, srqn);

	if (!slot)
		return NULL;
	return atomic_load_explicit(&slot->srq[srqn & (VB_INDICES - 1)], memory_order_acquire);
}

void vb_nic_srq_remove(struct vb_nic *nic, uint32_t srqn)
{
	struct vb_slot *slot = slot_of(nic, srqn);

	vb_check(slot);
	vb_lock_take(&nic->lock);
	atomic_store(&slot->srq[srqn & (VB_INDICES - 1)], NULL);
	slot->count--;
	vb_lock_drop(&nic->lock);
}

int vb_nic_slot_any(struct vb_nic *nic, uint16_t *out)
{
	int err = atomic_load(&nic->leased.slot[0]) ? 0 : lease_slot(nic, 0);

	if (!err)
		*out = atomic_load(&nic->leased.slot[0])->slot;
	return err;
}

void vb_nic_qp_remove(struct vb_nic *nic, uint32_t qpn)
{
	struct vb_slot *slot = slot_of(nic, qpn);

	vb_check(slot);
	vb_lock_take(&nic->lock);
	atomic_store(&slot->qp[qpn & (VB_INDICES - 1)], NULL);
	slot->count--;
	vb_lock_drop(&nic->lock);
	atomic_fetch_sub(&nic->counts.qps, 1);
}

unsigned vb_nic_slots(struct vb_nic *nic, uint16_t slot[VB_SLOTS_PER_NIC_MAX],
		      uint32_t next_index[VB_SLOTS_PER_NIC_MAX])
{
	unsigned count;

	vb_lock_take(&nic->lock);
	count = nic->leased.count;
	for (unsigned i = 0; i < count; i++) {
		struct vb_slot *s = atomic_load(&nic->leased.slot[i]);

		slot[i] = s->slot;
		next_index[i] = s->next_index & (VB_INDICES - 1);
	}
	vb_lock_drop(&nic->lock);
	return count;
}
