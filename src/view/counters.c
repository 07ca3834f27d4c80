/* SPDX-License-Identifier: BSD-2-Clause */
#include "view/counters.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/check.h"
#include "base/fd.h"
#include "hub/ask/samples.h"
#include "run/process/sample.h"
#include "nic/control/sample.h"

enum { TERMS = 4, EFA_VENDOR = 0x1d0f, KNOWN_MAX = 4096, EVENTS_BYTES = 4096 };

/* A process that is stopped does not answer, and who asks for the tree waits so long for it. */
static const uint64_t ask_every_ns = 1000000000, patience_ns = 50000000;

/* Behind the NIC's counters; see counters.def. */
enum { NOTHING = VB_STATS, DROPS, DOWNS };

enum of { OTHERS, EFA };

static const struct row {
	enum of of;
	const char *name;
	unsigned unit;
	uint8_t term[TERMS]; /* up to NOTHING */
} rows[] = {
#define VB_COUNTER(of, name, unit, ...) { of, name, unit, { __VA_ARGS__, NOTHING } },
#include "view/counters.def"
#undef VB_COUNTER
};

/* --- sums --- */

static struct vb_view_living *living_of(struct vb_view_counters *counters, uint64_t origin)
{
	for (unsigned i = 0; i < counters->count; i++) {
		if (counters->living[i].origin == origin)
			return &counters->living[i];
	}
	return NULL;
}

static void end(struct vb_view_counters *counters, unsigned device, const uint64_t *stat)
{
	for (unsigned k = 0; k < VB_STATS; k++)
		counters->ended[device].stat[k] += stat[k];
}

static void forget(struct vb_view_counters *counters, struct vb_view_living *living)
{
	*living = counters->living[--counters->count];
}

/* Those that were killed do not say so: where too many are known they are taken for ended. */
static void silent_end(struct vb_view_counters *counters)
{
	for (unsigned i = counters->count; i-- > 0;) {
		struct vb_view_living *living = &counters->living[i];

		if (living->answered)
			continue;
		end(counters, living->device, living->stat);
		forget(counters, living);
	}
}

static struct vb_view_living *living_make(struct vb_view_counters *counters)
{
	if (counters->count >= KNOWN_MAX)
		silent_end(counters);
	if (counters->count == counters->room) {
		unsigned room = counters->room * 2 + 16;
		struct vb_view_living *more = realloc(counters->living, room * sizeof(*more));

		if (!more)
			return NULL;
		counters->living = more;
		counters->room = room;
	}
	return &counters->living[counters->count++];
}

void vb_view_counters_add(struct vb_view_counters *counters, const struct vb_sample *sample,
			  bool closed)
{
	struct vb_view_living *living = living_of(counters, sample->origin);
	unsigned device = 0;

	while (device < counters->devices &&
	       strcmp(counters->device[device].name, sample->device) != 0)
		device++;
	if (device == counters->devices)
		return;
	if (closed) {
		end(counters, device, sample->stat);
		if (living)
			forget(counters, living);
		return;
	}
	if (!living)
		living = living_make(counters);
	if (!living)
		return;
	living->origin = sample->origin;
	living->device = device;
	living->answered = true;
	memcpy(living->stat, sample->stat, sizeof(living->stat));
}

void vb_view_counters_sum(const struct vb_view_counters *counters, unsigned device,
			  uint64_t stat[VB_STATS])
{
	memcpy(stat, counters->ended[device].stat, sizeof(counters->ended[device].stat));
	for (unsigned i = 0; i < counters->count; i++) {
		const struct vb_view_living *living = &counters->living[i];

		for (unsigned k = 0; living->device == device && k < VB_STATS; k++)
			stat[k] += living->stat[k];
	}
}

/* --- files --- */

static uint64_t term(unsigned which, const struct vb_view_ended *ended,
		     const uint64_t stat[VB_STATS])
{
	uint64_t drops = 0;

	if (which < VB_STATS)
		return stat[which];
	if (which == DOWNS)
		return ended->downs;
	for (unsigned k = 0; which == DROPS && k < VB_STATS; k++)
		drops += vb_stat_is_drop((enum vb_stat)k) ? stat[k] : 0;
	return drops;
}

static int device_write(const struct vb_view_counters *counters, unsigned index)
{
	const struct vb_view_device *device = &counters->device[index];
	enum of of = device->part.vendor == EFA_VENDOR ? EFA : OTHERS;
	uint64_t stat[VB_STATS];
	int rc = 0;

	vb_view_counters_sum(counters, index, stat);
	for (unsigned i = 0; i < VB_ARRAY_LEN(rows) && !rc; i++) {
		char path[VB_VIEW_PATH_BYTES], content[24];
		struct vb_view_entry entry = { VB_VIEW_FILE, path, content, 0 };
		uint64_t sum = 0;

		if (rows[i].of != of)
			continue;
		for (unsigned k = 0; k < TERMS && rows[i].term[k] != NOTHING; k++)
			sum += term(rows[i].term[k], &counters->ended[index], stat);
		snprintf(path, sizeof(path), "sys/class/infiniband/%s/ports/1/%s", device->name,
			 rows[i].name);
		entry.bytes = (size_t)snprintf(content, sizeof(content), "%" PRIu64 "\n",
					       sum / rows[i].unit);
		rc = vb_view_file_write((void *)counters->root, &entry);
	}
	return rc;
}

static int files_write(struct vb_view_counters *counters)
{
	int rc = 0;

	for (unsigned i = 0; i < counters->devices && !rc; i++)
		rc = device_write(counters, i);
	return rc;
}

/* --- where they come from --- */

/* Returns true if there was anything. */
static bool left_take(struct vb_view_counters *counters)
{
	bool any = false;
	char events[EVENTS_BYTES];
	struct dirent *entry;
	DIR *dir;
	int fd;

	/* What comes from now on is told again. */
	while (read(counters->watch_fd, events, sizeof(events)) > 0)
		;
	fd = openat(counters->left_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	dir = fd < 0 ? NULL : fdopendir(fd);
	while (dir && (entry = readdir(dir))) {
		struct vb_sample *sums;

		if (*entry->d_name == '.')
			continue;
		fd = openat(counters->left_fd, entry->d_name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
		sums = fd < 0 ? NULL : vb_sample_read(fd);
		if (sums)
			vb_view_counters_add(counters, sums, true);
		free(sums);
		vb_fd_close(&fd);
		unlinkat(counters->left_fd, entry->d_name, 0);
		any = true;
	}
	if (dir)
		closedir(dir);
	return any;
}

/* Returns true if a port went down. */
static bool ports_look(struct vb_view_counters *counters)
{
	bool any = false;

	for (unsigned i = 0; i < counters->devices; i++) {
		struct vb_view_ended *ended = &counters->ended[i];
		bool down = ended->was_up && !counters->device[i].up;

		ended->downs += down;
		ended->was_up = counters->device[i].up;
		any |= down;
	}
	return any;
}

static void all_ask(struct vb_view_counters *counters)
{
	struct vb_hub_said *said;
	unsigned count, silent;

	for (unsigned i = 0; i < counters->count; i++)
		counters->living[i].answered = false;
	if (vb_hub_sample(0, patience_ns, &said, &count, &silent))
		return;
	for (unsigned i = 0; i < count; i++) {
		struct vb_sample *sample = vb_sample_read(said[i].fd);

		if (sample)
			vb_view_counters_add(counters, sample, false);
		free(sample);
	}
	vb_hub_said_free(said, count);
}

void vb_view_counters_refresh(struct vb_view_counters *counters, uint64_t now_ns)
{
	bool news = now_ns - counters->asked_ns >= ask_every_ns;

	/* First those that live: what one leaves then is newer. */
	if (news) {
		all_ask(counters);
		counters->asked_ns = now_ns;
	}
	news |= left_take(counters);
	news |= ports_look(counters);
	if (news)
		files_write(counters);
}

/* --- opening --- */

static int left_make(struct vb_view_counters *counters)
{
	char path[PATH_MAX + sizeof(VB_SAMPLE_LEFT) + 1];

	snprintf(path, sizeof(path), "%s/" VB_SAMPLE_LEFT, counters->root->path);
	if (mkdir(path, 0700))
		return errno;
	counters->left_fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	counters->watch_fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
	/* Without being told it looks every second. */
	if (counters->watch_fd >= 0)
		inotify_add_watch(counters->watch_fd, path, IN_MOVED_TO);
	return counters->left_fd < 0 ? errno : 0;
}

int vb_view_counters_open(struct vb_view_counters *counters, const struct vb_view_root *root,
			  const struct vb_view_device *device, unsigned devices)
{
	int rc;

	*counters = (struct vb_view_counters){
		.root = root,
		.device = device,
		.devices = devices,
		.ended = calloc(devices, sizeof(*counters->ended)),
		.left_fd = VB_FD_NONE,
		.watch_fd = VB_FD_NONE,
	};
	rc = counters->ended ? left_make(counters) : ENOMEM;
	if (!rc)
		ports_look(counters);
	if (!rc)
		rc = files_write(counters);
	if (rc)
		vb_view_counters_close(counters);
	return rc;
}

void vb_view_counters_close(struct vb_view_counters *counters)
{
	vb_fd_close(&counters->watch_fd);
	vb_fd_close(&counters->left_fd);
	free(counters->living);
	free(counters->ended);
}
