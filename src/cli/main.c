/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/words.h"
#include "cli/capture.h"
#include "cli/check.h"
#include "cli/cli.h"
#include "cli/devices.h"
#include "cli/doctor/doctor.h"
#include "cli/explain/explain.h"
#include "cli/help/help.h"
#include "cli/hub.h"
#include "cli/metrics.h"
#include "cli/record.h"
#include "cli/run.h"
#include "cli/top.h"
#include "cli/trace.h"
#include "view/keeper.h"
#include "view/lease.h"

struct command {
	const char *name;
	int (*run)(int argc, char **argv);
	const char *arguments, *help;
};

/* clang-format off */
static const struct command commands[] = {
	{ "run",     vb_cli_run,     "[OPTIONS] -- CMD [ARGS]",
	  "run a program on the software NIC" },
	{ "check",   vb_cli_check,   "[OPTIONS] -- CMD [ARGS]",
	  "run a program, and say what in it works by luck" },
	{ "devices", vb_cli_devices, "",
	  "list what programs see" },
	{ "doctor",  vb_cli_doctor,  "[--json] [--quick]",
	  "what works here, how fast, and what to do about the rest" },
	{ "status",  vb_cli_status,  "[--json]",
	  "what is in use, and by whom" },
	{ "capture", vb_cli_capture, "-i PID [-w FILE] [--no-wait]",
	  "the packets of a running process, for Wireshark" },
	{ "explain", vb_cli_explain, "[--json] FILE ...",
	  "what went wrong in captures, in words" },
	{ "top",     vb_cli_top,     "[OPTIONS]",
	  "what queue pairs do at this moment" },
	{ "trace",   vb_cli_trace,   "[OPTIONS] -- CMD [ARGS]",
	  "run a program, and make a timeline of it" },
	{ "record",  vb_cli_record,  "[-o FOLDER] [-m MIB] -- CMD",
	  "run a program, and record what enters its NIC" },
	{ "replay",  vb_cli_replay,  "[--until ITEM] FILE",
	  "what a record has, again, without the peer" },
	{ "metrics", vb_cli_metrics, "[--listen ADDRESS:PORT]",
	  "all counters, as Prometheus reads them" },
	{ "hub",     vb_cli_hub,     "status | log | stop [--force]",
	  "look at or stop the hub" },
	{ "fail",    vb_cli_fail,    "PID",
	  "let the device of a process fail" },
};
/* clang-format on */

static const struct vb_words command_names = VB_WORDS(commands);

static void usage(FILE *out)
{
	fputs("usage: verbatim COMMAND\n\n", out);
	for (unsigned i = 0; i < VB_ARRAY_LEN(commands); i++)
		fprintf(out, "  %-8s %-30s  %s\n", commands[i].name, commands[i].arguments,
			commands[i].help);
	fputs("\n  --help, --version\n", out);
}

static bool is_help(const char *word)
{
	return !strcmp(word, "--help") || !strcmp(word, "-h") || !strcmp(word, "help");
}

static int command_run(const struct command *command, int argc, char **argv)
{
	bool runs = command->run == vb_cli_run || command->run == vb_cli_check;

	/* These have help of their own, and may run a program called help. */
	if (runs || argc != 2 || !is_help(argv[1]))
		return command->run(argc, argv);
	printf("usage: verbatim %s%s%s\n\n  %s\n", command->name, *command->arguments ? " " : "",
	       command->arguments, command->help);
	vb_cli_help_print(command->name, stdout);
	return VB_CLI_OK;
}

/* Fails if the output could not be written. */
static int written(int status)
{
	if (!fflush(stdout) && !ferror(stdout))
		return status;
	vb_cli_error("cannot write: %s", strerror(errno));
	return VB_CLI_FAILED;
}

int main(int argc, char **argv)
{
	const char *name = argc > 1 ? argv[1] : "";
	char help[] = "--help";
	unsigned known;

	/* help COMMAND means COMMAND --help. */
	if (argc == 3 && is_help(name)) {
		name = argv[1] = argv[2];
		argv[2] = help;
	}
	known = vb_words_find(&command_names, name, strlen(name));
	/* For vb_view_lease_take() alone. */
	if (argc == 2 && !strcmp(name, "keeper"))
		return vb_view_keep(VB_VIEW_LISTEN_FD);
	if (known < command_names.count)
		return written(command_run(&commands[known], argc - 1, argv + 1));
	if (is_help(name)) {
		usage(stdout);
		return written(VB_CLI_OK);
	}
	if (!strcmp(name, "--version") || !strcmp(name, "-V")) {
		printf("verbatim %s\n", vb_cli_version);
		return written(VB_CLI_OK);
	}
	if (*name)
		vb_cli_unknown(&command_names, "command", name, strlen(name));
	usage(stderr);
	return VB_CLI_USAGE;
}
