/* SPDX-License-Identifier: BSD-2-Clause */
/* Any 40 octets as a GRH: what parses, built and parsed again, is the same. */
#include <string.h>

#include "base/check.h"
#include "fuzz.h"
#include "wire/grh.h"

static void path_from_grh(struct vb_path *path, const struct vb_grh *grh)
{
	memset(path, 0, sizeof(*path));
	memcpy(path->src, grh->sgid, VB_GID_BYTES);
	memcpy(path->dst, grh->dgid, VB_GID_BYTES);
	path->flow_label = grh->flow_label;
	path->tclass = grh->tclass;
	path->hop_limit = grh->hop_limit;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	uint8_t octets[VB_GRH_BYTES];
	struct vb_path path;
	struct vb_grh grh, again;

	if (bytes < VB_GRH_BYTES)
		return 0;
	memset(&grh, 0, sizeof(grh));
	memset(&again, 0, sizeof(again));
	if (!vb_grh_parse(&grh, data))
		return 0;
	path_from_grh(&path, &grh);
	vb_grh_build(octets, &path, bytes);
	vb_check(vb_grh_parse(&again, octets));
	/* An IPv6 header with IPv4-mapped addresses is built as the IPv4 header that they mean. */
	if (grh.ipv4 == again.ipv4) {
		vb_check(memcmp(&grh, &again, sizeof(grh)) == 0);
	} else {
		vb_check(!grh.ipv4 && vb_gid_is_ipv4(grh.dgid));
	}
	return 0;
}
