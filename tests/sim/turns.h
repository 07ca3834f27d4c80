/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_TESTS_SIM_TURNS_H
#define VB_TESTS_SIM_TURNS_H

/* What goes wrong, and how time passes, where nodes have a NIC each: sim_xrc, sim_dc, sim_srd. */

#include <stdbool.h>
#include <stdint.h>

#include "nic/core/nic_host.h"

struct fabric_faults;
struct node;

/* What a world does in a turn. */
struct turns {
	void (*happen)(void); /* ends, and other changes, that are due */
	void (*work)(struct node *node);
	void (*poll)(struct node *node); /* ... which work() does, too */
	bool (*are_done)(void); /* all requests */
};

/*
 * Until all is done and nothing is under way; after 100 ms the world is calm. Then all is polled
 * so many times.
 */
void turns_take(const struct turns *turns, unsigned polls);

/* Whether addresses are IPv4, and what goes wrong on the fabric. False: nothing does. */
bool faults_draw(struct fabric_faults *faults, bool *ipv4);

/* The clock, the wire and the slot of a node's NIC: host->arg is the node. */
void turns_host(struct vb_nic_host *host);

#endif
