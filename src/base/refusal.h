/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_BASE_REFUSAL_H
#define VB_BASE_REFUSAL_H

/*
 * Why a call is refused, in words. Whoever refuses it says so beside the errno:
 *
 *     return vb_refuse(EINVAL, "port_num is %u; ports are 1 to %u", attr->port_num, VB_PORTS);
 *
 * and the function that the application called reports it (run/process/report.h). Each thread keeps
 * the words of its last refusal. Nothing is composed unless somebody wants to know.
 */

#include <stdbool.h>

#include "base/lent.h"

enum { VB_REFUSAL_BYTES = 256, VB_REFUSAL_ABOUT_BYTES = 96 };

/* Does anybody want to know? Set before threads that refuse anything are started. */
void vb_refusals_want(bool wanted);
bool vb_refusals_are_wanted(void);

/* Keeps these words about `error`, and returns it. Any thread. */
VB_LENT int vb_refuse(int error, const char *format, ...)
	__attribute__((cold, noinline, format(printf, 2, 3)));

/* What the refused call was about ("QPN 0x4141, INIT->RTR"), whoever refused it. */
VB_LENT void vb_refusal_about(const char *format, ...)
	__attribute__((cold, noinline, format(printf, 1, 2)));

/*
 * Moves out what this thread keeps: the words about `error`, and what the call was about. Empty
 * texts: nothing is known.
 */
struct vb_refusal {
	char why[VB_REFUSAL_BYTES], about[VB_REFUSAL_ABOUT_BYTES];
};
void vb_refusal_take(int error, struct vb_refusal *refusal);

#endif
