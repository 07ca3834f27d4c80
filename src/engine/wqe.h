/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_ENGINE_WQE_H
#define VB_ENGINE_WQE_H

/*
 * A send work request as it waits in the send queue. Written once, when it is posted; nothing in
 * it changes while it is sent, however often that happens (but see nic/data/snapshot.h). Where the
 * requester is stands in the requester, as a PSN.
 */

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/path.h"
#include "wire/opcode.h"

/* What a send queue does by itself, without a packet: kinds beyond those that packets have. */
enum { VB_K_BIND = VB_K_COUNT, VB_K_TSO, VB_K_LOCAL_INV, VB_K_MKEY, VB_K_MEMCPY };

/* The octet of a key that its owner may change: the others say whose it is. */
#define VB_KEY_TAG_MASK 0xffu

/* Where a datagram goes. */
struct vb_ud_addr {
	struct vb_path path;
	uint32_t dqpn;
	uint32_t qkey;
};

/* A piece of what an indirect key leads to, and the gap behind it. */
struct vb_mkey_entry {
	uint64_t addr;
	uint32_t bytes, skip, lkey;
};

/* What is to become of an indirect key. */
struct vb_mkey_conf {
	uint32_t key;	/* as it will be */
	uint32_t repeat;
	uint16_t count; /* of entries */
	uint16_t access;
	bool has_access, has_layout;
};

/* What is copied from one key's memory to another's. */
struct vb_copy {
	uint64_t to, from, bytes;
	uint32_t to_key, from_key;
};

struct vb_wqe {
	uint64_t wr_id;
	uint32_t bytes;
	uint16_t sge_count;
	uint8_t kind;	   /* enum vb_kind */
	uint8_t extra;	   /* VB_H_IMM, VB_H_IETH or 0 */
	uint8_t wc_opcode; /* enum ibv_wc_opcode */
	uint8_t flags;	   /* IBV_SEND_*, VB_WQE_APART; SIGNALED for all if the QP says so */
	uint8_t only;	   /* opcode, if it is one packet with payload: see vb_segment_only() */
	uint8_t fault;	   /* enum ibv_wc_status: what it will fail with when its turn comes */
	union {
		uint32_t imm_be;   /* with VB_H_IMM */
		uint32_t inv_rkey; /* with VB_H_IETH, and of a VB_K_LOCAL_INV */
	};
	uint32_t psn;	   /* first of the PSNs it takes */
	uint32_t packets;  /* how many those are; 0: it needs none */
	uint32_t ssn;	   /* number of its first message */
	uint32_t messages; /* a long READ is sent as several requests */
	union {
		struct {
			uint64_t va;
			uint32_t rkey;
			uint32_t srqn; /* XRC, of SENDs as well */
			/*
			 * XRC, DC, of SENDs as well: all that is on its way has the same. XRC: the
			 * slot of the SRQ's NIC. DC: counted up whenever the address changes.
			 */
			uint32_t target;
			union {
				struct {
					uint64_t swap_add, compare;
				};
				struct {
					uint8_t flush_type, flush_level; /* VB_K_FLUSH */
				};
			};
		} remote;
		struct vb_ud_addr ud;
		struct {
			uint32_t header_bytes, mss; /* raw.h */
		} tso;
		struct {
			uint64_t addr, bytes;
			uint32_t region; /* its key, 0: none */
			uint32_t key;	 /* what the window's will be */
			unsigned access; /* IBV_ACCESS_* */
		} bind;
		struct vb_mkey_conf mkey; /* its entries: vb_wqe_entries() */
		struct vb_copy copy;
	};
	union {
		struct ibv_sge sge[1]; /* sge_count of them */
		uint8_t data[16];      /* bytes of them, with IBV_SEND_INLINE */
		uint8_t *apart;	       /* where they are, with VB_WQE_APART as well */
	};
};

/* Beside IBV_SEND_INLINE, of which it is one: the data does not stand in the work request. */
#define VB_WQE_APART 0x80u

/* The send queue: a ring that nic allocates. Indices count on; index & mask is the place. */
struct vb_sq {
	uint8_t *ring;
	uint32_t stride, mask;
};

static inline struct vb_wqe *vb_sq_at(const struct vb_sq *sq, uint32_t index)
{
	return (struct vb_wqe *)(sq->ring + (size_t)(index & sq->mask) * sq->stride);
}

/* `from` may be NULL if there are none. Most work requests have one, which takes no call. */
static inline void vb_sges_copy(struct ibv_sge *to, const struct ibv_sge *from, size_t count)
{
	if (count == 1)
		*to = *from;
	else if (count)
		memcpy(to, from, count * sizeof(*to));
}

/* With IBV_SEND_INLINE: its data. */
static inline const uint8_t *vb_wqe_data(const struct vb_wqe *wqe)
{
	return wqe->flags & VB_WQE_APART ? wqe->apart : wqe->data;
}

/* Of a VB_K_MKEY, where others have their SGEs. */
static inline struct vb_mkey_entry *vb_wqe_entries(struct vb_wqe *wqe)
{
	return (struct vb_mkey_entry *)wqe->data;
}

static inline bool vb_wqe_takes_recv(const struct vb_wqe *wqe)
{
	return wqe->kind == VB_K_SEND || (wqe->kind == VB_K_WRITE && (wqe->extra & VB_H_IMM));
}

static inline bool vb_wqe_is_atomic(const struct vb_wqe *wqe)
{
	return wqe->kind == VB_K_CMP_SWP || wqe->kind == VB_K_FETCH_ADD;
}

/* Does it wait for a response of its own, which takes a place among the READs and atomics? */
static inline bool vb_wqe_is_fetch(const struct vb_wqe *wqe)
{
	return wqe->kind == VB_K_READ_REQ ||
	       (wqe->kind >= VB_K_CMP_SWP && wqe->kind <= VB_K_FLUSH);
}

/* ... and has no data to send? */
static inline bool vb_wqe_sends_nothing(const struct vb_wqe *wqe)
{
	return vb_wqe_is_fetch(wqe) && wqe->kind != VB_K_ATOMIC_WRITE;
}

static inline bool vb_wqe_is_local(const struct vb_wqe *wqe)
{
	return wqe->kind >= VB_K_COUNT;
}

#endif
