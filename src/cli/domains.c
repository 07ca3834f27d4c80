/* SPDX-License-Identifier: BSD-2-Clause */

/* Shows XRC objects (docs/xrc.md), read from the memory that all processes of the hub share. */
#include "cli/domains.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <time.h>
#include <unistd.h>

#include "base/check.h"
#include "base/failure.h"
#include "cli/cli.h"
#include "hub/program.h"
#include "hub/ask/query.h"
#include "hub/words.h"
#include "link/robust.h"
#include "nic/core/names.h"
#include "nic/service/xrc/xrc_store.h"

/* Returns 0 with *store, or a positive errno with *store NULL. */
static int store_map(const struct vb_xrc_store **store)
{
	int fd, rc = vb_hub_domains_read(&fd);

	*store = NULL;
	if (rc)
		return rc;
	*store = vb_robust_memory_map(fd, sizeof(**store));
	close(fd);
	if (*store && vb_xrc_store_is_ours(*store))
		return 0;
	if (*store)
		vb_robust_memory_unmap((void *)*store, sizeof(**store));
	*store = NULL;
	return EPROTO;
}

static int trouble(int error)
{
	char why[VB_FAILURE_BYTES];

	vb_cli_error("the hub does not tell of XRC domains: %s",
		     vb_failure_words(why, sizeof(why), error));
	return VB_CLI_FAILED;
}

static void holder_print(const struct vb_hub_row *rows, unsigned count, unsigned slot)
{
	char number[VB_HUB_NUMBER_BYTES];

	for (unsigned i = 0; i < count; i++) {
		if (rows[i].slot == slot && rows[i].program.pid) {
			printf("  slot %u, pid %s, %s", slot,
			       vb_hub_program_number(number, rows[i].pid, &rows[i].program),
			       rows[i].program.comm);
			return;
		}
	}
	printf("  slot %u", slot);
}

static void rcv_print(const struct vb_xrc_rcv *rcv, uint32_t qpn)
{
	struct vb_xrc_attr at;
	unsigned open = 0, registered = 0;
	uint32_t seq;

	/* It is being written at this moment. */
	if (!vb_xrc_rcv_read(rcv, &at, &seq))
		memset(&at, 0, sizeof(at));
	for (unsigned slot = 0; slot < VB_SLOTS; slot++) {
		open += rcv->open[slot] != 0;
		registered += rcv->registered[slot] != 0;
	}
	printf("  receive QP 0x%06x  %-5s  sender 0x%06x  PSN 0x%06x  %u have it open, "
	       "%u are registered%s\n",
	       qpn, vb_state_name(at.attr.qp_state), at.attr.dest_qp_num,
	       vb_xrc_at(atomic_load(&rcv->word)).epsn, open, registered,
	       rcv->kept ? ", kept" : "");
}

static void domain_print(const struct vb_xrc_store *store, const struct vb_xrc_domain *domain,
			 const struct vb_hub_row *rows, unsigned count)
{
	uint64_t id = atomic_load(&domain->id);

	printf("\nXRC domain %" PRIu64, id);
	if (domain->has_file)
		printf(" of device %u:%u, inode %" PRIu64 "\n", major(domain->dev),
		       minor(domain->dev), domain->ino);
	else
		puts(" of no file");
	for (unsigned slot = 0; slot < VB_SLOTS; slot++) {
		if (!domain->refs[slot])
			continue;
		holder_print(rows, count, slot);
		printf(": %u references\n", domain->refs[slot]);
	}
	for (uint32_t qpn = 0; qpn < vb_xrc_rcvs(store); qpn++) {
		if (atomic_load(&store->rcv[qpn].domain) == id)
			rcv_print(&store->rcv[qpn], qpn);
	}
	for (uint32_t i = 0; i < vb_xrc_srqs_top(&store->srqs); i++) {
		const struct vb_xrc_srq_row *srq = &store->srqs.srq[i];

		if (atomic_load(&srq->domain) == id)
			printf("  SRQ 0x%06x  slot %u\n", srq->number, srq->slot);
	}
}

int vb_cli_domains(const struct vb_hub_row *rows, unsigned count)
{
	const struct vb_xrc_store *store;
	int rc = store_map(&store);

	/* The hub left just now, as it does when no program needs it. */
	if (rc == ECONNREFUSED)
		return VB_CLI_OK;
	if (rc)
		return trouble(rc);
	for (unsigned i = 0; i < vb_xrc_domains(store); i++) {
		if (atomic_load(&store->domain[i].id))
			domain_print(store, &store->domain[i], rows, count);
	}
	vb_robust_memory_unmap((void *)store, sizeof(*store));
	return VB_CLI_OK;
}

static void note_print(const struct vb_xrc_note *note)
{
	static const char *const events[] = {
		[IBV_EVENT_QP_FATAL] = "QP_FATAL: the QP is broken",
		[IBV_EVENT_QP_REQ_ERR] = "QP_REQ_ERR: it got an invalid request",
		[IBV_EVENT_QP_ACCESS_ERR] = "QP_ACCESS_ERR: it got an access violation",
		[IBV_EVENT_COMM_EST] = "COMM_EST: communication is established",
		[IBV_EVENT_QP_LAST_WQE_REACHED] = "QP_LAST_WQE_REACHED",
	};
	const char *event = note->type < VB_ARRAY_LEN(events) ? events[note->type] : NULL;
	time_t seconds = (time_t)(note->wall_ns / 1000000000);
	struct tm tm;
	char when[32] = "?";

	if (localtime_r(&seconds, &tm))
		strftime(when, sizeof(when), "%Y-%m-%d %H:%M:%S", &tm);
	printf("%s.%03u  receive QP 0x%06x of XRC domain %" PRIu64 ", seen by slot %u: %s\n", when,
	       (unsigned)(note->wall_ns / 1000000 % 1000), note->qpn, note->domain, note->slot,
	       event ? event : "?");
}

int vb_cli_log(void)
{
	const struct vb_xrc_store *store;
	struct vb_xrc_note note;
	uint64_t count;
	int rc = store_map(&store);

	if (rc == ECONNREFUSED) {
		puts("hub      not running");
		return VB_CLI_OK;
	}
	if (rc)
		return trouble(rc);
	count = atomic_load(&store->log.count);
	if (!count)
		puts("hub log: nothing has happened to a receive QP of XRC so far");
	for (uint64_t i = vb_xrc_log_first(count); i < count; i++) {
		if (vb_xrc_log_read(&store->log, i, &note))
			note_print(&note);
	}
	vb_robust_memory_unmap((void *)store, sizeof(*store));
	return VB_CLI_OK;
}
