/* SPDX-License-Identifier: BSD-2-Clause */
#include "nic/data/explain.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/text.h"
#include "nic/core/found.h"
#include "nic/core/names.h"
#include "nic/way/peer.h"
#include "wire/grh.h"

static const char *kind_name(unsigned kind)
{
	/* What is carried out here, and makes no packet of its own. */
	static const char *const local[] = {
		[VB_K_BIND] = "binding of a window",
		[VB_K_TSO] = "TSO",
		[VB_K_LOCAL_INV] = "local invalidation",
		[VB_K_MKEY] = "configuration of an indirect key",
		[VB_K_MEMCPY] = "copy",
	};
	const char *words = kind < VB_ARRAY_LEN(local) ? local[kind] : NULL;

	words = words ? words : vb_kind_words(kind);
	return words ? words : "request";
}

/* 0: none, as a receive QP of XRC has before the SRQ of a request is found. */
static uint64_t pd_of(const struct ibv_pd *pd)
{
	return pd ? ((const struct vb_pd *)pd)->id : 0;
}

/* --- faults on purpose --- */

static __thread const char *by_rule __attribute__((tls_model("initial-exec")));

void vb_explain_by_rule(const char *rule)
{
	by_rule = rule;
}

/* If a rule did it, nothing else is to blame; if one has met the QP, it may be. */
static void blame_rule(const struct vb_qp *qp, struct vb_finding *finding)
{
	size_t used = strlen(finding->why);

	if (by_rule) {
		snprintf(finding->why, sizeof(finding->why), "by rule %s, not by a real fault",
			 by_rule);
		finding->look = "";
	} else if (qp->rule) {
		snprintf(finding->why + used, sizeof(finding->why) - used,
			 "; rule %s has met this QP", qp->rule);
	}
}

/* --- the peer --- */

/* " to QPN 0x12 at 10.0.0.2" */
static const char *peer_text(char text[80], const struct vb_qp *qp, const struct vb_wqe *wqe)
{
	bool is_ud = wqe && qp->req.transport == VB_UD;
	const struct vb_path *path = is_ud ? &wqe->ud.path : &qp->to.path;
	uint32_t dqpn = is_ud ? wqe->ud.dqpn : qp->to.dqpn;
	char address[VB_ADDRESS_BYTES];

	text[0] = 0;
	if (dqpn)
		snprintf(text, 80, " to QPN 0x%x at %s", dqpn, vb_gid_text(address, path->dst));
	return text;
}

static void set_peer_pid(const struct vb_qp *qp, struct vb_finding *finding)
{
	if (qp->to.peer && qp->to.peer->export)
		finding->pid = qp->to.peer->export->pid;
}

/* --- why --- */

static unsigned remote_rights(unsigned kind)
{
	switch (kind) {
	case VB_K_WRITE:
	case VB_K_ATOMIC_WRITE:
		return IBV_ACCESS_REMOTE_WRITE;
	case VB_K_READ_REQ:
		return IBV_ACCESS_REMOTE_READ;
	case VB_K_CMP_SWP:
	case VB_K_FETCH_ADD:
		return IBV_ACCESS_REMOTE_ATOMIC;
	default:
		return 0;
	}
}

static enum vb_why words_of(enum vb_why why, char words[VB_WHY_BYTES])
{
	snprintf(words, VB_WHY_BYTES, "%s", vb_why_words(why));
	return why;
}

/* The first SGE whose region does not allow it; all do: its memory is not mapped. */
static enum vb_why why_sges(const struct vb_qp *qp, const struct ibv_pd *pd,
			    const struct ibv_sge *sge, uint32_t count, unsigned rights,
			    char words[VB_WHY_BYTES])
{
	enum vb_why why = VB_WHY_LKEY_MEMORY;

	for (uint32_t i = 0; i < count; i++) {
		char name[32];
		const struct vb_access access = {
			.export = qp->nic->export, .pd = pd_of(pd), .va = sge[i].addr,
			.bytes = sge[i].length, .key = sge[i].lkey, .rights = rights,
			.what = name,
		};

		snprintf(name, sizeof(name), "sg_list[%u].lkey", i);
		why = vb_why_sge(&access, words);
		if (why != VB_WHY_LKEY_MEMORY)
			return why;
	}
	return why;
}

/* A peer of this host: its own table says what is wrong with the key. */
static enum vb_why why_remote(const struct vb_qp *qp, const struct vb_wqe *wqe,
			      char words[VB_WHY_BYTES])
{
	const struct vb_export *export = qp->to.peer ? qp->to.peer->export : NULL;
	unsigned rights = remote_rights(wqe->kind);
	const struct vb_export_qp *entry;
	struct vb_access access = { .export = export, .va = wqe->remote.va, .rights = rights,
				    .bytes = wqe->bytes, .key = wqe->remote.rkey, .what = "rkey" };
	enum vb_why why;

	if (!export || !rights)
		return words_of(VB_WHY_NAK_ACCESS, words);
	entry = vb_export_qp_find(export, qp->to.dqpn);
	/* It has failed by now, and so its entry may be gone. */
	access.pd = entry ? VB_EXPORT_GET(entry->pd)
			  : VB_EXPORT_GET(export->key[vb_key_place(access.key)].pd);
	why = vb_why_key(&access, words);
	/* Nothing here says whether its memory is mapped; its QP's rights and PD are as likely. */
	if (why != VB_WHY_RKEY_MEMORY)
		return why;
	snprintf(words, VB_WHY_BYTES,
		 "the peer's NAK: remote access error, though the region of rkey 0x%x allows it",
		 access.key);
	return VB_WHY_NAK_ACCESS;
}

static enum vb_why why_silent(const struct vb_qp *qp, char words[VB_WHY_BYTES])
{
	const struct vb_req *req = &qp->req;

	if (qp->to.peer && atomic_load(&qp->to.peer->left))
		return words_of(VB_WHY_GONE, words);
	snprintf(words, VB_WHY_BYTES,
		 "no acknowledgement of PSN 0x%x came (timeout %u, retry_cnt %u)", req->una_psn,
		 qp->attr.timeout, qp->attr.retry_cnt);
	return VB_WHY_SILENT;
}

static uint64_t bytes_of(const struct vb_wqe *wqe)
{
	uint64_t bytes = 0;

	if (!wqe->fault || vb_wqe_is_local(wqe))
		return wqe->bytes;
	for (uint32_t i = 0; i < wqe->sge_count; i++)
		bytes += wqe->sge[i].length;
	return bytes;
}

static enum vb_why why_length(const struct vb_qp *qp, const struct vb_wqe *wqe,
			      char words[VB_WHY_BYTES])
{
	if (vb_wqe_is_atomic(wqe) || wqe->kind == VB_K_ATOMIC_WRITE)
		snprintf(words, VB_WHY_BYTES,
			 "its SGEs have %" PRIu64 " octets, and an atomic has 8", bytes_of(wqe));
	else if (vb_qp_is(qp, VB_DATAGRAMS) && wqe->sge_count)
		snprintf(words, VB_WHY_BYTES,
			 "%" PRIu64 " octets are more than the path MTU, %u, which is what a "
			 "datagram has",
			 bytes_of(wqe), qp->req.mtu);
	else
		return words_of(VB_WHY_LOCAL_LENGTH, words);
	return VB_WHY_LOCAL_LENGTH;
}

/* Queued by decode_wrong(): a SEND whose opcode says what it was. */
static bool is_stand_in(const struct vb_wqe *wqe)
{
	return wqe->kind == VB_K_SEND && wqe->fault == IBV_WC_LOC_QP_OP_ERR;
}

static enum vb_why why_operation(const struct vb_qp *qp, const struct vb_wqe *wqe,
				 char words[VB_WHY_BYTES])
{
	if (is_stand_in(wqe) && wqe->wc_opcode != IBV_WC_SEND)
		snprintf(words, VB_WHY_BYTES, "a QP of type %s does not do this operation",
			 qp->service->name);
	else if (is_stand_in(wqe) && vb_qp_is(qp, VB_DATAGRAMS))
		snprintf(words, VB_WHY_BYTES,
			 "the address handle (wr.ud.ah) was made in another PD than the %s QP",
			 qp->service->name);
	else if (vb_wqe_is_fetch(wqe) && !qp->req.max_fetches)
		snprintf(words, VB_WHY_BYTES,
			 "the QP went to RTS with max_rd_atomic %u, so it can do no READs and "
			 "atomics",
			 qp->req.max_fetches);
	else
		return words_of(VB_WHY_LOCAL_OPERATION, words);
	return VB_WHY_LOCAL_OPERATION;
}

static const char *name_of(const struct vb_wqe *wqe)
{
	if (!is_stand_in(wqe))
		return kind_name(wqe->kind);
	switch (wqe->wc_opcode) {
	case IBV_WC_SEND:
		return kind_name(VB_K_SEND);
	case IBV_WC_RDMA_WRITE:
		return kind_name(VB_K_WRITE);
	case IBV_WC_RDMA_READ:
		return kind_name(VB_K_READ_REQ);
	case IBV_WC_COMP_SWAP:
		return kind_name(VB_K_CMP_SWP);
	case IBV_WC_FETCH_ADD:
		return kind_name(VB_K_FETCH_ADD);
	default:
		return "request";
	}
}

static enum vb_why why_of(const struct vb_qp *qp, const struct vb_wqe *wqe,
			  enum ibv_wc_status status, char words[VB_WHY_BYTES])
{
	bool fetches = vb_wqe_is_fetch(wqe);

	switch (status) {
	case IBV_WC_RETRY_EXC_ERR:
		return why_silent(qp, words);
	case IBV_WC_RNR_RETRY_EXC_ERR:
		snprintf(words, VB_WHY_BYTES, "the peer has no receive posted (RNR), and "
					      "rnr_retry %u is used up", qp->attr.rnr_retry);
		return VB_WHY_NOT_READY;
	case IBV_WC_REM_ACCESS_ERR:
		return why_remote(qp, wqe, words);
	case IBV_WC_REM_INV_REQ_ERR:
		return words_of(VB_WHY_NAK_REQUEST, words);
	case IBV_WC_REM_OP_ERR:
		return words_of(VB_WHY_NAK_OPERATION, words);
	case IBV_WC_BAD_RESP_ERR:
		return words_of(VB_WHY_BAD_ANSWER, words);
	case IBV_WC_LOC_PROT_ERR:
		if ((wqe->flags & IBV_SEND_INLINE) || vb_wqe_is_local(wqe))
			return words_of(VB_WHY_LKEY_UNKNOWN, words);
		return why_sges(qp, qp->ibv.qp.pd, wqe->sge, wqe->sge_count,
				fetches ? IBV_ACCESS_LOCAL_WRITE : 0, words);
	case IBV_WC_LOC_LEN_ERR:
		return why_length(qp, wqe, words);
	case IBV_WC_MW_BIND_ERR:
		return words_of(VB_WHY_BIND, words);
	default:
		return why_operation(qp, wqe, words);
	}
}

/* --- requester --- */

enum vb_why vb_explain_send(struct vb_qp *qp, const struct vb_wqe *wqe, uint32_t index,
			    enum ibv_wc_status status)
{
	struct vb_finding *finding;
	char peer[80], words[VB_WHY_BYTES], target[64] = "";
	enum vb_why why;

	if (status == IBV_WC_WR_FLUSH_ERR)
		return VB_WHY_FLUSHED;
	why = why_of(qp, wqe, status, words);
	finding = vb_finding_begin(qp->nic);
	if (!finding)
		return why;
	if (remote_rights(wqe->kind))
		snprintf(target, sizeof(target), ", 0x%" PRIx64 " by rkey 0x%x", wqe->remote.va,
			 wqe->remote.rkey);
	snprintf(finding->what, sizeof(finding->what),
		 "QPN 0x%x%s: %s (wr_id 0x%" PRIx64 ", %" PRIu64
		 " octets%s) failed, %s, vendor_err 0x%02x",
		 qp->ibv.qp.qp_num, peer_text(peer, qp, wqe), name_of(wqe), wqe->wr_id,
		 bytes_of(wqe), target, vb_status_name(status), why);
	snprintf(finding->why, sizeof(finding->why), "%s", words);
	/* These have words about the request; what holds for all has nothing to add. */
	if ((why != VB_WHY_LOCAL_LENGTH && why != VB_WHY_LOCAL_OPERATION) || !wqe->fault)
		finding->look = vb_why_look(why);
	blame_rule(qp, finding);
	finding->site = qp->sites ? qp->sites[index & qp->req.sq.mask] : NULL;
	set_peer_pid(qp, finding);
	vb_finding_end(qp->nic, finding);
	return why;
}

void vb_explain_flush(struct vb_qp *qp, const char *queue, uint32_t count)
{
	struct vb_finding *finding = count ? vb_finding_begin(qp->nic) : NULL;

	if (!finding)
		return;
	snprintf(finding->what, sizeof(finding->what),
		 "QPN 0x%x: %u %s requests flushed, IBV_WC_WR_FLUSH_ERR, vendor_err 0x%02x",
		 qp->ibv.qp.qp_num, count, queue, VB_WHY_FLUSHED);
	words_of(VB_WHY_FLUSHED, finding->why);
	finding->look = vb_why_look(VB_WHY_FLUSHED);
	blame_rule(qp, finding);
	vb_finding_end(qp->nic, finding);
}

/* --- responder --- */

static enum vb_why why_refused(const struct vb_qp *qp, const struct vb_pkt *pkt,
			       const struct vb_op_info *info, enum vb_verdict verdict,
			       char words[VB_WHY_BYTES])
{
	const struct vb_resp *resp = &qp->resp;
	const struct vb_recv *recv = &resp->recv;
	unsigned rights = remote_rights(info->kind);
	bool has_reth = info->kind != VB_K_WRITE || (info->pos & VB_P_FIRST);
	bool is_atomic = info->kind == VB_K_CMP_SWP || info->kind == VB_K_FETCH_ADD;
	uint32_t bytes = has_reth ? pkt->reth.bytes : resp->write.bytes;
	const struct vb_access access = {
		.export = qp->nic->export,
		.pd = pd_of(qp->ibv.qp.pd),
		.rights = rights,
		.key = has_reth ? pkt->reth.rkey : resp->write.rkey,
		.va = has_reth ? pkt->reth.va : resp->write.va,
		.bytes = is_atomic ? sizeof(uint64_t) : bytes,
		.what = "rkey",
	};
	char names[96];

	switch (verdict) {
	case VB_BAD_ACCESS:
		if (rights & ~resp->access) {
			snprintf(words, VB_WHY_BYTES, "qp_access_flags of this QP are without %s",
				 vb_access_names(names, sizeof(names), rights & ~resp->access));
			return VB_WHY_QP_RIGHT;
		}
		return vb_why_key(&access, words);
	case VB_TOO_LONG:
		snprintf(words, VB_WHY_BYTES,
			 "the message is longer than the receive request (wr_id 0x%" PRIx64
			 "), which has room for %" PRIu64 " octets",
			 recv->wr_id, (uint64_t)recv->bytes);
		return VB_WHY_TOO_LONG;
	case VB_BAD_RECV_SGE:
		return why_sges(qp, qp->ibv.qp.srq ? qp->ibv.qp.srq->pd : qp->ibv.qp.pd, recv->sge,
				recv->sge_count, IBV_ACCESS_LOCAL_WRITE, words);
	default:
		return words_of(vb_why_verdict(verdict), words);
	}
}

void vb_explain_refusal(struct vb_qp *qp, const struct vb_pkt *pkt, const struct vb_op_info *info,
			enum vb_verdict verdict)
{
	struct vb_finding *finding = vb_finding_begin(qp->nic);
	char address[VB_ADDRESS_BYTES];
	enum vb_why why;

	if (!finding)
		return;
	why = why_refused(qp, pkt, info, verdict, finding->why);
	snprintf(finding->what, sizeof(finding->what),
		 "QPN 0x%x refused %s %s of its peer's, QPN 0x%x at %s (PSN 0x%x, code 0x%02x)",
		 qp->ibv.qp.qp_num, kind_name(info->kind)[0] == 'a' ? "an" : "a",
		 kind_name(info->kind), qp->to.dqpn, vb_gid_text(address, qp->to.path.dst),
		 pkt->psn, why);
	finding->look = vb_why_look(why);
	blame_rule(qp, finding);
	set_peer_pid(qp, finding);
	vb_finding_end(qp->nic, finding);
}

/* --- drops that no sender is told of --- */

enum { DROPS_TOLD = 256 };

/* How often a QPN has met a reason; what there is no room for is told no more. Any thread. */
static uint64_t drop_count(uint32_t qpn, enum vb_stat reason)
{
	static struct {
		_Atomic uint64_t name, count;
	} told[DROPS_TOLD];
	uint64_t name = (uint64_t)reason << 32 | qpn;

	for (uint32_t i = 0; i < DROPS_TOLD; i++) {
		uint64_t is = 0;
		uint32_t place = (qpn + i) % DROPS_TOLD;

		if (atomic_compare_exchange_strong(&told[place].name, &is, name) || is == name)
			return atomic_fetch_add(&told[place].count, 1) + 1;
	}
	return 0;
}

static bool is_power_of_ten(uint64_t count)
{
	while (count && count % 10 == 0)
		count /= 10;
	return count == 1;
}

/* "QPN 0x22 dropped a datagram of 64 octets from QPN 0x11 at 10.0.0.1"; NULL: it is not told. */
static struct vb_finding *drop_begin(const struct vb_nic *nic, const struct vb_qp *qp,
				     const struct vb_path *from, const struct vb_pkt *pkt,
				     const struct vb_op_info *info, enum vb_stat reason)
{
	struct vb_finding *finding = vb_finding_begin(nic);
	uint64_t count = finding ? drop_count(pkt->dqpn, reason) : 0;
	bool is_ud = info->transport == VB_UD;
	char address[VB_ADDRESS_BYTES], sender[96] = "", so_far[48] = "";
	const uint8_t *gid = from ? from->src : qp && !is_ud ? qp->to.path.dst : NULL;
	uint32_t sqpn = is_ud ? pkt->sqpn : qp ? qp->to.dqpn : 0;

	if (!is_power_of_ten(count)) {
		free(finding);
		return NULL;
	}
	if (sqpn && reason != VB_STAT_DROP_STRANGER)
		snprintf(sender, sizeof(sender), " from QPN 0x%x", sqpn);
	if (gid)
		snprintf(sender + strlen(sender), sizeof(sender) - strlen(sender), "%s at %s",
			 *sender ? "" : " from a QP", vb_gid_text(address, gid));
	if (count > 1)
		snprintf(so_far, sizeof(so_far), " (%" PRIu64 " times by now)", count);
	snprintf(finding->what, sizeof(finding->what), "QPN 0x%x dropped a %s of %u octets%s%s",
		 pkt->dqpn, is_ud ? "datagram" : kind_name(info->kind), pkt->payload_bytes, sender,
		 so_far);
	return finding;
}

static void drop_end(const struct vb_nic *nic, const struct vb_qp *qp, struct vb_finding *finding)
{
	if (qp)
		blame_rule(qp, finding);
	vb_finding_end(nic, finding);
}

void vb_explain_lost(struct vb_qp *qp, const struct vb_pkt *pkt, const struct vb_op_info *info,
		     enum vb_verdict verdict)
{
	static const enum vb_stat reasons[VB_VERDICTS] = {
		[VB_NO_RECV] = VB_STAT_DROP_NO_RECV,
		[VB_TOO_LONG] = VB_STAT_DROP_LENGTH,
		[VB_BAD_LENGTH] = VB_STAT_DROP_LENGTH,
		[VB_BAD_ACCESS] = VB_STAT_DROP_ACCESS,
		[VB_BAD_MEMORY] = VB_STAT_DROP_ACCESS,
	};
	struct vb_finding *finding;
	struct vb_text why;

	/* What continues a message that was dropped, or lost on its way, is no news. */
	if (!reasons[verdict])
		return;
	finding = drop_begin(qp->nic, qp, NULL, pkt, info, reasons[verdict]);
	if (!finding)
		return;
	if (verdict == VB_NO_RECV) {
		why = vb_text_in(finding->why, sizeof(finding->why));
		vb_text_add(&why, "no receive request is posted", NULL);
		finding->look = "post more receives, and sooner: its sender is not told of it";
	} else if (verdict == VB_TOO_LONG && info->transport == VB_UD) {
		snprintf(finding->why, sizeof(finding->why),
			 "the next receive request has no room for %u octets, 40 of which are "
			 "the GRH's", VB_GRH_BYTES + pkt->payload_bytes);
		finding->look = vb_why_look(VB_WHY_TOO_LONG);
	} else {
		finding->look = vb_why_look(why_refused(qp, pkt, info, verdict, finding->why));
	}
	drop_end(qp->nic, qp, finding);
}

/* Why a packet does not come as far as a responder. */
static const struct {
	enum vb_stat reason;
	const char *words, *look;
} strays[] = {
	{ VB_STAT_DROP_NO_QP, "no QP has this number",
	  "compare the sender's destination QPN with qp_num; was the QP destroyed?" },
	{ VB_STAT_DROP_STATE, "the QP is not in RTR, RTS, SQD or SQE",
	  "move it to RTR before its peer sends; after a failure it is in ERR" },
	{ VB_STAT_DROP_TRANSPORT, "the QP is of another type",
	  "create both QPs with the same qp_type" },
	{ VB_STAT_DROP_STRANGER, "the QP is connected to somebody else",
	  "dest_qp_num and address of both ends have to name each other" },
	{ VB_STAT_DROP_PKEY, "the P_Key is of another partition",
	  "choose the pkey_index of the same partition at both ends" },
	{ VB_STAT_DROP_BRAKE, "it follows WRITEs with wrong keys too soon",
	  "the lines before say what was wrong with the keys" },
};

void vb_explain_drop(struct vb_nic *nic, const struct vb_qp *qp, const struct vb_path *from,
		     const struct vb_pkt *pkt, const struct vb_op_info *info, enum vb_stat reason)
{
	struct vb_finding *finding;
	struct vb_text why;

	if ((info->transport != VB_UC && info->transport != VB_UD) ||
	    !(finding = drop_begin(nic, qp, from, pkt, info, reason)))
		return;
	for (unsigned i = 0; i < VB_ARRAY_LEN(strays); i++) {
		if (strays[i].reason != reason)
			continue;
		why = vb_text_in(finding->why, sizeof(finding->why));
		vb_text_add(&why, strays[i].words, NULL);
		finding->look = strays[i].look;
	}
	if (reason == VB_STAT_DROP_QKEY) {
		snprintf(finding->why, sizeof(finding->why), "its Q_Key 0x%x is not the QP's, 0x%x",
			 pkt->qkey, qp->attr.qkey);
		finding->look = "set wr.ud.remote_qkey to the qkey of the receiving QP";
	}
	drop_end(nic, qp, finding);
}

/* --- where it was posted --- */

void vb_explain_site(struct vb_qp *qp, uint32_t count, const void *site)
{
	uint32_t mask = qp->req.sq.mask;

	if (!qp->sites || !mask)
		return;
	for (uint32_t i = 0; i < count && i <= mask; i++)
		qp->sites[(qp->req.tail + i) & mask] = site;
}
