/* SPDX-License-Identifier: BSD-2-Clause */
#include "tape/tape.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "base/check.h"
#include "base/lock.h"

#define GROW_BYTES (1u << 20)

enum { NAME_BYTES = 4096, TAPES_PER_PROCESS = 1000 };

static struct {
	_Atomic bool on;
	vb_lock lock; /* guards the following */
	struct vb_tape_head *head;
	uint8_t *at;	    /* the same, as octets */
	uint64_t max, room; /* room: octets of the file */
	uint64_t item;	    /* where the item begins that is being written; 0: none */
	uint64_t end;	    /* where it ends */
	uint64_t call;	    /* where the last call begins */
	uint32_t sum, call_sum;
	uint64_t ns;
	unsigned calls; /* how deep we are in calls */
	bool full, asked;
	int fd;
	void (*said)(const char *words);
} tape = { .lock = VB_LOCK_INIT(VB_RANK_TAPE), .fd = -1 };

/* How often this thread has the lock; and its number, 0: not known yet. */
static __thread unsigned held __attribute__((tls_model("initial-exec")));
static __thread uint32_t self __attribute__((tls_model("initial-exec")));

static uint64_t clock_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000000ull + now.tv_nsec;
}

bool vb_tape_is_on(void)
{
	return atomic_load_explicit(&tape.on, memory_order_relaxed);
}

/* --- the file --- */

/* Octets of the file are there before they are written: a full disk is no signal. */
static bool grow(uint64_t to)
{
	uint64_t room = (to + GROW_BYTES - 1) / GROW_BYTES * GROW_BYTES;

	if (to <= tape.room)
		return true;
	if (room > tape.max || posix_fallocate(tape.fd, (off_t)tape.room,
					       (off_t)(room - tape.room)))
		return false;
	tape.room = room;
	return true;
}

static void head_fill(struct vb_tape_head *head)
{
	int fd = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
	ssize_t got = fd < 0 ? -1 : read(fd, head->program, sizeof(head->program) - 1);

	if (fd >= 0)
		close(fd);
	if (got <= 0)
		snprintf(head->program, sizeof(head->program), "%s", program_invocation_short_name);
	head->layout = vb_tape_layout();
	head->began_ns = clock_ns();
	head->began_wall_s = (uint64_t)time(NULL);
	head->pid = (uint32_t)getpid();
	atomic_store(&head->bytes, sizeof(*head));
	head->magic = VB_TAPE_MAGIC;
}

/* A device that a process opens again gets another tape. */
static int file_open(const char *folder)
{
	char name[NAME_BYTES], again[16] = "";
	int fd;

	for (unsigned i = 1; i <= TAPES_PER_PROCESS; i++) {
		if (i > 1)
			snprintf(again, sizeof(again), "-%u", i);
		if ((size_t)snprintf(name, sizeof(name), "%s/%s-%d%s.tape", folder,
				     program_invocation_short_name, (int)getpid(),
				     again) >= sizeof(name)) {
			errno = ENAMETOOLONG;
			return -1;
		}
		fd = open(name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
		if (fd >= 0 || errno != EEXIST)
			return fd;
	}
	return -1;
}

int vb_tape_open(const char *folder, uint64_t bytes_max, void (*said)(const char *words))
{
	int fd = file_open(folder), rc;
	struct rlimit limit;
	void *at;

	if (fd < 0)
		return errno;
	if (getrlimit(RLIMIT_FSIZE, &limit) == 0)
		bytes_max = vb_min_u64(bytes_max, limit.rlim_cur / GROW_BYTES * GROW_BYTES);
	at = mmap(NULL, bytes_max, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	rc = at == MAP_FAILED ? errno : posix_fallocate(fd, 0, GROW_BYTES);
	if (rc != 0) {
		if (at != MAP_FAILED)
			munmap(at, bytes_max);
		close(fd);
		return rc;
	}
	madvise(at, bytes_max, MADV_DONTFORK);
	vb_lock_take(&tape.lock);
	tape.head = at;
	tape.at = at;
	tape.fd = fd;
	tape.max = bytes_max;
	tape.room = GROW_BYTES;
	tape.end = tape.call = sizeof(*tape.head);
	tape.item = 0;
	tape.sum = tape.call_sum = 0;
	tape.full = false;
	tape.said = said;
	head_fill(tape.head);
	vb_lock_drop(&tape.lock);
	atomic_store(&tape.on, true);
	return 0;
}

/* --- items --- */

/* From here on the item is good. */
static void item_end(void)
{
	struct vb_tape_item_head *head = (void *)(tape.at + tape.item);

	if (!tape.item)
		return;
	head->bytes = (uint32_t)(tape.end - tape.item - sizeof(*head));
	head->sum = tape.sum = vb_tape_sum(tape.sum, head, head + 1);
	tape.end = vb_tape_room(tape.end);
	tape.item = 0;
	atomic_store_explicit(&tape.head->bytes, tape.end, memory_order_release);
}

static void item_head(enum vb_tape_kind kind)
{
	struct vb_tape_item_head head = { .ns = tape.ns, .thread = self, .kind = kind };

	memcpy(tape.at + tape.item, &head, sizeof(head));
	tape.end = tape.item + sizeof(head);
}

/* The item that does not fit is replaced by one that says so. Nothing follows it. */
static void filled(void)
{
	tape.full = true;
	item_head(VB_TAPE_FULL);
	item_end();
	if (tape.said)
		tape.said("the record is full: what follows is not in it");
}

/* Is there room up to there, and behind it for the item that says that there is none? */
static bool has_room(uint64_t to)
{
	return grow(vb_tape_room(to) + sizeof(struct vb_tape_item_head));
}

static void item_begin(enum vb_tape_kind kind)
{
	if (!self)
		self = (uint32_t)gettid();
	tape.item = tape.end;
	if (has_room(tape.item + sizeof(struct vb_tape_item_head)))
		item_head(kind);
	else
		filled();
}

void vb_tape_put(const void *data, size_t bytes)
{
	if (tape.full || !tape.item)
		return;
	if (!has_room(tape.end + bytes)) {
		filled();
		return;
	}
	if (bytes)
		memcpy(tape.at + tape.end, data, bytes);
	tape.end += bytes;
}

/* An item of its own, behind the one that is being written. */
static bool item_next(enum vb_tape_kind kind)
{
	if (tape.full)
		return false;
	item_end();
	item_begin(kind);
	return !tape.full;
}

/* --- calls --- */

void vb_tape_hold(void)
{
	if (!vb_tape_is_on())
		return;
	if (!held)
		vb_lock_take(&tape.lock);
	held++;
}

bool vb_tape_hold_try(void)
{
	if (vb_tape_is_on() && !held && !vb_lock_try(&tape.lock))
		return false;
	held += vb_tape_is_on();
	return true;
}

void vb_tape_let_go(void)
{
	if (held && !--held)
		vb_lock_drop(&tape.lock);
}

bool vb_tape_enter(enum vb_tape_kind kind)
{
	if (!vb_tape_is_on())
		return false;
	vb_tape_hold();
	if (tape.calls++)
		return false;
	tape.ns = clock_ns() - tape.head->began_ns;
	tape.call = tape.end;
	tape.call_sum = tape.sum;
	tape.asked = false;
	return item_next(kind);
}

bool vb_tape_asked(enum vb_tape_kind kind)
{
	if (!held || !tape.calls)
		return false;
	tape.asked = true;
	return item_next(kind);
}

void vb_tape_leave(int64_t rc, const void *made, const void *results, size_t bytes)
{
	const struct vb_tape_done done = { .rc = rc, .made = (uintptr_t)made };

	if (!held)
		return;
	if (tape.calls == 1 && item_next(VB_TAPE_DONE)) {
		vb_tape_put(&done, sizeof(done));
		vb_tape_put(results, bytes);
		item_end();
	}
	tape.calls--;
	vb_tape_let_go();
}

void vb_tape_leave_unsaid(void)
{
	/* What asked for something has changed something. */
	if (!held || tape.asked || tape.full || tape.calls > 1) {
		vb_tape_leave(0, NULL, NULL, 0);
		return;
	}
	tape.item = 0;
	tape.end = tape.call;
	tape.sum = tape.call_sum;
	tape.calls--;
	vb_tape_let_go();
}

/* --- its end --- */

/* The rest of the file is room that nobody needs any more. */
static void end_say(enum vb_tape_kind kind)
{
	tape.ns = clock_ns() - tape.head->began_ns;
	if (item_next(kind))
		item_end();
	tape.full = true;
	if (!ftruncate(tape.fd, (off_t)tape.end))
		tape.room = tape.end;
}

void vb_tape_close(void)
{
	if (!vb_tape_is_on())
		return;
	vb_tape_hold();
	end_say(VB_TAPE_END);
	atomic_store(&tape.on, false);
	munmap(tape.at, tape.max);
	close(tape.fd);
	tape.fd = -1;
	vb_tape_let_go();
}

void vb_tape_farewell(void)
{
	if (!vb_tape_is_on() || !vb_tape_hold_try())
		return;
	if (!tape.calls)
		end_say(VB_TAPE_EXIT);
	vb_tape_let_go();
}

void vb_tape_forget(void)
{
	if (!vb_tape_is_on())
		return;
	atomic_store(&tape.on, false);
	vb_lock_init(&tape.lock, VB_RANK_TAPE);
	held = tape.calls = self = 0;
	close(tape.fd);
	tape.fd = -1;
}
