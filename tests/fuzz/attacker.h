/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_TESTS_ATTACKER_H
#define VB_TESTS_ATTACKER_H

/*
 * A peer that connects as it should, and then writes anything into the memory that it shares with
 * others, while a thread of it goes on as an honest peer would. Words for BUT=:
 *
 *	ring	slots, marks, positions and data of the rings of both directions, and whole frames
 *		with forged headers, among them numbers and keys that the other's export tells
 *	export	its own export: state, QPs, keys, and whose memory that would be
 *	bell	floods of the other's bell and of lines; hangup: those are shut down
 *	memory	its registered memory is taken away
 *	die	ends by itself at any time, one way or another
 */

#include <infiniband/verbs.h>

enum { ATTACKER_ENDS = 4, ATTACKER_UD = 3, ATTACKER_FAILED = 2 };

/* Of the connections to it, in this order. */
static const enum ibv_qp_type attacker_types[ATTACKER_ENDS] = {IBV_QPT_RC, IBV_QPT_RC, IBV_QPT_UC,
							       IBV_QPT_UD};

/* As a process of its own, which meets its victim at DUET_FD. */
int attacker_run(char **arguments);

#endif
