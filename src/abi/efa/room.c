/* SPDX-License-Identifier: BSD-2-Clause */
#include "abi/efa/room.h"

#include <string.h>

#include "abi/verbs/abi.h"
#include "nic/control/efa.h"

bool vb_efa_rest_is_zero(const void *attr, size_t ours, uint32_t inlen)
{
	const uint8_t *octet = attr;

	for (size_t i = ours; i < inlen; i++)
		if (octet[i])
			return false;
	return true;
}

void vb_efa_give(void *attr, uint32_t inlen, const void *ours, size_t bytes)
{
	memset(attr, 0, inlen);
	memcpy(attr, ours, inlen < bytes ? inlen : bytes);
}

bool vb_efa_is(struct ibv_context *context)
{
	return vb_nic_is_efa(vb_abi_nic(context));
}
