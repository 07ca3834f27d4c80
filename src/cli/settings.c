/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/settings.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text.h"
#include "cli/cli.h"
#include "run/faults/faults.h"
#include "run/process/env.h"
#include "run/process/topology.h"

/*
 * Can a file be made or written there? Does not open it, as it may be a pipe. Returns 0 or an
 * errno.
 */
static int file_check(const char *path)
{
	const char *slash = strrchr(path, '/');
	int folder_chars = slash ? (int)(slash - path) + 1 : 0;
	char folder[PATH_MAX];
	struct stat found;

	if (!stat(path, &found))
		return S_ISDIR(found.st_mode) ? EISDIR : access(path, W_OK) ? errno : 0;
	/* In a folder's name "%p" is replaced only later, by each process. */
	if (errno != ENOENT || (slash && memchr(path, '%', (size_t)folder_chars)))
		return errno == ENOENT ? 0 : errno;
	snprintf(folder, sizeof(folder), "%.*s", folder_chars, path);
	return access(*folder ? folder : ".", W_OK | X_OK) ? errno : 0;
}

static int file_named(struct vb_text *why, const char *setting, const char *path)
{
	int rc = path ? file_check(path) : 0;

	if (rc)
		vb_text_add(why, setting, ": ", path, ": ", strerror(rc), NULL);
	return rc;
}

static int script_check(struct vb_text *why, const char *path)
{
	static struct vb_script script;
	char wrong[VB_SCRIPT_WHY_BYTES];
	int rc = path ? vb_faults_read(&script, path, wrong) : 0;

	if (rc)
		vb_text_add(why, "VERBATIM_FAULTS: ", wrong, NULL);
	return rc;
}

static int devices_check(struct vb_text *why, const struct vb_env *env)
{
	char wrong[VB_TOPOLOGY_FILE_WHY_BYTES];
	struct vb_topology topology;
	struct vb_persona persona;
	int rc = vb_topology_read(&topology, env, wrong);

	for (unsigned i = 0; !rc && i < topology.count; i++)
		rc = vb_persona_read(&persona, &topology.device[i], env, wrong);
	if (rc)
		vb_text_add(why, wrong, NULL);
	return rc;
}

int vb_cli_settings_why(char *chars, size_t bytes)
{
	struct vb_text why = vb_text_in(chars, bytes);
	char wrong[VB_ENV_WHY_BYTES];
	struct vb_env env;
	int rc = vb_env_read(&env, vb_env_here(), wrong);

	if (rc) {
		vb_text_add(&why, wrong, NULL);
		return rc;
	}
	rc = file_named(&why, "VERBATIM_PCAP", env.pcapng ? env.pcapng : env.pcap);
	if (!rc && env.log && strcmp(env.log, "stderr"))
		rc = file_named(&why, "VERBATIM_LOG", env.log);
	if (!rc)
		rc = script_check(&why, env.faults);
	return rc ? rc : devices_check(&why, &env);
}

int vb_cli_settings_check(void)
{
	char why[VB_TOPOLOGY_FILE_WHY_BYTES + PATH_MAX];
	int rc = vb_cli_settings_why(why, sizeof(why));

	if (rc)
		vb_cli_error("%s", why);
	return rc;
}
