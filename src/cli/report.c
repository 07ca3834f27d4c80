/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/report.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/failure.h"
#include "cli/cli.h"
#include "cli/json.h"
#include "cli/view.h"
#include "cm/rules.h"
#include "hub/links.h"
#include "hub/ask/query.h"
#include "hub/words.h"
#include "nic/core/names.h"
#include "wire/cm_ip.h"

/* For programs there is time: a busy machine must not make a process seem silent. */
static const uint64_t patience_ns = 3000000000;

static int trouble(int error)
{
	char why[VB_FAILURE_BYTES];

	vb_cli_error("%s", vb_failure_words(why, sizeof(why), error));
	return VB_CLI_FAILED;
}

static void address_say(struct vb_json *json, const char *key, const uint8_t gid[VB_GID_BYTES])
{
	char address[VB_ADDRESS_BYTES];

	vb_json_text(json, key, vb_gid_text(address, gid));
}

/* --- processes --- */

static void latency_say(struct vb_json *json, const struct vb_sample_qp *qp)
{
	if (!vb_cli_was_measured(qp)) {
		vb_json_null(json, "latency");
		return;
	}
	vb_json_object(json, "latency");
	vb_json_number(json, "count", qp->latency.count);
	vb_json_number(json, "sum_ns", qp->latency.sum_ns);
	if (vb_cli_is_measured(qp)) {
		vb_json_number(json, "p50_ns", qp->latency.p50_ns);
		vb_json_number(json, "p99_ns", qp->latency.p99_ns);
		vb_json_number(json, "max_ns", qp->latency.max_ns);
	}
	vb_json_close(json);
}

static void qp_say(struct vb_json *json, const struct vb_sample_qp *qp)
{
	vb_json_object(json, NULL);
	vb_json_number(json, "qpn", qp->qpn);
	vb_json_text(json, "service", qp->service);
	vb_json_text(json, "state", vb_state_name((enum ibv_qp_state)qp->state));
	vb_json_text(json, "way", vb_cli_way_name(qp));
	if (qp->dqpn) {
		vb_json_number(json, "peer_qpn", qp->dqpn);
		address_say(json, "peer_address", qp->dst);
	}
	if (qp->peer_pid)
		vb_json_number(json, "peer_pid", qp->peer_pid);
	for (const struct vb_cli_field *field = vb_cli_fields; field->name; field++)
		vb_json_number(json, field->name, vb_cli_field_get(qp, field));
	vb_json_bool(json, "waits_for_receiver", qp->rnr_waits);
	if (qp->credits_known)
		vb_json_number(json, "credits", qp->credits);
	else
		vb_json_null(json, "credits");
	latency_say(json, qp);
	if (qp->rtt_ns)
		vb_json_number(json, "round_trip_ns", qp->rtt_ns);
	vb_json_close(json);
}

static void process_say(struct vb_json *json, const struct vb_cli_process *process)
{
	const struct vb_sample *sample = process->sample;

	vb_json_object(json, NULL);
	vb_json_text(json, "pid", process->number);
	vb_json_text(json, "program", process->name);
	vb_json_text(json, "device", sample->device);
	vb_json_number(json, "taken_ns", sample->taken_ns);
	vb_json_object(json, "objects");
	vb_json_number(json, "protection_domains", sample->pds);
	vb_json_number(json, "regions", sample->regions);
	vb_json_number(json, "completion_queues", sample->cqs);
	vb_json_number(json, "shared_receive_queues", sample->srqs);
	vb_json_number(json, "queue_pairs", sample->qps);
	vb_json_close(json);
	vb_json_object(json, "counters");
	for (unsigned i = 0; i < VB_STATS; i++)
		vb_json_number(json, vb_stat_name((enum vb_stat)i), sample->stat[i]);
	vb_json_close(json);
	vb_json_array(json, "queue_pairs");
	for (unsigned i = 0; i < sample->qps; i++)
		qp_say(json, &sample->qp[i]);
	vb_json_close(json);
	vb_json_close(json);
}

static int processes_say(struct vb_json *json)
{
	struct vb_cli_view view;
	int rc = vb_cli_view_take(&view, 0, patience_ns);

	if (rc && rc != ECONNREFUSED)
		return trouble(rc);
	vb_json_array(json, "processes");
	for (unsigned i = 0; i < view.count; i++)
		process_say(json, &view.process[i]);
	vb_json_close(json);
	vb_json_number(json, "processes_silent", view.silent);
	vb_cli_view_free(&view);
	return VB_CLI_OK;
}

/* --- the hub --- */

static void holder_say(struct vb_json *json, const char *key, const struct vb_hub_row *rows,
		       unsigned n, uint32_t slot)
{
	char number[VB_HUB_NUMBER_BYTES];

	for (unsigned i = 0; i < n; i++) {
		if (rows[i].slot == slot && rows[i].program.pid)
			vb_json_text(json, key,
				     vb_hub_program_number(number, rows[i].pid, &rows[i].program));
	}
}

static void slots_say(struct vb_json *json, const struct vb_hub_row *rows, unsigned n)
{
	vb_json_array(json, "slots");
	for (unsigned i = 0; i < n; i++) {
		vb_json_object(json, NULL);
		vb_json_number(json, "slot", rows[i].slot);
		holder_say(json, "pid", rows, n, rows[i].slot);
		if (rows[i].program.pid)
			vb_json_text(json, "program", rows[i].program.comm);
		vb_json_number(json, "age_ms", rows[i].age_ms);
		vb_json_number(json, "next_qpn", rows[i].slot << 14 | rows[i].next_index);
		vb_json_bool(json, "shared_memory", rows[i].shm);
		vb_json_close(json);
	}
	vb_json_close(json);
}

static void links_say(struct vb_json *json, const struct vb_hub_row *rows, unsigned n,
		      const struct vb_hub_link *links, unsigned links_n)
{
	char words[VB_HUB_LINK_WORDS_BYTES];

	vb_json_array(json, "links");
	for (unsigned i = 0; i < links_n; i++) {
		const struct vb_hub_link *link = &links[i];

		vb_json_object(json, NULL);
		vb_json_number(json, "from_slot", link->from);
		holder_say(json, "from_pid", rows, n, link->from);
		if (link->to) {
			vb_json_number(json, "to_slot", link->to);
			holder_say(json, "to_pid", rows, n, link->to);
		} else {
			address_say(json, "to_address", link->gid);
		}
		vb_json_text(json, "by", vb_hub_link_words(words, link, "here", "there"));
		vb_json_close(json);
	}
	vb_json_close(json);
}

static int hub_say(struct vb_json *json)
{
	struct vb_hub_summary summary;
	struct vb_hub_link *links;
	struct vb_hub_row *rows;
	char number[VB_HUB_NUMBER_BYTES];
	int rc = vb_hub_links_read(&summary, &rows, &links);

	if (rc == ECONNREFUSED) {
		vb_json_null(json, "hub");
		return VB_CLI_OK;
	}
	if (rc)
		return trouble(rc);
	vb_json_object(json, "hub");
	vb_json_text(json, "pid", vb_hub_program_number(number, summary.pid, &summary.program));
	vb_json_number(json, "age_ms", summary.age_ms);
	vb_json_number(json, "clients", summary.clients);
	vb_json_number(json, "slots_made", summary.sockets);
	vb_json_number(json, "leases", summary.leases);
	vb_json_number(json, "rings", summary.rings);
	vb_json_number(json, "stray_datagrams", summary.strays);
	vb_json_close(json);
	slots_say(json, rows, summary.rows);
	links_say(json, rows, summary.rows, links, summary.links);
	free(rows);
	free(links);
	return VB_CLI_OK;
}

/* --- rdma_cm --- */

static void cm_row_say(struct vb_json *json, const struct vb_hub_cm_row *row)
{
	static const char *const whats[VB_HUB_CM_WHATS] = {
		[VB_HUB_CM_LISTENS] = "listener",
		[VB_HUB_CM_IDS] = "ids",
		[VB_HUB_CM_OTHERS] = "other_ids",
		[VB_HUB_CM_UNACKED] = "events_not_acknowledged",
	};
	char number[VB_HUB_NUMBER_BYTES];

	vb_json_object(json, NULL);
	vb_json_text(json, "what", whats[row->what]);
	vb_json_text(json, "pid", vb_hub_program_number(number, row->pid, &row->program));
	vb_json_text(json, "program", row->program.comm);
	if (row->what == VB_HUB_CM_LISTENS) {
		address_say(json, "address", row->bind.gid);
		vb_json_number(json, "port", row->bind.port);
		vb_json_text(json, "port_space", vb_cm_port_space_name(row->bind.space));
		vb_json_number(json, "backlog", row->bind.backlog);
	} else {
		vb_json_number(json, "count", row->count);
	}
	if (row->what == VB_HUB_CM_IDS) {
		address_say(json, "peer_address", row->bind.gid);
		if (row->state < VB_CM_STATES)
			vb_json_text(json, "state",
				     vb_cm_state_name((enum vb_cm_state)row->state));
	}
	vb_json_close(json);
}

static int cm_say(struct vb_json *json)
{
	struct vb_hub_cm_row *rows = NULL;
	unsigned count = 0, left = 0;
	int rc = vb_hub_cm_read(&rows, &count, &left);

	if (rc && rc != ECONNREFUSED)
		return trouble(rc);
	vb_json_array(json, "rdma_cm");
	for (unsigned i = 0; i < count && !rc; i++)
		cm_row_say(json, &rows[i]);
	vb_json_close(json);
	if (!rc)
		free(rows);
	return VB_CLI_OK;
}

int vb_cli_status_json(void)
{
	struct vb_json json = { 0 };
	char dir[PATH_MAX];
	int rc;

	vb_json_object(&json, NULL);
	vb_json_text(&json, "version", vb_cli_version);
	if (vb_cli_library_dir(dir))
		vb_json_null(&json, "library");
	else
		vb_json_text(&json, "library", dir);
	rc = hub_say(&json);
	if (!rc)
		rc = cm_say(&json);
	if (!rc)
		rc = processes_say(&json);
	if (!rc)
		vb_json_close(&json);
	return rc;
}
