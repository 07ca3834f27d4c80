/* SPDX-License-Identifier: BSD-2-Clause */
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/lock.h"
#include "group.h"

static vb_lock qp = VB_LOCK_INIT(VB_RANK_QP), other_qp = VB_LOCK_INIT(VB_RANK_QP);
static vb_lock cq = VB_LOCK_INIT(VB_RANK_CQ_PUSH), rx = VB_LOCK_INIT(VB_RANK_RX);
static vb_lock lane = VB_LOCK_INIT(VB_RANK_LANE_RX), other_lane = VB_LOCK_INIT(VB_RANK_LANE_RX);
static vb_lock builder = VB_LOCK_INIT(VB_RANK_BUILDER), cursor = VB_LOCK_INIT(VB_RANK_CURSOR);
static vb_lock blank;

/* A child does that, and is ended; what it said. */
static void ends_with(void (*body)(void), const char *words)
{
	char text[4096];
	ssize_t bytes;
	int ends[2], status;
	pid_t child;

	assert_int_equal(pipe(ends), 0);
	child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		for (int number = 1; number < NSIG; number++)
			signal(number, SIG_DFL);
		dup2(ends[1], STDERR_FILENO);
		body();
		_exit(0);
	}
	close(ends[1]);
	bytes = read(ends[0], text, sizeof(text) - 1);
	text[bytes > 0 ? bytes : 0] = '\0';
	close(ends[0]);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFSIGNALED(status));
	assert_non_null(strstr(text, words));
}

static void cq_before_qp(void)
{
	vb_lock_take(&cq);
	vb_lock_take(&qp);
}

static void two_qps(void)
{
	vb_lock_take(&qp);
	vb_lock_take(&other_qp);
}

static void lane_tried_under_qp(void)
{
	vb_lock_take(&qp);
	vb_lock_try(&lane);
}

static void drop_what_is_free(void)
{
	vb_lock_take(&qp);
	vb_lock_drop(&other_qp);
}

static void take_what_has_no_rank(void)
{
	vb_lock_take(&blank);
}

static void wait_with_a_qp(void)
{
	vb_lock_take(&qp);
	vb_lock_order_wait("the hub");
}

TEST(a_breach_ends_the_process)
{
	ends_with(cq_before_qp, "taking QP (a QP: nic/data/qp.h); held: CQ_PUSH\n");
	ends_with(two_qps, "taking QP (a QP: nic/data/qp.h); held: QP\n");
	ends_with(lane_tried_under_qp, "trying LANE_RX ");
	ends_with(drop_what_is_free, "dropping what this thread does not hold, QP ");
	ends_with(take_what_has_no_rank, "never initialized");
	ends_with(wait_with_a_qp, "waiting for the hub with QP ");
}

TEST(order_is_no_breach)
{
	vb_lock_take(&rx);
	vb_lock_take(&qp);
	vb_lock_take(&cq);
	/* Dropped in whatever order. */
	vb_lock_drop(&qp);
	vb_lock_drop(&cq);
	vb_lock_drop(&rx);
	vb_lock_order_wait("nothing");
}

TEST(the_table_allows_more)
{
	vb_lock_take(&other_lane);
	vb_lock_take(&lane);
	vb_lock_take(&qp);
	assert_true(vb_lock_try(&rx));
	vb_lock_drop(&rx);
	vb_lock_drop(&qp);
	vb_lock_drop(&lane);
	vb_lock_drop(&other_lane);
	vb_lock_take(&cursor);
	vb_lock_take(&builder);
	vb_lock_order_wait("the hub");
	vb_lock_drop(&cursor);
	vb_lock_drop(&builder);
}

/* As the child of a fork does. */
TEST(a_new_lock_is_held_by_nobody)
{
	vb_lock_take(&cq);
	vb_lock_init(&cq, VB_RANK_CQ_PUSH);
	vb_lock_take(&qp);
	vb_lock_rank_set(&qp, VB_RANK_RX);
	vb_lock_take(&other_qp);
	vb_lock_drop(&other_qp);
	vb_lock_drop(&qp);
	vb_lock_rank_set(&qp, VB_RANK_QP);
}
