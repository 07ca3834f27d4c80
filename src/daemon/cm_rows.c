/* SPDX-License-Identifier: BSD-2-Clause */
#include "daemon/cm_rows.h"

#include <string.h>

#include "cm/records.h"
#include "daemon/hub.h"
#include "hub/channel.h"

/* An answer in the making: messages that leave as they are full. */
struct answer {
	struct hub *hub;
	int fd;
	unsigned listeners;
	struct vb_hub_msg msg;
};

static void answer_send(struct answer *answer)
{
	uint32_t left = answer->msg.cm.rows.left;

	vb_hub_send(answer->fd, &answer->msg, NULL, 0);
	answer->msg = vb_hub_msg_make(VB_HUB_CM_ROWS);
	answer->msg.cm.rows.left = left;
}

static void row_add(struct answer *answer, const struct vb_hub_cm_row *row)
{
	struct vb_hub_cm_rows *rows = &answer->msg.cm.rows;
	struct vb_hub_cm_row *place = &rows->row[rows->count++];

	*place = *row;
	place->program = answer->hub->lease[row->slot].program;
	if (rows->count == VB_HUB_CM_ROWS_MAX)
		answer_send(answer);
}

static bool listener_add(void *arg, const struct vb_hub_bind *bind)
{
	struct answer *answer = arg;
	const struct vb_hub_cm_row row = {
		.what = VB_HUB_CM_LISTENS, .slot = bind->slot, .bind = *bind,
	};

	if (answer->listeners++ < VB_CM_ROWS_LISTENERS)
		row_add(answer, &row);
	else
		answer->msg.cm.rows.left++;
	return true;
}

/* --- the ids of a process, by what they are doing and with whom --- */

struct ids {
	struct vb_hub_cm_row row[VB_CM_ROWS_PEERS];
	unsigned rows;
	uint32_t others; /* that found no row */
};

static void id_count(struct ids *ids, uint32_t state, const uint8_t peer[VB_GID_BYTES])
{
	struct vb_hub_cm_row *row = ids->row, *end = ids->row + ids->rows;

	while (row < end && (row->state != state || memcmp(row->bind.gid, peer, VB_GID_BYTES)))
		row++;
	if (row == ids->row + VB_CM_ROWS_PEERS) {
		ids->others++;
		return;
	}
	if (row == end) {
		*row = (struct vb_hub_cm_row){.what = VB_HUB_CM_IDS, .state = state};
		memcpy(row->bind.gid, peer, VB_GID_BYTES);
		ids->rows++;
	}
	row->count++;
}

/* What a process has written: it may be anything. */
static void records_add(struct answer *answer, const struct vb_cm_records *records, uint32_t slot)
{
	struct ids ids = {.rows = 0};
	struct vb_hub_cm_row rest = {.what = VB_HUB_CM_OTHERS, .slot = slot};

	for (uint32_t i = 0; i < vb_cm_records_top(records); i++) {
		const struct vb_cm_record *record = &records->record[i];
		uint32_t state = atomic_load_explicit(&record->state, memory_order_acquire);

		if (state != VB_CM_STATE_IDLE && state < VB_CM_STATES)
			id_count(&ids, state, record->dst);
	}
	for (unsigned i = 0; i < ids.rows; i++) {
		ids.row[i].slot = slot;
		row_add(answer, &ids.row[i]);
	}
	rest.count = ids.others;
	if (rest.count)
		row_add(answer, &rest);
	rest.what = VB_HUB_CM_UNACKED;
	rest.count = atomic_load_explicit(&records->unacked, memory_order_relaxed);
	if (rest.count)
		row_add(answer, &rest);
}

static uint32_t slot_of(const struct conn *conn)
{
	for (uint32_t slot = 1; slot < VB_HUB_SLOTS_MAX; slot++) {
		if (vb_hub_slot_is_marked(conn, slot))
			return slot;
	}
	return 0;
}

static void all_add(struct answer *answer)
{
	vb_ports_listeners(&answer->hub->ports, listener_add, answer);
	for (unsigned i = 0; i < answer->hub->conns; i++) {
		const struct conn *conn = &answer->hub->conn[i];
		uint32_t slot = conn->role == CLIENT && conn->records ? slot_of(conn) : 0;

		if (slot)
			records_add(answer, conn->records, slot);
	}
}

void vb_hub_answer_cm(struct hub *hub, struct conn *conn, const struct vb_hub_msg *request,
		      const int *fds, unsigned n)
{
	struct answer answer = {.hub = hub, .fd = conn->fd,
				.msg = vb_hub_msg_make(VB_HUB_CM_ROWS)};
	const struct vb_hub_cm *asked = &request->cm.ask;
	const struct vb_hub_bind *nearest;

	if (!asked->space) {
		all_add(&answer);
	} else {
		nearest = vb_ports_nearest(&hub->ports, asked->space, (uint16_t)asked->port);
		if (nearest)
			listener_add(&answer, nearest);
	}
	/* One that is not full is the last. */
	answer_send(&answer);
	conn->role = GONE;
}
