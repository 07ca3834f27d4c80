/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_NIC_LIMITS_H
#define VB_NIC_LIMITS_H

/* Every bound of the NIC, in one place; vb_nic_query_device() reports these. */

/* VB_SGE_MAX and VB_RD_ATOMIC_MAX are the engine's: engine/recv.h, engine/resp.h. */
enum {
	VB_PORTS = 1,
	VB_GIDS_MAX = 256,
	VB_PKEYS = 1,
	VB_PKEY_DEFAULT = 0xffff,

	VB_SLOT_BITS = 10,
	VB_INDEX_BITS = 14,
	VB_INDICES = 1 << VB_INDEX_BITS,
	VB_SLOTS_PER_NIC_MAX = 4,
	VB_SLOTS = 1 << VB_SLOT_BITS,
	VB_QPS_MAX = VB_SLOTS_PER_NIC_MAX * VB_INDICES,

	VB_QP_WR_MAX = 32768,
	VB_INLINE_BYTES_MAX = 1024,

	VB_CQS_MAX = 65536,
	VB_CQE_MAX = 4194304,
	VB_MRS_MAX = 1 << 17,
	VB_PDS_MAX = 65536,
	VB_AHS_MAX = 1 << 20,
	VB_SRQS_MAX = 65536,
	VB_SRQ_WR_MAX = 32768,

	VB_RX_BUFFER_BYTES = 212992, /* of a socket that nobody made larger */
	VB_PAIRS_MAX = 1024, /* NICs that we keep count of, for pacing */

	VB_PEERS_MAX = 4096,  /* slots of this host that we exchange shared memory with */
	VB_HOT_MAX = 16,      /* rings that are looked at in every poll */
	VB_DIRECT_MAPS = 16,  /* regions of a peer's that a lane keeps mapped */

	VB_COMP_VECTORS = 8,
};

/* What the device calls itself: a neutral vendor, since programs key quirks on known ones. */
#define VB_VERSION "0.1.0"
#define VB_VENDOR_ID 0x7662
#define VB_PART_ID 1

/* 4.096 us * 2^12: how long a software peer may take to get the processor and answer. */
#define VB_ACK_DELAY_CODE 12

#define VB_MESSAGE_BYTES_MAX (1u << 31)
#define VB_MR_BYTES_MAX (1ull << 46)

#endif
