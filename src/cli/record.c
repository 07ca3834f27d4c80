/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/record.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/run.h"
#include "tape/replay/player.h"

/* --- record --- */

static int record_usage(void)
{
	fputs("usage: verbatim record [-o FOLDER] [-m MIB] [--] CMD [ARGS]\n", stderr);
	return VB_CLI_USAGE;
}

int vb_cli_record(int argc, char **argv)
{
	const char *folder = "verbatim-record";
	int option;

	opterr = 0;
	optind = 1;
	while ((option = getopt(argc, argv, "+o:m:")) != -1) {
		if (option == 'o')
			folder = optarg;
		else if (option == 'm')
			setenv("VERBATIM_RECORD_MB", optarg, 1);
		else
			return record_usage();
	}
	if (optind == argc)
		return record_usage();
	if (mkdir(folder, 0700) && errno != EEXIST) {
		vb_cli_error("%s: %s", folder, strerror(errno));
		return VB_CLI_RUN_FAILED;
	}
	setenv("VERBATIM_RECORD", folder, 1);
	fprintf(stderr,
		"verbatim: %s gets a record of each process, which all go by UDP; verbatim replay "
		"%s/FILE.tape replays one\n",
		folder, folder);
	/* The word before CMD stands for the command's name. */
	return vb_cli_run(argc - optind + 1, argv + optind - 1);
}

/* --- replay --- */

static int replay_usage(void)
{
	fputs("usage: verbatim replay [--until ITEM] FILE\n", stderr);
	return VB_CLI_USAGE;
}

/* Where a debugger finds it. */
static struct vb_player player;

static void say(void *arg, const char *words)
{
	puts(words);
	fflush(stdout);
}

/* "client 10.0.0.1" */
static void program_say(const struct vb_tape_head *head)
{
	char words[sizeof(head->program)], when[32];
	time_t began = (time_t)head->began_wall_s;
	size_t chars = sizeof(words) - 1;
	struct tm tm;

	memcpy(words, head->program, sizeof(words));
	while (chars && !words[chars])
		chars--;
	for (size_t i = 0; i < chars; i++) {
		if ((unsigned char)words[i] < ' ')
			words[i] = ' ';
	}
	words[sizeof(words) - 1] = 0;
	strftime(when, sizeof(when), "%F %T", localtime_r(&began, &tm));
	printf("process %u, recorded from %s on: %s\n", head->pid, when, words);
}

static int end_say(const char *file)
{
	const struct vb_replay_counts *counts = &player.counts;
	unsigned long long number = player.call.number;

	printf("%llu calls, %llu frames in, %llu out, %llu completions: %llu with an error, %llu "
	       "flushed\n",
	       (unsigned long long)counts->calls, (unsigned long long)counts->frames_in,
	       (unsigned long long)counts->frames_out, (unsigned long long)counts->completions,
	       (unsigned long long)counts->errors, (unsigned long long)counts->flushed);
	switch (player.end) {
	case VB_REPLAY_GOES_ON:
	case VB_REPLAY_WHOLE:
		puts("the same as was recorded, to the end of the program");
		return VB_CLI_OK;
	case VB_REPLAY_OPEN:
		puts("the same as was recorded, as far as the record goes: the program was killed, "
		     "or still runs");
		return VB_CLI_OK;
	case VB_REPLAY_FULL:
		puts("the same as was recorded, until the record was full (VERBATIM_RECORD_MB)");
		return VB_CLI_OK;
	case VB_REPLAY_UNTIL:
		vb_player_states(&player);
		printf("the same as was recorded, before item %llu\n",
		       (unsigned long long)player.reader.number);
		return VB_CLI_OK;
	case VB_REPLAY_CUT:
		vb_cli_error("%s: the file is shorter than it was: it was replayed up to item %llu",
			     file, number);
		return VB_CLI_FAILED;
	case VB_REPLAY_ALTERED:
		vb_cli_error("%s: it was altered behind item %llu: it was replayed up to there",
			     file, number);
		return VB_CLI_FAILED;
	case VB_REPLAY_DIFFERENT:
		vb_cli_error("%s: the first difference is in item %llu: %s", file, number,
			     player.difference);
		return VB_CLI_FAILED;
	}
	return VB_CLI_FAILED;
}

static int replay(const char *file)
{
	int fd = open(file, O_RDONLY | O_CLOEXEC), rc;
	const char *why;
	struct stat stat;
	void *at;

	if (fd < 0 || fstat(fd, &stat)) {
		vb_cli_error("%s: %s", file, strerror(errno));
		return VB_CLI_FAILED;
	}
	at = stat.st_size ? mmap(NULL, (size_t)stat.st_size, PROT_READ, MAP_PRIVATE, fd, 0)
			  : MAP_FAILED;
	why = at == MAP_FAILED ? "it cannot be read"
			       : vb_player_begin(&player, at, (size_t)stat.st_size);
	if (why) {
		vb_cli_error("%s: %s", file, why);
		return VB_CLI_FAILED;
	}
	program_say(vb_tape_head(&player.reader));
	vb_player_run(&player);
	rc = end_say(file);
	vb_player_end(&player);
	munmap(at, (size_t)stat.st_size);
	close(fd);
	return rc;
}

int vb_cli_replay(int argc, char **argv)
{
	static const struct option longs[] = {
		{ "until", required_argument, NULL, 'u' },
		{ NULL },
	};
	int option;
	char *end;

	opterr = 0;
	optind = 1;
	while ((option = getopt_long(argc, argv, "", longs, NULL)) != -1) {
		if (option != 'u')
			return replay_usage();
		player.until = strtoull(optarg, &end, 10);
		if (!player.until || *end)
			return replay_usage();
	}
	if (optind + 1 != argc)
		return replay_usage();
	player.say = say;
	return replay(argv[optind]);
}
