/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_NIC_MKEY_H
#define VB_NIC_MKEY_H

/*
 * Indirect keys (mlx5dv_create_mkey(3)): a key whose addresses begin at 0 and lead to pieces of
 * regions, in a layout that a work request sets. There are two layouts: consecutive pieces; and
 * pieces with a gap behind each, the whole row repeated.
 *
 * The common look-up of keys does not know them: the entry in the table has a PD id that no PD has,
 * and vb_mr_get() comes here only when the table does not resolve the key. Peers see the same
 * entry, so they never access such memory directly. A range within one piece is found like any
 * other memory; struct vb_walk handles other ranges.
 *
 * The structure that the application holds begins with a struct mlx5dv_mkey. Its memory is never
 * freed before the NIC, only reused, so that a thread that reads a key being destroyed finds a
 * changed sequence number.
 */

#include "base/lent.h"
#include "nic/core/internal.h"
#include "nic/mem/mem.h"

enum vb_mkey_flag {
	VB_MKEY_UPDATE_TAG = 1 << 0,	    /* the application chooses the low octet of the key */
	VB_MKEY_REMOTE_INVALIDATE = 1 << 1, /* SEND with invalidate may clear it */
};

struct vb_mkey {
	uint32_t lkey, rkey; /* the application may change these: they are not relied on */
	/* The keys' lock. */
	uint32_t flags;	      /* enum vb_mkey_flag */
	uint32_t entries_max; /* as requested, rounded up */
	struct vb_pd *pd;     /* NULL: destroyed */
	struct vb_mkey *next, *next_free;
	/*
	 * Written with the keys' lock held between two changes of seq, which is odd meanwhile; read
	 * without it, like entries of the table of keys (export.h).
	 */
	_Atomic uint32_t seq;
	_Atomic uint32_t key; /* 0: none */
	_Atomic uint64_t pd_id;
	_Atomic uint32_t access; /* IBV_ACCESS_LOCAL_WRITE, REMOTE_* */
	_Atomic uint32_t has_layout;
	_Atomic uint32_t count;	 /* of entries, at most VB_MKEY_ENTRIES_MAX */
	_Atomic uint32_t repeat; /* how many rows follow each other */
	_Atomic uint64_t bytes;	 /* of one row */
	struct {
		_Atomic uint64_t addr, at; /* at: offset of its data in the row */
		_Atomic uint32_t bytes, skip, lkey;
	} entry[VB_MKEY_ENTRIES_MAX];
};

/*
 * *entries: in, how many are wanted, at least 1; out, how many it can have. A work request may have
 * room for fewer. EINVAL: no entries, an unknown flag; ENOMEM: no further keys.
 */
VB_LENT int vb_mkey_create(struct vb_pd *pd, uint32_t flags, uint16_t *entries,
			   struct vb_mkey **mkey);

/* EINVAL: destroyed already. Waits for threads that receive into it. */
VB_LENT int vb_mkey_destroy(struct vb_mkey *mkey);

/* The content of a VB_WR_MKEY as the builder collects it, with room for vb_mkey_room() entries. */
struct vb_mkey_request {
	struct vb_mkey_conf conf;
	uint32_t list_max, interleaved_max; /* room in the key and in the work request */
	uint32_t setters;		    /* still to be called */
	struct vb_mkey_entry entry[];
};

/* How many entries a work request of the QP has room for, if it can have any. */
uint32_t vb_mkey_room(const struct ibv_qp_cap *cap);

/*
 * Begins a request and sets its parts: rights, and one of two layouts, each once. begin:
 * EOPNOTSUPP: the key's low octet was changed without VB_MKEY_UPDATE_TAG. Others: EINVAL: more
 * setters than announced, or the same one twice; rights other than LOCAL_WRITE and REMOTE_*; a
 * layout of more than 2^64 octets. ENOMEM: more entries than there is room for.
 */
VB_LENT int vb_mkey_request_begin(struct vb_mkey_request *request,
				  const struct ibv_qp_cap *cap, const struct vb_mkey *mkey,
				  unsigned setters);
VB_LENT int vb_mkey_request_access(struct vb_mkey_request *request, uint32_t access);
VB_LENT int vb_mkey_request_layout(struct vb_mkey_request *request, uint32_t repeat,
				   uint32_t count, const struct vb_mkey_entry *entries);
VB_LENT int vb_mkey_request_list(struct vb_mkey_request *request, uint32_t count,
				 const struct ibv_sge *sge);

/* --- inside nic --- */

/* Stores a request in its work request. EINVAL: setters are missing. */
int vb_mkey_decode(const struct vb_sq *sq, const struct ibv_qp_cap *cap,
		   const struct vb_mkey_request *request, struct vb_wqe *wqe);

/*
 * Carries out a VB_WR_MKEY or VB_WR_MEMCPY. Returns SUCCESS; MW_BIND_ERR: no such key in this PD;
 * LOC_PROT_ERR. Octets that are both read and written have undefined values afterwards. QP locked.
 */
enum ibv_wc_status vb_mkey_configure(struct vb_nic *nic, struct ibv_pd *pd,
				     const struct vb_wqe *wqe);
enum ibv_wc_status vb_memcpy(struct vb_nic *nic, struct ibv_pd *pd, const struct vb_wqe *wqe);

/*
 * Clears the configuration. Returns false if the PD has no such key, it has no configuration, or a
 * peer asks (remote) and the key does not allow that. The keys' lock is held.
 */
bool vb_mkey_invalidate_locked(struct vb_nic *nic, const struct ibv_pd *pd, uint32_t key,
			       bool remote);

/* Frees all, when the NIC is destroyed. */
void vb_mkeys_free(struct vb_keys *keys);

/* As vb_mr_get(), for an indirect key. NULL also if the range is not in one piece. */
uint8_t *vb_mkey_get(struct vb_nic *nic, const struct vb_pd *pd, uint32_t key, uint64_t va,
		     uint64_t bytes, unsigned access);

/* Does the key itself allow the access? The memory behind it is checked when data moves. */
bool vb_mkey_allows(struct vb_nic *nic, const struct ibv_pd *pd, uint32_t key, uint64_t va,
		    uint64_t bytes, unsigned access);

/* Iterates over the pieces of a range of a key, indirect or not. */
struct vb_walk {
	struct vb_nic *nic;
	struct ibv_pd *pd;
	uint32_t key;
	unsigned access;
	uint64_t va, bytes; /* what is left */
	bool paged;	    /* the current piece is paged on demand (vb_mr_find) */
	bool to_paged;	    /* so is the destination of a read */
	/* The indirect key; NULL: not indirect, or refused. */
	const struct vb_mkey *mkey;
	uint32_t seq; /* when the walk began */
	uint32_t index, row, into;
};

/* Arguments as for vb_mr_find(). It may fail at any step: then `bytes` is not 0 at the end. */
void vb_walk_begin(struct vb_walk *walk, struct vb_nic *nic, struct ibv_pd *pd, uint32_t key,
		   uint64_t va, uint64_t bytes, unsigned access);

/* The next piece, of at most max octets; *bytes is its size. NULL: none is left, or refused. */
uint8_t *vb_walk_next(struct vb_walk *walk, uint64_t max, uint64_t *bytes);

/*
 * Copies the next octets. False: a key does not allow it, or memory is unmapped. What comes before
 * that place may have been copied.
 */
bool vb_walk_read(struct vb_walk *walk, uint8_t *to, uint64_t bytes);
bool vb_walk_write(struct vb_walk *walk, const uint8_t *from, uint64_t bytes);

#endif
