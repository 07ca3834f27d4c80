/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_RUN_MEMPROBE_H
#define VB_RUN_MEMPROBE_H

#include <stdbool.h>
#include <stddef.h>

#include "nic/core/nic.h"

/*
 * Would an RDMA device accept these octets for registration? 0, or EFAULT if a part of them is not
 * mapped, or the first or the last page cannot be read (written, if write is set). The pages in
 * between are left alone: touching all of a large mapping would make it resident, and a page in
 * the middle that refuses shows itself when it is used.
 */
int vb_memprobe(const void *addr, size_t bytes, bool write);

/*
 * ibv_advise_mr(3): have the pages there that hold these octets, for reading or writing, or only
 * look whether all of them are mapped. EFAULT: not all are, or they cannot be accessed so; ENOMEM.
 */
int vb_memfetch(void *addr, size_t bytes, enum vb_fetch how);

#endif
