/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_LINK_SHM_H
#define VB_LINK_SHM_H

/*
 * Memory that two processes share, and the bell with which one wakes the other. Files that come
 * from elsewhere are looked at before they are mapped: one whose owner could make it shorter would
 * crash us. What is mapped here is not inherited by forked children.
 *
 * Functions return 0 or a positive errno (ENOMEM, EMFILE ...).
 */

#include <stdbool.h>
#include <stddef.h>

/* A file of zeros that keeps its size. EFBIG: RLIMIT_FSIZE forbids it. */
int vb_shm_create(int *fd, size_t bytes);

/* A file of zeros, mapped for us to write, and for nobody else from now on. */
int vb_shm_export(int *fd, void **memory, size_t bytes);

/*
 * Is that a file in memory with these seals (F_GET_SEALS, fcntl(2)), and of ordinary pages? Huge
 * ones may run out, and whoever touches what is missing then is killed.
 */
bool vb_shm_is_sealed(int fd, int seals);

/* Address space for a mapping: readable zeros that cost nothing. */
int vb_shm_reserve(void **memory, size_t bytes);

/*
 * Map a file in the place of what is at memory. EPROTO: it has not that size, or might lose it.
 * The fd is the caller's, and not needed afterwards.
 */
int vb_shm_map(void *memory, int fd, size_t bytes, bool write);

/* Zeros again in the place of what is at memory, which stays readable and writable. */
void vb_shm_blank(void *memory, size_t bytes);

/*
 * In the child of a fork, which has none of this memory: keep others out of its place, and tell
 * tools that know nothing of MADV_DONTFORK. Valgrind would look for pointers there, page by page,
 * and survive a SIGSEGV for each: seconds, at the child's end.
 */
void vb_shm_forget(void *memory, size_t bytes);

void vb_shm_unmap(void *memory, size_t bytes);

/*
 * A bell: whoever has the outer end rings, whoever has the inner one hears it (POLLIN), and when
 * the last inner end is closed the outer ones have POLLHUP.
 */
int vb_bell_create(int *inner_fd, int *outer_fd);
void vb_bell_ring(int outer_fd);
void vb_bell_hush(int inner_fd); /* what has rung so far is heard */
bool vb_bell_is_dead(int outer_fd);

#endif
