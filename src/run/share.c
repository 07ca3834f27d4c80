/* SPDX-License-Identifier: BSD-2-Clause */
#include "run/share.h"

#include <errno.h>
#include <fcntl.h>
#include <search.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/check.h"
#include "base/fd.h"
#include "base/guard.h"
#include "link/shm.h"
#include "run/process/cancel.h"
#include "run/device.h"

enum { NONE = -1 };

/* Size of our file, which is sparse. It bounds what can ever be moved: no part is used twice. */
#define FILE_BYTES (1ull << 46)

/*
 * Either a file of the application's that contains regions, or a piece of our file that replaces
 * application memory.
 */
struct vb_share_item {
	struct vb_share_item *next, **link;
	unsigned refs;
	int fd; /* NONE while the application's file is not found */
	uint64_t device, inode;
	uint8_t *start; /* NULL: a file of the application's */
	size_t bytes;
	uint64_t offset;
	struct vb_shared *waiting; /* regions to be told of fd */
	bool is_sought;		   /* by the walk under way, or by the next one */
};

/*
 * Orders files by identity and pieces by offset. A file never equals a later one, and no two pieces
 * overlap.
 */
static int by_file(const void *a, const void *b)
{
	const struct vb_share_item *x = a, *y = b;

	if (x->device != y->device)
		return x->device < y->device ? -1 : 1;
	return x->inode < y->inode ? -1 : x->inode > y->inode;
}

static int by_place(const void *a, const void *b)
{
	const struct vb_share_item *x = a, *y = b;

	if (x->offset + x->bytes <= y->offset)
		return -1;
	return x->offset >= y->offset + y->bytes;
}

/* The item equal to `like`, or the one that overlaps it in our file. */
static struct vb_share_item *item_find(void *const *root, int (*order)(const void *, const void *),
				       const struct vb_share_item *like)
{
	struct vb_share_item *const *node = tfind(like, root, order);

	return node ? *node : NULL;
}

static struct vb_share_item *item_add(struct vb_share *share, const struct vb_share_item *like)
{
	struct vb_share_item *item = malloc(sizeof(*item));

	if (!item)
		return NULL;
	*item = *like;
	if (!(item->start ? tsearch(item, &share->by_place, by_place)
			  : tsearch(item, &share->by_file, by_file))) {
		free(item);
		return NULL;
	}
	item->next = share->items;
	item->link = &share->items;
	if (item->next)
		item->next->link = &item->next;
	share->items = item;
	return item;
}

static void item_remove(struct vb_share *share, struct vb_share_item *item)
{
	if (item->start)
		tdelete(item, &share->by_place, by_place);
	else
		tdelete(item, &share->by_file, by_file);
	*item->link = item->next;
	if (item->next)
		item->next->link = item->link;
	free(item);
}

void vb_share_open(struct vb_share *share, bool moves, vb_share_found_fn *found)
{
	*share = (struct vb_share){ .moves = moves, .fd = NONE, .vmas.fd = NONE, .found = found };
	vb_lock_init(&share->lock, VB_RANK_SHARE);
	vb_vmas_open(&share->vmas);
}

void vb_share_forget(struct vb_share *share)
{
	for (struct vb_share_item *item = share->items; item; item = item->next) {
		if (!item->start)
			vb_fd_close(&item->fd);
	}
	vb_fd_close(&share->fd);
	if (share->own)
		vb_fd_close(&share->own->fd);
	vb_vmas_close(&share->vmas);
}

void vb_share_close(struct vb_share *share)
{
	vb_share_forget(share);
	while (share->items)
		item_remove(share, share->items);
	if (share->own)
		munmap(share->own->start, share->own->bytes);
	free(share->own);
	vb_lock_fini(&share->lock);
}

/* --- files of the application's --- */

static void item_found(struct vb_share *share, struct vb_share_item *item, int fd)
{
	item->fd = fd;
	item->is_sought = false;
	while (item->waiting) {
		struct vb_shared *shared = item->waiting;

		item->waiting = shared->next;
		shared->link = NULL;
		share->found(shared, fd);
	}
}

/*
 * Looks for a file's descriptor. again: all descriptors were looked at before without success, so
 * only the few likeliest are tried.
 */
static int file_seek(struct vb_share *share, const struct vb_vma *vma, bool again, bool *all)
{
	int fd = again ? NONE : vb_vma_file_by_name(vma);

	*all = false;
	return fd != NONE ? fd : vb_files_find(&share->files, vma, !again, all);
}

static struct vb_share_item *file_item(struct vb_share *share, const struct vb_vma *vma)
{
	struct vb_share_item file = { .device = vma->device, .inode = vma->inode };
	struct vb_share_item *item = item_find(&share->by_file, by_file, &file);
	bool all;

	if (item && (item->fd != NONE || item->is_sought))
		return item;
	file.fd = file_seek(share, vma, item != NULL, &all);
	if (item) {
		if (file.fd != NONE)
			item_found(share, item, file.fd);
		return item;
	}
	if (file.fd == NONE && all)
		return NULL;
	file.is_sought = file.fd == NONE;
	item = item_add(share, &file);
	if (!item && file.fd != NONE)
		close(file.fd);
	if (item && file.is_sought)
		atomic_store(&share->search.wanted, true);
	return item;
}

/* If this descriptor is of a file that is sought, stores a copy of it. */
static void look_at(struct vb_share *share, int fd)
{
	struct vb_share_item file, *item;
	struct vb_vma vma;
	struct stat st;

	if (fstat(fd, &st) || !S_ISREG(st.st_mode))
		return;
	file.device = vma.device = st.st_dev;
	file.inode = vma.inode = st.st_ino;
	item = item_find(&share->by_file, by_file, &file);
	if (!item || item->fd != NONE || !vb_vma_is_file(&vma, fd))
		return;
	fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	if (fd != NONE)
		item_found(share, item, fd);
}

/* If items were added during the walk, another walk follows. */
static void walk_end(struct vb_share *share)
{
	share->search.walks = false;
	if (atomic_load(&share->search.wanted))
		return;
	for (struct vb_share_item *item = share->items; item; item = item->next)
		item->is_sought = false;
}

static bool walk(struct vb_share *share)
{
	struct vb_share_search *search = &share->search;
	int fds[VB_FILES_LOOKS];
	unsigned count;

	if (!search->walks) {
		if (!atomic_exchange(&search->wanted, false))
			return false;
		search->walks = true;
		search->next = 0;
	}
	count = vb_files_list(&search->next, fds);
	for (unsigned i = 0; i < count; i++)
		look_at(share, fds[i]);
	if (!count)
		walk_end(share);
	return search->walks || atomic_load(&search->wanted);
}

bool vb_share_turn(struct vb_device *dev)
{
	struct vb_share *share = &dev->share;
	bool more;

	if (!share->search.walks &&
	    !atomic_load_explicit(&share->search.wanted, memory_order_relaxed))
		return false;
	vb_lock_take(&share->lock);
	more = walk(share);
	vb_lock_drop(&share->lock);
	return more;
}

/* --- memory that is moved --- */

static bool file_make(struct vb_share *share)
{
	const int seals = F_SEAL_SHRINK | F_SEAL_GROW;
	struct rlimit limit;
	struct stat st;

	if (share->fd != NONE)
		return true;
	/* With a limit on file sizes, exceeding it raises a signal. */
	if (getrlimit(RLIMIT_FSIZE, &limit) || limit.rlim_cur != RLIM_INFINITY)
		return false;
	share->fd = memfd_create("verbatim-mr", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (share->fd == NONE)
		return false;
	if (ftruncate(share->fd, (off_t)FILE_BYTES) || fcntl(share->fd, F_ADD_SEALS, seals) ||
	    fstat(share->fd, &st)) {
		vb_fd_close(&share->fd);
		return false;
	}
	share->device = st.st_dev;
	share->inode = st.st_ino;
	return true;
}

static bool is_ours(const struct vb_share *share, const struct vb_vma *vma)
{
	return share->fd != NONE && vma->shared && vma->device == share->device &&
	       vma->inode == share->inode;
}

/* Is it the application's own memory, as from malloc or mmap? A stack is not, since it grows. */
static bool is_movable(const struct vb_vma *vma)
{
	return !vma->inode && !vma->shared && vma->readable && vma->writable &&
	       (!vma->name[0] || !strcmp(vma->name, "[heap]") ||
		!strncmp(vma->name, "[anon:", strlen("[anon:")));
}

static bool all_movable(const struct vb_share *share, const uint8_t *start, size_t bytes)
{
	const uint8_t *at = start;
	struct vb_vma vma;

	while (at < start + bytes) {
		if (!vb_vma_find(&share->vmas, at, &vma) || !vb_vma_holds(&vma, at) ||
		    !is_movable(&vma))
			return false;
		at = (const uint8_t *)(uintptr_t)vma.end;
	}
	return true;
}

/* Replaces pages by others with the same content. fd: NONE for private pages. */
static bool replace(uint8_t *start, size_t bytes, int fd, uint64_t offset)
{
	int flags = fd == NONE ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED;
	uint8_t *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, flags, fd, (off_t)offset);

	if (at == MAP_FAILED)
		return false;
	/* A forked child would write into its parent's memory. */
	if (fd != NONE)
		madvise(at, bytes, MADV_DONTFORK);
	if (vb_guard_copy(at, start, bytes) &&
	    mremap(at, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, start) != MAP_FAILED)
		return true;
	munmap(at, bytes);
	return false;
}

static void punch(const struct vb_share *share, uint64_t offset, size_t bytes)
{
	fallocate(share->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)offset,
		  (off_t)bytes);
}

static struct vb_share_item *moved_item(struct vb_share *share, uint8_t *start, size_t bytes)
{
	struct vb_share_item *item;

	if (!all_movable(share, start, bytes) || !file_make(share) ||
	    bytes > FILE_BYTES - share->next_offset)
		return NULL;
	item = item_add(share, &(struct vb_share_item){ .fd = share->fd, .start = start,
							.bytes = bytes,
							.offset = share->next_offset });
	if (!item)
		return NULL;
	share->next_offset += bytes;
	if (replace(start, bytes, share->fd, item->offset))
		return item;
	punch(share, item->offset, bytes);
	item_remove(share, item);
	return NULL;
}

/* The offset in our file of what is mapped at that address. */
static uint64_t offset_of(const struct vb_vma *vma, const uint8_t *at)
{
	return vma->offset + ((uintptr_t)at - vma->start);
}

/* Is the piece still mapped where we put it? The application may have unmapped or replaced it. */
static bool is_in_place(const struct vb_share *share, const struct vb_share_item *item,
			const struct vb_vma *vma, const uint8_t *at)
{
	return vb_vma_holds(vma, at) && is_ours(share, vma) &&
	       offset_of(vma, at) == item->offset + (uint64_t)(at - item->start);
}

/* The piece that holds these octets, which vma maps. */
static struct vb_share_item *moved_before(struct vb_share *share, const uint8_t *start,
					  size_t bytes, const struct vb_vma *vma)
{
	const struct vb_share_item place = { .offset = offset_of(vma, start), .bytes = bytes };
	struct vb_share_item *item = item_find(&share->by_place, by_place, &place);

	if (!item || start < item->start || start + bytes > item->start + item->bytes ||
	    !is_in_place(share, item, vma, start))
		return NULL;
	return item;
}

/* Makes those pages private again that are still in their place. */
static void move_back(struct vb_share *share, const struct vb_share_item *item)
{
	uint8_t *at = item->start, *end = at + item->bytes;
	size_t moved = 0, bytes;
	struct vb_vma vma;

	while (at < end && vb_vma_find(&share->vmas, at, &vma)) {
		if ((uintptr_t)at < vma.start)
			at = (uint8_t *)(uintptr_t)vb_min_u64(vma.start, (uintptr_t)end);
		bytes = vb_min_u64(vma.end, (uintptr_t)end) - (uintptr_t)at;
		if (bytes && is_in_place(share, item, &vma, at) && replace(at, bytes, NONE, 0))
			moved += bytes;
		at += bytes;
	}
	/* Pages not found may have been mapped elsewhere (mremap): keep the file's content. */
	if (moved == item->bytes)
		punch(share, item->offset, item->bytes);
}

/* --- device memory --- */

static struct vb_share_item *device_make(size_t bytes)
{
	struct vb_share_item *item = calloc(1, sizeof(*item));

	if (!item)
		return NULL;
	item->bytes = bytes;
	if (vb_shm_create(&item->fd, bytes))
		item->fd = NONE;
	item->start = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
			   item->fd == NONE ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED, item->fd,
			   0);
	if (item->start != MAP_FAILED) {
		/* A forked child would write into its parent's memory. */
		madvise(item->start, bytes, MADV_DONTFORK);
		return item;
	}
	if (item->fd != NONE)
		vb_fd_close(&item->fd);
	free(item);
	return NULL;
}

void *vb_share_device_memory(void *arg, size_t bytes)
{
	struct vb_share *share = &((struct vb_device *)arg)->share;
	int cancel = vb_cancel_defer();
	void *at = NULL;

	vb_lock_take(&share->lock);
	if (!share->own)
		share->own = device_make(bytes);
	if (share->own)
		at = share->own->start;
	vb_lock_drop(&share->lock);
	vb_cancel_restore(cancel);
	return at;
}

static bool is_device_memory(const struct vb_share *share, const uint8_t *addr)
{
	const struct vb_share_item *device = share->own;

	return device && addr >= device->start && addr < device->start + device->bytes;
}

static bool describe_device(const struct vb_share *share, const uint8_t *addr,
			    struct vb_shared *out)
{
	*out = (struct vb_shared){ .file = share->own->fd,
				   .offset = (uint64_t)(addr - share->own->start),
				   .item = share->own };
	return share->own->fd != NONE;
}

/* --- all kinds --- */

/* Fills in the file and offset of the octets from start to start + bytes. */
static bool describe(struct vb_share *share, uint8_t *start, size_t bytes, struct vb_shared *out)
{
	struct vb_share_item *item;
	struct vb_vma vma;

	if (!vb_vma_find(&share->vmas, start, &vma) || !vb_vma_holds(&vma, start) ||
	    vma.end - (uintptr_t)start < bytes || !vma.shared || !vma.writable || !vma.inode)
		return false;
	item = is_ours(share, &vma) ? moved_before(share, start, bytes, &vma)
				    : file_item(share, &vma);
	if (!item)
		return false;
	out->file = item->fd;
	out->offset = offset_of(&vma, start);
	out->item = item;
	return true;
}

/* The whole pages within a region. */
static bool whole_pages(uint8_t *addr, size_t bytes, uint8_t **start, size_t *page_bytes)
{
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
	uintptr_t first = ((uintptr_t)addr + page - 1) & -page;
	uintptr_t last = ((uintptr_t)addr + bytes) & -page;

	*start = (uint8_t *)first;
	*page_bytes = last > first ? last - first : 0;
	return last > first;
}

static bool share_locked(struct vb_share *share, uint8_t *addr, size_t bytes,
			 struct vb_shared *out)
{
	uint8_t *start;
	size_t inside;

	*out = (struct vb_shared){ .file = NONE };
	if (is_device_memory(share, addr))
		return describe_device(share, addr, out);
	/* Where the kernel answers slowly, only memory to be moved is worth the wait. */
	if (!share->moves && !share->vmas.is_fast)
		return false;
	if (describe(share, addr, bytes, out))
		return true;
	if (!share->moves || !whole_pages(addr, bytes, &start, &inside))
		return false;
	if (!describe(share, start, inside, out) &&
	    (!moved_item(share, start, inside) || !describe(share, start, inside, out)))
		return false;
	out->skip = (uint16_t)(start - addr);
	out->cut = (uint16_t)(bytes - inside - out->skip);
	out->offset -= out->skip; /* may wrap below 0: peers do not access the skipped octets */
	return true;
}

/* Adds a region to the item. Until the item's file is found, the region waits for it. */
static void item_enter(struct vb_share_item *item, struct vb_shared *shared)
{
	item->refs++;
	shared->link = NULL;
	if (item->fd != NONE || item->start)
		return;
	shared->next = item->waiting;
	shared->link = &item->waiting;
	if (shared->next)
		shared->next->link = &shared->next;
	item->waiting = shared;
}

static void item_leave(struct vb_share_item *item, const struct vb_shared *shared)
{
	item->refs--;
	if (!shared->link)
		return;
	*shared->link = shared->next;
	if (shared->next)
		shared->next->link = shared->link;
}

bool vb_share_region(void *arg, void *addr, size_t bytes, struct vb_shared *out)
{
	struct vb_device *dev = arg;
	struct vb_share *share = &dev->share;
	int cancel = vb_cancel_defer();
	bool ok, begins;

	vb_lock_take(&share->lock);
	begins = !atomic_load(&share->search.wanted);
	ok = bytes && share_locked(share, addr, bytes, out);
	if (ok) {
		item_enter(out->item, out);
		out->id = ++share->next_id;
	}
	begins = begins && atomic_load(&share->search.wanted);
	vb_lock_drop(&share->lock);
	if (begins)
		vb_progress_wake(dev);
	vb_cancel_restore(cancel);
	return ok;
}

bool vb_share_end(void *arg, const struct vb_shared *shared)
{
	struct vb_share *share = &((struct vb_device *)arg)->share;
	struct vb_share_item *item = shared->item;
	int cancel = vb_cancel_defer();
	bool last_of_file = false;

	vb_lock_take(&share->lock);
	item_leave(item, shared);
	if (!item->refs && item != share->own) {
		/*
		 * What peers have mapped of our file becomes a hole. Of another file they would
		 * keep pages.
		 */
		last_of_file = !item->start && item->fd != NONE;
		if (item->start)
			move_back(share, item);
		else
			vb_fd_close(&item->fd);
		item_remove(share, item);
	}
	vb_lock_drop(&share->lock);
	vb_cancel_restore(cancel);
	return last_of_file;
}

const struct vb_host_sharing vb_share_host = {
	.share = vb_share_region, .unshare = vb_share_end,
};
