/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/check.h"

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/check.h"
#include "base/words.h"
#include "cli/cli.h"
#include "cli/flaws.h"
#include "cli/help/help.h"
#include "cli/run.h"

static struct {
	const char *output;
	enum vb_cli_form form;
	int error_exitcode; /* 0: the program's own */
	const char *how;    /* "poison:", "pages:" or "" */
	struct vb_cli_suppression *suppressions;
} wanted = { .how = "" };

static bool json_take(const char *value)
{
	wanted.form = VB_CLI_JSON;
	return true;
}

static bool gen_take(const char *value)
{
	wanted.form = VB_CLI_SUPPRESSIONS;
	return true;
}

static bool pages_take(const char *value)
{
	wanted.how = "pages:";
	return true;
}

static bool poison_take(const char *value)
{
	wanted.how = "poison:";
	return true;
}

static bool output_take(const char *value)
{
	wanted.output = value;
	return true;
}

static bool file_take(const char *value)
{
	return vb_cli_suppressions_read(&wanted.suppressions, value);
}

static bool exitcode_take(const char *value)
{
	char *end;
	long code = strtol(value, &end, 10);

	wanted.error_exitcode = (int)code;
	if (*value && !*end && code >= 0 && code <= 255)
		return true;
	vb_cli_error("--error-exitcode is a number from 0 to 255");
	return false;
}

struct option {
	const char *name, *argument, *help;
	bool (*take)(const char *value);
};

/* clang-format off */
static const struct option options[] = {
	{ "--output",           "FILE", "where the report goes; else stderr",       output_take },
	{ "--json",             NULL,   "the report as JSON",                       json_take },
	{ "--error-exitcode",   "N",    "end with this status if there is a flaw",  exitcode_take },
	{ "--suppressions",     "FILE", "flaws not to report: NAME PLACE [WORDS]",  file_take },
	{ "--gen-suppressions", NULL,   "the report as such a file",                gen_take },
	{ "--pages",            NULL,   "find accesses to pages of receive buffers", pages_take },
	{ "--poison",           NULL,   "fill receive buffers with 0xdb",           poison_take },
};
/* clang-format on */

static const struct vb_words option_names = VB_WORDS(options);

static int usage(FILE *out, int status)
{
	fputs("usage: verbatim check [OPTIONS] [--] CMD [ARGS]\n\n", out);
	for (unsigned i = 0; i < VB_ARRAY_LEN(options); i++)
		fprintf(out, "  %-18s %-4s  %s\n", options[i].name,
			options[i].argument ? options[i].argument : "", options[i].help);
	fputs("\nCMD runs as by `verbatim run`, whose options may stand behind `--`.\n", out);
	vb_cli_examples_print("check", out);
	return status;
}

/* Takes the options. Returns the index of the command; 0: one of them is wrong. */
static int options_take(int argc, char **argv)
{
	int i = 1;

	for (; i < argc && argv[i][0] == '-' && strcmp(argv[i], "--"); i++) {
		size_t name_chars = strcspn(argv[i], "=");
		unsigned o = vb_words_find(&option_names, argv[i], name_chars);
		const char *value = argv[i][name_chars] ? argv[i] + name_chars + 1 : NULL;

		if (o == option_names.count) {
			vb_cli_unknown(&option_names, "option", argv[i], name_chars);
			return 0;
		}
		if (options[o].argument && !value && i + 1 < argc)
			value = argv[++i];
		if (!options[o].argument != !value) {
			vb_cli_error("%s %s", options[o].name,
				     value ? "takes no argument" : "needs an argument");
			return 0;
		}
		if (!options[o].take(value))
			return 0;
	}
	if (i < argc && !strcmp(argv[i], "--"))
		i++;
	return i < argc ? i : 0;
}

/* --- the program --- */

static volatile sig_atomic_t child;

static void pass_on(int signum)
{
	if (child > 0)
		kill(child, signum);
}

/* The terminal sends its signals to the program as well; others are for it. */
static void signals_take(void)
{
	struct sigaction action = { .sa_handler = pass_on };

	signal(SIGINT, SIG_IGN);
	signal(SIGQUIT, SIG_IGN);
	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGHUP, &action, NULL);
}

/* Runs it as `verbatim run` does; argv[0] is a word before it. Its status, as a shell has it. */
static int program_run(int argc, char **argv)
{
	int status;

	child = fork();
	if (child == 0)
		_exit(vb_cli_run(argc, argv));
	if (child < 0) {
		vb_cli_error("fork: %s", strerror(errno));
		return VB_CLI_RUN_FAILED;
	}
	signals_take();
	while (waitpid(child, &status, 0) < 0)
		if (errno != EINTR)
			return VB_CLI_RUN_FAILED;
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

static int report(const char *path)
{
	FILE *out = wanted.output ? fopen(wanted.output, "we") : stderr;
	int flaws;

	if (!out) {
		vb_cli_error("%s: %s", wanted.output, strerror(errno));
		return -1;
	}
	flaws = vb_cli_flaws_write(out, path, wanted.suppressions, wanted.form);
	if (wanted.output && fclose(out)) {
		vb_cli_error("%s: %s", wanted.output, strerror(errno));
		return -1;
	}
	return flaws;
}

int vb_cli_check(int argc, char **argv)
{
	char dir[] = "/tmp/verbatim-check.XXXXXX", path[64], setting[80];
	int first, status, flaws, rc;

	if (argc > 1 && (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h")))
		return usage(stdout, VB_CLI_OK);
	first = options_take(argc, argv);
	if (!first)
		return usage(stderr, VB_CLI_RUN_FAILED);
	rc = wanted.output ? vb_cli_file_probe(wanted.output) : 0;
	if (rc) {
		vb_cli_error("%s: %s", wanted.output, strerror(rc));
		return VB_CLI_RUN_FAILED;
	}
	if (!mkdtemp(dir)) {
		vb_cli_error("%s: %s", dir, strerror(errno));
		return VB_CLI_RUN_FAILED;
	}
	snprintf(path, sizeof(path), "%s/flaws", dir);
	snprintf(setting, sizeof(setting), "%s%s", wanted.how, path);
	/* It is there even if no process opens the device. */
	fclose(fopen(path, "we"));
	setenv("VERBATIM_CHECK", setting, 1);
	/* The word before it is the name of the command, as `verbatim run` expects. */
	status = program_run(argc - first + 1, argv + first - 1);
	flaws = report(path);
	unlink(path);
	rmdir(dir);
	if (flaws < 0)
		return VB_CLI_RUN_FAILED;
	return flaws && wanted.error_exitcode ? wanted.error_exitcode : status;
}
