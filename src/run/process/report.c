/* SPDX-License-Identifier: BSD-2-Clause */
#include "run/process/report.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/lock.h"
#include "base/refusal.h"
#include "hub/procs.h"
#include "run/process/callsite.h"
#include "run/process/cancel.h"
#include "run/process/log.h"

/* What applications call by another name. */
static const struct {
	const char *ours, *users;
} names[] = {
	{ "vb_abi_create_cq_ex", "ibv_create_cq" },
	{ "ibv_reg_mr_iova2", "ibv_reg_mr" },
};

static void name_for_users(char name[64], const char *function)
{
	static const char own[] = "vb_abi_";
	bool is_own = !strncmp(function, own, sizeof(own) - 1);

	for (size_t i = 0; i < VB_ARRAY_LEN(names); i++) {
		if (strcmp(function, names[i].ours) == 0) {
			snprintf(name, 64, "%s", names[i].users);
			return;
		}
	}
	snprintf(name, 64, "%s%s", is_own ? "ibv_" : "", function + (is_own ? sizeof(own) - 1 : 0));
}

static void (*listener)(const char *words, int error);

void vb_report_listen(void (*refused)(const char *words, int error))
{
	listener = refused;
}

int vb_report_refused(const char *function, int error)
{
	char site[VB_CALLSITE_BYTES], name[64], words[VB_LOG_LINE_BYTES];
	struct vb_refusal refusal;
	int saved = errno, cancel;

	if (!error || !vb_refusals_are_wanted())
		return error;
	cancel = vb_cancel_defer();
	vb_refusal_take(error, &refusal);
	name_for_users(name, function);
	vb_callsite(site);
	snprintf(words, sizeof(words), "%s(%s): %s", name, refusal.about,
		 refusal.why[0] ? refusal.why : strerror(error));
	vb_log("%s (%s%s%s)", words, strerrorname_np(error), site[0] ? ", at " : "", site);
	if (listener)
		listener(words, error);
	vb_cancel_restore(cancel);
	errno = saved;
	return error;
}

/* --- what the NIC found --- */

static vb_lock found_lock = VB_LOCK_INIT(VB_RANK_FOUND);
static struct vb_finding *first, **end = &first;
static atomic_bool waits; /* there is one, or it is being said */

/* Held by who says them, so that nobody goes on before what he waits for is said. */
static pthread_mutex_t saying = PTHREAD_MUTEX_INITIALIZER;

void vb_report_keep(struct vb_finding *finding)
{
	finding->next = NULL;
	vb_lock_take(&found_lock);
	*end = finding;
	end = &finding->next;
	atomic_store(&waits, true);
	vb_lock_drop(&found_lock);
}

/* "; the peer is process 4711, server"; "" if it is not known. */
static void process_say(char text[64], uint32_t pid)
{
	char name[VB_HUB_COMM_BYTES];
	bool is_named;

	text[0] = 0;
	if (!pid)
		return;
	vb_procs_name((pid_t)pid, name);
	is_named = strcmp(name, "?") != 0;
	snprintf(text, 64, "; the peer is process %u%s%s", pid, is_named ? ", " : "",
		 is_named ? name : "");
}

static void say(const struct vb_finding *finding)
{
	char site[VB_CALLSITE_BYTES] = "", peer[64];

	if (finding->site)
		vb_callsite_of(site, finding->site);
	process_say(peer, finding->pid);
	vb_log("%s%s%s%s: %s%s%s", finding->what, site[0] ? ", posted at " : "", site, peer,
	       finding->why, finding->look && finding->look[0] ? "; " : "",
	       finding->look ? finding->look : "");
}

static struct vb_finding *findings_take(void)
{
	struct vb_finding *findings;

	vb_lock_take(&found_lock);
	findings = first;
	first = NULL;
	end = &first;
	vb_lock_drop(&found_lock);
	return findings;
}

void vb_report_found(void)
{
	struct vb_finding *finding, *next;
	int saved = errno, cancel;

	if (!atomic_load_explicit(&waits, memory_order_relaxed))
		return;
	cancel = vb_cancel_defer();
	pthread_mutex_lock(&saying);
	for (finding = findings_take(); finding; finding = next) {
		next = finding->next;
		say(finding);
		free(finding);
	}
	vb_lock_take(&found_lock);
	atomic_store(&waits, first != NULL);
	vb_lock_drop(&found_lock);
	pthread_mutex_unlock(&saying);
	vb_cancel_restore(cancel);
	errno = saved;
}

void vb_report_forget(void)
{
	vb_lock_init(&found_lock, VB_RANK_FOUND);
	saying = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
	/* The parent says them. They are not freed: it may have been about to. */
	first = NULL;
	end = &first;
	atomic_store(&waits, false);
	vb_callsite_forget();
}
