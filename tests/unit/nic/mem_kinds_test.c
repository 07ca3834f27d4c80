/* SPDX-License-Identifier: BSD-2-Clause */
#include "nic/mem/mem_kinds.h"
#include "nic_fixture.h"

enum { BYTES = 4096, FD = 9 };

static uint8_t memory[2 * BYTES] __attribute__((aligned(4096)));

/* What the host is asked for, and answers. */
static struct {
	unsigned maps, unmaps, fetches;
	int err, fail_at; /* the fetch that fails */
	bool write;
	uint64_t offset, bytes, iova;
	enum vb_fetch how;
} host;

static int map_file(void *arg, int fd, uint64_t offset, uint64_t bytes, uint64_t iova, bool write,
		    void **at)
{
	assert_int_equal(fd, FD);
	if (host.err)
		return host.err;
	host.maps++;
	host.offset = offset;
	host.bytes = bytes;
	host.iova = iova;
	host.write = write;
	*at = memory;
	return 0;
}

static void unmap(void *arg, void *at, uint64_t bytes)
{
	assert_ptr_equal(at, memory);
	assert_int_equal(bytes, host.bytes);
	host.unmaps++;
}

static int fetch(void *arg, void *addr, size_t bytes, enum vb_fetch how)
{
	host.how = how;
	host.bytes = bytes;
	return ++host.fetches == (unsigned)host.fail_at ? EFAULT : 0;
}

static bool copy(void *arg, void *to, const void *from, size_t bytes)
{
	memcpy(to, from, bytes);
	return true;
}

static bool touch(void *arg, void *at)
{
	return true;
}

static const struct vb_host_memory host_memory = {
	.device = idle_device_memory, .map_file = map_file, .unmap = unmap,
};

static const struct vb_host_paging host_paging = {
	.fetch = fetch, .copy = copy, .touch = touch,
};

static int kinds_begin(void **state)
{
	begin(state);
	memset(&host, 0, sizeof(host));
	fix.nic->host.memory = &host_memory;
	fix.nic->host.paging = &host_paging;
	return 0;
}

#define MEM_KINDS_TEST(name) TEST_BETWEEN(name, kinds_begin, end)

#undef TEST

static uint8_t *get(uint32_t key, uint64_t va, uint64_t bytes, unsigned access)
{
	return vb_mr_get(fix.nic, &fix.pd->ibv, key, va, bytes, access);
}

static void dereg(struct vb_mr *mr)
{
	assert_int_equal(vb_mr_dereg(mr), 0);
}

/* --- null --- */

MEM_KINDS_TEST(a_null_region_is_zero_wherever_it_is_read)
{
	struct vb_mr *mr;
	uint8_t *to;

	assert_int_equal(vb_mr_alloc_null(fix.pd, &mr), 0);
	to = get(mr->ibv.lkey, 0, VB_NULL_BYTES, IBV_ACCESS_LOCAL_WRITE);
	assert_non_null(to);
	memset(to, 0xff, VB_NULL_BYTES);
	for (uint64_t va = 1; va; va <<= 1) {
		const uint8_t *from = get(mr->ibv.lkey, va, VB_NULL_BYTES, 0);

		assert_non_null(from);
		assert_true(!from[0] && !memcmp(from, from + 1, VB_NULL_BYTES - 1));
	}
	/* More than that is asked for in pieces. */
	assert_null(get(mr->ibv.lkey, 0, VB_NULL_BYTES + 1, 0));
	dereg(mr);
}

MEM_KINDS_TEST(a_null_region_is_for_its_pd_and_no_peers)
{
	struct vb_pd *other;
	struct vb_mr *mr;
	uint32_t key;

	assert_int_equal(vb_pd_create(fix.ctx, &other), 0);
	assert_int_equal(vb_mr_alloc_null(fix.pd, &mr), 0);
	assert_null(vb_mr_get(fix.nic, &other->ibv, mr->ibv.lkey, 0, 8, 0));
	assert_null(get(mr->ibv.lkey, 0, 8, IBV_ACCESS_REMOTE_READ));
	assert_null(get(mr->ibv.lkey, 0, 8, IBV_ACCESS_REMOTE_WRITE));
	assert_null(get(mr->ibv.lkey, 0, 8, IBV_ACCESS_REMOTE_ATOMIC));
	assert_null(get(mr->ibv.lkey ^ 1, 0, 8, 0));
	assert_int_not_equal(mr->ibv.rkey, mr->ibv.lkey);
	/* Peers look in the export, and let in who has a PD's number. */
	assert_int_not_equal(
		fix.nic->export->key[vb_key_place(mr->ibv.lkey)].pd, fix.pd->id);
	assert_int_equal(vb_pd_destroy(fix.pd), EBUSY);
	key = mr->ibv.lkey;
	dereg(mr);
	assert_null(get(key, 0, 8, 0));
	assert_int_equal(vb_pd_destroy(other), 0);
}

/* --- dma-buf --- */

static int reg_dmabuf(uint64_t offset, uint64_t bytes, uint64_t iova, unsigned access,
		      struct vb_mr **mr)
{
	return vb_mr_reg_dmabuf(fix.pd, offset, bytes, iova, FD, access, mr);
}

MEM_KINDS_TEST(a_dmabuf_is_mapped_as_long_as_it_is_registered)
{
	struct vb_mr *mr;

	assert_int_equal(reg_dmabuf(4096, 100, 0x10000, 0, &mr), 0);
	assert_int_equal(host.offset, 4096);
	assert_int_equal(host.iova, 0x10000);
	assert_false(host.write);
	assert_ptr_equal(get(mr->ibv.lkey, 0x10010, 84, 0), memory + 16);
	assert_null(get(mr->ibv.lkey, 0x10010, 85, 0));
	assert_int_equal(host.unmaps, 0);
	dereg(mr);
	assert_int_equal(host.unmaps, 1);
	assert_int_equal(reg_dmabuf(0, 100, 0, IBV_ACCESS_LOCAL_WRITE, &mr), 0);
	assert_true(host.write);
	dereg(mr);
}

MEM_KINDS_TEST(what_the_host_refuses_is_refused)
{
	static const int errors[] = { EBADF, EINVAL, EOPNOTSUPP, ENOMEM };
	struct vb_mr *mr;

	for (unsigned i = 0; i < VB_ARRAY_LEN(errors); i++) {
		host.err = errors[i];
		assert_int_equal(reg_dmabuf(0, 100, 0, 0, &mr), errors[i]);
	}
	host.err = 0;
	assert_int_equal(reg_dmabuf(0, 0, 0, 0, &mr), EINVAL);
	assert_int_equal(reg_dmabuf(0, VB_MR_BYTES_MAX + 1, 0, 0, &mr), EINVAL);
	assert_int_equal(reg_dmabuf(UINT64_MAX, 2, 0, 0, &mr), EINVAL);
	assert_int_equal(reg_dmabuf(0, 2, UINT64_MAX, 0, &mr), EINVAL);
	assert_int_equal(reg_dmabuf(0, 8, 0, IBV_ACCESS_MW_BIND, &mr), EINVAL);
	assert_int_equal(reg_dmabuf(0, 8, 0, IBV_ACCESS_REMOTE_WRITE, &mr), EINVAL);
	assert_int_equal(host.maps, 0);
	fix.nic->host.memory = NULL;
	assert_int_equal(reg_dmabuf(0, 100, 0, 0, &mr), EOPNOTSUPP);
}

/* When all keys are taken, what was mapped already is unmapped again. */
MEM_KINDS_TEST(no_mapping_is_left_where_there_is_no_key)
{
	struct vb_mr *mr;
	uint32_t mrs = fix.nic->keys.mrs;

	fix.nic->keys.mrs = VB_MRS_MAX;
	assert_int_equal(reg_dmabuf(0, 100, 0, 0, &mr), ENOMEM);
	assert_int_equal(host.maps, 1);
	assert_int_equal(host.unmaps, 1);
	fix.nic->keys.mrs = mrs;
}

/* --- the whole address space --- */

static uint8_t *find(uint32_t key, uint64_t va, uint64_t bytes, unsigned access)
{
	bool paged;
	uint8_t *at = vb_mr_find(fix.nic, &fix.pd->ibv, key, va, bytes, access, &paged);

	assert_int_equal(paged, at != NULL);
	return at;
}

MEM_KINDS_TEST(an_implicit_region_has_all_addresses)
{
	const unsigned access = IBV_ACCESS_ON_DEMAND | IBV_ACCESS_LOCAL_WRITE |
				IBV_ACCESS_REMOTE_READ;
	struct vb_mr *mr;

	fix.probe = EFAULT; /* nobody is to look */
	assert_int_equal(vb_mr_reg(fix.pd, NULL, SIZE_MAX, 0, access, &mr), 0);
	assert_ptr_equal(find(mr->ibv.lkey, (uintptr_t)memory, BYTES, IBV_ACCESS_LOCAL_WRITE),
			 memory);
	assert_non_null(find(mr->ibv.lkey, UINT64_MAX - 1, 1, 0));
	assert_null(find(mr->ibv.lkey, UINT64_MAX, 1, 0));
	assert_null(find(mr->ibv.lkey, 5, UINT64_MAX, 0));
	assert_null(find(mr->ibv.lkey, (uintptr_t)memory, 8, IBV_ACCESS_REMOTE_WRITE));
	/* Not for who copies by pointers. */
	assert_null(get(mr->ibv.lkey, (uintptr_t)memory, BYTES, IBV_ACCESS_LOCAL_WRITE));
	/* It cannot become one of another kind. */
	assert_int_equal(vb_mr_rereg(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, 0), EINVAL);
	assert_int_equal(vb_mr_rereg(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0,
				     IBV_ACCESS_ON_DEMAND),
			 0);
	assert_null(get(mr->ibv.lkey, (uintptr_t)memory, 8, IBV_ACCESS_LOCAL_WRITE));
	dereg(mr);
	assert_int_equal(vb_mr_reg(fix.pd, NULL, SIZE_MAX, 4096, access, &mr), EINVAL);
	assert_int_equal(vb_mr_reg(fix.pd, NULL, SIZE_MAX, 0, access & ~IBV_ACCESS_ON_DEMAND, &mr),
			 EINVAL);
	assert_int_equal(vb_mr_reg(fix.pd, memory, SIZE_MAX, (uintptr_t)memory, access, &mr),
			 EINVAL);
}

/* --- advice --- */

MEM_KINDS_TEST(advice_goes_to_the_host)
{
	static const enum vb_fetch how[] = { VB_FETCH_READ, VB_FETCH_WRITE, VB_FETCH_LOOK };
	struct ibv_sge sge[2];
	struct vb_mr *mr;

	assert_int_equal(vb_mr_reg(fix.pd, memory, BYTES, (uintptr_t)memory,
				   IBV_ACCESS_ON_DEMAND | IBV_ACCESS_LOCAL_WRITE, &mr),
			 0);
	sge[0] = (struct ibv_sge){ (uintptr_t)memory, 100, mr->ibv.lkey };
	sge[1] = (struct ibv_sge){ (uintptr_t)memory + 200, 300, mr->ibv.lkey };
	for (int advice = 0; advice < 3; advice++) {
		assert_int_equal(vb_mr_advise(fix.pd, (enum ibv_advise_mr_advice)advice, 0, sge, 2),
				 0);
		assert_int_equal(host.fetches, 2 * (advice + 1));
		assert_int_equal(host.how, how[advice]);
		assert_int_equal(host.bytes, 300);
	}
	host.fetches = 0;
	host.fail_at = 1;
	assert_int_equal(vb_mr_advise(fix.pd, IBV_ADVISE_MR_ADVICE_PREFETCH, 0, sge, 2), EFAULT);
	assert_int_equal(host.fetches, 1);
	/* What is wrong with the last is found before the first is fetched. */
	sge[1].lkey ^= 1;
	assert_int_equal(vb_mr_advise(fix.pd, IBV_ADVISE_MR_ADVICE_PREFETCH, 0, sge, 2), ENOENT);
	assert_int_equal(host.fetches, 1);
	fix.nic->host.paging = NULL;
	assert_int_equal(vb_mr_advise(fix.pd, IBV_ADVISE_MR_ADVICE_PREFETCH, 0, sge, 1),
			 EOPNOTSUPP);
	dereg(mr);
}
