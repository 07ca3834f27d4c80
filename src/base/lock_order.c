/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/check.h"
#include "base/lock.h"

/* No thread holds this many. */
enum { HELD_MAX = 64, REPORT_MAX = 24 };

/* The rules of lock_rank.def. */
enum { APART = 1, SAME = 2, TRY = 4, WAIT = 8 };

static const struct {
	const char *name, *guards;
	unsigned rules;
} ranks[] = {
	[VB_RANK_NONE] = {"NONE", "a lock that was not initialized", 0},
#define VB_LOCK_RANK(name, rules, guards) [VB_RANK_##name] = {#name, guards, rules},
#include "base/lock_rank.def"
#undef VB_LOCK_RANK
};

static _Thread_local struct {
	unsigned count;
	vb_lock *lock[HELD_MAX];
} held;

static void die(const char *what, const vb_lock *lock)
{
	char text[4096];
	size_t room = sizeof(text);
	int bytes = snprintf(text, room, "lock order: %s", what);

	if (lock)
		bytes += snprintf(text + bytes, room - bytes, " %s (%s)", ranks[lock->rank].name,
				  ranks[lock->rank].guards);
	bytes += snprintf(text + bytes, room - bytes, "; held:%s", held.count ? "" : " none");
	for (unsigned i = 0; i < held.count && i < REPORT_MAX; i++)
		bytes += snprintf(text + bytes, room - bytes, " %s",
				  ranks[held.lock[i]->rank].name);
	text[bytes++] = '\n';
	if (write(STDERR_FILENO, text, bytes) != bytes)
		__builtin_trap();
	__builtin_trap();
}

static void die_waiting(const char *what, const vb_lock *lock)
{
	char text[128];

	snprintf(text, sizeof(text), "waiting for %s with", what);
	die(text, lock);
}

/* May this thread take this lock, given those that it holds? */
static bool is_in_order(const vb_lock *lock)
{
	unsigned rules = ranks[lock->rank].rules;

	for (unsigned i = 0; i < held.count; i++) {
		enum vb_lock_rank other = held.lock[i]->rank;

		if (rules & ranks[other].rules & APART)
			continue;
		if (other > lock->rank || (other == lock->rank && !(rules & SAME)))
			return false;
	}
	return true;
}

static void add(vb_lock *lock)
{
	if (held.count == HELD_MAX)
		die("too many locks, with", lock);
	held.lock[held.count++] = lock;
}

/* Removes the lock from the list. Returns true if it was there. Usually it is the last. */
static bool take_off(const vb_lock *lock)
{
	unsigned i = held.count;

	while (i > 0 && held.lock[i - 1] != lock)
		i--;
	if (i == 0)
		return false;
	memmove(&held.lock[i - 1], &held.lock[i], (held.count - i) * sizeof(held.lock[0]));
	held.count--;
	return true;
}

void vb_lock_order_init(vb_lock *lock, enum vb_lock_rank rank)
{
	take_off(lock);
	lock->rank = rank;
}

static void check_rank(const vb_lock *lock)
{
	if (lock->rank == VB_RANK_NONE || lock->rank >= VB_RANKS)
		die("a lock that was never initialized", NULL);
}

void vb_lock_order_take(vb_lock *lock)
{
	check_rank(lock);
	if (!is_in_order(lock))
		die("taking", lock);
	add(lock);
}

bool vb_lock_order_tried(vb_lock *lock)
{
	check_rank(lock);
	if (!(ranks[lock->rank].rules & TRY) && !is_in_order(lock))
		die("trying", lock);
	add(lock);
	return true;
}

void vb_lock_order_drop(vb_lock *lock)
{
	check_rank(lock);
	if (!take_off(lock))
		die("dropping what this thread does not hold,", lock);
}

void vb_lock_order_wait(const char *what)
{
	for (unsigned i = 0; i < held.count; i++) {
		if (!(ranks[held.lock[i]->rank].rules & WAIT))
			die_waiting(what, held.lock[i]);
	}
}
