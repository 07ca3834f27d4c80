/* SPDX-License-Identifier: BSD-2-Clause */
#include "nic/way/watch/watch.h"

#include "base/probe.h"
#include "base/psn.h"
#include "nic/core/quiesce.h"
#include "nic/way/receive.h"
#include "wire/icrc.h"

/* The packet that this thread takes in at the moment, and has not told of. */
static __thread struct vb_watch *taken __attribute__((tls_model("initial-exec")));

static void tell(struct vb_nic *nic, const struct vb_record *record)
{
	const uint8_t *bth = record->piece[0].iov_base;

	if (record->link != VB_RECORD_ETHERNET)
		VB_PROBE(packet, record->sent,
			 vb_be32_get(bth + VB_BTH_DQPN_OFFSET) & VB_PSN_MASK, bth[0],
			 vb_be32_get(bth + VB_BTH_PSN_OFFSET) & VB_PSN_MASK,
			 vb_record_bytes(record), record->link);
	nic->host.capture->see(nic->host.arg, record);
}

/* --- what a packet belongs to --- */

static bool holds(const struct vb_wqe *wqe, uint32_t psn)
{
	return wqe->packets && (uint32_t)vb_psn_diff(psn, wqe->psn) < wqe->packets;
}

/* Finds the work request in the send queue that the PSN is of, from the last one on. */
static void wr_find(struct vb_record *record, const struct vb_qp *qp, uint32_t psn)
{
	const struct vb_req *req = &qp->req;
	uint32_t i = req->pos.next;

	if (i != req->tail)
		i++;
	while (i-- != req->head) {
		const struct vb_wqe *wqe = vb_sq_at(&req->sq, i);

		if (!holds(wqe, psn))
			continue;
		record->has_wr = true;
		record->wr_id = wqe->wr_id;
		return;
	}
}

static void sent_fill(struct vb_record *record, const struct vb_qp *qp, uint8_t opcode,
		      uint32_t psn)
{
	const struct vb_op_info *info = vb_op_info(opcode);

	record->sent = true;
	if (!qp)
		return;
	record->qpn = qp->ibv.qp.qp_num;
	if (info->name && !vb_kind_is_answer(info->kind))
		wr_find(record, qp, psn);
}

/* --- leaving by the wire --- */

static void flush(void);

void vb_watch_burst(struct vb_nic *nic, const struct vb_qp *qp, const struct vb_burst *burst)
{
	uint8_t *at = burst->iov->iov_base;

	flush();
	for (unsigned i = 0; i < burst->frames; i++, at += burst->frame_bytes) {
		bool last = i + 1 == burst->frames;
		struct vb_record record = {
			.link = VB_RECORD_UDP,
			.path = burst->path,
			.id = (uint16_t)(burst->first_id + i),
			.piece = {{at, last ? burst->last_bytes : burst->frame_bytes}},
		};
		uint32_t psn = vb_be32_get(at + VB_BTH_PSN_OFFSET) & VB_PSN_MASK;

		sent_fill(&record, qp, at[0], psn);
		/* The burst is not yet counted as sent. */
		record.again = record.has_wr && vb_psn_diff(psn, qp->req.top_psn) < 0;
		tell(nic, &record);
	}
}

/* --- in rings --- */

static uint32_t icrc_of(const struct vb_path *path, const uint8_t *head, uint32_t header,
			const void *payload, uint32_t bytes, const uint8_t *tail, uint32_t pad)
{
	uint32_t crc = vb_icrc_header(path, header + bytes + pad + VB_ICRC_BYTES, 0, head, header);

	return vb_icrc_finish(vb_icrc_add(vb_icrc_add(crc, payload, bytes), tail, pad));
}

/* Completes a packet of a ring to what it would be on a wire. */
static void frame_fill(const struct vb_nic *nic, struct vb_record *record, uint8_t *head,
		       uint8_t *tail, const struct vb_pkt *from, const void *payload,
		       uint32_t bytes)
{
	struct vb_pkt pkt = *from;
	uint32_t header;

	pkt.pad = vb_pkt_pad(bytes);
	header = (uint32_t)vb_pkt_emit(head, &pkt);
	memset(tail, 0, pkt.pad + VB_ICRC_BYTES);
	if (vb_nic_is_watched(nic))
		vb_icrc_put(tail + pkt.pad,
			    icrc_of(&record->path, head, header, payload, bytes, tail, pkt.pad));
	record->link = VB_RECORD_SHM;
	record->piece[0] = (struct iovec){head, header};
	record->piece[1] = (struct iovec){(void *)payload, bytes};
	record->piece[2] = (struct iovec){tail, pkt.pad + VB_ICRC_BYTES};
	if (!bytes) {
		record->piece[1] = record->piece[2];
		record->piece[2].iov_len = 0;
	}
}

/* The path from our QP, for a ring, which has none. Not every QP has one: then of our address. */
static struct vb_path path_of(const struct vb_nic *nic, const struct vb_qp *qp)
{
	static const uint8_t none[VB_GID_BYTES];
	struct vb_path path = {.hop_limit = 64};

	if (qp && qp->req.transport != VB_UD)
		path = qp->to.path;
	if (!memcmp(path.dst, none, sizeof(none))) {
		memcpy(path.src, nic->identity.gids[0].gid, VB_GID_BYTES);
		memcpy(path.dst, nic->identity.gids[0].gid, VB_GID_BYTES);
	}
	if (!path.sport)
		path.sport = 0xc000;
	return path;
}

void vb_watch_lane(struct vb_lane *lane, const struct vb_qp *qp, const struct vb_path *path,
		   const struct vb_pkt *pkt, uint32_t payload_bytes, bool again, uint64_t ns)
{
	const struct vb_op_info *info = vb_op_info(pkt->opcode);
	uint32_t head_bytes = info->header_bytes;
	struct vb_nic *nic = lane->peer->nic;
	uint8_t head[VB_PKT_HEADER_BYTES_MAX], tail[4 + VB_ICRC_BYTES];
	struct vb_record record = {.again = again, .ns = ns};

	flush();
	if (info->transport == VB_UD)
		head_bytes += VB_LANE_PATH_BYTES;
	record.path = info->transport == VB_UD && path ? *path : path_of(nic, qp);
	sent_fill(&record, qp, pkt->opcode, pkt->psn);
	frame_fill(nic, &record, head, tail, pkt,
		   vb_ring_published(&lane->tx, head_bytes, payload_bytes), payload_bytes);
	tell(nic, &record);
}

void vb_watch_ethernet(struct vb_nic *nic, const uint8_t *octets, uint32_t bytes, bool sent)
{
	const struct vb_record record = {
		.link = VB_RECORD_ETHERNET,
		.sent = sent,
		.piece = {{(void *)octets, bytes}},
	};

	flush();
	tell(nic, &record);
}

/* --- coming in --- */

static const char *fate_of(enum vb_stat stat)
{
	switch ((int)stat) {
	case VB_STAT_DUPLICATES:
		return "a repeated request";
	case VB_STAT_RNR_NAKS_SENT:
		return "not taken: no receive request, which an RNR NAK says";
	case VB_STAT_PSN_NAKS_SENT:
		return "not taken: out of sequence, which a NAK says";
	default:
		return vb_stat_is_drop(stat) ? vb_stat_name(stat) : NULL;
	}
}

static void came(struct vb_watch *watch)
{
	struct vb_record *record = &watch->record;
	enum vb_stat stat = (enum vb_stat)watch->batch->reason;

	record->fate = fate_of(stat);
	record->dropped = vb_stat_is_drop(stat);
	/* What was taken is the work request at hand, or was the last one. */
	if (!record->fate && watch->takes_recv) {
		record->has_wr = true;
		record->wr_id = watch->qp->resp.recv.wr_id;
	}
	tell(watch->batch->nic, record);
}

/* Tells of what this thread takes in: it leads to a packet that is sent. */
static void flush(void)
{
	struct vb_watch *watch = taken;

	taken = NULL;
	if (watch)
		came(watch);
}

/* Has the packet a QP of its own, which neither a group nor the connection manager is? */
static bool is_for_qp(const struct vb_pkt *pkt)
{
	return pkt->dqpn != VB_QPN_GROUP && pkt->dqpn != VB_QPN_GSI;
}

static void came_begin(struct vb_watch *watch, struct vb_batch *batch)
{
	*watch = (struct vb_watch){.batch = batch};
	batch->reason = 0;
	taken = watch;
}

static void came_fill(struct vb_watch *watch, const struct vb_pkt *pkt)
{
	const struct vb_op_info *info = vb_op_info(pkt->opcode);
	struct vb_record *record = &watch->record;
	struct vb_qp *qp = is_for_qp(pkt) ? vb_batch_find(watch->batch, pkt->dqpn) : NULL;

	record->qpn = pkt->dqpn;
	if (!qp)
		return;
	watch->qp = qp;
	vb_batch_hold(watch->batch, qp);
	if (vb_kind_is_answer(info->kind))
		wr_find(record, qp, pkt->psn);
	/* A DC target's contexts have receive requests of their own. */
	watch->takes_recv = info->transport != VB_DC &&
			    (info->kind == VB_K_SEND || (info->headers & VB_H_IMM));
}

void vb_watch_frame(struct vb_watch *watch, struct vb_batch *batch, const struct vb_frame *frame)
{
	struct vb_record *record = &watch->record;
	struct vb_pkt pkt;

	came_begin(watch, batch);
	record->link = VB_RECORD_UDP;
	record->path = frame->path;
	record->id = frame->id_hint;
	record->piece[0] = (struct iovec){(void *)frame->data, frame->bytes};
	/* A damaged frame keeps the hint. */
	vb_icrc_check(&frame->path, frame->data, frame->bytes, frame->id_hint, &record->id);
	if (vb_pkt_parse(&pkt, frame->data, frame->bytes) == VB_PARSE_OK)
		came_fill(watch, &pkt);
}

/* As path_of(), by the packet's direction. */
static struct vb_path path_from(const struct vb_nic *nic, const struct vb_qp *qp)
{
	struct vb_path there = path_of(nic, qp), path = there;

	memcpy(path.src, there.dst, VB_GID_BYTES);
	memcpy(path.dst, there.src, VB_GID_BYTES);
	return path;
}

void vb_watch_ring(struct vb_watch *watch, struct vb_batch *batch,
		   const struct vb_ring_frame *from)
{
	struct vb_record *record = &watch->record;
	const struct vb_op_info *info;
	struct vb_frame frame;
	struct vb_pkt pkt;

	came_begin(watch, batch);
	record->ns = vb_nic_now_ns(batch->nic);
	memset(&pkt, 0, sizeof(pkt));
	info = vb_pkt_parse_head(&pkt, from->octets, from->head_bytes);
	if (!info ||
	    (info->transport == VB_UD && !vb_lane_path(&frame, from, info->header_bytes))) {
		/* Not a packet: told of as it lies there. */
		record->link = VB_RECORD_SHM;
		record->path = path_from(batch->nic, NULL);
		record->piece[0] = (struct iovec){(void *)from->octets, from->head_bytes};
		return;
	}
	came_fill(watch, &pkt);
	if (info->transport == VB_UD)
		pkt.psn = 0; /* a ring has the flow label there */
	record->path = info->transport == VB_UD ? frame.path : path_from(batch->nic, watch->qp);
	if (!record->path.sport)
		record->path.sport = 0xc000;
	frame_fill(batch->nic, record, watch->head, watch->tail, &pkt, from->payload,
		   from->payload_bytes);
}

void vb_watch_end(struct vb_watch *watch)
{
	if (taken == watch)
		flush();
}

/* --- on and off --- */

static void slot_look(struct vb_slot *slot)
{
	for (unsigned i = 0; i < VB_INDICES; i++) {
		struct vb_qp *qp = atomic_load(&slot->qp[i]);

		if (!qp)
			continue;
		vb_lock_take(&qp->lock);
		/* What peers may do without a packet depends on it (qp_export.c). */
		vb_export_qp_locked(qp);
		vb_lock_drop(&qp->lock);
	}
}

void vb_nic_watch(struct vb_nic *nic, enum vb_watch_what what)
{
	atomic_store(&nic->watched, what);
	vb_peers_watch(nic);
	/* Destroying a QP takes the rx right before freeing it. */
	vb_lock_take(&nic->rx);
	for (unsigned i = 0; i < VB_SLOTS_PER_NIC_MAX; i++) {
		struct vb_slot *slot = atomic_load(&nic->leased.slot[i]);

		if (slot)
			slot_look(slot);
	}
	vb_lock_drop(&nic->rx);
	vb_nic_quiesce(nic);
}
