/* SPDX-License-Identifier: BSD-2-Clause */
#include "cm/known.h"

#include <string.h>

#include "base/prf.h"
#include "wire/bytes.h"

enum {
	MARK_AT = 18, /* reserved, behind the attribute */
	MARK = 0x7662,
	MESSAGE_NONE = 3, /* in place of an enum vb_cm_message */
};

void vb_cm_mark(uint8_t mad[VB_MAD_BYTES])
{
	vb_be16_put(mad + MARK_AT, MARK);
}

bool vb_cm_is_marked(const uint8_t mad[VB_MAD_BYTES])
{
	return vb_be16_get(mad + MARK_AT) == MARK;
}

static unsigned place_of(const uint64_t secret[2], const uint8_t gid[VB_GID_BYTES])
{
	uint64_t hash = vb_prf(secret, vb_be64_get(gid));

	return (unsigned)(vb_prf(secret, hash ^ vb_be64_get(gid + 8)) % VB_CM_KNOWN_MAX);
}

void vb_cm_known_note(struct vb_cm_known *known, const uint64_t secret[2],
		      const uint8_t gid[VB_GID_BYTES], bool ours)
{
	uint8_t *place = known->gid[place_of(secret, gid)];

	if (ours)
		memcpy(place, gid, VB_GID_BYTES);
	else if (memcmp(place, gid, VB_GID_BYTES) == 0)
		memset(place, 0, VB_GID_BYTES);
}

bool vb_cm_known_has(const struct vb_cm_known *known, const uint64_t secret[2],
		     const uint8_t gid[VB_GID_BYTES])
{
	return memcmp(known->gid[place_of(secret, gid)], gid, VB_GID_BYTES) == 0;
}

void vb_cm_hello(struct vb_cm_msg *msg, uint32_t local_id, uint64_t tid)
{
	*msg = (struct vb_cm_msg){
		.attr = VB_CM_MRA,
		.transaction_id = tid,
		.local_comm_id = local_id,
		.mra.message_mraed = MESSAGE_NONE,
	};
}

void vb_cm_hello_answer(struct vb_cm_msg *answer, const struct vb_cm_msg *hello)
{
	vb_cm_hello(answer, 0, hello->transaction_id);
	answer->remote_comm_id = hello->local_comm_id;
}

bool vb_cm_is_hello(const struct vb_cm_msg *msg)
{
	return msg->attr == VB_CM_MRA && msg->mra.message_mraed == MESSAGE_NONE;
}
