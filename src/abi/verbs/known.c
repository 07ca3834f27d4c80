/* SPDX-License-Identifier: BSD-2-Clause */
#include "abi/verbs/known.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "abi/newer/buf.h"
#include "abi/newer/dmah.h"
#include "base/lock.h"
#include "base/refusal.h"
#include "nic/queue/comp_cntr.h"

#define BUCKETS 4096u

#define NOWHERE SIZE_MAX

struct entry {
	struct entry *next;
	const void *object;
	const struct ibv_context *context;
	uint32_t handle;
	enum vb_known_kind kind;
	bool ending; /* a thread is destroying it */
};

static struct {
	vb_lock lock;
	struct entry *bucket[BUCKETS];
	/* an object could not be stored for lack of memory: unknown ones may be valid */
	bool partial;
} known = {.lock = VB_LOCK_INIT(VB_RANK_KNOWN)};

/* The offsets of the public members that are compared. */
static const struct {
	size_t context, handle;
} fields[VB_KNOWN_KINDS] = {
	[VB_KNOWN_CONTEXT] = { NOWHERE, NOWHERE },
	[VB_KNOWN_PD] = { offsetof(struct ibv_pd, context), offsetof(struct ibv_pd, handle) },
	[VB_KNOWN_TD] = { offsetof(struct ibv_td, context), NOWHERE },
	[VB_KNOWN_MR] = { offsetof(struct ibv_mr, context), offsetof(struct ibv_mr, handle) },
	[VB_KNOWN_MW] = { offsetof(struct ibv_mw, context), offsetof(struct ibv_mw, handle) },
	[VB_KNOWN_DM] = { offsetof(struct ibv_dm, context), offsetof(struct ibv_dm, handle) },
	[VB_KNOWN_CHANNEL] = { offsetof(struct ibv_comp_channel, context), NOWHERE },
	[VB_KNOWN_CQ] = { offsetof(struct ibv_cq, context), offsetof(struct ibv_cq, handle) },
	[VB_KNOWN_SRQ] = { offsetof(struct ibv_srq, context), offsetof(struct ibv_srq, handle) },
	[VB_KNOWN_QP] = { offsetof(struct ibv_qp, context), offsetof(struct ibv_qp, handle) },
	[VB_KNOWN_AH] = { offsetof(struct ibv_ah, context), offsetof(struct ibv_ah, handle) },
	[VB_KNOWN_XRCD] = { offsetof(struct ibv_xrcd, context), NOWHERE },
	[VB_KNOWN_WQ] = { offsetof(struct ibv_wq, context), offsetof(struct ibv_wq, handle) },
	[VB_KNOWN_TABLE] = { offsetof(struct ibv_rwq_ind_table, context),
			     offsetof(struct ibv_rwq_ind_table, ind_tbl_handle) },
	[VB_KNOWN_FLOW] = { offsetof(struct ibv_flow, context),
			    offsetof(struct ibv_flow, handle) },
	[VB_KNOWN_COUNTERS] = { offsetof(struct ibv_counters, context), NOWHERE },
	[VB_KNOWN_DMAH] = { offsetof(struct vb_dmah, context), NOWHERE },
	[VB_KNOWN_BUF] = { offsetof(struct vb_buf, context), NOWHERE },
	[VB_KNOWN_COMP_CNTR] = { offsetof(struct vb_comp_cntr, context),
				 offsetof(struct vb_comp_cntr, handle) },
};

static const struct ibv_context *context_of(enum vb_known_kind kind, const void *object)
{
	const struct ibv_context *context = NULL;

	if (fields[kind].context != NOWHERE)
		memcpy(&context, (const char *)object + fields[kind].context, sizeof(context));
	return context;
}

static uint32_t handle_of(enum vb_known_kind kind, const void *object)
{
	uint32_t handle = 0;

	if (fields[kind].handle != NOWHERE)
		memcpy(&handle, (const char *)object + fields[kind].handle, sizeof(handle));
	return handle;
}

/* --- a fork during a change --- */

static void before_fork(void)
{
	vb_lock_take(&known.lock);
}

static void in_parent(void)
{
	vb_lock_drop(&known.lock);
}

static void in_child(void)
{
	vb_lock_init(&known.lock, VB_RANK_KNOWN);
}

static void prepare_for_forks(void)
{
	pthread_atfork(before_fork, in_parent, in_child);
}

/* --- the table; locked --- */

static struct entry **place_of(const void *object)
{
	uint64_t hash = (uint64_t)(uintptr_t)object * 0x9e3779b97f4a7c15ull;
	struct entry **at = &known.bucket[hash >> 52];

	while (*at && (*at)->object != object)
		at = &(*at)->next;
	return at;
}

static struct entry *entry_for(const void *object)
{
	struct entry **at = place_of(object);

	if (!*at) {
		*at = calloc(1, sizeof(**at));
		known.partial |= !*at;
	}
	return *at;
}

static bool is_as_given(const struct entry *entry, enum vb_known_kind kind)
{
	return entry->kind == kind && entry->context == context_of(kind, entry->object) &&
	       entry->handle == handle_of(kind, entry->object);
}

static int look(enum vb_known_kind kind, const void *object, bool to_end)
{
	struct entry *entry;
	int rc = ENOENT;

	vb_lock_take(&known.lock);
	entry = *place_of(object);
	if (!entry)
		rc = known.partial ? 0 : ENOENT;
	else if (is_as_given(entry, kind) && !(to_end && entry->ending))
		rc = 0;
	if (entry && rc == 0)
		entry->ending |= to_end;
	vb_lock_drop(&known.lock);
	return rc;
}

/* --- for other files --- */

static const struct vb_known_watch *watch;

void vb_known_watch(const struct vb_known_watch *by)
{
	watch = by;
}

static void add(enum vb_known_kind kind, const void *object)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	struct entry *entry;

	pthread_once(&once, prepare_for_forks);
	vb_lock_take(&known.lock);
	/* An entry may be left, if the thread that destroyed its object has not removed it yet. */
	entry = entry_for(object);
	if (entry) {
		entry->object = object;
		entry->context = context_of(kind, object);
		entry->handle = handle_of(kind, object);
		entry->kind = kind;
		entry->ending = false;
	}
	vb_lock_drop(&known.lock);
}

void vb_known_add(enum vb_known_kind kind, const void *object)
{
	add(kind, object);
	if (watch)
		watch->made(kind, object);
}

static int no_such(int rc, const void *object)
{
	return rc != 0 ? vb_refuse(rc,
				   "there is no such object at %p: it was destroyed, or never "
				   "made",
				   object)
		       : 0;
}

int vb_known(enum vb_known_kind kind, const void *object)
{
	return no_such(look(kind, object, false), object);
}

int vb_known_end(enum vb_known_kind kind, const void *object)
{
	int rc = no_such(look(kind, object, true), object);

	if (rc == 0 && watch)
		watch->ending(kind, object);
	return rc;
}

int vb_known_ended(enum vb_known_kind kind, const void *object, int rc)
{
	struct entry **at, *entry;

	if (rc != 0) {
		add(kind, object);
		return rc;
	}
	if (watch)
		watch->ended(kind, object);
	vb_lock_take(&known.lock);
	at = place_of(object);
	entry = *at;
	if (entry && entry->ending) {
		*at = entry->next;
		free(entry);
	}
	vb_lock_drop(&known.lock);
	return 0;
}
