/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_DAEMON_STARTER_H
#define VB_DAEMON_STARTER_H

/*
 * Whoever has started us reads our standard output, a pipe, until he is connected (hub/spawn.h): he
 * has no other way to hear why he is not. Where that is no pipe, nobody is told.
 */

/* We cannot serve: for this errno, and in these words. */
void vb_starter_tell(int error, const char *why);

/* Somebody is connected, so that what there is to say can be said there. Cheap the second time. */
void vb_starter_leave(void);

#endif
