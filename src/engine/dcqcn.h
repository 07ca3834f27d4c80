/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_ENGINE_DCQCN_H
#define VB_ENGINE_DCQCN_H

/*
 * How fast a QP may send, once its peer has told it of congestion by CNPs: DCQCN (Zhu et al.,
 * SIGCOMM 2015). A CNP cuts the rate by up to a half, the more the more of them came of late; after
 * it the rate rises by steps, half-way back to where it was, then beyond that.
 *
 * Steps come by time and by octets sent. The paper's figures are for 40 Gb/s; here all are shares
 * of the line's rate, since ours may be a slow one.
 *
 * Not started: line_kbps is 0. Times in ns; the caller guards it.
 */

#include <stdbool.h>
#include <stdint.h>

struct vb_dcqcn {
	uint32_t line_kbps, rate_kbps, target_kbps;
	uint32_t alpha; /* how congested it is: 0 to VB_DCQCN_ONE */
	uint32_t time_steps, byte_steps; /* since the last CNP */
	uint64_t period_ns, alpha_ns, step_ns; /* when alpha and time_steps last changed */
	uint64_t bytes; /* since the last of byte_steps */
};

#define VB_DCQCN_ONE (1u << 20)

/* The shortest time between two CNPs for a QP, and the unit of all times. */
uint64_t vb_dcqcn_period_ns(uint32_t line_kbps);

/* A CNP came. Starts it, if it is not. */
void vb_dcqcn_cut(struct vb_dcqcn *cc, uint32_t line_kbps, uint64_t now_ns);

/* So many octets leave. */
void vb_dcqcn_sent(struct vb_dcqcn *cc, uint32_t bytes);

/* The rate at this time. Once it is the line's again it is stopped. */
uint32_t vb_dcqcn_rate(struct vb_dcqcn *cc, uint64_t now_ns);

#endif
