/* SPDX-License-Identifier: BSD-2-Clause */

/* MADs on their way, and the hubs, who know whose one is. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cm_sim.h"
#include "wire/bytes.h"

enum { MARK_AT = 18, FLOOD = 100, GID_OF_NOBODY = 0xee };

/* --- by time of arrival --- */

static bool before(const struct flight *a, const struct flight *b)
{
	return a->at_ns != b->at_ns ? a->at_ns < b->at_ns : a->order < b->order;
}

static void heap_add(struct flight *flight)
{
	unsigned i = sim.flights++;

	if (sim.flights > sim.size) {
		sim.size = sim.size ? 2 * sim.size : 256;
		sim.heap = realloc(sim.heap, sim.size * sizeof(struct flight *));
		vb_check(sim.heap);
	}
	for (; i && before(flight, sim.heap[(i - 1) / 2]); i = (i - 1) / 2)
		sim.heap[i] = sim.heap[(i - 1) / 2];
	sim.heap[i] = flight;
}

static struct flight *heap_take(void)
{
	struct flight *first = sim.heap[0], *last = sim.heap[--sim.flights];
	unsigned i = 0, child;

	while ((child = 2 * i + 1) < sim.flights) {
		if (child + 1 < sim.flights && before(sim.heap[child + 1], sim.heap[child]))
			child++;
		if (!before(sim.heap[child], last))
			break;
		sim.heap[i] = sim.heap[child];
		i = child;
	}
	sim.heap[i] = last;
	return first;
}

/* --- sending --- */

static void show(const char *what, const struct vb_path *path, const uint8_t *mad)
{
	struct vb_cm_msg msg;

	if (!sim.trace)
		return;
	if (!vb_cm_parse(&msg, mad))
		trace("%s %u -> %u: no message", what, path->src[15], path->dst[15]);
	else
		trace("%s %u -> %u: %s %08x -> %08x tid %llx%s", what, path->src[15], path->dst[15],
		      vb_cm_attr_name(msg.attr), msg.local_comm_id, msg.remote_comm_id,
		      (unsigned long long)msg.transaction_id,
		      vb_be16_get(mad + MARK_AT) ? "" : " unmarked");
}

static void launch(const struct vb_path *path, const uint8_t *mad, uint64_t at_ns, bool forged)
{
	struct flight *flight = malloc(sizeof(*flight));

	vb_check(flight);
	*flight = (struct flight){
		.at_ns = at_ns,
		.order = sim.order++,
		.path = *path,
		.forged = forged,
	};
	memcpy(flight->mad, mad, VB_MAD_BYTES);
	heap_add(flight);
}

static uint64_t arrival_ns(void)
{
	uint64_t at_ns = sim.now_ns + 5000 + below(100000);

	if (happens(sim.weather.late))
		at_ns += below((uint32_t)(sim.weather.late_ns / 1000)) * 1000ull;
	return at_ns;
}

/* What a stranger could make of what he has seen of somebody else's. */
static void forge(const struct vb_path *path, const uint8_t *mad)
{
	static const enum vb_cm_attr attrs[] = {
		VB_CM_REP,  VB_CM_REJ,	    VB_CM_RTU, VB_CM_MRA, VB_CM_DREQ,
		VB_CM_DREP, VB_CM_SIDR_REP, VB_CM_LAP, VB_CM_APR,
	};
	struct vb_path from = *path;
	struct vb_cm_msg msg;
	uint8_t forged[VB_MAD_BYTES];

	require(vb_cm_parse(&msg, mad));
	sim.forged++;
	switch (below(5)) {
	case 0: /* all is right but the address */
		if (msg.remote_comm_id)
			msg = (struct vb_cm_msg){
				.attr = VB_CM_REJ,
				.transaction_id = msg.transaction_id,
				.local_comm_id = msg.local_comm_id,
				.remote_comm_id = msg.remote_comm_id,
				.rej.reason = VB_CM_REJ_CONSUMER_DEFINED,
			};
		from.src[15] = GID_OF_NOBODY;
		break;
	case 1: /* the transaction; who disconnects may have any, so there, the QPN */
		if (msg.attr == VB_CM_REQ || msg.attr == VB_CM_SIDR_REQ)
			return;
		msg.transaction_id ^= 1ull << below(64);
		msg.dreq.remote_qpn ^= msg.attr == VB_CM_DREQ;
		msg.lap.remote_qpn ^= msg.attr == VB_CM_LAP;
		break;
	case 2:
		msg.remote_comm_id ^= 1u << below(11);
		break;
	case 3: /* before its REP the peer may have any */
		if (msg.attr == VB_CM_REQ || msg.attr == VB_CM_REP || msg.attr == VB_CM_REJ ||
		    msg.attr == VB_CM_MRA)
			return;
		msg.local_comm_id ^= 1u << (11 + below(11)); /* none of those: it may come back */
		break;
	default: /* another message, in a transaction that is none */
		if (msg.attr == VB_CM_REQ || msg.attr == VB_CM_SIDR_REQ)
			return;
		msg = (struct vb_cm_msg){
			.attr = attrs[below(VB_ARRAY_LEN(attrs))],
			.transaction_id = vb_prng_next(&sim.rng),
			.local_comm_id = msg.local_comm_id,
			.remote_comm_id = msg.remote_comm_id,
		};
		if (msg.attr == VB_CM_DREQ)
			msg.dreq.remote_qpn = below(1 << 24);
		if (msg.attr == VB_CM_REJ)
			msg.rej.reason = (uint16_t)(chance(50) ? 4 : 10);
		break;
	}
	vb_cm_emit(&msg, forged);
	vb_cm_mark(forged);
	show("forged", &from, forged);
	launch(&from, forged, arrival_ns(), true);
}

void net_send_surely(const struct vb_path *path, const uint8_t mad[VB_MAD_BYTES])
{
	show("surely", path, mad);
	launch(path, mad, sim.now_ns + 5000, false);
}

void net_send(struct node *from, const struct vb_path *path, const uint8_t mad[VB_MAD_BYTES])
{
	struct vb_cm_msg msg;

	require(vb_cm_parse(&msg, mad));
	require(vb_cm_is_marked(mad));
	if (!sim.calm && !sim.answers_forged && happens(sim.weather.forge))
		forge(path, mad);
	if (!sim.calm && happens(sim.weather.loss)) {
		show("lost", path, mad);
		return;
	}
	show("sent", path, mad);
	launch(path, mad, arrival_ns(), false);
	if (!sim.calm && happens(sim.weather.dup))
		launch(path, mad, arrival_ns(), false);
}

/* Many REQs from somebody who does not mean it. */
void net_flood(struct node *to)
{
	const struct host *host = &sim.host[to->host];
	struct vb_path path = {.hop_limit = 64};
	uint8_t mad[VB_MAD_BYTES];

	sim.floods++;
	memcpy(path.src, host->gid[0], VB_GID_BYTES);
	memcpy(path.dst, host->gid[0], VB_GID_BYTES);
	path.src[15] = GID_OF_NOBODY;
	for (unsigned i = 0; i < FLOOD; i++) {
		struct vb_cm_msg msg = {
			.attr = VB_CM_REQ,
			.transaction_id = vb_prng_next(&sim.rng),
			.local_comm_id = (uint32_t)vb_prng_next(&sim.rng),
			.req =
				{
					.service_id = to->service_id,
					.local_ca_guid = below(4),
					.local_qpn = below(1 << 24),
					.local_cm_response_timeout = (uint8_t)below(20),
					.max_cm_retries = (uint8_t)below(4),
					.primary.local_ack_timeout = (uint8_t)below(18),
				},
		};

		vb_cm_emit(&msg, mad);
		launch(&path, mad, sim.now_ns + 1000 + i, true);
	}
}

/* --- arriving --- */

static struct host *host_of(const uint8_t gid[VB_GID_BYTES])
{
	for (unsigned i = 0; i < sim.hosts; i++) {
		for (unsigned k = 0; k < PLACES; k++) {
			if (memcmp(sim.host[i].gid[k], gid, VB_GID_BYTES) == 0)
				return &sim.host[i];
		}
	}
	return NULL;
}

static void hear(struct node *node, const void *arg)
{
	const struct flight *flight = arg;

	vb_cm_hear(&node->cm, sim.now_ns, &flight->path, flight->mad);
}

static bool is_for(const struct node *node, const struct vb_cm_target *target)
{
	switch (target->whose) {
	case VB_CM_WHOSE_SLOT:
		return node->slot == target->slot;
	case VB_CM_WHOSE_SERVICE:
		return node->service_id == target->service_id;
	case VB_CM_WHOSE_ALL:
		return true;
	case VB_CM_WHOSE_NOBODY:
		break;
	}
	return false;
}

/* The hub. Others than ours leave no marks, and see none. */
static void arrive(struct flight *flight)
{
	const struct host *to = host_of(flight->path.dst), *from = host_of(flight->path.src);
	struct vb_cm_target target;
	uint8_t answer[VB_MAD_BYTES];
	struct vb_path back;
	unsigned takers = 0;

	show("comes", &flight->path, flight->mad);
	if (!to)
		return;
	if (sim.now_ns < to->hub_back_ns) {
		launch(&flight->path, flight->mad, to->hub_back_ns, flight->forged);
		return;
	}
	if (to->foreign || (from && from->foreign))
		vb_be16_put(flight->mad + MARK_AT, 0);
	sim.answers_forged = flight->forged;
	target = vb_cm_nobody_target(flight->mad);
	for (unsigned i = 0; i < sim.nodes; i++) {
		struct node *node = &sim.node[i];

		if (&sim.host[node->host] != to || !node->alive || !is_for(node, &target))
			continue;
		takers++;
		node_does(node, hear, flight);
	}
	if (takers || !vb_cm_nobody_answers_mad(answer, flight->mad))
		return;
	vb_cm_nobody_path_back(&back, &flight->path);
	net_send(NULL, &back, answer);
}

uint64_t net_next_ns(void)
{
	return sim.flights ? sim.heap[0]->at_ns : UINT64_MAX;
}

void net_step(void)
{
	while (sim.flights && sim.heap[0]->at_ns <= sim.now_ns) {
		struct flight *flight = heap_take();

		arrive(flight);
		sim.answers_forged = false;
		free(flight);
	}
}

void net_end(void)
{
	while (sim.flights)
		free(sim.heap[--sim.flights]);
	free(sim.heap);
	sim.heap = NULL;
	sim.size = 0;
}
