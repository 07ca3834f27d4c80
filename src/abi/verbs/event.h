/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_ABI_VERBS_EVENT_H
#define VB_ABI_VERBS_EVENT_H

/* Asynchronous events. */

#include <pthread.h>
#include <stdint.h>

/*
 * Waits until the application has acknowledged every event that it was given. It gets no further
 * ones, as the object is dead already.
 */
void vb_abi_wait_acks(pthread_mutex_t *mutex, pthread_cond_t *cond, const uint32_t *acked,
		      const uint32_t *delivered);

#endif
