/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_TESTS_VERBS_TABLES_H
#define VB_TESTS_VERBS_TABLES_H

#include <infiniband/verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* The devices of a table (docs/devices.md), before any was asked for. NULL: there is no file. */
static inline struct ibv_device **table_devices(const char *table, int *count)
{
	char path[] = "/tmp/verbatim-devices-XXXXXX";
	struct ibv_device **list;
	int fd = mkstemp(path);
	FILE *file = fd < 0 ? NULL : fdopen(fd, "w");

	*count = 0;
	if (!file || fputs(table, file) < 0 || fclose(file))
		return NULL;
	setenv("VERBATIM_DEVICES", path, 1);
	list = ibv_get_device_list(count);
	unlink(path);
	return list;
}

#endif
