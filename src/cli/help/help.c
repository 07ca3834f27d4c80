/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/help/help.h"

#include <string.h>

#include "base/check.h"

struct page {
	const char *command;
	const char *options; /* NULL: it has none, or prints them itself */
	const char *examples;
};

/* clang-format off */
static const struct page pages[] = {
	{ "run", NULL,
	  "  verbatim run ibv_devinfo\n"
	  "  verbatim run --fault loss=1% --log stderr -- ib_write_bw\n" },
	{ "check", NULL,
	  "  verbatim check --poison -- ibv_rc_pingpong -g 0\n"
	  "  verbatim check --json -- verbatim run --quiet -- ucx_perftest\n" },
	{ "devices", NULL,
	  "  verbatim devices\n"
	  "  VERBATIM_PERSONA=efa verbatim devices\n" },
	{ "doctor",
	  "  --json         as JSON\n"
	  "  --quick        without the measurement, which takes about three seconds\n",
	  "  verbatim doctor\n"
	  "  verbatim doctor --quick --json\n" },
	{ "status",
	  "  --json         as JSON\n",
	  "  verbatim status --json\n" },
	{ "capture",
	  "  -i PID         the process, as `verbatim status` has it\n"
	  "  -w FILE        where the packets go; else stdout\n"
	  "  --no-wait      the process never waits for the reader, who may miss packets\n",
	  "  verbatim capture -i 4711 -w packets.pcapng\n"
	  "  verbatim capture -i 4711 | tshark -i -\n" },
	{ "explain",
	  "  --json         as JSON\n",
	  "  verbatim explain packets.pcapng\n" },
	{ "top",
	  "  -b, --batch    print tables one after the other, as without a terminal\n"
	  "  --once         print one table, and end\n"
	  "  -n TIMES       how many tables are printed\n"
	  "  -d SECONDS     the time between two tables\n"
	  "  -s COLUMN      sort by that column\n"
	  "  -f TEXT        only rows with that text\n"
	  "  -p             one row for each process\n",
	  "  verbatim top --once\n"
	  "  verbatim top -b -n 10 -s B/s\n" },
	{ "trace",
	  "  -o FILE        the timeline; else trace.json\n"
	  "  -d FOLDER      keep there what each process noted\n"
	  "  --udp          the program goes by UDP\n"
	  "  --join FOLDER  run nothing: make a timeline of what is there\n",
	  "  verbatim trace -o pingpong.json -- ibv_rc_pingpong -g 0\n"
	  "  verbatim trace -o both.json --join notes\n" },
	{ "record",
	  "  -o FOLDER      where the records go; else verbatim-record\n"
	  "  -m MIB         how large the record of a process may be\n",
	  "  verbatim record -o tapes -- ibv_rc_pingpong -g 0\n" },
	{ "replay",
	  "  --until ITEM   stop before that item of the record\n",
	  "  verbatim replay --until 100 tapes/FILE.tape\n" },
	{ "metrics",
	  "  --listen ADDRESS:PORT  serve them by HTTP\n",
	  "  verbatim metrics\n"
	  "  verbatim metrics --listen 127.0.0.1:9401\n" },
	{ "hub",
	  "  --force        stop it even if programs use it\n",
	  "  verbatim hub status\n"
	  "  verbatim hub stop --force\n" },
	{ "fail", NULL,
	  "  verbatim fail 4711\n" },
};
/* clang-format on */

static const struct page *page_find(const char *command)
{
	for (unsigned i = 0; i < VB_ARRAY_LEN(pages); i++) {
		if (!strcmp(pages[i].command, command))
			return &pages[i];
	}
	return NULL;
}

void vb_cli_examples_print(const char *command, FILE *out)
{
	const struct page *page = page_find(command);

	if (page)
		fprintf(out, "\nexamples:\n%s", page->examples);
}

void vb_cli_help_print(const char *command, FILE *out)
{
	const struct page *page = page_find(command);

	if (page && page->options)
		fprintf(out, "\n%s", page->options);
	vb_cli_examples_print(command, out);
}
