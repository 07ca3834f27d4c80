/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_CLI_DOCTOR_MEASURE_H
#define VB_CLI_DOCTOR_MEASURE_H

/*
 * Measures how fast two processes of this host reach each other, by each link: messages to and fro
 * for half a second, then large WRITEs for a second. Figures, by which nothing is judged.
 */

#include "cli/doctor/facts.h"

/* Each link by two children, which have none of this process's settings. */
void vb_doctor_measure(struct vb_doctor_speed speed[VB_DOCTOR_LINKS]);

#endif
