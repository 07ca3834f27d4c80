/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_NIC_QP_FLAGS_H
#define VB_NIC_QP_FLAGS_H

/*
 * Flags that a QP can be created with beyond ibv_create_qp_ex(3); those marked "builder" enable
 * operations of the builder (abi/verbs/wr.h).
 */
enum vb_qp_dv_flag {
	VB_QP_SCATTER_TO_CQE_OFF = 1 << 0,
	/* the requester's too, even if not all WRs are signaled */
	VB_QP_SCATTER_TO_CQE_ON = 1 << 1,
	VB_QP_PACKET_CREDITS = 1 << 2,
	VB_QP_TUNNEL_OFFLOADS = 1 << 3,
	VB_QP_LOOPBACK_UC = 1 << 4,
	VB_QP_LOOPBACK_MC = 1 << 5,
	VB_QP_MR_INTERLEAVED = 1 << 6, /* builder */
	VB_QP_MR_LIST = 1 << 7,	       /* builder */
	VB_QP_MKEY_CONFIGURE = 1 << 8, /* builder */
	VB_QP_MEMCPY = 1 << 9,	       /* builder */
	VB_QP_RAW_WQE = 1 << 10,       /* builder */
	/* a permission: messages may be received in any order. They keep theirs */
	VB_QP_OOO_DP = 1 << 11,
};

#define VB_QP_DV_BUILDER                                                                          \
	(VB_QP_MR_INTERLEAVED | VB_QP_MR_LIST | VB_QP_MKEY_CONFIGURE | VB_QP_MEMCPY | VB_QP_RAW_WQE)

/* Those that configure indirect keys (mkey.h). */
#define VB_QP_MKEYS (VB_QP_MR_INTERLEAVED | VB_QP_MR_LIST | VB_QP_MKEY_CONFIGURE)

#endif
