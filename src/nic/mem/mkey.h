/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_NIC_MKEY_H
#define VB_NIC_MKEY_H

/*
 * Indirect keys (mlx5dv_create_mkey(3)): a key whose addresses begin at 0 and lead to pieces of
 * regions, as a work request has laid them out. Two layouts: pieces one behind the other, and
 * pieces of which each has a gap behind it, the whole row repeated.
 *
 * Nothing of it is known to who looks keys up in the common way: an entry of the table says that it
 * is such a key, by a PD that nobody has, and vb_mr_get() comes here only where the table had
 * nothing to offer. Peers see the same, so none of them goes in directly. What lies in one piece is
 * had like any other memory; for what does not there is struct vb_walk.
 *
 * What the application holds begins with a struct mlx5dv_mkey. Its memory is never freed before the
 * NIC is, only used again, so that who looks at a key that is just being destroyed finds a sequence
 * number that has moved on.
 */

#include "base/lent.h"
#include "nic/core/internal.h"
#include "nic/mem/mem.h"

enum vb_mkey_flag {
	VB_MKEY_UPDATE_TAG = 1 << 0,	    /* the low octet of the key is the application's */
	VB_MKEY_REMOTE_INVALIDATE = 1 << 1, /* SEND with invalidate may clear it */
};

struct vb_mkey {
	uint32_t lkey, rkey; /* the application's to change: it is not what counts */
	/* The keys' lock. */
	uint32_t flags;	      /* enum vb_mkey_flag */
	uint32_t entries_max; /* what was asked for, and a bit more */
	struct vb_pd *pd;     /* NULL: it was destroyed */
	struct vb_mkey *next, *next_free;
	/*
	 * Written with the keys' lock held, between two changes of seq, which is odd meanwhile;
	 * read without, as entries of the table of keys are (export.h).
	 */
	_Atomic uint32_t seq;
	_Atomic uint32_t key; /* 0: none */
	_Atomic uint64_t pd_id;
	_Atomic uint32_t access; /* IBV_ACCESS_LOCAL_WRITE, REMOTE_* */
	_Atomic uint32_t has_layout;
	_Atomic uint32_t count;	 /* of entries, at most VB_MKEY_ENTRIES_MAX */
	_Atomic uint32_t repeat; /* so often they come, one row after the other */
	_Atomic uint64_t bytes;	 /* of one row */
	struct {
		_Atomic uint64_t addr, at; /* at: where in the row its data is */
		_Atomic uint32_t bytes, skip, lkey;
	} entry[VB_MKEY_ENTRIES_MAX];
};

/*
 * *entries: so many are wanted, at least 1; so many it can point to, afterwards. A work request may
 * have room for fewer. EINVAL: no entries, an unknown flag; ENOMEM: as many keys as there can be.
 */
VB_LENT int vb_mkey_create(struct vb_pd *pd, uint32_t flags, uint16_t *entries,
			   struct vb_mkey **mkey);

/* EINVAL: it was destroyed already. Waits for those who receive into it. */
VB_LENT int vb_mkey_destroy(struct vb_mkey *mkey);

/* What a VB_WR_MKEY is to do, as the builder collects it, with room for vb_mkey_room() entries. */
struct vb_mkey_request {
	struct vb_mkey_conf conf;
	uint32_t list_max, interleaved_max; /* what the key and the work request have room for */
	uint32_t setters;		    /* that are still to come */
	struct vb_mkey_entry entry[];
};

/* So many entries a work request of the QP has room for, if it has any. */
uint32_t vb_mkey_room(const struct ibv_qp_cap *cap);

/*
 * Begin with a request, and say what it is to set: rights, and one of two layouts, each once.
 * begin: EOPNOTSUPP: the key's low octet was changed, but not made for it. The others: EINVAL: more
 * setters than announced, or this one a second time; rights other than LOCAL_WRITE and REMOTE_*; a
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

/* The part of a request in its work request. EINVAL: setters are missing. */
int vb_mkey_decode(const struct vb_sq *sq, const struct ibv_qp_cap *cap,
		   const struct vb_mkey_request *request, struct vb_wqe *wqe);

/*
 * Carry out a VB_WR_MKEY or VB_WR_MEMCPY. SUCCESS; MW_BIND_ERR: no such key in this PD;
 * LOC_PROT_ERR. Octets that are both read and written have any value afterwards. QP locked.
 */
enum ibv_wc_status vb_mkey_configure(struct vb_nic *nic, struct ibv_pd *pd,
				     const struct vb_wqe *wqe);
enum ibv_wc_status vb_memcpy(struct vb_nic *nic, struct ibv_pd *pd, const struct vb_wqe *wqe);

/*
 * Clear what was configured: false if the PD has no such key, if nothing was, or if a peer asks
 * (remote) and the key is not made for it. The keys' lock is held.
 */
bool vb_mkey_invalidate_locked(struct vb_nic *nic, const struct ibv_pd *pd, uint32_t key,
			       bool remote);

/* All that there are: the NIC vanishes. */
void vb_mkeys_free(struct vb_keys *keys);

/* As vb_mr_get(), of an indirect key: NULL as well if it is not in one piece. */
uint8_t *vb_mkey_get(struct vb_nic *nic, const struct vb_pd *pd, uint32_t key, uint64_t va,
		     uint64_t bytes, unsigned access);

/* Does the key itself allow it? What is behind it is seen when the data moves. */
bool vb_mkey_allows(struct vb_nic *nic, const struct ibv_pd *pd, uint32_t key, uint64_t va,
		    uint64_t bytes, unsigned access);

/* A way through the octets of a key, indirect or not, from one piece to the next. */
struct vb_walk {
	struct vb_nic *nic;
	struct ibv_pd *pd;
	uint32_t key;
	unsigned access;
	uint64_t va, bytes; /* what is left */
	bool paged;	    /* the piece in hand is (vb_mr_find) */
	bool to_paged;	    /* so is where it is read to */
	/* Of an indirect key; NULL: it is none, or refuses. */
	const struct vb_mkey *mkey;
	uint32_t seq; /* as it was when the walk began */
	uint32_t index, row, into;
};

/* As for vb_mr_find(). It may fail at any step then: what is left says that it did. */
void vb_walk_begin(struct vb_walk *walk, struct vb_nic *nic, struct ibv_pd *pd, uint32_t key,
		   uint64_t va, uint64_t bytes, unsigned access);

/* The next piece, of at most max octets and *bytes in the end; NULL: none is left, or refused. */
uint8_t *vb_walk_next(struct vb_walk *walk, uint64_t max, uint64_t *bytes);

/*
 * Copy so many octets of what is ahead; false: a key does not allow it, or memory is gone. What
 * comes before such a place may have been copied.
 */
bool vb_walk_read(struct vb_walk *walk, uint8_t *to, uint64_t bytes);
bool vb_walk_write(struct vb_walk *walk, const uint8_t *from, uint64_t bytes);

#endif
