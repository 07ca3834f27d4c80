/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_RUN_RECORD_H
#define VB_RUN_RECORD_H

/* The record of what enters the NIC, if VERBATIM_RECORD is set (tape/tape.h). */

#include "run/process/env.h"

/* Begins it, before the NIC is made. 0, or an errno, which the log explains. */
int vb_record_start(const struct vb_env *env);

#endif
