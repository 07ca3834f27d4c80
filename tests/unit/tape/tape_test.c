/* SPDX-License-Identifier: BSD-2-Clause */
#include "tape/tape.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>

#include "group.h"
#include "tapes.h"

GROUP(folder_make, folder_remove)

static unsigned said;

static void say(const char *words)
{
	said++;
}

static void begin(uint64_t bytes_max)
{
	said = 0;
	assert_int_equal(vb_tape_open(folder, bytes_max, say), 0);
}

static void call(uint64_t argument, int64_t rc)
{
	if (vb_tape_enter(VB_TAPE_PD_CREATE))
		vb_tape_put_value(argument);
	vb_tape_leave(rc, NULL, NULL, 0);
}

/* The kinds of all items, and how it ends. */
static enum vb_tape_read kinds_read(struct loaded tape, uint32_t *kinds, unsigned max)
{
	struct vb_tape_reader reader;
	struct vb_tape_item item;
	enum vb_tape_read read;
	unsigned n = 0;

	assert_null(vb_tape_read_begin(&reader, tape.at, tape.bytes));
	memset(kinds, 0, max * sizeof(*kinds));
	while ((read = vb_tape_read(&reader, &item)) == VB_TAPE_READ_ITEM && n < max)
		kinds[n++] = item.head->kind;
	return read;
}

TEST(without_a_tape_nothing_is_wanted)
{
	assert_false(vb_tape_is_on());
	assert_false(vb_tape_enter(VB_TAPE_PD_CREATE));
	assert_false(vb_tape_asked(VB_TAPE_NOW));
	vb_tape_leave(0, NULL, NULL, 0);
	assert_true(vb_tape_hold_try());
	vb_tape_let_go();
}

TEST(calls_answers_and_results_come_in_order)
{
	static const uint32_t want[] = { VB_TAPE_PD_CREATE, VB_TAPE_NOW, VB_TAPE_DONE,
					 VB_TAPE_PD_CREATE, VB_TAPE_DONE, VB_TAPE_END };
	uint64_t argument = 7, now = 9, made;
	const struct vb_tape_item_head *head;
	struct vb_tape_done done;
	uint32_t kinds[16];
	struct loaded tape;

	begin(1 << 22);
	assert_false(vb_tape_asked(VB_TAPE_NOW)); /* outside of a call */
	assert_true(vb_tape_enter(VB_TAPE_PD_CREATE));
	vb_tape_put_value(argument);
	assert_true(vb_tape_asked(VB_TAPE_NOW));
	vb_tape_put_value(now);
	assert_false(vb_tape_enter(VB_TAPE_TURN)); /* a part of it */
	vb_tape_leave(0, NULL, NULL, 0);
	vb_tape_leave(-3, &made, "abc", 3);
	call(8, 0);
	vb_tape_close();
	tape = tape_load();
	assert_int_equal(kinds_read(tape, kinds, 16), VB_TAPE_READ_LAST);
	assert_memory_equal(kinds, want, sizeof(want));
	head = item_of(tape, VB_TAPE_PD_CREATE, 0);
	assert_int_equal(head->bytes, 8);
	assert_memory_equal(head + 1, &argument, 8);
	head = item_of(tape, VB_TAPE_NOW, 0);
	assert_memory_equal(head + 1, &now, 8);
	head = item_of(tape, VB_TAPE_DONE, 0);
	assert_int_equal(head->bytes, sizeof(done) + 3);
	memcpy(&done, head + 1, sizeof(done));
	assert_int_equal(done.rc, -3);
	assert_int_equal(done.made, (uintptr_t)&made);
	assert_memory_equal((const uint8_t *)(head + 1) + sizeof(done), "abc", 3);
	free(tape.at);
}

/* A poll that finds nothing leaves nothing, unless the NIC asked for something. */
TEST(what_did_nothing_is_not_there)
{
	static const uint32_t want[] = { VB_TAPE_PD_CREATE, VB_TAPE_DONE, VB_TAPE_CQ_POLL,
					 VB_TAPE_NOW,	    VB_TAPE_DONE, VB_TAPE_END };
	uint32_t kinds[16];
	struct loaded tape;
	uint64_t cq = 1;

	begin(1 << 22);
	call(1, 0);
	for (unsigned i = 0; i < 1000; i++) {
		assert_true(vb_tape_enter(VB_TAPE_CQ_POLL));
		vb_tape_put_value(cq);
		vb_tape_leave_unsaid();
	}
	assert_true(vb_tape_enter(VB_TAPE_CQ_POLL));
	vb_tape_put_value(cq);
	assert_true(vb_tape_asked(VB_TAPE_NOW));
	vb_tape_put_value(cq);
	vb_tape_leave_unsaid();
	vb_tape_close();
	tape = tape_load();
	assert_int_equal(kinds_read(tape, kinds, 16), VB_TAPE_READ_LAST);
	assert_memory_equal(kinds, want, sizeof(want));
	free(tape.at);
}

TEST(a_full_tape_says_so_once_and_calls_go_on)
{
	static uint8_t big[100000];
	struct vb_tape_reader reader;
	struct vb_tape_item item;
	enum vb_tape_read read;
	struct loaded tape;
	uint32_t last = 0;

	for (unsigned more = 0; more < 40; more++) {
		begin(1 << 20);
		for (unsigned i = 0; i < 50; i++) {
			if (vb_tape_enter(VB_TAPE_RX))
				vb_tape_put(big, 30000 + more);
			vb_tape_leave(0, NULL, NULL, 0);
		}
		assert_int_equal(said, 1);
		vb_tape_close();
		tape = tape_load();
		assert_true(tape.bytes <= 1 << 20);
		assert_null(vb_tape_read_begin(&reader, tape.at, tape.bytes));
		while ((read = vb_tape_read(&reader, &item)) == VB_TAPE_READ_ITEM)
			last = item.head->kind;
		assert_int_equal(read, VB_TAPE_READ_LAST);
		assert_int_equal(last, VB_TAPE_FULL);
		free(tape.at);
	}
}

/* What was written is good at once. */
TEST(a_tape_survives_a_process_that_is_killed)
{
	static const uint32_t want[] = { VB_TAPE_PD_CREATE, VB_TAPE_DONE, VB_TAPE_TURN };
	uint32_t kinds[16];
	struct loaded tape;
	pid_t child = fork();

	if (child == 0) {
		begin(1 << 22);
		call(1, 0);
		vb_tape_enter(VB_TAPE_TURN);
		vb_tape_asked(VB_TAPE_NOW); /* which is not whole */
		kill(getpid(), SIGKILL);
	}
	assert_int_equal(waitpid(child, NULL, 0), child);
	tape = tape_load();
	assert_int_equal(kinds_read(tape, kinds, 16), VB_TAPE_READ_LAST);
	assert_memory_equal(kinds, want, sizeof(want));
	assert_int_equal(kinds[3], 0);
	free(tape.at);
}

TEST(damage_is_found)
{
	struct vb_tape_reader reader;
	struct vb_tape_item item;
	struct loaded tape;

	begin(1 << 22);
	for (unsigned i = 0; i < 20; i++)
		call(i, 0);
	vb_tape_close();
	tape = tape_load();
	/* Any octet behind the head of the tape, but those that fill up. */
	for (size_t at = sizeof(struct vb_tape_head); at < tape.bytes; at += 5) {
		enum vb_tape_read read;

		tape.at[at] ^= 0x40;
		assert_null(vb_tape_read_begin(&reader, tape.at, tape.bytes));
		while ((read = vb_tape_read(&reader, &item)) == VB_TAPE_READ_ITEM)
			continue;
		assert_int_equal(read, VB_TAPE_READ_ALTERED);
		tape.at[at] ^= 0x40;
	}
	for (size_t bytes = sizeof(struct vb_tape_head); bytes < tape.bytes; bytes++) {
		enum vb_tape_read read;

		assert_null(vb_tape_read_begin(&reader, tape.at, bytes));
		while ((read = vb_tape_read(&reader, &item)) == VB_TAPE_READ_ITEM)
			continue;
		assert_int_equal(read, VB_TAPE_READ_CUT);
	}
	assert_non_null(vb_tape_read_begin(&reader, tape.at, sizeof(struct vb_tape_head) - 1));
	tape.at[8] ^= 1; /* another layout */
	assert_non_null(strstr(vb_tape_read_begin(&reader, tape.at, tape.bytes), "another build"));
	free(tape.at);
}

TEST(a_cursor_does_not_leave_its_item)
{
	static const uint64_t octets[] = { 1, 2 };
	struct vb_tape_cursor cursor = { (const uint8_t *)octets, sizeof(octets), false };
	uint64_t value[2];

	vb_tape_get(&cursor, value, sizeof(value[0]));
	assert_int_equal(value[0], 1);
	vb_tape_get(&cursor, value, sizeof(value));
	assert_true(cursor.bad);
	assert_int_equal(value[0], 0);
	vb_tape_get(&cursor, value, 1); /* bad for good */
	assert_int_equal(value[0], 0);
	assert_null(vb_tape_get_octets(&cursor, 0));
}

static void *other_calls(void *arg)
{
	for (uint64_t i = 0; i < 2000; i++)
		call(i, 0);
	return NULL;
}

TEST(threads_take_turns)
{
	struct vb_tape_reader reader;
	struct vb_tape_item item;
	enum vb_tape_read read;
	struct loaded tape;
	pthread_t thread;
	unsigned calls = 0, open = 0;

	begin(1 << 24);
	assert_int_equal(pthread_create(&thread, NULL, other_calls, NULL), 0);
	other_calls(NULL);
	pthread_join(thread, NULL);
	vb_tape_close();
	tape = tape_load();
	assert_null(vb_tape_read_begin(&reader, tape.at, tape.bytes));
	while ((read = vb_tape_read(&reader, &item)) == VB_TAPE_READ_ITEM) {
		if (item.head->kind == VB_TAPE_PD_CREATE) {
			assert_int_equal(open, 0);
			open = item.head->thread;
			calls++;
		} else if (item.head->kind == VB_TAPE_DONE) {
			assert_int_equal(item.head->thread, open);
			open = 0;
		}
	}
	assert_int_equal(read, VB_TAPE_READ_LAST);
	assert_int_equal(calls, 4000);
	free(tape.at);
}

TEST(a_folder_that_is_not_there_is_an_error)
{
	assert_int_equal(vb_tape_open("/nowhere", 1 << 20, say), ENOENT);
	assert_false(vb_tape_is_on());
}
