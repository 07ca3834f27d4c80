/* SPDX-License-Identifier: BSD-2-Clause */
#include "abi/verbs/abi.h"

/*
 * Nothing is pinned, and fork() shares pages copy-on-write: there is nothing to prepare.
 * run/device.h says what becomes of objects in the child.
 */
int ibv_fork_init(void)
{
	return 0;
}

enum ibv_fork_status ibv_is_fork_initialized(void)
{
	return IBV_FORK_UNNEEDED;
}

int ibv_dontfork_range(void *base, size_t size);
int ibv_dofork_range(void *base, size_t size);

int ibv_dontfork_range(void *base, size_t size)
{
	return 0;
}

int ibv_dofork_range(void *base, size_t size)
{
	return 0;
}
