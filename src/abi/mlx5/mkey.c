/* SPDX-License-Identifier: BSD-2-Clause */
/* mlx5dv_create_mkey(3). The layout behind a key comes with a work request (wr.c). */
#include "nic/mem/mkey.h"

#include "abi/mlx5/mlx5.h"
#include "base/refusal.h"
#include "tape/tape.h"

_Static_assert(offsetof(struct vb_mkey, lkey) == offsetof(struct mlx5dv_mkey, lkey) &&
		       offsetof(struct vb_mkey, rkey) == offsetof(struct mlx5dv_mkey, rkey),
	       "the handle that the application holds is the object");

/* There are only indirect keys here, without signatures and encryption. */
static int flags_of(uint32_t from, uint32_t *flags)
{
	static const uint32_t known = MLX5DV_MKEY_INIT_ATTR_FLAGS_INDIRECT |
				      MLX5DV_MKEY_INIT_ATTR_FLAGS_UPDATE_TAG |
				      MLX5DV_MKEY_INIT_ATTR_FLAGS_REMOTE_INVALIDATE;

	if ((from & ~known) || !(from & MLX5DV_MKEY_INIT_ATTR_FLAGS_INDIRECT))
		return EOPNOTSUPP;
	*flags = 0;
	if (from & MLX5DV_MKEY_INIT_ATTR_FLAGS_UPDATE_TAG)
		*flags |= VB_MKEY_UPDATE_TAG;
	if (from & MLX5DV_MKEY_INIT_ATTR_FLAGS_REMOTE_INVALIDATE)
		*flags |= VB_MKEY_REMOTE_INVALIDATE;
	return 0;
}

struct mlx5dv_mkey *mlx5dv_create_mkey(struct mlx5dv_mkey_init_attr *attr)
{
	struct vb_mkey *mkey;
	uint32_t flags;
	int rc = flags_of(attr->create_flags, &flags);

	if (rc == 0 && vb_abi_is_dead(attr->pd->context))
		rc = EIO;
	if (rc == 0 && vb_tape_is_on())
		rc = vb_refuse(EOPNOTSUPP, "indirect keys are not recorded");
	if (rc == 0)
		rc = vb_mkey_create((struct vb_pd *)attr->pd, flags, &attr->max_entries, &mkey);
	if (rc != 0) {
		vb_abi_result(rc);
		return NULL;
	}
	return (struct mlx5dv_mkey *)mkey;
}

int mlx5dv_destroy_mkey(struct mlx5dv_mkey *mkey)
{
	const struct vb_pd *pd = ((struct vb_mkey *)mkey)->pd;

	if (pd && vb_abi_is_gone(pd->ibv.context))
		return 0;
	return vb_mkey_destroy((struct vb_mkey *)mkey);
}
