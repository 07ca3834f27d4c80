/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_NIC_STEER_H
#define VB_NIC_STEER_H

/*
 * Flow steering (ibv_create_flow(3)): which queues a frame goes to. Without a rule, no frame.
 *
 * Sniffers get a copy of everything. Then rules are tried by priority: a frame that a trapping rule
 * matches goes to that rule and to others of the same match and priority; a rule that does not trap
 * (DONT_TRAP) only gets a copy. Among rules of one priority with different masks, the one with more
 * bits comes first. What no rule has trapped goes to all default rules that match.
 *
 * Rules for sent frames are tried in the same way. They pass or drop the frame, whatever QP sends
 * it.
 *
 * Any thread. Matching takes one short lock, which other matching threads and changes also take.
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
	struct vb_flow_entry *mac; /* the destination that it asks for; NULL: none */
	bool groups;		   /* without a MAC: it asks for groups */
	bool egress;		   /* it asks for nothing */
};

/*
 * Creates a rule. Errors as vb_flow_decode(), and EINVAL: neither UD nor RAW_PACKET, counters of
 * another NIC; EOPNOTSUPP: UD, which gets no frames here (but may have rules for sent frames);
 * EEXIST: frames of this match and priority are dropped, or tagged differently; ENOMEM: too many
 * rules, or kinds of rules.
 */
int vb_flow_create(struct vb_qp *qp, const struct ibv_flow_attr *attr, struct vb_steer_flow **flow);
int vb_flow_destroy(struct vb_steer_flow *flow);

/* --- inside nic --- */

struct vb_steer_hit {
	struct vb_qp *qp;
	uint32_t tag;
	bool has_tag;
	bool sniffed; /* by a sniffer, which also sees what its own context sends */
};

/*
 * Finds the destinations of a frame, and returns their number; beyond max it is lost. Applies
 * dropping and counting rules. The caller keeps the right by which the frame came (vb_nic_quiesce)
 * until it is done with the QPs.
 */
unsigned vb_steer_match(struct vb_nic *nic, const struct vb_eth_frame *frame,
			struct vb_steer_hit hits[], unsigned max);

/* May this frame be sent? Applies counting rules. */
bool vb_steer_sends(struct vb_nic *nic, const uint8_t *octets, uint32_t bytes);

/* The destinations that rules ask for (segment_table.h). */
void vb_steer_filter(struct vb_nic *nic, struct vb_segment_filter *filter);

/* Called with the NIC's creation and destruction. */
int vb_steer_init(struct vb_nic *nic);
void vb_steer_fini(struct vb_nic *nic);

#endif
