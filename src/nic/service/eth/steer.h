/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_NIC_STEER_H
#define VB_NIC_STEER_H

/*
 * Flow steering (ibv_create_flow(3)): which queues a frame goes to. No rule, no frame.
 *
 * Sniffers get a copy of everything. Then rules are asked by priority: what a rule that traps
 * matches goes to that rule, and to others of the same match and priority; a rule that does not
 * trap (DONT_TRAP) only gets a copy. Of rules of one priority whose masks differ, the one that asks
 * for more bits comes first. What nobody has trapped goes to all default rules that want it.
 *
 * Rules for what is sent are asked in the same way, and let it pass or drop it, whoever sends.
 *
 * Any thread. Who looks has one short lock in common with others that look, and with changes.
 */

#include "eth/parse.h"
#include "nic/core/counters.h"
#include "nic/data/qp.h"

struct vb_segment_filter;
struct vb_flow_entry;

struct vb_steer_flow {
	struct ibv_flow ibv;
	struct vb_qp *qp;
	struct vb_counters *counters; /* or NULL */
	struct vb_flow_entry *entry;
	struct vb_flow_entry *mac; /* the destination that it asks for; NULL: it does not */
	bool groups;		   /* without a MAC: it asks for some group */
	bool egress;		   /* it asks for nothing */
};

/*
 * The rule; errors as vb_flow_decode(), and EINVAL: neither UD nor RAW_PACKET, counters of another
 * NIC; EOPNOTSUPP: UD, to which no frames go here (for rules of what is sent it will do); EEXIST:
 * frames of this match and priority are dropped, or tagged in another way; ENOMEM: more rules, or
 * kinds of rules, than there may be.
 */
int vb_flow_create(struct vb_qp *qp, const struct ibv_flow_attr *attr, struct vb_steer_flow **flow);
int vb_flow_destroy(struct vb_steer_flow *flow);

/* --- inside nic --- */

struct vb_steer_hit {
	struct vb_qp *qp;
	uint32_t tag;
	bool has_tag;
	bool sniffed; /* by a sniffer, which sees what its own context sends as well */
};

/*
 * To whom a frame goes, and how many they are; beyond max it is lost. What rules drop and count is
 * dropped and counted here. Who calls keeps the right by which the frame came (vb_nic_quiesce)
 * until it is done with the QPs.
 */
unsigned vb_steer_match(struct vb_nic *nic, const struct vb_eth_frame *frame,
			struct vb_steer_hit hits[], unsigned max);

/* May this frame be sent? What rules count is counted here. */
bool vb_steer_sends(struct vb_nic *nic, const uint8_t *octets, uint32_t bytes);

/* Which destinations there are rules for (segment_table.h). */
void vb_steer_filter(struct vb_nic *nic, struct vb_segment_filter *filter);

/* With the NIC. */
int vb_steer_init(struct vb_nic *nic);
void vb_steer_fini(struct vb_nic *nic);

#endif
