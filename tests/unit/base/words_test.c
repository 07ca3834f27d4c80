/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/words.h"
#include "group.h"

static const struct {
	int other;
	const char *name;
} rows[] = {
	{ 1, "loss" }, { 2, "dup" }, { 3, "reorder" }, { 4, "corrupt" }, { 5, "delay" },
	{ 6, "seed" },
};
static const struct vb_words words = VB_WORDS(rows);

TEST(words_are_found_by_their_octets)
{
	assert_int_equal(words.count, 6);
	for (unsigned i = 0; i < words.count; i++) {
		const char *word = vb_words_at(&words, i);

		assert_ptr_equal(word, rows[i].name);
		assert_int_equal(vb_words_find(&words, word, strlen(word)), i);
	}
	assert_int_equal(vb_words_find(&words, "loss=1%", 4), 0);
	assert_int_equal(vb_words_find(&words, "loss", 3), words.count);
	assert_int_equal(vb_words_find(&words, "losses", 6), words.count);
	assert_int_equal(vb_words_find(&words, "Loss", 4), words.count);
	assert_int_equal(vb_words_find(&words, "", 0), words.count);
}

TEST(nearest_word_is_the_one_with_fewest_slips)
{
	static const struct {
		const char *typed, *nearest;
	} cases[] = {
		{ "los", "loss" }, { "losss", "loss" }, { "lost", "loss" }, { "olss", "loss" },
		{ "LOSS", "loss" }, { "dpu", "dup" }, { "du", "dup" }, { "tup", "dup" },
		{ "reroder", "reorder" }, { "recorders", "reorder" }, { "corupt", "corrupt" },
		{ "corupte", "corrupt" }, { "dealy", "delay" }, { "Sede", "seed" },
		/* too far, or too little of it is right */
		{ "", NULL }, { "x", NULL }, { "lo", NULL }, { "ud", NULL }, { "dog", NULL },
		{ "much", NULL }, { "corruption!", NULL },
		{ "a-word-of-more-than-thirty-two-letters", NULL },
	};

	for (unsigned i = 0; i < VB_ARRAY_LEN(cases); i++) {
		const char *typed = cases[i].typed;
		const char *nearest = vb_words_nearest(&words, typed, strlen(typed));

		if (!nearest || !cases[i].nearest ? nearest != cases[i].nearest
						  : strcmp(nearest, cases[i].nearest) != 0)
			fail_msg("'%s': '%s'", typed, nearest ? nearest : "none");
	}
}

/* Nine letters that are always right do not make three wrong ones a small slip. */
TEST(what_all_words_begin_with_does_not_count)
{
	static const struct {
		const char *name;
	} settings[] = { { "VERBATIM_LOG" }, { "VERBATIM_ETH" }, { "VERBATIM_LINK" } };
	const struct vb_words names = VB_WORDS(settings);

	assert_string_equal(vb_words_nearest(&names, "VERBATIM_LOGG", 13), "VERBATIM_LOG");
	assert_string_equal(vb_words_nearest(&names, "VERBATIM_lin", 12), "VERBATIM_LINK");
	assert_string_equal(vb_words_nearest(&names, "VERBATIN_LOG", 12), "VERBATIM_LOG");
	assert_null(vb_words_nearest(&names, "VERBATIM_", 9));
	assert_null(vb_words_nearest(&names, "VERBATIM_LXX", 12));
	assert_null(vb_words_nearest(&names, "VERBATIM_DEBUG", 14));
}

TEST(one_word_alone_has_nothing_in_common)
{
	static const struct {
		const char *name;
	} one[] = { { "connectx7" } };
	const struct vb_words names = VB_WORDS(one), none = { &one[0].name, sizeof(one[0]), 0 };

	assert_string_equal(vb_words_nearest(&names, "conectx7", 8), "connectx7");
	assert_string_equal(vb_words_nearest(&names, "ConnectX-7", 10), "connectx7");
	assert_null(vb_words_nearest(&names, "mlx5", 4));
	assert_null(vb_words_nearest(&none, "connectx7", 9));
}

TEST(words_are_told)
{
	static const struct {
		const char *name;
	} some[] = { { "a" }, { "b" }, { "c" } };
	struct vb_words names = VB_WORDS(some);
	char chars[80];
	struct vb_text text = vb_text_in(chars, sizeof(chars));

	vb_words_add_list(&text, &names);
	vb_text_add(&text, "; ", NULL);
	vb_words_add_choice(&text, &names);
	for (names.count = 2; names.count; names.count--) {
		vb_text_add(&text, "; ", NULL);
		vb_words_add_choice(&text, &names);
	}
	assert_string_equal(chars, "a, b, c; 'a', 'b' or 'c'; 'a' or 'b'; 'a'");
	text = vb_text_in(chars, sizeof(chars));
	vb_words_add_nearest(&text, &words, "much", 4);
	assert_string_equal(chars, "");
	vb_words_add_nearest(&text, &words, "los=1%", 3);
	assert_string_equal(chars, "; did you mean 'loss'?");
}
