/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/fifo.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

struct vb_fifo_piece {
	struct vb_fifo_piece *next;
	_Alignas(max_align_t) uint8_t octets[];
};

bool vb_fifo_put(struct vb_fifo *fifo, unsigned max, const void *octets, size_t bytes)
{
	struct vb_fifo_piece *piece = NULL;

	if (fifo->count < max)
		piece = malloc(sizeof(*piece) + bytes);
	if (!piece)
		return false;
	piece->next = NULL;
	memcpy(piece->octets, octets, bytes);
	if (fifo->last)
		fifo->last->next = piece;
	else
		fifo->first = piece;
	fifo->last = piece;
	fifo->count++;
	return true;
}

const void *vb_fifo_first(const struct vb_fifo *fifo)
{
	return fifo->first ? fifo->first->octets : NULL;
}

void vb_fifo_drop(struct vb_fifo *fifo)
{
	struct vb_fifo_piece *piece = fifo->first;

	fifo->first = piece->next;
	if (!fifo->first)
		fifo->last = NULL;
	fifo->count--;
	free(piece);
}

void vb_fifo_clear(struct vb_fifo *fifo)
{
	while (fifo->first)
		vb_fifo_drop(fifo);
}
