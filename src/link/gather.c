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
	size_t left = vb_gather_bytes(gather, burst);

	while (left) {
		const struct iovec *iov = &burst->iov[gather->piece];
		size_t n;

		/* The pieces contain exactly the frames (frame.h). */
		vb_check(gather->piece < burst->iovcnt);
		n = vb_min_u64(iov->iov_len - gather->used, left);
		if (!vb_guard_copy(data, (const uint8_t *)iov->iov_base + gather->used, n))
			return EFAULT;
		data += n;
		left -= n;
		gather->used += n;
		if (gather->used == iov->iov_len) {
			gather->piece++;
			gather->used = 0;
		}
	}
	gather->frame++;
	return 0;
}
