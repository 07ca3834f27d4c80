/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/flaws.h"

#include <errno.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "cli/cli.h"
#include "run/process/flaw.h"

/* --- suppressions --- */

static bool is_known(const char *name)
{
	for (unsigned i = 0; i < VB_FLAWS; i++)
		if (!fnmatch(name, vb_flaw_words[i].name, 0))
			return true;
	return false;
}

/*
 * A word ends at a blank; one between quotes, " or ', at the next. NULL: there is none, or a
 * comment.
 */
static char *word_take(char **rest)
{
	char *word = *rest + strspn(*rest, " \t"), *end;

	if (!*word || *word == '#')
		return NULL;
	end = *word == '"' || *word == '\'' ? strchr(word + 1, *word) : word + strcspn(word, " \t");
	word += *word == '"' || *word == '\'';
	if (!end)
		end = word + strlen(word);
	*rest = *end ? end + 1 : end;
	*end = 0;
	return word;
}

static bool suppression_add(struct vb_cli_suppression **list, char *line)
{
	struct vb_cli_suppression *s = calloc(1, sizeof(*s));
	char *flaw = word_take(&line), *place = word_take(&line), *words = word_take(&line);

	/* A place with blanks and without quotes would match nothing. */
	if (!s || !flaw || !place || !is_known(flaw) || word_take(&line)) {
		free(s);
		return false;
	}
	s->flaw = strdup(flaw);
	s->place = strdup(place);
	s->words = words ? strdup(words) : NULL;
	s->next = *list;
	*list = s;
	return s->flaw && s->place;
}

bool vb_cli_suppressions_read(struct vb_cli_suppression **list, const char *path)
{
	FILE *file = fopen(path, "re");
	char *line = NULL;
	size_t room = 0;
	unsigned number = 0;
	bool ok = file;

	if (!file)
		vb_cli_error("%s: %s", path, strerror(errno));
	while (ok && getline(&line, &room, file) >= 0) {
		char *first = line + strspn(line, " \t");

		number++;
		line[strcspn(line, "\r\n")] = 0;
		if (!*first || *first == '#')
			continue;
		ok = suppression_add(list, first);
		if (!ok)
			vb_cli_error("%s:%u: 'NAME PLACE [WORDS]' is wanted, with the name of a "
				     "flaw, and quotes around what has blanks", path, number);
	}
	free(line);
	if (file)
		fclose(file);
	return ok;
}

/* --- what was found --- */

struct found {
	struct found *next;
	const char *field[VB_FLAW_FIELDS];
	unsigned long long count;
	const struct vb_flaw_words *words;
	char *line; /* has the fields */
};

enum { NAME, PID, PROGRAM, NUMBER, COUNT, SITE, WORDS };

static const struct vb_flaw_words *words_of(const char *name)
{
	for (unsigned i = 0; i < VB_FLAWS; i++)
		if (!strcmp(name, vb_flaw_words[i].name))
			return &vb_flaw_words[i];
	return NULL;
}

static bool fields_read(struct found *found, char *line)
{
	found->line = line;
	for (unsigned i = 0; i < VB_FLAW_FIELDS; i++) {
		found->field[i] = strsep(&line, "\t");
		if (!found->field[i])
			return false;
	}
	found->words = words_of(found->field[NAME]);
	found->count = strtoull(found->field[COUNT], NULL, 10);
	return found->words;
}

static bool is_same(const struct found *a, const struct found *b)
{
	return !strcmp(a->field[PID], b->field[PID]) &&
	       !strcmp(a->field[NUMBER], b->field[NUMBER]) &&
	       !strcmp(a->field[NAME], b->field[NAME]);
}

static void found_free(struct found *found)
{
	free(found->line);
	free(found);
}

/* A later line of the same flaw has the new count. */
static void found_add(struct found **list, struct found *new)
{
	struct found **at = list;

	while (*at && !is_same(*at, new))
		at = &(*at)->next;
	if (!*at) {
		*at = new;
		return;
	}
	(*at)->count = new->count;
	found_free(new);
}

static struct found *found_read(FILE *file)
{
	struct found *list = NULL;
	char *line = NULL;
	size_t room = 0;

	while (getline(&line, &room, file) >= 0) {
		struct found *found = calloc(1, sizeof(*found));
		char *copy;

		line[strcspn(line, "\n")] = 0;
		copy = strdup(line);
		if (found && copy && fields_read(found, copy)) {
			found_add(&list, found);
		} else {
			free(copy);
			free(found);
		}
	}
	free(line);
	return list;
}

static bool matches(const char *pattern, const char *text)
{
	return !pattern || !fnmatch(pattern, text, 0);
}

static bool is_suppressed(const struct found *found, const struct vb_cli_suppression *list)
{
	for (; list; list = list->next)
		if (matches(list->flaw, found->field[NAME]) &&
		    matches(list->place, found->field[SITE]) &&
		    matches(list->words, found->field[WORDS]))
			return true;
	return false;
}

/* --- written --- */

static void text_write(FILE *out, const struct found *f)
{
	fprintf(out, "%s[%s]: %s", f->field[PROGRAM], f->field[PID], f->field[NAME]);
	if (*f->field[SITE])
		fprintf(out, " at %s", f->field[SITE]);
	if (f->count > 1)
		fprintf(out, " (%llu times)", f->count);
	fprintf(out, "\n    %s\n    cure: %s\n", f->field[WORDS], f->words->cure);
}

static void string_write(FILE *out, const char *key, const char *text)
{
	fprintf(out, "\"%s\": \"", key);
	for (; *text; text++) {
		if (*text == '"' || *text == '\\')
			fprintf(out, "\\%c", *text);
		else if ((unsigned char)*text < ' ')
			fprintf(out, "\\u%04x", (unsigned char)*text);
		else
			fputc(*text, out);
	}
	fputc('"', out);
}

static void json_write(FILE *out, const struct found *f, bool first)
{
	fputs(first ? "\n  {" : ",\n  {", out);
	string_write(out, "flaw", f->field[NAME]);
	fputs(", ", out);
	string_write(out, "place", f->field[SITE]);
	fprintf(out, ", \"count\": %llu, \"pid\": %s, ", f->count, f->field[PID]);
	string_write(out, "program", f->field[PROGRAM]);
	fputs(",\n   ", out);
	string_write(out, "words", f->field[WORDS]);
	fputs(",\n   ", out);
	string_write(out, "what", f->words->what);
	fputs(",\n   ", out);
	string_write(out, "cure", f->words->cure);
	fputc('}', out);
}

static void one_write(FILE *out, const struct found *f, enum vb_cli_form form, bool first)
{
	switch (form) {
	case VB_CLI_TEXT:
		text_write(out, f);
		break;
	case VB_CLI_JSON:
		json_write(out, f, first);
		break;
	case VB_CLI_SUPPRESSIONS:
		fprintf(out, "# %s\n%s \"%s\"\n", f->field[WORDS], f->field[NAME],
			*f->field[SITE] ? f->field[SITE] : "*");
		break;
	}
}

int vb_cli_flaws_write(FILE *out, const char *path, const struct vb_cli_suppression *list,
		       enum vb_cli_form form)
{
	FILE *file = fopen(path, "re");
	int written = 0, suppressed = 0;
	struct found *next;

	if (!file) {
		vb_cli_error("%s: %s", path, strerror(errno));
		return -1;
	}
	if (form == VB_CLI_JSON)
		fputs("{\"flaws\": [", out);
	for (struct found *f = found_read(file); f; f = next) {
		next = f->next;
		if (is_suppressed(f, list))
			suppressed++;
		else
			one_write(out, f, form, !written++);
		found_free(f);
	}
	if (form == VB_CLI_JSON)
		fprintf(out, "%s], \"suppressed\": %d}\n", written ? "\n" : "", suppressed);
	if (form == VB_CLI_TEXT)
		fprintf(out, "verbatim check: %d flaw%s, %d suppressed\n", written,
			written == 1 ? "" : "s", suppressed);
	fclose(file);
	return written;
}
