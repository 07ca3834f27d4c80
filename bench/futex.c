/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * The cost of waking another process: two processes wait for each other by a futex in shared
 * memory, asleep when it is not their turn. The lower limit for completions by events.
 *
 *   futex A B        half a round trip: median, us
 */
#include <errno.h>
#include <linux/futex.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "bench.h"

#define ROUNDS 4000
#define WARM 200

/* Whose turn it is. */
static _Atomic uint32_t *turn;

static void sleep_until(uint32_t mine)
{
	while (atomic_load(turn) != mine) {
		if (syscall(SYS_futex, turn, FUTEX_WAIT, !mine, NULL, NULL, 0) && errno != EAGAIN &&
		    errno != EINTR)
			die("futex");
	}
}

static void hand_over(uint32_t to)
{
	atomic_store(turn, to);
	syscall(SYS_futex, turn, FUTEX_WAKE, 1, NULL, NULL, 0);
}

int main(int argc, char **argv)
{
	static double took_us[WARM + ROUNDS];
	uint64_t start;
	pid_t pid;

	if (argc != 3) {
		fputs("usage: futex CORE CORE\n", stderr);
		return 2;
	}
	turn = shared_new(sizeof(*turn));
	pid = fork_child();
	pin(atoi(argv[pid ? 1 : 2]));
	for (unsigned i = 0; i < WARM + ROUNDS; i++) {
		start = now_ns();
		if (pid)
			hand_over(1);
		sleep_until(pid ? 0 : 1);
		if (!pid)
			hand_over(0);
		took_us[i] = (double)(now_ns() - start) / 2e3;
	}
	if (!pid)
		_exit(0);
	waitpid(pid, NULL, 0);
	printf("%.3f\n", median(took_us + WARM, ROUNDS));
	return 0;
}
