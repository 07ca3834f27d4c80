/* SPDX-License-Identifier: BSD-2-Clause */
#include "nic/data/service.h"

#include <errno.h>

#include "base/refusal.h"
#include "base/text.h"
#include "nic/core/names.h"

static int refuse_mask(const char *fault, int bits)
{
	char names[VB_REFUSAL_BYTES];

	return vb_refuse(EINVAL, "%s %s", fault,
			 vb_attr_mask_names(names, sizeof(names), bits));
}

static int check_mask(const struct vb_transition *t, int mask)
{
	if ((mask & t->required) != t->required)
		return refuse_mask("attr_mask lacks", t->required & ~mask);
	if (mask & ~(t->required | t->optional))
		return refuse_mask("this transition does not take",
				   mask & ~(t->required | t->optional));
	return 0;
}

static int refuse_transition(const struct vb_service_modify *modify, enum ibv_qp_state from)
{
	char states[64];
	struct vb_text text = vb_text_in(states, sizeof(states));

	for (size_t i = 0; i < modify->rows; i++)
		if (modify->transitions[i].from == from)
			vb_text_add(&text, text.used ? ", " : "",
				    vb_state_name(modify->transitions[i].to), NULL);
	return vb_refuse(EINVAL, "there is no such transition; from %s it goes to: %s",
			 vb_state_name(from), text.used ? states : "RESET, ERR");
}

int vb_service_transition_check(const struct vb_service *service, enum ibv_qp_state from,
				enum ibv_qp_state to, int mask)
{
	const struct vb_service_modify *modify = &service->modify;

	mask &= ~IBV_QP_STATE;
	/* These allow no other attribute. */
	if ((service->traits & VB_RETURNS) && (to == IBV_QPS_RESET || to == IBV_QPS_ERR))
		return mask & ~IBV_QP_CUR_STATE
			       ? refuse_mask("to RESET and ERR nothing else may be changed: ",
					     mask & ~IBV_QP_CUR_STATE)
			       : 0;
	for (size_t i = 0; i < modify->rows; i++) {
		const struct vb_transition *t = &modify->transitions[i];

		if (t->from == from && t->to == to)
			return check_mask(t, mask);
	}
	return refuse_transition(modify, from);
}
