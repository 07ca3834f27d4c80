/* SPDX-License-Identifier: BSD-2-Clause */
#include "nic/core/names.h"

#include <stdio.h>

#include "base/check.h"
#include "base/text.h"
#include "engine/newer.h"

static const char *const states[] = {
	[IBV_QPS_RESET] = "RESET", [IBV_QPS_INIT] = "INIT", [IBV_QPS_RTR] = "RTR",
	[IBV_QPS_RTS] = "RTS",	   [IBV_QPS_SQD] = "SQD",   [IBV_QPS_SQE] = "SQE",
	[IBV_QPS_ERR] = "ERR",
};

#define OPCODE(name) [IBV_WR_##name] = "IBV_WR_" #name
static const char *const opcodes[] = {
	OPCODE(RDMA_WRITE),
	OPCODE(RDMA_WRITE_WITH_IMM),
	OPCODE(SEND),
	OPCODE(SEND_WITH_IMM),
	OPCODE(RDMA_READ),
	OPCODE(ATOMIC_CMP_AND_SWP),
	OPCODE(ATOMIC_FETCH_AND_ADD),
	OPCODE(LOCAL_INV),
	OPCODE(BIND_MW),
	OPCODE(SEND_WITH_INV),
	OPCODE(TSO),
	OPCODE(DRIVER1),
	OPCODE(ATOMIC_WRITE),
};

#define STATUS(name) [IBV_WC_##name] = "IBV_WC_" #name
static const char *const statuses[] = {
	STATUS(SUCCESS),
	STATUS(LOC_LEN_ERR),
	STATUS(LOC_QP_OP_ERR),
	STATUS(LOC_EEC_OP_ERR),
	STATUS(LOC_PROT_ERR),
	STATUS(WR_FLUSH_ERR),
	STATUS(MW_BIND_ERR),
	STATUS(BAD_RESP_ERR),
	STATUS(LOC_ACCESS_ERR),
	STATUS(REM_INV_REQ_ERR),
	STATUS(REM_ACCESS_ERR),
	STATUS(REM_OP_ERR),
	STATUS(RETRY_EXC_ERR),
	STATUS(RNR_RETRY_EXC_ERR),
	STATUS(LOC_RDD_VIOL_ERR),
	STATUS(REM_INV_RD_REQ_ERR),
	STATUS(REM_ABORT_ERR),
	STATUS(INV_EECN_ERR),
	STATUS(INV_EEC_STATE_ERR),
	STATUS(FATAL_ERR),
	STATUS(RESP_TIMEOUT_ERR),
	STATUS(GENERAL_ERR),
	STATUS(TM_ERR),
	STATUS(TM_RNDV_INCOMPLETE),
};

#define EVENT(name) [IBV_EVENT_##name] = "IBV_EVENT_" #name
static const char *const events[] = {
	EVENT(CQ_ERR),
	EVENT(QP_FATAL),
	EVENT(QP_REQ_ERR),
	EVENT(QP_ACCESS_ERR),
	EVENT(COMM_EST),
	EVENT(SQ_DRAINED),
	EVENT(PATH_MIG),
	EVENT(PATH_MIG_ERR),
	EVENT(DEVICE_FATAL),
	EVENT(PORT_ACTIVE),
	EVENT(PORT_ERR),
	EVENT(LID_CHANGE),
	EVENT(PKEY_CHANGE),
	EVENT(SM_CHANGE),
	EVENT(SRQ_ERR),
	EVENT(SRQ_LIMIT_REACHED),
	EVENT(QP_LAST_WQE_REACHED),
	EVENT(CLIENT_REREGISTER),
	EVENT(GID_CHANGE),
	EVENT(WQ_FATAL),
};

struct bit {
	unsigned bit;
	const char *name;
};

#define BIT(name) { name, #name }
static const struct bit attrs[] = {
	BIT(IBV_QP_STATE),	  BIT(IBV_QP_CUR_STATE),
	BIT(IBV_QP_ACCESS_FLAGS), BIT(IBV_QP_EN_SQD_ASYNC_NOTIFY),
	BIT(IBV_QP_PKEY_INDEX),	  BIT(IBV_QP_PORT),
	BIT(IBV_QP_QKEY),	  BIT(IBV_QP_AV),
	BIT(IBV_QP_PATH_MTU),	  BIT(IBV_QP_TIMEOUT),
	BIT(IBV_QP_RETRY_CNT),	  BIT(IBV_QP_RNR_RETRY),
	BIT(IBV_QP_RQ_PSN),	  BIT(IBV_QP_MAX_QP_RD_ATOMIC),
	BIT(IBV_QP_ALT_PATH),	  BIT(IBV_QP_MIN_RNR_TIMER),
	BIT(IBV_QP_SQ_PSN),	  BIT(IBV_QP_MAX_DEST_RD_ATOMIC),
	BIT(IBV_QP_PATH_MIG_STATE), BIT(IBV_QP_CAP),
	BIT(IBV_QP_DEST_QPN),	  BIT(IBV_QP_RATE_LIMIT),
};

static const struct bit rights[] = {
	BIT(IBV_ACCESS_LOCAL_WRITE),   BIT(IBV_ACCESS_REMOTE_WRITE),
	BIT(IBV_ACCESS_REMOTE_READ),   BIT(IBV_ACCESS_REMOTE_ATOMIC),
	BIT(IBV_ACCESS_MW_BIND),       BIT(IBV_ACCESS_ZERO_BASED),
	BIT(IBV_ACCESS_ON_DEMAND),     BIT(IBV_ACCESS_HUGETLB),
	{ VB_ACCESS_FLUSH_GLOBAL, "IBV_ACCESS_FLUSH_GLOBAL" },
	{ VB_ACCESS_FLUSH_PERSISTENT, "IBV_ACCESS_FLUSH_PERSISTENT" },
	BIT(IBV_ACCESS_RELAXED_ORDERING),
};

static const char *name_at(const char *const *names, size_t count, unsigned at, const char *unknown)
{
	return at < count && names[at] ? names[at] : unknown;
}

const char *vb_state_name(enum ibv_qp_state state)
{
	return name_at(states, VB_ARRAY_LEN(states), state, "?");
}

const char *vb_opcode_name(unsigned opcode)
{
	return name_at(opcodes, VB_ARRAY_LEN(opcodes), opcode, "an unknown opcode");
}

static const char *bits_names(char *chars, size_t bytes, unsigned mask, const struct bit *bit,
			      size_t count)
{
	struct vb_text text = vb_text_in(chars, bytes);
	char rest[16];

	for (size_t i = 0; i < count; i++, bit++) {
		if (!(mask & bit->bit))
			continue;
		vb_text_add(&text, text.used ? " | " : "", bit->name, NULL);
		mask &= ~bit->bit;
	}
	snprintf(rest, sizeof(rest), "0x%x", mask);
	if (mask || !text.used)
		vb_text_add(&text, text.used ? " | " : "", rest, NULL);
	return chars;
}

const char *vb_attr_mask_names(char *text, size_t bytes, int mask)
{
	return bits_names(text, bytes, (unsigned)mask, attrs, VB_ARRAY_LEN(attrs));
}

const char *vb_access_names(char *text, size_t bytes, unsigned access)
{
	return bits_names(text, bytes, access, rights, VB_ARRAY_LEN(rights));
}

const char *vb_status_name(enum ibv_wc_status status)
{
	return name_at(statuses, VB_ARRAY_LEN(statuses), status, "?");
}

const char *vb_event_name(enum ibv_event_type type)
{
	return name_at(events, VB_ARRAY_LEN(events), type, "?");
}
bool vb_event_is_of_qp(enum ibv_event_type type)
{
	static const enum ibv_event_type of_qp[] = {
		IBV_EVENT_QP_FATAL, IBV_EVENT_QP_REQ_ERR, IBV_EVENT_QP_ACCESS_ERR,
		IBV_EVENT_COMM_EST, IBV_EVENT_SQ_DRAINED, IBV_EVENT_PATH_MIG,
		IBV_EVENT_PATH_MIG_ERR, IBV_EVENT_QP_LAST_WQE_REACHED,
	};
	unsigned i = 0;

	while (i < VB_ARRAY_LEN(of_qp) && of_qp[i] != type)
		i++;
	return i < VB_ARRAY_LEN(of_qp);
}
