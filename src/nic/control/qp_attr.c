/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * The queue pair state machine as data (IBA 10.3.1, table of QP state transition properties): for
 * each pair of states and each service the attributes that must be given, and those that may be.
 * A pair that is not listed is no transition. The rate is ours to place: it may be set once a QP
 * sends.
 */

#include <errno.h>

#include "base/check.h"
#include "nic/service/dc/dc.h"

#define PKEY IBV_QP_PKEY_INDEX
#define PORT IBV_QP_PORT
#define QKEY IBV_QP_QKEY
#define ACCESS IBV_QP_ACCESS_FLAGS
#define AV IBV_QP_AV
#define MTU IBV_QP_PATH_MTU
#define DQPN IBV_QP_DEST_QPN
#define RPSN IBV_QP_RQ_PSN
#define SPSN IBV_QP_SQ_PSN
#define DEST_RD IBV_QP_MAX_DEST_RD_ATOMIC
#define RD IBV_QP_MAX_QP_RD_ATOMIC
#define RNR_TIMER IBV_QP_MIN_RNR_TIMER
#define TIMEOUT IBV_QP_TIMEOUT
#define RETRY IBV_QP_RETRY_CNT
#define RNR_RETRY IBV_QP_RNR_RETRY
#define ALT IBV_QP_ALT_PATH
#define MIG IBV_QP_PATH_MIG_STATE
#define CUR IBV_QP_CUR_STATE
#define NOTIFY IBV_QP_EN_SQD_ASYNC_NOTIFY
#define RATE IBV_QP_RATE_LIMIT

enum service { RC, UC, UD, RAW, SND, RCV, SERVICES }; /* the last two: of XRC */

struct masks {
	int required, optional;
};

struct transition {
	enum ibv_qp_state from, to;
	struct masks masks[SERVICES];
};

static const struct transition transitions[] = {
	{ IBV_QPS_RESET, IBV_QPS_INIT,
	  { [RC] = { PKEY | PORT | ACCESS, 0 },
	    [UC] = { PKEY | PORT | ACCESS, 0 },
	    [UD] = { PKEY | PORT | QKEY, 0 },
	    [RAW] = { PORT, 0 },
	    [SND] = { PKEY | PORT | ACCESS, 0 },
	    [RCV] = { PKEY | PORT | ACCESS, 0 } } },
	{ IBV_QPS_INIT, IBV_QPS_INIT,
	  { [RC] = { 0, PKEY | PORT | ACCESS },
	    [UC] = { 0, PKEY | PORT | ACCESS },
	    [UD] = { 0, PKEY | PORT | QKEY },
	    [RAW] = { 0, PORT },
	    [SND] = { 0, PKEY | PORT | ACCESS },
	    [RCV] = { 0, PKEY | PORT | ACCESS } } },
	{ IBV_QPS_INIT, IBV_QPS_RTR,
	  { [RC] = { AV | MTU | DQPN | RPSN | DEST_RD | RNR_TIMER, ALT | ACCESS | PKEY },
	    [UC] = { AV | MTU | DQPN | RPSN, ALT | ACCESS | PKEY },
	    [UD] = { 0, PKEY | QKEY },
	    [RAW] = { 0, 0 },
	    /* Of no use, but perftest gives both ends what either needs, here and in RTS. */
	    [SND] = { AV | MTU | DQPN | RPSN, ALT | ACCESS | PKEY | DEST_RD | RNR_TIMER },
	    [RCV] = { AV | MTU | DQPN | RPSN | DEST_RD | RNR_TIMER,
		      ALT | ACCESS | PKEY } } },
	{ IBV_QPS_RTR, IBV_QPS_RTS,
	  { [RC] = { TIMEOUT | RETRY | RNR_RETRY | SPSN | RD,
		     CUR | ALT | ACCESS | RNR_TIMER | MIG | RATE },
	    [UC] = { SPSN, CUR | ALT | ACCESS | MIG | RATE },
	    [UD] = { SPSN, CUR | QKEY | RATE },
	    [RAW] = { 0, CUR | RATE },
	    [SND] = { TIMEOUT | RETRY | RNR_RETRY | SPSN | RD, CUR | ALT | ACCESS | MIG },
	    [RCV] = { TIMEOUT | SPSN, CUR | ALT | ACCESS | RNR_TIMER | MIG | RETRY |
					      RNR_RETRY | RD } } },
	{ IBV_QPS_RTS, IBV_QPS_RTS,
	  { [RC] = { 0, CUR | ACCESS | ALT | MIG | RNR_TIMER | RATE },
	    [UC] = { 0, CUR | ACCESS | ALT | MIG | RATE },
	    [UD] = { 0, CUR | QKEY | RATE },
	    [RAW] = { 0, CUR | RATE },
	    [SND] = { 0, CUR | ACCESS | ALT | MIG },
	    [RCV] = { 0, CUR | ACCESS | ALT | MIG | RNR_TIMER } } },
	{ IBV_QPS_RTS, IBV_QPS_SQD,
	  { [RC] = { 0, NOTIFY }, [UC] = { 0, NOTIFY }, [UD] = { 0, NOTIFY },
	    [RAW] = { 0, NOTIFY },
	    [SND] = { 0, NOTIFY }, [RCV] = { 0, NOTIFY } } },
	{ IBV_QPS_SQD, IBV_QPS_SQD,
	  { [RC] = { 0, PORT | AV | TIMEOUT | RETRY | RNR_RETRY | RD | DEST_RD | ALT | ACCESS |
				PKEY | RNR_TIMER | MIG | RATE },
	    [UC] = { 0, AV | ALT | ACCESS | PKEY | MIG | RATE },
	    [UD] = { 0, PKEY | QKEY | RATE },
	    [RAW] = { 0, RATE },
	    [SND] = { 0, PORT | AV | TIMEOUT | RETRY | RNR_RETRY | RD | ALT | ACCESS | PKEY |
				 MIG },
	    [RCV] = { 0, PORT | AV | TIMEOUT | DEST_RD | ALT | ACCESS | PKEY | RNR_TIMER |
				 MIG } } },
	{ IBV_QPS_SQD, IBV_QPS_RTS,
	  { [RC] = { 0, CUR | ALT | ACCESS | RNR_TIMER | MIG | RATE },
	    [UC] = { 0, CUR | ALT | ACCESS | MIG | RATE },
	    [UD] = { 0, CUR | QKEY | RATE },
	    [RAW] = { 0, CUR | RATE },
	    [SND] = { 0, CUR | ALT | ACCESS | MIG },
	    [RCV] = { 0, CUR | ALT | ACCESS | RNR_TIMER | MIG } } },
	{ IBV_QPS_SQE, IBV_QPS_RTS,
	  { [RC] = { 0, -1 }, /* an RC send queue has no such state */
	    [UC] = { 0, CUR | ACCESS },
	    [UD] = { 0, CUR | QKEY },
	    [RAW] = { 0, CUR },
	    [SND] = { 0, -1 },
	    [RCV] = { 0, -1 } } },
};

static int service_of(enum ibv_qp_type type)
{
	switch (type) {
	case IBV_QPT_RC:
		return RC;
	case IBV_QPT_UC:
		return UC;
	case IBV_QPT_RAW_PACKET:
		return RAW;
	case IBV_QPT_XRC_SEND:
		return SND;
	case IBV_QPT_XRC_RECV:
		return RCV;
	default:
		return UD;
	}
}

int vb_qp_transition_check(enum ibv_qp_type type, enum ibv_qp_state from, enum ibv_qp_state to,
			   int mask)
{
	mask &= ~IBV_QP_STATE;
	/* From anywhere to RESET or ERR, with nothing else to say. */
	if (to == IBV_QPS_RESET || to == IBV_QPS_ERR)
		return mask & ~CUR ? EINVAL : 0;
	for (unsigned i = 0; i < VB_ARRAY_LEN(transitions); i++) {
		const struct transition *t = &transitions[i];
		const struct masks *m = &t->masks[service_of(type)];

		if (t->from != from || t->to != to)
			continue;
		if (m->optional < 0 || (mask & m->required) != m->required)
			return EINVAL;
		return mask & ~(m->required | m->optional) ? EINVAL : 0;
	}
	return EINVAL;
}

/*
 * The ends of DC have tables of their own, as the mlx5 driver has it. A target is done in RTR; who
 * has no more use for it destroys it.
 */
static const struct dc_transition {
	enum ibv_qp_state from, to;
	struct masks masks;
} initiator_transitions[] = {
	{ IBV_QPS_RESET, IBV_QPS_INIT, { PKEY | PORT, 0 } },
	{ IBV_QPS_INIT, IBV_QPS_INIT, { 0, PKEY | PORT } },
	{ IBV_QPS_INIT, IBV_QPS_RTR, { MTU, PKEY | AV } },
	{ IBV_QPS_RTR, IBV_QPS_RTS, { TIMEOUT | RETRY | RNR_RETRY | SPSN | RD, RNR_TIMER } },
	{ IBV_QPS_RTS, IBV_QPS_RTS, { 0, RNR_TIMER } },
}, target_transitions[] = {
	{ IBV_QPS_RESET, IBV_QPS_INIT, { PKEY | PORT | ACCESS, 0 } },
	{ IBV_QPS_INIT, IBV_QPS_RTR, { RNR_TIMER | AV | MTU, 0 } },
};

int vb_dc_transition_check(bool target, enum ibv_qp_state from, enum ibv_qp_state to, int mask)
{
	const struct dc_transition *t = target ? target_transitions : initiator_transitions;
	size_t rows = target ? VB_ARRAY_LEN(target_transitions)
			     : VB_ARRAY_LEN(initiator_transitions);

	mask &= ~(IBV_QP_STATE | CUR);
	if (!target && (to == IBV_QPS_RESET || to == IBV_QPS_ERR))
		return mask ? EINVAL : 0;
	for (; rows; rows--, t++) {
		if (t->from != from || t->to != to)
			continue;
		return (mask & t->masks.required) != t->masks.required ||
				       (mask & ~(t->masks.required | t->masks.optional))
			       ? EINVAL
			       : 0;
	}
	return EINVAL;
}
