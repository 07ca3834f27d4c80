/* SPDX-License-Identifier: BSD-2-Clause */

/* Processes with a connection manager: born, dead, buried by their hub. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cm_sim.h"

static struct node *node_of(void *arg)
{
	return arg;
}

/* The process may die wherever something is seen of it from outside. */
static void perhaps_die(struct node *node)
{
	if (node->sends_left > 0 && --node->sends_left == 0)
		longjmp(node->dying, 1);
}

static void host_send(void *arg, const struct vb_path *path, const uint8_t mad[VB_MAD_BYTES])
{
	perhaps_die(node_of(arg));
	net_send(arg, path, mad);
	perhaps_die(node_of(arg));
}

static void host_event(void *arg, struct vb_cm_id *id, const struct vb_cm_event *event)
{
	app_event(arg, id, event);
	perhaps_die(node_of(arg));
}

static void *host_alloc(void *arg, size_t bytes)
{
	struct node *node = arg;
	void *memory;

	if (!sim.calm && chance(1))
		return NULL;
	require(node->blocks < BLOCKS_MAX);
	memory = calloc(1, bytes);
	vb_check(memory);
	node->block[node->blocks++] = memory;
	return memory;
}

static void host_release(void *arg, void *memory)
{
	struct node *node = arg;
	unsigned i = 0;

	while (i < node->blocks && node->block[i] != memory)
		i++;
	require(i < node->blocks);
	node->block[i] = node->block[--node->blocks];
	free(memory);
}

static struct vb_cm_record *host_lend(void *arg)
{
	struct node *node = arg;

	for (unsigned i = 0; i < RECORDS_MAX; i++) {
		if (!node->lent[i]) {
			node->lent[i] = true;
			node->record[i] = (struct vb_cm_record){0};
			return &node->record[i];
		}
	}
	return NULL;
}

static void host_take_back(void *arg, struct vb_cm_record *record)
{
	struct node *node = arg;

	require(record->state == VB_CM_STATE_IDLE);
	require(node->lent[record - node->record]);
	node->lent[record - node->record] = false;
}

void node_birth(struct node *node)
{
	const struct vb_cm_settings settings = {
		.guid = sim.host[node->host].guid,
		.slot = node->slot,
		.secret = {vb_prng_next(&sim.rng), vb_prng_next(&sim.rng)},
	};
	const struct vb_cm_host host = {
		.arg = node,
		.send = host_send,
		.event = host_event,
		.alloc = host_alloc,
		.release = host_release,
		.lend = host_lend,
		.take_back = host_take_back,
	};

	trace("node %u is born", node->index);
	node->life++;
	node->alive = true;
	node->born_ns = UINT64_MAX;
	node->app_ns = sim.now_ns + below(1000000);
	node->sends_left = !sim.calm && chance(30) ? 1 + (int)below(100) : -1;
	node->backlog = 1 + below(BACKLOG_MAX);
	vb_cm_init(&node->cm, &settings, &host);
	do {
		node->listener = vb_cm_id_make(&node->cm, NULL);
	} while (!node->listener);
	require(vb_cm_id_listen(node->listener, node->service_id, node->backlog) == 0);
}

static void bury(struct node *node)
{
	struct vb_path path;
	uint8_t mad[VB_MAD_BYTES];

	for (unsigned i = 0; i < RECORDS_MAX; i++) {
		if (!node->lent[i] || !vb_cm_record_close(&node->record[i], &path, mad))
			continue;
		if (sim.stern)
			net_send_surely(&path, mad);
		else
			net_send(node, &path, mad);
	}
	memset(node->lent, 0, sizeof(node->lent));
}

static void leave_unburied(struct node *node)
{
	for (unsigned i = 0; i < sim.conns; i++) {
		if (sim.conn[i].node == node && sim.conn[i].life == node->life)
			sim.conn[i].unburied = true;
	}
	memset(node->lent, 0, sizeof(node->lent));
}

static void die(struct node *node, bool with_peer)
{
	trace("node %u dies", node->index);
	sim.deaths++;
	death_note(node, with_peer);
	node->alive = false;
	node->listener = NULL;
	app_dies(node);
	while (node->blocks)
		free(node->block[--node->blocks]);
	if (death_is_hubless(node))
		leave_unburied(node);
	else
		bury(node);
	node->born_ns = chance(70) ? sim.now_ns + below(3000) * SIM_MS : UINT64_MAX;
}

void node_death(struct node *node)
{
	struct node *twin = death_twin(node);

	if (twin)
		die(twin, true);
	die(node, twin);
}

void node_does(struct node *node, void (*what)(struct node *, const void *), const void *arg)
{
	if (setjmp(node->dying))
		node_death(node);
	else
		what(node, arg);
}

void node_end(struct node *node)
{
	const struct vb_cm *cm = &node->cm;

	if (!node->alive) {
		require(!node->blocks);
		return;
	}
	require(cm->ids_count == 0 && cm->lingering_count == 0);
	require(cm->clocks.count == 0);
	require(cm->by_local.count == 0 && cm->by_remote.count == 0);
	require(cm->by_qpn.count == 0 && cm->by_service.count == 0);
	for (unsigned i = 0; i < RECORDS_MAX; i++)
		require(!node->lent[i]);
	vb_cm_fini(&node->cm);
	require(node->blocks == 0);
}

static void turn(struct node *node, const void *arg)
{
	(void)arg;
	vb_cm_turn(&node->cm, sim.now_ns);
	require(vb_cm_deadline_ns(&node->cm) > sim.now_ns);
}

uint64_t node_next_ns(const struct node *node)
{
	if (!node->alive)
		return node->born_ns;
	return vb_min_u64(vb_cm_deadline_ns(&node->cm), app_next_ns(node));
}

void node_step(struct node *node)
{
	if (!node->alive) {
		if (node->born_ns <= sim.now_ns)
			node_birth(node);
		return;
	}
	if (vb_cm_deadline_ns(&node->cm) <= sim.now_ns)
		node_does(node, turn, NULL);
	if (node->alive)
		app_step(node);
}
