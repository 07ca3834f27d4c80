/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_ABI_NEWER_DMAH_H
#define VB_ABI_NEWER_DMAH_H

/*
 * DMA handles (ibv_alloc_dmah(3)): hints for a PCIe bus, to which processor's cache data should go.
 * Here a processor itself copies the data, into its cache. So a handle is checked as an adapter
 * would check it, can be named by regions (ibv_reg_mr_ex(3)), and changes nothing.
 */

#include <infiniband/verbs.h>
#include <stdatomic.h>
#include <stdint.h>

/* First what a program sees, struct ibv_dmah. */
struct vb_dmah {
	struct ibv_context *context;
	_Atomic uint32_t regions; /* registered with it */
};

#endif
