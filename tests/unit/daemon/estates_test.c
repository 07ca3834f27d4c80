/* SPDX-License-Identifier: BSD-2-Clause */
#include <unistd.h>

#include "cm/records.h"
#include "daemon/estates.h"
#include "group.h"
#include "link/robust.h"
#include "wire/cm_msg.h"

enum { SLOT = 7, SECOND = 1000000000 };

static struct vb_cm_records *records; /* the process's view */
static struct vb_estate *estates;
static int fd;
static bool held;
static struct {
	unsigned count;
	struct vb_path path;
	struct vb_cm_msg msg;
	uint8_t mad[VB_MAD_BYTES];
} sent;

static bool is_held(void *arg, uint32_t slot)
{
	assert_int_equal(slot, SLOT);
	return held;
}

static void send(void *arg, const struct vb_path *path, const uint8_t mad[VB_MAD_BYTES])
{
	sent.path = *path;
	assert_true(vb_cm_parse(&sent.msg, memcpy(sent.mad, mad, sizeof(sent.mad))));
	sent.count++;
}

static const struct vb_estates_host host = {is_held, send, NULL};

static void record_write(unsigned i, enum vb_cm_state state)
{
	struct vb_cm_record *record = &records->record[i];

	record->local_id = 0x100 + i;
	record->remote_id = 0x200 + i;
	record->remote_qpn = 0x33;
	record->dst[15] = 2;
	atomic_store(&record->state, state);
	atomic_store(&records->top, i + 1);
}

static int begin(void **state)
{
	assert_int_equal(vb_robust_memory_make("estate", sizeof(*records), &fd), 0);
	records = vb_estate_map(fd);
	assert_non_null(records);
	memset(&sent, 0, sizeof(sent));
	held = true;
	vb_estates_add(&estates, vb_estate_map(fd), SLOT, 0);
	return 0;
}

static int end(void **state)
{
	vb_estates_free(&estates);
	vb_estate_unmap(records);
	close(fd);
	return 0;
}

#define ESTATE_TEST(name) TEST_BETWEEN(name, begin, end)

ESTATE_TEST(a_connection_of_the_dead_is_closed)
{
	record_write(0, VB_CM_STATE_ESTABLISHED);
	record_write(1, VB_CM_STATE_IDLE);
	/* As long as somebody holds the slot, its process may live. */
	assert_true(vb_estates_settle(&estates, &host, SECOND / 2));
	assert_int_equal(sent.count, 0);
	held = false;
	assert_false(vb_estates_settle(&estates, &host, SECOND / 2));
	assert_int_equal(sent.count, 1);
	assert_int_equal(sent.msg.attr, VB_CM_DREQ);
	assert_int_equal(sent.msg.local_comm_id, 0x100);
	assert_int_equal(sent.msg.remote_comm_id, 0x200);
	assert_int_equal(sent.path.dst[15], 2);
	assert_false(vb_estates_settle(&estates, &host, SECOND));
	assert_int_equal(sent.count, 1);
}

ESTATE_TEST(who_lives_keeps_its_connections)
{
	record_write(0, VB_CM_STATE_ESTABLISHED);
	assert_false(vb_estates_settle(&estates, &host, SECOND));
	held = false;
	assert_false(vb_estates_settle(&estates, &host, 2 * (uint64_t)SECOND));
	assert_int_equal(sent.count, 0);
}

ESTATE_TEST(nonsense_is_closed_by_nobody)
{
	held = false;
	record_write(0, VB_CM_STATES);
	record_write(1, (enum vb_cm_state)0x7fffffff);
	atomic_store(&records->top, UINT32_MAX);
	assert_false(vb_estates_settle(&estates, &host, 0));
	assert_int_equal(sent.count, 0);
}

TEST(what_is_no_such_memory_is_not_mapped)
{
	int pipes[2];

	assert_int_equal(pipe(pipes), 0);
	assert_null(vb_estate_map(pipes[0]));
	close(pipes[0]);
	close(pipes[1]);
	assert_int_equal(vb_robust_memory_make("small", 4096, &fd), 0);
	assert_null(vb_estate_map(fd));
	close(fd);
	vb_estates_add(&estates, NULL, SLOT, 0);
	assert_null(estates);
}
