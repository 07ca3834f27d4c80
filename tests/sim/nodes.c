/* SPDX-License-Identifier: BSD-2-Clause */

/* Compiled for each world (meson.build). */
#include "nodes.h"

#include SIM_WORLD

#include "idle_host.h"
#include "nic/control/nic.h"

struct area area[FABRIC_NICS_MAX];
struct sim sim;

/* As the program that steers datagrams does (link/udp_socket.c). */
static int steer(const struct fabric *fabric, unsigned first, const uint8_t *frame)
{
	unsigned slot = (frame[5] << 8 | frame[6]) >> 6;

	for (unsigned i = 0; i < sim.fabric.nics; i++) {
		if (sim.node[i].slot == slot && (sim.one_host || i == first))
			return (int)i;
	}
	return -1;
}

bool nodes_begin(void)
{
	struct fabric_faults faults;
	bool ipv4;

	faults_draw(&faults, &ipv4);
	fabric_init(&sim.fabric, vb_prng_next(&sim.rng), &faults);
	sim.fabric.trace = sim.trace;
	sim.fabric.steer = steer;
	sim.nodes = 2 + below(FABRIC_NICS_MAX - 1);
	sim.one_host = chance(50);
	rings_begin();
	return ipv4;
}

static void node_make(unsigned index, bool ipv4)
{
	static const struct vb_gid_entry pattern[2] = {
		{ .gid = { 0xfd }, .ifindex = 1, .mtu_bytes = 5000 },
		{ .gid = { [10] = 0xff, 0xff, 10, 0, 0, 0 }, .ifindex = 1, .mtu_bytes = 5000 },
	};
	struct node *node = &sim.node[index];
	struct vb_nic_host host = idle_host(node);
	struct vb_gid_entry entry = pattern[ipv4];

	turns_host(&host);
	host.peers = &rings_host;
	node->index = index;
	entry.gid[15] = (uint8_t)(sim.one_host ? 1 : 1 + index);
	require(vb_nic_create(&node->nic, &host, vb_prng_next(&sim.rng)) == 0);
	sim.fabric.nic[sim.fabric.nics++] = node->nic;
	memcpy(sim.fabric.gid[index][0], entry.gid, VB_GID_BYTES);
	memset(sim.fabric.gid[index][1], 0xee, VB_GID_BYTES);
	vb_nic_gids_set(node->nic, &entry, 1);
	require(vb_ctx_create(node->nic, 0, &node->ctx) == 0);
	require(vb_pd_create(node->ctx, &node->pd) == 0);
	require(vb_cq_create(node->ctx, 4 * OPS, NULL, 0, NULL, &node->cq) == 0);
	require(vb_cq_create(node->ctx, 4 * OPS, NULL, 0, NULL, &node->recv_cq) == 0);
	memset(&area[index], 0, sizeof(area[index]));
	fill(area[index].pattern, PATTERN_BYTES, index);
	require(vb_mr_reg(node->pd, &area[index], sizeof(area[index]), (uintptr_t)&area[index],
			  ACCESS, &node->mr) == 0);
}

void nodes_make(bool ipv4)
{
	for (unsigned i = 0; i < sim.nodes; i++)
		node_make(i, ipv4);
}

void node_ahs_make(struct node *node)
{
	struct ibv_ah_attr attr = { .is_global = 1, .port_num = 1, .grh = { .hop_limit = 64 } };

	for (unsigned i = 0; i < sim.nodes; i++) {
		memcpy(attr.grh.dgid.raw, sim.fabric.gid[i][0], VB_GID_BYTES);
		require(vb_ah_create(node->pd, &attr, &node->ah[i]) == 0);
	}
}

void node_unmake(struct node *node)
{
	require(vb_cq_destroy(node->cq) == 0);
	vb_cq_free(node->cq);
	require(vb_cq_destroy(node->recv_cq) == 0);
	vb_cq_free(node->recv_cq);
	require(vb_mr_dereg(node->mr) == 0);
	for (unsigned k = 0; k < sim.nodes; k++)
		vb_ah_destroy(node->ah[k]);
	require(vb_pd_destroy(node->pd) == 0);
	vb_ctx_destroy(node->ctx);
	vb_nic_destroy(node->nic);
}

void nodes_end(void)
{
	fabric_fini(&sim.fabric);
	rings_end();
}
