/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_RUN_FAULTS_H
#define VB_RUN_FAULTS_H

/*
 * Carries out a fault script (script/rule.h). Nothing of it exists unless there is a script, and no
 * hot path asks whether there is one. With one, no packet goes straight from the NIC to its link or
 * ring, or back:
 *
 *   NIC -- private rings -- this -- the peer's rings        rings.c
 *   NIC -- this, as a link -- the link                      link.c
 *
 * Both are a flow (flow.c): what comes out of one side is judged, and goes into the other side in
 * order. All of it is done by the thread that has the rx right, in the rx of the first port's link:
 * so a packet waits until somebody looks, VB_FAULTS_TICK_NS at most. What cannot be done with that
 * right is left for the progress thread (vb_faults_turn).
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/path.h"
#include "script/parse.h"
#include "wire/mad.h"

struct vb_faults;
struct vb_nic;

#define VB_FAULTS_TICK_NS 50000u

/* What the device does for it; arg is its own. */
struct vb_faults_host {
	void *arg;
	/* There is something for vb_faults_turn(). With the rx right. */
	void (*wake)(void *arg);
	/* Frames wait that the link is to send. Any thread, under any lock of the NIC's. */
	void (*kick)(void *arg);
	/* Sends to QP 1. With the rx right. */
	void (*mad_send)(void *arg, const struct vb_path *path, const uint8_t mad[VB_MAD_BYTES]);
	/* From vb_faults_turn(): show the GIDs as they are now; let the device fail. */
	void (*gids_show)(void *arg);
	void (*device_fail)(void *arg);
};

/*
 * Reads the file of a script. Returns 0, or an errno with the reason in `why`: EINVAL as
 * vb_script_parse(), another one if it cannot be read.
 */
int vb_faults_read(struct vb_script *script, const char *path, char why[VB_SCRIPT_WHY_BYTES]);

/* path: of a script. 0 or ENOMEM; what vb_faults_read() returns. */
int vb_faults_open(struct vb_faults **faults, const char *path, const struct vb_faults_host *host);

/* Time begins, for rules about it. Before packets come. */
void vb_faults_begin(struct vb_faults *faults, struct vb_nic *nic);

/* After the NIC and the links are destroyed. NULL: nothing happens, here and below. */
void vb_faults_close(struct vb_faults *faults);

/*
 * A peer or we are about to go: moves what is under way. comes: and has the NIC take in what has
 * come. No lock held; waits for none.
 */
void vb_faults_flush(struct vb_faults *faults, bool comes);

/* Does what has to be done without a lock. One thread. */
void vb_faults_turn(struct vb_faults *faults);

/* Logs how often rules fired. */
void vb_faults_log(const struct vb_faults *faults);

#endif
