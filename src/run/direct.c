/* SPDX-License-Identifier: BSD-2-Clause */
#include "run/direct.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/check.h"
#include "base/fd.h"
#include "nic/way/peer.h"
#include "run/process/cancel.h"
#include "run/device.h"
#include "run/process/log.h"
#include "run/memory/memfile.h"
#include "run/memory/owner.h"

/* Up to this size /proc/PID/mem is faster, though it copies twice. */
#define MEM_BYTES_MAX 16384u

enum { NONE = -1, PATH_BYTES = 64, PIECES_MAX = 8, STATUS_BYTES = 4096, WORD_BYTES = 64 };

/* The pauses of vb_direct_tarry(). */
#define PAUSE_NS_MIN 20000u
#define PAUSE_NS_MAX 1000000u
#define TELL_NS 1000000000u

/*
 * System calls without libc: its pread and pwrite are cancellation points, and callers hold a lock.
 */
static ssize_t mem_read(int fd, void *to, size_t bytes, uint64_t address)
{
	return syscall(SYS_pread64, fd, to, bytes, address);
}

static ssize_t mem_write(int fd, const void *from, size_t bytes, uint64_t address)
{
	return syscall(SYS_pwrite64, fd, from, bytes, address);
}

/* --- finding the peer's process --- */

void vb_direct_meet(struct vb_direct_peer *direct, uint32_t pid, uint64_t device, uint64_t inode)
{
	vb_lock_init(&direct->lock, VB_RANK_REACHES);
	direct->pid = pid;
	direct->device = device;
	direct->inode = inode;
	direct->mem_fd = NONE;
	atomic_store(&direct->no_calls, false);
	atomic_store(&direct->told, false);
	atomic_store(&direct->state, pid ? VB_DIRECT_UNKNOWN : VB_DIRECT_REFUSED);
}

void vb_direct_part(struct vb_direct_peer *direct)
{
	atomic_store(&direct->state, VB_DIRECT_REFUSED);
	vb_fd_close(&direct->mem_fd);
}

/* Does the descriptor's process still exist, and is it the owner of the export? */
static bool is_there(const struct vb_direct_peer *direct, const struct vb_export *export)
{
	uint64_t nonce;

	return mem_read(direct->mem_fd, &nonce, sizeof(nonce), export->nonce_address) ==
		       sizeof(nonce) &&
	       nonce == export->nonce;
}

/* Opens a file of the export's owner in /proc; NONE if that fails. */
static int owner_file(const struct vb_direct_peer *direct, const struct vb_export *export,
		      const char *name)
{
	int proc_fd, fd;

	/* A different number means a different PID namespace, and then a different /proc. */
	if (export->pid != direct->pid)
		return NONE;
	proc_fd = vb_owner_open(direct->pid);
	if (proc_fd == NONE)
		return NONE;
	fd = openat(proc_fd, name, O_RDWR | O_CLOEXEC);
	if (fd != NONE && !vb_owner_has(proc_fd, export->self, direct->device, direct->inode))
		vb_fd_close(&fd);
	close(proc_fd);
	return fd;
}

static bool mem_open(struct vb_direct_peer *direct, const struct vb_export *export)
{
	direct->mem_fd = owner_file(direct, export, "mem");
	return direct->mem_fd != NONE && is_there(direct, export);
}

static void find_out(struct vb_direct_peer *direct, const struct vb_export *export)
{
	int cancel = vb_cancel_defer();

	vb_lock_take(&direct->lock);
	if (atomic_load(&direct->state) == VB_DIRECT_UNKNOWN) {
		if (mem_open(direct, export))
			atomic_store_explicit(&direct->state, VB_DIRECT_OPEN, memory_order_release);
		else
			vb_direct_part(direct);
	}
	vb_lock_drop(&direct->lock);
	vb_cancel_restore(cancel);
}

/* The peer's direct state if its memory can be reached, else NULL. */
static struct vb_direct_peer *direct_of(struct vb_peer *peer)
{
	struct vb_peer_maps *maps = peer->run;
	struct vb_direct_peer *direct = &maps->direct;

	if (atomic_load_explicit(&direct->state, memory_order_acquire) == VB_DIRECT_UNKNOWN)
		find_out(direct, peer->export);
	return atomic_load_explicit(&direct->state, memory_order_acquire) == VB_DIRECT_OPEN
		       ? direct
		       : NULL;
}

/* --- access --- */

static size_t total(const struct iovec *iov, unsigned count)
{
	size_t bytes = 0;

	for (unsigned i = 0; i < count; i++)
		bytes += iov[i].iov_len;
	return bytes;
}

/*
 * Bytes on the last cache line, which are copied separately: within one call the kernel may copy
 * cache lines in any order, and a reader that spins on the last octet must find all others there.
 */
static size_t tail_bytes(uint64_t address, size_t bytes)
{
	return vb_min_u64(bytes, ((address + bytes - 1) % VB_RING_LINE_BYTES) + 1);
}

static bool write_mem(int fd, uint64_t address, const struct iovec *iov, unsigned count)
{
	for (unsigned i = 0; i < count; i++) {
		const uint8_t *from = iov[i].iov_base;
		size_t bytes = iov[i].iov_len, body = 0;

		if (i + 1 == count)
			body = bytes - tail_bytes(address, bytes);
		if (body && mem_write(fd, from, body, address) != (ssize_t)body)
			return false;
		if (mem_write(fd, from + body, bytes - body, address + body) !=
		    (ssize_t)(bytes - body))
			return false;
		address += bytes;
	}
	return true;
}

static bool read_mem(int fd, uint64_t address, const struct iovec *iov, unsigned count)
{
	for (unsigned i = 0; i < count; i++) {
		if (mem_read(fd, iov[i].iov_base, iov[i].iov_len, address) !=
		    (ssize_t)iov[i].iov_len)
			return false;
		address += iov[i].iov_len;
	}
	return true;
}

/* Refused calls stay refused; a fault is about the memory only. */
static bool is_whole(struct vb_direct_peer *direct, ssize_t done, size_t bytes)
{
	if (done < 0 && errno != EFAULT && errno != ENOMEM)
		atomic_store(&direct->no_calls, true);
	return done == (ssize_t)bytes;
}

static bool write_call(struct vb_direct_peer *direct, uint64_t address, const struct iovec *iov,
		       unsigned count, size_t bytes)
{
	struct iovec local[PIECES_MAX + 1], remote = { (void *)(uintptr_t)address, bytes };
	size_t tail = tail_bytes(address, bytes);

	if (count > PIECES_MAX)
		return false;
	for (unsigned i = 0; i < count; i++)
		local[i] = iov[i];
	if (tail < local[count - 1].iov_len) {
		local[count - 1].iov_len -= tail;
		local[count] = (struct iovec){
			(uint8_t *)local[count - 1].iov_base + local[count - 1].iov_len, tail
		};
		count++;
	}
	return is_whole(direct,
			process_vm_writev((pid_t)direct->pid, local, count, &remote, 1, 0), bytes);
}

static bool read_call(struct vb_direct_peer *direct, uint64_t address, const struct iovec *iov,
		      unsigned count, size_t bytes)
{
	struct iovec remote = { (void *)(uintptr_t)address, bytes };

	return is_whole(direct, process_vm_readv((pid_t)direct->pid, iov, count, &remote, 1, 0),
			bytes);
}

bool vb_direct_write(void *arg, struct vb_peer *peer, uint64_t address, const struct iovec *iov,
		     unsigned count, bool paged)
{
	struct vb_direct_peer *direct = direct_of(peer);
	size_t bytes = total(iov, count);

	if (!direct)
		return false;
	if (bytes <= MEM_BYTES_MAX && !paged)
		return write_mem(direct->mem_fd, address, iov, count);
	/* The PID stays that of the process while its memory exists. */
	return !atomic_load_explicit(&direct->no_calls, memory_order_relaxed) &&
	       is_there(direct, peer->export) && write_call(direct, address, iov, count, bytes);
}

bool vb_direct_read(void *arg, struct vb_peer *peer, uint64_t address, const struct iovec *iov,
		    unsigned count, bool paged)
{
	struct vb_direct_peer *direct = direct_of(peer);
	size_t bytes = total(iov, count);

	if (!direct)
		return false;
	if (bytes <= MEM_BYTES_MAX && !paged)
		return read_mem(direct->mem_fd, address, iov, count);
	return !atomic_load_explicit(&direct->no_calls, memory_order_relaxed) &&
	       read_call(direct, address, iov, count, bytes) && is_there(direct, peer->export);
}

/* --- mapping --- */

/* The offset within its page. */
static uint64_t page_part(uint64_t offset)
{
	return offset & ((uint64_t)sysconf(_SC_PAGESIZE) - 1);
}

/* Opens a file that the peer's process has open. */
static int file_open(const struct vb_peer_maps *maps, const struct vb_export *export, int file)
{
	char name[PATH_BYTES];

	snprintf(name, sizeof(name), "fd/%d", file);
	return owner_file(&maps->direct, export, name);
}

void *vb_direct_map(void *arg, struct vb_peer *peer, int file, uint64_t offset, uint64_t bytes)
{
	int cancel = vb_cancel_defer();
	int fd = file_open(peer->run, peer->export, file);
	void *at = NULL;

	if (fd != NONE) {
		at = vb_memfile_map_shared(fd, offset, bytes);
		close(fd);
	}
	vb_cancel_restore(cancel);
	return at;
}

void vb_direct_unmap(void *arg, void *memory, uint64_t bytes)
{
	uint64_t part = page_part((uintptr_t)memory);

	munmap((uint8_t *)memory - part, bytes + part);
}

/* --- what the kernel says of the peer --- */

/*
 * Copies the value of a line of /proc/PID/status; name includes the colon. False if there is no
 * such line.
 */
static bool status_of(uint32_t pid, const char *name, char *value, size_t bytes)
{
	char path[PATH_BYTES], text[STATUS_BYTES] = "\n";
	const char *line;
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "/proc/%u/status", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd == NONE)
		return false;
	n = read(fd, text + 1, sizeof(text) - 2);
	close(fd);
	text[n > 0 ? n + 1 : 1] = '\0';
	for (line = strchr(text, '\n'); line; line = strchr(line, '\n')) {
		line++;
		if (strncmp(line, name, strlen(name)) != 0)
			continue;
		line += strlen(name) + strspn(line + strlen(name), "\t ");
		snprintf(value, bytes, "%.*s", (int)strcspn(line, "\n"), line);
		return true;
	}
	return false;
}

/* NSpid lists the PID in all namespaces from ours inwards: is there only one? */
static bool is_of_our_namespace(uint32_t pid)
{
	char numbers[WORD_BYTES];

	return status_of(pid, "NSpid:", numbers, sizeof(numbers)) && !strchr(numbers, '\t');
}

bool vb_direct_may_reach(void *arg, struct vb_peer *peer)
{
	const struct vb_device *dev = arg;
	const struct vb_peer_maps *maps = peer->run;
	int cancel = vb_cancel_defer();
	bool may = atomic_load(&peer->export) == dev->peers.export;

	if (!may && maps->direct.pid && prctl(PR_GET_DUMPABLE) == 1)
		may = is_of_our_namespace(maps->direct.pid);
	vb_cancel_restore(cancel);
	return may;
}

/* Logs once for each process. */
static void tell_of_waiting(struct vb_peer *peer)
{
	struct vb_direct_peer *direct = &((struct vb_peer_maps *)peer->run)->direct;
	char name[WORD_BYTES] = "?", state[WORD_BYTES] = "?";

	if (atomic_exchange(&direct->told, true))
		return;
	status_of(direct->pid, "Name:", name, sizeof(name));
	status_of(direct->pid, "State:", state, sizeof(state));
	vb_log("peer slot %u (pid %u, %s, state %s) is reading or writing our memory: "
	       "deregistering it waits, and fails with EBUSY in the end",
	       peer->slot, direct->pid, name, state);
}

void vb_direct_pause(void *arg, uint64_t waited_ns)
{
	struct timespec pause = {
		.tv_nsec = (long)vb_min_u64(PAUSE_NS_MAX, PAUSE_NS_MIN + waited_ns / 4),
	};
	int cancel = vb_cancel_defer();

	vb_lock_order_wait("a pause");
	nanosleep(&pause, NULL);
	vb_cancel_restore(cancel);
}

bool vb_direct_tarry(void *arg, struct vb_peer *peer, uint64_t waited_ns)
{
	int cancel = vb_cancel_defer();

	if (waited_ns >= TELL_NS)
		tell_of_waiting(peer);
	vb_direct_pause(arg, waited_ns);
	vb_cancel_restore(cancel);
	return !vb_peers_is_dead(arg, peer);
}

const struct vb_host_direct vb_direct_host = {
	.write = vb_direct_write,
	.read = vb_direct_read,
	.map = vb_direct_map,
	.unmap = vb_direct_unmap,
	.may_reach = vb_direct_may_reach,
	.tarry = vb_direct_tarry,
};
