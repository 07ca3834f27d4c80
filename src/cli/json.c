/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/json.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/check.h"

static void text_print(const char *text)
{
	putchar('"');
	for (; *text; text++) {
		if (*text == '"' || *text == '\\')
			printf("\\%c", *text);
		else if ((unsigned char)*text < ' ')
			printf("\\u%04x", (unsigned)*text);
		else
			putchar(*text);
	}
	putchar('"');
}

/* What stands before a value. */
static void begin(struct vb_json *json, const char *key)
{
	if (json->more[json->level])
		putchar(',');
	json->more[json->level] = true;
	if (json->level)
		printf("\n%*s", (int)json->level * 2, "");
	if (key) {
		text_print(key);
		fputs(": ", stdout);
	}
}

static void open_level(struct vb_json *json, const char *key, char start, char end)
{
	begin(json, key);
	putchar(start);
	json->level++;
	vb_check(json->level < VB_JSON_LEVELS);
	json->more[json->level] = false;
	json->end[json->level] = end;
}

void vb_json_object(struct vb_json *json, const char *key)
{
	open_level(json, key, '{', '}');
}

void vb_json_array(struct vb_json *json, const char *key)
{
	open_level(json, key, '[', ']');
}

void vb_json_close(struct vb_json *json)
{
	bool any = json->more[json->level];
	char end = json->end[json->level];

	json->level--;
	if (any)
		printf("\n%*s", (int)json->level * 2, "");
	putchar(end);
	if (!json->level)
		putchar('\n');
}

void vb_json_text(struct vb_json *json, const char *key, const char *value)
{
	begin(json, key);
	text_print(value);
}

void vb_json_number(struct vb_json *json, const char *key, uint64_t value)
{
	begin(json, key);
	printf("%" PRIu64, value);
}

void vb_json_bool(struct vb_json *json, const char *key, bool value)
{
	begin(json, key);
	fputs(value ? "true" : "false", stdout);
}

void vb_json_null(struct vb_json *json, const char *key)
{
	begin(json, key);
	fputs("null", stdout);
}
