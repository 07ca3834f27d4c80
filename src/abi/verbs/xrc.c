/* SPDX-License-Identifier: BSD-2-Clause */
#include "nic/service/xrc/xrc.h"

#include <stdlib.h>
#include <sys/stat.h>

#include "abi/verbs/abi.h"
#include "abi/verbs/context.h"
#include "abi/verbs/ops.h"
#include "tape/tape.h"

/* ibv_open_xrcd(3): a domain belongs to a file's inode; with fd -1 it is private. */
static int open_xrcd(struct ibv_context *context, const struct ibv_xrcd_init_attr *attr,
		     struct vb_xrcd **xrcd)
{
	const uint32_t both = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS;
	uint64_t file[2];
	struct stat stat;

	if (vb_abi_is_dead(context))
		return EIO;
	if (vb_tape_is_on())
		return vb_refuse(EOPNOTSUPP, "XRC is not recorded");
	if (attr->comp_mask >= IBV_XRCD_INIT_ATTR_RESERVED)
		return EOPNOTSUPP;
	if ((attr->comp_mask & both) != both)
		return vb_refuse(EINVAL,
				 "comp_mask 0x%x lacks IBV_XRCD_INIT_ATTR_FD or "
				 "IBV_XRCD_INIT_ATTR_OFLAGS",
				 attr->comp_mask);
	if (attr->fd == -1)
		return vb_xrcd_open(vb_ctx_of(context), NULL, attr->oflags, xrcd);
	if (fstat(attr->fd, &stat))
		return vb_refuse(errno, "fd is %d: it is no open file, and not -1", attr->fd);
	file[0] = stat.st_dev;
	file[1] = stat.st_ino;
	return vb_xrcd_open(vb_ctx_of(context), file, attr->oflags, xrcd);
}

struct ibv_xrcd *vb_abi_open_xrcd(struct ibv_context *context, struct ibv_xrcd_init_attr *attr)
{
	struct vb_xrcd *xrcd;
	int rc = open_xrcd(context, attr, &xrcd);

	if (rc != 0) {
		vb_abi_result(rc);
		return NULL;
	}
	vb_abi_made(context);
	vb_known_add(VB_KNOWN_XRCD, &xrcd->ibv);
	return &xrcd->ibv;
}

int vb_abi_close_xrcd(struct ibv_xrcd *xrcd)
{
	struct ibv_context *context;
	int rc = vb_known_end(VB_KNOWN_XRCD, xrcd);

	if (rc != 0)
		return vb_abi_result(rc);
	context = xrcd->context;
	if (vb_abi_is_gone(context))
		return 0;
	rc = vb_known_ended(VB_KNOWN_XRCD, xrcd, vb_xrcd_close((struct vb_xrcd *)xrcd));
	return vb_abi_ended(context, vb_report_refused(__func__, rc));
}
