/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_CLI_DOCTOR_JUDGE_H
#define VB_CLI_DOCTOR_JUDGE_H

/* Judges what `verbatim doctor` has seen. Pure: looks at nothing but the facts. */

#include "cli/doctor/facts.h"

enum vb_doctor_verdict {
	VB_DOCTOR_OK,
	VB_DOCTOR_LIMITED, /* it works, and something is slower, or not to be had */
	VB_DOCTOR_MISSING, /* programs do not run */
};

struct vb_doctor_finding {
	enum vb_doctor_verdict verdict;
	char found[VB_DOCTOR_WORDS_BYTES];
	const char *means;			/* for programs; NULL where it is ok */
	char remedy[VB_DOCTOR_WORDS_BYTES]; /* what to do; "": nothing */
};

struct vb_doctor_check {
	const char *name;
	void (*judge)(const struct vb_doctor_facts *facts, struct vb_doctor_finding *finding);
};

/* The last one has no name. */
extern const struct vb_doctor_check vb_doctor_checks[];

/* "ok", "limited", "missing" */
const char *vb_doctor_verdict_name(enum vb_doctor_verdict verdict);

#endif
