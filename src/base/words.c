/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/words.h"

#include <string.h>

enum {
	LETTERS_MAX = 32, /* longer words are near to none */
	SLIPS_MAX = 2,
	LETTERS_PER_SLIP = 3,
};

const char *vb_words_at(const struct vb_words *words, unsigned i)
{
	return *(const char *const *)((const char *)words->first + i * words->stride);
}

unsigned vb_words_find(const struct vb_words *words, const char *typed, size_t bytes)
{
	unsigned i = 0;

	while (i < words->count && (strlen(vb_words_at(words, i)) != bytes ||
				    strncmp(vb_words_at(words, i), typed, bytes) != 0))
		i++;
	return i;
}

static char small(char c)
{
	return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

static unsigned least(unsigned a, unsigned b)
{
	return a < b ? a : b;
}

/*
 * The number of typing errors between two words: the Damerau-Levenshtein distance in the form that
 * edits no letter twice ("optimal string alignment"). A row of the table is one letter of a; the
 * two rows before it are kept.
 */
static unsigned slips(const char *a, unsigned a_letters, const char *b, unsigned b_letters)
{
	unsigned rows[3][LETTERS_MAX + 1];

	for (unsigned j = 0; j <= b_letters; j++)
		rows[0][j] = j;
	for (unsigned i = 1; i <= a_letters; i++) {
		unsigned *row = rows[i % 3];
		const unsigned *above = rows[(i - 1) % 3], *two_above = rows[(i + 1) % 3];

		row[0] = i;
		for (unsigned j = 1; j <= b_letters; j++) {
			char ca = small(a[i - 1]), cb = small(b[j - 1]);

			row[j] = least(above[j - 1] + (ca != cb), least(above[j], row[j - 1]) + 1);
			if (i > 1 && j > 1 && ca == small(b[j - 2]) && small(a[i - 2]) == cb)
				row[j] = least(row[j], two_above[j - 2] + 1);
		}
	}
	return rows[a_letters % 3][b_letters];
}

/* The number of letters that all words begin with: a match there means nothing. */
static unsigned common_letters(const struct vb_words *words)
{
	const char *first = vb_words_at(words, 0);
	unsigned common = words->count > 1 ? (unsigned)strlen(first) : 0;

	for (unsigned i = 1; i < words->count; i++) {
		const char *word = vb_words_at(words, i);
		unsigned n = 0;

		while (n < common && word[n] == first[n])
			n++;
		common = n;
	}
	return common;
}

const char *vb_words_nearest(const struct vb_words *words, const char *typed, size_t bytes)
{
	unsigned common = words->count ? common_letters(words) : 0, fewest = SLIPS_MAX + 1;
	const char *nearest = NULL;

	if (bytes > LETTERS_MAX)
		return NULL;
	for (unsigned i = 0; i < words->count; i++) {
		const char *word = vb_words_at(words, i);
		unsigned letters = (unsigned)strlen(word), longer, n;

		if (letters > LETTERS_MAX)
			continue;
		longer = letters > bytes ? letters : (unsigned)bytes;
		n = slips(typed, (unsigned)bytes, word, letters);
		if (n < fewest && n * LETTERS_PER_SLIP <= longer - common) {
			nearest = word;
			fewest = n;
		}
	}
	return nearest;
}

void vb_words_add_nearest(struct vb_text *text, const struct vb_words *words, const char *typed,
			  size_t bytes)
{
	const char *nearest = vb_words_nearest(words, typed, bytes);

	if (nearest)
		vb_text_add(text, "; did you mean '", nearest, "'?", NULL);
}

void vb_words_add_unknown(struct vb_text *text, const struct vb_words *words, const char *kind,
			  const char *title, const char *typed, size_t bytes)
{
	vb_text_add(text, "there is no ", kind, " '", NULL);
	vb_text_add_typed(text, typed, bytes);
	vb_text_add(text, "'", NULL);
	vb_words_add_nearest(text, words, typed, bytes);
	if (!title)
		return;
	vb_text_add(text, vb_words_nearest(words, typed, bytes) ? " " : ". ", title, ": ", NULL);
	vb_words_add_list(text, words);
}

void vb_words_add_choice(struct vb_text *text, const struct vb_words *words)
{
	for (unsigned i = 0; i < words->count; i++)
		vb_text_add(text, i == 0 ? "'" : i + 1 < words->count ? ", '" : " or '",
			    vb_words_at(words, i), "'", NULL);
}

void vb_words_add_list(struct vb_text *text, const struct vb_words *words)
{
	for (unsigned i = 0; i < words->count; i++)
		vb_text_add(text, i ? ", " : "", vb_words_at(words, i), NULL);
}
