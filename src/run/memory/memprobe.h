/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_RUN_MEMPROBE_H
#define VB_RUN_MEMPROBE_H

#include <stdbool.h>
#include <stddef.h>

#include "nic/core/nic.h"

/*
 * Would an RDMA device accept these octets for registration? Returns 0, or EFAULT if a part is not
 * mapped, or if the first or last page cannot be read (written, if write is set). The pages between
 * are not touched: touching a large mapping would make it resident. A page there that denies access
 * shows when it is used.
 */
int vb_memprobe(const void *addr, size_t bytes, bool write);

/*
 * ibv_advise_mr(3): brings in the pages of these octets, for reading or writing, or only checks
 * that all are mapped. EFAULT: some are not mapped or deny the access; ENOMEM.
 */
int vb_memfetch(void *addr, size_t bytes, enum vb_fetch how);

#endif
