/* SPDX-License-Identifier: BSD-2-Clause */
#include "run/foreign.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "link/shm.h"
#include "run/process/cancel.h"
#include "run/device.h"
#include "run/memory/memfile.h"
#include "run/memory/owner.h"

#define CARD_MAGIC 0x7662636172640001ull
#define CARD_VERSION 1u

enum { NONE = -1, PATH_BYTES = 64 };

/* The host's part of a foreign. */
struct owner {
	struct vb_foreign foreign; /* first */
	uint32_t pid;
	int32_t export_fd;	/* in that process */
	uint64_t device, inode; /* of the export */
	void *export;
};

/* --- cards --- */

int vb_card_make(const struct vb_device *dev, uint64_t family, int *fd)
{
	const struct vb_card card = {
		.magic = CARD_MAGIC,
		.version = CARD_VERSION,
		.pid = (uint32_t)getpid(),
		.row = dev->said.row,
		.nonce = dev->peers.nonce,
		.family = family,
		.export_fd = dev->peers.export_fd,
	};
	int rc = vb_shm_create(fd, sizeof(card));

	if (rc != 0)
		return rc;
	if (pwrite(*fd, &card, sizeof(card), 0) == sizeof(card) &&
	    fcntl(*fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_SEAL) == 0)
		return 0;
	rc = errno;
	close(*fd);
	return rc;
}

int vb_card_read(int fd, struct vb_card *card)
{
	int seals;

	if (fcntl(fd, F_GETFD) < 0)
		return EBADF;
	seals = fcntl(fd, F_GET_SEALS);
	if (seals < 0 || !(seals & F_SEAL_WRITE) ||
	    pread(fd, card, sizeof(*card), 0) != sizeof(*card) || card->magic != CARD_MAGIC ||
	    card->version != CARD_VERSION)
		return EINVAL;
	return 0;
}

bool vb_card_is_own(const struct vb_device *dev, const struct vb_card *card)
{
	return card->nonce == dev->peers.nonce && card->pid == (uint32_t)getpid();
}

/* --- the owner --- */

static bool is_the_file(const struct owner *owner, const struct stat *st)
{
	return st->st_dev == owner->device && st->st_ino == owner->inode;
}

/* The PID still belongs to the owner while this file number is that of its export. */
static bool is_there(const struct owner *owner)
{
	char path[PATH_BYTES];
	struct stat st;

	snprintf(path, sizeof(path), "/proc/%u/fd/%d", owner->pid, owner->export_fd);
	return stat(path, &st) == 0 && is_the_file(owner, &st);
}

/* Opening anything but a regular file could have side effects. */
static int open_regular(const char *path, int flags, struct stat *st)
{
	if (stat(path, st) || !S_ISREG(st->st_mode))
		return NONE;
	return open(path, flags | O_CLOEXEC | O_NONBLOCK);
}

/* Does the process own the export? It may have received the file from its real owner. */
static bool is_its_own(const struct owner *owner)
{
	const struct vb_export *export = owner->export;
	int proc_fd = vb_owner_open(owner->pid);
	bool own = proc_fd != NONE &&
		   vb_owner_has(proc_fd, export->self, owner->device, owner->inode);

	vb_fd_close(&proc_fd);
	return own;
}

static bool export_open(struct owner *owner, uint64_t nonce)
{
	const struct vb_export *export = owner->export;
	char path[PATH_BYTES];
	struct stat st;
	bool good;
	int fd;

	snprintf(path, sizeof(path), "/proc/%u/fd/%d", owner->pid, owner->export_fd);
	fd = open_regular(path, O_RDONLY, &st);
	if (fd == NONE)
		return false;
	owner->device = st.st_dev;
	owner->inode = st.st_ino;
	good = fstat(fd, &st) == 0 && is_the_file(owner, &st) && vb_shm_is_export(fd) &&
	       vb_shm_map(owner->export, fd, sizeof(*export), false) == 0 && is_its_own(owner);
	close(fd);
	return good && export->magic == VB_EXPORT_MAGIC &&
	       export->version == VB_EXPORT_VERSION && export->nonce == nonce;
}

int vb_foreign_meet(struct vb_device *dev, const struct vb_card *card,
		    struct vb_foreign **foreign)
{
	struct owner *owner;
	int cancel;
	bool good;

	if (card->export_fd < 0)
		return EOPNOTSUPP;
	owner = calloc(1, sizeof(*owner));
	if (!owner)
		return ENOMEM;
	if (vb_shm_reserve(&owner->export, sizeof(struct vb_export))) {
		free(owner);
		return ENOMEM;
	}
	owner->pid = card->pid;
	owner->export_fd = card->export_fd;
	cancel = vb_cancel_defer();
	good = export_open(owner, card->nonce);
	vb_cancel_restore(cancel);
	if (!good) {
		vb_foreign_leave(dev, &owner->foreign);
		return EOPNOTSUPP;
	}
	owner->foreign.nic = dev->nic;
	owner->foreign.export = owner->export;
	owner->foreign.family = card->family;
	vb_foreign_init(&owner->foreign);
	*foreign = &owner->foreign;
	return 0;
}

void vb_foreign_leave(void *arg, struct vb_foreign *foreign)
{
	struct owner *owner = (struct owner *)foreign;

	vb_shm_unmap(owner->export, sizeof(struct vb_export));
	free(owner);
}

/* --- its memory --- */

/* Opens a file of that process that the mapping shows. */
static int file_open(const struct owner *owner, const struct vb_vma *vma)
{
	char path[PATH_BYTES + sizeof(((struct dirent *)0)->d_name)];
	const struct dirent *entry;
	struct stat st;
	int fd = NONE;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%u/fd", owner->pid);
	dir = opendir(path);
	while (dir && fd == NONE && (entry = readdir(dir))) {
		snprintf(path, sizeof(path), "/proc/%u/fd/%s", owner->pid, entry->d_name);
		if (entry->d_name[0] != '.' && stat(path, &st) == 0 &&
		    st.st_dev == vma->device && st.st_ino == vma->inode)
			fd = open_regular(path, O_RDWR, &st);
	}
	if (dir)
		closedir(dir);
	return fd == NONE ? vb_vma_file_by_name(vma) : fd;
}

static void *map(const struct owner *owner, uint64_t address, uint64_t bytes)
{
	const void *at = (const void *)(uintptr_t)address;
	void *memory = NULL;
	struct vb_vmas vmas;
	struct vb_vma vma;
	struct stat st;
	int fd = NONE, proc_fd = vb_owner_open(owner->pid);

	vb_vmas_open_at(&vmas, proc_fd);
	vb_fd_close(&proc_fd);
	if (vb_vma_find(&vmas, at, &vma) && vb_vma_holds(&vma, at) &&
	    bytes <= vma.end - address && vma.shared && vma.inode)
		fd = file_open(owner, &vma);
	if (fd != NONE) {
		/* The file, and the process, may have changed meanwhile. */
		if (fstat(fd, &st) == 0 && st.st_dev == vma.device && st.st_ino == vma.inode &&
		    is_there(owner))
			memory = vb_memfile_map_shared(fd, vma.offset + (address - vma.start),
						       bytes);
		close(fd);
	}
	vb_vmas_close(&vmas);
	return memory;
}

void *vb_foreign_map(void *arg, struct vb_foreign *foreign, uint64_t address, uint64_t bytes)
{
	int cancel = vb_cancel_defer();
	void *memory = map((struct owner *)foreign, address, bytes);

	vb_cancel_restore(cancel);
	return memory;
}

const struct vb_host_foreign vb_foreign_host = {
	.map = vb_foreign_map, .unmap = vb_direct_unmap, .leave = vb_foreign_leave,
};
