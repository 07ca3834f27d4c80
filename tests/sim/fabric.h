/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_SIM_FABRIC_H
#define VB_SIM_FABRIC_H

/*
 * A network in virtual time for NICs in one thread: what one sends arrives at the others later,
 * in batches, or not at all. All that is left to chance comes from one seed.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/frame.h"

struct vb_nic;

enum { FABRIC_NICS_MAX = 4, FABRIC_GIDS = 2 };

/* Parts per million: of frames, full of bursts. */
struct fabric_faults {
	uint32_t loss, dup, reorder, corrupt, hint, full;
	uint64_t late_ns;   /* how much later a reordered frame may come */
	uint32_t queue_max; /* frames that wait for one NIC; more are lost */
};

struct fabric_flight; /* a frame on its way */

struct fabric {
	uint64_t now_ns;
	uint64_t rng;
	bool trace;
	bool disorder; /* the NICs have another order (nic/way/disorder.h) */
	struct fabric_faults faults;
	uint64_t delay_ns;
	unsigned frames_max; /* of a burst, as the NICs are told */

	unsigned nics;
	struct vb_nic *nic[FABRIC_NICS_MAX];
	uint8_t gid[FABRIC_NICS_MAX][FABRIC_GIDS][VB_GID_BYTES];
	/*
	 * Which of several NICs with the same address a frame is for, given the first of them;
	 * -1: none. NULL: no two have the same.
	 */
	int (*steer)(const struct fabric *fabric, unsigned first, const uint8_t *frame);
	void *steer_arg;
	uint32_t dead_qpn; /* what is sent to it is lost; 0: none */
	struct {
		bool on;
		uint8_t gid[2][VB_GID_BYTES];
		uint32_t qpn[2];
	} cut; /* a path between two addresses: what these QPs send by it is lost */
	bool dead[FABRIC_NICS_MAX];    /* the same of a NIC; what it sent arrives still */
	bool arrived[FABRIC_NICS_MAX]; /* something has; the caller takes it back */
	uint32_t queued[FABRIC_NICS_MAX];
	uint64_t busy_ns[FABRIC_NICS_MAX]; /* the last frame in order arrives then */

	struct fabric_flight **heap;
	unsigned count, size;
	uint64_t order;

	uint64_t sent, lost, damaged, undetectable;
};

/* faults: what happens until fabric_calm(). */
void fabric_init(struct fabric *fabric, uint64_t seed, const struct fabric_faults *faults);
void fabric_fini(struct fabric *fabric);

/* No faults from now on. */
void fabric_calm(struct fabric *fabric);

/* As vb_nic_host.tx: 0 or EAGAIN. */
int fabric_tx(struct fabric *fabric, unsigned from, const struct vb_burst *burst);

/* When something arrives next; UINT64_MAX: never. */
uint64_t fabric_next_ns(const struct fabric *fabric);

/* Let arrive what is due at now_ns. */
void fabric_step(struct fabric *fabric);

#endif
