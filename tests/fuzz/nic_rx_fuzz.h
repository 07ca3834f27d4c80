/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_TESTS_NIC_RX_FUZZ_H
#define VB_TESTS_NIC_RX_FUZZ_H

/* What the target of nic_rx_fuzz.c takes, for those who make inputs. */

#include <stdint.h>

/* The last QP receives from an SRQ with tags. */
enum { NIC_RX_QPS = 8, NIC_RX_TAGGED = 7, NIC_RX_QKEY = 0x11111111 };

enum nic_rx_step_kind {
	STEP_FRAME,
	STEP_TIME,  /* bytes: microseconds that pass */
	STEP_SEND,  /* bytes: opcode in the three high bits, length in the others */
	STEP_RECV,  /* bytes: length; with tags and the high bit, an operation on them */
	STEP_POLL,
	STEP_STATE, /* bytes: to which state; 14 mod 16: into the group, or out of it */
	STEP_ARRIVE, /* frames before and after it come apart */
	STEP_NOTHING,
	STEP_KINDS
};

/* Of a frame: what the harness puts right. */
enum nic_rx_mend { MEND_ICRC = 8, MEND_HEADER = 16, MEND_PSN = 32, MEND_ADDRESS = 64 };

/* In `which` of a frame: it was sent to the group that the datagram QPs may be attached to. */
enum { NIC_RX_TO_GROUP = 0x40 };

struct nic_rx_step {
	uint8_t what, which;
	uint16_t bytes;
};

#endif
