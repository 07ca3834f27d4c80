/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_VIEW_SIGHT_H
#define VB_VIEW_SIGHT_H

/* Which processes see a tree: what /proc says of those that this user may look at. */

#include <stdbool.h>
#include <sys/types.h>

/* Was it executed with VERBATIM_VIEW_ROOT=root in its environment? One thread at a time. */
bool vb_view_sight_has(pid_t pid, const char *root);

/* Is it a hub? That is no user: it has namespaces and environment of who happened to start it. */
bool vb_view_sight_is_hub(pid_t pid);

/* Was any process but a hub? One thread at a time. */
bool vb_view_sight_any(const char *root);

#endif
