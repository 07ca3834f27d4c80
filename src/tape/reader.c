/* SPDX-License-Identifier: BSD-2-Clause */
#include "tape/reader.h"

#include <string.h>

const char *vb_tape_read_begin(struct vb_tape_reader *reader, const void *at, size_t bytes)
{
	const struct vb_tape_head *head = at;
	uint64_t told;

	if (bytes < sizeof(*head) || head->magic != VB_TAPE_MAGIC)
		return "it is no record of verbatim's";
	if (head->layout != vb_tape_layout())
		return "another build of verbatim wrote it: the same has to replay it";
	told = head->bytes;
	*reader = (struct vb_tape_reader){
		.at = at,
		.bytes = told < bytes ? told : bytes,
		.next = sizeof(*head),
		.number = 1,
		.is_cut = told > bytes,
	};
	return told < sizeof(*head) ? "its head was altered" : NULL;
}

enum vb_tape_read vb_tape_look(const struct vb_tape_reader *reader, struct vb_tape_item *item)
{
	const struct vb_tape_item_head *head = (const void *)(reader->at + reader->next);
	size_t left = reader->bytes - reader->next;

	if (!left)
		return reader->is_cut ? VB_TAPE_READ_CUT : VB_TAPE_READ_LAST;
	if (left < sizeof(*head) || vb_tape_room(head->bytes) > left - sizeof(*head))
		return reader->is_cut ? VB_TAPE_READ_CUT : VB_TAPE_READ_ALTERED;
	if (head->sum != vb_tape_sum(reader->sum, head, head + 1) || !head->kind ||
	    head->kind >= VB_TAPE_KINDS)
		return VB_TAPE_READ_ALTERED;
	*item = (struct vb_tape_item){ head, (const uint8_t *)(head + 1), reader->number };
	return VB_TAPE_READ_ITEM;
}

enum vb_tape_read vb_tape_read(struct vb_tape_reader *reader, struct vb_tape_item *item)
{
	enum vb_tape_read read = vb_tape_look(reader, item);

	if (read != VB_TAPE_READ_ITEM)
		return read;
	reader->next += sizeof(*item->head) + vb_tape_room(item->head->bytes);
	reader->sum = item->head->sum;
	reader->number++;
	return read;
}

const void *vb_tape_get_octets(struct vb_tape_cursor *cursor, size_t bytes)
{
	const uint8_t *at = cursor->at;

	if (cursor->bad || bytes > cursor->left) {
		cursor->bad = true;
		return NULL;
	}
	cursor->at += bytes;
	cursor->left -= bytes;
	return at;
}

void vb_tape_get(struct vb_tape_cursor *cursor, void *data, size_t bytes)
{
	const void *octets = vb_tape_get_octets(cursor, bytes);

	if (octets)
		memcpy(data, octets, bytes);
	else
		memset(data, 0, bytes);
}
