/* SPDX-License-Identifier: BSD-2-Clause */
#include "abi/rspreload/config.h"

#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <rdma/rsocket.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "abi/rspreload/calls.h"
#include "base/check.h"

#define CONFIG_FILE "/etc/rdma/rsocket/preload_config"

enum { ROWS_MAX = 64, WORD = 63, ANY = 0 };

/* A line: whose sockets, and which of them; ANY stands for all. */
struct row {
	char program[WORD + 1]; /* how its name begins; empty: of any */
	int domain, type, protocol;
};

static struct {
	struct row rows[ROWS_MAX];
	unsigned count;
	bool fork_safe;
	int sizes[3];
} config;

struct word {
	const char *text, *prefixes[2];
	int value;
};

static const struct word domains[] = {
	{"*", {"", ""}, ANY},
	{"INET", {"AF_", "PF_"}, AF_INET},
	{"INET6", {"AF_", "PF_"}, AF_INET6},
	{NULL, {"", ""}, 0},
};
static const struct word types[] = {
	{"*", {"", ""}, ANY},
	{"STREAM", {"SOCK_", ""}, SOCK_STREAM},
	{"DGRAM", {"SOCK_", ""}, SOCK_DGRAM},
	{NULL, {"", ""}, 0},
};
static const struct word protocols[] = {
	{"*", {"", ""}, ANY},
	{"TCP", {"IPPROTO_", ""}, IPPROTO_TCP},
	{"UDP", {"IPPROTO_", ""}, IPPROTO_UDP},
	{NULL, {"", ""}, 0},
};

/* With one of its prefixes or without. False: it is no such word. */
static bool word_find(const struct word *words, const char *text, int *value)
{
	for (; words->text; words++) {
		for (unsigned i = 0; i <= VB_ARRAY_LEN(words->prefixes); i++) {
			const char *prefix = i ? words->prefixes[i - 1] : "";
			size_t chars = strlen(prefix);

			if (!strncasecmp(text, prefix, chars) &&
			    !strcasecmp(text + chars, words->text)) {
				*value = words->value;
				return true;
			}
		}
	}
	return false;
}

/* PROGRAM DOMAIN TYPE PROTOCOL; what does not look like that is passed over. */
static void line_read(const char *line)
{
	char domain[WORD + 1], type[WORD + 1], protocol[WORD + 1];
	struct row *row = &config.rows[config.count];

	if (*line == '#' || config.count == ROWS_MAX ||
	    sscanf(line, "%63s %63s %63s %63s", row->program, domain, type, protocol) != 4 ||
	    !word_find(domains, domain, &row->domain) || !word_find(types, type, &row->type) ||
	    !word_find(protocols, protocol, &row->protocol))
		return;
	if (!strcmp(row->program, "*"))
		row->program[0] = 0;
	config.count++;
}

static int number_of(const char *variable)
{
	const char *text = secure_getenv(variable);

	return text ? atoi(text) : 0;
}

static void config_read(void)
{
	FILE *file = fopen(CONFIG_FILE, "re");
	char line[256];

	while (file && fgets(line, sizeof(line), file))
		line_read(line);
	if (file)
		fclose(file);
	config.fork_safe = number_of("RDMAV_FORK_SAFE") > 0;
	config.sizes[RDMA_SQSIZE] = number_of("RS_SQ_SIZE");
	config.sizes[RDMA_RQSIZE] = number_of("RS_RQ_SIZE");
	config.sizes[RDMA_INLINE] = number_of("RS_INLINE");
}

static void config_ensure(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, config_read);
}

static bool fits(const struct row *row, int domain, int type, int protocol)
{
	return !strncasecmp(row->program, program_invocation_short_name, strlen(row->program)) &&
	       (row->domain == ANY || row->domain == domain) &&
	       (row->type == ANY || row->type == type) &&
	       (row->protocol == ANY || row->protocol == protocol);
}

/* Without a file, or any line in it, all of them are. */
bool vb_config_wants(int domain, int type, int protocol)
{
	int usual = type == SOCK_STREAM ? IPPROTO_TCP : IPPROTO_UDP;

	if ((domain != AF_INET && domain != AF_INET6) ||
	    (type != SOCK_STREAM && type != SOCK_DGRAM) || (protocol && protocol != usual))
		return false;
	config_ensure();
	for (unsigned i = 0; i < config.count; i++) {
		if (fits(&config.rows[i], domain, type, usual))
			return true;
	}
	return !config.count;
}

bool vb_config_fork_safe(void)
{
	config_ensure();
	return config.fork_safe;
}

void vb_config_apply(int rs)
{
	config_ensure();
	for (int name = 0; name < (int)VB_ARRAY_LEN(config.sizes); name++) {
		if (config.sizes[name] > 0)
			VB_RS_CALL(setsockopt(rs, SOL_RDMA, name, &config.sizes[name],
						sizeof(config.sizes[name])));
	}
}
