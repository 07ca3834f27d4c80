/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_ABI_VERBS_DEVICE_H
#define VB_ABI_VERBS_DEVICE_H

/* The devices, by the rows of their table (run/process/topology.h). */

#include <infiniband/verbs.h>
#include <stdbool.h>

/* NULL: there is no such row. The pointer stays the same for the life of the process. */
struct ibv_device *vb_abi_device_at(unsigned row);

/* False: it is no device of ours. */
bool vb_abi_device_row(const struct ibv_device *device, unsigned *row);

#endif
