/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_LINK_AROUND_NET_PARSE_H
#define VB_LINK_AROUND_NET_PARSE_H

/*
 * The text of a setting for a modelled network (net.h), as a list of parts (parts.h):
 *
 *	rate=R		of each host's port, both ways: 8kbit to 1000Gbit
 *	delay=T		from one port to another, at most 10s
 *	jitter=T	up to so much more, drawn for each frame; the order stays
 *	queue=N		octets that may wait at a port; more are lost
 *	ecn=N		octets from which on those that wait are marked
 *	name=NAME	processes with the same name share the ports
 *	seed=N		of jitter and marks
 *
 * such as "rate=10Gbit,delay=2us,queue=256KiB,ecn=64KiB".
 */

#include <stdbool.h>
#include <stdint.h>

#include "link/around/parts.h"

struct vb_net {
	uint64_t rate; /* bit/s; 0: no limit */
	uint64_t delay_ns, jitter_ns;
	uint64_t queue_bytes; /* 1 ms at that rate and at least 64 KiB, if it is not given */
	uint64_t ecn_bytes;
	uint64_t seed;
	bool ecn; /* ecn is given: senders say that they heed marks, and do */
	char name[VB_PARTS_NAME_BYTES]; /* "": the default one */
};

/*
 * Returns 0, or EINVAL with *net untouched. `why` says on one line what is wrong and what is valid;
 * it is empty after success.
 */
int vb_net_parse(struct vb_net *net, const char *text, char why[VB_PARTS_WHY_BYTES]);

#endif
