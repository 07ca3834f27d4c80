/* SPDX-License-Identifier: BSD-2-Clause */
#include "nic/core/nic_host.h"

#include <string.h>

#include "base/check.h"

/* A group consists of function pointers only. */
static void whole(const void *group, size_t bytes)
{
	uintptr_t function;

	for (size_t at = 0; group && at < bytes; at += sizeof(function)) {
		memcpy(&function, (const uint8_t *)group + at, sizeof(function));
		vb_check(function);
	}
}

#define WHOLE(group) whole(group, sizeof(*(group)))

void vb_nic_host_check(const struct vb_nic_host *host)
{
	WHOLE(&host->clock);
	WHOLE(&host->wire);
	WHOLE(&host->process);
	WHOLE(host->stamps);
	WHOLE(host->groups);
	WHOLE(host->peers);
	WHOLE(host->direct);
	WHOLE(host->sharing);
	WHOLE(host->memory);
	WHOLE(host->paging);
	WHOLE(host->foreign);
	WHOLE(host->xrc);
	WHOLE(host->segment);
	WHOLE(host->gsi);
	WHOLE(host->insight);
	WHOLE(host->capture);
	vb_check(!host->order || host->order->dawdle);
}
