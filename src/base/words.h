/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_BASE_WORDS_H
#define VB_BASE_WORDS_H

/*
 * Words that a user may type, such as settings, commands and values, and messages about other
 * words. Pure: any thread.
 */

#include <stddef.h>

#include "base/check.h"
#include "base/text.h"

/* The words of a table whose rows have a field `name`. */
struct vb_words {
	const char *const *first;
	size_t stride; /* octets from one row to the next */
	unsigned count;
};

/* An initializer. */
#define VB_WORDS(table)                                                       \
	{                                                                     \
		&(table)[0].name, sizeof((table)[0]), VB_ARRAY_LEN(table)     \
	}

const char *vb_words_at(const struct vb_words *words, unsigned i);

/* The row of a word, given with its length; words->count if there is none. */
unsigned vb_words_find(const struct vb_words *words, const char *typed, size_t bytes);

/*
 * The word that was probably meant; NULL if none is near. Near means at most two typing errors, and
 * at most one for each three letters. An error is a letter too many, missing or wrong, or two
 * neighbours swapped. Case does not matter.
 */
const char *vb_words_nearest(const struct vb_words *words, const char *typed, size_t bytes);

/* Adds "; did you mean 'WORD'?", or nothing if none is near. */
void vb_words_add_nearest(struct vb_text *text, const struct vb_words *words, const char *typed,
			  size_t bytes);

/*
 * Adds "there is no KIND 'TYPED'", the word that was probably meant, and after the title the list
 * of all words; title NULL: no list.
 */
void vb_words_add_unknown(struct vb_text *text, const struct vb_words *words, const char *kind,
			  const char *title, const char *typed, size_t bytes);

/* Adds "'a', 'b' or 'c'". */
void vb_words_add_choice(struct vb_text *text, const struct vb_words *words);

/* Adds "a, b, c". */
void vb_words_add_list(struct vb_text *text, const struct vb_words *words);

#endif
