/* SPDX-License-Identifier: BSD-2-Clause */
#include "hub/procs.h"

#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PATH_BYTES = 64 };

static FILE *file_open(pid_t pid, const char *name)
{
	char path[PATH_BYTES];

	snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, name);
	return fopen(path, "re");
}

void vb_procs_name(pid_t pid, char comm[VB_HUB_COMM_BYTES])
{
	FILE *file = file_open(pid, "comm");
	char line[PATH_BYTES] = "?";

	if (file) {
		if (fgets(line, sizeof(line), file))
			line[strcspn(line, "\n")] = 0;
		fclose(file);
	}
	vb_hub_comm_copy(comm, line);
}

bool vb_procs_is_stopped(pid_t pid)
{
	FILE *file = file_open(pid, "stat");
	char line[512], *end;
	bool stopped = false;

	if (!file)
		return false;
	/* proc(5): pid, (comm), state; comm may contain parentheses. */
	if (fgets(line, sizeof(line), file) && (end = strrchr(line, ')')))
		stopped = !strncmp(end, ") T", 3) || !strncmp(end, ") t", 3);
	fclose(file);
	return stopped;
}

unsigned vb_procs_depth(pid_t pid)
{
	static const char key[] = "NSpid:";
	FILE *file = file_open(pid, "status");
	unsigned depth = 0;
	char line[512];

	while (file && !depth && fgets(line, sizeof(line), file)) {
		if (strncmp(line, key, strlen(key)))
			continue;
		for (const char *at = line + strlen(key); (at = strchr(at, '\t')); at++)
			depth++;
	}
	if (file)
		fclose(file);
	return depth;
}

static bool is_one(const uint64_t *inode, unsigned n, const char *link)
{
	uint64_t number;

	if (sscanf(link, "socket:[%" SCNu64 "]", &number) != 1)
		return false;
	for (unsigned i = 0; i < n; i++) {
		if (inode[i] == number)
			return true;
	}
	return false;
}

static bool has_one(pid_t pid, const uint64_t *inode, unsigned n)
{
	char path[PATH_BYTES], link[PATH_BYTES];
	bool has = false;
	struct dirent *entry;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid);
	dir = opendir(path);
	while (dir && !has && (entry = readdir(dir))) {
		ssize_t bytes = readlinkat(dirfd(dir), entry->d_name, link, sizeof(link) - 1);

		link[bytes < 0 ? 0 : bytes] = 0;
		has = is_one(inode, n, link);
	}
	if (dir)
		closedir(dir);
	return has;
}

void vb_procs_find(const uint64_t *inode, unsigned n, void (*found)(void *arg, pid_t pid),
		   void *arg)
{
	DIR *dir = n ? opendir("/proc") : NULL;
	struct dirent *entry;

	while (dir && (entry = readdir(dir))) {
		pid_t pid = atoi(entry->d_name);

		if (pid > 0 && has_one(pid, inode, n))
			found(arg, pid);
	}
	if (dir)
		closedir(dir);
}
