/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_NIC_NIC_H
#define VB_NIC_NIC_H

/*
 * The NIC: objects, queues and memory of one process, deterministic. Frames come in by vb_nic_rx()
 * and leave by the host's wire; time is what its clock says (nic_host.h). There are locks here but
 * no system calls: the host does what needs the kernel (waking, descriptors, leases).
 *
 * Every object begins with the libibverbs structure of the same name, so the pointer that the
 * application holds is the object. `abi` fills in function tables, mutexes and condition variables
 * of that structure; the rest is set here.
 *
 * Functions return 0 or a positive errno unless stated otherwise; on failure nothing has changed.
 * Any thread may call any function on any object that is not being destroyed.
 *
 * base/lock_rank.def states the order of the locks.
 */

#include <infiniband/verbs.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/frame.h"
#include "base/lent.h"
#include "base/lock.h"
#include "base/path.h"
#include "nic/core/limits.h"
#include "nic/core/nic_host.h"
#include "nic/core/persona.h"
#include "nic/core/stats.h"

struct vb_nic;
struct vb_qp;

/* An entry of the GID table. All zero: empty. */
struct vb_gid_entry {
	uint8_t gid[VB_GID_BYTES];
	uint32_t ifindex;
	uint32_t mtu_bytes; /* of the interface */
	bool loopback;
	bool no_carrier; /* the interface is up, but cannot send */
};

/* seed: without it, keys cannot be guessed; a given one makes everything repeatable. */
int vb_nic_create(struct vb_nic **nic, const struct vb_nic_host *host, uint64_t seed);

/*
 * The process ends, perhaps without destroying its QPs: sends what is owed, and lets peers know
 * that it leaves by itself. Never waits for a lock.
 */
void vb_nic_farewell(struct vb_nic *nic);

/* Only when all contexts are closed. */
void vb_nic_destroy(struct vb_nic *nic);

/*
 * Replaces the GID table (count at most VB_GIDS_MAX). Indices in use must keep their meaning. The
 * port is up while an entry has a carrier. Contexts get events for changes: GID_CHANGE,
 * PORT_ACTIVE, PORT_ERR.
 */
void vb_nic_gids_set(struct vb_nic *nic, const struct vb_gid_entry *entries, unsigned count);

/* Copies an entry; EINVAL if index >= VB_GIDS_MAX. An empty entry is all zero. */
int vb_nic_gid_get(struct vb_nic *nic, unsigned index, struct vb_gid_entry *entry);

/* Sets node_guid and sys_image_guid: big-endian, derived from a MAC by the host. */
void vb_nic_guid_set(struct vb_nic *nic, uint64_t guid_be);

/* Before the first query. Neutral by default. */
void vb_nic_persona_set(struct vb_nic *nic, const struct vb_persona *persona);
const struct vb_persona *vb_nic_persona(const struct vb_nic *nic);

/*
 * The size of the link's receive buffer. The peer's is assumed to be similar, which bounds what may
 * be in flight to it. VB_RX_BUFFER_BYTES by default.
 */
void vb_nic_rx_buffer_set(struct vb_nic *nic, uint32_t bytes);

/*
 * ibv_query_device(3), ibv_query_device_ex(3), ibv_query_port(3): truthful. The device's attributes
 * never change, and querying them takes no lock.
 */
void vb_nic_query_device(struct vb_nic *nic, struct ibv_device_attr *attr);
void vb_nic_query_device_ex(struct vb_nic *nic, struct ibv_device_attr_ex *attr);
int vb_nic_query_port(struct vb_nic *nic, unsigned port, struct ibv_port_attr *attr);

/* The device's clock for completion timestamps; EOPNOTSUPP: none. */
int vb_nic_query_clock(struct vb_nic *nic, uint64_t *raw_ns);

/* The same, and the time of day at that moment, since 1970. */
VB_LENT int vb_nic_query_times(struct vb_nic *nic, uint64_t *raw_ns, uint64_t *wall_ns);

/*
 * Takes in frames addressed to slots of this NIC and sends what follows: acknowledgements, READ
 * responses, further requests. One thread at a time (the rx right). Returns the time when it began.
 */
uint64_t vb_nic_rx(struct vb_nic *nic, const struct vb_frame *frames, unsigned count);

/*
 * The same in a thread of the application that polls and so probably answers at once: an ACK may
 * wait for that until the NIC's deadline (vb_nic_deadline_ns), which moves forward for it.
 */
uint64_t vb_nic_rx_polled(struct vb_nic *nic, const struct vb_frame *frames, unsigned count);

/* The rx right: take it before vb_nic_rx(). Destroying a QP takes it for a moment, too. */
bool vb_nic_rx_try(struct vb_nic *nic);
void vb_nic_rx_drop(struct vb_nic *nic);

/* Does what is due (retransmissions, waits after RNR ...). Any thread. */
void vb_nic_turn(struct vb_nic *nic);

/* When to call vb_nic_turn() next: ns as now_ns(), UINT64_MAX: never. No lock. */
uint64_t vb_nic_deadline_ns(const struct vb_nic *nic);

struct vb_stats *vb_nic_stats(struct vb_nic *nic);

/*
 * The device fails for good: every QP goes to the error state, so that outstanding work completes,
 * and contexts get IBV_EVENT_DEVICE_FATAL. Completions can be polled and objects destroyed. Callers
 * of anything else ask has_failed first, and return EIO. Any thread.
 */
void vb_nic_fail(struct vb_nic *nic);
VB_LENT bool vb_nic_has_failed(const struct vb_nic *nic);

#endif
