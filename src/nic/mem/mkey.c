/* SPDX-License-Identifier: BSD-2-Clause */
#include "nic/mem/mkey.h"

#include <errno.h>
#include <stdlib.h>

#include "base/check.h"
#include "nic/core/quiesce.h"
#include "nic/core/lowered.h"

#define REMOTE (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC)
#define ACCESS_KNOWN (REMOTE | IBV_ACCESS_LOCAL_WRITE)

/* The octet that the application chooses. */
#define TAG_MASK VB_KEY_TAG_MASK

/* mlx5 counts entries in units of four. */
#define ENTRIES_ROUND 4u

/* What any work request has room for; what an entry takes of the room for inline data. */
#define LIST_MIN 4u
#define INLINE_ENTRY_BYTES 16u

#define GET VB_EXPORT_GET
#define SET VB_EXPORT_SET

/* --- with the keys' lock held --- */

static void change_begin(struct vb_mkey *mkey)
{
	SET(mkey->seq, atomic_load_explicit(&mkey->seq, memory_order_relaxed) + 1);
}

static void change_end(struct vb_mkey *mkey)
{
	SET(mkey->seq, atomic_load_explicit(&mkey->seq, memory_order_relaxed) + 1);
}

static void clear(struct vb_mkey *mkey)
{
	SET(mkey->access, 0);
	SET(mkey->has_layout, 0);
	SET(mkey->count, 0);
	SET(mkey->repeat, 0);
	SET(mkey->bytes, 0);
}

/* Enters the key in the table, for us and for peers. */
static void show(struct vb_nic *nic, uint32_t key)
{
	const struct vb_export_region region = { .key = key, .pd = VB_EXPORT_PD_INDIRECT };
	const struct vb_shared not_shared = { .file = -1 };

	vb_key_write_locked(nic, &region, &not_shared);
}

/* The PD's key, whatever its low octet. */
static struct vb_mkey *mkey_at(struct vb_nic *nic, const struct ibv_pd *pd, uint32_t key)
{
	struct vb_mkey *mkey = atomic_load(&vb_key_owner(nic, key)->mkey);

	if (!mkey || ((GET(mkey->key) ^ key) & ~TAG_MASK) ||
	    GET(mkey->pd_id) != ((const struct vb_pd *)pd)->id)
		return NULL;
	return mkey;
}

static struct vb_mkey *make(struct vb_keys *keys)
{
	struct vb_mkey *mkey = keys->mkeys_free;

	if (mkey) {
		keys->mkeys_free = mkey->next_free;
		return mkey;
	}
	mkey = calloc(1, sizeof(*mkey));
	if (mkey) {
		mkey->next = keys->mkeys;
		keys->mkeys = mkey;
	}
	return mkey;
}

static void enter(struct vb_nic *nic, struct vb_mkey *mkey, struct vb_pd *pd)
{
	uint32_t key = vb_key_take_locked(nic);

	nic->keys.mrs++;
	mkey->lkey = mkey->rkey = key;
	mkey->pd = pd;
	change_begin(mkey);
	SET(mkey->key, key);
	SET(mkey->pd_id, pd->id);
	clear(mkey);
	change_end(mkey);
	show(nic, key);
	atomic_store(&vb_key_owner(nic, key)->mkey, mkey);
}

static void leave(struct vb_nic *nic, struct vb_mkey *mkey)
{
	nic->keys.mrs--;
	vb_key_drop_locked(nic, GET(mkey->key));
	change_begin(mkey);
	SET(mkey->key, 0);
	SET(mkey->pd_id, 0);
	clear(mkey);
	change_end(mkey);
	mkey->pd = NULL;
}

bool vb_mkey_invalidate_locked(struct vb_nic *nic, const struct ibv_pd *pd, uint32_t key,
			       bool remote)
{
	struct vb_mkey *mkey = mkey_at(nic, pd, key);

	if (!mkey || GET(mkey->key) != key || !GET(mkey->has_layout) ||
	    (remote && !(mkey->flags & VB_MKEY_REMOTE_INVALIDATE)))
		return false;
	change_begin(mkey);
	clear(mkey);
	change_end(mkey);
	return true;
}

static void lay_out(struct vb_mkey *mkey, const struct vb_mkey_conf *conf,
		    const struct vb_mkey_entry *entries)
{
	uint64_t at = 0;

	for (uint32_t i = 0; i < conf->count; i++) {
		SET(mkey->entry[i].addr, entries[i].addr);
		SET(mkey->entry[i].at, at);
		SET(mkey->entry[i].bytes, entries[i].bytes);
		SET(mkey->entry[i].skip, entries[i].skip);
		SET(mkey->entry[i].lkey, entries[i].lkey);
		at += entries[i].bytes;
	}
	SET(mkey->count, conf->count);
	SET(mkey->repeat, conf->repeat);
	SET(mkey->bytes, at);
	SET(mkey->has_layout, 1);
}

static bool configure(struct vb_nic *nic, const struct ibv_pd *pd, const struct vb_wqe *wqe)
{
	const struct vb_mkey_conf *conf = &wqe->mkey;
	struct vb_mkey *mkey = mkey_at(nic, pd, conf->key);

	if (!mkey)
		return false;
	change_begin(mkey);
	if (conf->has_access)
		SET(mkey->access, conf->access);
	if (conf->has_layout)
		lay_out(mkey, conf, vb_wqe_entries((struct vb_wqe *)wqe));
	SET(mkey->key, conf->key);
	change_end(mkey);
	show(nic, conf->key);
	return true;
}

/* --- mlx5dv_create_mkey(3) --- */

int vb_mkey_create(struct vb_pd *pd, uint32_t flags, uint16_t *entries, struct vb_mkey **out)
{
	const uint32_t known = VB_MKEY_UPDATE_TAG | VB_MKEY_REMOTE_INVALIDATE;
	struct vb_nic *nic = vb_nic_of(pd->ibv.context);
	struct vb_mkey *mkey = NULL;

	if ((flags & ~known) || !*entries || *entries > UINT16_MAX - ENTRIES_ROUND)
		return EINVAL;
	vb_lock_take(&nic->keys.lock);
	if (nic->keys.mrs < vb_lowered(nic, VB_LIMIT_MR))
		mkey = make(&nic->keys);
	if (mkey) {
		mkey->flags = flags;
		mkey->entries_max = (*entries + ENTRIES_ROUND - 1) / ENTRIES_ROUND * ENTRIES_ROUND;
		enter(nic, mkey, pd);
	}
	vb_lock_drop(&nic->keys.lock);
	if (!mkey)
		return ENOMEM;
	atomic_fetch_add(&pd->users, 1);
	*entries = (uint16_t)mkey->entries_max;
	*out = mkey;
	return 0;
}

int vb_mkey_destroy(struct vb_mkey *mkey)
{
	struct vb_pd *pd = mkey->pd;
	struct vb_nic *nic;

	if (!pd)
		return EINVAL;
	nic = vb_nic_of(pd->ibv.context);
	vb_lock_take(&nic->keys.lock);
	leave(nic, mkey);
	vb_lock_drop(&nic->keys.lock);
	vb_nic_quiesce(nic);
	vb_lock_take(&nic->keys.lock);
	mkey->next_free = nic->keys.mkeys_free;
	nic->keys.mkeys_free = mkey;
	vb_lock_drop(&nic->keys.lock);
	atomic_fetch_sub(&pd->users, 1);
	return 0;
}

void vb_mkeys_free(struct vb_keys *keys)
{
	while (keys->mkeys) {
		struct vb_mkey *mkey = keys->mkeys;

		keys->mkeys = mkey->next;
		free(mkey);
	}
}

/* --- building a request --- */

uint32_t vb_mkey_room(const struct ibv_qp_cap *cap)
{
	/* As mlx5 counts: the length field of inline data also counts. */
	uint64_t room = (cap->max_inline_data + sizeof(uint32_t)) / INLINE_ENTRY_BYTES;

	return (uint32_t)vb_max_u64(room, LIST_MIN);
}

int vb_mkey_request_begin(struct vb_mkey_request *request, const struct ibv_qp_cap *cap,
			  const struct vb_mkey *mkey, unsigned setters)
{
	uint32_t room = (uint32_t)vb_min_u64(vb_mkey_room(cap), mkey->entries_max);
	uint32_t key = GET(mkey->key);

	if ((mkey->lkey & TAG_MASK) != (key & TAG_MASK) && !(mkey->flags & VB_MKEY_UPDATE_TAG))
		return EOPNOTSUPP;
	*request = (struct vb_mkey_request){
		.conf = { .key = (key & ~TAG_MASK) | (mkey->lkey & TAG_MASK) },
		.list_max = room,
		.interleaved_max = room - 1, /* one entry holds the repeat count */
		.setters = setters,
	};
	return 0;
}

int vb_mkey_request_access(struct vb_mkey_request *request, uint32_t access)
{
	if (!request->setters || request->conf.has_access || (access & ~(uint32_t)ACCESS_KNOWN))
		return EINVAL;
	request->conf.has_access = true;
	request->conf.access = (uint16_t)access;
	request->setters--;
	return 0;
}

int vb_mkey_request_layout(struct vb_mkey_request *request, uint32_t repeat, uint32_t count,
			   const struct vb_mkey_entry *entries)
{
	uint64_t bytes = 0;

	if (!request->setters || request->conf.has_layout)
		return EINVAL;
	if (count > request->interleaved_max)
		return ENOMEM;
	for (uint32_t i = 0; i < count; i++)
		bytes += entries[i].bytes;
	if (__builtin_mul_overflow(bytes, repeat, &bytes))
		return EINVAL;
	request->conf.has_layout = true;
	request->conf.repeat = repeat;
	request->conf.count = (uint16_t)count;
	if (count)
		memcpy(request->entry, entries, count * sizeof(*entries));
	request->setters--;
	return 0;
}

int vb_mkey_request_list(struct vb_mkey_request *request, uint32_t count,
			 const struct ibv_sge *sge)
{
	if (!request->setters || request->conf.has_layout)
		return EINVAL;
	if (count > request->list_max)
		return ENOMEM;
	request->conf.has_layout = true;
	request->conf.repeat = 1;
	request->conf.count = (uint16_t)count;
	for (uint32_t i = 0; i < count; i++)
		request->entry[i] = (struct vb_mkey_entry){ .addr = sge[i].addr,
							    .bytes = sge[i].length,
							    .lkey = sge[i].lkey };
	request->setters--;
	return 0;
}

int vb_mkey_decode(const struct vb_sq *sq, const struct ibv_qp_cap *cap,
		   const struct vb_mkey_request *request, struct vb_wqe *wqe)
{
	if (request->setters)
		return EINVAL;
	vb_check(request->conf.count <= vb_mkey_room(cap) &&
		 offsetof(struct vb_wqe, data) +
			 request->conf.count * sizeof(struct vb_mkey_entry) <= sq->stride);
	wqe->mkey = request->conf;
	memcpy(vb_wqe_entries(wqe), request->entry,
	       request->conf.count * sizeof(struct vb_mkey_entry));
	return 0;
}

enum ibv_wc_status vb_mkey_configure(struct vb_nic *nic, struct ibv_pd *pd,
				     const struct vb_wqe *wqe)
{
	bool ok;

	vb_lock_take(&nic->keys.lock);
	ok = configure(nic, pd, wqe);
	vb_lock_drop(&nic->keys.lock);
	return ok ? IBV_WC_SUCCESS : IBV_WC_MW_BIND_ERR;
}

/* --- walking through a range --- */

/*
 * Opens a key for reading; the caller compares its sequence number again afterwards. NULL: refused.
 */
static const struct vb_mkey *open_key(struct vb_nic *nic, const struct ibv_pd *pd, uint32_t key,
				      uint64_t va, uint64_t bytes, unsigned access, uint32_t *seq)
{
	const struct vb_mkey *mkey = atomic_load(&vb_key_owner(nic, key)->mkey);
	uint64_t total;

	if (!mkey)
		return NULL;
	*seq = GET(mkey->seq);
	if ((*seq & 1) || GET(mkey->key) != key ||
	    GET(mkey->pd_id) != ((const struct vb_pd *)pd)->id || !GET(mkey->has_layout) ||
	    (GET(mkey->access) & access) != access)
		return NULL;
	total = GET(mkey->bytes) * GET(mkey->repeat);
	if (va > total || bytes > total - va || GET(mkey->seq) != *seq)
		return NULL;
	return mkey;
}

bool vb_mkey_allows(struct vb_nic *nic, const struct ibv_pd *pd, uint32_t key, uint64_t va,
		    uint64_t bytes, unsigned access)
{
	uint32_t seq;

	return open_key(nic, pd, key, va, bytes, access, &seq) != NULL;
}

/* The entry that contains this offset of the row: the last that begins at or before it. */
static uint32_t entry_find(const struct vb_mkey *mkey, uint64_t at)
{
	uint32_t low = 0, high = GET(mkey->count);

	while (high - low > 1) {
		uint32_t middle = (low + high) / 2;

		if (GET(mkey->entry[middle].at) <= at)
			low = middle;
		else
			high = middle;
	}
	return low;
}

void vb_walk_begin(struct vb_walk *walk, struct vb_nic *nic, struct ibv_pd *pd, uint32_t key,
		   uint64_t va, uint64_t bytes, unsigned access)
{
	uint64_t row;

	*walk = (struct vb_walk){ .nic = nic, .pd = pd, .key = key, .va = va, .bytes = bytes,
				  .access = access };
	walk->mkey = open_key(nic, pd, key, va, bytes, access, &walk->seq);
	row = walk->mkey ? GET(walk->mkey->bytes) : 0;
	if (!row)
		return;
	walk->row = (uint32_t)(va / row);
	walk->index = entry_find(walk->mkey, va % row);
	walk->into = (uint32_t)(va % row - GET(walk->mkey->entry[walk->index].at));
}

static void next_entry(struct vb_walk *walk)
{
	walk->into = 0;
	if (++walk->index < GET(walk->mkey->count))
		return;
	walk->index = 0;
	walk->row++;
}

/*
 * For a key that is not indirect. A null region has a bound per access, and has more behind that.
 */
static uint8_t *region_get(struct vb_walk *walk, uint32_t key, uint64_t va, uint64_t *bytes,
			   unsigned access)
{
	uint64_t pd = GET(walk->nic->export->key[vb_key_place(key)].pd);

	if (pd == VB_EXPORT_PD_INDIRECT)
		return NULL;
	if (pd == vb_export_pd_of_null(((const struct vb_pd *)walk->pd)->id))
		*bytes = vb_min_u64(*bytes, VB_NULL_BYTES);
	return vb_mr_find(walk->nic, walk->pd, key, va, *bytes, access, &walk->paged);
}

/*
 * The indirect key grants a peer's access. The region behind it only has to allow changes if there
 * are any, as with a bound window.
 */
static unsigned access_behind(const struct vb_walk *walk)
{
	return walk->access & ~(unsigned)IBV_ACCESS_REMOTE_READ ? IBV_ACCESS_LOCAL_WRITE : 0;
}

uint8_t *vb_walk_next(struct vb_walk *walk, uint64_t max, uint64_t *bytes)
{
	const struct vb_mkey *mkey = walk->mkey;
	uint32_t entry_bytes, lkey;
	uint64_t addr, n;
	uint8_t *at;

	n = vb_min_u64(walk->bytes, max);
	if (!n)
		return NULL;
	if (!mkey) {
		at = region_get(walk, walk->key, walk->va, &n, walk->access);
	} else {
		/* Skip entries without octets. */
		while (walk->into >= (entry_bytes = GET(mkey->entry[walk->index].bytes)) &&
		       GET(mkey->seq) == walk->seq)
			next_entry(walk);
		addr = GET(mkey->entry[walk->index].addr) + walk->into +
		       walk->row * ((uint64_t)entry_bytes + GET(mkey->entry[walk->index].skip));
		lkey = GET(mkey->entry[walk->index].lkey);
		if (GET(mkey->seq) != walk->seq)
			return NULL;
		n = vb_min_u64(n, entry_bytes - walk->into);
		at = region_get(walk, lkey, addr, &n, access_behind(walk));
		walk->into += (uint32_t)n;
	}
	if (!at)
		return NULL;
	walk->va += n;
	walk->bytes -= n;
	*bytes = n;
	return at;
}

uint8_t *vb_mkey_get(struct vb_nic *nic, const struct vb_pd *pd, uint32_t key, uint64_t va,
		     uint64_t bytes, unsigned access)
{
	struct vb_walk walk;
	uint64_t n;
	uint8_t *at;

	vb_walk_begin(&walk, nic, (struct ibv_pd *)&pd->ibv, key, va, bytes, access);
	if (!walk.mkey)
		return NULL;
	at = vb_walk_next(&walk, bytes, &n);
	/* With another order, what peers write comes behind what they wrote before (payload.c). */
	return at && n == bytes && !walk.paged && !nic->host.order ? at : NULL;
}

bool vb_walk_read(struct vb_walk *walk, uint8_t *to, uint64_t bytes)
{
	uint64_t n;

	for (; bytes; to += n, bytes -= n) {
		const uint8_t *from = vb_walk_next(walk, bytes, &n);

		if (!from || !vb_mr_copy(walk->nic, walk->paged | walk->to_paged, to, from, n))
			return false;
	}
	return true;
}

bool vb_walk_write(struct vb_walk *walk, const uint8_t *from, uint64_t bytes)
{
	uint64_t n;

	for (; bytes; from += n, bytes -= n) {
		uint8_t *to = vb_walk_next(walk, bytes, &n);

		if (!to || !vb_mr_copy(walk->nic, walk->paged, to, from, n))
			return false;
	}
	return true;
}

enum ibv_wc_status vb_memcpy(struct vb_nic *nic, struct ibv_pd *pd, const struct vb_wqe *wqe)
{
	uint64_t left = wqe->copy.bytes;
	struct vb_walk to, from;

	vb_walk_begin(&to, nic, pd, wqe->copy.to_key, wqe->copy.to, left,
		      IBV_ACCESS_LOCAL_WRITE);
	vb_walk_begin(&from, nic, pd, wqe->copy.from_key, wqe->copy.from, left, 0);
	while (left) {
		uint64_t n;
		uint8_t *at = vb_walk_next(&to, left, &n);

		from.to_paged = to.paged;
		if (!at || !vb_walk_read(&from, at, n))
			return IBV_WC_LOC_PROT_ERR;
		left -= n;
	}
	return IBV_WC_SUCCESS;
}
