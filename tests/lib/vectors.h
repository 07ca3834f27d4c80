/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_TESTS_VECTORS_H
#define VB_TESTS_VECTORS_H

/*
 * Reads tests/data/roce-vectors.txt: packets that Linux rdma_rxe sent, with the fields that they
 * carry. The file is found from here, for the build compiles with a path that also serves at run
 * time: absolute, or relative to the build directory, where tests run.
 */

#include <arpa/inet.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/path.h"

#define VECTORS_MAX 128
#define VECTOR_BYTES_MAX 512
#define VECTOR_TEXT_MAX 1024

struct vector {
	char name[64];
	char text[VECTOR_TEXT_MAX]; /* the lines of fields, from "ip4" or "ip6" to "payload" */
	uint8_t ip[VECTOR_BYTES_MAX];
	size_t ip_bytes;
	bool ipv4;
	struct vb_path path;
	uint16_t ip_id;
	const uint8_t *frame; /* within ip, from the BTH on */
	size_t frame_bytes;
};

static struct vector vectors[VECTORS_MAX];
static size_t vectors_count;

/* True if the vector has such a header ("reth", "aeth", ...). */
static inline bool vector_has(const struct vector *v, const char *header)
{
	char start[32];

	snprintf(start, sizeof(start), "\n%s ", header);
	return strstr(v->text, start) != NULL;
}

/* The text behind "key=" in the header's line. */
static inline const char *vector_text(const struct vector *v, const char *header, const char *key)
{
	char start[32];
	const char *at;

	snprintf(start, sizeof(start), "\n%s ", header);
	at = strstr(v->text, start);
	if (at) {
		snprintf(start, sizeof(start), " %s=", key);
		at = strstr(at, start);
	}
	if (!at) {
		fprintf(stderr, "%s: no %s in %s\n", v->name, key, header);
		exit(1);
	}
	return at + strlen(start);
}

static inline uint64_t vector_number(const struct vector *v, const char *header, const char *key)
{
	return strtoull(vector_text(v, header, key), NULL, 0);
}

static inline void vector_gid(const struct vector *v, const char *key, uint8_t gid[VB_GID_BYTES])
{
	const char *text = vector_text(v, v->ipv4 ? "ip4" : "ip6", key);
	char address[INET6_ADDRSTRLEN] = "";
	int found;

	strncat(address, text, strcspn(text, " \n"));
	memset(gid, 0, 10);
	memset(gid + 10, 0xff, 2);
	found = v->ipv4 ? inet_pton(AF_INET, address, gid + 12) : inet_pton(AF_INET6, address, gid);
	if (found != 1)
		exit(1);
}

/* What the lines mean, once all of a packet are there. */
static inline void vector_finish(struct vector *v)
{
	const char *ip = v->ipv4 ? "ip4" : "ip6";
	size_t udp_at = v->ipv4 ? 20 : 40;

	vector_gid(v, "src", v->path.src);
	vector_gid(v, "dst", v->path.dst);
	v->path.sport = (uint16_t)vector_number(v, "udp", "sport");
	v->path.tclass = (uint8_t)vector_number(v, ip, v->ipv4 ? "tos" : "tclass");
	v->path.hop_limit = (uint8_t)vector_number(v, ip, v->ipv4 ? "ttl" : "hlim");
	if (v->ipv4)
		v->ip_id = (uint16_t)vector_number(v, ip, "id");
	else
		v->path.flow_label = (uint32_t)vector_number(v, ip, "flow");
	v->frame = v->ip + udp_at + 8;
	v->frame_bytes = v->ip_bytes - udp_at - 8;
}

static inline void vector_hex(struct vector *v, const char *hex)
{
	unsigned octet;

	for (; sscanf(hex, "%2x", &octet) == 1; hex += 2)
		v->ip[v->ip_bytes++] = (uint8_t)octet;
}

/* A cmocka group setup: fills vectors[]; nothing that is read here needs undoing. */
static inline int vectors_load(void **state)
{
	char name[512];
	char line[512];
	const char *slash = strrchr(__FILE__, '/');
	const char *root = getenv("VB_ROOT");
	struct vector *v = NULL;
	FILE *file;

	(void)state;
	if (root)
		snprintf(name, sizeof(name), "%s/tests/data/roce-vectors.txt", root);
	else /* as Meson's tests run: from the build folder, which __FILE__ is relative to */
		snprintf(name, sizeof(name), "%.*s/../data/roce-vectors.txt",
			 slash ? (int)(slash - __FILE__) : 1, slash ? __FILE__ : ".");
	file = fopen(name, "r");
	if (!file) {
		perror(name);
		return -1;
	}
	vectors_count = 0;
	while (fgets(line, sizeof(line), file)) {
		if (sscanf(line, "packet %63[^\n]", name) == 1) {
			v = &vectors[vectors_count++];
			memset(v, 0, sizeof(*v));
			memcpy(v->name, name, sizeof(v->name));
			v->ipv4 = name[1] == '4';
			strcpy(v->text, "\n");
		} else if (v && strncmp(line, "  hex ", 6) == 0) {
			vector_hex(v, line + 6);
		} else if (v && strncmp(line, "  ", 2) == 0) {
			strcat(v->text, line + 2);
		}
	}
	fclose(file);
	for (size_t i = 0; i < vectors_count; i++)
		vector_finish(&vectors[i]);
	return 0;
}

#endif
