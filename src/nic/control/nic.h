/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_NIC_CONTROL_NIC_H
#define VB_NIC_CONTROL_NIC_H

/*
 * The NIC as a whole: how it is made, told what it is, asked, and given back. core/nic.h says who
 * may call, and what is returned.
 */

#include "base/lent.h"
#include "nic/core/nic.h"

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

/*
 * Replaces the addresses of this host that other devices have (count at most VB_GIDS_MAX): they are
 * as near as our own, or cannot be reached at all. None by default.
 */
void vb_nic_neighbours_set(struct vb_nic *nic, const struct vb_neighbour *neighbours,
			   unsigned count);

/* The index of a GID of ours, in RoCE v2; VB_GIDS_MAX: it is not ours. */
VB_LENT unsigned vb_nic_gid_find(struct vb_nic *nic, const uint8_t gid[VB_GID_BYTES]);

/* Sets node_guid and sys_image_guid: big-endian, derived from a MAC by the host. */
void vb_nic_guid_set(struct vb_nic *nic, uint64_t guid_be, uint64_t system_guid_be);

/* Before the first query; copied. Neutral by default. */
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

/* The rx right: take it before vb_nic_rx(). Destroying a QP takes it for a moment, too. */
bool vb_nic_rx_try(struct vb_nic *nic);
void vb_nic_rx_take(struct vb_nic *nic);
void vb_nic_rx_drop(struct vb_nic *nic);

struct vb_stats *vb_nic_stats(struct vb_nic *nic);

#endif
