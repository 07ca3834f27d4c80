/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_SCRIPT_MATCH_H
#define VB_SCRIPT_MATCH_H

/* Which rule of a script applies. One thread at a time; rules count what they have seen. */

#include "script/rule.h"

/* A packet, or a request to connect, that a rule may apply to. */
struct vb_occasion {
	enum vb_rule_where where;
	uint8_t opcode;
	uint8_t state;	     /* of the QP: enum ibv_qp_state */
	uint32_t qpn;	     /* of ours; 0: not known */
	const uint8_t *peer; /* its address; NULL: not known */
	uint32_t bytes;	     /* of the payload */
	uint64_t age_ns;     /* since the start */
};

/*
 * The first rule that applies now, which counts as fired; NULL: none. Rules behind it are not
 * asked.
 */
struct vb_rule *vb_script_match(struct vb_script *script, const struct vb_occasion *occasion);

/* May it be for a packet that `nak` is an answer to? */
bool vb_script_may_refuse(const struct vb_rule_fits *fits);

/* The next rule whose moment has come, which counts as fired; NULL: none has. */
struct vb_rule *vb_script_due(struct vb_script *script, uint64_t age_ns);

/* When the next moment comes; UINT64_MAX: there is none. */
uint64_t vb_script_next_ns(const struct vb_script *script);

#endif
