/* SPDX-License-Identifier: BSD-2-Clause */
/* The device as mlx5 direct verbs see it: properties, capabilities, clock. */
#include <string.h>

#include "abi/mlx5/mlx5.h"
#include "abi/verbs/device.h"
#include "abi/verbs/ops.h"
#include "base/check.h"
#include "nic/control/nic.h"
#include "nic/core/slots.h"
#include "run/process/log.h"
#include "tape/calls.h"

/*
 * mlx5dv_is_supported(3): may functions of this library be called for the device? They may for
 * ours, whatever its persona. That its queues are not in memory where programs could write to them
 * is reported by the functions that ask for them: DEVX and mlx5dv_init_obj().
 */
bool mlx5dv_is_supported(struct ibv_device *device)
{
	unsigned row;

	return vb_abi_device_row(device, &row);
}

struct ibv_context *mlx5dv_open_device(struct ibv_device *device, struct mlx5dv_context_attr *attr)
{
	if (!mlx5dv_is_supported(device) || (attr && (attr->flags || attr->comp_mask))) {
		errno = EOPNOTSUPP;
		return NULL;
	}
	return ibv_open_device(device);
}

/* Fields that the caller's structure, if of an older header, may lack. */
#define FIELD(bit, name)                                                                          \
	{                                                                                         \
		MLX5DV_CONTEXT_MASK_##bit, offsetof(struct mlx5dv_context, name),                 \
			sizeof(((struct mlx5dv_context *)NULL)->name)                             \
	}

static const struct field {
	uint64_t bit;
	size_t offset, bytes;
} fields[] = {
	FIELD(CQE_COMPRESION, cqe_comp_caps),
	FIELD(SWP, sw_parsing_caps),
	FIELD(STRIDING_RQ, striding_rq_caps),
	FIELD(TUNNEL_OFFLOADS, tunnel_offloads_caps),
	FIELD(DYN_BFREGS, max_dynamic_bfregs),
	FIELD(CLOCK_INFO_UPDATE, max_clock_info_update_nsec),
	FIELD(FLOW_ACTION_FLAGS, flow_action_flags),
	FIELD(DC_ODP_CAPS, dc_odp_caps),
	FIELD(HCA_CORE_CLOCK, hca_core_clock),
	FIELD(NUM_LAG_PORTS, num_lag_ports),
	FIELD(SIGNATURE_OFFLOAD, sig_caps),
	FIELD(DCI_STREAMS, dci_streams_caps),
	FIELD(WR_MEMCPY_LENGTH, max_wr_memcpy_length),
	FIELD(CRYPTO_OFFLOAD, crypto_caps),
};

/*
 * What follows crypto_caps in newer headers (rdma-core 50 on), and is missing in older ones: how
 * many READs and atomics a DC QP answers, and starts, at a time; and from 56 on how many receive
 * requests a QP with MLX5DV_QP_CREATE_OOO_DP may have.
 */
#define MASK_MAX_DC_RD_ATOM (1ull << 14) /* MLX5DV_CONTEXT_MASK_MAX_DC_RD_ATOM */
#define MASK_OOO_RECV_WRS (1ull << 16)	 /* MLX5DV_CONTEXT_MASK_OOO_RECV_WRS */
/* ConnectX's figure, not VB_RD_ATOMIC_MAX: pyverbs posts that many at once and has no more room. */
enum { DC_RD_ATOMIC = 16 };
struct newer_context {
	_Alignas(uint64_t) char older[offsetof(struct mlx5dv_context, crypto_caps) +
				      sizeof(struct mlx5dv_crypto_caps)];
	uint64_t max_dc_rd_atom, max_dc_init_rd_atom;
	struct mlx5dv_reg reg_c0;
	struct newer_ooo_caps {
		uint32_t rc, xrc, dct, ud, uc;
	} ooo; /* struct mlx5dv_ooo_recv_wrs_caps */
};

static void rd_atomic_say(struct mlx5dv_context *attrs)
{
	struct newer_context *newer = (struct newer_context *)attrs;

	newer->max_dc_rd_atom = newer->max_dc_init_rd_atom = DC_RD_ATOMIC;
	attrs->comp_mask |= MASK_MAX_DC_RD_ATOM;
}

static void ooo_say(struct mlx5dv_context *attrs, bool dc)
{
	struct newer_context *newer = (struct newer_context *)attrs;

	newer->ooo = (struct newer_ooo_caps){
		.rc = VB_QP_WR_MAX,
		.xrc = VB_SRQ_WR_MAX,
		.dct = dc ? VB_SRQ_WR_MAX : 0,
		.ud = VB_QP_WR_MAX,
		.uc = VB_QP_WR_MAX,
	};
	attrs->comp_mask |= MASK_OOO_RECV_WRS;
}

/*
 * comp_mask says which fields the caller has, and returns which of them are valid. Features that
 * the device lacks have no bit, and their fields are zero.
 */
int mlx5dv_query_device(struct ibv_context *context, struct mlx5dv_context *attrs)
{
	const uint64_t asked = attrs->comp_mask;
	struct mlx5dv_context full = { .version = 0 };
	struct vb_dv_caps caps;

	vb_qp_dv_query(vb_abi_nic(context), &caps);
	full.flags = MLX5DV_CONTEXT_FLAGS_CQE_128B_PAD; /* there is no bus to pad on */
	if (caps.flags & VB_QP_PACKET_CREDITS)
		full.flags |= MLX5DV_CONTEXT_FLAGS_PACKET_BASED_CREDIT_MODE;
	if (caps.tunnels) {
		full.tunnel_offloads_caps = caps.tunnels;
		full.comp_mask |= MLX5DV_CONTEXT_MASK_TUNNEL_OFFLOADS;
	}
	full.max_clock_info_update_nsec = VB_CLOCK_INFO_NS;
	full.comp_mask |= MLX5DV_CONTEXT_MASK_CLOCK_INFO_UPDATE;
	if (caps.dc) {
		full.dc_odp_caps = caps.dc_odp;
		full.dci_streams_caps.max_log_num_concurent = caps.dc_streams_log_max;
		full.dci_streams_caps.max_log_num_errored = caps.dc_errored_log_max;
		full.comp_mask |= MLX5DV_CONTEXT_MASK_DC_ODP_CAPS |
				  MLX5DV_CONTEXT_MASK_DCI_STREAMS;
	}
	if (caps.memcpy_bytes_max) {
		full.max_wr_memcpy_length = caps.memcpy_bytes_max;
		full.comp_mask |= MLX5DV_CONTEXT_MASK_WR_MEMCPY_LENGTH;
	}
	attrs->version = full.version;
	attrs->flags = full.flags;
	attrs->comp_mask = full.comp_mask & asked;
	for (size_t i = 0; i < VB_ARRAY_LEN(fields); i++) {
		if (asked & fields[i].bit)
			memcpy((char *)attrs + fields[i].offset, (char *)&full + fields[i].offset,
			       fields[i].bytes);
	}
	if (caps.dc && (asked & MASK_MAX_DC_RD_ATOM))
		rd_atomic_say(attrs);
	if (asked & MASK_OOO_RECV_WRS)
		ooo_say(attrs, caps.dc);
	return 0;
}

/*
 * Beyond ibv_query_port(3), the attributes describe a port within an adapter's switch. Ours has
 * none, so none of them is set.
 */
int _mlx5dv_query_port(struct ibv_context *context, uint32_t port_num, struct mlx5dv_port *info,
		       size_t info_len)
{
	if (vb_abi_is_dead(context))
		return EIO;
	if (port_num < 1 || port_num > VB_PORTS || info_len < sizeof(info->flags))
		return EINVAL;
	memset(info, 0, info_len);
	return 0;
}

/* From rdma-core 54: a dma-buf region; mlx5_access asks for another PCI function to access it. */
struct ibv_mr *mlx5dv_reg_dmabuf_mr(struct ibv_pd *pd, uint64_t offset, size_t length,
				    uint64_t iova, int fd, int access, int mlx5_access);

struct ibv_mr *mlx5dv_reg_dmabuf_mr(struct ibv_pd *pd, uint64_t offset, size_t length,
				    uint64_t iova, int fd, int access, int mlx5_access)
{
	if (mlx5_access) {
		vb_abi_result(vb_refuse(EOPNOTSUPP, "mlx5_access is 0x%x; there is no bus",
					(unsigned)mlx5_access));
		return NULL;
	}
	return ibv_reg_dmabuf_mr(pd, offset, length, iova, fd, access);
}

/* From rdma-core 65: of the objects that can be exported there are none, so nothing is needed. */
struct mlx5dv_export_sizes;
void _mlx5dv_get_export_sizes(struct mlx5dv_export_sizes *sizes, size_t sizes_len);

void _mlx5dv_get_export_sizes(struct mlx5dv_export_sizes *sizes, size_t sizes_len)
{
	memset(sizes, 0, sizes_len);
}

/* From rdma-core 54: the PCI function for dma-buf regions. This device has no bus. */
int mlx5dv_get_data_direct_sysfs_path(struct ibv_context *context, char *buf, size_t buf_len);

int mlx5dv_get_data_direct_sysfs_path(struct ibv_context *context, char *buf, size_t buf_len)
{
	return ENODEV;
}

/* The device's clock counts ns and never wraps; the caller also gets the wall-clock time. */
int mlx5dv_get_clock_info(struct ibv_context *context, struct mlx5dv_clock_info *info)
{
	uint64_t raw_ns, wall_ns;
	int rc;

	if (vb_abi_is_dead(context))
		return EIO;
	rc = vb_nic_query_times(vb_abi_nic(context), &raw_ns, &wall_ns);
	if (rc == 0)
		*info = (struct mlx5dv_clock_info){
			.nsec = wall_ns,
			.last_cycles = raw_ns,
			.mult = 1,
			.mask = UINT64_MAX,
		};
	return rc;
}

/* --- access to queues --- */

static int init_obj(void)
{
	vb_log("mlx5dv_init_obj: this device has no queues in memory for a program to write to");
	return EOPNOTSUPP;
}

int mlx5dv_init_obj(struct mlx5dv_obj *obj, uint64_t obj_type)
{
	return init_obj();
}

/* The older layout of its structs. A separate function, since the linker folds two names of one. */
int vb_mlx5_init_obj_1_0(struct mlx5dv_obj *obj, uint64_t obj_type);

int vb_mlx5_init_obj_1_0(struct mlx5dv_obj *obj, uint64_t obj_type)
{
	return init_obj();
}
__asm__(".symver vb_mlx5_init_obj_1_0, mlx5dv_init_obj@MLX5_1.0");

/* --- QPNs and hints --- */

int mlx5dv_reserved_qpn_alloc(struct ibv_context *context, uint32_t *qpn)
{
	return vb_abi_is_dead(context) ? EIO : vb_taped_qpn_reserve(vb_abi_nic(context), qpn);
}

int mlx5dv_reserved_qpn_dealloc(struct ibv_context *context, uint32_t qpn)
{
	return vb_abi_is_gone(context) ? 0 : vb_taped_qpn_release(vb_abi_nic(context), qpn);
}

/*
 * The address handle would learn which congestion control the QP negotiated by ECE. Ours have none,
 * so only the arguments are checked.
 */
int mlx5dv_map_ah_to_qp(struct ibv_ah *ah, uint32_t qp_num)
{
	if (vb_abi_is_dead(ah->context))
		return EIO;
	return vb_nic_qpn_is_used(vb_abi_nic(ah->context), qp_num) ? 0 : EINVAL;
}

/* On-chip memory is what ibv_alloc_dm(3) gives; the other types are tables of the hardware. */
struct ibv_dm *mlx5dv_alloc_dm(struct ibv_context *context, struct ibv_alloc_dm_attr *dm_attr,
			       struct mlx5dv_alloc_dm_attr *mlx5_attr)
{
	if (mlx5_attr->comp_mask || mlx5_attr->type != MLX5DV_DM_TYPE_MEMIC) {
		errno = EOPNOTSUPP;
		return NULL;
	}
	return vb_abi_alloc_dm(context, dm_attr);
}
