/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * victim SEED= N= [T=]: an honest pair that works while somebody else attacks. N operations, then
 * both open their devices anew; with N=0 they never do. Until it is told to end (SIGTERM), or T
 * seconds are over. Says how much it has done; exit status 1: something was wrong.
 */
#include <signal.h>

#include "attack.h"
#include "duet.h"

static volatile sig_atomic_t told_to_end;

static void end(int number)
{
	told_to_end = 1;
}

static bool over(void)
{
	return told_to_end || (attack.seconds && time(NULL) >= attack.end);
}

int main(int argc, char **argv)
{
	static const char *const follower[2][3] = {{"victim", "follow"}, {"victim", "sleep"}};
	struct duet_options options = {.bytes = 1 << 18, .timeout = 18};
	uint64_t connections = 0, operations = 0;

	if (argc == 2 && (!strcmp(argv[1], "follow") || !strcmp(argv[1], "sleep")))
		return duet_follower(argv[1][0] == 's');
	attack_arguments(argv + 1, 0);
	signal(SIGTERM, end);
	while (!over()) {
		uint64_t rng = attack_round(connections++);
		struct duet_device device;
		struct duet_end leader;
		pid_t pid;
		int fd;

		duet_watch(120);
		pid = duet_spawn(follower[connections % 2], attack_one_in(&rng, 3), &fd);
		duet_device_open(&device);
		options.file = attack_one_in(&rng, 2);
		duet_open(&leader, &device, &options);
		duet_meet(&leader, &device, fd, options.timeout);
		for (uint64_t i = 0; (!attack.n || i < attack.n) && !over(); i++, operations++)
			duet_lead(&leader, &rng);
		duet_part(pid, fd);
		duet_close(&leader);
		duet_device_close(&device);
	}
	printf("whole: %llu operations in %llu connections\n", (unsigned long long)operations,
	       (unsigned long long)connections);
	return 0;
}
