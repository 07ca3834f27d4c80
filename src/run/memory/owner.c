/* SPDX-License-Identifier: BSD-2-Clause */
#include "run/memory/owner.h"

#include <fcntl.h>
#include <stdio.h>

#include "run/memory/vma.h"

enum { NONE = -1, PATH_BYTES = 64 };

int vb_owner_open(uint32_t pid)
{
	char path[PATH_BYTES];

	if (!pid)
		return NONE;
	snprintf(path, sizeof(path), "/proc/%u", pid);
	return open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
}

bool vb_owner_has(int proc_fd, uint64_t address, uint64_t device, uint64_t inode)
{
	const void *at = (const void *)(uintptr_t)address;
	struct vb_vmas vmas;
	struct vb_vma vma;
	bool has;

	vb_vmas_open_at(&vmas, proc_fd);
	has = vb_vma_find(&vmas, at, &vma) && vb_vma_holds(&vma, at) && vma.shared &&
	      vma.writable && vma.device == device && vma.inode == inode;
	vb_vmas_close(&vmas);
	return has;
}
