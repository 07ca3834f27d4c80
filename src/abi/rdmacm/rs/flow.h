/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_ABI_RDMACM_RS_FLOW_H
#define VB_ABI_RDMACM_RS_FLOW_H

/*
 * The flow of a stream: completions, what the peer's messages say, credits for the peer, waiting.
 * All of it with the stream's lock, which is let go of only while somebody sleeps.
 */

#include "abi/rdmacm/rs/stream.h"

typedef bool vb_rs_test(const struct vb_rs_stream *s);

/* What callers wait for. A connection that has ended satisfies each. */
vb_rs_test vb_rs_can_send, vb_rs_can_receive, vb_rs_can_control, vb_rs_all_sent;

/* There is room, credit and a place for data, whatever the phase. */
bool vb_rs_has_room(const struct vb_rs_stream *s);

/* Tells the peer what it may send, if it is time to. */
void vb_rs_credits_give(struct vb_rs_stream *s);

/* Looks at all completions, and gives credits. */
void vb_rs_turn(struct vb_rs_stream *s);

/* The same for one whose NIC has been turned (vb_rs_drive()): quick, if there is nothing. */
void vb_rs_glance(struct vb_rs_stream *s);

/* Until the test holds. 0, EAGAIN at end_ns (vb_rs_wait_end_ns()), EINTR. */
int vb_rs_wait(struct vb_rs_stream *s, vb_rs_test *test, uint64_t end_ns);

/* Until another thread has looked, sent or received. 0, or ETIMEDOUT at end_ns. */
int vb_rs_turned_await(struct vb_rs_stream *s, uint64_t end_ns);

/* The next completion makes the channel readable. Look once more afterwards. */
void vb_rs_arm(struct vb_rs_stream *s);

/* The channel has an event. */
bool vb_rs_has_news(const struct vb_rs_stream *s);

/* Takes what the descriptors tell. */
void vb_rs_news_take(struct vb_rs_stream *s);

/* Somebody looked in vain, and does not sleep: news are asked for now and then. */
void vb_rs_idle(struct vb_rs_stream *s);

/* Posts a WRITE; the message is its immediate, or only its name if with_msg is false. */
int vb_rs_write(struct vb_rs_stream *s, struct ibv_sge *sges, int count, uint32_t msg,
		bool with_msg, uint64_t addr, uint32_t key);

/* Says it, as one of the controls. There is room for one. */
int vb_rs_say(struct vb_rs_stream *s, uint32_t msg);

/* The connection has ended. */
void vb_rs_end(struct vb_rs_stream *s, enum vb_rs_phase phase, int error);

/* All receives of a new QP. */
int vb_rs_receives_post(struct vb_rs_stream *s, unsigned count);

#endif
