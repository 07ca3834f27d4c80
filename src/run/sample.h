/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_RUN_SAMPLE_H
#define VB_RUN_SAMPLE_H

/* Tells whoever watches (`verbatim top`, `status`, `metrics`) how this process is. */

#include <stdbool.h>

/* For vb_hub_client_on_sample(); arg is the struct vb_device. Never waits for the watcher. */
void vb_sample_asked(void *arg, int answer_fd, bool measure);

#endif
