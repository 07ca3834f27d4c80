/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_ABI_RDMACM_EVENTS_H
#define VB_ABI_RDMACM_EVENTS_H

#include <rdma/rdma_cma.h>
#include <stdint.h>

/* Of RDMACM_1.4, as the man page of rdma-core 60 has it. */
int rdma_write_cm_event(struct rdma_cm_id *id, enum rdma_cm_event_type type, int status,
			uint64_t arg);

#endif
