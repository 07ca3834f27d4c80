/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Names of enum values, and conversions of static rates. The completion status texts are those that
 * users search for and scripts compare with.
 */

#include <infiniband/verbs.h>

#include "abi/newer/newer.h"
#include "engine/newer.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* Tables have gaps: a value without a name counts as unknown. */
static const char *name_find(const char *const *names, size_t count, unsigned int value)
{
	if (value >= count || !names[value])
		return "unknown";
	return names[value];
}

const char *ibv_node_type_str(enum ibv_node_type node_type)
{
	static const char *const names[] = {
		[IBV_NODE_CA] = "InfiniBand channel adapter",
		[IBV_NODE_SWITCH] = "InfiniBand switch",
		[IBV_NODE_ROUTER] = "InfiniBand router",
		[IBV_NODE_RNIC] = "iWARP NIC",
		[IBV_NODE_USNIC] = "usNIC",
		[IBV_NODE_USNIC_UDP] = "usNIC UDP",
		[IBV_NODE_UNSPECIFIED] = "unspecified",
	};

	return name_find(names, COUNT(names), (unsigned int)node_type);
}

const char *ibv_port_state_str(enum ibv_port_state port_state)
{
	static const char *const names[] = {
		[IBV_PORT_NOP] = "no change",
		[IBV_PORT_DOWN] = "down",
		[IBV_PORT_INIT] = "init",
		[IBV_PORT_ARMED] = "armed",
		[IBV_PORT_ACTIVE] = "active",
		[IBV_PORT_ACTIVE_DEFER] = "active defer",
	};

	return name_find(names, COUNT(names), (unsigned int)port_state);
}

const char *ibv_event_type_str(enum ibv_event_type event)
{
	static const char *const names[] = {
		[IBV_EVENT_CQ_ERR] = "CQ error",
		[IBV_EVENT_QP_FATAL] = "QP broken",
		[IBV_EVENT_QP_REQ_ERR] = "QP got an invalid request",
		[IBV_EVENT_QP_ACCESS_ERR] = "QP got an access violation",
		[IBV_EVENT_COMM_EST] = "communication established",
		[IBV_EVENT_SQ_DRAINED] = "send queue drained",
		[IBV_EVENT_PATH_MIG] = "path migrated",
		[IBV_EVENT_PATH_MIG_ERR] = "path migration failed",
		[IBV_EVENT_DEVICE_FATAL] = "device broken",
		[IBV_EVENT_PORT_ACTIVE] = "port active",
		[IBV_EVENT_PORT_ERR] = "port error",
		[IBV_EVENT_LID_CHANGE] = "LID changed",
		[IBV_EVENT_PKEY_CHANGE] = "P_Key table changed",
		[IBV_EVENT_SM_CHANGE] = "subnet manager changed",
		[IBV_EVENT_SRQ_ERR] = "SRQ error",
		[IBV_EVENT_SRQ_LIMIT_REACHED] = "SRQ limit reached",
		[IBV_EVENT_QP_LAST_WQE_REACHED] = "last WQE reached",
		[IBV_EVENT_CLIENT_REREGISTER] = "client should reregister",
		[IBV_EVENT_GID_CHANGE] = "GID table changed",
		[IBV_EVENT_WQ_FATAL] = "WQ broken",
		[VB_EVENT_DEVICE_SPEED_CHANGE] = "device's speed changed",
	};

	return name_find(names, COUNT(names), (unsigned int)event);
}

const char *ibv_wc_status_str(enum ibv_wc_status status)
{
	static const char *const names[] = {
		[IBV_WC_SUCCESS] = "success",
		[IBV_WC_LOC_LEN_ERR] = "local length error",
		[IBV_WC_LOC_QP_OP_ERR] = "local QP operation error",
		[IBV_WC_LOC_EEC_OP_ERR] = "local EE context operation error",
		[IBV_WC_LOC_PROT_ERR] = "local protection error",
		[IBV_WC_WR_FLUSH_ERR] = "Work Request Flushed Error",
		[IBV_WC_MW_BIND_ERR] = "memory management operation error",
		[IBV_WC_BAD_RESP_ERR] = "bad response error",
		[IBV_WC_LOC_ACCESS_ERR] = "local access error",
		[IBV_WC_REM_INV_REQ_ERR] = "remote invalid request error",
		[IBV_WC_REM_ACCESS_ERR] = "remote access error",
		[IBV_WC_REM_OP_ERR] = "remote operation error",
		[IBV_WC_RETRY_EXC_ERR] = "transport retry counter exceeded",
		[IBV_WC_RNR_RETRY_EXC_ERR] = "RNR retry counter exceeded",
		[IBV_WC_LOC_RDD_VIOL_ERR] = "local RDD violation error",
		[IBV_WC_REM_INV_RD_REQ_ERR] = "remote invalid RD request",
		[IBV_WC_REM_ABORT_ERR] = "aborted error",
		[IBV_WC_INV_EECN_ERR] = "invalid EE context number",
		[IBV_WC_INV_EEC_STATE_ERR] = "invalid EE context state",
		[IBV_WC_FATAL_ERR] = "fatal error",
		[IBV_WC_RESP_TIMEOUT_ERR] = "response timeout error",
		[IBV_WC_GENERAL_ERR] = "general error",
		[IBV_WC_TM_ERR] = "TM error",
		[IBV_WC_TM_RNDV_INCOMPLETE] = "TM software rendezvous",
	};

	return name_find(names, COUNT(names), (unsigned int)status);
}

const char *ibv_wr_opcode_str(enum ibv_wr_opcode opcode); /* newer headers have it */

const char *ibv_wr_opcode_str(enum ibv_wr_opcode opcode)
{
	static const char *const names[] = {
		[IBV_WR_RDMA_WRITE] = "WRITE",
		[IBV_WR_RDMA_WRITE_WITH_IMM] = "WRITE with immediate",
		[IBV_WR_SEND] = "SEND",
		[IBV_WR_SEND_WITH_IMM] = "SEND with immediate",
		[IBV_WR_RDMA_READ] = "READ",
		[IBV_WR_ATOMIC_CMP_AND_SWP] = "compare and swap",
		[IBV_WR_ATOMIC_FETCH_AND_ADD] = "fetch and add",
		[IBV_WR_LOCAL_INV] = "local invalidation",
		[IBV_WR_BIND_MW] = "window binding",
		[IBV_WR_SEND_WITH_INV] = "SEND with invalidation",
		[IBV_WR_TSO] = "segmented frame",
		[IBV_WR_DRIVER1] = "of the device",
		[VB_WR_FLUSH] = "FLUSH",
		[IBV_WR_ATOMIC_WRITE] = "atomic WRITE",
	};

	return name_find(names, COUNT(names), (unsigned int)opcode);
}

/*
 * The rates: IBTA's code, the signalling rate in Mbit/s, and the multiple of 2.5 Gbit/s if the API
 * has one, else 0.
 */
static const struct {
	enum ibv_rate code;
	int mbps;
	int mult;
} rates[] = {
	{IBV_RATE_2_5_GBPS, 2500, 1},	{IBV_RATE_5_GBPS, 5000, 2},
	{IBV_RATE_10_GBPS, 10000, 4},	{IBV_RATE_14_GBPS, 14062, 0},
	{IBV_RATE_20_GBPS, 20000, 8},	{IBV_RATE_25_GBPS, 25781, 0},
	{IBV_RATE_28_GBPS, 28125, 11},	{IBV_RATE_30_GBPS, 30000, 12},
	{IBV_RATE_40_GBPS, 40000, 16},	{IBV_RATE_50_GBPS, 53125, 20},
	{IBV_RATE_56_GBPS, 56250, 0},	{IBV_RATE_60_GBPS, 60000, 24},
	{IBV_RATE_80_GBPS, 80000, 32},	{IBV_RATE_100_GBPS, 103125, 0},
	{IBV_RATE_112_GBPS, 112500, 0}, {IBV_RATE_120_GBPS, 120000, 48},
	{IBV_RATE_168_GBPS, 168750, 0}, {IBV_RATE_200_GBPS, 206250, 0},
	{IBV_RATE_300_GBPS, 309375, 0}, {IBV_RATE_400_GBPS, 425000, 160},
	{IBV_RATE_600_GBPS, 637500, 240}, {IBV_RATE_800_GBPS, 850000, 320},
	{IBV_RATE_1200_GBPS, 1275000, 480},
};

int ibv_rate_to_mult(enum ibv_rate rate)
{
	for (size_t i = 0; i < COUNT(rates); i++)
		if (rates[i].code == rate && rates[i].mult)
			return rates[i].mult;
	return -1;
}

enum ibv_rate mult_to_ibv_rate(int mult)
{
	for (size_t i = 0; i < COUNT(rates); i++)
		if (mult > 0 && rates[i].mult == mult)
			return rates[i].code;
	return IBV_RATE_MAX;
}

int ibv_rate_to_mbps(enum ibv_rate rate)
{
	for (size_t i = 0; i < COUNT(rates); i++)
		if (rates[i].code == rate)
			return rates[i].mbps;
	return -1;
}

enum ibv_rate mbps_to_ibv_rate(int mbps)
{
	for (size_t i = 0; i < COUNT(rates); i++)
		if (rates[i].mbps == mbps)
			return rates[i].code;
	return IBV_RATE_MAX;
}
