/* SPDX-License-Identifier: BSD-2-Clause */
#include "view/sight.h"

#include <ctype.h>
#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ENVIRONMENT_BYTES = 1 << 16 };

bool vb_view_sight_has(pid_t pid, const char *root)
{
	static char environment[ENVIRONMENT_BYTES];
	char path[64], wanted[PATH_MAX + 32];
	bool found = false;
	size_t bytes;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/environ", pid);
	file = fopen(path, "re");
	if (!file)
		return false;
	bytes = fread(environment, 1, sizeof(environment) - 1, file);
	fclose(file);
	environment[bytes] = 0;
	snprintf(wanted, sizeof(wanted), "VERBATIM_VIEW_ROOT=%s", root);
	for (const char *at = environment; at < environment + bytes && !found; at += strlen(at) + 1)
		found = !strcmp(at, wanted);
	return found;
}

bool vb_view_sight_is_hub(pid_t pid)
{
	char path[64], name[32] = "";
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/comm", pid);
	file = fopen(path, "re");
	if (!file)
		return false;
	if (!fgets(name, sizeof(name), file))
		*name = 0;
	fclose(file);
	return !strcmp(name, "verbatimd\n");
}

bool vb_view_sight_any(const char *root)
{
	DIR *dir = opendir("/proc");
	struct dirent *entry;
	bool found = false;

	while (!found && dir && (entry = readdir(dir))) {
		pid_t pid = atoi(entry->d_name);

		found = isdigit((unsigned char)*entry->d_name) && !vb_view_sight_is_hub(pid) &&
			vb_view_sight_has(pid, root);
	}
	if (dir)
		closedir(dir);
	return found;
}
