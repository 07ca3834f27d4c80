/* SPDX-License-Identifier: BSD-2-Clause */
#include "run/faults/strike.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/check.h"
#include "nic/core/nic_host.h"
#include "run/faults/flow.h"
#include "run/faults/link.h"
#include "run/faults/rings.h"
#include "run/faults/spells.h"
#include "run/process/log.h"
#include "run/process/report.h"

/* So many lines about a rule; then it is only counted. */
enum { LINES_MAX = 100 };

uint64_t vb_faults_now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000000ull + now.tv_nsec;
}

const char *vb_rule_place(const struct vb_faults *faults, const struct vb_rule *rule)
{
	return faults->place[rule - faults->script.rule];
}

void vb_faults_say(struct vb_faults *faults, const struct vb_rule *rule, const char *what)
{
	struct vb_finding *finding;

	if (rule->fired > LINES_MAX || !vb_log_is_on())
		return;
	finding = calloc(1, sizeof(*finding));
	if (!finding)
		return;
	snprintf(finding->what, sizeof(finding->what), "rule %s", vb_rule_place(faults, rule));
	snprintf(finding->why, sizeof(finding->why), "%s", what);
	if (rule->fired == LINES_MAX)
		finding->look = "it is only counted from here on";
	vb_report_keep(finding);
	/* Its thread logs it, unless the application polls before. */
	faults->host.wake(faults->host.arg);
}

/* --- what is due --- */

void vb_faults_strike(struct vb_faults *faults, const struct vb_rule *rule, uint32_t qpn)
{
	switch (rule->how.what) {
	case VB_FAULT_DEVICE:
		atomic_store(&faults->fails_device, true);
		break;
	case VB_FAULT_PROCESS:
		/* It is not heard of any more, however long that takes. */
		atomic_store(&faults->kills_process, true);
		vb_spell_begin(faults, rule, 0);
		break;
	default:
		vb_spell_begin(faults, rule, qpn);
		return;
	}
	atomic_store(&faults->is_left_to_turn, true);
	faults->host.wake(faults->host.arg);
}

static const char *const moments[] = {
	[VB_FAULT_SILENCE] = "silence",
	[VB_FAULT_PORT] = "the port goes down",
	[VB_FAULT_GID] = "a GID changes",
	[VB_FAULT_DEVICE] = "the device fails",
	[VB_FAULT_PROCESS] = "the process is killed",
};

void vb_faults_run(struct vb_faults *faults)
{
	uint64_t now_ns = vb_faults_now_ns(), next_ns, moment_ns;
	struct vb_rule *rule;

	while ((rule = vb_script_due(&faults->script, now_ns - faults->start_ns))) {
		vb_faults_say(faults, rule, moments[rule->how.what]);
		vb_faults_strike(faults, rule, 0);
	}
	next_ns = vb_spells_end(faults, now_ns);
	next_ns = vb_min_u64(next_ns, vb_fault_late(faults, now_ns));
	moment_ns = vb_script_next_ns(&faults->script);
	if (moment_ns != UINT64_MAX)
		next_ns = vb_min_u64(next_ns, faults->start_ns + moment_ns);
	vb_vias_run(faults);
	for (unsigned i = 0; i < atomic_load(&faults->links_count); i++)
		vb_faults_link_run(faults->links[i]);
	atomic_store(&faults->next_ns, next_ns);
}
