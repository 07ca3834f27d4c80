/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/hub.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/failure.h"
#include "base/path.h"
#include "base/words.h"
#include "cli/cli.h"
#include "cli/domains.h"
#include "cli/ids.h"
#include "cli/report.h"
#include "cli/view.h"
#include "hub/holders.h"
#include "hub/links.h"
#include "hub/program.h"
#include "hub/ask/query.h"
#include "hub/words.h"
#include "link/udp_socket.h"

/* How long programs have to say what devices they have. */
static const uint64_t samples_patience_ns = 1000000000;

/* An age with two or three digits and a unit. */
static void age_print(uint64_t ms, char text[16])
{
	uint64_t s = ms / 1000;

	if (s < 100)
		snprintf(text, 16, "%" PRIu64 ".%" PRIu64 " s", s, ms / 100 % 10);
	else if (s < 100 * 60)
		snprintf(text, 16, "%" PRIu64 " min", s / 60);
	else if (s < 48 * 3600)
		snprintf(text, 16, "%" PRIu64 " h", s / 3600);
	else
		snprintf(text, 16, "%" PRIu64 " d", s / 86400);
}

static int trouble(int error)
{
	char why[VB_FAILURE_BYTES];

	vb_cli_error("%s", vb_failure_words(why, sizeof(why), error));
	return VB_CLI_FAILED;
}

static void row_print(const struct vb_hub_row *row)
{
	char age[16], number[VB_HUB_NUMBER_BYTES];

	/* The process was stopped, say, since before this hub started: no more is known of it. */
	if (!row->program.pid) {
		printf("%5u  %8s  has not spoken to this hub yet\n", row->slot, "?");
		return;
	}
	age_print(row->age_ms, age);
	printf("%5u  %8s  %-15s  %8s  0x%06x  %s\n", row->slot,
	       vb_hub_program_number(number, row->pid, &row->program), row->program.comm, age,
	       row->slot << 14 | row->next_index, row->shm ? "yes" : "no");
}

/* One line for each PID namespace of processes that have no number here: how to find them. */
static void namespaces_print(const struct vb_hub_row *rows, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		const struct vb_hub_program *program = &rows[i].program;
		bool told = !program->pid || rows[i].pid;

		for (unsigned k = 0; k < i; k++)
			told |= !rows[k].pid && rows[k].program.pid_ns == program->pid_ns;
		if (told)
			continue;
		printf("\nN@%" PRIu64 " is process N of PID namespace %" PRIu64
		       ", where the host name is %s (lsns -t pid)\n",
		       program->pid_ns, program->pid_ns, program->host);
	}
}

static const struct vb_hub_row *row_of(const struct vb_hub_row *rows, unsigned n, uint32_t slot)
{
	for (unsigned i = 0; i < n; i++) {
		if (rows[i].slot == slot && rows[i].program.pid)
			return &rows[i];
	}
	return NULL;
}

static void link_print(const struct vb_hub_row *rows, unsigned n, const struct vb_hub_link *link)
{
	char from[VB_HUB_NUMBER_BYTES], to[VB_HUB_NUMBER_BYTES], address[VB_ADDRESS_BYTES];
	char here[VB_HUB_NUMBER_BYTES + 8], there[VB_HUB_NUMBER_BYTES + 8] = "";
	const struct vb_hub_row *sender = row_of(rows, n, link->from);
	const struct vb_hub_row *other = row_of(rows, n, link->to);
	char words[VB_HUB_LINK_WORDS_BYTES];

	if (!sender)
		return;
	vb_hub_program_number(from, sender->pid, &sender->program);
	snprintf(here, sizeof(here), "in pid %s", from);
	printf("  pid %s (%s) -> ", from, sender->program.comm);
	if (other) {
		vb_hub_program_number(to, other->pid, &other->program);
		snprintf(there, sizeof(there), "in pid %s", to);
		printf("pid %s (%s)", to, other->program.comm);
	} else if (link->to) {
		printf("slot %u", link->to);
	} else {
		fputs(vb_gid_text(address, link->gid), stdout);
	}
	printf(": %s\n", vb_hub_link_words(words, link, here, there));
}

/* Skips links to processes that are gone. */
static void links_print(const struct vb_hub_row *rows, unsigned n, const struct vb_hub_link *links,
			unsigned links_n)
{
	bool any = false;

	for (unsigned i = 0; i < links_n; i++) {
		if (links[i].to && links[i].why != VB_HUB_LINK_NOBODY &&
		    !row_of(rows, n, links[i].to))
			continue;
		if (!any)
			puts("\nlinks");
		any = true;
		link_print(rows, n, &links[i]);
	}
}

static int hub_status(void)
{
	struct vb_hub_summary summary;
	char age[16], number[VB_HUB_NUMBER_BYTES], why[VB_FAILURE_BYTES];
	struct vb_hub_link *links;
	struct vb_hub_row *rows;
	int rc = vb_hub_links_read(&summary, &rows, &links);

	if (rc == ECONNREFUSED) {
		puts("hub      not running (the first program that needs it starts it)");
		if (vb_udp_port_probe() == EADDRINUSE)
			printf("port     %s\n",
			       vb_failure_words(why, sizeof(why), vb_holders_failed()));
		return VB_CLI_OK;
	}
	if (rc)
		return trouble(rc);
	age_print(summary.age_ms, age);
	printf("hub      pid %s, for %s: %u client%s, %u of %u slots made, %" PRIu64
	       " leases, %" PRIu64 " rings, %" PRIu64 " stray datagrams\n",
	       vb_hub_program_number(number, summary.pid, &summary.program), age, summary.clients,
	       summary.clients == 1 ? "" : "s", summary.sockets, VB_HUB_SLOTS_MAX, summary.leases,
	       summary.rings, summary.strays);
	if (summary.rows)
		printf("\n%5s  %8s  %-15s  %8s  %-8s  %s\n", "slot", "pid", "program", "age",
		       "next QPN", "shared memory");
	for (unsigned i = 0; i < summary.rows; i++)
		row_print(&rows[i]);
	links_print(rows, summary.rows, links, summary.links);
	rc = vb_cli_ids();
	namespaces_print(rows, summary.rows);
	if (!rc)
		rc = vb_cli_domains(rows, summary.rows);
	free(rows);
	free(links);
	return rc;
}

static int hub_stop(bool force)
{
	unsigned clients = 0;
	pid_t pid = 0;
	int rc = vb_hub_stop(force, &clients, &pid);

	if (rc == ECONNREFUSED) {
		puts("hub      not running");
		return VB_CLI_OK;
	}
	if (rc == EBUSY) {
		vb_cli_error("the hub is in use (clients: %u); with --force it stops all the same, "
			     "and they start another",
			     clients);
		return VB_CLI_FAILED;
	}
	if (rc)
		return trouble(rc);
	fputs("the hub", stdout);
	if (pid)
		printf(", pid %d,", (int)pid);
	if (clients)
		printf(" has stopped; its clients (%u) start another\n", clients);
	else
		puts(" has stopped; nobody was using it");
	return VB_CLI_OK;
}

static const struct {
	const char *name;
} verb_names[] = { { "status" }, { "log" }, { "stop" } };
static const struct vb_words verbs = VB_WORDS(verb_names);

int vb_cli_hub(int argc, char **argv)
{
	const char *verb = argc > 1 ? argv[1] : "";
	bool force = argc == 3 && !strcmp(argv[2], "--force");

	if (!strcmp(verb, "status") && argc == 2)
		return hub_status();
	if (!strcmp(verb, "stop") && (argc == 2 || force))
		return hub_stop(force);
	if (!strcmp(verb, "log") && argc == 2)
		return vb_cli_log();
	if (vb_words_find(&verbs, verb, strlen(verb)) == verbs.count && *verb)
		vb_cli_unknown(&verbs, "command of hub", verb, strlen(verb));
	fputs("usage: verbatim hub status | log | stop [--force]\n", stderr);
	return VB_CLI_USAGE;
}

bool vb_cli_process_parse(const char *word, struct vb_hub_program *program)
{
	char *end;
	unsigned long value;

	if (*word < '0' || *word > '9')
		return false;
	value = strtoul(word, &end, 10);
	*program = (struct vb_hub_program){.pid = (uint32_t)value, .comm = "?"};
	if (*end == '@' && end[1] >= '0' && end[1] <= '9')
		program->pid_ns = strtoull(end + 1, &end, 10);
	return value && value <= INT32_MAX && !*end;
}

int vb_cli_process_find(const char *word, struct vb_hub_program *program)
{
	char number[VB_HUB_NUMBER_BYTES];
	struct vb_hub_summary summary;
	struct vb_hub_row *rows;
	int rc = vb_hub_status_read(&summary, &rows);

	if (rc)
		return rc;
	if (!strchr(word, '@'))
		program->pid_ns = vb_hub_pid_ns();
	for (unsigned i = 0; i < summary.rows; i++) {
		if (!strcmp(vb_hub_program_number(number, rows[i].pid, &rows[i].program), word))
			*program = rows[i].program;
	}
	free(rows);
	return 0;
}

int vb_cli_fail(int argc, char **argv)
{
	char why[VB_FAILURE_BYTES];
	struct vb_hub_program program;
	int rc;

	if (argc != 2 || !vb_cli_process_parse(argv[1], &program)) {
		fputs("usage: verbatim fail PID\n", stderr);
		return VB_CLI_USAGE;
	}
	rc = vb_cli_process_find(argv[1], &program);
	if (!rc)
		rc = vb_hub_fail(program.pid, program.pid_ns);
	if (!rc) {
		printf("the device of process %s (%s) has been told to fail\n", argv[1],
		       program.comm);
		return VB_CLI_OK;
	}
	if (rc == EAGAIN) {
		vb_cli_error("process %s does not listen to the hub: too much waits for it",
			     argv[1]);
		return VB_CLI_FAILED;
	}
	if (rc == ESRCH)
		vb_cli_error("process %s does not have the device open, or is not this user's "
			     "(uid %u)",
			     argv[1], geteuid());
	else if (rc != ECONNREFUSED)
		trouble(rc);
	else if (vb_udp_port_probe() == EADDRINUSE)
		vb_cli_error("no hub of this user is running that could tell process %s: %s",
			     argv[1], vb_failure_words(why, sizeof(why), vb_holders_failed()));
	else
		vb_cli_error("process %s does not have the device open: no hub is running",
			     argv[1]);
	return VB_CLI_FAILED;
}

/* A line for each device that a process has open, if they are not all of one name. */
static void devices_print(void)
{
	struct vb_cli_view view;
	bool several = false;

	if (vb_cli_view_take(&view, 0, samples_patience_ns))
		return;
	for (unsigned i = 1; i < view.count; i++)
		several |= strcmp(view.process[i].sample->device,
				  view.process[0].sample->device) != 0;
	if (several)
		puts("\ndevices");
	for (unsigned i = 0; i < view.count && several; i++) {
		const struct vb_sample *sample = view.process[i].sample;

		printf("  pid %s (%s) %s: %u queue pair%s, %u region%s\n", view.process[i].number,
		       view.process[i].name, sample->device, sample->qps,
		       sample->qps == 1 ? "" : "s", sample->regions,
		       sample->regions == 1 ? "" : "s");
	}
	vb_cli_view_free(&view);
}

int vb_cli_status(int argc, char **argv)
{
	char dir[PATH_MAX];
	int rc;

	if (argc == 2 && !strcmp(argv[1], "--json"))
		return vb_cli_status_json();
	if (argc != 1) {
		fputs("usage: verbatim status [--json]\n", stderr);
		return VB_CLI_USAGE;
	}
	printf("version  %s\n", vb_cli_version);
	printf("library  %s\n", vb_cli_library_dir(dir) ? "not found" : dir);
	rc = hub_status();
	if (rc == VB_CLI_OK)
		devices_print();
	return rc;
}
