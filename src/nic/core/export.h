/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_NIC_EXPORT_H
#define VB_NIC_EXPORT_H

/*
 * What a NIC tells its peers: whether it sleeps, its QPs, its keys. The owner writes; peers map it
 * read-only. An entry is read by its sequence number (odd: being changed; changed meanwhile: read
 * again). The structure is large and mostly untouched: only used parts take memory.
 */

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <infiniband/verbs.h>

#include "nic/core/limits.h"

struct vb_export_key {
	_Atomic uint32_t seq;
	_Atomic uint32_t key;	 /* 0: no region here */
	_Atomic uint64_t pd;	 /* id of a PD, never reused; 0: no direct access */
	_Atomic uint64_t iova;	 /* the address that SGEs and RETHs use for the first octet */
	_Atomic uint64_t bytes;
	_Atomic uint64_t base;	 /* where that octet is */
	_Atomic uint32_t access; /* IBV_ACCESS_* */
	_Atomic int32_t shared;	 /* fd by which the memory can be mapped, -1: none */
	union {
		_Atomic uint64_t shared_offset; /* of `base` in that file */
		_Atomic uint64_t window_pd;	/* for a bound window (window.c), else 0 */
	};
	union {
		_Atomic uint32_t shared_id;  /* distinguishes consecutive regions with this key */
		/* the only QP whose peer has access; 0: any of the PD */
		_Atomic uint32_t window_qpn;
	};
	/* Octets at both ends that are on pages outside the file. */
	_Atomic uint16_t shared_skip, shared_cut;
};

struct vb_export_qp {
	_Atomic uint32_t seq;
	_Atomic uint32_t qpn; /* 0: no QP here that peers may access memory through */
	_Atomic uint64_t pd;
	_Atomic uint32_t dqpn;	 /* the only peer QP with access */
	_Atomic uint32_t access; /* IBV_ACCESS_REMOTE_* that it grants */
	/*
	 * Independent of the above: a QPN here and the QPN of this host that it is connected to by
	 * the wire (way.h). 0, 0: none.
	 */
	_Atomic uint32_t wire_qpn, wire_dqpn;
	uint32_t reserved[8];
};

struct vb_export_pd {
	_Atomic uint64_t id;	 /* the PD's id, as in the entries of keys; 0: none here */
	_Atomic uint64_t family; /* of the contexts that may import it */
};

struct vb_export_dm {
	_Atomic uint64_t bytes;	 /* of the device memory that begins at this unit; 0: none */
	_Atomic uint64_t family; /* of the contexts that may import it */
};

struct vb_export {
	uint32_t magic, version;
	uint32_t pid;
	uint64_t nonce_address; /* where the owner has a private copy of `nonce` */
	/* where the owner, and no other process, has this mapped for writing */
	uint64_t self;
	uint64_t bell[2];	/* the owner's bell (link/shm.h): name, word */
	_Alignas(64) _Atomic uint32_t sleep_epoch; /* odd: ring the bell */
	_Alignas(64) uint64_t nonce; /* a process that has this at nonce_address is the owner */
	_Atomic uint32_t left;	     /* the owner closed the device or exited; otherwise it died */
	_Alignas(4096) struct vb_export_qp qp[VB_SLOTS_PER_NIC_MAX][VB_INDICES];
	_Alignas(4096) struct vb_export_key key[VB_KEYS];
	_Alignas(4096) struct vb_export_pd pd[VB_PDS_MAX]; /* indexed by handle */
	_Atomic uint64_t dm_base; /* where the first unit of device memory is; 0: none */
	_Alignas(4096) struct vb_export_dm dm[VB_DM_UNITS]; /* indexed by handle */
};

#define VB_EXPORT_MAGIC 0x76627870u
#define VB_EXPORT_VERSION 3u

/*
 * A key has 7 bits, 17 bits of place in the table, and 8 bits, which come last since ibv_inc_rkey()
 * counts there. All are random, so guessing a key succeeds with probability 2^-32. That costs a
 * page for each region until all pages of the table are used; looking up costs nothing more.
 */
#define VB_KEY_PLACE_BITS 17
#define VB_KEY_PLACE_SHIFT 8
#define VB_KEY_PLACE_MASK ((1u << VB_KEY_PLACE_BITS) - 1)

_Static_assert(1 << VB_KEY_PLACE_BITS == VB_KEYS, "the place bits are the number of keys");

static inline uint32_t vb_key_place(uint32_t key)
{
	return key >> VB_KEY_PLACE_SHIFT & VB_KEY_PLACE_MASK;
}

/* The same key with the next place. */
static inline uint32_t vb_key_beside(uint32_t key)
{
	uint32_t place = (vb_key_place(key) + 1) & VB_KEY_PLACE_MASK;

	return (key & ~(VB_KEY_PLACE_MASK << VB_KEY_PLACE_SHIFT)) | place << VB_KEY_PLACE_SHIFT;
}

/* The id under which a PD's null regions are entered, which is no PD's: they have no memory. */
static inline uint64_t vb_export_pd_of_null(uint64_t pd)
{
	return ~pd;
}

/* PD of indirect keys (mkey.h): matches no PD, so peers send packets and we check. */
#define VB_EXPORT_PD_INDIRECT UINT64_MAX

/* A consistent copy of a region's entry. */
struct vb_export_region {
	uint64_t pd, iova, bytes, base;
	uint32_t key, access;
};

/*
 * Entries are written with release and read with acquire, field by field. So a reader that got a
 * field being changed also finds the odd number when it checks again. There are no fences, and on
 * x86 these are plain moves.
 */
#define VB_EXPORT_GET(field) atomic_load_explicit(&(field), memory_order_acquire)
#define VB_EXPORT_SET(field, value) atomic_store_explicit(&(field), value, memory_order_release)

/* Returns false if the entry is being changed: refuse, or read it again. Any thread. */
static inline bool vb_export_key_read(const struct vb_export_key *entry,
				      struct vb_export_region *out)
{
	uint32_t seq = VB_EXPORT_GET(entry->seq);

	out->key = VB_EXPORT_GET(entry->key);
	out->pd = VB_EXPORT_GET(entry->pd);
	out->iova = VB_EXPORT_GET(entry->iova);
	out->bytes = VB_EXPORT_GET(entry->bytes);
	out->base = VB_EXPORT_GET(entry->base);
	out->access = VB_EXPORT_GET(entry->access);
	return !(seq & 1) && atomic_load_explicit(&entry->seq, memory_order_relaxed) == seq;
}

/*
 * Does the region allow this access from this PD? Checks bounds, PD, key and all rights. The first
 * octet is at base + (va - iova). Wrapping modulo 2^64 is harmless here.
 */
static inline bool vb_export_region_allows(const struct vb_export_region *region, uint64_t pd,
					   uint32_t key, uint64_t va, uint64_t bytes,
					   uint32_t access)
{
	return region->key == key && region->pd == pd && (region->access & access) == access &&
	       va >= region->iova && bytes <= region->bytes &&
	       va - region->iova <= region->bytes - bytes;
}

/* Beside IBV_ACCESS_*: peers' octets are placed in another order (mem/journal.h). */
#define VB_ACCESS_DISORDER (1u << 31)

/* Is it paged on demand, so that the kernel has to copy? */
static inline bool vb_export_region_is_paged(const struct vb_export_region *region)
{
	return region->access & IBV_ACCESS_ON_DEMAND;
}

/* Is it not to be written to by a pointer? */
static inline bool vb_export_region_is_apart(const struct vb_export_region *region)
{
	return region->access & (IBV_ACCESS_ON_DEMAND | VB_ACCESS_DISORDER);
}

/* The entry of the QP with this number; NULL: there is none. It may become another's any time. */
static inline const struct vb_export_qp *vb_export_qp_find(const struct vb_export *export,
							   uint32_t qpn)
{
	for (unsigned i = 0; i < VB_SLOTS_PER_NIC_MAX; i++) {
		const struct vb_export_qp *entry = &export->qp[i][qpn & (VB_INDICES - 1)];

		if (VB_EXPORT_GET(entry->qpn) == qpn)
			return entry;
	}
	return NULL;
}

/*
 * Is the QP with this number, which belongs to the export's owner, connected to dqpn by the wire?
 */
bool vb_export_says_wire(const struct vb_export *export, uint32_t qpn, uint32_t dqpn);

_Static_assert(sizeof(struct vb_export_key) == 64, "an entry is a cache line");
_Static_assert(sizeof(struct vb_export_qp) == 64, "an entry is a cache line");

#endif
