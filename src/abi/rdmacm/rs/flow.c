/* SPDX-License-Identifier: BSD-2-Clause */
#include "abi/rdmacm/rs/flow.h"

#include <arpa/inet.h>
#include <errno.h>
#include <string.h>

#include "abi/rdmacm/device.h"
#include "abi/rdmacm/id.h"
#include "nic/queue/channel.h"
#include "nic/queue/cq.h"

enum {
	ROOM_MIN = 2048, /* with less in the ring, a sender waits */
	BATCH = 16,
	IDLE_LOOKS = 64, /* in vain, before one asks for the connection manager's news */
};

#define WR_RECEIVE (1ull << 63)

/* --- what holds --- */

static bool is_connected(const struct vb_rs_stream *s)
{
	return s->phase == VB_RS_CONNECTED;
}

bool vb_rs_has_room(const struct vb_rs_stream *s)
{
	return s->out.wrs_free && s->out.free >= ROOM_MIN && s->out.sent != s->out.may_send &&
	       s->out.piece.length;
}

bool vb_rs_can_send(const struct vb_rs_stream *s)
{
	return vb_rs_has_room(s) || !s->writable;
}

bool vb_rs_can_receive(const struct vb_rs_stream *s)
{
	return s->in.ready || !s->readable;
}

bool vb_rs_can_control(const struct vb_rs_stream *s)
{
	return s->out.controls < VB_RS_CONTROLS || !is_connected(s);
}

bool vb_rs_all_sent(const struct vb_rs_stream *s)
{
	return (!s->out.controls && s->out.wrs_free == s->rs.sizes.sends - VB_RS_CONTROLS) ||
	       !is_connected(s);
}

/* --- posting --- */

int vb_rs_receives_post(struct vb_rs_stream *s, unsigned count)
{
	struct ibv_recv_wr wrs[BATCH], *bad;
	int rc = 0;

	/* They take an immediate, and no octets. */
	while (count && !rc) {
		unsigned n = count < BATCH ? count : BATCH;

		for (unsigned i = 0; i < n; i++)
			wrs[i] = (struct ibv_recv_wr){
				.wr_id = WR_RECEIVE,
				.next = i + 1 < n ? &wrs[i + 1] : NULL,
			};
		rc = ibv_post_recv(s->id->qp, wrs, &bad);
		count -= n;
	}
	return rc;
}

int vb_rs_write(struct vb_rs_stream *s, struct ibv_sge *sges, int count, uint32_t msg,
		bool with_msg, uint64_t addr, uint32_t key)
{
	struct ibv_send_wr *bad, wr = {
		.wr_id = msg,
		.sg_list = sges,
		.num_sge = count,
		.opcode = with_msg ? IBV_WR_RDMA_WRITE_WITH_IMM : IBV_WR_RDMA_WRITE,
		.imm_data = htonl(msg),
		.wr.rdma = {.remote_addr = addr, .rkey = key},
	};

	if (count == 1 && sges[0].length <= s->rs.sizes.inline_bytes)
		wr.send_flags = IBV_SEND_INLINE;
	return ibv_post_send(s->id->qp, &wr, &bad);
}

int vb_rs_say(struct vb_rs_stream *s, uint32_t msg)
{
	s->out.controls++;
	return vb_rs_write(s, NULL, 0, msg, true, 0, 0);
}

void vb_rs_end(struct vb_rs_stream *s, enum vb_rs_phase phase, int error)
{
	s->phase = phase;
	s->readable = s->writable = false;
	if (error)
		s->rs.error = error;
}

/* --- credits --- */

static uint32_t half(const struct vb_rs_stream *s)
{
	return s->in.bytes / 2;
}

static bool owes_credits(const struct vb_rs_stream *s)
{
	return is_connected(s) && s->out.controls < VB_RS_CONTROLS &&
	       (s->in.spent >= half(s) || (int16_t)(s->in.received - s->in.credit_due) >= 0);
}

/* Half the buffer has been read: the peer may fill it again. */
static int piece_tell(struct vb_rs_stream *s, uint32_t msg)
{
	struct vb_rs_in *in = &s->in;
	struct vb_rs_area piece = {
		.addr = (uintptr_t)(in->buffer + in->told_at),
		.key = in->mr->rkey,
		.length = half(s),
	};
	uint8_t *entry = s->out.buffer + s->out.bytes +
			 s->out.control_next++ % VB_RS_CONTROLS * VB_RS_AREA_BYTES;
	struct ibv_sge sge = {
		.addr = (uintptr_t)entry, .length = VB_RS_AREA_BYTES, .lkey = s->out.mr->lkey,
	};
	uint64_t to = in->peer_targets.addr + (uint64_t)in->peer_target_next * VB_RS_AREA_BYTES;

	vb_rs_area_put(entry, &piece, in->swapped);
	in->spent -= half(s);
	in->told_at = in->told_at ? 0 : half(s);
	in->peer_target_next = (in->peer_target_next + 1) % in->peer_targets.length;
	s->out.controls++;
	return vb_rs_write(s, &sge, 1, msg, true, to, in->peer_targets.key);
}

void vb_rs_credits_give(struct vb_rs_stream *s)
{
	uint32_t msg;
	int rc;

	if (!owes_credits(s))
		return;
	msg = vb_rs_msg(VB_RS_CREDIT, (uint16_t)(s->in.received + s->rs.sizes.receives));
	s->in.credit_due = (uint16_t)(s->in.received + s->rs.sizes.receives / 2);
	rc = s->in.spent >= half(s) ? piece_tell(s, msg) : vb_rs_say(s, msg);
	if (rc)
		vb_rs_end(s, VB_RS_BROKEN, EIO);
}

/* --- completions --- */

/* The peer's next piece, if it has told it. Its length comes last. */
static void piece_look(struct vb_rs_stream *s)
{
	uint8_t *entry = s->out.targets + s->out.target_next * VB_RS_AREA_BYTES;
	uint32_t *length = &((struct vb_rs_area *)entry)->length;

	if (s->out.piece.length || !__atomic_load_n(length, __ATOMIC_ACQUIRE))
		return;
	vb_rs_area_get(&s->out.piece, entry);
	__atomic_store_n(length, 0, __ATOMIC_RELEASE);
	s->out.target_next = (s->out.target_next + 1) % VB_RS_TARGETS;
}

/* More octets than the buffer has room for are a fault of the peer's. */
static void data_arrived(struct vb_rs_stream *s, uint32_t bytes)
{
	struct vb_rs_in *in = &s->in;

	in->received++;
	if (bytes > in->bytes - in->ready)
		vb_rs_end(s, VB_RS_BROKEN, EPROTO);
	else
		in->ready += bytes;
}

static void control_arrived(struct vb_rs_stream *s, uint32_t control)
{
	if (control == VB_RS_DISCONNECT || (control == VB_RS_SHUTDOWN && !s->writable))
		vb_rs_end(s, VB_RS_OVER, 0);
	else if (control == VB_RS_SHUTDOWN)
		s->readable = false;
}

static void message_arrived(struct vb_rs_stream *s, uint32_t msg)
{
	switch (vb_rs_msg_op(msg)) {
	case VB_RS_DATA:
		data_arrived(s, vb_rs_msg_data(msg));
		break;
	case VB_RS_CREDIT:
		s->out.may_send = (uint16_t)vb_rs_msg_data(msg);
		break;
	case VB_RS_CONTROL:
		control_arrived(s, vb_rs_msg_data(msg));
		break;
	case VB_RS_MAPPED:
		/* Its sender counts it as data. */
		s->in.received++;
		break;
	default:
		break;
	}
}

static void sent(struct vb_rs_stream *s, uint32_t msg, enum ibv_wc_status status)
{
	switch (vb_rs_msg_op(msg)) {
	case VB_RS_CREDIT:
	case VB_RS_CONTROL:
		s->out.controls--;
		break;
	case VB_RS_MAPPED:
		s->out.wrs_free++;
		s->out.free += VB_RS_MAP_BYTES;
		break;
	default:
		s->out.wrs_free++;
		s->out.free += vb_rs_msg_data(msg);
		break;
	}
	if (is_connected(s) && status != IBV_WC_SUCCESS)
		vb_rs_end(s, VB_RS_BROKEN, ECONNRESET);
	else if (is_connected(s) && msg == vb_rs_msg(VB_RS_CONTROL, VB_RS_DISCONNECT))
		vb_rs_end(s, VB_RS_OVER, 0);
}

/* False: there is none more. */
static bool completions_look(struct vb_rs_stream *s)
{
	struct ibv_wc wcs[BATCH];
	int n = ibv_poll_cq(s->cq, BATCH, wcs);
	unsigned receives = 0;

	for (int i = 0; i < n; i++) {
		if (!(wcs[i].wr_id & WR_RECEIVE)) {
			sent(s, (uint32_t)wcs[i].wr_id, wcs[i].status);
		} else if (wcs[i].status == IBV_WC_SUCCESS) {
			receives++;
			if (wcs[i].wc_flags & IBV_WC_WITH_IMM)
				message_arrived(s, ntohl(wcs[i].imm_data));
		}
	}
	/* Before the peer may send that many more. */
	if (is_connected(s) && (n < 0 || vb_rs_receives_post(s, receives)))
		vb_rs_end(s, VB_RS_BROKEN, EIO);
	return n == BATCH;
}

void vb_rs_turn(struct vb_rs_stream *s)
{
	if (!s->cq)
		return;
	vb_rs_credits_give(s);
	while (completions_look(s))
		vb_rs_credits_give(s);
	piece_look(s);
	vb_rs_credits_give(s);
}

void vb_rs_glance(struct vb_rs_stream *s)
{
	if (!s->cq)
		return;
	if (vb_cq_is_empty((struct vb_cq *)s->cq) && !vb_cma_is_gone())
		piece_look(s);
	else
		vb_rs_turn(s);
}

/* --- sleeping --- */

void vb_rs_arm(struct vb_rs_stream *s)
{
	if (s->armed || !s->cq)
		return;
	ibv_req_notify_cq(s->cq, 0);
	s->armed = true;
}

/*
 * A peer that is killed says nothing, and what it was about to send is lost; the connection manager
 * hears of it. False: of nothing.
 */
static bool connection_news_take(struct vb_rs_stream *s)
{
	struct rdma_cm_event *event;
	enum rdma_cm_event_type type;

	if (rdma_get_cm_event(s->id->channel, &event))
		return false;
	type = event->event;
	rdma_ack_cm_event(event);
	if (type == RDMA_CM_EVENT_DISCONNECTED && is_connected(s)) {
		/* What it said before it went lies in the queue. */
		vb_rs_turn(s);
		if (is_connected(s))
			vb_rs_end(s, VB_RS_BROKEN, ECONNRESET);
	} else if (type == RDMA_CM_EVENT_REJECTED && is_connected(s)) {
		/* It has parted before it knew of the connection, so it has said nothing. */
		vb_rs_end(s, VB_RS_OVER, 0);
	} else if (type == RDMA_CM_EVENT_DEVICE_REMOVAL) {
		vb_rs_end(s, VB_RS_BROKEN, ENODEV);
	}
	return true;
}

bool vb_rs_has_news(const struct vb_rs_stream *s)
{
	return s->channel && vb_channel_has_event((struct vb_channel *)s->channel);
}

void vb_rs_news_take(struct vb_rs_stream *s)
{
	struct ibv_cq *cq;
	void *context;

	/* Who sleeps on it takes it, or would not wake. */
	if (s->asleep)
		return;
	if (s->armed && !ibv_get_cq_event(s->channel, &cq, &context)) {
		s->cq_events++;
		s->armed = false;
		vb_rs_watches_wake(&s->watches);
	}
	while (s->phase == VB_RS_CONNECTED && connection_news_take(s))
		;
}

void vb_rs_idle(struct vb_rs_stream *s)
{
	if (++s->idle_looks % IDLE_LOOKS == 0)
		vb_rs_news_take(s);
}

static bool has_news(void *arg)
{
	return vb_rs_has_news(arg);
}

/* 0 or an errno. */
static int sleep_on(struct vb_rs_stream *s, uint64_t end_ns)
{
	struct pollfd fds[2 + VB_AWAIT_PLACES] = {
		{.fd = s->channel->fd, .events = POLLIN},
		{.fd = s->id->channel->fd, .events = POLLIN},
	};
	struct vb_awaited awaited = {fds, 2, vb_rs_left_ms(end_ns), has_news, s};

	return vb_rs_sleep(&awaited) < 0 ? errno : 0;
}

int vb_rs_turned_await(struct vb_rs_stream *s, uint64_t end_ns)
{
	const struct timespec end = {
		.tv_sec = (time_t)(end_ns / 1000000000u), .tv_nsec = (long)(end_ns % 1000000000u),
	};

	if (end_ns == VB_RS_FOREVER)
		return pthread_cond_wait(&s->turned, &s->lock);
	return pthread_cond_clockwait(&s->turned, &s->lock, CLOCK_MONOTONIC, &end);
}

static int doze(struct vb_rs_stream *s, uint64_t end_ns)
{
	int rc;

	if (s->asleep) {
		vb_rs_turned_await(s, end_ns);
		return 0;
	}
	if (!s->armed) {
		vb_rs_arm(s);
		return 0;
	}
	s->asleep = true;
	pthread_mutex_unlock(&s->lock);
	rc = sleep_on(s, end_ns);
	pthread_mutex_lock(&s->lock);
	s->asleep = false;
	vb_rs_news_take(s);
	pthread_cond_broadcast(&s->turned);
	return rc == EINTR ? EINTR : 0;
}

int vb_rs_wait(struct vb_rs_stream *s, vb_rs_test *test, uint64_t end_ns)
{
	uint64_t doze_ns = 0, now_ns;
	int rc = 0;

	for (;;) {
		vb_rs_turn(s);
		if (test(s))
			return 0;
		if (rc)
			return rc;
		if (!end_ns) {
			vb_rs_idle(s);
			return test(s) ? 0 : EAGAIN;
		}
		now_ns = vb_rs_now_ns();
		if (now_ns >= end_ns)
			return EAGAIN;
		if (!doze_ns)
			doze_ns = now_ns + 1000ull * vb_rs_polling_us;
		else if (now_ns >= doze_ns)
			rc = doze(s, end_ns);
	}
}
