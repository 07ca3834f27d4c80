/* SPDX-License-Identifier: BSD-2-Clause */
#include "tape/format.h"

#include <isa-l/crc.h>
#include <string.h>

#include "base/check.h"
#include "base/frame.h"
#include "nic/control/qp_dv.h"
#include "nic/core/nic.h"
#include "nic/data/post.h"
#include "nic/queue/cq.h"

static const char *const words[] = {
	[VB_TAPE_NOTHING] = "nothing",
#define VB_TAPE(name, text) [VB_TAPE_##name] = (text),
#include "tape/tape.def"
#undef VB_TAPE
};

const char *vb_tape_words(uint32_t kind)
{
	return kind < VB_ARRAY_LEN(words) ? words[kind] : "?";
}

uint64_t vb_tape_layout(void)
{
	static const uint32_t layout[] = {
		VB_TAPE_KINDS, sizeof(struct vb_tape_head), sizeof(struct vb_tape_item_head),
		sizeof(struct vb_frame), sizeof(struct vb_gid_entry), sizeof(struct vb_post),
		sizeof(struct vb_cqe), sizeof(struct vb_qp_dv_attr), sizeof(struct ibv_qp_attr),
		sizeof(struct ibv_send_wr), sizeof(struct ibv_qp_init_attr_ex),
		sizeof(struct vb_persona),
	};

	return crc32_iscsi((unsigned char *)layout, sizeof(layout), 1);
}

uint32_t vb_tape_sum(uint32_t before, const struct vb_tape_item_head *head, const void *data)
{
	struct vb_tape_item_head covered = *head;

	covered.sum = before;
	before = crc32_iscsi((unsigned char *)&covered, sizeof(covered), ~0u);
	return crc32_iscsi((unsigned char *)data, (int)head->bytes, before);
}
