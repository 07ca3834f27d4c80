/* SPDX-License-Identifier: BSD-2-Clause */
#include "abi/check/memory.h"

#include <isa-l/crc.h>
#include <stdlib.h>
#include <string.h>

#include "abi/check/objects.h"
#include "base/check.h"
#include "base/guard.h"

enum {
	BLOCK_BYTES_MIN = 256,
	BLOCKS_MAX = 4096,
	POISON = 0xdb, /* docs/check.md names it */
	POISON_SURE_BYTES = 16,
};

void vb_check_piece_find(struct vb_check_piece *piece, const struct ibv_sge *sge)
{
	const struct vb_check_region *mr = vb_check_region(sge->lkey);
	uint64_t offset;

	*piece = (struct vb_check_piece){ .bytes = sge->length, .lkey = sge->lkey };
	if (!mr || !mr->base || !sge->length)
		return;
	offset = sge->addr - mr->iova;
	if (sge->addr < mr->iova || offset > mr->bytes || sge->length > mr->bytes - offset)
		return;
	piece->at = mr->base + offset;
	piece->paged = mr->access & IBV_ACCESS_ON_DEMAND;
}

static uint32_t blocks(const struct vb_check_piece *piece)
{
	return (piece->bytes + piece->block_bytes - 1) / piece->block_bytes;
}

static uint32_t block_sum(const struct vb_check_piece *piece, uint32_t block)
{
	uint32_t at = block * piece->block_bytes;
	uint64_t bytes = vb_min_u64(piece->block_bytes, piece->bytes - at);

	return crc32_gzip_refl(0, piece->at + at, bytes);
}

/* False: a part of it is not mapped. */
static bool sums_make(const struct vb_check_piece *piece, uint32_t *sums)
{
	struct vb_guard guard;

	vb_guard_cover(&guard, piece->at, piece->at, piece->bytes);
	if (!vb_guard_enter(&guard))
		return false;
	for (uint32_t block = 0; block < blocks(piece); block++)
		sums[block] = block_sum(piece, block);
	vb_guard_leave();
	return true;
}

void vb_check_piece_free(struct vb_check_piece *piece)
{
	free(piece->sums);
	piece->sums = NULL;
}

void vb_check_piece_watch(struct vb_check_piece *piece)
{
	if (!piece->at || piece->paged)
		return;
	piece->block_bytes = (piece->bytes + BLOCKS_MAX - 1) / BLOCKS_MAX;
	if (piece->block_bytes < BLOCK_BYTES_MIN)
		piece->block_bytes = BLOCK_BYTES_MIN;
	piece->sums = malloc(blocks(piece) * sizeof(*piece->sums));
	if (piece->sums && !sums_make(piece, piece->sums))
		vb_check_piece_free(piece);
}

enum vb_check_seen vb_check_piece_look(const struct vb_check_piece *piece, uint32_t from,
				       uint32_t *at, uint32_t *end)
{
	volatile enum vb_check_seen seen = VB_SEEN_SAME;
	struct vb_guard guard;
	uint32_t block;

	if (!piece->sums)
		return VB_SEEN_SAME;
	vb_guard_cover(&guard, piece->at, piece->at, piece->bytes);
	if (!vb_guard_enter(&guard))
		return VB_SEEN_UNMAPPED;
	for (block = (from + piece->block_bytes - 1) / piece->block_bytes; block < blocks(piece);
	     block++) {
		if (block_sum(piece, block) != piece->sums[block]) {
			*at = block * piece->block_bytes;
			*end = (uint32_t)vb_min_u64(*at + piece->block_bytes, piece->bytes);
			seen = VB_SEEN_CHANGED;
			break;
		}
	}
	vb_guard_leave();
	return seen;
}

bool vb_check_piece_mapped(const struct vb_check_piece *piece)
{
	volatile uint8_t touched;
	struct vb_guard guard;

	if (!piece->at || piece->paged)
		return true;
	vb_guard_cover(&guard, piece->at, piece->at, piece->bytes);
	if (!vb_guard_enter(&guard))
		return false;
	for (uint64_t at = 0; at < piece->bytes; at += 4096)
		touched = piece->at[at];
	touched = piece->at[piece->bytes - 1];
	(void)touched;
	vb_guard_leave();
	return true;
}

void vb_check_piece_poison(const struct vb_check_piece *piece)
{
	struct vb_guard guard;

	if (!piece->at || piece->paged)
		return;
	vb_guard_cover(&guard, piece->at, piece->at, piece->bytes);
	if (!vb_guard_enter(&guard))
		return;
	memset(piece->at, POISON, piece->bytes);
	vb_guard_leave();
}

bool vb_check_piece_is_poison(const struct vb_check_piece *piece)
{
	uint8_t first[POISON_SURE_BYTES];

	if (!piece->at || piece->paged || piece->bytes < sizeof(first) ||
	    !vb_guard_copy(first, piece->at, sizeof(first)))
		return false;
	for (unsigned i = 0; i < sizeof(first); i++)
		if (first[i] != POISON)
			return false;
	return true;
}

bool vb_check_pieces_meet(const struct vb_check_piece *a, const struct vb_check_piece *b)
{
	return a->at && b->at && a->at < b->at + b->bytes && b->at < a->at + a->bytes;
}
