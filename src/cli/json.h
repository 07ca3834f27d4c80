/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_CLI_JSON_H
#define VB_CLI_JSON_H

/*
 * Writes JSON (RFC 8259) to stdout, value by value. `key` is NULL inside an array; a level that is
 * opened is closed by vb_json_close(), in the order of the nesting.
 */

#include <stdbool.h>
#include <stdint.h>

enum { VB_JSON_LEVELS = 8 };

struct vb_json {
	unsigned level;
	bool more[VB_JSON_LEVELS]; /* something stands there already */
	char end[VB_JSON_LEVELS];
};

void vb_json_object(struct vb_json *json, const char *key);
void vb_json_array(struct vb_json *json, const char *key);
void vb_json_close(struct vb_json *json);

void vb_json_text(struct vb_json *json, const char *key, const char *value);
void vb_json_number(struct vb_json *json, const char *key, uint64_t value);
void vb_json_bool(struct vb_json *json, const char *key, bool value);
void vb_json_null(struct vb_json *json, const char *key);

#endif
