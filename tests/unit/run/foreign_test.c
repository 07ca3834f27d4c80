/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "group.h"
#include "link/shm.h"
#include "run/device.h"
#include "run/direct.h"
#include "run/foreign.h"

enum { FAMILY = 5, NONCE = 12345, PAGES = 4 };

/* A device with nothing but an export; its process is a child that is stopped. */
static struct vb_device dev;
static uint8_t *shared, *heap;
static size_t page;
static pid_t child;
static int card_fd, file;
static bool owns; /* the child has the export mapped, as who makes one has */

static void be_owner(void)
{
	if (!owns)
		vb_shm_blank(dev.peers.export, sizeof(struct vb_export));
	vb_card_make(&dev, FAMILY, &card_fd);
	/* Where the parent finds it. */
	dup2(card_fd, 200);
	raise(SIGSTOP);
	_exit(0);
}

static void owner_begin(void)
{
	int status;
	char path[64];

	child = fork();
	if (!child)
		be_owner();
	assert_int_equal(waitpid(child, &status, WUNTRACED), child);
	snprintf(path, sizeof(path), "/proc/%d/fd/200", (int)child);
	card_fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_true(card_fd >= 0);
}

static int begin(void **state)
{
	struct vb_export *export;

	owns = true;
	page = (size_t)sysconf(_SC_PAGESIZE);
	memset(&dev, 0, sizeof(dev));
	assert_int_equal(vb_shm_export(&dev.peers.export_fd, &dev.peers.export,
				       sizeof(struct vb_export)),
			 0);
	export = dev.peers.export;
	export->magic = VB_EXPORT_MAGIC;
	export->version = VB_EXPORT_VERSION;
	export->nonce = dev.peers.nonce = NONCE;
	file = memfd_create("test", MFD_CLOEXEC);
	assert_int_equal(ftruncate(file, (off_t)(PAGES * page)), 0);
	shared = mmap(NULL, PAGES * page, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
	heap = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	export->self = (uintptr_t)export;
	assert_int_equal(madvise(export, sizeof(*export), MADV_DOFORK), 0);
	owner_begin();
	return 0;
}

static void owner_end(void)
{
	if (child) {
		kill(child, SIGKILL);
		waitpid(child, NULL, 0);
	}
	child = 0;
}

static int end(void **state)
{
	owner_end();
	close(card_fd);
	close(file);
	close(dev.peers.export_fd);
	vb_shm_unmap(dev.peers.export, sizeof(struct vb_export));
	munmap(shared, PAGES * page);
	munmap(heap, page);
	return 0;
}

#define FOREIGN_TEST(name) TEST_BETWEEN(name, begin, end)

FOREIGN_TEST(a_card_says_whose_it_is)
{
	struct vb_card card;
	int own;

	assert_int_equal(vb_card_read(card_fd, &card), 0);
	assert_int_equal(card.pid, child);
	assert_int_equal(card.nonce, NONCE);
	assert_int_equal(card.family, FAMILY);
	assert_false(vb_card_is_own(&dev, &card));
	assert_int_equal(vb_card_make(&dev, 6, &own), 0);
	assert_int_equal(vb_card_read(own, &card), 0);
	assert_true(vb_card_is_own(&dev, &card));
	dev.peers.nonce++;
	assert_false(vb_card_is_own(&dev, &card));
	/* Nobody can make another of it. */
	assert_int_equal(pwrite(own, "x", 1, 0), -1);
	close(own);
}

FOREIGN_TEST(what_is_no_card_is_refused)
{
	struct vb_card card;
	int similar;

	assert_int_equal(vb_card_read(-1, &card), EBADF);
	assert_int_equal(vb_card_read(file, &card), EINVAL);
	assert_int_equal(vb_card_read(dev.peers.export_fd, &card), EINVAL);
	/* The same octets where they could be changed. */
	assert_int_equal(vb_card_read(card_fd, &card), 0);
	similar = memfd_create("card", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	assert_int_equal(write(similar, &card, sizeof(card)), sizeof(card));
	assert_int_equal(vb_card_read(similar, &card), EINVAL);
	card.magic++;
	assert_int_equal(pwrite(similar, &card, sizeof(card), 0), sizeof(card));
	assert_int_equal(fcntl(similar, F_ADD_SEALS, F_SEAL_WRITE), 0);
	assert_int_equal(vb_card_read(similar, &card), EINVAL);
	close(similar);
}

static struct vb_foreign *meet(void)
{
	struct vb_foreign *foreign;
	struct vb_card card;

	assert_int_equal(vb_card_read(card_fd, &card), 0);
	assert_int_equal(vb_foreign_meet(&dev, &card, &foreign), 0);
	assert_int_equal(foreign->family, FAMILY);
	assert_int_equal(foreign->export->nonce, NONCE);
	return foreign;
}

FOREIGN_TEST(memory_of_a_file_is_mapped)
{
	struct vb_foreign *foreign = meet();
	uint8_t *at = vb_foreign_map(NULL, foreign, (uintptr_t)shared + 100, page);

	assert_non_null(at);
	at[0] = 0x5a;
	assert_int_equal(shared[100], 0x5a);
	shared[100 + page - 1] = 0xa5;
	assert_int_equal(at[page - 1], 0xa5);
	vb_direct_unmap(NULL, at, page);
	/* All of it must be of one mapping, */
	assert_null(vb_foreign_map(NULL, foreign, (uintptr_t)shared, PAGES * page + 1));
	/* and of a file; */
	assert_null(vb_foreign_map(NULL, foreign, (uintptr_t)heap, page));
	assert_null(vb_foreign_map(NULL, foreign, 4096, 8));
	/* and the owner there. */
	owner_end();
	assert_null(vb_foreign_map(NULL, foreign, (uintptr_t)shared, page));
	vb_foreign_leave(NULL, foreign);
}

FOREIGN_TEST(who_is_not_what_the_card_says_is_not_met)
{
	struct vb_foreign *foreign;
	struct vb_card card, wrong;

	assert_int_equal(vb_card_read(card_fd, &card), 0);
	wrong = card;
	wrong.nonce++;
	assert_int_equal(vb_foreign_meet(&dev, &wrong, &foreign), EOPNOTSUPP);
	wrong = card;
	wrong.export_fd = file; /* open there too, but no export */
	assert_int_equal(vb_foreign_meet(&dev, &wrong, &foreign), EOPNOTSUPP);
	wrong.export_fd = -1;
	assert_int_equal(vb_foreign_meet(&dev, &wrong, &foreign), EOPNOTSUPP);
	wrong = card;
	wrong.pid = 0x7fffffff;
	assert_int_equal(vb_foreign_meet(&dev, &wrong, &foreign), EOPNOTSUPP);
	owner_end();
	assert_int_equal(vb_foreign_meet(&dev, &card, &foreign), EOPNOTSUPP);
}

/* An export may be open in another process than the one that made it. */
FOREIGN_TEST(who_does_not_own_the_export_is_not_met)
{
	struct vb_foreign *foreign;
	struct vb_card card;

	owner_end();
	close(card_fd);
	owns = false;
	owner_begin();
	assert_int_equal(vb_card_read(card_fd, &card), 0);
	assert_int_equal(vb_foreign_meet(&dev, &card, &foreign), EOPNOTSUPP);
}
