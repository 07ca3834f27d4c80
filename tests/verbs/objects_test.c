/* SPDX-License-Identifier: BSD-2-Clause */
#include "lib.h"

#include <sys/mman.h>

/* Devices, ports, addresses, protection domains and memory regions. */

/* --- the device --- */

vt_test(there_is_one_device_and_it_has_a_name)
{
	struct ibv_device **list, **again;
	int count = -1;

	list = ibv_get_device_list(&count);
	again = ibv_get_device_list(NULL);
	assert_non_null(list);
	assert_non_null(again);
	assert_int_equal(count, 1);
	assert_null(list[1]);
	/* Programs compare pointers of different lists. */
	assert_ptr_equal(list[0], again[0]);
	assert_string_equal(ibv_get_device_name(list[0]), "verbatim0");
	assert_int_equal(list[0]->node_type, IBV_NODE_CA);
	assert_int_equal(list[0]->transport_type, IBV_TRANSPORT_IB);
	assert_ptr_equal(vt.ctx->device, list[0]);
	assert_true(ibv_get_device_guid(list[0]) != 0);
	ibv_free_device_list(list);
	ibv_free_device_list(again);
	assert_string_equal(ibv_get_device_name(vt.ctx->device), "verbatim0");
}

vt_test(the_guid_is_the_same_everywhere)
{
	struct ibv_device_attr attr = vt_device();

	assert_true(attr.node_guid != 0);
	assert_true(attr.node_guid == ibv_get_device_guid(vt.ctx->device));
	assert_true(attr.sys_image_guid != 0);
}

vt_test(plain_and_extended_queries_agree)
{
	struct ibv_query_device_ex_input input = { .comp_mask = 1 };
	struct ibv_device_attr_ex ex;
	struct ibv_device_attr attr;

	memset(&attr, 0, sizeof(attr));
	memset(&ex, 0xff, sizeof(ex));
	assert_int_equal(ibv_query_device(vt.ctx, &attr), 0);
	assert_int_equal(ibv_query_device_ex(vt.ctx, NULL, &ex), 0);
	assert_memory_equal(&attr, &ex.orig_attr, sizeof(attr));
	/* What it does not have, it does not claim. */
	assert_int_equal(ex.pci_atomic_caps.compare_swap, 0);
	assert_int_equal(ex.tso_caps.max_tso, vt_by_udp() ? 0 : 262144);
	assert_int_equal(ibv_query_device_ex(vt.ctx, &input, &ex), EINVAL);
	assert_true(attr.phys_port_cnt == 1);
	assert_true(strlen(attr.fw_ver) > 0);
	assert_int_equal(attr.max_rdd, 0);
	assert_true(attr.max_sge >= 2);
	assert_true(attr.max_qp_wr >= 256);
}

/* As many PDs as it says, and not one more. */
vt_test(max_pd_is_true)
{
	struct ibv_device_attr attr = vt_device();
	struct ibv_pd **pds;
	int count = 1; /* there is one */

	pds = vt_made(calloc((size_t)attr.max_pd + 1, sizeof(struct ibv_pd *)));
	for (; count < attr.max_pd; count++) {
		pds[count] = vt_made(ibv_alloc_pd(vt.ctx));
	}
	vt_refused(ENOMEM, ibv_alloc_pd(vt.ctx));
	while (--count)
		assert_int_equal(ibv_dealloc_pd(pds[count]), 0);
	free(pds);
}

vt_test(max_mr_is_true)
{
	struct ibv_device_attr attr = vt_device();
	static uint8_t buf[64];
	struct ibv_mr **mrs;
	int count = 0;

	mrs = vt_made(calloc((size_t)attr.max_mr, sizeof(struct ibv_mr *)));
	for (; count < attr.max_mr; count++) {
		mrs[count] = ibv_reg_mr(vt.pd, buf, sizeof(buf), 0);
		if (!mrs[count])
			fail_msg("region %d of %d: %s", count, attr.max_mr, strerror(errno));
	}
	vt_refused(ENOMEM, ibv_reg_mr(vt.pd, buf, sizeof(buf), 0));
	while (count--)
		assert_int_equal(ibv_dereg_mr(mrs[count]), 0);
	free(mrs);
}

vt_test(max_cq_srq_and_cqe_are_true)
{
	struct ibv_srq_init_attr init = { .attr = { .max_sge = 1 } };
	struct ibv_device_attr attr = vt_device();
	struct ibv_srq *srq;
	struct ibv_cq *cq;

	cq = vt_made(ibv_create_cq(vt.ctx, attr.max_cqe, NULL, NULL, 0));
	assert_true(cq->cqe >= attr.max_cqe);
	assert_int_equal(ibv_destroy_cq(cq), 0);
	vt_refused(EINVAL, ibv_create_cq(vt.ctx, attr.max_cqe + 1, NULL, NULL, 0));
	init.attr.max_wr = (uint32_t)attr.max_srq_wr;
	init.attr.max_sge = (uint32_t)attr.max_srq_sge;
	srq = vt_made(ibv_create_srq(vt.pd, &init));
	assert_int_equal(ibv_destroy_srq(srq), 0);
	init.attr.max_wr = (uint32_t)attr.max_srq_wr + 1;
	vt_refused(EINVAL, ibv_create_srq(vt.pd, &init));
	init.attr.max_wr = 1;
	init.attr.max_sge = (uint32_t)attr.max_srq_sge + 1;
	vt_refused(EINVAL, ibv_create_srq(vt.pd, &init));
}

/* --- the port, its GIDs and P_Keys --- */

vt_test(the_port_is_up_and_speaks_ethernet)
{
	struct ibv_port_attr port;

	memset(&port, 0xff, sizeof(port));
	assert_int_equal(ibv_query_port(vt.ctx, 1, &port), 0);
	assert_int_equal(port.state, IBV_PORT_ACTIVE);
	assert_int_equal(port.link_layer, IBV_LINK_LAYER_ETHERNET);
	assert_in_range(port.active_mtu, IBV_MTU_1024, port.max_mtu);
	assert_int_equal(port.max_msg_sz, 1u << 31);
	assert_true(port.gid_tbl_len > 0);
	assert_true(port.pkey_tbl_len > 0);
	assert_int_equal(ibv_query_port(vt.ctx, 0, &port), EINVAL);
	assert_int_equal(ibv_query_port(vt.ctx, 2, &port), EINVAL);
}

vt_test(every_gid_index_answers)
{
	static const union ibv_gid none;
	struct ibv_gid_entry entry, table[256];
	struct ibv_port_attr port;
	union ibv_gid gid;
	ssize_t count, seen = 0;

	assert_int_equal(ibv_query_port(vt.ctx, 1, &port), 0);
	count = ibv_query_gid_table(vt.ctx, table, 256, 0);
	assert_true(count > 0);
	for (int i = 0; i < port.gid_tbl_len; i++) {
		int err;

		assert_int_equal(ibv_query_gid(vt.ctx, 1, i, &gid), 0);
		err = ibv_query_gid_ex(vt.ctx, 1, (uint32_t)i, &entry, 0);
		if (!memcmp(&gid, &none, sizeof(gid))) {
			assert_int_equal(err, ENODATA);
			continue;
		}
		assert_int_equal(err, 0);
		assert_memory_equal(&entry.gid, &gid, sizeof(gid));
		assert_int_equal(entry.gid_index, i);
		assert_int_equal(entry.port_num, 1);
		assert_int_equal(entry.gid_type, IBV_GID_TYPE_ROCE_V2);
		assert_true(entry.ndev_ifindex > 0);
		assert_true(seen < count);
		assert_memory_equal(&table[seen], &entry, sizeof(entry));
		seen++;
	}
	assert_int_equal(seen, count);
	assert_int_equal(ibv_query_gid(vt.ctx, 1, 0, &gid), 0);
	assert_memory_not_equal(&gid, &none, sizeof(gid));
	/* Beyond the table, on another port, too little room, unknown flags. */
	assert_int_equal(ibv_query_gid(vt.ctx, 1, port.gid_tbl_len, &gid), -1);
	assert_int_equal(ibv_query_gid(vt.ctx, 2, 0, &gid), -1);
	assert_int_equal(ibv_query_gid(vt.ctx, 1, -1, &gid), -1);
	assert_int_equal(
		ibv_query_gid_ex(vt.ctx, 1, (uint32_t)port.gid_tbl_len, &entry, 0), EINVAL);
	assert_int_equal(ibv_query_gid_ex(vt.ctx, 2, 0, &entry, 0), EINVAL);
	assert_int_not_equal(ibv_query_gid_ex(vt.ctx, 1, 0, &entry, 1), 0);
	if (count > 1)
		assert_int_equal(ibv_query_gid_table(vt.ctx, table, (size_t)count - 1, 0), -EINVAL);
}

vt_test(the_default_partition_is_the_only_one)
{
	struct ibv_port_attr port;
	__be16 key = 0;

	assert_int_equal(ibv_query_port(vt.ctx, 1, &port), 0);
	assert_int_equal(ibv_query_pkey(vt.ctx, 1, 0, &key), 0);
	assert_int_equal(key, 0xffff);
	assert_int_equal(ibv_get_pkey_index(vt.ctx, 1, key), 0);
	assert_int_equal(ibv_query_pkey(vt.ctx, 1, port.pkey_tbl_len, &key), -1);
	assert_int_equal(ibv_query_pkey(vt.ctx, 2, 0, &key), -1);
	assert_int_equal(ibv_get_pkey_index(vt.ctx, 1, 0x1234), -1);
}

/* --- address handles --- */

vt_test(an_address_handle_needs_a_good_address)
{
	const struct ibv_ah_attr good = vt_address(&vt.gid);
	struct ibv_ah_attr bad[6];
	struct ibv_ah *ah;

	for (int i = 0; i < 6; i++)
		bad[i] = good;
	bad[0].is_global = 0; /* no GRH, no address (on Ethernet) */
	bad[1].port_num = 0;
	bad[2].port_num = 2;
	bad[3].grh.sgid_index = 255; /* an empty entry */
	memset(&bad[4].grh.dgid, 0, 16);
	bad[5].sl = 16;
	for (int i = 0; i < 6; i++) {
		vt_refused(EINVAL, ibv_create_ah(vt.pd, &bad[i]));
	}
	bad[0] = good;
	ah = vt_made(ibv_create_ah(vt.pd, &bad[0]));
	assert_ptr_equal(ah->pd, vt.pd);
	assert_ptr_equal(ah->context, vt.ctx);
	assert_int_equal(ibv_dealloc_pd(vt.pd), EBUSY);
	assert_int_equal(ibv_destroy_ah(ah), 0);
}

/* The sender's address is read off the GRH, and the answer reaches it. */
vt_pair_test(an_answer_finds_back_by_its_completion, .type = IBV_QPT_UD)
{
	struct ibv_ah_attr attr;
	struct ibv_wc wc;
	struct vt_wr w;
	struct ibv_ah *ah;

	vt_recv(&p->b, 5);
	vt_wr(&w, IBV_WR_SEND_WITH_IMM, &p->a, &p->b, 100);
	w.wr.imm_data = 0x01020304;
	vt_post(&p->a, &w);
	wc = vt_expect(p->b.cq, 5, IBV_WC_SUCCESS);
	vt_expect(p->a.cq, 1, IBV_WC_SUCCESS);
	assert_true(wc.wc_flags & IBV_WC_GRH);
	assert_true(wc.wc_flags & IBV_WC_WITH_IMM);
	assert_int_equal(wc.imm_data, 0x01020304);
	assert_int_equal(wc.src_qp, p->a.qp->qp_num);
	assert_int_equal(wc.byte_len, 140);
	assert_int_equal(ibv_init_ah_from_wc(vt.ctx, 1, &wc, (struct ibv_grh *)p->b.buf, &attr), 0);
	assert_int_equal(attr.is_global, 1);
	assert_int_equal(attr.grh.sgid_index, vt.gid_index);
	assert_memory_equal(&attr.grh.dgid, &vt.gid, sizeof(vt.gid));
	ah = vt_made(ibv_create_ah_from_wc(vt.pd, &wc, (struct ibv_grh *)p->b.buf, 1));
	vt_recv(&p->a, 6);
	vt_wr(&w, IBV_WR_SEND, &p->b, &p->a, 8);
	w.wr.wr.ud.ah = ah;
	w.wr.wr.ud.remote_qpn = wc.src_qp;
	vt_post(&p->b, &w);
	vt_expect(p->a.cq, 6, IBV_WC_SUCCESS);
	vt_expect(p->b.cq, 1, IBV_WC_SUCCESS);
	assert_int_equal(ibv_destroy_ah(ah), 0);
	/* A header that is none, or of somebody else. */
	memset(p->b.buf, 0, 40);
	assert_int_equal(ibv_init_ah_from_wc(vt.ctx, 1, &wc, (struct ibv_grh *)p->b.buf, &attr),
			 -1);
	assert_null(ibv_create_ah_from_wc(vt.pd, &wc, (struct ibv_grh *)p->b.buf, 1));
}

/* --- memory regions --- */

static const int flags_known[] = { IBV_ACCESS_LOCAL_WRITE,   IBV_ACCESS_REMOTE_WRITE,
				   IBV_ACCESS_REMOTE_READ,   IBV_ACCESS_REMOTE_ATOMIC,
				   IBV_ACCESS_ZERO_BASED,    IBV_ACCESS_RELAXED_ORDERING };
enum { FLAGS_KNOWN = 6 };

/* ibv_reg_mr(3): remote write and remote atomic need local write. */
vt_test(every_set_of_access_flags)
{
	static uint8_t buf[256];

	for (unsigned set = 0; set < 1u << FLAGS_KNOWN; set++) {
		struct ibv_mr *mr;
		int access = 0;
		bool good;

		for (unsigned i = 0; i < FLAGS_KNOWN; i++)
			access |= set >> i & 1 ? flags_known[i] : 0;
		good = (access & IBV_ACCESS_LOCAL_WRITE) ||
		       !(access & (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC));
		errno = 0;
		mr = ibv_reg_mr(vt.pd, buf, sizeof(buf), access);
		if (!good) {
			assert_null(mr);
			assert_int_equal(errno, EINVAL);
			continue;
		}
		assert_non_null(mr);
		assert_ptr_equal(mr->addr, buf);
		assert_int_equal(mr->length, sizeof(buf));
		assert_ptr_equal(mr->pd, vt.pd);
		assert_ptr_equal(mr->context, vt.ctx);
		assert_int_equal(ibv_dealloc_pd(vt.pd), EBUSY);
		assert_int_equal(ibv_dereg_mr(mr), 0);
	}
}

vt_test(unknown_access_flags_are_refused)
{
	static uint8_t buf[256];

	/* Bit 8 is newer than the headers, and known: IBV_ACCESS_FLUSH_GLOBAL. */
	for (int bit = 9; bit < 20; bit++) {
		vt_refused(EINVAL,
			   ibv_reg_mr_iova2(vt.pd, buf, sizeof(buf), (uintptr_t)buf, 1u << bit));
	}
	assert_null(ibv_reg_mr(vt.pd, buf, sizeof(buf), 1 << 30));
}

/* A page that may not be written cannot be registered for writing. */
vt_test(memory_that_is_read_only)
{
	uint8_t *page = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct ibv_mr *mr;

	assert_ptr_not_equal(page, MAP_FAILED);
	mr = vt_made(ibv_reg_mr(vt.pd, page, 4096, IBV_ACCESS_REMOTE_READ));
	assert_int_equal(ibv_dereg_mr(mr), 0);
	vt_refused(EFAULT, ibv_reg_mr(vt.pd, page, 4096, IBV_ACCESS_LOCAL_WRITE));
	assert_int_equal(munmap(page, 4096), 0);
}

vt_test(keys_are_not_to_be_guessed)
{
	static uint8_t buf[64];
	uint32_t keys[64], same = 0;

	for (int i = 0; i < 64; i++) {
		struct ibv_mr *mr = vt_mr(vt.pd, buf, sizeof(buf), 0);

		keys[i] = mr->rkey;
		assert_true(mr->rkey && mr->lkey);
		assert_int_equal(ibv_dereg_mr(mr), 0);
	}
	for (int i = 1; i < 64; i++)
		same += keys[i] - keys[i - 1] == keys[1] - keys[0];
	assert_true(same < 8);
}

/* The first octet is where iova says, be that 0 or elsewhere. */
static void write_with_iova(uint64_t iova, unsigned access, bool zero_based)
{
	struct ibv_mr *mr;
	struct vt_pair p;
	struct vt_wr w;

	vt_pair_open(&p, NULL);
	mr = vt_made(zero_based ? ibv_reg_mr(vt.pd, p.b.buf + 64, 4096, (int)access)
				: ibv_reg_mr_iova2(vt.pd, p.b.buf + 64, 4096, iova, access));
	vt_fill(p.a.buf, 4096, 5);
	vt_wr(&w, IBV_WR_RDMA_WRITE, &p.a, &p.b, 4096);
	w.wr.wr.rdma.remote_addr = iova;
	w.wr.wr.rdma.rkey = mr->rkey;
	vt_done(&p.a, &w, IBV_WC_SUCCESS);
	assert_true(vt_is_filled(p.b.buf + 64, 4096, 5));
	assert_true(vt_is_octet(p.b.buf, 64, 0));
	/* Local pieces go by the same addresses. */
	vt_recv(&p.a, 7);
	vt_wr(&w, IBV_WR_SEND, &p.b, &p.a, 4000);
	w.sge.addr = iova + 96;
	w.sge.lkey = mr->lkey;
	vt_post(&p.b, &w);
	vt_expect(p.a.cq, 7, IBV_WC_SUCCESS);
	assert_memory_equal(p.a.buf, p.b.buf + 64 + 96, 4000);
	vt_expect(p.b.cq, 1, IBV_WC_SUCCESS);
	/* One octet below is outside. */
	vt_wr(&w, IBV_WR_RDMA_WRITE, &p.a, &p.b, 8);
	w.wr.wr.rdma.remote_addr = iova - 1;
	w.wr.wr.rdma.rkey = mr->rkey;
	vt_done(&p.a, &w, IBV_WC_REM_ACCESS_ERR);
	vt_event_acked(IBV_EVENT_QP_ACCESS_ERR);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	vt_pair_close(&p);
}

vt_test(regions_begin_where_they_are_told_to)
{
	write_with_iova(0, VT_ALL_ACCESS, false);
	write_with_iova(0x123456789000, VT_ALL_ACCESS, false);
	write_with_iova(7, VT_ALL_ACCESS, false);
	write_with_iova(UINT64_MAX - 8191, VT_ALL_ACCESS, false);
	write_with_iova(0, VT_ALL_ACCESS | IBV_ACCESS_ZERO_BASED, true);
}

vt_test(a_region_of_nothing_and_one_that_wraps)
{
	static uint8_t buf[64];
	struct ibv_mr *mr = ibv_reg_mr(vt.pd, buf, 0, 0);

	if (mr)
		assert_int_equal(ibv_dereg_mr(mr), 0);
	assert_null(ibv_reg_mr(vt.pd, buf, SIZE_MAX, 0));
	assert_null(ibv_reg_mr(vt.pd, buf, SIZE_MAX / 2, 0));
	vt_refused(EINVAL, ibv_reg_mr_iova2(vt.pd, buf, 64, UINT64_MAX - 10, 0));
}

/* --- ibv_rereg_mr(3) --- */

static void expect_write(struct vt_pair *p, struct ibv_mr *mr, void *at, bool works)
{
	struct vt_wr w;

	if (vt_state(p->a.qp) != IBV_QPS_RTS) {
		vt_pair_reconnect(p);
	}
	vt_wr(&w, IBV_WR_RDMA_WRITE, &p->a, &p->b, 64);
	w.wr.wr.rdma.remote_addr = (uintptr_t)at;
	w.wr.wr.rdma.rkey = mr->rkey;
	vt_done(&p->a, &w, works ? IBV_WC_SUCCESS : IBV_WC_REM_ACCESS_ERR);
	if (!works)
		vt_event_acked(IBV_EVENT_QP_ACCESS_ERR);
}

vt_pair_test(a_region_can_be_changed)
{
	struct ibv_pd *other = ibv_alloc_pd(vt.ctx);
	struct ibv_mr *mr;
	uint32_t rkey;

	mr = vt_mr(vt.pd, p->b.buf, 4096, VT_ALL_ACCESS);
	rkey = mr->rkey;
	expect_write(p, mr, p->b.buf, true);
	assert_int_equal(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, p->b.buf + 8192,
				      100, 0), 0);
	assert_ptr_equal(mr->addr, p->b.buf + 8192);
	assert_int_equal(mr->length, 100);
	expect_write(p, mr, p->b.buf + 8192, true);
	expect_write(p, mr, p->b.buf, false);
	expect_write(p, mr, p->b.buf + 8192 + 37, false);
	assert_int_equal(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0,
				      IBV_ACCESS_REMOTE_READ), 0);
	expect_write(p, mr, p->b.buf + 8192, false);
	assert_int_equal(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0,
				      VT_ALL_ACCESS), 0);
	assert_int_equal(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_PD, other, NULL, 0, 0), 0);
	assert_ptr_equal(mr->pd, other);
	assert_int_equal(ibv_dealloc_pd(other), EBUSY);
	expect_write(p, mr, p->b.buf + 8192, false);
	assert_int_equal(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_PD | IBV_REREG_MR_CHANGE_ACCESS |
						  IBV_REREG_MR_CHANGE_TRANSLATION,
				      vt.pd, p->b.buf, 4096, VT_ALL_ACCESS), 0);
	assert_int_equal(ibv_dealloc_pd(other), 0);
	expect_write(p, mr, p->b.buf, true);
	(void)rkey; /* it may change, the manual says nothing of it */
	assert_int_equal(ibv_dereg_mr(mr), 0);
}

/* "Old MR is valid, an input error was detected" */
vt_pair_test(a_refused_change_leaves_the_region_as_it_was)
{
	struct ibv_mr *mr;
	int err = IBV_REREG_MR_ERR_INPUT;

	mr = vt_mr(vt.pd, p->b.buf, 4096, VT_ALL_ACCESS);
	assert_int_equal(ibv_rereg_mr(mr, 0, NULL, NULL, 0, 0), err);
	assert_int_equal(ibv_rereg_mr(mr, 8, NULL, NULL, 0, 0), err);
	assert_int_equal(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_PD, NULL, NULL, 0, 0), err);
	assert_int_equal(
		ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, NULL, 4096, 0), err);
	assert_int_equal(
		ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, (void *)64, 64, 0), err);
	assert_int_equal(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, p->b.buf,
				      SIZE_MAX, 0), err);
	errno = 0;
	assert_int_equal(
		ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, p->b.buf, 0, 0), err);
	assert_int_equal(errno, EINVAL);
	errno = 0;
	assert_int_equal(
		ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, NULL, 0, 0), err);
	assert_int_equal(errno, EINVAL);
	/* Rights that nobody said were to change. */
	errno = 0;
	assert_int_equal(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, p->b.buf, 8192,
				      IBV_ACCESS_LOCAL_WRITE), err);
	assert_int_equal(errno, EINVAL);
	assert_int_equal(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_PD, vt.pd, NULL, 0,
				      VT_ALL_ACCESS), err);
	assert_int_equal(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0,
				      IBV_ACCESS_REMOTE_WRITE), err);
	assert_int_equal(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, 1 << 15),
			 err);
	assert_ptr_equal(mr->addr, p->b.buf);
	assert_int_equal(mr->length, 4096);
	assert_ptr_equal(mr->pd, vt.pd);
	expect_write(p, mr, p->b.buf, true);
	assert_int_equal(ibv_dereg_mr(mr), 0);
}

/* --- several contexts --- */

vt_test(contexts_do_not_mix)
{
	struct ibv_context *other = vt_made(ibv_open_device(vt.ctx->device));
	struct ibv_pd *pd;
	struct ibv_cq *cq;

	assert_ptr_not_equal(other, vt.ctx);
	assert_int_not_equal(other->async_fd, vt.ctx->async_fd);
	pd = ibv_alloc_pd(other);
	cq = ibv_create_cq(other, 4, NULL, NULL, 0);
	assert_non_null(pd);
	assert_non_null(cq);
	assert_ptr_equal(pd->context, other);
	assert_int_equal(ibv_destroy_cq(cq), 0);
	assert_int_equal(ibv_dealloc_pd(pd), 0);
	assert_int_equal(ibv_close_device(other), 0);
	/* The first one goes on. */
	pd = vt_made(ibv_alloc_pd(vt.ctx));
	assert_int_equal(ibv_dealloc_pd(pd), 0);
}

/* QPs of two contexts of one process speak like any two. */
vt_test(contexts_speak_to_each_other)
{
	struct vt_pair p;
	struct vt other;
	struct vt_wr w;

	vt_pair_open_across(&p, &other, NULL);
	vt_exchange(&p.a, &p.b);
	vt_wr(&w, IBV_WR_RDMA_READ, &p.b, &p.a, 4096);
	vt_done(&p.b, &w, IBV_WC_SUCCESS);
	/* Keys of one context are no keys in the other. */
	w.sge.lkey = p.a.mr->lkey;
	vt_done(&p.b, &w, IBV_WC_LOC_PROT_ERR);
	vt_pair_close(&p);
	assert_int_equal(ibv_dealloc_pd(other.pd), 0);
	assert_int_equal(ibv_close_device(other.ctx), 0);
}

vt_test(a_device_can_be_opened_again_and_again)
{
	struct ibv_device *device = vt.ctx->device;

	assert_int_equal(vt_teardown(state), 0);
	for (int i = 0; i < 50; i++) {
		struct ibv_context *ctx = ibv_open_device(device);

		assert_non_null(ctx);
		assert_int_equal(ibv_close_device(ctx), 0);
	}
	assert_int_equal(vt_setup(state), 0);
}

/* --- names of numbers --- */

/* Newer headers declare it. */
const char *ibv_wr_opcode_str(enum ibv_wr_opcode opcode);

vt_test(everything_has_a_name)
{
	for (int i = -1; i < 40; i++) {
		assert_true(strlen(ibv_wc_status_str((enum ibv_wc_status)i)) > 0);
		assert_true(strlen(ibv_node_type_str((enum ibv_node_type)i)) > 0);
		assert_true(strlen(ibv_port_state_str((enum ibv_port_state)i)) > 0);
		assert_true(strlen(ibv_event_type_str((enum ibv_event_type)i)) > 0);
		assert_true(strlen(ibv_wr_opcode_str((enum ibv_wr_opcode)i)) > 0);
	}
	assert_string_not_equal(ibv_wc_status_str(IBV_WC_SUCCESS),
				ibv_wc_status_str(IBV_WC_RETRY_EXC_ERR));
	assert_string_not_equal(ibv_event_type_str(IBV_EVENT_CQ_ERR),
				ibv_event_type_str(IBV_EVENT_QP_FATAL));
	assert_string_equal(ibv_wr_opcode_str((enum ibv_wr_opcode)13), /* of no operation */
			    ibv_wr_opcode_str((enum ibv_wr_opcode)1000));
	assert_string_not_equal(ibv_wr_opcode_str(IBV_WR_SEND), ibv_wr_opcode_str(IBV_WR_TSO));
}

vt_test(rates_convert_both_ways)
{
	static const struct {
		enum ibv_rate rate;
		int mbps, mult;
	} rates[] = {
		{ IBV_RATE_2_5_GBPS, 2500, 1 }, { IBV_RATE_5_GBPS, 5000, 2 },
		{ IBV_RATE_10_GBPS, 10000, 4 }, { IBV_RATE_120_GBPS, 120000, 48 },
		{ IBV_RATE_400_GBPS, 425000, 160 },
	};

	for (unsigned i = 0; i < VT_COUNT(rates); i++) {
		assert_int_equal(ibv_rate_to_mbps(rates[i].rate), rates[i].mbps);
		assert_int_equal(mbps_to_ibv_rate(rates[i].mbps), rates[i].rate);
		assert_int_equal(ibv_rate_to_mult(rates[i].rate), rates[i].mult);
		assert_int_equal(mult_to_ibv_rate(rates[i].mult), rates[i].rate);
	}
	assert_int_equal(ibv_rate_to_mbps(77), -1);
	assert_int_equal(mbps_to_ibv_rate(1), IBV_RATE_MAX);
	assert_int_equal(ibv_inc_rkey(0x12345600) & 0xffffff00, 0x12345600);
	assert_int_equal(ibv_inc_rkey(0x123456ff), 0x12345600);
}
