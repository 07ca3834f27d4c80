/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_RUN_REPORT_H
#define VB_RUN_REPORT_H

#include "base/lent.h"
#include "nic/core/nic_host.h"

/*
 * Logs that the application's call of `function` failed with this errno, with what is known about
 * it (base/refusal.h) and where it was called:
 *
 *     ibv_modify_qp(QPN 0x4141, INIT->RTR): sgid_index 77 is empty; the table has 2 GIDs
 *     (EINVAL, at client.c:41 in connect_to)
 *
 * A function of ours that stands behind an inline one may be given by its own name: vb_abi_X is
 * ibv_X to the application. Any thread; nothing happens unless VERBATIM_LOG is set; keeps errno.
 * Returns error.
 */
VB_LENT int vb_report_refused(const char *function, int error) __attribute__((cold, noinline));

/*
 * Who is told of refused calls as well, log or not: the words are those of the log, without the
 * place. Before threads are started; vb_refusals_want() has to be on.
 */
void vb_report_listen(void (*refused)(const char *words, int error));

/*
 * What the NIC found out about failures (nic/core/found.h). Keeps a finding, which it frees later;
 * any thread, with any lock of the NIC's.
 */
void vb_report_keep(struct vb_finding *finding);

/*
 * Logs what was kept. What was kept before the call is in the log when it returns, whoever logs it.
 * Any thread, without a lock of the NIC's.
 */
void vb_report_found(void);

/* In a forked child: forgets what the parent has kept. */
void vb_report_forget(void);

#endif
