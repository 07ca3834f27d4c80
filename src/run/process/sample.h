/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_RUN_SAMPLE_H
#define VB_RUN_SAMPLE_H

/* Tells whoever watches (`verbatim top`, `status`, `metrics`) how this process is. */

#include <stdint.h>

struct vb_nic;

/*
 * Sends a sample of the device of that row to answer_fd. Never waits; who gets none says so.
 * measure_s: when the next one is asked for (nic/control/sample.h).
 */
void vb_sample_send(struct vb_nic *nic, unsigned row, int answer_fd, uint32_t measure_s);

/* Logs the counters that are not 0, and whose they are if there are several devices. */
void vb_sample_log(struct vb_nic *nic, unsigned row);

#endif
