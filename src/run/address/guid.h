/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_RUN_GUID_H
#define VB_RUN_GUID_H

/* The node GUID, and the MACs of the port and of neighbours. Any thread. */

#include <ifaddrs.h>
#include <stdint.h>

#include "base/lent.h"
#include "base/path.h"
#include "topology/table.h"

/*
 * The node GUID, big-endian, never zero, the same for all processes of a host: the EUI-64 of the
 * first interface that has a MAC, else a hash of host name and boot.
 */
uint64_t vb_guid_get(void);

/*
 * The MAC of the port of a device, by its node GUID, on the Ethernet segment of this user's hub.
 * Locally administered and derived from that and the user, so that it differs from other devices',
 * from other hubs' and from those of interfaces.
 */
VB_LENT void vb_port_mac(uint64_t node_guid_be, uint8_t mac[6]);

/*
 * The node GUID of a device: that of the host if there is one device, or for a row that the table
 * has not; else a hash of it and the device's name.
 */
uint64_t vb_guid_of_device(const struct vb_topology *topology, unsigned row);

/* The node GUID derived from a list of interface addresses; 0 if none has a MAC. */
uint64_t vb_guid_of(const struct ifaddrs *list);

/*
 * The MAC of a neighbour, or of our own interface if the address is ours (all zero on loopback).
 * ENETUNREACH if neither the interfaces nor the kernel's ARP table know the address.
 */
int vb_gids_mac(const uint8_t gid[VB_GID_BYTES], uint8_t mac[6]);

#endif
