/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_TESTS_VERBS_PROBE_H
#define VB_TESTS_VERBS_PROBE_H

/*
 * A look at each function and flag of <infiniband/verbs.h>: is it refused, and with what errno?
 * docs/verbs.md says so too, and tests/abi/verbs_table.py compares. A probe makes what the call
 * needs, makes the call once, and cleans up; that the call does its work as well is for the tests
 * to show that the document names.
 */

#include "lib.h"

struct probe {
	const char *name;
	int (*call)(uint64_t value); /* 0, or the errno with which it was refused */
	uint64_t value;
};

/* clang-format off */
#define PROBE(name, call) { #name, call, 0 }
#define PROBE_OF(name, call, value) { #name, call, value }
#define PROBE_FLAG(name, call) { #name, call, (uint64_t)(name) }
/* clang-format on */

/* One for each part of the header; each ends with a name of NULL. */
extern const struct probe probe_device[], probe_memory[], probe_queues[], probe_qps[],
	probe_requests[], probe_frames[], probe_later[], probe_newer[];

/* What a function says that returns an object, a count, or a number with errno. */
static inline int probe_made(const void *object)
{
	return object ? 0 : errno ? errno : EPROTO;
}

/* Makes something, and unmakes it. */
#define PROBE_ONCE(call, unmake)                                                                  \
	({                                                                                        \
		__typeof__(call) once_;                                                           \
                                                                                                  \
		errno = 0;                                                                        \
		once_ = (call);                                                                   \
		once_ ? unmake(once_) : probe_made(once_);                                        \
	})

static inline int probe_counted(long count)
{
	return count == -1 && errno ? errno : count < 0 ? (int)-count : 0;
}

/* The first of two. */
static inline int probe_first(int one, int other)
{
	return one ? one : other;
}

/*
 * A QP that is connected with itself, in RTS, made by ibv_create_qp_ex with these operations, and
 * what belongs to it: end.qp is NULL, and errno set, if it cannot be.
 */
void probe_end_open(struct vt_end *end, enum ibv_qp_type type, uint64_t ops);

/* An XRC domain, for what needs one; NULL, and errno set, where there can be none. */
struct ibv_xrcd *probe_xrcd(void);

#endif
