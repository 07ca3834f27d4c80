/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_ABI_CHECK_PAGES_H
#define VB_ABI_CHECK_PAGES_H

/*
 * --pages: the whole pages of a receive buffer are forbidden to the program from its posting until
 * the NIC writes there. A SIGSEGV handler opens them again and notes who touched them. Inside
 * abi/check; locked.
 */

#include "abi/check/state.h"

/* Before the NIC's own handler is installed, which asks this one. */
void vb_check_pages_begin(void);

void vb_check_pages_close(struct vb_check_request *request, const struct vb_check_piece *piece);
void vb_check_pages_open(struct vb_check_request *request);

/* Reports what was noted. */
void vb_check_pages_say(void);

#endif
