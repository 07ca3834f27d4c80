/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_RUN_CM_H
#define VB_RUN_CM_H

/*
 * The connection manager of the device: where src/cm meets the device's link, its clock and the
 * hub. It is there once somebody asks for it, and goes with the device.
 *
 * All of src/cm is called with the connection manager's lock held, and so is what it tells. Who has
 * the lock waits for nothing.
 */

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/lent.h"
#include "base/lock.h"
#include "cm/cm.h"
#include "cm/records.h"
#include "hub/proto.h"

struct vb_device;
struct vb_frame;

/* Who uses it: one for each process. */
struct vb_cm_user {
	/* As in struct vb_cm_host. */
	void (*event)(struct vb_cm_id *id, const struct vb_cm_event *event);
	unsigned (*fit)(const struct vb_cm_id *listener, const struct vb_path *path,
			const struct vb_cm_msg *msg);
	/* The device has failed: nothing comes any more. Locked. */
	void (*fail)(void);
};

struct vb_cm_device {
	vb_lock lock;
	_Atomic bool begun;
	_Atomic uint64_t deadline_ns; /* of cm */
	const struct vb_cm_user *user;
	struct vb_cm cm;
	int records_fd; /* -1: none */
	_Atomic unsigned heard; /* MADs that have come since somebody asked */
	struct vb_cm_lender lender;
};

/* With the device. */
void vb_cm_device_open(struct vb_device *dev);
void vb_cm_device_close(struct vb_device *dev);

/* In a forked child: the lock may have been held. */
void vb_cm_device_forget(struct vb_device *dev);

/* Asks for the connection manager, any number of times with the same user. */
VB_LENT void vb_cm_begin(struct vb_device *dev, const struct vb_cm_user *user);

/* Its lock. Unlocking has what is due done in time. Any thread. */
VB_LENT struct vb_cm *vb_cm_lock(struct vb_device *dev);
VB_LENT void vb_cm_unlock(struct vb_device *dev);

/*
 * Ports: as vb_hub_client_bind() and vb_hub_client_unbind(), for the device's slot. Not with the
 * lock held.
 */
VB_LENT int vb_cm_bind(struct vb_device *dev, struct vb_hub_bind *bind);
VB_LENT void vb_cm_unbind(struct vb_device *dev, const struct vb_hub_bind *bind);

/* min_rnr_timer of connections' QPs (VERBATIM_CM_RNR_TIMER). */
VB_LENT uint8_t vb_cm_rnr_timer(const struct vb_device *dev);

/* So many events more than before are to be acknowledged, for status. Any thread. */
VB_LENT void vb_cm_unacked_add(struct vb_device *dev, int change);

/*
 * Events of connections: signals a channel's descriptor, and says which of `count` that may come
 * next does. With another order (docs/order.md) it is signalled late, and that is drawn; else at
 * once, and the first. Any thread; locked or not.
 */
VB_LENT void vb_cm_event_signal(struct vb_device *dev, int fd);
VB_LENT unsigned vb_cm_event_choose(struct vb_device *dev, unsigned count);

/* The index of an address of ours in the device's table, or VB_GIDS_MAX. Not with the lock held. */
VB_LENT unsigned vb_cm_gid_index(struct vb_device *dev, const uint8_t gid[VB_GID_BYTES]);

/* As the functions of src/cm want it. */
VB_LENT uint64_t vb_cm_now_ns(void);

/* --- for the progress thread, and polls --- */

static inline uint64_t vb_cm_device_deadline_ns(const struct vb_cm_device *cm)
{
	return atomic_load(&cm->deadline_ns);
}

/* How many MADs have come since the last call. */
static inline unsigned vb_cm_device_heard(struct vb_cm_device *cm)
{
	/* Usually none has. */
	if (!atomic_load_explicit(&cm->heard, memory_order_relaxed))
		return 0;
	return atomic_exchange_explicit(&cm->heard, 0, memory_order_relaxed);
}

/* Does what is due. */
void vb_cm_device_turn(struct vb_device *dev);

/* The device fails. */
void vb_cm_device_fail(struct vb_device *dev);

/* Logs the counters that are not 0. */
void vb_cm_device_log(const struct vb_device *dev);

/* Sends to QP 1 what no id of ours says. arg: the struct vb_device. With the rx right at most. */
void vb_cm_mad_send(void *arg, const struct vb_path *path, const uint8_t mad[VB_MAD_BYTES]);

/* What the hub hands out; arg is the struct vb_device. */
void vb_cm_mad_came(void *arg, const struct vb_hub_mad *mad);

/* What comes to QP 1 (nic_host.h). */
struct vb_host_gsi;
extern const struct vb_host_gsi vb_cm_gsi_host;

#endif
