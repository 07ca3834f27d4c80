/* SPDX-License-Identifier: BSD-2-Clause */
#include "run/process/flaw.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "run/process/callsite.h"
#include "run/process/cancel.h"

const struct vb_flaw_words vb_flaw_words[VB_FLAWS] = {
#define X(id, name, what, cure) [VB_FLAW_##id] = {name, what, cure},
#include "run/process/flaw.def"
#undef X
};

struct said {
	struct said *next;
	enum vb_flaw flaw;
	const void *site;
	unsigned number;
	uint64_t count, count_told;
	char *text; /* site and words, as in the line */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct said *all;
static unsigned count_all;
static int file = -1;

bool vb_flaws_open(const char *path)
{
	file = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
	return file >= 0;
}

/* A single write, so that lines of several processes do not mix. */
static void line_write(struct said *said)
{
	char line[VB_FLAW_LINE_BYTES];
	int bytes = snprintf(line, sizeof(line) - 1, "%s\t%d\t%s\t%u\t%llu\t%s",
			     vb_flaw_words[said->flaw].name, (int)getpid(),
			     program_invocation_short_name, said->number,
			     (unsigned long long)said->count, said->text);

	if (bytes < 0)
		return;
	if (bytes > (int)sizeof(line) - 2)
		bytes = sizeof(line) - 2;
	line[bytes++] = '\n';
	if (write(file, line, (size_t)bytes) == bytes)
		said->count_told = said->count;
}

/* "SITE\tWORDS" without tabs and newlines in either. NULL: no memory. */
static char *text_make(const void *site, const char *format, va_list args)
{
	char place[VB_CALLSITE_BYTES], words[VB_FLAW_LINE_BYTES / 2], *text;

	vb_callsite_of(place, site);
	vsnprintf(words, sizeof(words), format, args);
	for (char *c = words; *c; c++)
		*c = *c == '\t' || *c == '\n' ? ' ' : *c;
	return asprintf(&text, "%s\t%s", place, words) < 0 ? NULL : text;
}

static struct said *find(enum vb_flaw flaw, const void *site)
{
	struct said *said = all;

	while (said && (said->flaw != flaw || said->site != site))
		said = said->next;
	return said;
}

static struct said *make(enum vb_flaw flaw, const void *site, const char *format, va_list args)
{
	struct said *said = calloc(1, sizeof(*said));
	char *text = said ? text_make(site, format, args) : NULL;

	if (!text) {
		free(said);
		return NULL;
	}
	*said = (struct said){ .next = all, .flaw = flaw, .site = site,
			       .number = count_all++, .text = text };
	all = said;
	return said;
}

static void count(struct said *said)
{
	said->count++;
	if (file >= 0 && !(said->count & (said->count - 1)))
		line_write(said);
}

bool vb_flaw_again(enum vb_flaw flaw, const void *site)
{
	struct said *said;

	pthread_mutex_lock(&lock);
	said = find(flaw, site);
	if (said)
		count(said);
	pthread_mutex_unlock(&lock);
	return said;
}

void vb_flaw_say(enum vb_flaw flaw, const void *site, const char *format, ...)
{
	int saved = errno, cancel = vb_cancel_defer();
	struct said *said;
	va_list args;

	pthread_mutex_lock(&lock);
	said = find(flaw, site);
	if (!said) {
		va_start(args, format);
		said = make(flaw, site, format, args);
		va_end(args);
	}
	if (said)
		count(said);
	pthread_mutex_unlock(&lock);
	vb_cancel_restore(cancel);
	errno = saved;
}

void vb_flaws_end(void)
{
	pthread_mutex_lock(&lock);
	for (struct said *said = all; said; said = said->next)
		if (said->count != said->count_told)
			line_write(said);
	pthread_mutex_unlock(&lock);
}

void vb_flaws_forget(void)
{
	lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
	/* Not freed: another thread of the parent may have been at it. */
	all = NULL;
	count_all = 0;
}
