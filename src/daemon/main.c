/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * verbatimd: the hub of one user in one network namespace. The first process that needs it starts
 * it, with the protocol version as argument; by hand it is started without.
 *
 * VERBATIM_HUB_IDLE_MS leave after that many milliseconds without a client (10000)
 *
 * The library has checked all settings before it starts a hub, so an invalid one is reported here
 * only if the hub is started by hand.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/hub.h"
#include "daemon/starter.h"
#include "hub/channel.h"
#include "hub/ordinary.h"
#include "hub/words.h"
#include "run/process/env.h"

/*
 * Raises limits that our starter set for itself, such as CPU time. Among them are a descriptor for
 * every slot and client, as many in flight (unix(7)), and the size of the file of the XRC domains;
 * if that is not enough, clients are told.
 */
static void limits_raise(void)
{
	struct rlimit limit;

	for (int resource = 0; resource < RLIM_NLIMITS; resource++) {
		if (resource == RLIMIT_CORE || getrlimit(resource, &limit))
			continue;
		limit.rlim_cur = limit.rlim_max;
		setrlimit(resource, &limit);
	}
}

/* Resets an inherited score: ending the hub frees little memory. Below 0 takes privilege. */
static void oom_score_reset(void)
{
	int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);

	if (fd < 0)
		return;
	if (write(fd, "0", 1) < 0)
		errno = 0;
	close(fd);
}

/* Library and hub are installed together, but a program may still run with an older library. */
static int protocol_check(const char *theirs)
{
	if (!theirs || atoi(theirs) == VB_HUB_PROTOCOL)
		return 0;
	return vb_failed_words(EPROTONOSUPPORT,
			       "this verbatimd is of another version than the library that started "
			       "it (protocol %d, the library's is %d): verbatim was replaced while "
			       "the program ran, which has to be started anew",
			       VB_HUB_PROTOCOL, atoi(theirs));
}

static int serve(const struct vb_env *env)
{
	int fd, rc = vb_hub_listen(&fd);

	/* Another hub was faster, and serves. */
	if (rc)
		return rc == EADDRINUSE ? 0 : rc;
	return vb_hub_serve(fd, env->hub_idle_ms * 1000000u);
}

int main(int argc, char **argv)
{
	char why[VB_ENV_WHY_BYTES + VB_HUB_WHY_BYTES];
	struct vb_env env;
	int rc;

	if (vb_env_read(&env, vb_env_here(), why)) {
		fprintf(stderr, "verbatimd: %s\n", why);
		return 1;
	}
	signal(SIGHUP, SIG_IGN);
	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN);
	umask(077);
	vb_hub_ordinary();
	limits_raise();
	oom_score_reset();
	rc = protocol_check(argc > 1 ? argv[1] : NULL);
	if (!rc)
		rc = serve(&env);
	if (rc) {
		vb_failure_words(why, VB_HUB_WHY_BYTES, rc);
		fprintf(stderr, "verbatimd: %s\n", why);
		vb_starter_tell(rc, why);
	}
	return rc ? 1 : 0;
}
