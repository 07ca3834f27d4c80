/* SPDX-License-Identifier: BSD-2-Clause */
#include "link/shm.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/filter.h>
#include <linux/magic.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/failure.h"

#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x0010 /* Linux 5.1 */
#endif

#define SIZE_SEALS (F_SEAL_SHRINK | F_SEAL_GROW)

enum { HUSH_BATCH = 16, HUSH_BATCHES = 64 };

/* Exceeding this limit raises a signal that kills, beside the error. */
static bool size_is_allowed(size_t bytes)
{
	struct rlimit limit;

	return getrlimit(RLIMIT_FSIZE, &limit) == 0 &&
	       (limit.rlim_cur == RLIM_INFINITY || bytes <= limit.rlim_cur);
}

static int file_make(int *fd, size_t bytes)
{
	int rc;

	if (!size_is_allowed(bytes))
		return vb_failed(EFBIG, "shared memory");
	*fd = memfd_create("verbatim", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (*fd < 0)
		return vb_failed(errno, "memfd_create");
	if (ftruncate(*fd, (off_t)bytes))
		rc = vb_failed(errno, "ftruncate");
	else
		rc = fcntl(*fd, F_ADD_SEALS, SIZE_SEALS) ? vb_failed(errno, "fcntl(F_ADD_SEALS)")
							 : 0;
	if (rc)
		close(*fd);
	return rc;
}

int vb_shm_create(int *fd, size_t bytes)
{
	return file_make(fd, bytes);
}

int vb_shm_export(int *fd, void **memory, size_t bytes)
{
	int rc = vb_shm_reserve(memory, bytes);

	if (rc != 0)
		return rc;
	rc = file_make(fd, bytes);
	if (rc != 0) {
		vb_shm_unmap(*memory, bytes);
		return rc;
	}
	rc = vb_shm_map(*memory, *fd, bytes, true);
	if (rc != 0) {
		close(*fd);
		vb_shm_unmap(*memory, bytes);
		return rc;
	}
	/* Older kernels lack this seal: peers are of the same user, and map it read-only. */
	fcntl(*fd, F_ADD_SEALS, F_SEAL_FUTURE_WRITE);
	return 0;
}

int vb_shm_reserve(void **memory, size_t bytes)
{
	void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (at == MAP_FAILED)
		return vb_failed(errno, "mmap");
	madvise(at, bytes, MADV_DONTFORK);
	*memory = at;
	return 0;
}

bool vb_shm_is_sealed(int fd, int seals)
{
	int has = fcntl(fd, F_GET_SEALS);
	struct statfs fs;

	return has >= 0 && (has & seals) == seals && !fstatfs(fd, &fs) &&
	       fs.f_type == TMPFS_MAGIC;
}

int vb_shm_map(void *memory, int fd, size_t bytes, bool write)
{
	struct stat st;
	void *at;

	if (!vb_shm_is_sealed(fd, SIZE_SEALS) || fstat(fd, &st) || st.st_size != (off_t)bytes)
		return vb_failed(EPROTO, "shared memory of another");
	at = mmap(memory, bytes, write ? PROT_READ | PROT_WRITE : PROT_READ,
		  MAP_SHARED | MAP_FIXED, fd, 0);
	if (at == MAP_FAILED)
		return vb_failed(errno, "mmap");
	madvise(at, bytes, MADV_DONTFORK);
	return 0;
}

void vb_shm_blank(void *memory, size_t bytes)
{
	void *at = mmap(memory, bytes, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);

	if (at != MAP_FAILED)
		madvise(at, bytes, MADV_DONTFORK);
}

void vb_shm_forget(void *memory, size_t bytes)
{
	mmap(memory, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1,
	     0);
}

void vb_shm_unmap(void *memory, size_t bytes)
{
	munmap(memory, bytes);
}

bool vb_shm_is_export(int fd)
{
	int seals = fcntl(fd, F_GET_SEALS);

	return seals >= 0 && (seals & F_SEAL_FUTURE_WRITE);
}

/* --- bells --- */

void vb_bell_aim(struct vb_bell_target *target, const struct vb_bell_key *key)
{
	char *name = target->address.sun_path + 1;
	size_t room = sizeof(target->address.sun_path) - 1;
	int used;

	*target = (struct vb_bell_target){.word = key->word, .address.sun_family = AF_UNIX};
	used = snprintf(name, room, "verbatim-bell-%016" PRIx64, key->name);
	target->bytes =
		(socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)used);
}

/* Lets in the word only. Without kernel filters, strangers can wake us. */
static void filter(int fd, const uint64_t *word)
{
	uint32_t half[2];

	memcpy(half, word, sizeof(half));
	/* A filter loads numbers in network byte order. */
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ntohl(half[0]), 0, 3),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, sizeof(half[0])),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ntohl(half[1]), 0, 1),
		BPF_STMT(BPF_RET | BPF_K, sizeof(half)),
		BPF_STMT(BPF_RET | BPF_K, 0),
	};
	struct sock_fprog program = { sizeof(code) / sizeof(code[0]), code };

	setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof(program));
}

int vb_bell_create(int *fd, struct vb_bell_key *key)
{
	struct vb_bell_target self;
	int rc = 0;

	*fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (*fd < 0)
		return vb_failed(errno, "socket");
	do {
		if (getrandom(key, sizeof(*key), 0) != sizeof(*key)) {
			rc = vb_failed(errno, "getrandom");
			break;
		}
		vb_bell_aim(&self, key);
		rc = bind(*fd, (struct sockaddr *)&self.address, self.bytes) ? errno : 0;
	} while (rc == EADDRINUSE);
	if (rc) {
		close(*fd);
		return vb_failed(rc, "bind");
	}
	filter(*fd, &key->word);
	return 0;
}

void vb_bell_ring(int own_fd, const struct vb_bell_target *target)
{
	/* A full queue rings as well; the line tells if the owner is gone. */
	sendto(own_fd, &target->word, sizeof(target->word), MSG_DONTWAIT | MSG_NOSIGNAL,
	       (const struct sockaddr *)&target->address, target->bytes);
}

void vb_bell_hush(int fd)
{
	struct mmsghdr messages[HUSH_BATCH];

	/* A process that rings without end is heard again at the next poll. */
	for (unsigned i = 0; i < HUSH_BATCHES; i++) {
		memset(messages, 0, sizeof(messages));
		if (recvmmsg(fd, messages, HUSH_BATCH, MSG_DONTWAIT, NULL) < HUSH_BATCH)
			break;
	}
}

/* --- lines --- */

int vb_line_create(int fds[2])
{
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds))
		return vb_failed(errno, "socketpair");
	return 0;
}

bool vb_line_is_cut(int fd)
{
	struct pollfd line = { .fd = fd, .events = POLLRDHUP };

	return poll(&line, 1, 0) == 1;
}

void vb_line_cut(int fd)
{
	shutdown(fd, SHUT_RDWR);
}
