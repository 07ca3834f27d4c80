/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_ABI_CHECK_H
#define VB_ABI_CHECK_H

/*
 * The checker behind `verbatim check`: what the other files of libibverbs call. Nothing of it is
 * reached unless VERBATIM_CHECK is set: a context then gets other functions for posting and polling
 * (calls.h), which look before and after they call the usual ones. README.md says how.
 *
 * Any thread, without a lock of the NIC's.
 */

#include <stdbool.h>

#include "abi/verbs/known.h"
#include "base/lent.h"

/* This object is not the application's, but made by one of our libraries for its own use. */
VB_LENT void vb_check_is_ours(const void *object);

/* Reads VERBATIM_CHECK, once, when a device is opened. */
void vb_check_open(void);

/* Is the program being checked? */
VB_LENT bool vb_check_is_on(void);

/* Before ibv_modify_qp(3) is called, and after it succeeded. */
void vb_check_modifies(struct ibv_qp *qp, const struct ibv_qp_attr *attr, int mask);
void vb_check_modified(struct ibv_qp *qp, const struct ibv_qp_attr *attr, int mask);

/* Frees a QP, but later: programs that use it after that are told so, and do not crash. */
void vb_check_keep(void *memory);

/* Before and after ibv_rereg_mr(3). */
void vb_check_rereg(struct ibv_mr *mr, bool done);

#endif
