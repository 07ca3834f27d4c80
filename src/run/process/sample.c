/* SPDX-License-Identifier: BSD-2-Clause */
#include "run/process/sample.h"

#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "hub/channel.h"
#include "hub/program.h"
#include "hub/proto.h"
#include "link/shm.h"
#include "nic/control/nic.h"
#include "nic/control/sample.h"
#include "nic/core/stats.h"
#include "run/process/log.h"
#include "run/process/topology.h"

/* Returns 0, or an errno: then the watcher gets no answer, and says so. */
static int answer(int answer_fd, const struct vb_sample *sample, size_t bytes)
{
	struct vb_hub_msg msg = vb_hub_msg_make(VB_HUB_SAMPLED);
	int fd, rc = vb_shm_create(&fd, bytes);

	if (rc != 0)
		return rc;
	vb_hub_program_self(&msg.sample.taken.program);
	if (pwrite(fd, sample, bytes, 0) == (ssize_t)bytes)
		rc = vb_hub_send(answer_fd, &msg, &fd, VB_HUB_SAMPLE_FDS);
	close(fd);
	return rc;
}

void vb_sample_send(struct vb_nic *nic, unsigned row, int answer_fd, uint32_t measure_s)
{
	size_t bytes;
	struct vb_sample *sample = vb_nic_sample(nic, measure_s, &bytes);

	if (sample) {
		snprintf(sample->device, sizeof(sample->device), "%s", vb_topology_name(row));
		answer(answer_fd, sample, bytes);
	}
	free(sample);
}

void vb_sample_log(struct vb_nic *nic, unsigned row)
{
	struct vb_stats *stats = vb_nic_stats(nic);

	if (vb_topology_here()->count > 1)
		vb_log("counters of %s:", vb_topology_name(row));
	for (int i = 0; i < VB_STATS; i++) {
		uint64_t count = atomic_load(&stats->count[i]);

		if (count > 0)
			vb_log("%s %llu", vb_stat_name(i), (unsigned long long)count);
	}
}

void vb_sample_leave(struct vb_nic *nic, unsigned row)
{
	const char *root = getenv("VERBATIM_VIEW_ROOT");
	char name[PATH_MAX], unnamed[PATH_MAX];
	struct vb_sample sums;
	bool whole;
	int fd;

	if (!root || *root != '/')
		return;
	vb_nic_sample_sums(nic, &sums);
	snprintf(sums.device, sizeof(sums.device), "%s", vb_topology_name(row));
	snprintf(name, sizeof(name), "%s/" VB_SAMPLE_LEFT "/%016llx", root,
		 (unsigned long long)sums.origin);
	snprintf(unnamed, sizeof(unnamed), "%s/" VB_SAMPLE_LEFT "/.%016llx", root,
		 (unsigned long long)sums.origin);
	fd = open(unnamed, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return;
	whole = write(fd, &sums, sizeof(sums)) == sizeof(sums);
	close(fd);
	if (!whole || rename(unnamed, name))
		unlink(unnamed);
}

/* --- by whom it is read --- */

/* Is it whole, and of this build? Its texts are made printable. */
static bool is_good(struct vb_sample *sample, size_t bytes)
{
	char device[VB_SAMPLE_DEVICE_BYTES] = "";

	if (bytes < sizeof(*sample) || sample->magic != VB_SAMPLE_MAGIC ||
	    sample->bytes != sizeof(struct vb_sample_qp) || sample->stats != VB_STATS ||
	    sample->qps != (bytes - sizeof(*sample)) / sizeof(struct vb_sample_qp))
		return false;
	memcpy(device, sample->device, sizeof(device) - 1);
	vb_hub_text_copy(sample->device, sizeof(device), device);
	for (unsigned i = 0; i < sample->qps; i++) {
		char text[VB_SAMPLE_SERVICE_BYTES] = "";

		memcpy(text, sample->qp[i].service, sizeof(text) - 1);
		vb_hub_text_copy(sample->qp[i].service, sizeof(text), text);
	}
	return true;
}

struct vb_sample *vb_sample_read(int fd)
{
	struct vb_sample *sample;
	struct stat st;

	if (fstat(fd, &st) || st.st_size < (off_t)sizeof(*sample) || st.st_size > 1 << 30)
		return NULL;
	sample = malloc((size_t)st.st_size);
	if (sample && pread(fd, sample, (size_t)st.st_size, 0) == st.st_size &&
	    is_good(sample, (size_t)st.st_size))
		return sample;
	free(sample);
	return NULL;
}
