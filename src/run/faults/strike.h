/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_RUN_FAULTS_STRIKE_H
#define VB_RUN_FAULTS_STRIKE_H

/* What rules do that is not about a packet, and what is said of them. Rx right held. */

#include "run/faults/internal.h"

/* CLOCK_MONOTONIC. Any thread. */
uint64_t vb_faults_now_ns(void);

/* "FILE:LINE" of a rule. */
const char *vb_rule_place(const struct vb_faults *faults, const struct vb_rule *rule);

/* Logs that a rule fired: what happens, and to what. */
void vb_faults_say(struct vb_faults *faults, const struct vb_rule *rule, const char *what);

/* What a rule does that is not about a packet. */
void vb_faults_strike(struct vb_faults *faults, const struct vb_rule *rule, uint32_t qpn);

/* All that is due, and all that has come by rings or is to be sent. */
void vb_faults_run(struct vb_faults *faults);

#endif
