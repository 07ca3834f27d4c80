/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_RUN_EVENTFD_H
#define VB_RUN_EVENTFD_H

/*
 * The descriptors of completion channels and asynchronous events: readable while an event waits,
 * one successful read for each event. They start blocking, as those of a kernel device do.
 * Applications set O_NONBLOCK, poll them, and sometimes read them directly.
 */

#include <stdbool.h>

#include "base/lent.h"

/* Returns a new one, or -1 with errno. */
VB_LENT int vb_eventfd_create(void);

/* Adds an event. */
VB_LENT void vb_eventfd_signal(int fd);

/* Removes an event if nobody has read it meanwhile. Never waits, whatever the fd's flags say. */
VB_LENT void vb_eventfd_unsignal(int fd);

/*
 * Waits for an event and takes it, as the fd's flags say. Returns false, with errno, if there is
 * none. A cancellation point: applications cancel threads that wait for events.
 */
VB_LENT bool vb_eventfd_take(int fd);

#endif
