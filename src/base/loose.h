/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_BASE_LOOSE_H
#define VB_BASE_LOOSE_H

/*
 * Loose descriptors: those that are made or have come, and stand in no table yet. A forked child
 * closes its copies of what stands in our tables. A loose one would stay open there, and hide from
 * peers or the hub that this process has died. So a thread says when it has some, and a fork waits.
 * It does so for libraries that are being opened, too: a child would find the list of them half
 * changed.
 *
 * Both wait for a bounded time only: a fork may come from a signal handler that has interrupted the
 * very thread that it would wait for, and other handlers of a fork may wait for locks of the
 * application's.
 */

/* Between these, the calling thread may have loose descriptors. They nest. */
void vb_loose_begin(void);
void vb_loose_end(void);

/* For pthread_atfork(3): before a fork, and after it in the parent and in the child. */
void vb_loose_await(void);
void vb_loose_resume(void);
void vb_loose_forget(void);

#endif
