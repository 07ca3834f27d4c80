/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_HUB_SPAWN_H
#define VB_HUB_SPAWN_H

#include <stdbool.h>

/*
 * Starts verbatimd from within an application: leaves no child behind, causes no SIGCHLD, and
 * passes on no files, signals or directories.
 *
 * What a start needs from the environment is read at creation. Later, when a hub must be replaced,
 * the application may be changing the environment, or may have changed its directory.
 */
struct vb_hub_spawn;

/* Returns 0 or ENOMEM. A missing verbatimd is reported by vb_hub_spawn_run(). */
int vb_hub_spawn_create(struct vb_hub_spawn **spawn);

/*
 * Starts a hub. Returns as soon as it runs; it leaves by itself if another hub is there. 0, ENOENT
 * (no verbatimd found), or another positive errno, noted. Blocks for the time of a vfork. One
 * thread at a time.
 */
int vb_hub_spawn_run(struct vb_hub_spawn *spawn);

/*
 * The error for which the last hub started cannot serve, which it writes to its standard output
 * (daemon/main.c); noted. 0 if nothing is known. Never waits.
 */
int vb_hub_spawn_result(struct vb_hub_spawn *spawn);

/* A hub serves: drops what the one that was started may report. */
void vb_hub_spawn_settle(struct vb_hub_spawn *spawn);

/* Has the last hub started ended without a report, as it does if another was faster? */
bool vb_hub_spawn_ended(const struct vb_hub_spawn *spawn);

/* Notes that no hub listens, with what is known. Returns ETIMEDOUT. */
int vb_hub_spawn_silent(struct vb_hub_spawn *spawn);

void vb_hub_spawn_destroy(struct vb_hub_spawn *spawn);

#endif
