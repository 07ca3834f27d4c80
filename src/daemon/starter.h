/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_DAEMON_STARTER_H
#define VB_DAEMON_STARTER_H

/*
 * The process that started us reads our standard output, a pipe, until it is connected
 * (hub/spawn.h): only there can it learn why it gets no connection. If standard output is not a
 * pipe, nothing is written.
 */

/* Writes that we cannot serve: the errno, and why in words. */
void vb_starter_tell(int error, const char *why);

/* A client is connected and can be told by messages: closes the pipe. Cheap when repeated. */
void vb_starter_leave(void);

#endif
