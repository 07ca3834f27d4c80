/* SPDX-License-Identifier: BSD-2-Clause */
#include "run/process/topology.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "run/process/log.h"

/* The text of a file; NULL with *rc. */
static char *text_read(const char *path, size_t bytes_max, size_t *bytes, int *rc)
{
	FILE *file = fopen(path, "re");
	char *text = file ? malloc(bytes_max + 1) : NULL;

	*rc = file ? ENOMEM : errno;
	if (text) {
		*bytes = fread(text, 1, bytes_max + 1, file);
		*rc = ferror(file) ? EISDIR : *bytes > bytes_max ? EFBIG : 0;
	}
	if (file)
		fclose(file);
	if (*rc == 0)
		return text;
	free(text);
	return NULL;
}

/* Adds why text_read() failed. Returns that. */
static int unread(struct vb_text *why, const char *path, size_t bytes_max, int error)
{
	char bound[64];

	snprintf(bound, sizeof(bound), "it has more than %zu octets", bytes_max);
	vb_text_add(why, path, ": ", error == EFBIG ? bound : strerror(error), NULL);
	return error;
}

/* Begins a message with the setting that it is about. */
static struct vb_text about(const char *setting, char why[VB_TOPOLOGY_FILE_WHY_BYTES])
{
	struct vb_text text = vb_text_in(why, VB_TOPOLOGY_FILE_WHY_BYTES);

	vb_text_add(&text, setting, ": ", NULL);
	return text;
}

int vb_topology_read(struct vb_topology *topology, const struct vb_env *env,
		     char why[VB_TOPOLOGY_FILE_WHY_BYTES])
{
	struct vb_text said = about("VERBATIM_DEVICES", why);
	char wrong[VB_TOPOLOGY_WHY_BYTES], *text;
	size_t bytes;
	int rc;

	if (!env->device.table) {
		*topology = vb_topology_default;
		return 0;
	}
	if (vb_topology_is_short(env->device.table)) {
		rc = vb_topology_parse_short(topology, env->device.table,
					     strlen(env->device.table), wrong);
		vb_text_add(&said, rc ? wrong : "", NULL);
		return rc;
	}
	text = text_read(env->device.table, VB_TOPOLOGY_TEXT_BYTES_MAX, &bytes, &rc);
	if (!text) {
		unread(&said, env->device.table, VB_TOPOLOGY_TEXT_BYTES_MAX, rc);
		vb_text_add(&said, strchr(env->device.table, '/') ? ""
				   : "; what is no file's path is a list such as rail0=eth0", NULL);
		return rc;
	}
	rc = vb_topology_parse(topology, env->device.table, text, bytes, wrong);
	vb_text_add(&said, rc ? wrong : "", NULL);
	free(text);
	return rc;
}

static int file_read(struct vb_persona *persona, const char *path, struct vb_text *why)
{
	char wrong[VB_PERSONA_WHY_BYTES];
	size_t bytes;
	int rc;
	char *text = text_read(path, VB_PERSONA_TEXT_BYTES_MAX, &bytes, &rc);

	if (!text)
		return unread(why, path, VB_PERSONA_TEXT_BYTES_MAX, rc);
	rc = vb_persona_parse(persona, path, text, bytes, wrong);
	vb_text_add(why, rc ? wrong : "", NULL);
	free(text);
	return rc;
}

int vb_persona_read(struct vb_persona *out, const struct vb_topology_device *device,
		    const struct vb_env *env, char why[VB_TOPOLOGY_FILE_WHY_BYTES])
{
	const char *own = device->persona, *neutral = vb_words_at(&vb_persona_names, 0);
	const char *name = *own ? own : env->device.persona ? env->device.persona : neutral;
	struct vb_text said = about(*own ? "VERBATIM_DEVICES" : "VERBATIM_PERSONA", why);
	struct vb_persona persona;
	int rc = 0;

	if (*own)
		vb_text_add(&said, "the persona of the device ", device->name, ": ", NULL);
	if (strchr(name, '/')) {
		rc = file_read(&persona, name, &said);
	} else if (!vb_persona_make(&persona, name)) {
		vb_words_add_unknown(&said, &vb_persona_names, "persona", "Personas", name,
				     strlen(name));
		vb_text_add(&said, "; a file's path has a '/'", NULL);
		rc = EINVAL;
	}
	if (rc != 0)
		return rc;
	vb_limits_lay(&persona.limits, &env->device.limits);
	vb_limits_lay(&persona.limits, &device->limits);
	if (device->rate_mbps)
		persona.rate_mbps = device->rate_mbps;
	if (device->has_gids)
		persona.gids = device->gids;
	*out = persona;
	return 0;
}

static struct vb_topology here;
static bool here_is_read;

static void here_read(void)
{
	const char *devices = secure_getenv("VERBATIM_DEVICES");
	const struct vb_env env = { .device.table = devices && *devices ? devices : NULL };
	char why[VB_TOPOLOGY_FILE_WHY_BYTES];

	vb_log_open();
	here_is_read = vb_topology_read(&here, &env, why) == 0;
	if (!here_is_read)
		vb_log_hint(VB_HINT_OPEN, "there are no devices: %s", why);
}

const struct vb_topology *vb_topology_here(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, here_read);
	return here_is_read ? &here : NULL;
}

const char *vb_topology_name(unsigned row)
{
	const struct vb_topology *topology = vb_topology_here();

	return row < topology->count ? topology->device[row].name : "rdma_cm";
}

int vb_settings_read(unsigned row, struct vb_env *env, struct vb_persona *persona,
		     char why[VB_ENV_WHY_BYTES])
{
	const struct vb_topology *topology = vb_topology_here();
	int rc = topology ? vb_env_read(env, vb_env_here(), why) : EINVAL;

	if (!topology)
		snprintf(why, VB_ENV_WHY_BYTES, "VERBATIM_DEVICES names no devices");
	if (rc == 0 && env->record && topology->count > 1) {
		snprintf(why, VB_ENV_WHY_BYTES, "VERBATIM_RECORD does not go with several devices "
						"(VERBATIM_DEVICES): a record is of one NIC");
		rc = EINVAL;
	}
	if (rc != 0)
		return rc;
	return vb_persona_read(persona, row < topology->count ? &topology->device[row]
							      : &vb_topology_default.device[0],
			       env, why);
}
