/* SPDX-License-Identifier: BSD-2-Clause */

/* QPs of SRD: which stream a message goes by, and what becomes of the streams. */

#include "nic/service/srd/srd.h"

#include <errno.h>
#include <stdlib.h>

#include "base/check.h"
#include "base/prf.h"
#include "base/prng.h"
#include "base/refusal.h"
#include "nic/core/quiesce.h"
#include "nic/data/acks.h"
#include "nic/data/qp_extra.h"
#include "nic/queue/rq.h"
#include "nic/service/srd/srd_stream.h"
#include "nic/way/peer.h"
#include "nic/way/way.h"

/* Of the messages that could overtake one, one in so many is held back until they have left. */
#define LATE_ONE_IN 4u

/* --- making and ending --- */

static bool admits(const struct vb_qp *target, const struct vb_pkt *pkt)
{
	return pkt->srd.qkey == target->attr.qkey;
}

static const struct vb_dct_kind dct_kind = {
	.context = &vb_service_srd_context,
	.connect = VB_K_CONNECT_SRD,
	.contexts_max = VB_SRD_CONTEXTS_MAX,
	.admits = admits,
};

int vb_srd_make(struct vb_qp *qp, const struct vb_qp_extra *extra)
{
	struct vb_srd *srd = calloc(1, sizeof(*srd));

	if (!srd)
		return ENOMEM;
	srd->dct.unsolicited = extra->dc->unsolicited;
	vb_lock_init(&srd->srq.take_lock, VB_RANK_SRQ);
	srd->srq.ibv.context = qp->ibv.qp.context;
	srd->srq.ibv.pd = qp->ibv.qp.pd;
	srd->dct.srq = &srd->srq.ibv;
	atomic_store(&qp->nic->special.nobody, vb_dc_nobody);
	return vb_dct_begin(qp, &srd->dct, &dct_kind);
}

/* Nothing finds it any more. */
static void stream_leave(struct vb_qp *qp)
{
	vb_dc_initiator_leave(qp);
	vb_qp_silence(qp);
	vb_lock_take(&qp->lock);
	vb_qp_unbind_locked(qp);
	vb_lock_drop(&qp->lock);
}

void vb_srd_leave(struct vb_qp *qp)
{
	struct vb_srd *srd = vb_srd_of(qp);

	for (unsigned i = 0; i < srd->count; i++) {
		vb_way_finish(&srd->stream[i]->qp);
		vb_nic_qp_remove(qp->nic, srd->stream[i]->qp.ibv.qp.qp_num);
	}
	/* A thread that found one of them holds a right until done. */
	vb_nic_quiesce(qp->nic);
	for (unsigned i = 0; i < srd->count; i++)
		stream_leave(&srd->stream[i]->qp);
	vb_dct_leave(qp);
}

void vb_srd_unmake(struct vb_qp *qp)
{
	struct vb_srd *srd = vb_srd_of(qp);

	if (srd) {
		for (unsigned i = 0; i < srd->count; i++)
			vb_srd_stream_free(srd->stream[i]);
		vb_lock_fini(&srd->srq.take_lock);
	}
	vb_dct_unmake(qp);
}

/* What completed meanwhile goes, too: its places are those of the send queue to come. */
void vb_srd_reset(struct vb_qp *qp)
{
	struct vb_srd *srd = vb_srd_of(qp);

	for (unsigned i = 0; i < srd->count; i++)
		vb_srd_stream_reset(srd->stream[i]);
	vb_dct_close(qp, false);
	srd->posted = srd->released = 0;
	vb_cq_purge((struct vb_cq *)qp->ibv.qp.send_cq, qp->ibv.qp.qp_num);
	vb_cq_purge((struct vb_cq *)qp->ibv.qp.recv_cq, qp->ibv.qp.qp_num);
}

void vb_srd_fail(struct vb_qp *qp)
{
	struct vb_srd *srd = vb_srd_of(qp);

	for (unsigned i = 0; i < srd->count; i++) {
		struct vb_qp *stream = &srd->stream[i]->qp;

		vb_lock_take(&stream->lock);
		if (vb_qp_state(stream) != IBV_QPS_RESET)
			vb_qp_fail_locked(stream);
		vb_lock_drop(&stream->lock);
	}
	vb_dct_close(qp, true);
}

void vb_srd_take(struct vb_batch *batch, struct vb_qp *qp, const struct vb_from *from,
		 const struct vb_pkt *pkt, const struct vb_op_info *info)
{
	if (info->kind == VB_K_CONNECT_SRD && vb_qp_state(qp) == IBV_QPS_ERR)
		vb_dc_nobody(batch, from, pkt);
	vb_dct_take(batch, qp, from, pkt, info);
}

/* --- which stream; QP locked --- */

static uint32_t below(struct vb_srd *srd, uint32_t bound)
{
	return (uint32_t)((vb_prng_next(&srd->draws) >> 32) * bound >> 32);
}

static uint32_t bucket_of(const struct vb_dc_to *to)
{
	uint32_t h = to->dctn * 2654435761u;

	for (unsigned i = 0; i < VB_GID_BYTES; i++)
		h = (h ^ to->path.dst[i]) * 16777619u;
	return (h >> 8) % VB_SRD_BUCKETS;
}

static void age_unlink(struct vb_srd *srd, struct vb_srd_stream *s)
{
	*(s->older ? &s->older->newer : &srd->oldest) = s->newer;
	*(s->newer ? &s->newer->older : &srd->newest) = s->older;
}

static void age_append(struct vb_srd *srd, struct vb_srd_stream *s)
{
	s->older = srd->newest;
	s->newer = NULL;
	*(s->older ? &s->older->newer : &srd->oldest) = s;
	srd->newest = s;
}

/* The stream is used for that destination, and can be found by it from now on. */
static void use(struct vb_srd *srd, struct vb_srd_stream *s, uint32_t bucket)
{
	struct vb_srd_stream **at = &srd->bucket[s->bucket];

	age_unlink(srd, s);
	age_append(srd, s);
	if (s->entered && s->bucket == bucket)
		return;
	if (s->entered) {
		while (*at != s)
			at = &(*at)->next;
		*at = s->next;
	}
	s->entered = true;
	s->bucket = bucket;
	s->next = srd->bucket[bucket];
	srd->bucket[bucket] = s;
}

static bool has_room(const struct vb_srd_stream *s)
{
	return vb_srd_stream_load(s) < VB_SRD_STREAM_PLACES;
}

/* A stream without messages: a new one, or the one whose last message is longest ago; NULL. */
static struct vb_srd_stream *fresh(struct vb_qp *qp)
{
	struct vb_srd *srd = vb_srd_of(qp);
	struct vb_srd_stream *s = srd->oldest;
	bool idle = s && !vb_srd_stream_load(s);

	if (srd->count == VB_SRD_STREAMS_MAX || (idle && srd->count >= VB_SRD_STREAMS_KEPT))
		return idle ? s : NULL;
	s = vb_srd_stream_make(qp);
	if (!s)
		return idle ? srd->oldest : NULL;
	if (!srd->count)
		srd->draws = vb_prf(qp->nic->keys.secret, qp->ibv.qp.qp_num);
	srd->stream[srd->count++] = s;
	age_append(srd, s);
	return s;
}

/* If all have messages for others, this one waits behind those: NULL if there is none at all. */
static struct vb_srd_stream *any(struct vb_srd *srd)
{
	struct vb_srd_stream *s = srd->oldest;

	while (s && !has_room(s))
		s = s->newer;
	return s;
}

/* By which stream does a message to this destination go? */
static struct vb_srd_stream *choose(struct vb_qp *qp, const struct vb_dc_to *to, uint32_t bucket)
{
	struct vb_srd *srd = vb_srd_of(qp);
	struct vb_srd_stream *of_it[VB_SRD_SPREAD], *s;
	uint32_t count = 0, drawn;

	for (s = srd->bucket[bucket]; s && count < VB_SRD_SPREAD; s = s->next)
		if (!memcmp(&s->dci.last, to, sizeof(*to)) && has_room(s))
			of_it[count++] = s;
	drawn = below(srd, VB_SRD_SPREAD);
	if (drawn < count)
		return of_it[drawn];
	s = fresh(qp);
	if (s)
		return s;
	return count ? of_it[drawn % count] : any(srd);
}

/* --- posting; QP locked --- */

/* As the provider of EFA, which has no unsignaled work requests. */
int vb_srd_post_check(const struct vb_qp *qp, const struct ibv_send_wr *wr,
		      const struct vb_post *post)
{
	const struct vb_dc_address classic = { .ah = wr->wr.ud.ah, .dctn = wr->wr.ud.remote_qpn };
	bool sends = wr->opcode == IBV_WR_SEND || wr->opcode == IBV_WR_SEND_WITH_IMM;

	if (vb_qp_state(qp) == IBV_QPS_ERR)
		return vb_refuse(EINVAL, "the QP is in ERR");
	if (!(wr->send_flags & IBV_SEND_SIGNALED) && !qp->made.sq_sig_all)
		return vb_refuse(EINVAL, "SRD has no work requests without IBV_SEND_SIGNALED");
	if (!sends && !post)
		return vb_refuse(EINVAL, "ibv_post_send() has no place for the address of a READ "
					 "or WRITE of SRD; ibv_wr_set_ud_addr() sets it");
	if (!sends && (wr->send_flags & IBV_SEND_INLINE))
		return vb_refuse(EINVAL, "only a SEND of SRD may be inline");
	return vb_dc_to_check(qp, post ? &post->dc : &classic);
}

/* Is the send queue full if so many more are added? */
static bool is_full(const struct vb_qp *qp, uint32_t more)
{
	struct vb_srd *srd = vb_srd_of(qp);
	uint32_t released = 0;

	if (srd->posted - srd->released + more < qp->made.cap.max_send_wr)
		return false;
	for (unsigned i = 0; i < srd->count; i++)
		released += atomic_load(&srd->stream[i]->qp.user.sq_released);
	srd->released = released;
	return srd->posted - released + more >= qp->made.cap.max_send_wr;
}

static int post(struct vb_qp *qp, const struct ibv_send_wr *wr, const struct vb_post *made)
{
	struct vb_srd *srd = vb_srd_of(qp);
	struct vb_srd_stream *s;
	struct vb_dc_to to;
	uint32_t bucket;
	int err;

	vb_srd_to_set(qp, &to, wr, made);
	bucket = bucket_of(&to);
	s = choose(qp, &to, bucket);
	err = s ? vb_srd_stream_post(s, wr, made) : ENOMEM;
	if (err)
		return err;
	use(srd, s, bucket);
	srd->posted++;
	if (!s->waits)
		srd->waits[srd->waiting++] = s;
	s->waits = true;
	return 0;
}

static struct vb_srd_stream *take_waiting(struct vb_srd *srd)
{
	uint32_t drawn = below(srd, srd->waiting);
	struct vb_srd_stream *s = srd->waits[drawn];

	srd->waits[drawn] = srd->waits[--srd->waiting];
	s->waits = false;
	return s;
}

/* Does another stream have messages to the same destination, which may overtake? */
static bool has_rivals(const struct vb_srd *srd, const struct vb_srd_stream *s)
{
	for (const struct vb_srd_stream *t = srd->bucket[s->bucket]; t; t = t->next)
		if (t != s && vb_srd_stream_load(t) && !memcmp(&t->dci.last, &s->dci.last,
							       sizeof(s->dci.last)))
			return true;
	return false;
}

/*
 * Sends what was posted, the streams in any order. A network would now and then let a message
 * overtake another; rings never do, and so the NIC does it: some leave only when it is turned next.
 */
static void send_off(struct vb_srd *srd)
{
	while (srd->waiting) {
		struct vb_srd_stream *s = take_waiting(srd);

		if (has_rivals(srd, s) && !below(srd, LATE_ONE_IN))
			vb_timer_arm(s->qp.nic, &s->qp, vb_nic_now_ns(s->qp.nic));
		else
			vb_srd_stream_send(s);
	}
}

int vb_srd_post_list(struct vb_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	int err = 0;

	for (; wr && !err; wr = wr->next) {
		*bad = wr;
		err = is_full(qp, 0) ? ENOMEM : vb_qp_post_check(qp, wr, NULL);
		if (!err)
			err = post(qp, wr, NULL);
	}
	send_off(vb_srd_of(qp));
	return err;
}

int vb_srd_post_batch(struct vb_qp *qp, const struct vb_post *posts, uint32_t count,
		      uint32_t *done)
{
	int err = 0;

	/* All or none: what can fail is checked before anything is queued. */
	for (uint32_t i = 0; i < count && !err; i++) {
		*done = i;
		err = is_full(qp, i) ? ENOMEM : vb_qp_post_check(qp, &posts[i].wr, &posts[i]);
	}
	for (uint32_t i = 0; i < count && !err; i++) {
		*done = i;
		err = post(qp, &posts[i].wr, &posts[i]);
	}
	send_off(vb_srd_of(qp));
	return err;
}
