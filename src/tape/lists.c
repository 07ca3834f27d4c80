/* SPDX-License-Identifier: BSD-2-Clause */
#include "tape/lists.h"

#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/guard.h"
#include "engine/recv.h"
#include "tape/tape.h"
#include "wire/opcode.h"

/* What is longer is refused by the NIC, which does not look at it. */
enum { SGES_MAX = VB_SGE_MAX, INLINE_BYTES_MAX = 1 << 16 };

/* --- work requests, written --- */

static uint32_t sges_of(int num_sge)
{
	return num_sge > 0 && num_sge <= SGES_MAX ? (uint32_t)num_sge : 0;
}

static uint32_t inline_bytes_of(const struct ibv_sge *sges, uint32_t count, unsigned flags)
{
	uint64_t bytes = 0;

	for (uint32_t i = 0; (flags & IBV_SEND_INLINE) && i < count; i++)
		bytes += sges[i].length;
	return bytes <= INLINE_BYTES_MAX ? (uint32_t)bytes : 0;
}

/* What cannot be read is zeros: the NIC finds it out by itself. */
static void inline_put(const struct ibv_sge *sges, uint32_t count, uint32_t bytes)
{
	uint8_t data[256];

	for (uint32_t i = 0; bytes && i < count; i++) {
		for (uint32_t at = 0; at < sges[i].length; at += sizeof(data)) {
			size_t n = vb_min_u64(sizeof(data), sges[i].length - at);

			memset(data, 0, n);
			vb_guard_copy_large(data, (const uint8_t *)(uintptr_t)sges[i].addr + at, n);
			vb_tape_put(data, n);
		}
	}
}

/* The list may be shorter than it is said to be: the NIC does not read what it refuses. */
static void sges_put(const struct ibv_sge *list, int num_sge, unsigned flags)
{
	uint32_t count = sges_of(num_sge), inline_bytes;
	struct ibv_sge sges[SGES_MAX];

	for (uint32_t i = 0; i < count; i++) {
		sges[i] = (struct ibv_sge){ 0 };
		vb_guard_copy_large(&sges[i], &list[i], sizeof(sges[i]));
	}
	inline_bytes = inline_bytes_of(sges, count, flags);
	vb_tape_put_value(count);
	vb_tape_put_value(inline_bytes);
	vb_tape_put(sges, count * sizeof(*sges));
	inline_put(sges, count, inline_bytes);
}

/* Each with a 1 before it; a 0 ends the list. */
void vb_tape_put_sends(const struct ibv_send_wr *wr)
{
	uint32_t is_one = 1;

	for (; wr; wr = wr->next) {
		vb_tape_put_value(is_one);
		vb_tape_put(wr, sizeof(*wr));
		sges_put(wr->sg_list, wr->num_sge, wr->send_flags);
	}
	is_one = 0;
	vb_tape_put_value(is_one);
}

void vb_tape_put_recvs(const struct ibv_recv_wr *wr)
{
	uint32_t is_one = 1;

	for (; wr; wr = wr->next) {
		vb_tape_put_value(is_one);
		vb_tape_put(wr, sizeof(*wr));
		sges_put(wr->sg_list, wr->num_sge, 0);
	}
	is_one = 0;
	vb_tape_put_value(is_one);
}

void vb_tape_put_posts(const struct vb_post *posts, uint32_t count)
{
	vb_tape_put_value(count);
	for (uint32_t i = 0; i < count; i++) {
		vb_tape_put(&posts[i], sizeof(posts[i]));
		sges_put(posts[i].wr.sg_list, posts[i].wr.num_sge, posts[i].wr.send_flags);
	}
}

uint32_t vb_tape_send_place(const struct ibv_send_wr *wr, const struct ibv_send_wr *bad)
{
	uint32_t place = 0;

	for (; wr && wr != bad; wr = wr->next)
		place++;
	return place;
}

uint32_t vb_tape_recv_place(const struct ibv_recv_wr *wr, const struct ibv_recv_wr *bad)
{
	uint32_t place = 0;

	for (; wr && wr != bad; wr = wr->next)
		place++;
	return place;
}

/* --- frames --- */

void vb_tape_put_frames(const struct vb_frame *frames, uint32_t count)
{
	vb_tape_put_value(count);
	for (uint32_t i = 0; i < count; i++) {
		vb_tape_put(&frames[i], sizeof(frames[i]));
		vb_tape_put(frames[i].data, frames[i].bytes);
	}
}

/* Octets of a burst, from this one on. */
static void burst_look(const struct vb_burst *burst, size_t from, uint8_t *octets, size_t bytes)
{
	for (uint32_t i = 0; bytes && i < burst->iovcnt; i++) {
		const struct iovec *iov = &burst->iov[i];
		size_t n;

		if (from >= iov->iov_len) {
			from -= iov->iov_len;
			continue;
		}
		n = vb_min_u64(iov->iov_len - from, bytes);
		memcpy(octets, (const uint8_t *)iov->iov_base + from, n);
		octets += n;
		bytes -= n;
		from = 0;
	}
}

/* What an atomic operation found in memory is the application's. */
static size_t head_bytes(uint8_t opcode, size_t bytes)
{
	const struct vb_op_info *info = vb_op_info(opcode);
	size_t head = info ? info->header_bytes : VB_BTH_BYTES;

	if (info && (info->headers & VB_H_ATOMICACK))
		head -= sizeof(uint64_t);
	return vb_min_u64(head, bytes);
}

/* Where a burst goes. */
struct sent_head {
	uint8_t src[VB_GID_BYTES], dst[VB_GID_BYTES];
	uint32_t flow_label, frame_bytes, last_bytes;
	uint16_t sport, slot, frames;
	uint8_t tclass, hop_limit;
};

_Static_assert(sizeof(struct sent_head) == VB_TAPE_SENT_HEAD_BYTES, "no octet is left out");

unsigned vb_tape_sent_frames(const uint8_t *sent, size_t bytes)
{
	struct sent_head head;

	if (bytes < sizeof(head))
		return 0;
	memcpy(&head, sent, sizeof(head));
	return head.frames;
}

size_t vb_tape_sent(uint8_t sent[VB_TAPE_SENT_BYTES_MAX], uint16_t slot,
		    const struct vb_burst *burst)
{
	const struct sent_head head = {
		.flow_label = burst->path.flow_label,
		.frame_bytes = burst->frames > 1 ? burst->frame_bytes : burst->last_bytes,
		.last_bytes = burst->last_bytes,
		.sport = burst->path.sport,
		.slot = slot,
		.frames = burst->frames,
		.tclass = burst->path.tclass,
		.hop_limit = burst->path.hop_limit,
	};
	size_t at = sizeof(head);

	memcpy(sent, &head, sizeof(head));
	memcpy(sent, burst->path.src, VB_GID_BYTES);
	memcpy(sent + VB_GID_BYTES, burst->path.dst, VB_GID_BYTES);
	for (uint32_t i = 0; i < burst->frames && i < VB_LINK_BURST_FRAMES_MAX; i++) {
		size_t from = (size_t)i * burst->frame_bytes, n;
		bool last = i + 1u == burst->frames;
		uint8_t opcode = 0;

		burst_look(burst, from, &opcode, 1);
		n = head_bytes(opcode, last ? burst->last_bytes : burst->frame_bytes);
		n = vb_min_u64(n, 64);
		burst_look(burst, from, sent + at, n);
		at += n;
	}
	return at;
}

/* --- read --- */

struct vb_tape_piece {
	struct vb_tape_piece *next;
	_Alignas(16) uint8_t octets[];
};

void vb_tape_scrap(struct vb_tape_heap *heap)
{
	while (heap->first) {
		struct vb_tape_piece *piece = heap->first;

		heap->first = piece->next;
		free(piece);
	}
}

void *vb_tape_room_make(struct vb_tape_cursor *cursor, struct vb_tape_heap *heap, size_t bytes)
{
	struct vb_tape_piece *piece = calloc(1, sizeof(*piece) + bytes);

	if (!piece) {
		cursor->bad = true;
		return NULL;
	}
	piece->next = heap->first;
	heap->first = piece;
	return piece->octets;
}

/* The list for this many SGEs, which is what a NIC may read. */
static struct ibv_sge *sges_get(struct vb_tape_cursor *cursor, struct vb_tape_heap *heap,
				int num_sge, unsigned flags)
{
	uint32_t head[2] = { 0 }, want = sges_of(num_sge);
	struct ibv_sge *sges;
	const uint8_t *data;

	vb_tape_get(cursor, head, sizeof(head));
	if (head[0] != want)
		cursor->bad = true;
	data = vb_tape_get_octets(cursor, want * sizeof(*sges));
	sges = data ? vb_tape_room_make(cursor, heap, (want + 1) * sizeof(*sges)) : NULL;
	if (!sges)
		return NULL;
	memcpy(sges, data, want * sizeof(*sges));
	if (head[1] != inline_bytes_of(sges, want, flags))
		cursor->bad = true;
	for (uint32_t i = 0; head[1] && i < want; i++) {
		data = vb_tape_get_octets(cursor, sges[i].length);
		sges[i].addr = (uintptr_t)data;
	}
	return cursor->bad ? NULL : sges;
}

static bool is_next(struct vb_tape_cursor *cursor)
{
	uint32_t is_one;

	vb_tape_get_value(cursor, &is_one);
	return is_one && !cursor->bad;
}

struct ibv_send_wr *vb_tape_get_sends(struct vb_tape_cursor *cursor, struct vb_tape_heap *heap)
{
	struct ibv_send_wr *first = NULL, **end = &first;

	while (is_next(cursor)) {
		struct ibv_send_wr *wr = vb_tape_room_make(cursor, heap, sizeof(*wr));

		if (!wr)
			return NULL;
		vb_tape_get_value(cursor, wr);
		wr->next = NULL;
		wr->sg_list = sges_get(cursor, heap, wr->num_sge, wr->send_flags);
		*end = wr;
		end = &wr->next;
	}
	return cursor->bad ? NULL : first;
}

struct ibv_recv_wr *vb_tape_get_recvs(struct vb_tape_cursor *cursor, struct vb_tape_heap *heap)
{
	struct ibv_recv_wr *first = NULL, **end = &first;

	while (is_next(cursor)) {
		struct ibv_recv_wr *wr = vb_tape_room_make(cursor, heap, sizeof(*wr));

		if (!wr)
			return NULL;
		vb_tape_get_value(cursor, wr);
		wr->next = NULL;
		wr->sg_list = sges_get(cursor, heap, wr->num_sge, 0);
		*end = wr;
		end = &wr->next;
	}
	return cursor->bad ? NULL : first;
}

/* How many things of at least this size follow; 0: that cannot be. */
static uint32_t count_get(struct vb_tape_cursor *cursor, size_t bytes_min)
{
	uint32_t count;

	vb_tape_get_value(cursor, &count);
	if (count > cursor->left / bytes_min)
		cursor->bad = true;
	return cursor->bad ? 0 : count;
}

struct vb_post *vb_tape_get_posts(struct vb_tape_cursor *cursor, struct vb_tape_heap *heap,
				  uint32_t *count)
{
	struct vb_post *posts;

	*count = count_get(cursor, sizeof(*posts));
	posts = *count ? vb_tape_room_make(cursor, heap, *count * sizeof(*posts)) : NULL;
	for (uint32_t i = 0; posts && i < *count; i++) {
		struct ibv_send_wr *wr = &posts[i].wr;

		vb_tape_get_value(cursor, &posts[i]);
		wr->sg_list = sges_get(cursor, heap, wr->num_sge, wr->send_flags);
	}
	return cursor->bad ? NULL : posts;
}

struct vb_frame *vb_tape_get_frames(struct vb_tape_cursor *cursor, struct vb_tape_heap *heap,
				    uint32_t *count)
{
	struct vb_frame *frames;

	*count = count_get(cursor, sizeof(*frames));
	frames = *count ? vb_tape_room_make(cursor, heap, *count * sizeof(*frames)) : NULL;
	for (uint32_t i = 0; frames && i < *count; i++) {
		vb_tape_get_value(cursor, &frames[i]);
		frames[i].data = vb_tape_get_octets(cursor, frames[i].bytes);
	}
	return cursor->bad ? NULL : frames;
}
