/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_TESTS_VERBS_TOLD_H
#define VB_TESTS_VERBS_TOLD_H

/*
 * What the log says: a test program that includes this has a log of its own from the start. Each
 * status and event that has words has them compared in a test (docs/errors.md).
 */

#include "lib.h"

#include <unistd.h>

static char log_name[64];
static long seen; /* how much of the log was read */

/* Before the device is opened. */
static void __attribute__((constructor)) log_open(void)
{
	snprintf(log_name, sizeof(log_name), "/tmp/told.%d", (int)getpid());
	setenv("VERBATIM_LOG", strstr(program_invocation_name, "unread") ? "stderr" : log_name, 1);
}

static void __attribute__((destructor)) log_close(void)
{
	unlink(log_name);
}

/* What was logged since the last call. The caller frees it. */
static char *log_news(void)
{
	FILE *file = fopen(log_name, "r");
	char *news = calloc(1, 65536);

	assert_non_null(news);
	if (!file)
		return news;
	fseek(file, seen, SEEK_SET);
	news[fread(news, 1, 65535, file)] = 0;
	seen = ftell(file);
	fclose(file);
	return news;
}

/* What was logged before this is no news. */
static inline void log_skip(void)
{
	FILE *file = fopen(log_name, "r");

	if (!file)
		return;
	fseek(file, 0, SEEK_END);
	seen = ftell(file);
	fclose(file);
}

/* One line of the news has all of these texts, of which the last is NULL. */
static void logged(const char *first, ...)
{
	uint64_t end = vt_now_ms() + VT_WAIT_MS;
	char all[65536] = "";

	/* Explanations may come a little later, by a thread of the library's. */
	do {
		char *news = log_news(), *rest = NULL;

		strncat(all, news, sizeof(all) - strlen(all) - 1);
		free(news);
		news = strdup(all);
		for (char *line = strtok_r(news, "\n", &rest); line;
		     line = strtok_r(NULL, "\n", &rest)) {
			va_list texts;
			bool has = strstr(line, first);

			va_start(texts, first);
			for (const char *text; has && (text = va_arg(texts, const char *));)
				has = strstr(line, text);
			va_end(texts);
			if (has) {
				free(news);
				return;
			}
		}
		free(news);
		vt_sleep_ms(10);
	} while (vt_now_ms() < end);
	fail_msg("nothing with '%s' is in the log:\n%s", first, all);
}

static char text_[8][128];
static unsigned texts;

static const char *text(const char *format, ...) __attribute__((format(printf, 1, 2)));
static const char *text(const char *format, ...)
{
	char *into = text_[texts++ % 8];
	va_list args;

	va_start(args, format);
	vsnprintf(into, sizeof(text_[0]), format, args);
	va_end(args);
	return into;
}

#endif
