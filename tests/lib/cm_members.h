/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_TESTS_CM_MEMBERS_H
#define VB_TESTS_CM_MEMBERS_H

/*
 * The messages of communication management, filled: what each carries is read from cm_msg.def, so a
 * new field is tested as soon as it has a row. Where the fields are, this does not know.
 */

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/check.h"
#include "base/prng.h"
#include "wire/cm_msg.h"

struct cm_member {
	unsigned attr;
	const char *name; /* "req.local_qpn" */
	size_t at;	  /* in struct vb_cm_msg */
	size_t bytes;
	unsigned width;
	unsigned low; /* of a row that is but a part of a member: how many of its bits are below */
};

static const struct cm_member cm_members[] = {
#define VB_CM_FIELD(a, m, octet, bit, width) VB_CM_PART(a, m, width, 0, octet, bit, width)
#define VB_CM_PART(a, m, m_bits, low, octet, bit, width)                                    \
	{ VB_CM_##a, #m, offsetof(struct vb_cm_msg, m), sizeof(((struct vb_cm_msg *)0)->m), \
	  m_bits,    low },
#include "wire/cm_msg.def"
};

static const unsigned cm_attrs[] = {
#define VB_CM_ATTR(name, ...) VB_CM_##name,
#include "wire/cm_msg.def"
};

/* The next member that a message has, the first one behind NULL; NULL behind the last one. */
static inline const struct cm_member *cm_member_next(unsigned attr, const struct cm_member *m)
{
	for (m = m ? m + 1 : cm_members; m < cm_members + VB_ARRAY_LEN(cm_members); m++) {
		if (m->attr == attr && !m->low)
			return m;
	}
	return NULL;
}

/* A GID gets two copies of v, any other member the lower bits of it. */
static inline void cm_member_set(struct vb_cm_msg *msg, const struct cm_member *m, uint64_t v)
{
	uint64_t gid[] = { v, v };
	uint8_t u8;
	uint16_t u16;
	uint32_t u32;
	const void *from = &gid;

	if (m->width < 64)
		v &= ((uint64_t)1 << m->width) - 1;
	u8 = (uint8_t)v, u16 = (uint16_t)v, u32 = (uint32_t)v;
	if (m->bytes == sizeof(u8))
		from = &u8;
	else if (m->bytes == sizeof(u16))
		from = &u16;
	else if (m->bytes == sizeof(u32))
		from = &u32;
	memcpy((uint8_t *)msg + m->at, from, m->bytes);
}

/* Only what every message has; the rest is zero. */
static inline struct vb_cm_msg cm_msg_empty(unsigned attr)
{
	return (struct vb_cm_msg){ .attr = (enum vb_cm_attr)attr };
}

/*
 * All members that the message has at random, and private data and additional information of random
 * lengths, out of octets.
 */
static inline struct vb_cm_msg cm_msg_random(unsigned attr, uint64_t *seed,
					     uint8_t octets[2 * VB_MAD_BYTES])
{
	struct vb_cm_msg msg = cm_msg_empty(attr);
	const struct cm_member *m;

	msg.transaction_id = vb_prng_next(seed);
	msg.ece_options = (uint32_t)vb_prng_next(seed);
	for (m = cm_member_next(attr, NULL); m; m = cm_member_next(attr, m))
		cm_member_set(&msg, m, vb_prng_next(seed));
	for (size_t i = 0; i < 2 * VB_MAD_BYTES; i++)
		octets[i] = (uint8_t)vb_prng_next(seed);
	msg.private_data = octets;
	msg.private_bytes = (uint8_t)(vb_prng_next(seed) % (vb_cm_private_bytes(msg.attr) + 1));
	msg.info = octets + VB_MAD_BYTES;
	msg.info_bytes %= VB_CM_INFO_BYTES + 1;
	return msg;
}

#endif
