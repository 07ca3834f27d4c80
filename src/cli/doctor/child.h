/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_CLI_DOCTOR_CHILD_H
#define VB_CLI_DOCTOR_CHILD_H

/*
 * Looks that change the process that looks, or may not end, are taken by children. The process has
 * one thread.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct vb_doctor_child {
	pid_t pid; /* 0: there is none */
	int said_fd; /* what it writes to stderr */
};

/* Memory of zeros that children share with us; NULL: there is none. It is never given back. */
void *vb_doctor_shared(size_t bytes);

/*
 * Runs work(arg) in a child, which ends then; arg is in shared memory. Its stderr is a pipe, which
 * never has it wait, and its stdout nothing. Returns 0 or an errno.
 */
int vb_doctor_child_start(struct vb_doctor_child *child, void (*work)(void *arg), void *arg);

/*
 * Waits until it has ended, or kills it at that time (CLOCK_MONOTONIC). `said` becomes the last
 * line of ours that it wrote, without what stands before every such line. True: it ended by itself,
 * and well.
 */
bool vb_doctor_child_end(struct vb_doctor_child *child, uint64_t deadline_ns, char *said,
			 size_t bytes);

uint64_t vb_doctor_now_ns(void);

#endif
