/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_RUN_SAMPLE_H
#define VB_RUN_SAMPLE_H

/* Tells whoever watches (`verbatim top`, `status`, `metrics`) how this process is. */

#include <stdint.h>

struct vb_nic;
struct vb_sample;

/* Below the folder that VERBATIM_VIEW_ROOT names: the last counters of devices that were closed. */
#define VB_SAMPLE_LEFT "left"

/*
 * Sends a sample of the device of that row to answer_fd. Never waits; who gets none says so.
 * measure_s: when the next one is asked for (nic/control/sample.h).
 */
void vb_sample_send(struct vb_nic *nic, unsigned row, int answer_fd, uint32_t measure_s);

/* Logs the counters that are not 0, and whose they are if there are several devices. */
void vb_sample_log(struct vb_nic *nic, unsigned row);

/*
 * Leaves the counters for who sums them up (view/counters.h), since nobody can ask any more. Does
 * nothing where there is no view.
 */
void vb_sample_leave(struct vb_nic *nic, unsigned row);

/*
 * Reads a sample that another process wrote, for the caller to free(); its texts are printable.
 * NULL: it is not whole, or of another build, or there is no memory.
 */
struct vb_sample *vb_sample_read(int fd);

#endif
