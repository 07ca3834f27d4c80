/* SPDX-License-Identifier: BSD-2-Clause */
#include "wire/opcode.h"

#define HEADER_BYTES(h)                                                                           \
	(VB_BTH_BYTES + ((h)&VB_H_IMM ? 4 : 0) + ((h)&VB_H_IETH ? 4 : 0) +                        \
	 ((h)&VB_H_RETH ? 16 : 0) + ((h)&VB_H_AETH ? 4 : 0) + ((h)&VB_H_ATOMIC ? 28 : 0) +        \
	 ((h)&VB_H_ATOMICACK ? 8 : 0) + ((h)&VB_H_DETH ? 8 : 0) + ((h)&VB_H_XRCETH ? 4 : 0) +     \
	 ((h)&VB_H_FETH ? 4 : 0) + ((h)&VB_H_CNP ? 16 : 0) +                                 \
	 ((h)&VB_H_DCETH ? 16 : 0) + ((h)&VB_H_DCKEY ? 8 : 0) +                           \
	 ((h)&VB_H_SRDETH ? 24 : 0))

const struct vb_op_info vb_op_infos[256] = {
#define VB_OP(n, opcode, t, k, p, h, carries)                                                     \
	[opcode] = {                                                                              \
		.transport = VB_##t,                                                              \
		.kind = VB_K_##k,                                                                 \
		.pos = VB_P_##p,                                                                  \
		.header_bytes = HEADER_BYTES(h),                                                  \
		.headers = (h),                                                                   \
		.payload = carries,                                                               \
		.name = #n,                                                                       \
	},
#include "wire/opcode.def"
#undef VB_OP
};

const char *vb_kind_words(unsigned kind)
{
	static const char *const words[VB_K_COUNT] = {
		[VB_K_SEND] = "SEND",
		[VB_K_WRITE] = "RDMA WRITE",
		[VB_K_READ_REQ] = "RDMA READ",
		[VB_K_CMP_SWP] = "atomic compare and swap",
		[VB_K_FETCH_ADD] = "atomic fetch and add",
		[VB_K_ATOMIC_WRITE] = "ATOMIC WRITE",
		[VB_K_FLUSH] = "FLUSH",
	};

	return kind < VB_K_COUNT ? words[kind] : NULL;
}

/* Opcodes are stored complemented: 0 is an opcode but 0xff is not, so an empty cell is 0. */
const uint8_t vb_op_complements[VB_OP_FIND_SIZE] = {
#define VB_OP(n, opcode, t, k, p, h, carries)                                                     \
	[vb_op_find_index(VB_##t, VB_K_##k, VB_P_##p, h)] = 0xff ^ (opcode),
#include "wire/opcode.def"
#undef VB_OP
};
