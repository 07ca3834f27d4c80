/* SPDX-License-Identifier: BSD-2-Clause */
#include "newer.h"

#include <sched.h>
#include <sys/mman.h>
#include <unistd.h>

/*
 * Of the verbs of rdma-core 58 to 65: ibv_reg_mr_ex() of ibv_reg_mr(3), ibv_alloc_dmah(3),
 * ibv_alloc_buf(3), ibv_dm_export_dmabuf_fd(3), ibv_query_port_speed(3), and what grew in
 * ibv_query_port(3) and ibv_query_qp_data_in_order(3).
 */

enum { PAGE = 4096, ALL = 2 * PAGE };

static uint8_t memory[ALL] __attribute__((aligned(PAGE)));

/* --- ibv_reg_mr_ex --- */

static struct ibv_mr *reg(struct ibv_mr_init_attr attr)
{
	return ibv_reg_mr_ex(vt.pd, &attr);
}

/* Octets that a SEND takes out of this region, at this address of it. */
static void assert_sends(struct ibv_mr *mr, uint64_t at, unsigned seed)
{
	struct vt_pair p;
	struct vt_wr w;

	vt_pair_open(&p, &(struct vt_options){ .type = IBV_QPT_RC });
	vt_recv(&p.b, 2);
	vt_wr(&w, IBV_WR_SEND, &p.a, &p.b, 100);
	w.sge = (struct ibv_sge){ at, 100, mr->lkey };
	vt_done(&p.a, &w, IBV_WC_SUCCESS);
	vt_expect(p.b.cq, 2, IBV_WC_SUCCESS);
	assert_true(vt_is_filled(p.b.buf, 100, seed));
	vt_pair_close(&p);
}

/* "enables all the variants of the other ibv_reg_mr_xxx()": that by address ... */
vt_test(it_registers_by_address)
{
	struct ibv_mr *mr = vt_made(reg((struct ibv_mr_init_attr){
		.length = ALL, .access = IBV_ACCESS_LOCAL_WRITE,
		.comp_mask = IBV_REG_MR_MASK_ADDR, .addr = memory }));

	assert_ptr_equal(mr->addr, memory);
	assert_int_equal(mr->length, ALL);
	assert_ptr_equal(mr->pd, vt.pd);
	assert_ptr_equal(mr->context, vt.ctx);
	vt_fill(memory, 100, 1);
	assert_sends(mr, (uintptr_t)memory, 1);
	assert_int_equal(ibv_dereg_mr(mr), 0);
}

/* ... that which begins elsewhere ... */
vt_test(it_registers_at_an_address_of_ones_own)
{
	struct ibv_mr *mr = vt_made(reg((struct ibv_mr_init_attr){
		.length = ALL, .access = IBV_ACCESS_LOCAL_WRITE, .iova = 0x1000000,
		.comp_mask = IBV_REG_MR_MASK_ADDR | IBV_REG_MR_MASK_IOVA, .addr = memory }));

	vt_fill(memory + 64, 100, 2);
	assert_sends(mr, 0x1000000 + 64, 2);
	assert_int_equal(ibv_dereg_mr(mr), 0);
}

/* ... and that of a descriptor's memory. */
vt_test(it_registers_what_a_descriptor_has)
{
	int fd = memfd_create("region", MFD_CLOEXEC);
	struct ibv_mr *mr;
	uint8_t octets[100];

	assert_int_equal(ftruncate(fd, ALL), 0);
	vt_fill(octets, sizeof(octets), 3);
	assert_int_equal(pwrite(fd, octets, sizeof(octets), PAGE), sizeof(octets));
	mr = vt_made(reg((struct ibv_mr_init_attr){
		.length = PAGE, .access = IBV_ACCESS_LOCAL_WRITE, .iova = 0, .fd = fd,
		.fd_offset = PAGE,
		.comp_mask = IBV_REG_MR_MASK_FD | IBV_REG_MR_MASK_FD_OFFSET |
			     IBV_REG_MR_MASK_IOVA }));
	assert_sends(mr, 0, 3);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	close(fd);
}

/* "One among fd and addr is required, both can't come together." Fields that are not marked do not
 * count. */
vt_test(one_of_address_and_descriptor_is_required)
{
	static const uint64_t fd = IBV_REG_MR_MASK_FD | IBV_REG_MR_MASK_FD_OFFSET |
				   IBV_REG_MR_MASK_IOVA;
	static const uint64_t wrong[] = {
		0, IBV_REG_MR_MASK_IOVA, fd | IBV_REG_MR_MASK_ADDR,
		IBV_REG_MR_MASK_FD, IBV_REG_MR_MASK_FD | IBV_REG_MR_MASK_IOVA,
		IBV_REG_MR_MASK_ADDR | IBV_REG_MR_MASK_FD_OFFSET,
	};
	struct ibv_mr_init_attr attr = { .length = ALL, .addr = memory, .fd = -1 };
	struct ibv_mr *mr;

	for (size_t i = 0; i < VT_COUNT(wrong); i++) {
		attr.comp_mask = wrong[i];
		vt_refused(EINVAL, ibv_reg_mr_ex(vt.pd, &attr));
	}
	attr.comp_mask = IBV_REG_MR_MASK_ADDR | 1 << 30;
	vt_refused(EOPNOTSUPP, ibv_reg_mr_ex(vt.pd, &attr));
	attr = (struct ibv_mr_init_attr){
		.length = ALL, .addr = memory, .comp_mask = IBV_REG_MR_MASK_ADDR, .iova = 77,
		.fd = -1, .dmah = (struct ibv_dmah *)memory, .buf = (struct ibv_buf *)memory };
	mr = vt_made(ibv_reg_mr_ex(vt.pd, &attr));
	assert_int_equal(ibv_dereg_mr(mr), 0);
	attr.access = 1 << 15;
	vt_refused(EINVAL, ibv_reg_mr_ex(vt.pd, &attr));
}

/* --- DMA handles --- */

static uint32_t own_cpu(void)
{
	cpu_set_t set;
	uint32_t cpu = 0;

	assert_int_equal(sched_getaffinity(0, sizeof(set), &set), 0);
	while (!CPU_ISSET(cpu, &set))
		cpu++;
	return cpu;
}

static struct ibv_dmah_init_attr hints(void)
{
	return (struct ibv_dmah_init_attr){
		.comp_mask = IBV_DMAH_INIT_ATTR_MASK_CPU_ID | IBV_DMAH_INIT_ATTR_MASK_PH |
			     IBV_DMAH_INIT_ATTR_MASK_TPH_MEM_TYPE,
		.cpu_id = own_cpu(), .ph = 3, .tph_mem_type = IBV_TPH_MEM_TYPE_VM };
}

/* "The allocated handle can be later used for ... operations associated with a region." */
vt_test(a_region_is_registered_with_hints)
{
	struct ibv_dmah_init_attr attr = hints();
	struct ibv_dmah *dmah = vt_made(ibv_alloc_dmah(vt.ctx, &attr));
	struct ibv_mr_init_attr of = { .length = ALL, .addr = memory, .dmah = dmah,
				       .comp_mask = IBV_REG_MR_MASK_ADDR | IBV_REG_MR_MASK_DMAH };
	struct ibv_mr *mr = vt_made(ibv_reg_mr_ex(vt.pd, &of));

	assert_ptr_equal(dmah->context, vt.ctx);
	vt_fill(memory, 100, 4);
	assert_sends(mr, (uintptr_t)memory, 4);
	assert_int_equal(ibv_dealloc_dmah(dmah), EBUSY);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	of.access = IBV_ACCESS_ON_DEMAND | IBV_ACCESS_LOCAL_WRITE;
	vt_refused(EOPNOTSUPP, ibv_reg_mr_ex(vt.pd, &of));
	assert_int_equal(ibv_dealloc_dmah(dmah), 0);
	assert_int_equal(ibv_dealloc_dmah(dmah), ENOENT);
	of.access = 0;
	vt_refused(ENOENT, ibv_reg_mr_ex(vt.pd, &of));
}

/* The rules of PCIe's hints, which an adapter has as well. */
vt_test(hints_have_rules)
{
	struct ibv_dmah_init_attr attr = { .comp_mask = IBV_DMAH_INIT_ATTR_MASK_PH, .ph = 2 };

	assert_int_equal(ibv_dealloc_dmah(vt_made(ibv_alloc_dmah(vt.ctx, &attr))), 0);
	attr.ph = 4;
	vt_refused(EINVAL, ibv_alloc_dmah(vt.ctx, &attr));
	attr = hints();
	attr.tph_mem_type = IBV_TPH_MEM_TYPE_PM;
	assert_int_equal(ibv_dealloc_dmah(vt_made(ibv_alloc_dmah(vt.ctx, &attr))), 0);
	attr.tph_mem_type = 0xfe;
	vt_refused(EINVAL, ibv_alloc_dmah(vt.ctx, &attr));
	attr = hints();
	attr.cpu_id = 0xffff;
	vt_refused(EPERM, ibv_alloc_dmah(vt.ctx, &attr));
	attr = hints();
	attr.comp_mask &= ~(uint32_t)IBV_DMAH_INIT_ATTR_MASK_CPU_ID;
	vt_refused(EINVAL, ibv_alloc_dmah(vt.ctx, &attr));
	attr = hints();
	attr.comp_mask &= ~(uint32_t)IBV_DMAH_INIT_ATTR_MASK_PH;
	vt_refused(EINVAL, ibv_alloc_dmah(vt.ctx, &attr));
	attr = hints();
	attr.comp_mask |= 1 << 20;
	vt_refused(EOPNOTSUPP, ibv_alloc_dmah(vt.ctx, &attr));
}

/* --- buffers --- */

/* "returns the mapped address and stores an opaque buffer handle"; at least page aligned. */
vt_test(a_buffer_is_allocated_and_registered)
{
	struct ibv_buf *buf;
	uint8_t *at = vt_made(ibv_alloc_buf(vt.pd, ALL, &buf));
	struct ibv_mr *mr, *half;
	struct ibv_mr_init_attr attr = {
		.length = PAGE, .addr = at + PAGE, .buf = buf,
		.comp_mask = IBV_REG_MR_MASK_ADDR | IBV_REG_MR_MASK_BUF };

	assert_int_equal((uintptr_t)at % PAGE, 0);
	mr = vt_made(ibv_reg_buf_mr(vt.pd, buf, at, PAGE, IBV_ACCESS_LOCAL_WRITE));
	half = vt_made(ibv_reg_mr_ex(vt.pd, &attr));
	assert_ptr_equal(mr->addr, at);
	assert_ptr_equal(half->addr, at + PAGE);
	vt_fill(at + PAGE, 100, 5);
	assert_sends(half, (uintptr_t)at + PAGE, 5);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	assert_int_equal(ibv_dereg_mr(half), 0);
	ibv_free_buf(buf);
	vt_refused(EINVAL, ibv_alloc_buf(vt.pd, 0, &buf));
	vt_refused(ENOMEM, ibv_alloc_buf(vt.pd, SIZE_MAX / 2, &buf));
}

/* "addr + length must stay within the buffer"; "If a different protection domain is supplied,
 * registration fails with EINVAL"; "the caller must not set IBV_REG_MR_MASK_FD". */
vt_test(a_buffers_regions_have_rules)
{
	struct ibv_pd *other = vt_made(ibv_alloc_pd(vt.ctx));
	struct ibv_buf *buf;
	uint8_t *at = vt_made(ibv_alloc_buf(vt.pd, ALL, &buf));
	struct ibv_mr_init_attr attr = {
		.length = PAGE, .addr = at, .buf = buf,
		.comp_mask = IBV_REG_MR_MASK_BUF };

	vt_refused(EINVAL, ibv_reg_buf_mr(vt.pd, buf, at, ALL + 1, 0));
	vt_refused(EINVAL, ibv_reg_buf_mr(vt.pd, buf, at + PAGE, PAGE + 1, 0));
	vt_refused(EINVAL, ibv_reg_buf_mr(vt.pd, buf, at - 1, 1, 0));
	vt_refused(EINVAL, ibv_reg_buf_mr(vt.pd, buf, at, SIZE_MAX, 0));
	vt_refused(EINVAL, ibv_reg_buf_mr(other, buf, at, PAGE, 0));
	vt_refused(EINVAL, ibv_reg_mr_ex(vt.pd, &attr));
	attr.comp_mask |= IBV_REG_MR_MASK_FD | IBV_REG_MR_MASK_FD_OFFSET | IBV_REG_MR_MASK_IOVA;
	vt_refused(EINVAL, ibv_reg_mr_ex(vt.pd, &attr));
	assert_int_equal(ibv_dealloc_pd(other), 0);
	ibv_free_buf(buf);
	attr.comp_mask = IBV_REG_MR_MASK_BUF | IBV_REG_MR_MASK_ADDR;
	vt_refused(ENOENT, ibv_reg_mr_ex(vt.pd, &attr));
}

/* "If buf is not backed by a DMA-buf, errno is set to ENODATA." In a parent domain that allows
 * unprotected memory, "providers may continue to use plain memory". */
vt_test(a_buffer_is_ordinary_memory)
{
	struct ibv_parent_domain_init_attr attr = {
		.pd = vt.pd,
		.comp_mask = IBV_PARENT_DOMAIN_INIT_ATTR_ALLOW_CC_UNPROTECTED_ALLOC };
	struct ibv_pd *domain = vt_made(ibv_alloc_parent_domain(vt.ctx, &attr));
	struct ibv_pd *pds[] = { vt.pd, domain };

	for (size_t i = 0; i < VT_COUNT(pds); i++) {
		struct ibv_buf *buf;
		uint8_t *at = vt_made(ibv_alloc_buf(pds[i], PAGE, &buf));

		memset(at, 1, PAGE);
		assert_int_equal(ibv_export_buf_dmabuf_fd(buf), -1);
		assert_int_equal(errno, ENODATA);
		assert_int_equal(
			ibv_dereg_mr(vt_made(ibv_reg_buf_mr(pds[i], buf, at, PAGE, 0))), 0);
		ibv_free_buf(buf);
	}
	assert_int_equal(ibv_dealloc_pd(domain), 0);
}

/* "or -1 if the request fails and errno set to the error" */
vt_test(device_memory_is_no_dmabuf)
{
	struct ibv_alloc_dm_attr attr = { .length = 64 };
	struct ibv_dm *dm = vt_made(ibv_alloc_dm(vt.ctx, &attr));

	assert_int_equal(ibv_dm_export_dmabuf_fd(dm), -1);
	assert_int_equal(errno, EOPNOTSUPP);
	assert_int_equal(ibv_free_dm(dm), 0);
}

/* --- queries that grew --- */

/* "the effective bandwidth of the port in 100Mb/s granularity": as the attributes have it. */
vt_test(the_ports_speed_is_told)
{
	struct ibv_port_attr attr;
	uint64_t units = 0;

	assert_int_equal(ibv_query_port(vt.ctx, 1, &attr), 0);
	assert_int_equal(attr.active_speed, 32); /* EDR, 25 Gbit/s, ... */
	assert_int_equal(attr.active_width, 2);	 /* ... four times */
	assert_int_equal(ibv_query_port_speed(vt.ctx, 1, &units), 0);
	assert_int_equal(units, 1000);
	assert_int_equal(ibv_query_port_speed(vt.ctx, 2, &units), EINVAL);
	assert_int_equal(ibv_query_port_speed(vt.ctx, 0, &units), EINVAL);
}

/* A longer structure gets active_speed_ex, and zeros behind what is known. */
vt_test(the_port_has_its_speed_once_more)
{
	struct verbs_context *verbs = verbs_get_ctx(vt.ctx);
	struct {
		_Alignas(8) char older[offsetof(struct ibv_port_attr, port_cap_flags2) + 2];
		uint32_t active_speed_ex;
		uint8_t unknown[12];
	} attr;

	memset(&attr, 0xee, sizeof(attr));
	assert_int_equal(verbs->query_port(vt.ctx, 1, (struct ibv_port_attr *)&attr, sizeof(attr)),
			 0);
	assert_int_equal(attr.active_speed_ex, 32);
	assert_true(vt_is_octet(attr.unknown, sizeof(attr.unknown), 0));
}

/* "For each capability bit, 1 is returned if the data is guaranteed": nothing is. */
vt_pair_test(no_order_of_data_is_promised)
{
	static const uint32_t flags[] = { 0, IBV_QUERY_QP_DATA_IN_ORDER_RETURN_CAPS,
					  IBV_QUERY_QP_DATA_IN_ORDER_DEVICE_ONLY,
					  IBV_QUERY_QP_DATA_IN_ORDER_RETURN_CAPS |
						  IBV_QUERY_QP_DATA_IN_ORDER_DEVICE_ONLY,
					  1 << 20 };
	static const enum ibv_wr_opcode ops[] = { IBV_WR_SEND, IBV_WR_RDMA_WRITE,
						  IBV_WR_RDMA_READ };

	for (size_t i = 0; i < VT_COUNT(flags) * VT_COUNT(ops); i++)
		assert_int_equal(ibv_query_qp_data_in_order(p->a.qp, ops[i % VT_COUNT(ops)],
							    flags[i / VT_COUNT(ops)]),
				 0);
}
