/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_ABI_RDMACM_NEWER_H
#define VB_ABI_RDMACM_NEWER_H

/*
 * What <rdma/rdma_cma.h> of rdma-core 60 and later has beyond the one that we are compiled with,
 * with its numbers, for programs compiled with that. A field of events is new as well: param.arg, a
 * number of 64 bits where param begins. Its calls are declared where they are defined.
 */

/* RAI_SA, RAI_DNS. */
enum { VB_RAI_SA = 0x10, VB_RAI_DNS = 0x20 };

/* RDMA_CM_EVENT_... of enum rdma_cm_event_type. */
enum {
	VB_CMA_EVENT_ADDRINFO_RESOLVED = 16,
	VB_CMA_EVENT_ADDRINFO_ERROR = 17,
	VB_CMA_EVENT_USER = 18,
	VB_CMA_EVENT_INTERNAL = 19,
};

#endif
