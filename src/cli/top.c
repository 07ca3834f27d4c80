/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * A screen is a few lines of text, so it is written with the escape sequences that every terminal
 * of today knows (ECMA-48), and needs no library.
 */
#include "cli/top.h"

#include <errno.h>
#include <getopt.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#include "base/check.h"
#include "base/failure.h"
#include "cli/cli.h"
#include "cli/top_table.h"
#include "hub/proto.h"
#include "hub/words.h"

#define SCREEN_ON "\033[?1049h\033[?25l"
#define SCREEN_OFF "\033[?25h\033[?1049l"
#define HOME "\033[H"
#define LINE_END "\033[K\r\n"
#define SCREEN_REST "\033[J"
#define REVERSE "\033[7m"
#define PLAIN "\033[m"

enum { SEARCH_BYTES = 32, WIDTH_MAX = 250, BATCH_WIDTH = 80, HEAD_LINES = 3 };

static const uint64_t batch_wait_ns = 3000000000, screen_wait_ns = 400000000;

struct top {
	struct vb_top_order order;
	char search[SEARCH_BYTES];
	bool typing; /* a search */
	bool batch, quit;
	double seconds; /* between views */
	long times;	/* batch: tables to print */
	unsigned width, height, first;
	struct vb_cli_view before, now;
	int error; /* of the last view */
};

static volatile sig_atomic_t told_to_quit, resized;

static void on_signal(int signal)
{
	if (signal == SIGWINCH)
		resized = 1;
	else
		told_to_quit = 1;
}

/* --- what is shown --- */

static void head_print(const struct top *top, const struct vb_top_table *table, const char *end)
{
	char when[16] = "", requests[8], octets[8];
	time_t seconds = time(NULL);
	struct tm tm;

	if (localtime_r(&seconds, &tm))
		strftime(when, sizeof(when), "%H:%M:%S", &tm);
	vb_top_short(requests, table->total.requests, 5);
	vb_top_short(octets, table->total.octets, 5);
	printf("verbatim top %s, %u process%s, %u queue pair%s, %s WR/s, %s B/s", when,
	       top->now.count, top->now.count == 1 ? "" : "es", table->total.qps,
	       table->total.qps == 1 ? "" : "s", requests, octets);
	if (top->now.silent)
		printf(", %u silent", top->now.silent);
	fputs(end, stdout);
}

/* What stands below the head: a search, trouble, or how to use the keys. */
static void note_print(const struct top *top, const char *end)
{
	char why[VB_FAILURE_BYTES];

	if (top->typing)
		printf("search: %s_", top->search);
	else if (top->error == ECONNREFUSED)
		fputs("no hub is running: no process has the device open", stdout);
	else if (top->error)
		printf("%.78s", vb_failure_words(why, sizeof(why), top->error));
	else if (*top->search)
		printf("only what has \"%s\" in it (/ and Enter: all)", top->search);
	else
		printf("sorted by %s; q quit, s/S sort, r reverse, / search, p processes",
		       vb_top_column_name(top->order.column));
	fputs(end, stdout);
}

static void rows_print(const struct top *top, const struct vb_top_table *table, unsigned first,
		       unsigned most, const char *end)
{
	char line[WIDTH_MAX + 1];

	vb_top_line(line, sizeof(line), NULL, top->width);
	printf("%s%s%s%s", top->batch ? "" : REVERSE, line, top->batch ? "" : PLAIN, end);
	for (unsigned i = first; i < table->count && i - first < most; i++) {
		vb_top_line(line, sizeof(line), &table->row[i], top->width);
		printf("%s%s", line, end);
	}
}

static void show(struct top *top)
{
	const struct vb_cli_view *before = top->before.count ? &top->before : &top->now;
	struct vb_top_table table;
	unsigned room;

	top->order.search = top->search;
	if (!vb_top_table_make(&table, before, &top->now, &top->order))
		return;
	if (top->batch) {
		head_print(top, &table, "\n");
		if (top->error)
			note_print(top, "\n");
		rows_print(top, &table, 0, UINT32_MAX, "\n");
	} else {
		room = top->height > HEAD_LINES + 1 ? top->height - HEAD_LINES - 1 : 1;
		if (top->first + room > table.count)
			top->first = table.count > room ? table.count - room : 0;
		fputs(HOME, stdout);
		head_print(top, &table, LINE_END);
		note_print(top, LINE_END);
		rows_print(top, &table, top->first, room, LINE_END);
		fputs(SCREEN_REST, stdout);
	}
	fflush(stdout);
	vb_top_table_free(&table);
}

static void look(struct top *top)
{
	uint64_t wait_ns = top->batch ? batch_wait_ns : screen_wait_ns;
	struct vb_cli_view view;

	top->error = vb_cli_view_take(&view, (uint32_t)top->seconds + 1, wait_ns);
	vb_cli_view_free(&top->before);
	top->before = top->now;
	top->now = view;
}

/* --- keys --- */

static void sort_by_next(struct top *top, unsigned step)
{
	top->order.column = (top->order.column + step) % vb_top_columns();
}

static void type(struct top *top, char key)
{
	size_t used = strlen(top->search);

	if (key == '\r' || key == '\n' || key == '\033')
		top->typing = false;
	if (key == '\033')
		top->search[0] = 0;
	else if ((key == 127 || key == '\b') && used)
		top->search[used - 1] = 0;
	else if (key >= ' ' && key < 127 && used + 1 < sizeof(top->search))
		snprintf(top->search + used, sizeof(top->search) - used, "%c", key);
}

static void press(struct top *top, char key)
{
	if (top->typing) {
		type(top, key);
		return;
	}
	switch (key) {
	case 'q':
	case 3: /* ^C, since the terminal makes no signal of it */
		top->quit = true;
		break;
	case 's':
		sort_by_next(top, 1);
		break;
	case 'S':
		sort_by_next(top, vb_top_columns() - 1);
		break;
	case 'r':
		top->order.reverse = !top->order.reverse;
		break;
	case 'p':
		top->order.processes = !top->order.processes;
		break;
	case '/':
		top->typing = true;
		top->search[0] = 0;
		break;
	case 'j':
		top->first++;
		break;
	case 'k':
		top->first -= top->first > 0;
		break;
	default:
		break;
	}
}

static uint64_t now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

static void size_find(struct top *top)
{
	struct winsize size;

	top->width = BATCH_WIDTH;
	top->height = 24;
	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col && size.ws_row) {
		top->width = size.ws_col < WIDTH_MAX ? size.ws_col : WIDTH_MAX;
		top->height = size.ws_row;
	}
}

/* Until it is time for the next view: keys act at once, and so does another size. */
static void keys_take(struct top *top)
{
	uint64_t until_ms = now_ms() + (uint64_t)(top->seconds * 1000);

	while (!top->quit && !told_to_quit) {
		struct pollfd poller = { .fd = STDIN_FILENO, .events = POLLIN };
		uint64_t now = now_ms();
		char keys[64];
		ssize_t n;

		if (now >= until_ms || poll(&poller, 1, (int)(until_ms - now)) == 0)
			return;
		if (resized) {
			resized = 0;
			size_find(top);
			show(top);
		}
		if (!poller.revents)
			continue;
		n = read(STDIN_FILENO, keys, sizeof(keys));
		if (n <= 0) /* the terminal is gone */
			top->quit = true;
		for (ssize_t i = 0; i < n; i++)
			press(top, keys[i]);
		if (!top->quit)
			show(top);
	}
}

/* Returns the exit status. */
static int run_on_screen(struct top *top)
{
	const struct sigaction action = { .sa_handler = on_signal };
	struct termios before, raw;

	if (tcgetattr(STDIN_FILENO, &before)) {
		vb_cli_error("this is no terminal: use -b");
		return VB_CLI_FAILED;
	}
	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGINT, &action, NULL);
	sigaction(SIGHUP, &action, NULL);
	sigaction(SIGWINCH, &action, NULL);
	raw = before;
	raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO | ISIG);
	tcsetattr(STDIN_FILENO, TCSAFLUSH, &raw);
	fputs(SCREEN_ON, stdout);
	while (!top->quit && !told_to_quit) {
		size_find(top);
		look(top);
		show(top);
		keys_take(top);
	}
	fputs(SCREEN_OFF, stdout);
	fflush(stdout);
	tcsetattr(STDIN_FILENO, TCSAFLUSH, &before);
	return VB_CLI_OK;
}

static int run_in_batch(struct top *top)
{
	const struct timespec pause = {
		.tv_sec = (time_t)top->seconds,
		.tv_nsec = (long)((top->seconds - (double)(time_t)top->seconds) * 1e9),
	};

	top->width = WIDTH_MAX;
	look(top);
	for (long i = 0; i < top->times && !(top->error && top->error != ECONNREFUSED); i++) {
		nanosleep(&pause, NULL);
		look(top);
		if (i)
			putchar('\n');
		show(top);
	}
	return top->error && top->error != ECONNREFUSED ? VB_CLI_FAILED : VB_CLI_OK;
}

/* --- options --- */

static int usage(void)
{
	fputs("usage: verbatim top [-b | --once] [-n TIMES] [-d SECONDS] [-s COLUMN] [-f TEXT] "
	      "[-p]\n",
	      stderr);
	return VB_CLI_USAGE;
}

/* Says what is wrong with the value of an option. */
static bool value_is_wrong(int option)
{
	if (option == 'n')
		vb_cli_error("top: -n takes how many tables, from 1 on, and not '%s'", optarg);
	else if (option == 'd')
		vb_cli_error("top: -d takes seconds, from 0.01 to less than %d, and not '%s'",
			     VB_HUB_MEASURE_S_MAX, optarg);
	else
		vb_cli_error("top: -s takes a column of the table, as WR/s, and not '%s'", optarg);
	return false;
}

/* Returns false if it is wrong. */
static bool option_take(struct top *top, int option)
{
	char *end = (char *)"";

	switch (option) {
	case 'o':
		top->times = 1;
		/* fall through */
	case 'b':
		top->batch = true;
		break;
	case 'n':
		top->times = strtol(optarg, &end, 10);
		top->batch = true;
		break;
	case 'd':
		top->seconds = strtod(optarg, &end);
		break;
	case 's':
		top->order.column = vb_top_column_find(optarg);
		break;
	case 'f':
		snprintf(top->search, sizeof(top->search), "%s", optarg);
		break;
	case 'p':
		top->order.processes = true;
		break;
	default:
		break;
	}
	return (!*end && top->times > 0 && top->seconds >= 0.01 &&
		top->seconds < VB_HUB_MEASURE_S_MAX && top->order.column < vb_top_columns()) ||
	       value_is_wrong(option);
}

int vb_cli_top(int argc, char **argv)
{
	static const struct option longs[] = {
		{ "batch", no_argument, NULL, 'b' }, { "once", no_argument, NULL, 'o' }, { NULL },
	};
	struct top top = { .seconds = 1, .times = 1 };
	int option, rc;

	top.order.column = vb_top_column_find("B/s");
	opterr = 0;
	optind = 1;
	while ((option = getopt_long(argc, argv, "+bn:d:s:f:p", longs, NULL)) != -1) {
		if (option == '?')
			return usage();
		if (!option_take(&top, option))
			return VB_CLI_USAGE;
	}
	if (optind != argc)
		return usage();
	if (!isatty(STDOUT_FILENO))
		top.batch = true;
	rc = top.batch ? run_in_batch(&top) : run_on_screen(&top);
	vb_cli_view_free(&top.before);
	vb_cli_view_free(&top.now);
	return rc;
}
