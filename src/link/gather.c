/* SPDX-License-Identifier: BSD-2-Clause */
#include "link/gather.h"

#include <errno.h>

#include "base/check.h"
#include "base/guard.h"

uint32_t vb_gather_bytes(const struct vb_gather *gather, const struct vb_burst *burst)
{
	return gather->frame + 1 < burst->frames ? burst->frame_bytes : burst->last_bytes;
}

int vb_gather_next(struct vb_gather *gather, const struct vb_burst *burst, uint8_t *data)
{
	uint32_t bytes = vb_gather_bytes(gather, burst), done = 0;

	while (done < bytes) {
		const struct iovec *iov = &burst->iov[gather->piece++];

		/* Pieces make up exactly the frames, and cross no boundary (link.h). */
		vb_check(gather->piece <= burst->iovcnt && iov->iov_len <= bytes - done);
		if (!vb_guard_copy(data + done, iov->iov_base, iov->iov_len))
			return EFAULT;
		done += (uint32_t)iov->iov_len;
	}
	gather->frame++;
	return 0;
}
