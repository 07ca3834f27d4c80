/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_DAEMON_MADS_H
#define VB_DAEMON_MADS_H

/*
 * MADs of communication management: what is sent to QP 1 comes to the hub's own slot, and the hub
 * knows which process it is for. A request to connect goes to whoever listens, and so does its
 * repetition; what answers goes to the slot that the receiver's comm id has in its highest bits.
 * What is for nobody is answered as cm/nobody.h has it, and a request to one who has died since as
 * he would have been made to.
 *
 * Pure but for what struct vb_mads_host does.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/path.h"
#include "daemon/ports.h"

enum { VB_MADS_REQUESTS = 16384 }; /* the last ones, of which is known whom they were for */

struct vb_mads_host {
	/* Give a frame to the process that holds the slot. False: there is none. */
	bool (*give)(void *arg, uint32_t slot, const struct vb_path *path, const uint8_t *frame);
	/* Does the process wait for room for frames that it was given before? */
	bool (*is_behind)(void *arg, uint32_t slot);
	/* May somebody listen of whom is not known yet? */
	bool (*is_heir)(void *arg);
	/* Send a frame to where path leads. */
	void (*send)(void *arg, const struct vb_path *path, const uint8_t *frame);
	void *arg;
};

/* A request that was given to somebody: its repetition goes there, too. */
struct vb_mads_request {
	uint8_t src[VB_GID_BYTES];
	uint64_t transaction_id; /* another one: the id is used anew, perhaps by another process */
	uint32_t comm_id, slot;	 /* slot 0: none */
};

struct vb_mads {
	struct vb_mads_host host;
	struct vb_ports *ports;
	struct vb_mads_request request[VB_MADS_REQUESTS];
	uint64_t given, answered, dropped;
};

/* A frame that came to QP 1 by that path, its ICRC being right. False: it is no such MAD. */
bool vb_mads_take(struct vb_mads *mads, const struct vb_path *path, const uint8_t *frame,
		  uint32_t bytes);

#endif
