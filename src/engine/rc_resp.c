/* SPDX-License-Identifier: BSD-2-Clause */

/* The RC responder (IBA 9.7.4): order, duplicates, READs, atomics, and answers. */

#include "engine/rc_resp.h"

#include "base/check.h"
#include "base/psn.h"
#include "engine/host.h"
#include "engine/newer.h"

static const struct vb_resp_result nothing = { VB_RESP_NOTHING, VB_OK };
static const struct vb_resp_result owes = { VB_RESP_OWES, VB_OK };
static const struct vb_resp_result duplicate = { VB_RESP_DUPLICATE, VB_OK };

static struct vb_resp_result dropped(enum vb_verdict why)
{
	return (struct vb_resp_result){ VB_RESP_DROPPED, why };
}

static void owe_nak(struct vb_resp *resp, uint8_t syndrome)
{
	resp->nak_owed = true;
	resp->nak_sent = true;
	resp->nak_syndrome = syndrome;
	resp->ack_owed = false;
}

void vb_rc_ask_again(struct vb_resp *resp)
{
	owe_nak(resp, vb_aeth_nak(VB_NAK_PSN));
}

static struct vb_resource *resource_at(const struct vb_resp *resp, uint64_t index)
{
	return &resp->ring[index % resp->resources_max];
}

struct vb_resource *vb_resp_ring_replace(struct vb_resp *resp, struct vb_resource *ring,
					 uint32_t max)
{
	struct vb_resource *old = resp->ring;
	uint64_t kept = vb_min_u64(resp->tail, vb_min_u64(resp->resources_max, max));

	vb_check(vb_resp_ring_fits(resp, max));
	for (uint64_t i = resp->tail - kept; i != resp->tail; i++)
		ring[i % max] = *resource_at(resp, i);
	resp->ring = ring;
	resp->resources_max = max;
	return old;
}

static enum vb_verdict read_request(struct vb_resp *resp, const struct vb_pkt *pkt,
				    struct vb_resource *out)
{
	if (!(resp->access & IBV_ACCESS_REMOTE_READ))
		return VB_BAD_ACCESS;
	if (pkt->reth.bytes > 1u << 31)
		return VB_BAD_LENGTH;
	if (pkt->reth.bytes) {
		enum vb_verdict verdict =
			vb_host_remote_check(resp, pkt->reth.rkey, pkt->reth.va, pkt->reth.bytes,
					     IBV_ACCESS_REMOTE_READ);

		if (verdict != VB_OK)
			return verdict;
	}
	*out = (struct vb_resource){
		.owed = true,
		.kind = VB_K_READ_REQ,
		.psn = pkt->psn,
		.packets = vb_packets(pkt->reth.bytes, resp->mtu),
		.rkey = pkt->reth.rkey,
		.va = pkt->reth.va,
		.bytes = pkt->reth.bytes,
	};
	return VB_OK;
}

static enum vb_verdict atomic_request(struct vb_resp *resp, const struct vb_pkt *pkt,
				      const struct vb_op_info *info, struct vb_resource *out)
{
	uint64_t orig;
	enum vb_verdict verdict;

	if (!(resp->access & IBV_ACCESS_REMOTE_ATOMIC))
		return VB_BAD_ACCESS;
	if (pkt->reth.va & 7)
		return VB_MISALIGNED;
	verdict = vb_host_remote_atomic(resp, pkt, (enum vb_kind)info->kind, &orig);
	if (verdict != VB_OK)
		return verdict;
	*out = (struct vb_resource){
		.owed = true, .psn = pkt->psn, .packets = 1, .kind = info->kind, .orig = orig
	};
	return VB_OK;
}

/* Release 1.6: eight aligned octets that become visible at once; requires the right to WRITE. */
static enum vb_verdict atomic_write(struct vb_resp *resp, const struct vb_pkt *pkt,
				    struct vb_resource *out)
{
	enum vb_verdict verdict;
	uint64_t none;

	if (!(resp->access & IBV_ACCESS_REMOTE_WRITE))
		return VB_BAD_ACCESS;
	if (pkt->reth.bytes != sizeof(uint64_t) || pkt->payload_bytes != sizeof(uint64_t))
		return VB_BAD_LENGTH;
	if (pkt->reth.va & 7)
		return VB_MISALIGNED;
	verdict = vb_host_remote_atomic(resp, pkt, VB_K_ATOMIC_WRITE, &none);
	*out = (struct vb_resource){
		.owed = true, .psn = pkt->psn, .packets = 1, .kind = VB_K_ATOMIC_WRITE
	};
	return verdict;
}

/*
 * Release 1.6: answered when all before it is visible as requested. For GLOBAL that means to all;
 * PERSISTENT is a right that no region of ours grants.
 */
static enum vb_verdict flush(struct vb_resp *resp, const struct vb_pkt *pkt,
			     struct vb_resource *out)
{
	unsigned access = (pkt->flush.type & VB_FLUSH_GLOBAL ? VB_ACCESS_FLUSH_GLOBAL : 0) |
			  (pkt->flush.type & VB_FLUSH_PERSISTENT ? VB_ACCESS_FLUSH_PERSISTENT : 0);
	enum vb_verdict verdict;

	if (!access || (pkt->flush.type & ~(VB_FLUSH_GLOBAL | VB_FLUSH_PERSISTENT)) ||
	    pkt->flush.level > VB_FLUSH_MR)
		return VB_BAD_OPCODE;
	if ((resp->access & access) != access)
		return VB_BAD_ACCESS;
	verdict = vb_host_flush(resp, pkt, access);
	*out = (struct vb_resource){
		.owed = true, .psn = pkt->psn, .packets = 1, .kind = VB_K_FLUSH
	};
	return verdict;
}

/* An expected request that is answered with data. */
static enum vb_verdict fetch(struct vb_resp *resp, const struct vb_pkt *pkt,
			     const struct vb_op_info *info)
{
	struct vb_resource res;
	enum vb_verdict verdict;

	if (resp->message != VB_M_NONE)
		return VB_BAD_SEQUENCE;
	if (resp->tail - resp->fresh >= resp->resources_max)
		return VB_BAD_RESOURCES;
	if (info->kind == VB_K_READ_REQ)
		verdict = read_request(resp, pkt, &res);
	else if (info->kind == VB_K_ATOMIC_WRITE)
		verdict = atomic_write(resp, pkt, &res);
	else if (info->kind == VB_K_FLUSH)
		verdict = flush(resp, pkt, &res);
	else
		verdict = atomic_request(resp, pkt, info, &res);
	if (verdict != VB_OK)
		return verdict;
	resp->msn = vb_psn_add(resp->msn, 1);
	res.msn = resp->msn;
	/* A peer that asks for more has received the oldest answer: it need not be repeated. */
	if (resp->tail - resp->done == resp->resources_max)
		resp->done++;
	*resource_at(resp, resp->tail++) = res;
	resp->epsn = vb_psn_add(resp->epsn, res.packets);
	resp->ack_owed = false; /* the answer acknowledges what came before it */
	return VB_OK;
}

/* Finds the kept resource that a PSN belongs to. Returns false if there is none. */
static bool resource_find(const struct vb_resp *resp, uint32_t psn, uint64_t *index)
{
	for (uint64_t n = 0; n < resp->resources_max && n < resp->tail; n++) {
		const struct vb_resource *res = resource_at(resp, resp->tail - 1 - n);

		*index = resp->tail - 1 - n;
		if (((psn - res->psn) & VB_PSN_MASK) < res->packets)
			return true;
	}
	return false;
}

/* Answers a resource from this packet on, in its turn. */
static void answer_again(struct vb_resp *resp, uint64_t index, uint32_t from)
{
	struct vb_resource *res = resource_at(resp, index);

	if (index > resp->done || (index == resp->done && index != resp->tail)) {
		if (res->owed && res->sent <= from)
			return; /* still to be sent */
	} else {
		/* Those in between were answered, and are not requested again. */
		for (uint64_t i = index + 1; i < resp->done; i++)
			resource_at(resp, i)->owed = false;
		if (resp->done != resp->tail)
			resource_at(resp, resp->done)->sent = resource_at(resp, resp->done)->from;
		resp->done = index;
	}
	res->owed = true;
	res->from = res->sent = from;
}

/* Does it ask for the rest of this READ, from some packet on? (IBA 9.7.5.1.3) */
static bool is_rest_of(const struct vb_resource *res, const struct vb_pkt *pkt, uint32_t mtu)
{
	uint32_t offset = ((pkt->psn - res->psn) & VB_PSN_MASK) * mtu;

	return pkt->reth.rkey == res->rkey && pkt->reth.va == res->va + offset &&
	       pkt->reth.bytes == res->bytes - offset;
}

/*
 * IBA C9-105 and following: a duplicate takes effect once but is answered again. A READ fetches its
 * data anew; an atomic is answered from the resource, never executed again (9.7.5.1.4).
 */
static struct vb_resp_result seen_before(struct vb_resp *resp, const struct vb_pkt *pkt,
					 const struct vb_op_info *info)
{
	bool read = info->kind == VB_K_READ_REQ;
	uint64_t index;

	if (info->kind == VB_K_SEND || info->kind == VB_K_WRITE) {
		/* Even while a NAK stands, an ACK is right: all before it did arrive. */
		resp->ack_owed = true;
		return duplicate;
	}
	if (!resource_find(resp, pkt->psn, &index) ||
	    resource_at(resp, index)->kind != info->kind ||
	    (read && !is_rest_of(resource_at(resp, index), pkt, resp->mtu)))
		return dropped(VB_BAD_SEQUENCE);
	answer_again(resp, index, (pkt->psn - resource_at(resp, index)->psn) & VB_PSN_MASK);
	return duplicate;
}

static struct vb_resp_result refuse(struct vb_resp *resp, const struct vb_pkt *pkt,
				    const struct vb_op_info *info, enum vb_verdict verdict)
{
	const struct vb_verdict_row *row = &vb_verdict_rows[verdict];

	if (row->acked == VB_FAULT_B) {
		owe_nak(resp, vb_aeth_rnr(resp->min_rnr_timer));
		return (struct vb_resp_result){ VB_RESP_OWES, verdict };
	}
	if (row->acked != VB_FAULT_J)
		owe_nak(resp, vb_aeth_nak(row->code));
	resp->broken = true;
	resp->verdict = verdict;
	vb_host_refused(resp, pkt, info, verdict);
	if (resp->has_recv) {
		resp->has_recv = false;
		vb_host_recv_done(resp, pkt, info, resp->offset, row->recv_status);
	}
	return (struct vb_resp_result){ VB_RESP_FAILED, verdict };
}

static bool is_request(const struct vb_op_info *info)
{
	switch (info->kind) {
	case VB_K_SEND:
	case VB_K_WRITE:
	case VB_K_READ_REQ:
	case VB_K_CMP_SWP:
	case VB_K_FETCH_ADD:
	case VB_K_ATOMIC_WRITE:
	case VB_K_FLUSH:
		return true;
	default:
		return false;
	}
}

/* In its turn it is refused with that verdict, unless that is VB_OK. */
static inline struct vb_resp_result take(struct vb_resp *resp, const struct vb_pkt *pkt,
					 const struct vb_op_info *info, enum vb_verdict refusal)
{
	int32_t ahead = vb_psn_diff(pkt->psn, resp->epsn);
	enum vb_verdict verdict;

	if (resp->broken)
		return dropped(VB_BAD_SEQUENCE);
	if (ahead < 0)
		return seen_before(resp, pkt, info);
	if (ahead > 0) {
		if (resp->nak_sent)
			return dropped(VB_BAD_SEQUENCE);
		owe_nak(resp, vb_aeth_nak(VB_NAK_PSN));
		return (struct vb_resp_result){ VB_RESP_OWES, VB_BAD_SEQUENCE };
	}
	resp->nak_sent = false;
	resp->nak_owed = false;
	if (refusal != VB_OK)
		return refuse(resp, pkt, info, refusal);
	if (!is_request(info))
		return refuse(resp, pkt, info, VB_BAD_OPCODE);
	if (info->kind != VB_K_SEND && info->kind != VB_K_WRITE) {
		verdict = fetch(resp, pkt, info);
		return verdict == VB_OK ? owes : refuse(resp, pkt, info, verdict);
	}
	verdict = vb_resp_data(resp, pkt, info);
	if (verdict != VB_OK)
		return refuse(resp, pkt, info, verdict);
	resp->epsn = vb_psn_add(resp->epsn, 1);
	if (pkt->ackreq)
		resp->ack_owed = true;
	return resp->ack_owed ? owes : nothing;
}

struct vb_resp_result vb_rc_request(struct vb_resp *resp, const struct vb_pkt *pkt,
				    const struct vb_op_info *info)
{
	return take(resp, pkt, info, VB_OK);
}

struct vb_resp_result vb_rc_refuse(struct vb_resp *resp, const struct vb_pkt *pkt,
				   const struct vb_op_info *info, enum vb_verdict verdict)
{
	return take(resp, pkt, info, verdict);
}

struct vb_resp_pos vb_resp_pos_get(const struct vb_resp *resp)
{
	return (struct vb_resp_pos){
		.done = resp->done,
		.fresh = resp->fresh,
		.sent = resp->done != resp->tail ? resource_at(resp, resp->done)->sent : 0,
		.ack_owed = resp->ack_owed,
		.nak_owed = resp->nak_owed,
	};
}

void vb_resp_pos_put(struct vb_resp *resp, const struct vb_resp_pos *pos)
{
	/* Those passed since are still marked as owed, but none of their packets has left. */
	for (uint64_t i = pos->done; i != resp->tail && i <= resp->done; i++)
		resource_at(resp, i)->sent =
			i == pos->done ? pos->sent : resource_at(resp, i)->from;
	resp->done = pos->done;
	resp->fresh = pos->fresh;
	resp->ack_owed = pos->ack_owed;
	resp->nak_owed = pos->nak_owed;
}

static uint8_t ack_syndrome(struct vb_resp *resp)
{
	uint32_t count = vb_host_recv_count(resp);

	return vb_aeth_ack(count == UINT32_MAX ? VB_CREDIT_CODE_UNLIMITED
					       : vb_credit_encode(count));
}

/* The next packet of a resource's answer; true if it was the last. */
static bool answer(struct vb_resp *resp, struct vb_resource *res, struct vb_pkt *pkt, bool *data)
{
	uint32_t i = res->sent++;
	uint32_t offset = i * resp->mtu;
	unsigned pos = (i == res->from ? VB_P_FIRST : 0) |
		       (res->sent == res->packets ? VB_P_LAST : 0);

	*data = res->kind == VB_K_READ_REQ;
	pkt->psn = vb_psn_add(res->psn, i);
	pkt->aeth.msn = res->msn;
	pkt->aeth.syndrome = ack_syndrome(resp);
	if (res->kind == VB_K_CMP_SWP || res->kind == VB_K_FETCH_ADD) {
		pkt->opcode = vb_op_find(resp->transport, VB_K_ATOMIC_ACK, VB_P_ONLY, 0);
		pkt->atomic.orig = res->orig;
	} else if (res->kind != VB_K_READ_REQ) {
		pkt->opcode = vb_op_find(resp->transport, VB_K_READ_RESP, VB_P_ONLY, 0);
	} else {
		pkt->opcode = vb_op_find(resp->transport, VB_K_READ_RESP, pos, 0);
		pkt->reth.rkey = res->rkey;
		pkt->reth.va = res->va + offset;
		pkt->reth.bytes = (uint32_t)vb_min_u64(resp->mtu, res->bytes - offset);
	}
	return res->sent == res->packets;
}

bool vb_rc_response(struct vb_resp *resp, struct vb_pkt *pkt, bool *data)
{
	*data = false;
	while (resp->done != resp->tail && !resource_at(resp, resp->done)->owed)
		resp->done++;
	if (resp->done != resp->tail) {
		if (answer(resp, resource_at(resp, resp->done), pkt, data))
			resp->done++;
		if (resp->fresh < resp->done)
			resp->fresh = resp->done;
		return true;
	}
	if (!resp->ack_owed && !resp->nak_owed)
		return false;
	pkt->opcode = vb_op_find(resp->transport, VB_K_ACK, VB_P_ONLY, 0);
	pkt->aeth.msn = resp->msn;
	if (resp->nak_owed) {
		pkt->psn = resp->epsn;
		pkt->aeth.syndrome = resp->nak_syndrome;
	} else {
		pkt->psn = vb_psn_add(resp->epsn, VB_PSN_MASK);
		pkt->aeth.syndrome = ack_syndrome(resp);
	}
	resp->ack_owed = resp->nak_owed = false;
	return true;
}

uint32_t vb_resp_run(const struct vb_resp *resp)
{
	const struct vb_resource *res;

	if (resp->done == resp->tail)
		return 0;
	res = resource_at(resp, resp->done);
	if (!res->owed || res->kind != VB_K_READ_REQ || res->sent == res->from)
		return 0;
	return res->packets - 1 - res->sent;
}

void vb_resp_skip(struct vb_resp *resp, uint32_t packets)
{
	struct vb_resource *res = resource_at(resp, resp->done);

	vb_check(packets <= vb_resp_run(resp));
	res->sent += packets;
}

uint32_t vb_rc_ack(struct vb_resp *resp, uint32_t *psn)
{
	*psn = vb_psn_add(resp->epsn, VB_PSN_MASK);
	resp->ack_owed = false;
	return (uint32_t)ack_syndrome(resp) << 24 | resp->msn;
}

bool vb_rc_response_fault(struct vb_resp *resp, const struct vb_resp_pos *before,
			  const struct vb_pkt *pkt)
{
	uint64_t index;

	if (resource_find(resp, pkt->psn, &index) && index < before->fresh) {
		resource_at(resp, index)->owed = false;
		return false;
	}
	/* The answer cannot be given: everything from this PSN on is refused. */
	resp->epsn = pkt->psn;
	resp->done = resp->fresh = resp->tail;
	owe_nak(resp, vb_aeth_nak(VB_NAK_OP));
	resp->broken = true;
	return true;
}
