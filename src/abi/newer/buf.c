/* SPDX-License-Identifier: BSD-2-Clause */
#include "abi/newer/buf.h"

#include <stdlib.h>
#include <unistd.h>

#include "abi/verbs/abi.h"
#include "abi/newer/newer.h"

struct ibv_buf;
struct ibv_mr_init_attr;
void *ibv_alloc_buf(struct ibv_pd *pd, size_t size, struct ibv_buf **buf);
void ibv_free_buf(struct ibv_buf *buf);
struct ibv_mr *ibv_reg_mr_ex(struct ibv_pd *pd, struct ibv_mr_init_attr *attr);
struct ibv_mr *ibv_reg_buf_mr(struct ibv_pd *pd, struct ibv_buf *buf, void *addr, size_t length,
			      int access);
int ibv_export_buf_dmabuf_fd(struct ibv_buf *buf);

static int make(struct ibv_pd *pd, size_t bytes, struct vb_buf **out)
{
	struct vb_buf *buf;

	if (!bytes)
		return vb_refuse(EINVAL, "size is 0");
	buf = calloc(1, sizeof(*buf));
	if (!buf)
		return ENOMEM;
	if (posix_memalign(&buf->addr, (size_t)sysconf(_SC_PAGESIZE), bytes)) {
		free(buf);
		return ENOMEM;
	}
	buf->context = pd->context;
	buf->pd = pd;
	buf->bytes = bytes;
	*out = buf;
	return 0;
}

void *ibv_alloc_buf(struct ibv_pd *pd, size_t size, struct ibv_buf **out)
{
	struct vb_buf *buf = NULL;
	int rc = vb_abi_check(PD, pd);

	if (rc == 0)
		rc = make(pd, size, &buf);
	if (rc != 0) {
		vb_abi_result(rc);
		return NULL;
	}
	vb_known_add(VB_KNOWN_BUF, buf);
	*out = (struct ibv_buf *)buf;
	return buf->addr;
}

/* The memory is the process's own: it works in a forked child, too, and of a failed device. */
void ibv_free_buf(struct ibv_buf *ibv)
{
	struct vb_buf *buf = (struct vb_buf *)ibv;

	if (vb_known_end(VB_KNOWN_BUF, buf) != 0)
		return;
	vb_known_ended(VB_KNOWN_BUF, buf, 0);
	free(buf->addr);
	free(buf);
}

struct ibv_mr *ibv_reg_buf_mr(struct ibv_pd *pd, struct ibv_buf *buf, void *addr, size_t length,
			      int access)
{
	struct vb_mr_init_attr attr = {
		.length = length,
		.access = access,
		.comp_mask = VB_REG_MR_BUF | VB_REG_MR_ADDR,
		.addr = addr,
		.buf = buf,
	};

	return ibv_reg_mr_ex(pd, (struct ibv_mr_init_attr *)&attr);
}

/* ENODATA says that ordinary memory is behind it. */
int ibv_export_buf_dmabuf_fd(struct ibv_buf *buf)
{
	int rc = vb_known(VB_KNOWN_BUF, buf);

	if (rc == 0)
		rc = vb_refuse(ENODATA, "the buffer is ordinary memory, not a dma-buf");
	vb_abi_result(rc);
	return -1;
}
