/* SPDX-License-Identifier: BSD-2-Clause */
#include "run/env.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* An empty value is the same as none, so that `VERBATIM_FAULT= command` switches it off. */
static const char *text_of(char *(*get)(const char *), const char *name)
{
	const char *text = get(name);

	return text && *text ? text : NULL;
}

static bool number_of(const char *text, uint64_t *number)
{
	char *end;

	if (*text == '-')
		return false;
	errno = 0;
	*number = strtoull(text, &end, 0);
	return end != text && *end == '\0' && errno == 0;
}

int vb_env_read(struct vb_env *env, char *(*get)(const char *name), const char **bad)
{
	const char *link = text_of(get, "VERBATIM_LINK");
	const char *seed = text_of(get, "VERBATIM_SEED");
	struct vb_env read = {
		.fault = text_of(get, "VERBATIM_FAULT"),
		.pcap = text_of(get, "VERBATIM_PCAP"),
		.seeded = seed != NULL,
	};

	if (link && strcmp(link, "udp") != 0) {
		*bad = "VERBATIM_LINK";
		return EINVAL;
	}
	if (seed && !number_of(seed, &read.seed)) {
		*bad = "VERBATIM_SEED";
		return EINVAL;
	}
	*env = read;
	return 0;
}
