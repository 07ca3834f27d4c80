/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_HUB_USERS_H
#define VB_HUB_USERS_H

/*
 * Uids for people. In a user namespace the kernel shows all users without a number there as one and
 * the same uid.
 */

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/*
 * That uid, from /proc/self/uid_map and /proc/sys/kernel/overflowuid (NULL: cannot be read). 0 if a
 * user also has that number, so that it says nothing.
 */
uint32_t vb_users_nobody_read(FILE *uid_map, FILE *overflowuid);
uint32_t vb_users_nobody(void);

/* What a user can do if another user has the port. */
#define VB_OWN_NETNS "; `unshare -Urn` starts a shell with a network namespace of " \
	"its own, where `ip link set lo up` comes first"

/* "uid 1000", or words for a user without a number here. Returns text. */
const char *vb_users_words(char *text, size_t bytes, uint32_t uid, uint32_t nobody);

#endif
