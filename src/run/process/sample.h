/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_RUN_SAMPLE_H
#define VB_RUN_SAMPLE_H

/* Tells whoever watches (`verbatim top`, `status`, `metrics`) how this process is. */

#include <stdint.h>

struct vb_nic;

/*
 * Sends a sample to answer_fd. Never waits; who gets none says so. measure_s: when the next one is
 * asked for (nic/control/sample.h).
 */
void vb_sample_send(struct vb_nic *nic, int answer_fd, uint32_t measure_s);

#endif
