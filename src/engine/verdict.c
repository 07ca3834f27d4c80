/* SPDX-License-Identifier: BSD-2-Clause */
#include "engine/verdict.h"

#define A VB_FAULT_A
#define B VB_FAULT_B
#define C VB_FAULT_C
#define D VB_FAULT_D
#define J VB_FAULT_J
#define NONE VB_FAULT_NONE

/* clang-format off */
#define ROW(acked_, uc_, ud_, code_, status, event_) \
	{ .acked = acked_, .uc = uc_, .ud = ud_, .code = VB_NAK_##code_, \
	  .recv_status = IBV_WC_##status, .event = IBV_EVENT_QP_##event_ }

/* The completion of the current receive request is the only report. */
#define SILENT(acked_, uc_, ud_, code_, status) \
	{ .acked = acked_, .uc = uc_, .ud = ud_, .code = VB_NAK_##code_, \
	  .recv_status = IBV_WC_##status, .silent = true }

/*
 * A packet ahead of its turn is of class B, too, with a NAK of its own (rc_resp.c): a bad sequence
 * here is one of opcodes. Memory that is gone behind a valid key does not exist in the
 * specification; it counts as our fault, since the peer waits for an answer.
 */
const struct vb_verdict_row vb_verdict_rows[VB_VERDICTS] = {
	[VB_OK] = { .recv_status = IBV_WC_SUCCESS },
	[VB_NO_RECV] = { .acked = B, .uc = D, .ud = D, .recv_status = IBV_WC_SUCCESS },
	[VB_BAD_SEQUENCE] = ROW(C, D, NONE, INVALID_REQ, REM_INV_REQ_ERR, REQ_ERR),
	[VB_BAD_OPCODE] = ROW(C, D, NONE, INVALID_REQ, REM_INV_REQ_ERR, REQ_ERR),
	[VB_BAD_LENGTH] = ROW(C, D, D, INVALID_REQ, REM_INV_REQ_ERR, REQ_ERR),
	[VB_TOO_LONG] = SILENT(C, D, D, INVALID_REQ, LOC_LEN_ERR),
	[VB_BAD_ACCESS] = ROW(C, D, NONE, ACCESS, LOC_ACCESS_ERR, ACCESS_ERR),
	[VB_BAD_INVALIDATE] = SILENT(J, NONE, NONE, ACCESS, LOC_ACCESS_ERR),
	[VB_MISALIGNED] = ROW(C, NONE, NONE, INVALID_REQ, REM_INV_REQ_ERR, REQ_ERR),
	[VB_BAD_RESOURCES] = ROW(C, NONE, NONE, INVALID_REQ, REM_INV_REQ_ERR, REQ_ERR),
	[VB_BAD_RECV_SGE] = SILENT(A, A, A, OP, LOC_PROT_ERR),
	[VB_BAD_MEMORY] = ROW(A, D, NONE, OP, LOC_PROT_ERR, FATAL),
};
/* clang-format on */
