/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * To be preloaded by servers of rdma_cm, whose ports no tool of the kernel's shows: once one
 * listens, there is the file that LISTENS in the environment names.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <rdma/rdma_cma.h>
#include <rdma/rsocket.h>
#include <stdlib.h>
#include <unistd.h>

static int tell(int rc)
{
	const char *path = getenv("LISTENS");

	if (!rc && path)
		close(open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644));
	return rc;
}

int rdma_listen(struct rdma_cm_id *id, int backlog)
{
	int (*real)(struct rdma_cm_id *, int) =
		(int (*)(struct rdma_cm_id *, int))dlsym(RTLD_NEXT, "rdma_listen");

	return tell(real(id, backlog));
}

int rlisten(int socket, int backlog)
{
	int (*real)(int, int) = (int (*)(int, int))dlsym(RTLD_NEXT, "rlisten");

	return tell(real(socket, backlog));
}
