/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/trace.h"

#include <dirent.h>
#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/run.h"
#include "cli/timeline.h"

struct trace {
	const char *file, *folder;
	bool udp, join;
	bool keep; /* the folder, since the timeline could not be written */
	char own[PATH_MAX]; /* a folder that is removed at the end; "": the user's is used */
};

static int usage(void)
{
	fputs("usage: verbatim trace [-o FILE] [-d FOLDER] [--udp] [--] CMD [ARGS]\n"
	      "       verbatim trace [-o FILE] --join FOLDER\n",
	      stderr);
	return VB_CLI_USAGE;
}

static int trouble(const char *what, int error)
{
	vb_cli_error("%s: %s", what, strerror(error));
	return VB_CLI_FAILED;
}

static int folder_make(struct trace *trace)
{
	const char *tmp = getenv("TMPDIR");

	if (trace->folder)
		return mkdir(trace->folder, 0700) && errno != EEXIST ? errno : 0;
	snprintf(trace->own, sizeof(trace->own), "%s/verbatim-trace.XXXXXX", tmp ? tmp : "/tmp");
	if (!mkdtemp(trace->own)) {
		trace->own[0] = 0;
		return errno;
	}
	trace->folder = trace->own;
	return 0;
}

static void folder_remove(const struct trace *trace)
{
	DIR *dir = *trace->own && !trace->keep ? opendir(trace->own) : NULL;
	struct dirent *entry;

	while (dir && (entry = readdir(dir)))
		unlinkat(dirfd(dir), entry->d_name, 0);
	if (!dir)
		return;
	closedir(dir);
	rmdir(trace->own);
}

static int join(struct trace *trace)
{
	unsigned long events = 0, lost = 0;
	int rc;

	if (access(trace->folder, R_OK | X_OK))
		return trouble(trace->folder, errno);
	rc = vb_cli_timeline(trace->folder, trace->file, &events, &lost);
	if (rc == ENODATA) {
		vb_cli_error("no program opened the device: there is nothing to see");
		return VB_CLI_FAILED;
	}
	if (rc) {
		trace->keep = true;
		return trouble(trace->file, rc);
	}
	fprintf(stderr, "verbatim: %s has %lu events; ui.perfetto.dev and chrome://tracing show "
		"it\n", trace->file, events);
	if (lost)
		fprintf(stderr, "verbatim: %lu later events are not in it: a process has room for "
			"%d\n", lost, 1 << 18);
	return VB_CLI_OK;
}

/* Returns the program's exit status, as a shell says it. */
static int run(const struct trace *trace, char **argv)
{
	int status = 0, words = 0;
	pid_t pid;

	setenv("VERBATIM_TRACE", trace->folder, 1);
	if (trace->udp)
		setenv("VERBATIM_LINK", "udp", 1);
	while (argv[words])
		words++;
	fflush(NULL);
	pid = fork();
	if (pid < 0)
		return trouble("fork", errno) + VB_CLI_RUN_FAILED - VB_CLI_FAILED;
	if (!pid) {
		char **line = calloc((size_t)words + 3, sizeof(*line));
		char name[] = "run", end[] = "--";

		if (!line)
			_exit(VB_CLI_RUN_FAILED);
		line[0] = name;
		line[1] = end;
		memcpy(line + 2, argv, (size_t)words * sizeof(*line));
		_exit(vb_cli_run(words + 2, line));
	}
	/* ^C is for the program: what it did until then is joined. */
	signal(SIGINT, SIG_IGN);
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		continue;
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

static bool option_take(struct trace *trace, int option)
{
	switch (option) {
	case 'o':
		trace->file = optarg;
		return true;
	case 'j':
		trace->join = true;
		/* fall through */
	case 'd':
		trace->folder = optarg;
		return true;
	case 'u':
		trace->udp = true;
		return true;
	default:
		return false;
	}
}

int vb_cli_trace(int argc, char **argv)
{
	static const struct option longs[] = {
		{ "udp", no_argument, NULL, 'u' },
		{ "join", required_argument, NULL, 'j' },
		{ NULL },
	};
	struct trace trace = { .file = "trace.json" };
	int option, rc, status = VB_CLI_OK;

	opterr = 0;
	optind = 1;
	while ((option = getopt_long(argc, argv, "+o:d:", longs, NULL)) != -1) {
		if (!option_take(&trace, option))
			return usage();
	}
	if (trace.join != (optind == argc))
		return usage();
	if (trace.join)
		return join(&trace);
	rc = vb_cli_file_probe(trace.file);
	if (rc)
		return trouble(trace.file, rc);
	rc = folder_make(&trace);
	if (rc)
		return trouble(trace.folder ? trace.folder : trace.own, rc);
	status = run(&trace, argv + optind);
	rc = join(&trace);
	if (trace.keep && *trace.own)
		vb_cli_error("what was noted is in %s, for verbatim trace --join", trace.own);
	folder_remove(&trace);
	return status ? status : rc;
}
