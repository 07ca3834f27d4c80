/* SPDX-License-Identifier: BSD-2-Clause */
#include "run/faults/faults.h"

#include <errno.h>
#include <inttypes.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/check.h"
#include "hub/words.h"
#include "nic/control/nic.h"
#include "nic/way/peer.h"
#include "run/faults/flow.h"
#include "run/faults/internal.h"
#include "run/faults/rings.h"
#include "run/faults/strike.h"
#include "run/process/log.h"
#include "run/process/report.h"

enum { FLUSH_ROUNDS = 64 };

/* --- life --- */

int vb_faults_read(struct vb_script *script, const char *path, char why[VB_SCRIPT_WHY_BYTES])
{
	FILE *file = fopen(path, "re");
	char *text = NULL;
	size_t bytes = 0;
	int rc = 0;

	why[0] = 0;
	if (!file) {
		rc = errno;
		snprintf(why, VB_SCRIPT_WHY_BYTES, "%s: %s", path, strerror(rc));
		return rc;
	}
	text = malloc(VB_SCRIPT_BYTES_MAX + 1);
	if (text)
		bytes = fread(text, 1, VB_SCRIPT_BYTES_MAX + 1, file);
	rc = !text ? ENOMEM : ferror(file) ? EISDIR : bytes > VB_SCRIPT_BYTES_MAX ? EFBIG : 0;
	fclose(file);
	if (rc)
		snprintf(why, VB_SCRIPT_WHY_BYTES, "%s: %s", path, strerror(rc));
	else
		rc = vb_script_parse(script, path, text, bytes, why);
	free(text);
	return rc;
}

int vb_faults_open(struct vb_faults **out, const char *path, const struct vb_faults_host *host)
{
	struct vb_faults *faults = calloc(1, sizeof(*faults));
	char why[VB_SCRIPT_WHY_BYTES];
	int rc;

	if (!faults)
		return ENOMEM;
	rc = vb_faults_read(&faults->script, path, why);
	if (rc != 0) {
		free(faults);
		return vb_failed_words(rc, "VERBATIM_FAULTS: %s", why);
	}
	faults->host = *host;
	for (unsigned i = 0; i < faults->script.count; i++)
		snprintf(faults->place[i], sizeof(faults->place[i]), "%s:%u", faults->script.name,
			 faults->script.rule[i].line);
	vb_fault_queue_init(&faults->late);
	vb_lock_init(&faults->lock, VB_RANK_FAULTS);
	atomic_store(&faults->next_ns, UINT64_MAX);
	*out = faults;
	return 0;
}

void vb_faults_begin(struct vb_faults *faults, struct vb_nic *nic)
{
	uint64_t next_ns;

	if (!faults)
		return;
	faults->nic = nic;
	faults->start_ns = vb_faults_now_ns();
	next_ns = vb_script_next_ns(&faults->script);
	if (next_ns != UINT64_MAX)
		atomic_store(&faults->next_ns, faults->start_ns + next_ns);
	vb_log("faults by the script %s: %u rules", faults->script.name, faults->script.count);
}

void vb_faults_close(struct vb_faults *faults)
{
	if (!faults)
		return;
	vb_vias_free(faults);
	vb_fault_queue_free(&faults->late);
	vb_lock_fini(&faults->lock);
	free(faults);
}

void vb_faults_log(const struct vb_faults *faults)
{
	for (unsigned i = 0; faults && i < faults->script.count; i++) {
		const struct vb_rule *rule = &faults->script.rule[i];

		vb_log("rule %s fired %" PRIu64 " times", vb_rule_place(faults, rule),
		       rule->fired);
	}
}

/* --- for others than the rx right's holder --- */

void vb_faults_flush(struct vb_faults *faults, bool comes)
{
	for (unsigned i = 0; faults && i < FLUSH_ROUNDS; i++) {
		if (!vb_nic_rx_try(faults->nic)) {
			sched_yield();
			continue;
		}
		vb_faults_run(faults);
		vb_nic_rx_drop(faults->nic);
		if (!comes || (!vb_nic_lanes_scan(faults->nic) && i))
			return;
	}
}

void vb_faults_turn(struct vb_faults *faults)
{
	if (!faults || !atomic_load_explicit(&faults->is_left_to_turn, memory_order_relaxed))
		return;
	atomic_store(&faults->is_left_to_turn, false);
	if (atomic_exchange(&faults->shows_gids, false))
		faults->host.gids_show(faults->host.arg);
	if (atomic_exchange(&faults->fails_device, false))
		faults->host.device_fail(faults->host.arg);
	if (atomic_load(&faults->kills_process)) {
		vb_report_found();
		kill(getpid(), SIGKILL);
	}
}
