/* SPDX-License-Identifier: BSD-2-Clause */

/* What the applications do: now and then something, until it is calm; then what they owe. */

#include <errno.h>
#include <string.h>

#include "cm_sim.h"

enum { MAGIC = 0x636d7369 };

/* What our private data says: whose it is. */
struct card {
	uint32_t magic, index;
	uint64_t nonce;
};

static uint64_t soon(void)
{
	if (sim.calm)
		return sim.now_ns + below(10000000);
	switch (below(8)) {
	case 0:
		return sim.now_ns;
	case 1:
		return sim.now_ns + below(20000) * SIM_MS;
	default:
		return sim.now_ns + below(300) * SIM_MS;
	}
}

static struct conn *conn_make(struct node *node)
{
	struct conn *conn = &sim.conn[sim.conns];

	require(sim.conns < CONNS_MAX);
	sim.conns++;
	*conn = (struct conn){
		.node = node,
		.life = node->life,
		.act_ns = UINT64_MAX,
		.nonce = vb_prng_next(&sim.rng),
	};
	return conn;
}

static struct card card_of(const struct conn *conn)
{
	return (struct card){MAGIC, (uint32_t)(conn - sim.conn), conn->nonce};
}

static void sign(struct vb_cm_msg *msg, const struct card *card)
{
	msg->private_data = (const uint8_t *)card;
	msg->private_bytes = sizeof(*card);
}

static int say(struct conn *conn, struct vb_cm_msg msg)
{
	const struct card card = card_of(conn);

	trace("conn %u says %s", card.index, vb_cm_attr_name(msg.attr));
	sign(&msg, &card);
	return vb_cm_say(conn->id, sim.now_ns, &msg, NULL);
}

/* --- asking --- */

static void path_to(struct vb_path *path, const struct node *from, const struct node *to,
		    unsigned place)
{
	*path = (struct vb_path){.hop_limit = 64};
	memcpy(path->src, sim.host[from->host].gid[place], VB_GID_BYTES);
	memcpy(path->dst, sim.host[to->host].gid[place], VB_GID_BYTES);
}

static void cm_path_to(struct vb_cm_path *out, const struct vb_path *path)
{
	*out = (struct vb_cm_path){
		.hop_limit = 64,
		.local_ack_timeout = (uint8_t)(sim.life_exponent + 1),
	};
	memcpy(out->local_gid, path->src, VB_GID_BYTES);
	memcpy(out->remote_gid, path->dst, VB_GID_BYTES);
}

/* Mostly a QP that nobody has had; or one that is connected no more, as far as this side knows. */
static uint32_t draw_qpn(struct node *node)
{
	for (unsigned i = 0; i < 3 && sim.qps_again && sim.conns; i++) {
		const struct conn *old = &sim.conn[below(sim.conns)];

		if (old->node == node && !old->is_sidr &&
		    (old->gone || old->phase == PHASE_OVER || old->life != node->life))
			return old->qpn;
	}
	return (uint32_t)node->slot << 14 | sim.conns;
}

static void req_fill(struct conn *conn, struct vb_cm_msg *msg, const struct node *to,
		     const struct vb_cm_ask *ask)
{
	msg->attr = VB_CM_REQ;
	msg->req = (struct vb_cm_req){
		.service_id = to->service_id,
		.local_qpn = conn->qpn,
		.starting_psn = below(1 << 24),
		.remote_cm_response_timeout = (uint8_t)sim.response_exponent,
		.local_cm_response_timeout = (uint8_t)sim.response_exponent,
		.max_cm_retries = (uint8_t)sim.retries,
	};
	cm_path_to(&msg->req.primary, &ask->path);
	if (chance(30))
		cm_path_to(&msg->req.alternate, &ask->alternate);
}

static void ask(struct node *node, struct vb_cm_id *id)
{
	const struct node *to = &sim.node[below(sim.nodes)];
	struct conn *conn = conn_make(node);
	const struct card card = card_of(conn);
	struct vb_cm_ask how = {
		.timeout_ns =
			2 * vb_cm_time_ns(sim.life_exponent) + vb_cm_time_ns(sim.response_exponent),
		.retries = sim.retries,
		.ours = to->host == node->host && !sim.host[to->host].foreign && chance(50),
	};
	struct vb_cm_msg msg = {0};

	conn->id = id;
	conn->is_active = true;
	conn->is_sidr = chance(15);
	conn->qpn = draw_qpn(node);
	conn->phase = conn->is_sidr ? PHASE_SIDR_ASKED : PHASE_ASKED;
	conn->act_ns = chance(15) ? soon() : UINT64_MAX;
	id->context = conn;
	path_to(&how.path, node, to, 0);
	path_to(&how.alternate, node, to, 1);
	msg.attr = VB_CM_SIDR_REQ;
	msg.sidr_req.service_id = to->service_id;
	if (!conn->is_sidr)
		req_fill(conn, &msg, to, &how);
	sign(&msg, &card);
	trace("conn %u of node %u asks node %u", card.index, node->index, to->index);
	/* The transport may be quick, or we may die amid this. */
	conn->local_id = id->local.id;
	require(vb_cm_say_ask(id, sim.now_ns, &msg, &how) == 0);
	require(conn->local_id == id->local.id);
	require(conn->local_id >> 22 == node->slot);
}

void app_begin(struct node *node)
{
	struct vb_cm_id *id = vb_cm_id_make(&node->cm, NULL);

	if (id)
		ask(node, id);
}

/* --- letting go --- */

void app_release(struct conn *conn)
{
	struct vb_cm_id *id = conn->id;

	trace("conn %u is let go of", (unsigned)(conn - sim.conn));
	conn->id = NULL;
	conn->gone = true;
	conn->ended_ns = conn->ended_ns ? conn->ended_ns : sim.now_ns;
	conn->act_ns = UINT64_MAX;
	vb_cm_id_release(id, sim.now_ns);
}

void app_dies(struct node *node)
{
	for (unsigned i = 0; i < sim.conns; i++) {
		struct conn *conn = &sim.conn[i];

		if (conn->node == node && conn->id) {
			conn->id = NULL;
			conn->gone = true;
			conn->act_ns = UINT64_MAX;
		}
	}
}

/* It may be used for another attempt, if nothing is left of the last one. */
static void end(struct conn *conn)
{
	struct vb_cm_id *id = conn->id;

	if (sim.calm || id->state != VB_CM_STATE_IDLE || chance(70)) {
		app_release(conn);
		return;
	}
	conn->id = NULL;
	conn->gone = true;
	conn->act_ns = UINT64_MAX;
	vb_cm_id_take(id);
	ask(conn->node, id);
}

/* --- what is due --- */

static void reject(struct conn *conn, unsigned reason)
{
	conn->said_rej = true;
	conn->ended_ns = sim.now_ns;
	conn->phase = PHASE_OVER;
	conn->act_ns = soon();
	require(say(conn, (struct vb_cm_msg){.attr = VB_CM_REJ, .rej.reason = (uint16_t)reason}) ==
		0);
}

static void wait(struct conn *conn)
{
	conn->act_ns = soon();
	/* Once is enough, and it may have been said by itself. */
	say(conn, (struct vb_cm_msg){.attr = VB_CM_MRA, .mra.service_timeout = 18});
}

static void accept(struct conn *conn)
{
	struct vb_cm_msg msg = {
		.attr = VB_CM_REP,
		.rep = {.local_qpn = conn->qpn, .starting_psn = 1},
	};

	conn->phase = PHASE_ACCEPTED;
	conn->act_ns = chance(15) ? soon() : UINT64_MAX;
	require(say(conn, msg) == 0);
}

static void act_asked_of(struct conn *conn)
{
	unsigned dice = sim.calm ? 0 : below(100);

	vb_cm_id_take(conn->id);
	conn->taken = true;
	if (dice < 65)
		accept(conn);
	else if (dice < 80)
		reject(conn, VB_CM_REJ_CONSUMER_DEFINED);
	else if (dice < 90)
		app_release(conn);
	else
		wait(conn);
}

static void act_got_rep(struct conn *conn)
{
	unsigned dice = sim.calm ? 0 : below(100);

	if (dice < 80) {
		conn->phase = PHASE_UP;
		conn->said_rtu = true;
		conn->answered_ns = sim.now_ns;
		conn->act_ns = chance(70) ? soon() : UINT64_MAX;
		require(say(conn, (struct vb_cm_msg){.attr = VB_CM_RTU}) == 0);
	} else if (dice < 87) {
		reject(conn, VB_CM_REJ_CONSUMER_DEFINED);
	} else if (dice < 94) {
		app_release(conn);
	} else {
		wait(conn);
	}
}

static void act_accepted(struct conn *conn)
{
	conn->act_ns = UINT64_MAX;
	if (sim.calm)
		return;
	/* The first data may overtake the RTU. */
	if (conn->peer && conn->peer->said_rtu && chance(60))
		require(vb_cm_say_established(conn->id, sim.now_ns) == 0);
	else if (chance(50))
		reject(conn, VB_CM_REJ_CONSUMER_DEFINED);
	else
		app_release(conn);
}

static void offer_path(struct conn *conn)
{
	struct vb_cm_msg msg = {.attr = VB_CM_LAP, .lap.remote_cm_response_timeout = 16};
	struct vb_path alternate;

	path_to(&alternate, conn->node, conn->node, 1);
	memcpy(alternate.dst, conn->id->path.dst, VB_GID_BYTES);
	cm_path_to(&msg.lap.alternate, &alternate);
	conn->laps++;
	sim.laps++;
	conn->act_ns = chance(50) ? soon() : UINT64_MAX;
	require(vb_cm_say(conn->id, sim.now_ns, &msg, NULL) == EINVAL);
	require(vb_cm_say(conn->id, sim.now_ns, &msg, &alternate) == 0);
}

static void answer_path(struct conn *conn)
{
	conn->act_ns = soon();
	if (!sim.calm && conn->id->lap == VB_CM_LAP_STATE_RCVD && chance(30)) {
		wait(conn);
		return;
	}
	conn->aprs++;
	require(say(conn,
		    (struct vb_cm_msg){.attr = VB_CM_APR, .apr.status = VB_CM_APR_REJECTED}) == 0);
}

static void act_up(struct conn *conn)
{
	unsigned dice = below(100);

	conn->act_ns = UINT64_MAX;
	if (conn->id->state != VB_CM_STATE_ESTABLISHED)
		return; /* a stale one: it is being ended already */
	if (conn->id->lap == VB_CM_LAP_STATE_RCVD || conn->id->lap == VB_CM_LAP_STATE_MRA_SENT) {
		answer_path(conn);
	} else if (sim.calm) {
		return;
	} else if (dice < 20 && conn->is_active && conn->id->lap == VB_CM_LAP_STATE_NONE) {
		offer_path(conn);
	} else if (dice < 65) {
		conn->phase = PHASE_PARTING;
		conn->parted = true;
		conn->act_ns = chance(10) ? soon() : UINT64_MAX;
		require(say(conn, (struct vb_cm_msg){.attr = VB_CM_DREQ}) == 0);
	} else {
		app_release(conn);
	}
}

static void act_parted_at(struct conn *conn)
{
	if (!sim.calm && chance(25)) {
		app_release(conn);
		return;
	}
	conn->phase = PHASE_ENDED;
	conn->parted = true;
	conn->answered_ns = sim.now_ns;
	conn->act_ns = chance(50) ? soon() : UINT64_MAX;
	require(say(conn, (struct vb_cm_msg){.attr = VB_CM_DREP}) == 0);
}

static void act_sidr(struct conn *conn)
{
	struct vb_cm_msg msg = {
		.attr = VB_CM_SIDR_REP,
		.sidr_rep = {.qpn = conn->qpn, .qkey = conn->qpn},
	};

	vb_cm_id_take(conn->id);
	if (!sim.calm && chance(10)) {
		app_release(conn);
		return;
	}
	if (chance(20))
		msg.sidr_rep.status = VB_CM_SIDR_REJECTED;
	conn->phase = PHASE_OVER;
	conn->ended_ns = sim.now_ns;
	conn->act_ns = soon();
	require(say(conn, msg) == 0);
}

void app_act(struct conn *conn)
{
	switch (conn->phase) {
	case PHASE_ASKED_OF:
		act_asked_of(conn);
		break;
	case PHASE_GOT_REP:
		act_got_rep(conn);
		break;
	case PHASE_ACCEPTED:
		act_accepted(conn);
		break;
	case PHASE_UP:
		act_up(conn);
		break;
	case PHASE_PARTED_AT:
		act_parted_at(conn);
		break;
	case PHASE_SIDR_ASKED_OF:
		act_sidr(conn);
		break;
	case PHASE_ENDED:
	case PHASE_OVER:
		end(conn);
		break;
	case PHASE_ASKED:
	case PHASE_SIDR_ASKED:
	case PHASE_PARTING:
		conn->act_ns = UINT64_MAX;
		if (!sim.calm)
			app_release(conn);
		break;
	case PHASES:
		break;
	}
}

/* --- events --- */

static void child_came(struct node *node, struct vb_cm_id *id, const struct vb_cm_event *event)
{
	struct conn *conn = conn_make(node);

	require(event->listener == node->listener);
	require(!id->context);
	id->context = conn;
	conn->id = id;
	conn->is_sidr = event->type == VB_CM_EVENT_SIDR_REQ;
	conn->phase = conn->is_sidr ? PHASE_SIDR_ASKED_OF : PHASE_ASKED_OF;
	conn->local_id = id->local.id;
	conn->qpn = draw_qpn(node);
	conn->act_ns = soon();
	oracle_child(conn, event);
	if (!sim.calm && chance(3))
		app_release(conn);
}

void app_event(struct node *node, struct vb_cm_id *id, const struct vb_cm_event *event)
{
	struct conn *conn = id->context;

	if (event->type == VB_CM_EVENT_REQ || event->type == VB_CM_EVENT_SIDR_REQ) {
		child_came(node, id, event);
		return;
	}
	require(conn && conn->id == id && conn->node == node && conn->life == node->life);
	trace("conn %u, %s: %s", (unsigned)(conn - sim.conn), phase_name(conn->phase),
	      vb_cm_event_name(event->type));
	oracle_event(conn, event);
	switch (conn->phase) {
	case PHASE_GOT_REP:
	case PHASE_UP:
	case PHASE_PARTED_AT:
	case PHASE_OVER:
		conn->act_ns = soon();
		break;
	case PHASE_ENDED:
		conn->act_ns = chance(50) ? soon() : UINT64_MAX;
		break;
	default:
		break;
	}
	/* Some do it all within the call. */
	if (conn->act_ns == sim.now_ns)
		app_act(conn);
}

/* --- time --- */

static bool is_due(const struct conn *conn, const struct node *node)
{
	return conn->node == node && conn->id && conn->act_ns <= sim.now_ns;
}

uint64_t app_next_ns(const struct node *node)
{
	uint64_t next_ns = sim.calm ? UINT64_MAX : node->app_ns;

	for (unsigned i = 0; i < sim.conns; i++) {
		if (sim.conn[i].node == node && sim.conn[i].id)
			next_ns = vb_min_u64(next_ns, sim.conn[i].act_ns);
	}
	return next_ns;
}

static void begin(struct node *node, const void *arg)
{
	(void)arg;
	if (chance(2))
		net_flood(node);
	else
		app_begin(node);
}

static void act(struct node *node, const void *arg)
{
	struct conn *conn = *(struct conn *const *)arg;

	(void)node;
	app_act(conn);
}

void app_step(struct node *node)
{
	if (!sim.calm && node->app_ns <= sim.now_ns) {
		node->app_ns = sim.wanted ? sim.now_ns + below(2000) * SIM_MS : UINT64_MAX;
		if (sim.wanted) {
			sim.wanted--;
			node_does(node, begin, NULL);
		}
	}
	for (unsigned i = 0; i < sim.conns && node->alive; i++) {
		struct conn *conn = &sim.conn[i];

		if (is_due(conn, node))
			node_does(node, act, &conn);
	}
}
