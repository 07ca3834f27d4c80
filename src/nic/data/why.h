/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_NIC_WHY_H
#define VB_NIC_WHY_H

/*
 * Why a work request failed, or a request of the peer's was refused: codes, as ibv_wc.vendor_err
 * has them, and words. docs/errors.md lists the codes. All is found out afterwards, from what is
 * there, so that nothing is kept for it on the way of a message.
 */

#include <infiniband/verbs.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/verdict.h"
#include "nic/core/export.h"

struct vb_nic;

/* X(code, NAME, what it means, what to look at) */
/* clang-format off */
#define VB_WHYS(X) \
	X(0x00, NONE, "no error", \
	  "") \
	X(0x01, FLUSHED, "the QP was in the error state before its turn came", \
	  "look at the first error of this QP, or at who moved it to ERR") \
	X(0x10, SILENT, "no acknowledgement came: timeout and retry_cnt are used up", \
	  "is the peer's QP in RTR, with this QPN and PSN? Is its address right? Is it stopped?") \
	X(0x11, GONE, "the peer's process has ended", \
	  "look at why the other program ended") \
	X(0x12, NOT_READY, "RNR: the peer has no receive posted, and rnr_retry is used up", \
	  "post receives before the peer sends, or set rnr_retry to 7 (for ever)") \
	X(0x13, BAD_ANSWER, "the peer's answer does not fit the request", \
	  "the peer does not follow the standard") \
	X(0x20, NAK_REQUEST, "the peer's NAK: invalid request", \
	  "look at the peer: is its receive large enough, does its QP accept this operation?") \
	X(0x21, NAK_ACCESS, "the peer's NAK: remote access error", \
	  "compare rkey, address, length and right with the peer's region and qp_access_flags") \
	X(0x22, NAK_OPERATION, "the peer's NAK: remote operational error", \
	  "look at the peer: are the SGEs of its receives registered and mapped?") \
	X(0x31, LKEY_UNKNOWN, "no region has the lkey of an SGE", \
	  "use the lkey of a region that is registered now") \
	X(0x32, LKEY_PD, "the lkey of an SGE belongs to another PD", \
	  "register the memory in the QP's PD") \
	X(0x33, LKEY_RIGHT, "the region of an SGE was registered without the right", \
	  "register the region with this right") \
	X(0x34, LKEY_BOUNDS, "an SGE passes the bounds of its region", \
	  "compare addr and length of the SGE with the region's") \
	X(0x35, LKEY_MEMORY, "the memory of an SGE is not mapped", \
	  "keep the memory mapped until its completion") \
	X(0x36, LKEY_INDIRECT, "the indirect key of an SGE does not allow it", \
	  "compare the layout of the key with the access") \
	X(0x41, RKEY_UNKNOWN, "no region has the rkey", \
	  "send the rkey anew after each registration") \
	X(0x42, RKEY_PD, "the rkey belongs to another PD than the QP", \
	  "register the memory in the PD of the QP that it is accessed by") \
	X(0x43, RKEY_RIGHT, "the region was registered without the right", \
	  "register the region with this right") \
	X(0x44, RKEY_BOUNDS, "the access passes the bounds of the region", \
	  "compare address and length with the region's") \
	X(0x45, RKEY_MEMORY, "the memory behind the rkey is not mapped", \
	  "keep the memory mapped as long as peers may access it") \
	X(0x46, RKEY_INDIRECT, "the indirect rkey does not allow it", \
	  "compare the layout of the key with the access") \
	X(0x47, QP_RIGHT, "qp_access_flags of the QP do not grant it", \
	  "set this right in qp_access_flags (IBV_QP_ACCESS_FLAGS)") \
	X(0x48, KEY_INVALIDATE, "the peer may not invalidate the key", \
	  "only a window of type 2 of this QP, or a key made for it, can be invalidated so") \
	X(0x51, OPCODE, "the QP does not accept this operation", \
	  "another type of QP does it") \
	X(0x52, SEQUENCE, "the opcode does not continue the message", \
	  "the peer does not follow the standard") \
	X(0x53, LENGTH, "the payload does not fit the operation", \
	  "compare path_mtu at both ends") \
	X(0x54, TOO_LONG, "the message is longer than the receive request", \
	  "post receives as long as the longest message") \
	X(0x55, MISALIGNED, "the address of the atomic is not a multiple of 8", \
	  "align the target of atomics to 8 octets") \
	X(0x56, TOO_MANY, "more READs and atomics at once than max_dest_rd_atomic", \
	  "max_rd_atomic of one end may not pass max_dest_rd_atomic of the other") \
	X(0x61, LOCAL_LENGTH, "the message is longer than the QP or the path MTU allows", \
	  "compare the sum of the SGEs with max_msg_sz, or with the path MTU of a datagram") \
	X(0x62, LOCAL_OPERATION, "the work request cannot be carried out by this QP", \
	  "is there a way to the destination, does the QP type do it, is max_rd_atomic 0?") \
	X(0x63, BIND, "the window cannot be bound so, or the key cannot be invalidated", \
	  "compare PD, MW_BIND, LOCAL_WRITE and bounds of the region with the window")
/* clang-format on */

enum vb_why {
#define VB_WHY_CODE(code, name, words, look) VB_WHY_##name = (code),
	VB_WHYS(VB_WHY_CODE)
#undef VB_WHY_CODE
};

/* What a code means, and what to look at. Any thread. */
const char *vb_why_words(enum vb_why why);
const char *vb_why_look(enum vb_why why);

enum { VB_WHY_BYTES = 320 };

/* An access by a key. */
struct vb_access {
	const struct vb_export *export; /* of the memory's owner */
	uint64_t pd, va, bytes;
	uint32_t key;
	unsigned rights; /* IBV_ACCESS_*, wanted */
	const char *what; /* "rkey", or "lkey of SGE 0" */
};

/*
 * What is wrong with an access that was refused, as the owner's table says now: an RKEY code.
 * Composes the words. Any thread.
 */
enum vb_why vb_why_key(const struct vb_access *access, char words[VB_WHY_BYTES]);

/* The same for the access of an SGE: an LKEY code. */
enum vb_why vb_why_sge(const struct vb_access *access, char words[VB_WHY_BYTES]);

/* The code of a responder's verdict. */
enum vb_why vb_why_verdict(enum vb_verdict verdict);

/*
 * What a completion has as vendor_err: our code, but EFA's own on a device that calls itself EFA,
 * since its programs decide by that what to do.
 */
uint32_t vb_why_vendor(const struct vb_nic *nic, enum ibv_wc_status status, enum vb_why why);

#endif
