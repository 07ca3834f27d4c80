/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_WIRE_CM_MSG_H
#define VB_WIRE_CM_MSG_H

/*
 * The eleven messages of communication management (IBTA 12.6 to 12.8, 12.11), each a MAD of 256
 * octets. cm_msg.def says where each field is; what parses and what emits walk the same rows.
 *
 * Integers are in host order, GIDs in network order. A member holds what the field holds: times are
 * exponents n of 4.096 us * 2^n, and "local" is the side that sends the message. The width of a
 * field that is narrower than its member stands in its comment, in bits.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/path.h"
#include "wire/mad.h"

/* VB_CM_REQ ...: what the message is, the attribute of its MAD. */
enum vb_cm_attr {
#define VB_CM_ATTR(name, number, ...) VB_CM_##name = number,
#include "wire/cm_msg.def"
	VB_CM_ATTR_FIRST = VB_CM_REQ,
	VB_CM_ATTR_LAST = VB_CM_APR,
};

/* VB_CM_REQ_PRIVATE_BYTES ...: what a message has for its users. */
enum {
#define VB_CM_ATTR(name, number, private_at, ...) \
	VB_CM_##name##_PRIVATE_BYTES = VB_MAD_DATA_BYTES - (private_at),
#include "wire/cm_msg.def"
};

/* Additional information of REJ, APR and SIDR_REP: at most. */
#define VB_CM_INFO_BYTES 72

/* VB_CM_REJ_NO_QP ...: why a REJ rejects (IBTA 12.6.7.2). */
enum vb_cm_rej_reason {
#define VB_CM_REASON(name, number, text) VB_CM_REJ_##name = number,
#include "wire/cm_msg.def"
};

/* VB_CM_SIDR_VALID ...: what a SIDR_REP says (IBTA 12.11.2). */
enum vb_cm_sidr_status {
#define VB_CM_SIDR_STATUS(name, number, text) VB_CM_SIDR_##name = number,
#include "wire/cm_msg.def"
};

/* VB_CM_APR_LOADED ...: what an APR says of the alternate path (IBTA 12.8.2). */
enum vb_cm_apr_status {
#define VB_CM_APR_STATUS(name, number, text) VB_CM_APR_##name = number,
#include "wire/cm_msg.def"
};

/* Of a REQ. EXTENDED: extended_transport_type says which. */
enum vb_cm_transport {
	VB_CM_TRANSPORT_RC = 0,
	VB_CM_TRANSPORT_UC = 1,
	VB_CM_TRANSPORT_RD = 2,
	VB_CM_TRANSPORT_EXTENDED = 3,
};

enum vb_cm_extended_transport {
	VB_CM_EXTENDED_NONE = 0,
	VB_CM_EXTENDED_XRC = 1,
};

/* What an MRA has received and what a REJ rejects. */
enum vb_cm_message {
	VB_CM_MESSAGE_REQ = 0,
	VB_CM_MESSAGE_REP = 1,
	VB_CM_MESSAGE_OTHER = 2, /* of a REJ: no message, or another; of an MRA: LAP */
};

/* Of a REP: whether the alternate path of the REQ is taken. */
enum vb_cm_failover {
	VB_CM_FAILOVER_ACCEPTED = 0,
	VB_CM_FAILOVER_UNSUPPORTED = 1,
	VB_CM_FAILOVER_REJECTED = 2,
};

/* A path of a REQ or LAP. An alternate path that is none is all zeros. */
struct vb_cm_path {
	uint16_t local_lid;
	uint16_t remote_lid;
	uint8_t local_gid[VB_GID_BYTES];
	uint8_t remote_gid[VB_GID_BYTES];
	uint32_t flow_label; /* 20 */
	uint8_t packet_rate; /* 6; enum ibv_rate */
	uint8_t traffic_class;
	uint8_t hop_limit;
	uint8_t sl;		   /* 4 */
	bool subnet_local;	   /* hop_limit, flow_label and traffic_class mean nothing */
	uint8_t local_ack_timeout; /* 5 */
};

/* Request to connect. */
struct vb_cm_req {
	uint64_t service_id;
	uint64_t local_ca_guid;
	uint32_t local_qkey;   /* of RD */
	uint32_t local_qpn;    /* 24 */
	uint32_t local_eecn;   /* 24; of RD */
	uint32_t remote_eecn;  /* 24; of RD */
	uint32_t starting_psn; /* 24; the receiver's requester begins with it */
	uint16_t partition_key;
	uint8_t responder_resources;	    /* READs and atomics at a time: the sender answers */
	uint8_t initiator_depth;	    /* ... and the sender requests */
	uint8_t remote_cm_response_timeout; /* 5; how soon the receiver is to answer */
	uint8_t local_cm_response_timeout;  /* 5; how soon the sender answers */
	uint8_t max_cm_retries;		    /* 4 */
	uint8_t transport_service_type;	    /* 2; enum vb_cm_transport */
	uint8_t extended_transport_type;    /* 3; enum vb_cm_extended_transport */
	uint8_t retry_count;		    /* 3; for the receiver's QP */
	uint8_t rnr_retry_count;	    /* 3; for the receiver's QP */
	uint8_t path_mtu;		    /* 4; enum ibv_mtu */
	bool end_to_end_flow_control;
	bool rdc_exists;    /* of RD */
	bool srq;	    /* the sender's QP has one */
	bool sap_supported; /* the sender understands suggested alternate paths */
	struct vb_cm_path primary;
	struct vb_cm_path alternate;
};

/* Reply to a REQ: accepted. */
struct vb_cm_rep {
	uint64_t local_ca_guid;
	uint32_t local_qkey;	     /* of RD */
	uint32_t local_qpn;	     /* 24 */
	uint32_t local_eecn;	     /* 24; of RD, and the QPN of XRC */
	uint32_t starting_psn;	     /* 24; the receiver's requester begins with it */
	uint8_t responder_resources; /* as in the REQ */
	uint8_t initiator_depth;
	uint8_t target_ack_delay;  /* 5; how long the sender's NIC may take to acknowledge */
	uint8_t failover_accepted; /* 2; enum vb_cm_failover */
	uint8_t rnr_retry_count;   /* 3; for the receiver's QP */
	bool end_to_end_flow_control;
	bool srq; /* the sender's QP has one */
};

/* Message receipt acknowledged: the answer to what is named takes longer. */
struct vb_cm_mra {
	uint8_t message_mraed;	 /* 2; enum vb_cm_message */
	uint8_t service_timeout; /* 5; how much longer */
};

/* Reject. info: what would have been accepted, as the reason has it. */
struct vb_cm_rej {
	uint8_t message_rejected; /* 2; enum vb_cm_message */
	uint16_t reason;	  /* enum vb_cm_rej_reason, or one that we do not know */
};

/* Request to disconnect. */
struct vb_cm_dreq {
	uint32_t remote_qpn; /* 24; or EECN */
};

/* Load alternate path. */
struct vb_cm_lap {
	uint32_t remote_qpn;		    /* 24; or EECN */
	uint8_t remote_cm_response_timeout; /* 5 */
	struct vb_cm_path alternate;
};

/* Alternate path response. */
struct vb_cm_apr {
	uint8_t status; /* enum vb_cm_apr_status, or one that we do not know */
};

/* Request for the QP of a service (service id resolution). */
struct vb_cm_sidr_req {
	uint64_t service_id;
	uint16_t partition_key;
};

/* Reply to a SIDR_REQ. */
struct vb_cm_sidr_rep {
	uint64_t service_id;
	uint32_t qpn; /* 24 */
	uint32_t qkey;
	uint8_t status; /* enum vb_cm_sidr_status, or one that we do not know */
};

struct vb_cm_msg {
	enum vb_cm_attr attr;
	uint64_t transaction_id;
	/* The sender's id and the receiver's. REQ and SIDR_REQ have only the former, SIDR_REP has
	 * only the latter; both SIDR messages call theirs RequestID. */
	uint32_t local_comm_id;
	uint32_t remote_comm_id;
	/* Enhanced connection establishment, in REQ, REP and SIDR_REP; 0 in the others. */
	uint32_t ece_vendor_id; /* 24 */
	uint32_t ece_options;	/* the MAD's attribute modifier */
	union {			/* which one, attr says; RTU and DREP have none */
		struct vb_cm_req req;
		struct vb_cm_rep rep;
		struct vb_cm_mra mra;
		struct vb_cm_rej rej;
		struct vb_cm_dreq dreq;
		struct vb_cm_lap lap;
		struct vb_cm_apr apr;
		struct vb_cm_sidr_req sidr_req;
		struct vb_cm_sidr_rep sidr_rep;
	};
	/* Additional information: REJ, APR and SIDR_REP have VB_CM_INFO_BYTES, of which info_bytes
	 * count; the others none. */
	const uint8_t *info;
	uint8_t info_bytes;
	uint8_t private_bytes;
	const uint8_t *private_data;
};

/*
 * Reads a MAD. False, and *msg untouched, if it is none of the eleven messages: base version,
 * class, class version, method or attribute are others, or it claims more additional information
 * than there is room for. Nothing else is judged. Reserved bits are ignored.
 *
 * info and private_data point into the MAD. private_bytes is all the room that the message has for
 * private data, since nothing in it says how much of that was meant.
 */
bool vb_cm_parse(struct vb_cm_msg *msg, const uint8_t mad[VB_MAD_BYTES]);

/*
 * Writes a MAD: all of it, with zeros where nothing is. Private data and additional information may
 * be shorter than their room, and must not lie in mad. What is wider than its field or longer than
 * its room is a bug of the caller.
 */
void vb_cm_emit(const struct vb_cm_msg *msg, uint8_t mad[VB_MAD_BYTES]);

/* How many octets of private data a message has room for. */
unsigned vb_cm_private_bytes(enum vb_cm_attr attr);

/*
 * For people: "REQ"; why it was rejected; what a status means. "unknown" for numbers that have no
 * row; a peer may send any.
 */
const char *vb_cm_attr_name(unsigned attr);
const char *vb_cm_rej_text(unsigned reason);
const char *vb_cm_sidr_text(unsigned status);
const char *vb_cm_apr_text(unsigned status);

#endif
