/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mlx5dv_wr_*(3): operations and setters for the builder of ibv_wr_*(3), which has the state
 * (abi/verbs/wr.h). Every QP with a builder has all of them. An operation that the QP was not
 * created for makes its batch fail with EINVAL, as in the builder itself.
 */
#include "abi/mlx5/wr.h"

#include <stdlib.h>

#include "abi/mlx5/mlx5.h"
#include "nic/mem/mkey.h"
#include "nic/service/dc/dc.h"
#include "tape/calls.h"

/* --- DC --- */

static void set_dc_addr_stream(struct mlx5dv_qp_ex *mqp, struct ibv_ah *ah, uint32_t remote_dctn,
			       uint64_t remote_dc_key, uint16_t stream_id)
{
	struct vb_builder *b = vb_mlx5_builder(mqp);
	struct vb_post *post = vb_wr_current(b);

	if (!((struct vb_qp *)vb_mlx5_qp_of(mqp))->special.dc) {
		vb_wr_fail(b, EINVAL);
		return;
	}
	post->dc = (struct vb_dc_address){
		.ah = ah,
		.dctn = remote_dctn,
		.key = remote_dc_key,
		.stream = stream_id,
	};
}

static void set_dc_addr(struct mlx5dv_qp_ex *mqp, struct ibv_ah *ah, uint32_t remote_dctn,
			uint64_t remote_dc_key)
{
	set_dc_addr_stream(mqp, ah, remote_dctn, remote_dc_key, 0);
}

int mlx5dv_dci_stream_id_reset(struct ibv_qp *qp, uint16_t stream_id)
{
	return vb_taped_dc_stream_reset((struct vb_qp *)qp, stream_id);
}

/* --- memory keys --- */

static void refuse(struct mlx5dv_qp_ex *mqp)
{
	vb_wr_fail(vb_mlx5_builder(mqp), EOPNOTSUPP);
}

/*
 * The request that the builder has collected for the key; NULL: the work request is of another
 * kind, or failed.
 */
static struct vb_mkey_request *request_of(struct vb_builder *b)
{
	struct vb_post *post = vb_wr_current(b);

	if ((int)post->wr.opcode != VB_WR_MKEY)
		vb_wr_fail(b, EINVAL);
	return b->error ? NULL : (void *)(b->mkeys + (post - b->posts) * b->mkey_stride);
}

static void check_setter(struct vb_builder *b, int rc)
{
	if (rc != 0)
		vb_wr_fail(b, rc);
}

static void configure(struct mlx5dv_qp_ex *mqp, struct mlx5dv_mkey *mkey, unsigned setters,
		      uint32_t op)
{
	struct ibv_qp_ex *qp = vb_mlx5_qp_of(mqp);
	struct vb_builder *b = vb_wr_builder(qp);
	struct vb_post *post = vb_wr_begin(qp, (enum ibv_wr_opcode)VB_WR_MKEY, b->dv_ops & op);
	struct vb_mkey_request *request;

	/* "Current implementation requires the IBV_SEND_INLINE option": so does ours. */
	if (!(qp->wr_flags & IBV_SEND_INLINE))
		vb_wr_fail(b, EOPNOTSUPP);
	request = request_of(b);
	if (!request)
		return;
	post->mkey = request;
	check_setter(b, vb_mkey_request_begin(request, &((struct vb_qp *)qp)->made.cap,
					      (struct vb_mkey *)mkey, setters));
}

static void mkey_configure(struct mlx5dv_qp_ex *mqp, struct mlx5dv_mkey *mkey, uint8_t num_setters,
			   struct mlx5dv_mkey_conf_attr *attr)
{
	/* There are no signatures to reset. */
	if (attr->comp_mask ||
	    (attr->conf_flags & ~(uint32_t)MLX5DV_MKEY_CONF_FLAG_RESET_SIG_ATTR))
		refuse(mqp);
	configure(mqp, mkey, num_setters, VB_QP_MKEY_CONFIGURE);
}

static void set_mkey_access_flags(struct mlx5dv_qp_ex *mqp, uint32_t access_flags)
{
	struct vb_builder *b = vb_mlx5_builder(mqp);
	struct vb_mkey_request *request = request_of(b);

	if (request)
		check_setter(b, vb_mkey_request_access(request, access_flags));
}

static void set_mkey_layout_list(struct mlx5dv_qp_ex *mqp, uint16_t num_sges,
				 const struct ibv_sge *sge)
{
	struct vb_builder *b = vb_mlx5_builder(mqp);
	struct vb_mkey_request *request = request_of(b);

	if (request)
		check_setter(b, vb_mkey_request_list(request, num_sges, sge));
}

/* The entries are ours with other names. */
_Static_assert(sizeof(struct mlx5dv_mr_interleaved) == sizeof(struct vb_mkey_entry) &&
		       offsetof(struct mlx5dv_mr_interleaved, addr) ==
			       offsetof(struct vb_mkey_entry, addr) &&
		       offsetof(struct mlx5dv_mr_interleaved, bytes_count) ==
			       offsetof(struct vb_mkey_entry, bytes) &&
		       offsetof(struct mlx5dv_mr_interleaved, bytes_skip) ==
			       offsetof(struct vb_mkey_entry, skip) &&
		       offsetof(struct mlx5dv_mr_interleaved, lkey) ==
			       offsetof(struct vb_mkey_entry, lkey),
	       "an entry is copied as it is");

static void set_mkey_layout_interleaved(struct mlx5dv_qp_ex *mqp, uint32_t repeat_count,
					uint16_t num_interleaved,
					const struct mlx5dv_mr_interleaved *data)
{
	struct vb_builder *b = vb_mlx5_builder(mqp);
	struct vb_mkey_request *request = request_of(b);

	if (request)
		check_setter(b, vb_mkey_request_layout(request, repeat_count, num_interleaved,
						       (const struct vb_mkey_entry *)data));
}

static void mr_interleaved(struct mlx5dv_qp_ex *mqp, struct mlx5dv_mkey *mkey,
			   uint32_t access_flags, uint32_t repeat_count, uint16_t num_interleaved,
			   struct mlx5dv_mr_interleaved *data)
{
	configure(mqp, mkey, 2, VB_QP_MR_INTERLEAVED);
	set_mkey_access_flags(mqp, access_flags);
	set_mkey_layout_interleaved(mqp, repeat_count, num_interleaved, data);
}

static void mr_list(struct mlx5dv_qp_ex *mqp, struct mlx5dv_mkey *mkey, uint32_t access_flags,
		    uint16_t num_sges, struct ibv_sge *sge)
{
	configure(mqp, mkey, 2, VB_QP_MR_LIST);
	set_mkey_access_flags(mqp, access_flags);
	set_mkey_layout_list(mqp, num_sges, sge);
}

/* Signatures and encryption are not supported. */
static void set_mkey_sig_block(struct mlx5dv_qp_ex *mqp, const struct mlx5dv_sig_block_attr *attr)
{
	refuse(mqp);
}

static void set_mkey_crypto(struct mlx5dv_qp_ex *mqp, const struct mlx5dv_crypto_attr *attr)
{
	refuse(mqp);
}

/* --- others --- */

static void raw_wqe(struct mlx5dv_qp_ex *mqp, const void *wqe)
{
	refuse(mqp);
}

/* The length is checked when it is posted. */
static void memory_copy(struct mlx5dv_qp_ex *mqp, uint32_t dest_lkey, uint64_t dest_addr,
			uint32_t src_lkey, uint64_t src_addr, size_t length)
{
	struct ibv_qp_ex *qp = vb_mlx5_qp_of(mqp);
	struct vb_post *post = vb_wr_begin(qp, (enum ibv_wr_opcode)VB_WR_MEMCPY,
					   vb_wr_builder(qp)->dv_ops & VB_QP_MEMCPY);

	post->copy = (struct vb_copy){ .to = dest_addr, .to_key = dest_lkey, .from = src_addr,
				       .from_key = src_lkey, .bytes = length };
}

struct vb_mlx5_qp *vb_mlx5_qp_part(void)
{
	static const struct mlx5dv_qp_ex functions = {
		.wr_set_dc_addr = set_dc_addr,
		.wr_mr_interleaved = mr_interleaved,
		.wr_mr_list = mr_list,
		.wr_mkey_configure = mkey_configure,
		.wr_set_mkey_access_flags = set_mkey_access_flags,
		.wr_set_mkey_layout_list = set_mkey_layout_list,
		.wr_set_mkey_layout_interleaved = set_mkey_layout_interleaved,
		.wr_set_mkey_sig_block = set_mkey_sig_block,
		.wr_raw_wqe = raw_wqe,
		.wr_set_dc_addr_stream = set_dc_addr_stream,
		.wr_memcpy = memory_copy,
		.wr_set_mkey_crypto = set_mkey_crypto,
	};
	struct vb_mlx5_qp *part = calloc(1, sizeof(*part));

	if (part)
		part->ex = functions;
	return part;
}

struct mlx5dv_qp_ex *mlx5dv_qp_ex_from_ibv_qp_ex(struct ibv_qp_ex *qp)
{
	struct vb_builder *b = qp ? vb_wr_builder(qp) : NULL;

	if (!b || !b->dv) {
		errno = EINVAL;
		return NULL;
	}
	return b->dv;
}
