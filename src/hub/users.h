/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_HUB_USERS_H
#define VB_HUB_USERS_H

/*
 * Uids for people. In a user namespace the kernel shows all users who have no number there by one
 * and the same uid, which is then nobody's.
 */

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/*
 * That uid, from /proc/self/uid_map and /proc/sys/kernel/overflowuid (NULL: cannot be read); 0 if
 * it is a user's as well, and so says nothing.
 */
uint32_t vb_users_nobody_read(FILE *uid_map, FILE *overflowuid);
uint32_t vb_users_nobody(void);

/* What can be done beside another user. */
#define VB_OWN_NETNS "; `unshare -Urn` starts a shell with a network namespace of " \
	"its own, where `ip link set lo up` comes first"

/* "uid 1000", or what is to be said of nobody. Returns text. */
const char *vb_users_words(char *text, size_t bytes, uint32_t uid, uint32_t nobody);

#endif
