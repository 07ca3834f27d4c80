/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_ENGINE_WQE_H
#define VB_ENGINE_WQE_H

/*
 * A send work request in the send queue. Written once, when posted; sending and retransmitting do
 * not change it (but see nic/data/snapshot.h). The progress of sending is in the requester, as a
 * PSN.
 */

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/path.h"
#include "wire/opcode.h"

/* Kinds of work requests that no packet has, numbered after those of packets. */
enum { VB_K_BIND = VB_K_COUNT, VB_K_TSO, VB_K_LOCAL_INV, VB_K_MKEY, VB_K_MEMCPY };

/* The octet of a key that its owner may change. */
#define VB_KEY_TAG_MASK 0xffu

/* The destination of a datagram. */
struct vb_ud_addr {
	struct vb_path path;
	uint32_t dqpn;
	uint32_t qkey;
};

/* A piece of an indirect key's memory, and the gap behind it. */
struct vb_mkey_entry {
	uint64_t addr;
	uint32_t bytes, skip, lkey;
};

/* The new configuration of an indirect key. */
struct vb_mkey_conf {
	uint32_t key;	/* the new key */
	uint32_t repeat;
	uint16_t count; /* of entries */
	uint16_t access;
	bool has_access, has_layout;
};

/* A copy from one key's memory to another's. */
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
	uint8_t flags;	   /* IBV_SEND_*, VB_WQE_*; SIGNALED always if the QP says so */
	uint8_t only;	   /* opcode, if it is one packet with payload: see vb_segment_only() */
	uint8_t fault;	   /* enum ibv_wc_status: it fails with this when its turn comes */
	union {
		uint32_t imm_be;   /* with VB_H_IMM */
		uint32_t inv_rkey; /* with VB_H_IETH, and for VB_K_LOCAL_INV */
	};
	uint32_t psn;	   /* the first of its PSNs */
	uint32_t packets;  /* number of its PSNs; 0: it needs no packet */
	uint32_t ssn;	   /* number of its first message */
	uint32_t messages; /* a long READ is sent as several requests */
	union {
		struct {
			uint64_t va;
			uint32_t rkey;
			uint32_t srqn; /* XRC, for SENDs as well */
			/*
			 * XRC, DC, for SENDs as well: the same in all packets in flight. XRC: the
			 * slot of the SRQ's NIC. DC: counts changes of the address.
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
			uint32_t key;	 /* the window's new key */
			unsigned access; /* IBV_ACCESS_* */
		} bind;
		struct vb_mkey_conf mkey; /* its entries: vb_wqe_entries() */
		struct vb_copy copy;
	};
	union {
		struct ibv_sge sge[1]; /* sge_count of them */
		uint8_t data[16];      /* wqe->bytes of them, with IBV_SEND_INLINE */
		uint8_t *apart;	       /* the same with VB_WQE_APART as well */
	};
};

/* With IBV_SEND_INLINE: the data is outside the work request. */
#define VB_WQE_APART 0x80u

/* The host does more, or something else, than completing it; signaled or not. */
#define VB_WQE_ASIDE 0x40u

/* The send queue: a ring that nic allocates. Indices count up; index & mask is the place. */
struct vb_sq {
	uint8_t *ring;
	uint32_t stride, mask;
};

static inline struct vb_wqe *vb_sq_at(const struct vb_sq *sq, uint32_t index)
{
	return (struct vb_wqe *)(sq->ring + (size_t)(index & sq->mask) * sq->stride);
}

/* `from` may be NULL if count is 0. Most work requests have one SGE, copied without a call. */
static inline void vb_sges_copy(struct ibv_sge *to, const struct ibv_sge *from, size_t count)
{
	if (count == 1)
		*to = *from;
	else if (count)
		memcpy(to, from, count * sizeof(*to));
}

/* The data, with IBV_SEND_INLINE. */
static inline const uint8_t *vb_wqe_data(const struct vb_wqe *wqe)
{
	return wqe->flags & VB_WQE_APART ? wqe->apart : wqe->data;
}

/* The entries of a VB_K_MKEY, which are in the place of SGEs. */
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

/* Does it get a response of its own, which counts among the READs and atomics? */
static inline bool vb_wqe_is_fetch(const struct vb_wqe *wqe)
{
	return wqe->kind == VB_K_READ_REQ ||
	       (wqe->kind >= VB_K_CMP_SWP && wqe->kind <= VB_K_FLUSH);
}

/* ... and sends no data? */
static inline bool vb_wqe_sends_nothing(const struct vb_wqe *wqe)
{
	return vb_wqe_is_fetch(wqe) && wqe->kind != VB_K_ATOMIC_WRITE;
}

static inline bool vb_wqe_is_local(const struct vb_wqe *wqe)
{
	return wqe->kind >= VB_K_COUNT;
}

#endif
