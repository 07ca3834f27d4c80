/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_CLI_DOCTOR_DOCTOR_H
#define VB_CLI_DOCTOR_DOCTOR_H

/*
 * verbatim doctor: what of this machine works, over which link, how fast, and what to do about the
 * rest (docs/doctor.md). Exit status 0: all is well; 1: something is limited; 2: something does not
 * work; 125: wrong options.
 */
int vb_cli_doctor(int argc, char **argv);

#endif
