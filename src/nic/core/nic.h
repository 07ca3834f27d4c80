/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_NIC_NIC_H
#define VB_NIC_NIC_H

/*
 * The NIC: objects, queues and memory of one process, deterministic. Frames come in by
 * vb_nic_rx(), leave by the host's wire, time is what its clock says (nic_host.h). There are locks
 * here, but no system calls: what needs the kernel (waking, descriptors, leases) is the host's.
 *
 * Every object begins with the libibverbs structure of the same name, so the pointer that the
 * application holds is the object; `abi` fills in function tables, mutexes and condition
 * variables, everything else in that structure is set here.
 *
 * Functions return 0 or a positive errno, unless they say otherwise; on failure nothing has
 * changed. Any thread may call any function on any object that is not being destroyed.
 *
 * The order of the locks stands in base/lock_rank.def.
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

/* One entry of the GID table. All zero: an empty entry. */
struct vb_gid_entry {
	uint8_t gid[VB_GID_BYTES];
	uint32_t ifindex;
	uint32_t mtu_bytes; /* of the interface */
	bool loopback;
	bool no_carrier; /* the interface is up, but nothing leaves it */
};

/* seed: whoever does not know it can guess no key; a given one makes everything repeatable. */
int vb_nic_create(struct vb_nic **nic, const struct vb_nic_host *host, uint64_t seed);

/*
 * The process ends, perhaps without destroying its QPs: let nothing be owed, and let peers know
 * that it leaves by itself. Never waits for a lock.
 */
void vb_nic_farewell(struct vb_nic *nic);

/* Only with all contexts closed. */
void vb_nic_destroy(struct vb_nic *nic);

/*
 * Replace the GID table (count at most VB_GIDS_MAX). Indices in use must keep their meaning. The
 * port is up as long as there is an entry with a carrier. Contexts are told of what has changed:
 * GID_CHANGE, PORT_ACTIVE, PORT_ERR.
 */
void vb_nic_gids_set(struct vb_nic *nic, const struct vb_gid_entry *entries, unsigned count);

/* A copy of one entry; EINVAL if index >= VB_GIDS_MAX. An empty entry is returned as zeros. */
int vb_nic_gid_get(struct vb_nic *nic, unsigned index, struct vb_gid_entry *entry);

/* node_guid and sys_image_guid are the host's business: big-endian, derived from a MAC. */
void vb_nic_guid_set(struct vb_nic *nic, uint64_t guid_be);

/* Before anybody asks what the device is; unless told, it is neutral. */
void vb_nic_persona_set(struct vb_nic *nic, const struct vb_persona *persona);
const struct vb_persona *vb_nic_persona(const struct vb_nic *nic);

/*
 * The size of the link's receive buffer, which a peer's is taken to resemble: what may be on its
 * way to a peer goes by it. Unless told, VB_RX_BUFFER_BYTES.
 */
void vb_nic_rx_buffer_set(struct vb_nic *nic, uint32_t bytes);

/*
 * ibv_query_device(3), ibv_query_device_ex(3), ibv_query_port(3): truthful. What is said of the
 * device never changes, and no lock is taken for it.
 */
void vb_nic_query_device(struct vb_nic *nic, struct ibv_device_attr *attr);
void vb_nic_query_device_ex(struct vb_nic *nic, struct ibv_device_attr_ex *attr);
int vb_nic_query_port(struct vb_nic *nic, unsigned port, struct ibv_port_attr *attr);

/* The device's own clock, by which completions are stamped; EOPNOTSUPP: it has none. */
int vb_nic_query_clock(struct vb_nic *nic, uint64_t *raw_ns);

/* The same, and the time of day at that moment, since 1970. */
VB_LENT int vb_nic_query_times(struct vb_nic *nic, uint64_t *raw_ns, uint64_t *wall_ns);

/*
 * Take in frames that were addressed to slots of this NIC. One thread at a time (the rx right).
 * Answers them as well: acknowledgements, read responses, further requests. Returns what time it
 * was when it began.
 */
uint64_t vb_nic_rx(struct vb_nic *nic, const struct vb_frame *frames, unsigned count);

/*
 * The same by an application's thread that polls, and is likely to answer at once: an ACK may wait
 * for that until the NIC's deadline (vb_nic_deadline_ns), which moves forward for it.
 */
uint64_t vb_nic_rx_polled(struct vb_nic *nic, const struct vb_frame *frames, unsigned count);

/* The rx right: take it before vb_nic_rx(); destroying a QP takes it for a moment too. */
bool vb_nic_rx_try(struct vb_nic *nic);
void vb_nic_rx_drop(struct vb_nic *nic);

/* Do what time demands (retransmit, resend after RNR ...). Any thread. */
void vb_nic_turn(struct vb_nic *nic);

/* When vb_nic_turn() should be called next: ns as now_ns(), UINT64_MAX: never. No lock. */
uint64_t vb_nic_deadline_ns(const struct vb_nic *nic);

struct vb_stats *vb_nic_stats(struct vb_nic *nic);

/*
 * The device breaks down, for good: every QP goes to the error state, so that what is outstanding
 * completes, and contexts are told (IBV_EVENT_DEVICE_FATAL). What completes can be polled, objects
 * can be destroyed; who asks for anything else asks has_failed first, and gets EIO. Any thread.
 */
void vb_nic_fail(struct vb_nic *nic);
VB_LENT bool vb_nic_has_failed(const struct vb_nic *nic);

#endif
