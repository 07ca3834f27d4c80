/* SPDX-License-Identifier: BSD-2-Clause */

/* What must come of it: events in a legal order, each for a reason, and two ends that agree. */

#include <string.h>

#include "cm_sim.h"

static const char *const names[PHASES] = {
	[PHASE_ASKED] = "asked",
	[PHASE_GOT_REP] = "got REP",
	[PHASE_ASKED_OF] = "asked of",
	[PHASE_ACCEPTED] = "accepted",
	[PHASE_UP] = "up",
	[PHASE_PARTING] = "parting",
	[PHASE_PARTED_AT] = "parted at",
	[PHASE_ENDED] = "ended",
	[PHASE_OVER] = "over",
	[PHASE_SIDR_ASKED] = "asked for a service",
	[PHASE_SIDR_ASKED_OF] = "asked of a service",
};

const char *phase_name(enum phase phase)
{
	return names[phase];
}

struct step {
	bool legal;
	enum phase next;
};

/* clang-format off */
#define STEP(phase, event, next) [PHASE_##phase][VB_CM_EVENT_##event] = {true, PHASE_##next}

/* Nothing else may come. An end of timewait comes at most once, behind an end. */
static const struct step steps[PHASES][VB_CM_EVENTS] = {
	STEP(ASKED,      MRA,           ASKED),
	STEP(ASKED,      REP,           GOT_REP),
	STEP(ASKED,      REJ,           ENDED),
	STEP(ASKED,      REQ_OVERDUE,   OVER),
	STEP(GOT_REP,    REJ,           ENDED),
	STEP(ASKED_OF,   REJ,           ENDED),
	STEP(ACCEPTED,   MRA,           ACCEPTED),
	STEP(ACCEPTED,   RTU,           UP),
	STEP(ACCEPTED,   ESTABLISHED,   UP),
	STEP(ACCEPTED,   REJ,           ENDED),
	STEP(ACCEPTED,   DREQ,          PARTED_AT),
	STEP(ACCEPTED,   REP_OVERDUE,   OVER),
	STEP(UP,         MRA,           UP),
	STEP(UP,         LAP,           UP),
	STEP(UP,         APR,           UP),
	STEP(UP,         LAP_OVERDUE,   UP),
	STEP(UP,         REJ,           ENDED),
	STEP(UP,         DREQ,          PARTED_AT),
	STEP(UP,         DREP,          ENDED), /* of a stale one: nobody asked us */
	STEP(UP,         DREQ_OVERDUE,  ENDED),
	STEP(PARTING,    DREQ,          ENDED),
	STEP(PARTING,    DREP,          ENDED),
	STEP(PARTING,    REJ,           ENDED),
	STEP(PARTING,    DREQ_OVERDUE,  ENDED),
	STEP(ENDED,      TIMEWAIT_EXIT, OVER),
	STEP(SIDR_ASKED, SIDR_REP,      OVER),
	STEP(SIDR_ASKED, SIDR_REQ_OVERDUE, OVER),
};
/* clang-format on */

struct card {
	uint32_t magic, index;
	uint64_t nonce;
};

static unsigned number(const struct conn *conn)
{
	return (unsigned)(conn - sim.conn);
}

static bool died(const struct conn *conn)
{
	return !conn->node->alive || conn->node->life != conn->life;
}

/* A QP may be connected twice as far as somebody knows. */
static bool any_stale(void)
{
	return sim.qps_again;
}

static struct conn *writer(const struct vb_cm_msg *msg)
{
	struct card card;
	struct conn *conn;

	require(msg->private_bytes >= sizeof(card));
	memcpy(&card, msg->private_data, sizeof(card));
	if (card.index >= sim.conns)
		return NULL;
	conn = &sim.conn[card.index];
	return conn->nonce == card.nonce ? conn : NULL;
}

static bool is_of_host(const struct vb_path *path, const struct conn *conn)
{
	const struct host *host = &sim.host[conn->node->host];

	return memcmp(path->src, host->gid[0], VB_GID_BYTES) == 0 ||
	       memcmp(path->src, host->gid[1], VB_GID_BYTES) == 0;
}

/* How long a refusal is remembered. */
static uint64_t memory_ns(const struct conn *conn)
{
	if (conn->is_sidr)
		return vb_cm_time_ns(21);
	return 2 * (vb_cm_time_ns(sim.life_exponent + 1) + vb_cm_time_ns(sim.response_exponent));
}

/* Nothing is remembered of it: the peer has ended it, or it was long ago. */
static bool is_forgotten(const struct conn *conn)
{
	return conn->ended_by_peer || VB_CM_LINGERING_MAX < CONNS_MAX || any_stale() ||
	       (conn->ended_ns && sim.now_ns - conn->ended_ns >= memory_ns(conn));
}

/* Of several for one attempt all but the last have gone in a way that nobody remembers. */
static void check_children(const struct conn *conn, const struct conn *active)
{
	for (unsigned i = 0; i < number(conn); i++) {
		const struct conn *other = &sim.conn[i];

		if (other == active || other->peer != active || other->node != conn->node ||
		    other->life != conn->life)
			continue;
		if (!is_forgotten(other))
			failed("conns %u and %u both come from %u", i, number(conn),
			       number(active));
	}
}

void oracle_child(struct conn *conn, const struct vb_cm_event *event)
{
	struct conn *active = writer(event->msg);

	require(conn->node->listener->listening.waiting <= conn->node->backlog);
	if (!active || active->local_id != event->msg->local_comm_id ||
	    !is_of_host(event->path, active)) {
		require(sim.forged || sim.floods);
		conn->of_stranger = true;
		return;
	}
	trace("conn %u comes of conn %u", number(conn), number(active));
	require(active->is_active && active->is_sidr == conn->is_sidr);
	if (!conn->is_sidr) {
		require(event->msg->req.local_qpn == active->qpn);
		require(event->msg->req.local_ca_guid == sim.host[active->node->host].guid);
	} else {
		sim.sidrs++;
	}
	conn->peer = active;
	active->children++;
	check_children(conn, active);
}

static void check_rep(struct conn *conn, const struct vb_cm_msg *msg)
{
	struct conn *peer = writer(msg);

	require(peer && peer->peer == conn && !peer->is_active);
	require(peer->local_id == msg->local_comm_id && peer->qpn == msg->rep.local_qpn);
	require(conn->id->remote.id == peer->local_id && conn->id->remote.qpn == peer->qpn);
	conn->peer = peer;
}

/* Has the peer ended it, or those who bury it? */
static bool may_end(const struct conn *conn)
{
	const struct conn *peer = conn->peer;

	return any_stale() || (peer && (peer->parted || peer->gone || peer->said_rej ||
					peer->gave_up || died(peer)));
}

static bool is_asking(const struct conn *conn)
{
	return conn->phase == PHASE_ASKED && !conn->gone && !died(conn);
}

static bool has_ended_child(const struct conn *active)
{
	for (unsigned i = 0; i < sim.conns; i++) {
		const struct conn *conn = &sim.conn[i];

		if (conn->peer == active && !conn->is_active &&
		    (conn->gone || conn->phase == PHASE_ENDED || conn->phase == PHASE_OVER))
			return true;
	}
	return false;
}

static void check_rej(const struct conn *conn, unsigned reason)
{
	const struct conn *peer = conn->peer;

	if (conn->of_stranger)
		return;
	switch (reason) {
	case VB_CM_REJ_INVALID_SERVICE_ID:
		require(sim.deaths && conn->is_active);
		break;
	case VB_CM_REJ_INVALID_COMM_ID:
		require(peer && !is_asking(peer));
		break;
	case VB_CM_REJ_STALE_CONNECTION:
		require(any_stale() || has_ended_child(conn));
		break;
	case VB_CM_REJ_TIMEOUT:
	case VB_CM_REJ_CONSUMER_DEFINED:
		/* Before the REP the active side does not know who it is. */
		require(peer ? may_end(conn) : conn->children > 0);
		break;
	default:
		failed("conn %u was rejected with %u", number(conn), reason);
	}
	sim.rejected++;
}

static void check_sidr_rep(const struct conn *conn, const struct vb_cm_msg *msg)
{
	const struct conn *peer;

	if (msg->sidr_rep.status == VB_CM_SIDR_UNSUPPORTED) {
		require(sim.deaths);
		return;
	}
	if (msg->sidr_rep.status == VB_CM_SIDR_REJECTED && !writer(msg))
		return; /* it was let go of */
	peer = writer(msg);
	require(peer && peer->peer == conn && peer->is_sidr);
	require(msg->sidr_rep.qpn == peer->qpn && msg->sidr_rep.qkey == peer->qpn);
}

/* Only an application that does not make up its mind keeps a peer waiting. */
static void check_overdue(const struct conn *conn, enum phase phase)
{
	const struct conn *peer = conn->peer;
	uint64_t answered_ns;

	if (!sim.stern || conn->of_stranger || any_stale())
		return;
	require(peer);
	if (peer->unburied)
		return;
	/* Some answers may be lost, but not that many. Letting go is one, too. */
	answered_ns = vb_max_u64(peer->answered_ns, peer->ended_ns);
	if (answered_ns && sim.now_ns - answered_ns < 3 * memory_ns(conn))
		return;
	require(peer->phase == phase && !peer->gone);
}

static bool is_foreign(const struct conn *conn)
{
	return sim.host[conn->node->host].foreign || sim.host[conn->peer->node->host].foreign;
}

static void check_cause(struct conn *conn, const struct vb_cm_event *event)
{
	struct conn *peer = conn->peer;

	switch (event->type) {
	case VB_CM_EVENT_REP:
		check_rep(conn, event->msg);
		break;
	case VB_CM_EVENT_RTU:
		require(peer && peer->said_rtu && peer->peer == conn);
		break;
	case VB_CM_EVENT_REJ:
		conn->ended_by_peer = true;
		check_rej(conn, event->msg->rej.reason);
		break;
	case VB_CM_EVENT_DREQ:
	case VB_CM_EVENT_DREP:
		require(may_end(conn) || (peer && peer->phase == PHASE_OVER) || !peer);
		require(event->type != VB_CM_EVENT_DREQ || peer);
		break;
	case VB_CM_EVENT_LAP: /* a late one of others' looks like a new one */
		require(peer && (++conn->laps_heard <= peer->laps || is_foreign(conn)));
		break;
	case VB_CM_EVENT_APR:
		require(peer && ++conn->aprs_heard <= peer->aprs);
		require(conn->aprs_heard <= conn->laps);
		break;
	case VB_CM_EVENT_REQ_OVERDUE:
		conn->gave_up = true;
		break;
	case VB_CM_EVENT_REP_OVERDUE:
		conn->gave_up = conn->ended_by_peer = true;
		check_overdue(conn, PHASE_GOT_REP);
		break;
	case VB_CM_EVENT_DREQ_OVERDUE:
		check_overdue(conn, PHASE_PARTED_AT);
		break;
	case VB_CM_EVENT_SIDR_REP:
		check_sidr_rep(conn, event->msg);
		break;
	default:
		break;
	}
	if (event->type == VB_CM_EVENT_DREP && conn->phase == PHASE_UP)
		require(any_stale());
}

void oracle_event(struct conn *conn, const struct vb_cm_event *event)
{
	const struct step *step = &steps[conn->phase][event->type];
	bool was_up = conn->phase == PHASE_UP;

	if (!step->legal)
		failed("conn %u, %s: the event '%s' may not come", number(conn),
		       phase_name(conn->phase), vb_cm_event_name(event->type));
	check_cause(conn, event);
	conn->phase = step->next;
	sim.up += !was_up && conn->phase == PHASE_UP;
	/* A stale one was being ended already: nobody asks for its application's answer. */
	if (conn->phase == PHASE_PARTED_AT && conn->id->state == VB_CM_STATE_TIMEWAIT)
		conn->phase = PHASE_ENDED;
	/* Without timewait there is no end of it. */
	if (conn->phase == PHASE_ENDED && conn->id->state != VB_CM_STATE_TIMEWAIT)
		conn->phase = PHASE_OVER;
}

static void check_pair(const struct conn *conn)
{
	const struct vb_cm_id *a = conn->id, *b;
	const struct conn *peer = conn->peer;

	if (a->state != VB_CM_STATE_ESTABLISHED || a->lap != VB_CM_LAP_STATE_NONE)
		failed("conn %u is up, and its id is: %s, %s", number(conn),
		       vb_cm_state_name(a->state), vb_cm_lap_state_name(a->lap));
	require(!conn->of_stranger && peer);
	if (peer->phase != PHASE_UP || !peer->id) {
		/* A REJ is said once, and again when the RTU comes. Both may be lost. */
		if (sim.stern && !peer->said_rej && !peer->gave_up && !peer->unburied &&
		    !(peer->gone && peer->phase == PHASE_ACCEPTED))
			failed("conn %u is up, and its peer %u is %s%s%s", number(conn),
			       number(peer), phase_name(peer->phase), peer->gone ? ", gone" : "",
			       died(peer) ? ", dead" : "");
		return;
	}
	b = peer->id;
	require(peer->peer == conn);
	require(a->remote.id == b->local.id && b->remote.id == a->local.id);
	require(a->remote.qpn == b->local.qpn && b->remote.qpn == a->local.qpn);
	require(a->local.qpn == conn->qpn && b->local.qpn == peer->qpn);
	require(a->remote.guid == b->local.guid && b->remote.guid == a->local.guid);
	require(a->tid.connect == b->tid.connect);
	sim.ups_checked++;
}

void oracle_quiet(void)
{
	for (unsigned i = 0; i < sim.conns; i++) {
		const struct conn *conn = &sim.conn[i];

		if (!conn->id)
			continue;
		if (conn->phase != PHASE_UP)
			failed("conn %u is in limbo: %s, %s", i, phase_name(conn->phase),
			       vb_cm_state_name(conn->id->state));
		check_pair(conn);
	}
}
