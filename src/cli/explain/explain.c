/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/explain/explain.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/check.h"
#include "cli/cli.h"
#include "cli/explain/print.h"
#include "cli/explain/trail.h"
#include "explain/judge.h"

struct octets {
	uint8_t *at;
	size_t bytes;
};

/*
 * Read, not mapped: a file that somebody cuts meanwhile would end us. "-" is stdin. 0 or an errno.
 */
static int octets_read(struct octets *octets, const char *name)
{
	int fd = strcmp(name, "-") ? open(name, O_RDONLY | O_CLOEXEC) : STDIN_FILENO, rc = 0;
	size_t room = 1 << 20;
	ssize_t got = 1;

	*octets = (struct octets){malloc(room), 0};
	if (fd < 0)
		return errno;
	while (!rc && octets->at && got) {
		got = read(fd, octets->at + octets->bytes, room - octets->bytes);
		if (got < 0) {
			rc = errno == EINTR ? 0 : errno;
			continue;
		}
		octets->bytes += (size_t)got;
		if (octets->bytes == room) {
			uint8_t *more = realloc(octets->at, room *= 2);

			rc = more ? 0 : ENOMEM;
			octets->at = more ? more : octets->at;
		}
	}
	if (fd != STDIN_FILENO)
		close(fd);
	return octets->at ? rc : ENOMEM;
}

static bool is_trail(const char *name)
{
	size_t chars = strlen(name);

	return chars > 6 && !strcmp(name + chars - 6, ".trail");
}

/* Why a file is no capture. */
static const char *refusal(const struct octets *octets)
{
	static const uint8_t packed[][2] = {{0x1f, 0x8b}, {0x28, 0xb5}, {0xfd, '7'}, {'B', 'Z'}};

	if (!octets->bytes)
		return "it is empty";
	for (unsigned i = 0; octets->bytes > 2 && i < VB_ARRAY_LEN(packed); i++)
		if (!memcmp(octets->at, packed[i], sizeof(packed[i])))
			return "it is compressed, as gzip and the like do: unpack it first";
	return "this is neither pcap nor pcapng";
}

/* Trails come last: they belong to flows that captures have. */
static int files_add(struct vb_story *story, struct octets *octets, char **names, int count,
		     bool trails)
{
	for (int i = 0; i < count; i++) {
		bool added;
		int rc;

		if (is_trail(names[i]) != trails)
			continue;
		rc = octets_read(&octets[i], names[i]);
		if (rc) {
			vb_cli_error("%s: %s", names[i], strerror(rc));
			return VB_CLI_USAGE;
		}
		added = trails ? vb_cli_trail_add(story, octets[i].at, octets[i].bytes)
			       : vb_story_add(story, names[i], octets[i].at, octets[i].bytes);
		if (!added) {
			vb_cli_error("%s: %s", names[i],
				     trails ? "this is no trail of VERBATIM_TRACE"
					    : refusal(&octets[i]));
			return VB_CLI_USAGE;
		}
	}
	return VB_CLI_OK;
}

static int explain(char **names, int count, bool json)
{
	struct octets *octets = calloc((size_t)count, sizeof(*octets));
	struct vb_story story;
	int rc = VB_CLI_USAGE;

	if (!octets || !vb_story_begin(&story)) {
		free(octets);
		vb_cli_error("no memory");
		return rc;
	}
	rc = files_add(&story, octets, names, count, false);
	if (rc == VB_CLI_OK)
		rc = files_add(&story, octets, names, count, true);
	if (rc == VB_CLI_OK) {
		vb_judge(&story);
		(json ? vb_cli_story_json : vb_cli_story_text)(&story);
		rc = vb_cli_story_faults(&story) ? VB_CLI_FAILED : VB_CLI_OK;
	}
	if (story.no_memory) {
		vb_cli_error("no memory: not all was looked at");
		rc = VB_CLI_USAGE;
	}
	vb_story_end(&story);
	for (int i = 0; i < count; i++)
		free(octets[i].at);
	free(octets);
	return rc;
}

int vb_cli_explain(int argc, char **argv)
{
	bool json = false;
	int at = 1;

	for (; at < argc && argv[at][0] == '-' && argv[at][1]; at++) {
		if (!strcmp(argv[at], "--")) {
			at++;
			break;
		}
		if (strcmp(argv[at], "--json")) {
			vb_cli_error("explain: there is no option '%s'", argv[at]);
			return VB_CLI_USAGE;
		}
		json = true;
	}
	if (at == argc) {
		vb_cli_error("explain: which captures? verbatim explain [--json] FILE ...");
		return VB_CLI_USAGE;
	}
	return explain(argv + at, argc - at, json);
}
