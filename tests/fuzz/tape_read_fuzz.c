/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Any octets as a tape: its items are within it, in order, and so is what is read of them. The
 * first octet says whether the checksums are made right before.
 */
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "engine/recv.h"
#include "fuzz.h"
#include "tape/lists.h"

static void sges_check(const struct ibv_sge *sges, int count)
{
	uint64_t sum = 0;

	for (int i = 0; i < count; i++)
		sum += sges[i].length;
	vb_check(count <= 0 || sum + 1); /* they can be read */
}

static void lists_read(const struct vb_tape_item *item)
{
	struct vb_tape_cursor cursor[4];
	struct vb_tape_heap heap = { NULL };
	struct vb_frame *frames;
	struct vb_post *posts;
	uint32_t count, octets = 0;

	for (unsigned i = 0; i < VB_ARRAY_LEN(cursor); i++)
		cursor[i] = vb_tape_cursor_of(item);
	for (struct ibv_send_wr *wr = vb_tape_get_sends(&cursor[0], &heap); wr; wr = wr->next) {
		if (wr->num_sge <= VB_SGE_MAX)
			sges_check(wr->sg_list, wr->num_sge);
	}
	for (struct ibv_recv_wr *wr = vb_tape_get_recvs(&cursor[1], &heap); wr; wr = wr->next) {
		if (wr->num_sge <= VB_SGE_MAX)
			sges_check(wr->sg_list, wr->num_sge);
	}
	posts = vb_tape_get_posts(&cursor[2], &heap, &count);
	for (uint32_t i = 0; posts && i < count; i++) {
		if (posts[i].wr.num_sge <= VB_SGE_MAX)
			sges_check(posts[i].wr.sg_list, posts[i].wr.num_sge);
	}
	frames = vb_tape_get_frames(&cursor[3], &heap, &count);
	for (uint32_t i = 0; frames && i < count; i++) {
		for (uint32_t k = 0; k < frames[i].bytes; k++)
			octets += frames[i].data[k];
	}
	vb_check(octets + 1 || !octets);
	vb_tape_scrap(&heap);
}

/* As far as items follow each other. */
static void sums_mend(uint8_t *at, size_t bytes)
{
	size_t next = sizeof(struct vb_tape_head);
	uint32_t sum = 0;

	while (next + sizeof(struct vb_tape_item_head) <= bytes) {
		struct vb_tape_item_head *head = (void *)(at + next);

		if (vb_tape_room(head->bytes) > bytes - next - sizeof(*head))
			return;
		sum = head->sum = vb_tape_sum(sum, head, head + 1);
		next += sizeof(*head) + vb_tape_room(head->bytes);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	struct vb_tape_reader reader;
	struct vb_tape_item item;
	uint64_t number = 0;
	uint8_t *at;

	if (!bytes)
		return 0;
	at = malloc(bytes);
	vb_check(at);
	bytes--;
	memcpy(at, data + 1, bytes);
	if (data[0] & 1)
		sums_mend(at, bytes);
	if (vb_tape_read_begin(&reader, at, bytes) == NULL) {
		while (vb_tape_read(&reader, &item) == VB_TAPE_READ_ITEM) {
			vb_check(item.number == ++number);
			vb_check(item.data >= at + sizeof(struct vb_tape_head) &&
				 item.data + item.head->bytes <= at + bytes);
			lists_read(&item);
		}
	}
	free(at);
	return 0;
}
