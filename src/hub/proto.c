/* SPDX-License-Identifier: BSD-2-Clause */
#include "hub/proto.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "base/check.h"

static bool text_ok(const char *text, size_t bytes)
{
	for (size_t i = 0; i < bytes; i++) {
		if (!text[i])
			return true;
		if (text[i] < ' ' || text[i] > '~')
			return false;
	}
	return false;
}

static bool program_ok(const struct vb_hub_program *program)
{
	return program->pid <= INT32_MAX && text_ok(program->comm, sizeof(program->comm)) &&
	       text_ok(program->host, sizeof(program->host));
}

static bool slot_ok(uint32_t slot, uint32_t next_index)
{
	return slot >= 1 && slot < VB_HUB_SLOTS_MAX && next_index < VB_HUB_INDICES;
}

static bool slots_ok(uint32_t from, uint32_t to)
{
	return slot_ok(from, 0) && slot_ok(to, 0);
}

/* An error comes without descriptors, and success never does. */
static bool answer_ok(uint32_t error, unsigned fds)
{
	return error <= INT32_MAX && (error != 0) == (fds == 0);
}

static bool hello_ok(const struct vb_hub_msg *msg, unsigned fds)
{
	return program_ok(&msg->hello.program);
}

static bool lease_ok(const struct vb_hub_msg *msg, unsigned fds)
{
	return program_ok(&msg->lease.program);
}

static bool welcome_ok(const struct vb_hub_msg *msg, unsigned fds)
{
	return answer_ok(msg->welcome.error, fds) && text_ok(msg->welcome.why, VB_HUB_WHY_BYTES);
}

static bool mark_ok(const struct vb_hub_msg *msg, unsigned fds)
{
	return slot_ok(msg->mark.slot, msg->mark.next_index);
}

static bool grant_ok(const struct vb_hub_msg *msg, unsigned fds)
{
	return answer_ok(msg->grant.error, fds) && text_ok(msg->grant.why, VB_HUB_WHY_BYTES) &&
	       (msg->grant.error || slot_ok(msg->grant.slot, msg->grant.next_index));
}

static bool bare_ok(const struct vb_hub_msg *msg, unsigned fds)
{
	return true;
}

static bool summary_ok(const struct vb_hub_msg *msg, unsigned fds)
{
	return program_ok(&msg->summary.program) && msg->summary.sockets <= VB_HUB_SLOTS_MAX &&
	       msg->summary.rows < VB_HUB_SLOTS_MAX &&
	       msg->summary.links <= VB_HUB_SLOTS_MAX * VB_HUB_LINKS_MAX;
}

static bool rows_ok(const struct vb_hub_msg *msg, unsigned fds)
{
	if (msg->rows.count < 1 || msg->rows.count > VB_HUB_ROWS_MAX)
		return false;
	for (unsigned i = 0; i < msg->rows.count; i++) {
		const struct vb_hub_row *row = &msg->rows.row[i];

		if (!slot_ok(row->slot, row->next_index) || !program_ok(&row->program) ||
		    row->shm > 1)
			return false;
	}
	return true;
}

static bool stop_ok(const struct vb_hub_msg *msg, unsigned fds)
{
	return msg->stop.force <= 1;
}

static bool stopped_ok(const struct vb_hub_msg *msg, unsigned fds)
{
	return msg->stopped.error <= INT32_MAX;
}

static bool offer_ok(const struct vb_hub_msg *msg, unsigned fds)
{
	return fds && msg->offer.shm <= 1 && msg->offer.why < VB_HUB_LINK_WHYS;
}

static bool reach_ok(const struct vb_hub_msg *msg, unsigned fds)
{
	return fds && slots_ok(msg->reach.from, msg->reach.to);
}

static bool reached_ok(const struct vb_hub_msg *msg, unsigned fds)
{
	return answer_ok(msg->reached.error, fds) && msg->reached.why < VB_HUB_LINK_WHYS &&
	       msg->reached.there <= 1 && msg->reached.proven <= 1 &&
	       program_ok(&msg->reached.program);
}

static bool ring_ok(const struct vb_hub_msg *msg, unsigned fds)
{
	return fds && slots_ok(msg->ring.from, msg->ring.to) && msg->ring.proven <= 1;
}

static bool fail_ok(const struct vb_hub_msg *msg, unsigned fds)
{
	return msg->fail.pid >= 1 && msg->fail.pid <= INT32_MAX;
}

static bool capture_ok(const struct vb_hub_msg *msg, unsigned fds)
{
	return fds && fail_ok(msg, fds);
}

static bool failed_ok(const struct vb_hub_msg *msg, unsigned fds)
{
	return msg->failed.error <= INT32_MAX;
}

static bool memory_ok(const struct vb_hub_msg *msg, unsigned fds)
{
	return answer_ok(msg->memory.error, fds);
}

static bool one_link_ok(const struct vb_hub_link *link)
{
	return slot_ok(link->from, 0) && (link->to == 0 || slot_ok(link->to, 0)) &&
	       link->why < VB_HUB_LINK_WHYS && link->there <= 1 && link->none <= 1 &&
	       link->error <= INT32_MAX;
}

static bool link_ok(const struct vb_hub_msg *msg, unsigned fds)
{
	return one_link_ok(&msg->link);
}

static bool links_ok(const struct vb_hub_msg *msg, unsigned fds)
{
	if (msg->links.count < 1 || msg->links.count > VB_HUB_LINKS_MAX)
		return false;
	for (unsigned i = 0; i < msg->links.count; i++) {
		if (!one_link_ok(&msg->links.link[i]))
			return false;
	}
	return true;
}

static bool who_ok(const struct vb_hub_msg *msg, unsigned fds)
{
	return slot_ok(msg->who.slot, 0);
}

static bool whose_ok(const struct vb_hub_msg *msg, unsigned fds)
{
	return answer_ok(msg->whose.error, fds);
}

static bool bind_ok(const struct vb_hub_msg *msg, unsigned fds)
{
	return slot_ok(msg->cm.bind.slot, 0) && msg->cm.bind.space <= UINT16_MAX &&
	       msg->cm.bind.port <= UINT16_MAX && msg->cm.bind.flags <= VB_HUB_BIND_FLAGS;
}

static bool bound_ok(const struct vb_hub_msg *msg, unsigned fds)
{
	return msg->cm.bound.error <= INT32_MAX && msg->cm.bound.port <= UINT16_MAX &&
	       (msg->cm.bound.error != 0) == (msg->cm.bound.port == 0);
}

static bool unbind_ok(const struct vb_hub_msg *msg, unsigned fds)
{
	return slot_ok(msg->cm.unbind.slot, 0);
}

static bool mad_ok(const struct vb_hub_msg *msg, unsigned fds)
{
	return slot_ok(msg->cm.mad.slot, 0);
}

static bool cm_ok(const struct vb_hub_msg *msg, unsigned fds)
{
	return msg->cm.ask.space <= UINT16_MAX && msg->cm.ask.port <= UINT16_MAX;
}

static bool cm_rows_ok(const struct vb_hub_msg *msg, unsigned fds)
{
	if (msg->cm.rows.count > VB_HUB_CM_ROWS_MAX)
		return false;
	for (unsigned i = 0; i < msg->cm.rows.count; i++) {
		const struct vb_hub_cm_row *row = &msg->cm.rows.row[i];

		if (row->what >= VB_HUB_CM_WHATS || !slot_ok(row->slot, 0) ||
		    !program_ok(&row->program) || row->bind.port > UINT16_MAX)
			return false;
	}
	return true;
}

static bool records_ok(const struct vb_hub_msg *msg, unsigned fds)
{
	return fds;
}

static bool sample_ok(const struct vb_hub_msg *msg, unsigned fds)
{
	return fds && msg->sample.ask.measure_s <= VB_HUB_MEASURE_S_MAX;
}

static bool samples_ok(const struct vb_hub_msg *msg, unsigned fds)
{
	return msg->sample.asked.asked <= VB_HUB_SLOTS_MAX;
}

static bool sampled_ok(const struct vb_hub_msg *msg, unsigned fds)
{
	return fds && program_ok(&msg->sample.taken.program);
}

struct rule {
	uint16_t bytes;
	uint16_t fds; /* either none or this many; ok() checks when none is right */
	bool (*ok)(const struct vb_hub_msg *, unsigned fds);
};

enum { HEADER_BYTES = offsetof(struct vb_hub_msg, hello) };

#define WITH(body) (offsetof(struct vb_hub_msg, body) + sizeof(((struct vb_hub_msg *)0)->body))

/* clang-format off */
static const struct rule rules[VB_HUB_TYPES] = {
	[VB_HUB_HELLO]   = { WITH(hello),   VB_HUB_KEEPER_FDS, hello_ok },
	[VB_HUB_WELCOME] = { WITH(welcome), VB_HUB_KEEPER_FDS, welcome_ok },
	[VB_HUB_MARK]    = { WITH(mark),    VB_HUB_MARK_FDS,   mark_ok },
	[VB_HUB_LEASE]   = { WITH(lease),   0,                 lease_ok },
	[VB_HUB_GRANT]   = { WITH(grant),   VB_HUB_GRANT_FDS,  grant_ok },
	[VB_HUB_STATUS]  = { HEADER_BYTES,  0,                 bare_ok },
	[VB_HUB_SUMMARY] = { WITH(summary), 0,                 summary_ok },
	[VB_HUB_ROWS]    = { WITH(rows),    0,                 rows_ok },
	[VB_HUB_STOP]    = { WITH(stop),    0,                 stop_ok },
	[VB_HUB_STOPPED] = { WITH(stopped), 0,                 stopped_ok },
	[VB_HUB_OFFER]   = { WITH(offer),   VB_HUB_OFFER_FDS,  offer_ok },
	[VB_HUB_REACH]   = { WITH(reach),   VB_HUB_REACH_FDS,  reach_ok },
	[VB_HUB_REACHED] = { WITH(reached), VB_HUB_OFFER_FDS,  reached_ok },
	[VB_HUB_RING]    = { WITH(ring),    VB_HUB_RING_FDS,   ring_ok },
	[VB_HUB_FAIL]    = { WITH(fail),    0,                 fail_ok },
	[VB_HUB_FAILED]  = { WITH(failed),  0,                 failed_ok },
	[VB_HUB_FATAL]   = { HEADER_BYTES,  0,                 bare_ok },
	[VB_HUB_DOMAINS] = { HEADER_BYTES,  0,                 bare_ok },
	[VB_HUB_MEMORY]  = { WITH(memory),  1,                 memory_ok },
	[VB_HUB_NOTED]   = { HEADER_BYTES,  0,                 bare_ok },
	[VB_HUB_LINK]    = { WITH(link),    0,                 link_ok },
	[VB_HUB_LINKS]   = { WITH(links),   0,                 links_ok },
	[VB_HUB_WHO]     = { WITH(who),     0,                 who_ok },
	[VB_HUB_WHOSE]   = { WITH(whose),   1,                 whose_ok },
	[VB_HUB_BIND]    = { WITH(cm.bind),    VB_HUB_BIND_FDS,   bind_ok },
	[VB_HUB_BOUND]   = { WITH(cm.bound),   0,                 bound_ok },
	[VB_HUB_UNBIND]  = { WITH(cm.unbind),  0,                 unbind_ok },
	[VB_HUB_RECORDS] = { HEADER_BYTES,  VB_HUB_RECORDS_FDS, records_ok },
	[VB_HUB_MAD]     = { WITH(cm.mad),     0,                 mad_ok },
	[VB_HUB_CM]      = { WITH(cm.ask),     0,                 cm_ok },
	[VB_HUB_CM_ROWS] = { WITH(cm.rows),    0,                 cm_rows_ok },
	[VB_HUB_CAPTURE] = { WITH(fail),    VB_HUB_CAPTURE_FDS, capture_ok },
	[VB_HUB_SAMPLE]  = { WITH(sample.ask),   VB_HUB_SAMPLE_FDS, sample_ok },
	[VB_HUB_SAMPLES] = { WITH(sample.asked), 0,                 samples_ok },
	[VB_HUB_SAMPLED] = { WITH(sample.taken), VB_HUB_SAMPLE_FDS, sampled_ok },
};
/* clang-format on */

struct vb_hub_msg vb_hub_msg_make(enum vb_hub_type type)
{
	struct vb_hub_msg msg;

	memset(&msg, 0, sizeof(msg));
	msg.magic = VB_HUB_MAGIC;
	msg.version = VB_HUB_PROTOCOL;
	msg.type = (uint16_t)type;
	return msg;
}

size_t vb_hub_msg_bytes(unsigned type)
{
	return type < VB_HUB_TYPES ? rules[type].bytes : 0;
}

int vb_hub_msg_parse(struct vb_hub_msg *msg, const void *data, size_t bytes, unsigned fds)
{
	struct vb_hub_msg copy;
	const struct rule *rule;

	if (bytes < HEADER_BYTES || bytes > sizeof(copy))
		return EPROTO;
	memset(&copy, 0, sizeof(copy));
	memcpy(&copy, data, bytes);
	if (copy.magic != VB_HUB_MAGIC || copy.version != VB_HUB_PROTOCOL ||
	    bytes != vb_hub_msg_bytes(copy.type))
		return EPROTO;
	rule = &rules[copy.type];
	if (fds != 0 && fds != rule->fds)
		return EPROTO;
	if (!rule->ok(&copy, fds))
		return EPROTO;
	*msg = copy;
	return 0;
}

void vb_hub_text_copy(char *to, size_t bytes, const char *text)
{
	memset(to, 0, bytes);
	for (size_t i = 0; i + 1 < bytes && text[i]; i++)
		to[i] = text[i] < ' ' || text[i] > '~' ? '?' : text[i];
}

void vb_hub_comm_copy(char comm[VB_HUB_COMM_BYTES], const char *name)
{
	vb_hub_text_copy(comm, VB_HUB_COMM_BYTES, name);
}
