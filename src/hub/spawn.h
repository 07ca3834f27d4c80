/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_HUB_SPAWN_H
#define VB_HUB_SPAWN_H

#include <stdbool.h>

/*
 * Start verbatimd out of somebody else's process: no child of his is left behind, no SIGCHLD
 * reaches him, none of his files, signals or directories are taken along.
 *
 * What a start needs from the environment is read at creation: later, when a hub must be replaced,
 * the application may be busy changing it, or may have changed its directory.
 */
struct vb_hub_spawn;

/* 0 or ENOMEM. That there is no verbatimd to start is told only when one is to be started. */
int vb_hub_spawn_create(struct vb_hub_spawn **spawn);

/*
 * Start it. Returns as soon as it runs; whether it then finds another hub in its place is its own
 * affair. 0, ENOENT (there is no verbatimd), or another positive errno, noted. Blocks for the time
 * of a vfork. One thread at a time.
 */
int vb_hub_spawn_run(struct vb_hub_spawn *spawn);

/*
 * What has become of the last one started, which tells through its standard output why it cannot
 * serve (daemon/main.c): that error, noted; 0 if nothing is known. Never waits.
 */
int vb_hub_spawn_result(struct vb_hub_spawn *spawn);

/* Somebody serves: what the one that was started has to say does not matter any more. */
void vb_hub_spawn_settle(struct vb_hub_spawn *spawn);

/* What was started last has ended without a word, as it does where another was faster. */
bool vb_hub_spawn_ended(const struct vb_hub_spawn *spawn);

/* Nobody has come to listen: ETIMEDOUT, noted with what is known. */
int vb_hub_spawn_silent(struct vb_hub_spawn *spawn);

void vb_hub_spawn_destroy(struct vb_hub_spawn *spawn);

#endif
