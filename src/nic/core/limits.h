/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_NIC_LIMITS_H
#define VB_NIC_LIMITS_H

/* All bounds of the NIC; vb_nic_query_device() reports them. */

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

	VB_INDICES_USED = VB_INDICES - 3, /* the first two and the last are reserved */
	VB_QPN_GSI = 1,			  /* general services: management datagrams (IBTA 3.9) */
	VB_QPN_GROUP = 0xffffff,	  /* addresses all QPs attached to the group (IBA 3.5.3) */
	VB_GROUPS_MAX = 256,
	VB_GROUP_QPS_MAX = 4096, /* per group */

	VB_QP_WR_MAX = 32768,
	VB_CREDIT_RECVS_MAX = 128, /* receive requests examined to count credits in packets */
	VB_INLINE_BYTES_MAX = 1024,
	VB_DATAGRAM_BYTES_MAX = 4096, /* the largest MTU there is */

	VB_DM_BYTES_MAX = 1 << 20, /* of all device memory */
	VB_DM_UNIT_BYTES = 64,
	VB_DM_UNITS = VB_DM_BYTES_MAX / VB_DM_UNIT_BYTES,
	VB_DM_ALIGN_LOG_MAX = 12,
	/* of a null region per access: a packet, or what is handled as one */
	VB_NULL_BYTES = 65536,
	VB_FOREIGN_MAPS = 64, /* mapped regions per process whose device is imported */

	VB_CQS_MAX = 65536,
	VB_CQE_MAX = 4194304,
	VB_CQ_COUNT_MAX = 32768,     /* completions per event */
	VB_CQ_PERIOD_US_MAX = 16384, /* ... and how long the first may wait for it */
	VB_KEYS = 1 << 17,
	VB_MWS_MAX = 1 << 15,
	VB_MRS_MAX = VB_KEYS - 1 - VB_MWS_MAX, /* 0 is no key */
	VB_MKEY_ENTRIES_MAX = 64, /* per indirect key: no work request has room for more */
	VB_MEMCPY_BYTES_MAX = 1 << 20, /* per work request: its QP is locked meanwhile */
	VB_PDS_MAX = 65536, /* parent domains included */
	VB_TDS_MAX = 65536,
	VB_COUNTERS_MAX = 65536,
	VB_COUNTER_POINTS_MAX = 64, /* per object */
	VB_COMP_CNTRS_MAX = 65536,
	VB_FLOWS_MAX = 1 << 18,
	VB_FLOW_GROUPS_MAX = 4096, /* combinations of priority and masks of flow rules */
	VB_FLOW_SPECS_MAX = 10,
	VB_AHS_MAX = 1 << 20,
	VB_SRQS_MAX = 65536,
	VB_SRQ_WR_MAX = 32768,
	VB_SRQ_NUMBER_MAX = (1 << 24) - 1,

	VB_TM_TAGS_MAX = 1024,  /* per SRQ; a message is compared with them one by one */
	VB_TM_OPS_MAX = 32768,
	VB_TM_SGE_MAX = 4,
	VB_TM_RNDV_MAX = 16, /* rendezvous under way per QP */
	VB_TM_RNDV_BYTES_MAX = 64,
	VB_TM_AHEAD_MAX = 0x3fff, /* unexpected messages before we ask for a SYNC */

	VB_RX_BUFFER_BYTES = 212992, /* of a socket with the default size */
	VB_PAIRS_MAX = 1024, /* NICs tracked for pacing */

	VB_DCI_STREAMS_LOG_MAX = 6, /* log2 of the streams of a DC initiator */
	VB_DCI_ERRORED_LOG_MAX = 6,
	VB_DC_RESOURCES = 16,	   /* READs and atomics in flight to a target */

	VB_PEERS_MAX = 4096,  /* slots of this host that we share memory with */
	VB_HOT_MAX = 16,      /* rings looked at in every poll */
	VB_DIRECT_MAPS = 16,  /* mapped regions of a peer per lane */

	VB_BRAKE_NS = 100000000, /* UC: one invalid key per this time ... */
	VB_BRAKE_FREE = 64,	/* ... and this many at once */

	VB_RATE_KBPS_MIN = 1000,
	VB_RATE_KBPS_MAX = 100000000,

	VB_ETH_MTU_BYTES = 9000, /* of the Ethernet segment */
	VB_ETH_FRAME_BYTES_MAX = VB_ETH_MTU_BYTES + 18, /* with header and VLAN tag */
	VB_RWQS_MAX = 65536,
	VB_RWQ_TABLES_MAX = 65536,
	VB_RWQ_TABLE_LOG_MAX = 11,
	VB_RWQ_DELAYED_MAX = 32, /* frames that wait for requests to be posted */
	VB_TSO_BYTES_MAX = 1 << 18, /* per work request, without its header */

	VB_COMP_VECTORS = 8,
};

/* Initiators that a DC target tracks at a time. */
#ifndef VB_DC_CONTEXTS_MAX
#define VB_DC_CONTEXTS_MAX 1024
#endif

/*
 * How long it remembers an initiator that has disconnected, so that no late packet is taken for a
 * new one; also one that has fallen silent. Less if there are too many.
 */
#ifndef VB_DC_LINGER_NS
#define VB_DC_LINGER_NS 4000000000ull
#endif
#ifndef VB_DC_FORGET_NS
#define VB_DC_FORGET_NS 10000000000ull
#endif

/* A neutral vendor, since programs apply workarounds by vendor. */
#define VB_VERSION "0.1.0"
#define VB_VENDOR_ID 0x7662
#define VB_PART_ID 1

/* 4.096 us * 2^12: how long a software peer may take to get the CPU and answer. */
#define VB_ACK_DELAY_CODE 12

/* The clock of completion timestamps counts ns. */
#define VB_CLOCK_KHZ 1000000u

/* How long the relation of that clock to the time of day may be used: the latter may be set. */
#define VB_CLOCK_INFO_NS 1000000000ull

#define VB_MESSAGE_BYTES_MAX (1u << 31)
#define VB_MR_BYTES_MAX (1ull << 46)

#endif
