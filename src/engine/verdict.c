/* SPDX-License-Identifier: BSD-2-Clause */
#include "engine/verdict.h"

#define ROW(nak_code, status, event_type)                                                         \
	{                                                                                         \
		.nak = true, .code = nak_code, .fatal = true, .recv_status = status,              \
		.event = event_type                                                               \
	}

/* A fault of our own receive request: its completion says all. */
#define LOCAL_ROW(nak_code, status)                                                               \
	{                                                                                         \
		.nak = true, .code = nak_code, .fatal = true, .recv_status = status,              \
		.silent = true                                                                    \
	}

const struct vb_verdict_row vb_verdict_rows[VB_VERDICTS] = {
	[VB_OK] = { .recv_status = IBV_WC_SUCCESS },
	[VB_NO_RECV] = { .recv_status = IBV_WC_SUCCESS }, /* RNR NAK: not an error */
	[VB_BAD_SEQUENCE] = ROW(VB_NAK_INVALID_REQ, IBV_WC_REM_INV_REQ_ERR, IBV_EVENT_QP_REQ_ERR),
	[VB_BAD_OPCODE] = ROW(VB_NAK_INVALID_REQ, IBV_WC_REM_INV_REQ_ERR, IBV_EVENT_QP_REQ_ERR),
	[VB_BAD_LENGTH] = ROW(VB_NAK_INVALID_REQ, IBV_WC_REM_INV_REQ_ERR, IBV_EVENT_QP_REQ_ERR),
	[VB_TOO_LONG] = LOCAL_ROW(VB_NAK_INVALID_REQ, IBV_WC_LOC_LEN_ERR),
	[VB_BAD_ACCESS] = ROW(VB_NAK_ACCESS, IBV_WC_LOC_ACCESS_ERR, IBV_EVENT_QP_ACCESS_ERR),
	[VB_MISALIGNED] = ROW(VB_NAK_INVALID_REQ, IBV_WC_REM_INV_REQ_ERR, IBV_EVENT_QP_REQ_ERR),
	[VB_BAD_RESOURCES] = ROW(VB_NAK_INVALID_REQ, IBV_WC_REM_INV_REQ_ERR, IBV_EVENT_QP_REQ_ERR),
	[VB_BAD_RECV_SGE] = LOCAL_ROW(VB_NAK_OP, IBV_WC_LOC_PROT_ERR),
	[VB_BAD_MEMORY] = ROW(VB_NAK_OP, IBV_WC_LOC_PROT_ERR, IBV_EVENT_QP_FATAL),
};
