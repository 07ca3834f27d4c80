/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/explain/trail.h"

#include <inttypes.h>
#include <string.h>

#include "base/check.h"
#include "nic/core/names.h"
#include "run/process/trail.h"

/* More queue pairs are not told of. */
enum { QPS_MAX = 256 };

/* What a status means (ibv_poll_cq(3)); docs/errors.md has more of each. */
static const struct {
	enum ibv_wc_status status;
	const char *words;
} meanings[] = {
	{IBV_WC_LOC_LEN_ERR, "the message does not fit"},
	{IBV_WC_LOC_QP_OP_ERR, "this queue pair cannot carry the request out"},
	{IBV_WC_LOC_PROT_ERR, "an SGE is not within a registered region, or lacks the right"},
	{IBV_WC_MW_BIND_ERR, "the window cannot be bound so"},
	{IBV_WC_BAD_RESP_ERR, "the peer's answer does not fit the request"},
	{IBV_WC_LOC_ACCESS_ERR, "the peer's access is not allowed"},
	{IBV_WC_REM_INV_REQ_ERR, "the peer refused it as invalid"},
	{IBV_WC_REM_ACCESS_ERR, "the peer refused the access to its memory"},
	{IBV_WC_REM_OP_ERR, "the peer failed while it carried it out"},
	{IBV_WC_RETRY_EXC_ERR, "no answer came: timeout and retry_cnt are used up"},
	{IBV_WC_RNR_RETRY_EXC_ERR, "the peer had no receive request, and rnr_retry is used up"},
};

static const char *meaning(enum ibv_wc_status status)
{
	for (unsigned i = 0; i < VB_ARRAY_LEN(meanings); i++)
		if (meanings[i].status == status)
			return meanings[i].words;
	return "";
}

static bool is_error(const struct vb_trail_event *event)
{
	return (event->kind == VB_TRAIL_SENT_WC || event->kind == VB_TRAIL_RECV_WC) &&
	       event->status != IBV_WC_SUCCESS;
}

/* The half that leaves this queue pair. */
static uint32_t half_of(const struct vb_story *story, uint32_t pid, uint32_t qpn)
{
	uint32_t found = VB_NONE;

	for (uint32_t i = 0; i < story->halves.count; i++) {
		const struct vb_half *half = &story->half[i];

		if (half->sqpn != qpn)
			continue;
		if (half->sender != VB_NONE && story->program[half->sender].pid == pid)
			return i;
		found = i;
	}
	return found;
}

static uint64_t flushed(const struct vb_trail *trail, uint64_t count, uint32_t qpn)
{
	uint64_t requests = 0;

	for (uint64_t i = 0; i < count; i++)
		requests += is_error(&trail->event[i]) && trail->event[i].qpn == qpn &&
			    trail->event[i].status == IBV_WC_WR_FLUSH_ERR;
	return requests;
}

/* The first error of each queue pair says why; the others follow from it. */
struct told {
	uint32_t qpn[QPS_MAX], count;
};

static bool is_first(struct told *told, uint32_t qpn)
{
	for (uint32_t i = 0; i < told->count; i++)
		if (told->qpn[i] == qpn)
			return false;
	if (told->count == QPS_MAX)
		return false;
	told->qpn[told->count++] = qpn;
	return true;
}

static void error_add(struct vb_story *story, const struct vb_trail *trail, uint64_t count,
		      uint64_t index)
{
	const struct vb_trail_event *event = &trail->event[index];
	enum ibv_wc_status status = (enum ibv_wc_status)event->status;
	uint64_t requests = flushed(trail, count, event->qpn);
	struct vb_trouble *trouble = vb_story_trouble(
		story, VB_TROUBLE_COMPLETION, half_of(story, trail->pid, event->qpn), VB_NONE);

	vb_trouble_say(trouble, "%.*s (pid %u), QPN 0x%x: the %s request with wr_id 0x%" PRIx64
				" completed with %s",
		       (int)strnlen(trail->comm, sizeof(trail->comm)), trail->comm, trail->pid,
		       event->qpn, event->kind == VB_TRAIL_SENT_WC ? "send" : "receive",
		       event->wr_id, vb_status_name(status));
	if (*meaning(status))
		vb_trouble_say(trouble, ": %s", meaning(status));
	if (status == IBV_WC_WR_FLUSH_ERR)
		vb_trouble_say(trouble, ": the queue pair was in error before");
	else if (requests)
		vb_trouble_say(trouble, ". Behind it %" PRIu64 " requests were flushed", requests);
}

bool vb_cli_trail_add(struct vb_story *story, const uint8_t *octets, size_t bytes)
{
	const struct vb_trail *trail = (const struct vb_trail *)octets;
	struct told told = {.count = 0};
	uint64_t count;

	if (bytes < sizeof(*trail) || trail->magic != VB_TRAIL_MAGIC ||
	    trail->event_bytes != sizeof(struct vb_trail_event))
		return false;
	count = vb_min_u64(trail->count, (bytes - sizeof(*trail)) / sizeof(trail->event[0]));
	for (uint64_t i = 0; i < count; i++)
		if (is_error(&trail->event[i]) && is_first(&told, trail->event[i].qpn))
			error_add(story, trail, count, i);
	return true;
}
