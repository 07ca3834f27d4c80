/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_NIC_STATS_H
#define VB_NIC_STATS_H

/* Counters. A dropped packet is not an error of ours: it is counted here, by reason. */

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define VB_STAT_LIST(X)                                                                           \
	X(RX_FRAMES, "rx_frames")                                                                 \
	X(RX_OCTETS, "rx_octets")                                                                 \
	X(RX_LANE_FRAMES, "rx_shared_memory_frames")                                              \
	X(RX_LANE_OCTETS, "rx_shared_memory_octets")                                              \
	X(DIRECT_OPS, "direct_operations")                                                        \
	X(DIRECT_OCTETS, "direct_octets")                                                         \
	X(TX_FRAMES, "tx_frames")                                                                 \
	X(TX_OCTETS, "tx_octets")                                                                 \
	X(TX_BURSTS, "tx_bursts")                                                                 \
	X(TX_FULL, "tx_link_full")                                                                \
	X(TX_LOST, "tx_link_error")                                                               \
	X(RETRANSMITS, "retransmits")                                                             \
	X(TIMEOUTS, "ack_timeouts")                                                               \
	X(RNR_NAKS_SENT, "rnr_naks_sent")                                                         \
	X(RNR_NAKS_SEEN, "rnr_naks_seen")                                                         \
	X(PSN_NAKS_SENT, "psn_naks_sent")                                                         \
	X(PSN_NAKS_SEEN, "psn_naks_seen")                                                         \
	X(CNPS_SENT, "cnps_sent")                                                                 \
	X(CNPS_SEEN, "cnps_seen")                                                                 \
	X(DUPLICATES, "duplicate_requests")                                                       \
	X(DROP_MALFORMED, "drop_malformed")                                                       \
	X(DROP_ICRC, "drop_icrc")                                                                 \
	X(DROP_NO_QP, "drop_no_qp")                                                               \
	X(DROP_GROUP, "drop_no_multicast_group")                                                  \
	X(DROP_TRANSPORT, "drop_wrong_transport")                                                 \
	X(DROP_STATE, "drop_qp_state")                                                            \
	X(DROP_STRANGER, "drop_wrong_peer")                                                       \
	X(DROP_PKEY, "drop_pkey")                                                                 \
	X(DROP_QKEY, "drop_qkey")                                                                 \
	X(DROP_STALE, "drop_stale_response")                                                      \
	X(DROP_SEQUENCE, "drop_opcode_sequence")                                                  \
	X(DROP_NO_CONTEXT, "drop_not_connected")                                                  \
	X(DROP_NO_RECV, "drop_no_receive_wr")                                                     \
	X(DROP_LENGTH, "drop_length")                                                             \
	X(DROP_ACCESS, "drop_access")                                                             \
	X(DROP_BRAKE, "drop_after_wrong_keys")                                                    \
	X(DROP_NO_FLOW, "drop_no_flow_rule")                                                      \
	X(DROP_FLOW, "drop_by_flow_rule")                                                         \
	X(DROP_FLOW_HITS, "drop_too_many_receivers")                                              \
	X(UPLINK_SENT, "uplink_sent")                                                             \
	X(UPLINK_LOST, "uplink_send_error")                                                       \
	X(UPLINK_CAME, "uplink_received")                                                         \
	X(RAW_NOBODY, "raw_frames_for_nobody")                                                    \
	X(CQ_OVERRUNS, "cq_overruns")

enum vb_stat {
#define X(id, name) VB_STAT_##id,
	VB_STAT_LIST(X)
#undef X
	VB_STATS
};

struct vb_stats {
	_Atomic uint64_t count[VB_STATS];
};

static inline void vb_stat_add(struct vb_stats *stats, enum vb_stat stat, uint64_t n)
{
	atomic_fetch_add_explicit(&stats->count[stat], n, memory_order_relaxed);
}

/*
 * What is counted by whoever holds a lock, and read by who cannot wait for it: cheaper than a
 * counter that all threads add to.
 */
struct vb_held_sum {
	_Atomic uint64_t sum, taken;
};

static inline void vb_held_sum_add(struct vb_held_sum *held, uint64_t n)
{
	uint64_t sum = atomic_load_explicit(&held->sum, memory_order_relaxed);

	atomic_store_explicit(&held->sum, sum + n, memory_order_relaxed);
}

/* Adds what came since the last time. Any thread, without the lock. */
static inline void vb_held_sum_take(struct vb_held_sum *held, struct vb_stats *stats,
				    enum vb_stat stat)
{
	uint64_t sum = atomic_load_explicit(&held->sum, memory_order_relaxed);

	vb_stat_add(stats, stat, sum - atomic_exchange(&held->taken, sum));
}

/* Was a packet dropped? */
static inline bool vb_stat_is_drop(enum vb_stat stat)
{
	return stat >= VB_STAT_DROP_MALFORMED && stat <= VB_STAT_DROP_FLOW_HITS;
}

/* The counter's name, as shown to users. */
const char *vb_stat_name(enum vb_stat stat);

#endif
