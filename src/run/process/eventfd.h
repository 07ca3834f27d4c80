/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_RUN_EVENTFD_H
#define VB_RUN_EVENTFD_H

/*
 * The descriptors behind completion channels and asynchronous events: readable while an event
 * waits, one successful read for each event. They begin blocking, as those of a kernel device do;
 * applications set O_NONBLOCK, poll them, and sometimes read them beside us.
 */

#include <stdbool.h>

/* A new one, or -1 with errno. */
int vb_eventfd_create(void);

/* One event more. */
void vb_eventfd_signal(int fd);

/* One event less, if nobody has read it meanwhile. Never waits, whatever the fd's flags say. */
void vb_eventfd_unsignal(int fd);

/*
 * Wait for an event and take it, as the fd's flags say. False, with errno, if there is none. A
 * cancellation point: applications cancel threads that wait for events.
 */
bool vb_eventfd_take(int fd);

#endif
