/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_NIC_TRANSITION_H
#define VB_NIC_TRANSITION_H

/*
 * Short names for the tables of transitions (struct vb_transition; IBA 10.3.1, table of QP state
 * transition properties). The table has no rate limit; we allow setting it once a QP sends.
 */

#include <infiniband/verbs.h>

enum {
	T_PKEY = IBV_QP_PKEY_INDEX,
	T_PORT = IBV_QP_PORT,
	T_QKEY = IBV_QP_QKEY,
	T_ACCESS = IBV_QP_ACCESS_FLAGS,
	T_AV = IBV_QP_AV,
	T_MTU = IBV_QP_PATH_MTU,
	T_DQPN = IBV_QP_DEST_QPN,
	T_RPSN = IBV_QP_RQ_PSN,
	T_SPSN = IBV_QP_SQ_PSN,
	T_DEST_RD = IBV_QP_MAX_DEST_RD_ATOMIC,
	T_RD = IBV_QP_MAX_QP_RD_ATOMIC,
	T_RNR_TIMER = IBV_QP_MIN_RNR_TIMER,
	T_TIMEOUT = IBV_QP_TIMEOUT,
	T_RETRY = IBV_QP_RETRY_CNT,
	T_RNR_RETRY = IBV_QP_RNR_RETRY,
	T_ALT = IBV_QP_ALT_PATH,
	T_MIG = IBV_QP_PATH_MIG_STATE,
	T_CUR = IBV_QP_CUR_STATE,
	T_NOTIFY = IBV_QP_EN_SQD_ASYNC_NOTIFY,
	T_RATE = IBV_QP_RATE_LIMIT,
};

#endif
