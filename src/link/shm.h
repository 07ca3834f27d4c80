/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_LINK_SHM_H
#define VB_LINK_SHM_H

/*
 * Memory that two processes share, the bell with which one wakes the other, and the line that tells
 * it that the other is gone. Files that come
 * from elsewhere are looked at before they are mapped: one whose owner could make it shorter would
 * crash us. What is mapped here is not inherited by forked children.
 *
 * Functions return 0 or a positive errno (ENOMEM, EMFILE ...).
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/un.h>

/* A file of zeros that keeps its size. EFBIG: RLIMIT_FSIZE forbids it. */
int vb_shm_create(int *fd, size_t bytes);

/*
 * A file of zeros, mapped for us to write, and for nobody else from now on: so whoever has mapped
 * it to write made it (run/memory/owner.h).
 */
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

/* Is it sealed as an export is? An older kernel cannot do that. */
bool vb_shm_is_export(int fd);

/*
 * A bell: a socket that nobody has but its owner, who hears it (POLLIN). Others ring by sending its
 * word to its name. So none of them can silence it for the others; and who does not know the word,
 * because its owner has not told him, does not even wake the owner.
 */
struct vb_bell_key {
	uint64_t name, word;
};

struct vb_bell_target {
	uint64_t word;
	socklen_t bytes;
	struct sockaddr_un address;
};

int vb_bell_create(int *fd, struct vb_bell_key *key);
void vb_bell_aim(struct vb_bell_target *target, const struct vb_bell_key *key);
void vb_bell_ring(int own_fd, const struct vb_bell_target *target); /* own_fd: any bell */
void vb_bell_hush(int fd);					    /* what has rung is heard */

/*
 * A line: two sockets, of which each end is of one process. Where one is closed, with its process
 * or by hand, the other is cut (POLLRDHUP). Nothing is ever said on it.
 */
int vb_line_create(int fds[2]);
bool vb_line_is_cut(int fd);
void vb_line_cut(int fd); /* both ends are, from now on */

#endif
