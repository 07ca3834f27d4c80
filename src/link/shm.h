/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_LINK_SHM_H
#define VB_LINK_SHM_H

/*
 * Memory that two processes share; the bell, by which one wakes the other; and the line, which
 * tells one that the other is gone. Received files are checked before they are mapped: one that its
 * owner could truncate would crash us. Forked children do not inherit these mappings.
 *
 * Functions return 0 or a positive errno (ENOMEM, EMFILE ...).
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/un.h>

/* Makes a file of zeros with a fixed size. EFBIG: RLIMIT_FSIZE forbids it. */
int vb_shm_create(int *fd, size_t bytes);

/*
 * Makes a file of zeros and maps it for writing; no later mapping can write. So a process that has
 * it mapped for writing made it (run/memory/owner.h).
 */
int vb_shm_export(int *fd, void **memory, size_t bytes);

/*
 * Is it a file in memory with these seals (F_GET_SEALS, fcntl(2)), with pages of ordinary size?
 * Huge pages may run out, and an access then kills.
 */
bool vb_shm_is_sealed(int fd, int seals);

/* Reserves address space for a mapping: readable zeros that take no memory. */
int vb_shm_reserve(void **memory, size_t bytes);

/*
 * Maps a file over the reservation at memory. EPROTO: it has another size, or could lose it. The
 * caller keeps the fd and may close it afterwards.
 */
int vb_shm_map(void *memory, int fd, size_t bytes, bool write);

/* Puts zeros over what is at memory, which stays readable and writable. */
void vb_shm_blank(void *memory, size_t bytes);

/*
 * In a forked child, which does not inherit this memory: keeps its addresses reserved, and tells
 * tools that do not know MADV_DONTFORK. Valgrind would search it for pointers, page by page, with a
 * SIGSEGV each: seconds at the child's exit.
 */
void vb_shm_forget(void *memory, size_t bytes);

void vb_shm_unmap(void *memory, size_t bytes);

/* Is it sealed as an export is? With an older kernel it cannot be. */
bool vb_shm_is_export(int fd);

/*
 * A bell: a socket that only its owner has and polls (POLLIN). Others ring by sending the bell's
 * word to its name. So none of them can silence it for others, and a process that was not told the
 * word cannot even wake the owner.
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
void vb_bell_hush(int fd);					    /* takes in all rings */

/*
 * A line: a pair of connected sockets, one end per process. When one end is closed, by death or
 * explicitly, the other is cut (POLLRDHUP). Nothing is ever sent on it.
 */
int vb_line_create(int fds[2]);
bool vb_line_is_cut(int fd);
void vb_line_cut(int fd); /* cuts both ends */

#endif
