/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_ABI_CHECK_MEMORY_H
#define VB_ABI_CHECK_MEMORY_H

/* The memory of an SGE, and what is in it. Inside abi/check; locked. */

#include "abi/check/state.h"

enum vb_check_seen { VB_SEEN_SAME, VB_SEEN_CHANGED, VB_SEEN_UNMAPPED };

/* Finds the memory of an SGE. */
void vb_check_piece_find(struct vb_check_piece *piece, const struct ibv_sge *sge);

/* Remembers what is in it. */
void vb_check_piece_watch(struct vb_check_piece *piece);
void vb_check_piece_free(struct vb_check_piece *piece);

/*
 * Is it what it was, from this octet on? Only whole blocks are compared. *at, *end: the octets of
 * the first block that is not.
 */
enum vb_check_seen vb_check_piece_look(const struct vb_check_piece *piece, uint32_t from,
				       uint32_t *at, uint32_t *end);

/* Is all of it still mapped? */
bool vb_check_piece_mapped(const struct vb_check_piece *piece);

/* Fills it with the pattern of --poison. */
void vb_check_piece_poison(const struct vb_check_piece *piece);

/* Does it begin with that pattern, 16 octets of it or more? */
bool vb_check_piece_is_poison(const struct vb_check_piece *piece);

bool vb_check_pieces_meet(const struct vb_check_piece *a, const struct vb_check_piece *b);

#endif
