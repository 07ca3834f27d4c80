/* SPDX-License-Identifier: BSD-2-Clause */
#include "run/process/sample.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "hub/channel.h"
#include "hub/program.h"
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
