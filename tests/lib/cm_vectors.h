/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_TESTS_CM_VECTORS_H
#define VB_TESTS_CM_VECTORS_H

/*
 * MADs that the connection manager of Linux 6.1 put on the wire, over rdma_rxe: the octets, and
 * what is in them as its users, `rdma resource` and its peer had it.
 */

#include <stdio.h>
#include <string.h>

#include "wire/cm_ip.h"

/* 10.79.0.2, whose MADs these are, and 10.79.0.1, for whom they were. */
/* clang-format off */
#define CM_VECTOR_GUEST { [10] = 0xff, 0xff, 10, 79, 0, 2 }
#define CM_VECTOR_HOST { [10] = 0xff, 0xff, 10, 79, 0, 1 }
/* clang-format on */

struct cm_vector {
	const char *hex;      /* up to the last octet that is not zero */
	struct vb_cm_msg msg; /* without private data and additional information */
	struct vb_cm_ip ip;   /* at the beginning of private data, if its ipv4 is set */
	const char *text;     /* what comes then */
};

/* clang-format off */
static const struct cm_vector cm_vectors[] = {
	{
		.hex = "0107020300000000000000023d581b180010000000000000181b583d00000000"
		       "00000000010615b3505400fffe12345600000000000000000000110100000001"
		       "000000a0ee8021a7ffff37f0ffffffff00000000000000000000ffff0a4f0002"
		       "00000000000000000000ffff0a4f00013cc48000004000980000000000000000"
		       "0000000000000000000000000000000000000000000000000000000000000000"
		       "000000000040a2cb0000000000000000000000000a4f00020000000000000000"
		       "000000000a4f0001",
		.msg = {
			.attr = VB_CM_REQ,
			.transaction_id = 0x23d581b18,
			.local_comm_id = 0x181b583d,
			.req = {
				.service_id = 0x010615b3,
				.local_ca_guid = 0x505400fffe123456,
				.local_qpn = 17,
				.starting_psn = 0xee8021,
				.partition_key = 0xffff,
				.responder_resources = 1,
				.initiator_depth = 1,
				.remote_cm_response_timeout = 20,
				.local_cm_response_timeout = 20,
				.max_cm_retries = 15,
				.transport_service_type = VB_CM_TRANSPORT_RC,
				.retry_count = 7,
				.rnr_retry_count = 7,
				.path_mtu = 3, /* 1024 */
				.primary = {
					.local_lid = 0xffff,
					.remote_lid = 0xffff,
					.local_gid = CM_VECTOR_GUEST,
					.remote_gid = CM_VECTOR_HOST,
					.flow_label = 0x3cc48, /* of both ports */
					.hop_limit = 64,
					.local_ack_timeout = 19,
				},
			},
		},
		.ip = {
			.ipv4 = true,
			.sport = 0xa2cb,
			.src = CM_VECTOR_GUEST,
			.dst = CM_VECTOR_HOST,
		},
	},
	{
		.hex = "0107020300000000000000002233b45500110000000000001b1b583d22334455"
		       "00c0",
		.msg = {
			.attr = VB_CM_MRA,
			.transaction_id = 0x2233b455,
			.local_comm_id = 0x1b1b583d,
			.remote_comm_id = 0x22334455,
			.mra = { .message_mraed = VB_CM_MESSAGE_REQ, .service_timeout = 24 },
		},
	},
	{
		.hex = "0107020300000000000000003344c56600120000000000000000000033445566"
		       "00000008",
		.msg = {
			.attr = VB_CM_REJ,
			.transaction_id = 0x3344c566,
			.remote_comm_id = 0x33445566,
			.rej = {
				.message_rejected = VB_CM_MESSAGE_REQ,
				.reason = VB_CM_REJ_INVALID_SERVICE_ID,
			},
		},
	},
	{
		.hex = "0107020300000000000000002233b45500120000000000001b1b583d22334455"
		       "8000001c",
		.msg = {
			.attr = VB_CM_REJ,
			.transaction_id = 0x2233b455,
			.local_comm_id = 0x1b1b583d,
			.remote_comm_id = 0x22334455,
			.rej = {
				.message_rejected = VB_CM_MESSAGE_OTHER,
				.reason = VB_CM_REJ_CONSUMER_DEFINED,
			},
		},
	},
	{
		.hex = "0107020300000000000000002233b45500130000000000001b1b583d22334455"
		       "00000000000013000000000052329200010178e0505400fffe123456",
		.msg = {
			.attr = VB_CM_REP,
			.transaction_id = 0x2233b455,
			.local_comm_id = 0x1b1b583d,
			.remote_comm_id = 0x22334455,
			.rep = {
				.local_ca_guid = 0x505400fffe123456,
				.local_qpn = 19,
				.starting_psn = 0x523292,
				.responder_resources = 1,
				.initiator_depth = 1,
				.target_ack_delay = 15,
				.rnr_retry_count = 7,
			},
		},
	},
	{
		.hex = "0107020300000000000000023d581b180014000000000000181b583d11223344",
		.msg = {
			.attr = VB_CM_RTU,
			.transaction_id = 0x23d581b18,
			.local_comm_id = 0x181b583d,
			.remote_comm_id = 0x11223344,
		},
	},
	{
		.hex = "0107020300000000000000023d581b190015000000000000191b583d11223344"
		       "123456",
		.msg = {
			.attr = VB_CM_DREQ,
			.transaction_id = 0x23d581b19,
			.local_comm_id = 0x191b583d,
			.remote_comm_id = 0x11223344,
			.dreq = { .remote_qpn = 0x123456 },
		},
	},
	{
		.hex = "010702030000000000000000000051510016000000000000181b583d11223344",
		.msg = {
			.attr = VB_CM_DREP,
			.transaction_id = 0x5151,
			.local_comm_id = 0x181b583d,
			.remote_comm_id = 0x11223344,
		},
	},
	{
		.hex = "010702030000000000000002a6b9d4ba0017000000000000bad4b9a6ffff0000"
		       "0000000001111c060040c4c30000000000000000000000000a4f000200000000"
		       "00000000000000000a4f0001",
		.msg = {
			.attr = VB_CM_SIDR_REQ,
			.transaction_id = 0x2a6b9d4ba,
			.local_comm_id = 0xbad4b9a6,
			.sidr_req = { .service_id = 0x01111c06, .partition_key = 0xffff },
		},
		.ip = {
			.ipv4 = true,
			.sport = 0xc4c3,
			.src = CM_VECTOR_GUEST,
			.dst = CM_VECTOR_HOST,
		},
	},
	{
		.hex = "010702030000000000000002a6b9d4ba00180000000000004455667700000000"
		       "000012000000000001111c0601234567",
		.msg = {
			.attr = VB_CM_SIDR_REP,
			.transaction_id = 0x2a6b9d4ba,
			.remote_comm_id = 0x44556677,
			.sidr_rep = {
				.service_id = 0x01111c06,
				.qpn = 18,
				.qkey = 0x01234567,
			},
		},
	},
	{
		.hex = "0107020300000000000000020686044b0010000089abcdef4b04860600123456"
		       "0000000001061770505400fffe1234560000000000000000abcdef0300000002"
		       "000000a1363317a5ffff36f8ffffffff00000000000000000000ffff0a4f0002"
		       "00000000000000000000ffff0a4f00015815a000a84000980000000000000000"
		       "0000000000000000000000000000000000000000000000000000000000000000"
		       "000000000040b0d60000000000000000000000000a4f00020000000000000000"
		       "000000000a4f0001766572626174696d",
		.msg = {
			.attr = VB_CM_REQ,
			.transaction_id = 0x20686044b,
			.local_comm_id = 0x4b048606,
			.ece_vendor_id = 0x123456,
			.ece_options = 0x89abcdef,
			.req = {
				.service_id = 0x01061770,
				.local_ca_guid = 0x505400fffe123456,
				.local_qpn = 0xabcdef,
				.starting_psn = 0x363317,
				.partition_key = 0xffff,
				.responder_resources = 3,
				.initiator_depth = 2,
				.remote_cm_response_timeout = 20,
				.local_cm_response_timeout = 20,
				.max_cm_retries = 15,
				.transport_service_type = VB_CM_TRANSPORT_RC,
				.retry_count = 5,
				.rnr_retry_count = 6,
				.path_mtu = 3, /* 1024 */
				.end_to_end_flow_control = true,
				.srq = true,
				.primary = {
					.local_lid = 0xffff,
					.remote_lid = 0xffff,
					.local_gid = CM_VECTOR_GUEST,
					.remote_gid = CM_VECTOR_HOST,
					.flow_label = 0x5815a,
					.traffic_class = 0xa8,
					.hop_limit = 64,
					.local_ack_timeout = 19,
				},
			},
		},
		.ip = {
			.ipv4 = true,
			.sport = 0xb0d6,
			.src = CM_VECTOR_GUEST,
			.dst = CM_VECTOR_HOST,
		},
		.text = "verbatim",
	},
	{
		.hex = "010702030000000000000000000009990013000089abcdef4904860677777701"
		       "00000000abcdef1200000034cf601056030279d0505400fffe12345676657262"
		       "6174696d",
		.msg = {
			.attr = VB_CM_REP,
			.transaction_id = 0x999,
			.local_comm_id = 0x49048606,
			.remote_comm_id = 0x77777701,
			.ece_vendor_id = 0x123456,
			.ece_options = 0x89abcdef,
			.rep = {
				.local_ca_guid = 0x505400fffe123456,
				.local_qpn = 0xabcdef,
				.starting_psn = 0xcf6010,
				.responder_resources = 3,
				.initiator_depth = 2,
				.target_ack_delay = 15,
				.rnr_retry_count = 6,
				.end_to_end_flow_control = true,
				.srq = true,
			},
		},
		.text = "verbatim",
	},
	{
		.hex = "0107020300000000000000000000099800120000000000004f04860677777702"
		       "0000002300000000000000000000000000000000000000000000000000000000"
		       "0000000000000000000000000000000000000000000000000000000000000000"
		       "0000000000000000000000006e6f",
		.msg = {
			.attr = VB_CM_REJ,
			.transaction_id = 0x998,
			.local_comm_id = 0x4f048606,
			.remote_comm_id = 0x77777702,
			.rej = {
				.message_rejected = VB_CM_MESSAGE_REQ,
				.reason = VB_CM_REJ_VENDOR_OPTION_NOT_SUPPORTED,
			},
		},
		.text = "no",
	},
	{
		.hex = "0107020300000000000000020686044e00180000000000004455667801000000"
		       "000000000000000001111774",
		.msg = {
			.attr = VB_CM_SIDR_REP,
			.transaction_id = 0x20686044e,
			.remote_comm_id = 0x44556678,
			.sidr_rep = { .service_id = 0x01111774, .status = VB_CM_SIDR_UNSUPPORTED },
		},
	},
};
/* clang-format on */

/* Writes octets that are given in hexadecimal. */
static inline void cm_octets(uint8_t *out, const char *hex)
{
	unsigned octet;

	for (; sscanf(hex, "%2x", &octet) == 1; hex += 2)
		*out++ = (uint8_t)octet;
}

/* Writes a vector's private data, and returns how many octets those are. */
static inline size_t cm_vector_private(const struct cm_vector *v, uint8_t out[VB_MAD_BYTES])
{
	size_t bytes = v->ip.ipv4 ? VB_CM_IP_BYTES : 0;

	if (v->ip.ipv4)
		vb_cm_ip_emit(&v->ip, out);
	if (!v->text)
		return bytes;
	memcpy(out + bytes, v->text, strlen(v->text));
	return bytes + strlen(v->text);
}

#endif
