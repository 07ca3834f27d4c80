/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_ABI_VERBS_DEVICE_H
#define VB_ABI_VERBS_DEVICE_H

/* The only device. */

#include <infiniband/verbs.h>

/* Its pointer stays the same for the life of the process. */
struct ibv_device *vb_abi_device(void);

#endif
