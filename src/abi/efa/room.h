/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_ABI_EFA_ROOM_H
#define VB_ABI_EFA_ROOM_H

/* Structures that grow: what callers have of them, which may be more or less than we know. */

#include "abi/efa/efa.h"

/* Does a caller's structure of that length have this field, and all before it? */
#define vb_efa_has(type, field, inlen) \
	((inlen) >= offsetof(type, field) + sizeof(((type *)NULL)->field))

/* Is what a caller hands in beyond our structure zero? */
bool vb_efa_rest_is_zero(const void *attr, size_t ours, uint32_t inlen);

/* Fills what the caller has room for, and sets the rest of it to zero. */
void vb_efa_give(void *attr, uint32_t inlen, const void *ours, size_t bytes);

bool vb_efa_is(struct ibv_context *context);

#endif
