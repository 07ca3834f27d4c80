/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_WIRE_CM_IP_H
#define VB_WIRE_CM_IP_H

/*
 * Connections between IP addresses and ports (IBTA Annex A11): the service ids that stand for a
 * port space and a port, and the header of 36 octets with which the private data of a REQ or
 * SIDR_REQ begins when the addresses are IP ones.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/path.h"
#include "wire/cm_msg.h"

#define VB_CM_IP_BYTES 36

/* Private data behind the header: what is left to the users. */
#define VB_CM_IP_REQ_PRIVATE_BYTES (VB_CM_REQ_PRIVATE_BYTES - VB_CM_IP_BYTES)
#define VB_CM_IP_SIDR_REQ_PRIVATE_BYTES (VB_CM_SIDR_REQ_PRIVATE_BYTES - VB_CM_IP_BYTES)

/* Port spaces, as rdma_create_id() has them: the upper part of a service id. */
enum vb_cm_port_space {
	VB_CM_PS_IPOIB = 0x0002,
	VB_CM_PS_TCP = 0x0106,
	VB_CM_PS_UDP = 0x0111,
	VB_CM_PS_IB = 0x013f,
};

struct vb_cm_ip {
	bool ipv4;
	uint16_t sport;		   /* the sender's port, host order */
	uint8_t src[VB_GID_BYTES]; /* IPv4-mapped both if ipv4 */
	uint8_t dst[VB_GID_BYTES];
};

static inline uint64_t vb_cm_service_id(uint16_t port_space, uint16_t port)
{
	return (uint64_t)port_space << 16 | port;
}

/* The port space of a service id; false, and *port_space untouched, if it stands for none. */
bool vb_cm_service_port_space(uint64_t service_id, enum vb_cm_port_space *port_space);

/* For people: "TCP"; "?" for none. */
const char *vb_cm_port_space_name(unsigned port_space);

static inline uint16_t vb_cm_service_port(uint64_t service_id)
{
	return (uint16_t)service_id;
}

/* Reads the header. False, and *ip untouched, if its version is unknown or it is not about IP. */
bool vb_cm_ip_parse(struct vb_cm_ip *ip, const uint8_t in[VB_CM_IP_BYTES]);

/* Writes the header. ipv4 with addresses that are not IPv4-mapped is a bug of the caller. */
void vb_cm_ip_emit(const struct vb_cm_ip *ip, uint8_t out[VB_CM_IP_BYTES]);

#endif
