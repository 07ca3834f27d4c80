/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_SIM_NODES_H
#define VB_SIM_NODES_H

/* The nodes of sim_dc and sim_srd: a NIC each, with what their QPs are made of and write to. */

#include <stdbool.h>

struct node;

/* The fabric, and how many there are, on which hosts. True: by IPv4. */
bool nodes_begin(void);
void nodes_make(bool ipv4);

/* To each node, when all are made. */
void node_ahs_make(struct node *node);

/* Its QPs are gone. */
void node_unmake(struct node *node);
void nodes_end(void);

#endif
