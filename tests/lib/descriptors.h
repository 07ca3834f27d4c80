/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef TESTS_DESCRIPTORS_H
#define TESTS_DESCRIPTORS_H

/* How many descriptors a process has open, and some more: the same number more each time. */

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/types.h>

static inline unsigned descriptors_of(pid_t pid)
{
	char path[64];
	unsigned n = 0;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/fd", pid);
	dir = opendir(path);
	if (!dir)
		abort();
	while (readdir(dir))
		n++;
	closedir(dir);
	return n;
}

#endif
