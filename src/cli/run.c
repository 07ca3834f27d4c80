/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/run.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/check.h"
#include "base/words.h"
#include "cli/cli.h"
#include "cli/help/help.h"
#include "cli/settings.h"
#include "view/show.h"

#define VIEW_LIBRARY "libverbatim_view.so.1"

/*
 * argument NULL: a flag, which sets the variable to value. Without a variable value is a list of
 * libraries to preload, or without that, the option is about the view.
 */
struct option {
	const char *name, *variable, *argument, *help, *value;
};

/* clang-format off */
static const struct option options[] = {
	{ "--fault", "VERBATIM_FAULT", "TEXT",
	  "such as loss=1%,dup=1%,reorder=5%,corrupt=0.1%,delay=1ms,seed=7" },
	{ "--net",   "VERBATIM_NET",   "TEXT",
	  "such as rate=10Gbit,delay=2us,queue=256KiB,ecn=64KiB" },
	{ "--faults", "VERBATIM_FAULTS", "FILE",
	  "let faults happen by the rules of a script (docs/faults.md)" },
	{ "--pcap",  "VERBATIM_PCAP",  "FILE",
	  "record every packet; %p stands for the process id" },
	{ "--log",   "VERBATIM_LOG",   "FILE",
	  "say what goes wrong; 'stderr' for the terminal" },
	{ "--quiet", "VERBATIM_HINTS", NULL,
	  "no hints on the mistakes of the first minute", "0" },
	{ "--view",  NULL,             "HOW",
	  "how it sees the device in /dev and /sys: mount, preload, none (docs/view.md)" },
	{ "--dev",   NULL,             NULL,
	  "the same as --view=auto, which is what happens without an option" },
	{ "--bundled", NULL,           NULL,
	  "the program brings libibverbs along, under a name of its own (Python's wheels)",
	  "libibverbs.so.1:libmlx5.so.1:libefa.so.1:librdmacm.so.1" },
	{ "--rsockets", NULL,          NULL,
	  "its sockets are rsockets (rsocket(7)); its peers' have to be, too",
	  "rsocket/librspreload.so.1" },
};
/* clang-format on */

static int usage(FILE *out, int status)
{
	fputs("usage: verbatim run [OPTIONS] [--] CMD [ARGS]\n\n", out);
	for (unsigned i = 0; i < VB_ARRAY_LEN(options); i++)
		fprintf(out, "  %-10s %-4s  %s\n", options[i].name,
			options[i].argument ? options[i].argument : "", options[i].help);
	vb_cli_examples_print("run", out);
	return status;
}

static const struct vb_words option_names = VB_WORDS(options);

/* Finds an option by its name, to which "=VALUE" may be joined if it takes one. */
static const struct option *option_find(const char *word)
{
	size_t name_chars = strcspn(word, "=");
	unsigned i = vb_words_find(&option_names, word, name_chars);

	if (i == option_names.count)
		vb_cli_unknown(&option_names, "option", word, name_chars);
	else if (word[name_chars] && !options[i].argument)
		vb_cli_error("%s takes no argument", options[i].name);
	else
		return &options[i];
	return NULL;
}

/* Adds a path to a variable that is a list of paths, before or behind the others. */
static int list_add(const char *variable, const char *path, bool in_front)
{
	const char *before = getenv(variable);
	char *list;
	int rc;

	if (!before || !*before)
		return setenv(variable, path, 1) ? errno : 0;
	if (asprintf(&list, "%s:%s", in_front ? path : before, in_front ? before : path) < 0)
		return ENOMEM;
	rc = setenv(variable, list, 1) ? errno : 0;
	free(list);
	return rc;
}

/* What is wanted beside variables. */
struct wanted {
	enum vb_view_show view;
	bool preloaded[VB_ARRAY_LEN(options)];
};

/* Preloads libraries of our folder, whose names are joined by colons. */
static int preload(const char *dir, const char *names)
{
	char path[PATH_MAX + NAME_MAX];
	int rc = 0;

	while (!rc && *names) {
		size_t name_chars = strcspn(names, ":");

		snprintf(path, sizeof(path), "%s/%.*s", dir, (int)name_chars, names);
		rc = list_add("LD_PRELOAD", path, false);
		names += name_chars + (names[name_chars] == ':');
	}
	return rc;
}

static int view_show(const char *dir, enum vb_view_show wanted)
{
	char library[PATH_MAX + NAME_MAX], why[512];
	const char *hints = getenv("VERBATIM_HINTS");
	struct vb_view_shown shown;
	int rc;

	snprintf(library, sizeof(library), "%s/" VIEW_LIBRARY, dir);
	rc = vb_view_show(wanted, library, &shown);
	if (rc)
		vb_cli_error("--view=%s: %s", vb_words_at(&vb_view_show_names, wanted),
			     vb_view_show_why(why, sizeof(why), shown.mount_step, rc));
	else if (shown.error && hints && !strcmp(hints, "stderr"))
		fprintf(stderr,
			"verbatim: hint: the program sees no device in /dev and /sys: %s\n",
			vb_view_show_why(why, sizeof(why), VB_VIEW_STEP_NONE, shown.error));
	return !rc && shown.by == VB_VIEW_SHOW_PRELOAD ? preload(dir, VIEW_LIBRARY) : rc;
}

/*
 * Our folder comes first; the program may need other libraries from the rest of the list. Preloaded
 * libraries come before ours, since a sanitizer's has to be the first.
 */
static int libraries_set(const struct wanted *wanted)
{
	char dir[PATH_MAX];
	int rc = vb_cli_library_dir(dir);

	if (rc) {
		vb_cli_error("libibverbs.so.1 is neither in lib/ beside this command nor in "
			     "../lib/verbatim");
		return rc;
	}
	rc = list_add("LD_LIBRARY_PATH", dir, true);
	for (unsigned i = 0; !rc && i < VB_ARRAY_LEN(options); i++) {
		if (wanted->preloaded[i])
			rc = preload(dir, options[i].value);
	}
	return rc ? rc : view_show(dir, wanted->view);
}

static int view_take(struct wanted *wanted, const char *name)
{
	unsigned i = vb_words_find(&vb_view_show_names, name, strlen(name));

	if (i == vb_view_show_names.count) {
		vb_cli_unknown(&vb_view_show_names, "view", name, strlen(name));
		return EINVAL;
	}
	wanted->view = (enum vb_view_show)i;
	return 0;
}

/* Takes the option at *i, and its value, which may be the next word. */
static int option_take(const struct option *option, struct wanted *wanted, int argc, char **argv,
		       int *i)
{
	const char *value = strchr(argv[*i], '=');

	if (!option->argument) {
		if (!option->variable)
			wanted->preloaded[option - options] = option->value != NULL;
		return option->variable && setenv(option->variable, option->value, 1) ? errno : 0;
	}
	if (!value && (*i + 1 == argc || !strcmp(argv[*i + 1], "--"))) {
		vb_cli_error("%s needs an argument", argv[*i]);
		return EINVAL;
	}
	value = value ? value + 1 : argv[++*i];
	if (!option->variable)
		return view_take(wanted, value);
	return setenv(option->variable, value, 1) ? errno : 0;
}

int vb_cli_run(int argc, char **argv)
{
	struct wanted wanted = { VB_VIEW_SHOW_AUTO };
	int i = 1, rc;

	for (; i < argc && argv[i][0] == '-' && strcmp(argv[i], "--"); i++) {
		const struct option *option;

		if (!strcmp(argv[i], "--help") || !strcmp(argv[i], "-h"))
			return usage(stdout, VB_CLI_OK);
		option = option_find(argv[i]);
		if (!option || option_take(option, &wanted, argc, argv, &i))
			return usage(stderr, VB_CLI_RUN_FAILED);
	}
	if (i < argc && !strcmp(argv[i], "--"))
		i++;
	if (i == argc)
		return usage(stderr, VB_CLI_RUN_FAILED);
	/* Hints explain why the program failed, which it does not say itself. */
	setenv("VERBATIM_HINTS", "stderr", 0);
	if (vb_cli_settings_check() || libraries_set(&wanted))
		return VB_CLI_RUN_FAILED;
	execvp(argv[i], argv + i);
	rc = errno;
	vb_cli_error("%s: %s", argv[i], strerror(rc));
	return rc == ENOENT ? VB_CLI_NOT_FOUND : VB_CLI_CANNOT_EXECUTE;
}
