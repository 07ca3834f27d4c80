/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * verbatimd: the hub of one user in one network namespace. Started by the first process that needs
 * it, with no argument; whoever starts it by hand gets the same.
 *
 * VERBATIM_HUB_IDLE_MS	leave after that many milliseconds without a client (10000)
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "daemon/hub.h"
#include "hub/channel.h"

enum { IDLE_MS = 10000, IDLE_MS_MAX = 24 * 3600 * 1000 };

static uint64_t idle_ms(void)
{
	const char *text = getenv("VERBATIM_HUB_IDLE_MS");
	char *end;
	unsigned long value;

	if (!text || !*text)
		return IDLE_MS;
	value = strtoul(text, &end, 10);
	return *end || value > IDLE_MS_MAX ? IDLE_MS : value;
}

static void limit_raise(int resource)
{
	struct rlimit limit;

	if (getrlimit(resource, &limit))
		return;
	limit.rlim_cur = limit.rlim_max;
	setrlimit(resource, &limit);
}

int main(void)
{
	int fd, rc;

	signal(SIGHUP, SIG_IGN);
	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN);
	umask(077);
	/* A descriptor for every slot and every client, and as many in flight (unix(7)). */
	limit_raise(RLIMIT_NOFILE);
	/* The memory of XRC domains is a file. Where it may not be that large, clients are told. */
	limit_raise(RLIMIT_FSIZE);
	rc = vb_hub_listen(&fd);
	/* Somebody was faster: that is as good. */
	if (rc == EADDRINUSE)
		return 0;
	if (!rc)
		rc = vb_hub_serve(fd, idle_ms() * 1000000u);
	if (rc)
		fprintf(stderr, "verbatimd: %s\n", strerror(rc));
	return rc ? 1 : 0;
}
