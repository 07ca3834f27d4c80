/* SPDX-License-Identifier: BSD-2-Clause */
#include "run/env.h"

#include <errno.h>
#include <net/if.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"

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

static bool switch_of(const char *text, bool *on)
{
	*on = text && strcmp(text, "1") == 0;
	return !text || *on || strcmp(text, "0") == 0;
}

static bool link_of(const char *text, enum vb_env_link *link)
{
	static const char *const names[] = {
		[VB_ENV_LINK_UDP] = "udp",
		[VB_ENV_LINK_SHM] = "shm",
	};

	*link = VB_ENV_LINK_ANY;
	if (!text)
		return true;
	for (unsigned i = VB_ENV_LINK_UDP; i < VB_ARRAY_LEN(names); i++) {
		if (strcmp(text, names[i]) == 0)
			*link = (enum vb_env_link)i;
	}
	return *link != VB_ENV_LINK_ANY;
}

/* Whether Linux would have an interface of that name; whether there is one is seen later. */
static bool is_interface(const char *name)
{
	return *name && strlen(name) < IFNAMSIZ && strcmp(name, ".") != 0 &&
	       strcmp(name, "..") != 0 && !name[strcspn(name, "/: \t\n\v\f\r")];
}

static bool is_ethernet(const char *text)
{
	static const char tap[] = "tap:";

	return is_interface(strncmp(text, tap, strlen(tap)) == 0 ? text + strlen(tap) : text);
}

int vb_env_read(struct vb_env *env, char *(*get)(const char *name), const char **bad)
{
	const char *seed = text_of(get, "VERBATIM_SEED");
	struct vb_env read = {
		.fault = text_of(get, "VERBATIM_FAULT"),
		.pcap = text_of(get, "VERBATIM_PCAP"),
		.ethernet = text_of(get, "VERBATIM_ETH"),
		.persona = text_of(get, "VERBATIM_PERSONA"),
		.seeded = seed != NULL,
	};

	if (!link_of(text_of(get, "VERBATIM_LINK"), &read.link)) {
		*bad = "VERBATIM_LINK";
		return EINVAL;
	}
	if (!switch_of(text_of(get, "VERBATIM_SHARED_MR"), &read.shared_mr)) {
		*bad = "VERBATIM_SHARED_MR";
		return EINVAL;
	}
	if (read.ethernet && !is_ethernet(read.ethernet)) {
		*bad = "VERBATIM_ETH";
		return EINVAL;
	}
	if (seed && !number_of(seed, &read.seed)) {
		*bad = "VERBATIM_SEED";
		return EINVAL;
	}
	*env = read;
	return 0;
}
