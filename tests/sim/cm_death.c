/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Who dies where: client, server, both at once, a process together with its hub, and a hub alone.
 * The hub that comes next takes in what has waited for it; but who died without a hub has nobody
 * to part for it.
 */

#include <stdio.h>

#include "cm_sim.h"

enum { HUB_AWAY_MS = 100, DIES_WITH_IT = 10 /* percent */ };

enum who { CLIENT, SERVER, BOTH, WITH_ITS_HUB, HUB, WHOS };

static const char *const who_names[WHOS] = {
	[CLIENT] = "client",
	[SERVER] = "server",
	[BOTH] = "both",
	[WITH_ITS_HUB] = "with its hub",
	[HUB] = "hub",
};

static unsigned long long deaths[WHOS][VB_CM_STATES];

/* Which side is ever in which state, with an application that has it. */
static const struct {
	bool client, server;
} sides[VB_CM_STATES] = {
	[VB_CM_STATE_LISTEN] = {.server = true},
	[VB_CM_STATE_REQ_SENT] = {.client = true},
	[VB_CM_STATE_REQ_MRA_RCVD] = {.client = true},
	[VB_CM_STATE_REQ_RCVD] = {.server = true},
	[VB_CM_STATE_REQ_MRA_SENT] = {.server = true},
	[VB_CM_STATE_REP_SENT] = {.server = true},
	[VB_CM_STATE_REP_MRA_RCVD] = {.server = true},
	[VB_CM_STATE_REP_RCVD] = {.client = true},
	[VB_CM_STATE_REP_MRA_SENT] = {.client = true},
	[VB_CM_STATE_ESTABLISHED] = {.client = true, .server = true},
	[VB_CM_STATE_DREQ_SENT] = {.client = true, .server = true},
	[VB_CM_STATE_DREQ_RCVD] = {.client = true, .server = true},
	[VB_CM_STATE_TIMEWAIT] = {.client = true, .server = true},
	[VB_CM_STATE_REFUSED] = {.client = true, .server = true},
	[VB_CM_STATE_SIDR_REQ_SENT] = {.client = true},
	[VB_CM_STATE_SIDR_REQ_RCVD] = {.server = true},
	[VB_CM_STATE_SIDR_REP_SENT] = {.server = true},
};

bool death_is_hubless(const struct node *node)
{
	return sim.now_ns < sim.host[node->host].hub_back_ns;
}

static void note(const struct node *node, enum who who)
{
	for (unsigned i = 0; i < sim.conns; i++) {
		const struct conn *conn = &sim.conn[i];

		if (conn->node != node || !conn->id)
			continue;
		deaths[who == CLIENT && !conn->is_active ? SERVER : who][conn->id->state]++;
	}
	if (node->listener)
		deaths[who == CLIENT ? SERVER : who][VB_CM_STATE_LISTEN]++;
}

void death_note(const struct node *node, bool with_peer)
{
	note(node, death_is_hubless(node) ? WITH_ITS_HUB : with_peer ? BOTH : CLIENT);
}

struct node *death_twin(const struct node *node)
{
	if (!chance(25))
		return NULL;
	for (unsigned i = 0; i < sim.conns; i++) {
		const struct conn *conn = &sim.conn[i], *peer = conn->peer;

		if (conn->node == node && conn->id && peer && peer->id && peer->node != node)
			return peer->node;
	}
	return NULL;
}

/* --- hubs --- */

static uint64_t *hub_dies_ns(struct host *host)
{
	if (!host->hub_dies_ns)
		host->hub_dies_ns = sim.now_ns + below(20000) * SIM_MS + 1;
	return &host->hub_dies_ns;
}

uint64_t death_next_ns(void)
{
	uint64_t next = UINT64_MAX;

	for (unsigned i = 0; !sim.calm && i < sim.hosts; i++)
		next = vb_min_u64(next, *hub_dies_ns(&sim.host[i]));
	return next;
}

static void hub_death(struct host *host, unsigned index)
{
	trace("the hub of host %u dies", index);
	host->hub_back_ns = sim.now_ns + (1 + below(HUB_AWAY_MS)) * SIM_MS;
	host->hub_dies_ns = 0;
	for (unsigned i = 0; i < sim.nodes; i++) {
		struct node *node = &sim.node[i];

		if (!node->alive || node->host != index)
			continue;
		if (chance(DIES_WITH_IT))
			node_death(node);
		else
			note(node, HUB);
	}
}

void death_step(void)
{
	for (unsigned i = 0; !sim.calm && i < sim.hosts; i++) {
		if (*hub_dies_ns(&sim.host[i]) <= sim.now_ns)
			hub_death(&sim.host[i], i);
	}
}

/* --- were they all seen? --- */

static bool may_be(enum who who, unsigned state)
{
	if (who == CLIENT)
		return sides[state].client;
	if (who == SERVER)
		return sides[state].server;
	return sides[state].client || sides[state].server;
}

bool death_seen_all(void)
{
	bool all = true;

	for (unsigned who = 0; who < WHOS; who++) {
		for (unsigned state = 0; state < VB_CM_STATES; state++) {
			if (!may_be(who, state) || deaths[who][state])
				continue;
			printf("no death of '%s' while: %s\n", who_names[who],
			       vb_cm_state_name(state));
			all = false;
		}
	}
	return all;
}

void death_print(void)
{
	printf("%32s", "deaths by state:");
	for (unsigned who = 0; who < WHOS; who++)
		printf(" %12s", who_names[who]);
	for (unsigned state = 0; state < VB_CM_STATES; state++) {
		printf("\n%32s", vb_cm_state_name(state));
		for (unsigned who = 0; who < WHOS; who++) {
			if (may_be(who, state))
				printf(" %12llu", deaths[who][state]);
			else
				printf(" %12s", "-");
		}
	}
	printf("\n");
}
