/* SPDX-License-Identifier: BSD-2-Clause */
#include "lib.h"

#include <arpa/inet.h>
#include <dlfcn.h>
#include <infiniband/mlx5dv.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

/* What mlx5 direct verbs say of the device, and what they do that is not about QPs. */

vt_test(the_device_may_be_asked)
{
	struct ibv_device stranger = { .node_type = IBV_NODE_CA };
	struct mlx5dv_context_attr attr = { .flags = 0 };
	struct ibv_context *ctx;

	assert_true(mlx5dv_is_supported(vt.ctx->device));
	assert_false(mlx5dv_is_supported(&stranger));
	ctx = vt_made(mlx5dv_open_device(vt.ctx->device, &attr));
	assert_int_equal(ibv_close_device(ctx), 0);
	ctx = vt_made(mlx5dv_open_device(vt.ctx->device, NULL));
	assert_int_equal(ibv_close_device(ctx), 0);
	/* There is no hardware to send commands to. */
	for (unsigned bit = 0; bit < 32; bit++) {
		attr.flags = 1u << bit;
		vt_refused(EOPNOTSUPP, mlx5dv_open_device(vt.ctx->device, &attr));
	}
	attr = (struct mlx5dv_context_attr){ .comp_mask = 1 };
	vt_refused(EOPNOTSUPP, mlx5dv_open_device(vt.ctx->device, &attr));
	assert_null(mlx5dv_open_device(&stranger, NULL));
}

/* mlx5dv_query_device(3): "Compatibility mask (comp_mask) is in/out field." */
vt_test(only_what_is_asked_for_is_written)
{
	struct mlx5dv_context some, all;
	uint8_t *octet = (uint8_t *)&some;

	memset(&all, 0xa5, sizeof(all));
	all.comp_mask = MLX5DV_CONTEXT_MASK_CRYPTO_OFFLOAD * 2 - 1; /* the fields of all headers */
	assert_int_equal(mlx5dv_query_device(vt.ctx, &all), 0);
	assert_int_equal(all.version, 0);
	assert_true(all.comp_mask & MLX5DV_CONTEXT_MASK_CLOCK_INFO_UPDATE);
	assert_true(all.max_clock_info_update_nsec > 0);
	/* What there is not has no bit, and says nothing. */
	assert_false(all.comp_mask & MLX5DV_CONTEXT_MASK_CQE_COMPRESION);
	assert_int_equal(all.cqe_comp_caps.max_num, 0);
	assert_false(all.comp_mask & MLX5DV_CONTEXT_MASK_HCA_CORE_CLOCK);
	assert_null(all.hca_core_clock);
	assert_false(all.comp_mask & MLX5DV_CONTEXT_MASK_CRYPTO_OFFLOAD);
	assert_int_equal(all.crypto_caps.flags, 0);
	assert_false(all.comp_mask & MLX5DV_CONTEXT_MASK_SIGNATURE_OFFLOAD);
	assert_false(all.flags & MLX5DV_CONTEXT_FLAGS_CQE_128B_COMP);
	/* A program with an older header has less room, and says so. */
	memset(&some, 0xa5, sizeof(some));
	some.comp_mask = 0;
	assert_int_equal(mlx5dv_query_device(vt.ctx, &some), 0);
	assert_int_equal(some.comp_mask, 0);
	assert_true(vt_is_octet(octet + offsetof(struct mlx5dv_context, cqe_comp_caps),
				sizeof(some) - offsetof(struct mlx5dv_context, cqe_comp_caps),
				0xa5));
}

/*
 * Newer headers ask how many READs and atomics DC has on the way, and how many receive requests may
 * complete in any order; ours may have these fields.
 */
vt_test(newer_headers_ask_for_more)
{
	struct {
		char older[offsetof(struct mlx5dv_context, crypto_caps) +
			   sizeof(struct mlx5dv_crypto_caps)] __attribute__((aligned(8)));
		uint64_t max_dc_rd_atom, max_dc_init_rd_atom;
		uint32_t reg_c0[2];
		struct {
			uint32_t max_rc, max_xrc, max_dct, max_ud, max_uc;
		} ooo_recv_wrs;
		char end[512];
	} all;
	struct mlx5dv_context *attrs = (struct mlx5dv_context *)&all;

	memset(&all, 0xa5, sizeof(all));
	attrs->comp_mask = 1ull << 14 | 1ull << 15 | 1ull << 16;
	assert_int_equal(mlx5dv_query_device(vt.ctx, attrs), 0);
	assert_int_equal(attrs->comp_mask, 1ull << 14 | 1ull << 16);
	assert_int_equal(all.max_dc_rd_atom, 16); /* more fill the queues of programs made for it */
	assert_int_equal(all.max_dc_init_rd_atom, 16);
	assert_int_equal(all.ooo_recv_wrs.max_rc, vt_device().max_qp_wr);
	assert_int_equal(all.ooo_recv_wrs.max_xrc, vt_device().max_srq_wr);
	assert_int_equal(all.ooo_recv_wrs.max_ud, vt_device().max_qp_wr);
	assert_int_equal(all.ooo_recv_wrs.max_uc, vt_device().max_qp_wr);
	assert_true(vt_is_octet((uint8_t *)all.end, sizeof(all.end), 0xa5));
	attrs->comp_mask = 0;
	all.max_dc_rd_atom = 77;
	assert_int_equal(mlx5dv_query_device(vt.ctx, attrs), 0);
	assert_int_equal(all.max_dc_rd_atom, 77);
}

/* mlx5dv_query_port(3): "flags will store a subset of the requested attributes" */
vt_test(the_port_stands_in_no_switch)
{
	struct mlx5dv_port port;

	memset(&port, 0xff, sizeof(port));
	assert_int_equal(mlx5dv_query_port(vt.ctx, 1, &port), 0);
	assert_int_equal(port.flags, 0);
	assert_int_equal(mlx5dv_query_port(vt.ctx, 0, &port), EINVAL);
	assert_int_equal(mlx5dv_query_port(vt.ctx, 2, &port), EINVAL);
}

/* mlx5dv_ts_to_ns(3): a stamp becomes the time of day at which it was taken. */
vt_test(stamps_become_times_of_day)
{
	struct ibv_values_ex values = { .comp_mask = IBV_VALUES_MASK_RAW_CLOCK };
	struct mlx5dv_clock_info info;
	uint64_t before, ns;

	assert_int_equal(mlx5dv_get_clock_info(vt.ctx, &info), 0);
	before = vt_wall_ns();
	assert_int_equal(ibv_query_rt_values_ex(vt.ctx, &values), 0);
	ns = mlx5dv_ts_to_ns(&info, (uint64_t)values.raw_clock.tv_nsec);
	/* The two clocks are read one after the other: so much is the most they may be apart. */
	assert_in_range(ns, before - 1000000000u, vt_wall_ns() + 1000000000u);
	/* And one from before. */
	ns = mlx5dv_ts_to_ns(&info, info.last_cycles - 5000);
	assert_true(ns == info.nsec - 5000);
}

/* mlx5dv_create_cq(3) */
vt_test(completions_are_of_two_sizes)
{
	static const struct {
		uint64_t comp_mask;
		uint32_t flags;
		uint16_t cqe_size;
		int error;
	} rows[] = {
		{ 0, ~0u, 9, 0 }, /* nothing of that is valid */
		{ MLX5DV_CQ_INIT_ATTR_MASK_CQE_SIZE, 0, 64, 0 },
		{ MLX5DV_CQ_INIT_ATTR_MASK_CQE_SIZE, 0, 128, 0 },
		/* "other values will fail mlx5dv_create_cq" */
		{ MLX5DV_CQ_INIT_ATTR_MASK_CQE_SIZE, 0, 0, EINVAL },
		{ MLX5DV_CQ_INIT_ATTR_MASK_CQE_SIZE, 0, 256, EINVAL },
		/* "create a padded 128B CQE" */
		{ MLX5DV_CQ_INIT_ATTR_MASK_CQE_SIZE | MLX5DV_CQ_INIT_ATTR_MASK_FLAGS,
		  MLX5DV_CQ_INIT_ATTR_FLAGS_CQE_PAD, 128, 0 },
		{ MLX5DV_CQ_INIT_ATTR_MASK_CQE_SIZE | MLX5DV_CQ_INIT_ATTR_MASK_FLAGS,
		  MLX5DV_CQ_INIT_ATTR_FLAGS_CQE_PAD, 64, EINVAL },
		{ MLX5DV_CQ_INIT_ATTR_MASK_FLAGS, MLX5DV_CQ_INIT_ATTR_FLAGS_CQE_PAD, 128, EINVAL },
		{ MLX5DV_CQ_INIT_ATTR_MASK_CQE_SIZE | MLX5DV_CQ_INIT_ATTR_MASK_FLAGS,
		  MLX5DV_CQ_INIT_ATTR_FLAGS_RESERVED, 128, EINVAL },
		{ MLX5DV_CQ_INIT_ATTR_MASK_COMPRESSED_CQE, 0, 0, EOPNOTSUPP },
		{ 1 << 3, 0, 64, EINVAL },
	};

	for (size_t i = 0; i < VT_COUNT(rows); i++) {
		struct ibv_cq_init_attr_ex attr = { .cqe = 10 };
		struct mlx5dv_cq_init_attr dv = {
			.comp_mask = rows[i].comp_mask,
			.cqe_comp_res_format = MLX5DV_CQE_RES_FORMAT_HASH,
			.flags = rows[i].flags,
			.cqe_size = rows[i].cqe_size,
		};
		struct ibv_cq_ex *cq = mlx5dv_create_cq(vt.ctx, &attr, &dv);

		if (rows[i].error) {
			assert_null(cq);
			assert_int_equal(errno, rows[i].error);
		} else {
			assert_non_null(cq);
			assert_true(ibv_cq_ex_to_cq(cq)->cqe >= 10);
			assert_int_equal(ibv_destroy_cq(ibv_cq_ex_to_cq(cq)), 0);
		}
	}
}

/* mlx5dv_reserved_qpn_alloc(3): "a unique QP number from/to device" */
vt_cq_test(a_number_that_is_reserved_is_nobody_elses, 4)
{
	enum { COUNT = 100, ROUND = 16384 };
	struct ibv_qp_init_attr init = { .send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_RC,
					 .cap = { 1, 1, 1, 1, 0 } };
	uint32_t qpn[COUNT];

	for (int i = 0; i < COUNT; i++) {
		assert_int_equal(mlx5dv_reserved_qpn_alloc(vt.ctx, &qpn[i]), 0);
		assert_in_range(qpn[i], 2, 0xfffffe);
		for (int k = 0; k < i; k++)
			assert_int_not_equal(qpn[i], qpn[k]);
	}
	/* Numbers count on and come round; more than once round. */
	for (int i = 0; i < ROUND + COUNT; i++) {
		struct ibv_qp *qp = ibv_create_qp(vt.pd, &init);
		uint32_t number;

		assert_non_null(qp);
		number = qp->qp_num;
		assert_int_equal(ibv_destroy_qp(qp), 0);
		for (int k = 0; k < COUNT; k++)
			assert_int_not_equal(number, qpn[k]);
	}
	for (int i = 0; i < COUNT; i++)
		assert_int_equal(mlx5dv_reserved_qpn_dealloc(vt.ctx, qpn[i]), 0);
	assert_int_equal(mlx5dv_reserved_qpn_dealloc(vt.ctx, qpn[0]), EINVAL);
	assert_int_equal(mlx5dv_reserved_qpn_dealloc(vt.ctx, 0xffffffff), EINVAL);
}

/* mlx5dv_map_ah_to_qp(3): "just a hint" */
vt_end_test(an_address_may_be_mapped_to_a_qp_that_there_is, .type = IBV_QPT_UD)
{
	struct ibv_ah *ah = vt_ah();

	assert_int_equal(mlx5dv_map_ah_to_qp(ah, end->qp->qp_num), 0);
	assert_int_equal(mlx5dv_map_ah_to_qp(ah, end->qp->qp_num), 0);
	assert_int_equal(mlx5dv_map_ah_to_qp(ah, end->qp->qp_num + 1), EINVAL);
	assert_int_equal(ibv_destroy_ah(ah), 0);
}

/* mlx5dv_alloc_dm(3) */
vt_test(memory_of_the_device_is_of_one_type)
{
	static const enum mlx5dv_alloc_dm_type others[] = {
		MLX5DV_DM_TYPE_STEERING_SW_ICM, MLX5DV_DM_TYPE_HEADER_MODIFY_SW_ICM,
		MLX5DV_DM_TYPE_HEADER_MODIFY_PATTERN_SW_ICM,
	};
	struct ibv_alloc_dm_attr attr = { .length = 4096 };
	struct mlx5dv_alloc_dm_attr dv = { .type = MLX5DV_DM_TYPE_MEMIC };
	struct ibv_dm *dm = vt_made(mlx5dv_alloc_dm(vt.ctx, &attr, &dv));
	uint64_t value = 0x1234, got = 0;

	assert_int_equal(ibv_memcpy_to_dm(dm, 8, &value, sizeof(value)), 0);
	assert_int_equal(ibv_memcpy_from_dm(&got, dm, 8, sizeof(got)), 0);
	assert_int_equal(got, value);
	assert_int_equal(ibv_free_dm(dm), 0);
	for (int i = 0; i < 3; i++) {
		dv.type = others[i];
		vt_refused(EOPNOTSUPP, mlx5dv_alloc_dm(vt.ctx, &attr, &dv));
	}
	dv = (struct mlx5dv_alloc_dm_attr){ .comp_mask = 1 };
	vt_refused(EOPNOTSUPP, mlx5dv_alloc_dm(vt.ctx, &attr, &dv));
}

vt_cq_test(a_work_queue_is_an_ordinary_one, 4)
{
	struct ibv_wq_init_attr attr = { .wq_type = IBV_WQT_RQ, .max_wr = 4, .max_sge = 1,
					 .pd = vt.pd, .cq = cq };
	struct mlx5dv_wq_init_attr dv = { .comp_mask = 0 };
	struct ibv_wq *plain = ibv_create_wq(vt.ctx, &attr), *wq;
	int error = errno;

	/* Where there is no segment, there are none of either. */
	wq = mlx5dv_create_wq(vt.ctx, &attr, &dv);
	assert_int_equal(wq != NULL, plain != NULL);
	if (wq) {
		assert_ptr_equal(wq->cq, cq);
		assert_int_equal(ibv_destroy_wq(wq), 0);
		assert_int_equal(ibv_destroy_wq(plain), 0);
	} else {
		assert_int_equal(errno, error);
	}
	dv.comp_mask = MLX5DV_WQ_INIT_ATTR_MASK_STRIDING_RQ;
	vt_refused(EOPNOTSUPP, mlx5dv_create_wq(vt.ctx, &attr, &dv));
	dv.comp_mask = 2;
	vt_refused(EINVAL, mlx5dv_create_wq(vt.ctx, &attr, &dv));
}

/* Nothing that a program could write to is there, at either version of the function. */
vt_test(no_queue_is_laid_open)
{
	int (*older)(struct mlx5dv_obj *, uint64_t);
	struct mlx5dv_qp out = { .comp_mask = 7 };
	struct mlx5dv_obj obj = { .qp = { .in = NULL, .out = &out } };

	for (unsigned bit = 0; bit < 8; bit++)
		assert_int_equal(mlx5dv_init_obj(&obj, 1ull << bit), EOPNOTSUPP);
	*(void **)&older = dlvsym(RTLD_DEFAULT, "mlx5dv_init_obj", "MLX5_1.0");
	assert_non_null(older);
	assert_true(older != mlx5dv_init_obj);
	assert_int_equal(older(&obj, MLX5DV_OBJ_QP), EOPNOTSUPP);
	assert_int_equal(out.comp_mask, 7);
}

/* --- the UDP source port --- */

/* All that passes on this host, as IP packets. */
static int ear_open(void)
{
	struct sockaddr_ll lo = { .sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_IP),
				  .sll_ifindex = (int)if_nametoindex("lo") };
	int fd = socket(AF_PACKET, SOCK_DGRAM | SOCK_CLOEXEC, htons(ETH_P_IP));

	assert_true(fd >= 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&lo, sizeof(lo)), 0);
	return fd;
}

/* How many of those heard are RoCE for this QP, and how many of them come from that port. */
static void ear_count(int fd, uint32_t qpn, uint16_t port, unsigned *all, unsigned *from_port)
{
	uint8_t packet[2048];
	ssize_t got;

	*all = *from_port = 0;
	while ((got = recv(fd, packet, sizeof(packet), MSG_DONTWAIT)) > 0) {
		const uint8_t *udp = packet + 4 * (packet[0] & 15);
		const uint8_t *bth = udp + 8;

		if (got < 48 || packet[9] != IPPROTO_UDP || (udp[2] << 8 | udp[3]) != 4791 ||
		    (uint32_t)(bth[5] << 16 | bth[6] << 8 | bth[7]) != qpn)
			continue;
		++*all;
		*from_port += (udp[0] << 8 | udp[1]) == port;
	}
}

/* mlx5dv_modify_qp_udp_sport(3): "modifying the configured UDP source port of a given RC/UC QP" */
vt_test(datagrams_come_from_the_port_that_was_chosen)
{
	bool wire = vt_by_udp();
	unsigned all, from_port;
	struct vt_pair p;
	int ear = ear_open();

	for (int i = 0; i < 2; i++) {
		struct vt_options opt = { .type = vt_types[i] };
		uint16_t port = (uint16_t)(55555 + i);

		vt_pair_open(&p, &opt);
		assert_int_equal(mlx5dv_modify_qp_udp_sport(p.a.qp, 0xbfff), EINVAL);
		assert_int_equal(mlx5dv_modify_qp_udp_sport(p.a.qp, port), 0);
		ear_count(ear, 0, 0, &all, &from_port); /* what was before */
		for (int n = 0; n < 10; n++) {
			vt_recv(&p.b, (uint64_t)n);
			vt_send(&p.a, &p.b, (uint64_t)n);
			vt_expect(p.a.cq, (uint64_t)n, IBV_WC_SUCCESS);
			vt_expect(p.b.cq, (uint64_t)n, IBV_WC_SUCCESS);
		}
		ear_count(ear, p.b.qp->qp_num, port, &all, &from_port);
		assert_int_equal(from_port, all);
		assert_true(wire ? all >= 10 : all == 0);
		/* The slots' own ports are not to be had, where there are any. */
		assert_int_equal(mlx5dv_modify_qp_udp_sport(p.a.qp, 0xc001),
				 wire ? EADDRINUSE : 0);
		vt_pair_close(&p);
	}
	assert_int_equal(close(ear), 0);
}

vt_test(only_a_connection_that_is_up_has_a_port)
{
	static const struct vt_options rows[] = {
		{ .type = IBV_QPT_UD },
		{ .type = IBV_QPT_RC, .state = IBV_QPS_RTR },
	};
	struct vt_pair p;

	for (int i = 0; i < 2; i++) {
		vt_pair_open(&p, &rows[i]);
		assert_int_equal(mlx5dv_modify_qp_udp_sport(p.a.qp, 55557), EOPNOTSUPP);
		vt_pair_close(&p);
	}
}

/* Of rdma-core 54 to 65: the functions are there, with or without a header that has them. */
struct mlx5dv_export_sizes;
struct ibv_mr *mlx5dv_reg_dmabuf_mr(struct ibv_pd *pd, uint64_t offset, size_t length,
				    uint64_t iova, int fd, int access, int mlx5_access);
void _mlx5dv_get_export_sizes(struct mlx5dv_export_sizes *sizes, size_t sizes_len);

/* mlx5dv_reg_dmabuf_mr(3): "it follows the functionality of ibv_reg_dmabuf_mr()" */
vt_test(a_descriptors_memory_is_registered_without_a_bus)
{
	int fd = memfd_create("region", MFD_CLOEXEC);
	struct ibv_mr *mr;

	assert_int_equal(ftruncate(fd, 4096), 0);
	mr = vt_made(mlx5dv_reg_dmabuf_mr(vt.pd, 0, 4096, 0, fd, IBV_ACCESS_LOCAL_WRITE, 0));
	assert_int_equal(ibv_dereg_mr(mr), 0);
	vt_refused(EOPNOTSUPP, mlx5dv_reg_dmabuf_mr(vt.pd, 0, 4096, 0, fd, 0, 1));
	vt_refused(EBADF, mlx5dv_reg_dmabuf_mr(vt.pd, 0, 4096, 0, -1, 0, 0));
	close(fd);
}

/* mlx5dv_get_export_sizes(3): of what cannot be exported, nothing has to be kept. */
vt_test(nothing_is_exported)
{
	uint32_t sizes[4] = { 1, 2, 3, 4 };

	_mlx5dv_get_export_sizes((struct mlx5dv_export_sizes *)sizes, sizeof(sizes));
	assert_true(vt_is_octet((uint8_t *)sizes, sizeof(sizes), 0));
}
