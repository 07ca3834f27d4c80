/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Indirect keys. In some runs each area has one beside its region's, that leads to the same octets
 * in the same order, but in pieces; and some SGEs and remote addresses go by that. Nothing else in
 * a run can tell, so nobody else has to know. All is drawn beside the run's own numbers, so that
 * older seeds are what they were.
 */

#include "nic/mem/mkey.h"

#include "sim.h"

#define ACCESS (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ)

static uint64_t draw(const struct sim *sim, uint64_t number)
{
	uint64_t state = sim->seed * 0xd1342543de82ef95u + number * 0x9e3779b97f4a7c15u;

	return vb_prng_next(&state);
}

/* Pieces of any length, an octet as well as nearly all of it. */
static uint16_t cut(const struct sim *sim, const struct area *area, uint64_t addr,
		    struct vb_mkey_entry *entries)
{
	uint64_t count = 1 + draw(sim, area->at) % VB_MKEY_ENTRIES_MAX;
	uint32_t left = area->bytes;

	for (uint64_t i = 0; i < count; i++) {
		uint64_t number = (uint64_t)area->at << 8 | i;
		uint32_t most = draw(sim, number) % 4 ? left / 8 : 16;
		uint32_t bytes = i + 1 == count ? left : draw(sim, ~number) % (most + 1);

		bytes = bytes < left ? bytes : left;
		entries[i] = (struct vb_mkey_entry){ .addr = addr, .bytes = bytes,
						     .lkey = area->mr->ibv.lkey };
		addr += bytes;
		left -= bytes;
	}
	return (uint16_t)count;
}

/* As a work request would have it carried out. */
void mkey_make(struct node *node, struct area *area, struct vb_pd *pd)
{
	static struct vb_qp qp;
	static union {
		struct vb_wqe wqe;
		uint8_t room[sizeof(struct vb_wqe) +
			     VB_MKEY_ENTRIES_MAX * sizeof(struct vb_mkey_entry)];
	} request;
	uint16_t entries = VB_MKEY_ENTRIES_MAX;

	if (draw(node->sim, 0) % 3)
		return;
	sim_require(node->sim, vb_mkey_create(pd, 0, &entries, &area->mkey) == 0);
	qp.nic = node->nic;
	qp.ibv.qp.pd = &pd->ibv;
	request.wqe.mkey = (struct vb_mkey_conf){
		.key = area->mkey->lkey, .repeat = 1, .access = ACCESS, .has_access = true,
		.has_layout = true,
		.count = cut(node->sim, area, node_addr(node, area->at),
			     vb_wqe_entries(&request.wqe)),
	};
	sim_require(node->sim, vb_mkey_configure(qp.nic, qp.ibv.qp.pd, &request.wqe) ==
				       IBV_WC_SUCCESS);
}

void mkey_aim(const struct node *node, const struct area *area, uint64_t number, uint32_t *key,
	      uint64_t *addr, uint64_t bytes)
{
	uint64_t at = *addr - node_addr(node, area->at);

	if (area->mkey && *key == area->mr->ibv.lkey && at <= area->bytes &&
	    bytes <= area->bytes - at && draw(node->sim, ~number) % 2) {
		*key = area->mkey->lkey;
		*addr = at;
	}
}
