/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_TAPE_LISTS_H
#define VB_TAPE_LISTS_H

/*
 * What is longer than a structure: lists of work requests, and frames. Written with vb_tape_put()
 * (tape.h), read from an item. What is read lives until vb_tape_scrap() and points into the item.
 */

#include "nic/data/post.h"
#include "tape/reader.h"

/* --- written --- */

void vb_tape_put_sends(const struct ibv_send_wr *wr);
void vb_tape_put_recvs(const struct ibv_recv_wr *wr);
void vb_tape_put_posts(const struct vb_post *posts, uint32_t count);
void vb_tape_put_frames(const struct vb_frame *frames, uint32_t count);

/*
 * What is compared of frames that are sent: where they go, and their headers. Returns its octets,
 * at most VB_TAPE_SENT_BYTES_MAX.
 */
#define VB_TAPE_SENT_BYTES_MAX (64 + VB_LINK_BURST_FRAMES_MAX * 64)
size_t vb_tape_sent(uint8_t sent[VB_TAPE_SENT_BYTES_MAX], uint16_t slot,
		    const struct vb_burst *burst);

/* Octets before the headers of the first frame; and how many frames it says, 0: it is not whole. */
#define VB_TAPE_SENT_HEAD_BYTES 52u
unsigned vb_tape_sent_frames(const uint8_t *sent, size_t bytes);

/* Which of a list was refused: its place, or the length of the list. */
uint32_t vb_tape_send_place(const struct ibv_send_wr *wr, const struct ibv_send_wr *bad);
uint32_t vb_tape_recv_place(const struct ibv_recv_wr *wr, const struct ibv_recv_wr *bad);

/* --- read --- */

/* Memory of one item. */
struct vb_tape_heap {
	struct vb_tape_piece *first;
};

void vb_tape_scrap(struct vb_tape_heap *heap);

/* Zeros; NULL: there is no memory, and the cursor is bad. */
void *vb_tape_room_make(struct vb_tape_cursor *cursor, struct vb_tape_heap *heap, size_t bytes);

/* NULL: there is none, or the item is not whole, which the cursor says. */
struct ibv_send_wr *vb_tape_get_sends(struct vb_tape_cursor *cursor, struct vb_tape_heap *heap);
struct ibv_recv_wr *vb_tape_get_recvs(struct vb_tape_cursor *cursor, struct vb_tape_heap *heap);
struct vb_post *vb_tape_get_posts(struct vb_tape_cursor *cursor, struct vb_tape_heap *heap,
				  uint32_t *count);
struct vb_frame *vb_tape_get_frames(struct vb_tape_cursor *cursor, struct vb_tape_heap *heap,
				    uint32_t *count);

#endif
