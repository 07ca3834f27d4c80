/* SPDX-License-Identifier: BSD-2-Clause */
/* The device list, opening, and every query. */
#include <arpa/inet.h>
#include <errno.h>

#include "verbs.h"

/* ibv_query_gid_type@IBVERBS_PRIVATE_34: not in any public header, yet called by ibv_devinfo. */
int ibv_query_gid_type(struct ibv_context *context, uint8_t port_num, unsigned int index,
		       int *type);

TEST(the_list_has_one_device)
{
	struct ibv_device **first, **second;
	int count = -1;

	first = ibv_get_device_list(&count);
	second = ibv_get_device_list(NULL);
	assert_non_null(first);
	assert_int_equal(count, 1);
	assert_null(first[1]);
	assert_string_equal(ibv_get_device_name(first[0]), "verbatim0");
	assert_string_equal(first[0]->dev_name, "uverbs0");
	assert_int_equal(first[0]->node_type, IBV_NODE_CA);
	assert_int_equal(first[0]->transport_type, IBV_TRANSPORT_IB);
	/* clients.md: librdmacm compares pointers of different lists. */
	assert_ptr_equal(first[0], second[0]);
	ibv_free_device_list(first);
	ibv_free_device_list(second);
}

TEST(the_guid_is_known_without_opening)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *context = verbs_open();
	struct ibv_device_attr attr;

	assert_true(ibv_get_device_guid(list[0]) != 0);
	assert_int_equal(ibv_query_device(context, &attr), 0);
	assert_true(attr.node_guid == ibv_get_device_guid(list[0]));
	assert_true(attr.sys_image_guid != 0);
	ibv_close_device(context);
	ibv_free_device_list(list);
}

/* mlx5dv and efadv look at the pointer behind struct ibv_device: it must be NULL. */
TEST(nothing_stands_behind_the_device)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	void *behind;

	memcpy(&behind, list[0] + 1, sizeof(behind));
	assert_null(behind);
	ibv_free_device_list(list);
}

TEST(a_strange_device_is_not_opened)
{
	struct ibv_device strange = { .name = "verbatim0" };

	errno = 0;
	assert_null(ibv_open_device(&strange));
	assert_int_equal(errno, ENODEV);
}

TEST(contexts_are_apart)
{
	struct ibv_context *first = verbs_open(), *second = verbs_open();
	struct ibv_pd *pd;

	assert_ptr_not_equal(first, second);
	assert_true(first->async_fd != second->async_fd);
	assert_true(first->cmd_fd >= 0);
	assert_int_equal(first->num_comp_vectors, 8);
	assert_int_equal(ibv_close_device(first), 0);
	pd = ibv_alloc_pd(second);
	assert_non_null(pd);
	assert_int_equal(ibv_dealloc_pd(pd), 0);
	assert_int_equal(ibv_close_device(second), 0);
	/* And all over again. */
	assert_int_equal(ibv_close_device(verbs_open()), 0);
}

VERBS_TEST(device_ex_begins_with_the_device)
{
	struct ibv_query_device_ex_input input = { .comp_mask = 1 };
	struct ibv_device_attr_ex ex;
	struct ibv_device_attr plain;

	assert_int_equal(ibv_query_device(v.context, &plain), 0);
	memset(&ex, 0xff, sizeof(ex));
	assert_int_equal(ibv_query_device_ex(v.context, NULL, &ex), 0);
	assert_memory_equal(&ex.orig_attr, &plain, sizeof(plain));
	assert_int_equal(ex.comp_mask, 0);
	assert_int_equal(ex.phys_port_cnt_ex, 1);
	/* The last two are IBV_DEVICE_FLUSH_GLOBAL and IBV_DEVICE_ATOMIC_WRITE of newer headers. */
	assert_int_equal(ex.device_cap_flags_ex,
			 plain.device_cap_flags | IBV_DEVICE_PCI_WRITE_END_PADDING |
				 (ex.raw_packet_caps ? IBV_DEVICE_RAW_SCATTER_FCS : 0) |
				 1ull << 38 | 1ull << 40);
	assert_int_equal(ibv_query_device_ex(v.context, &input, &ex), EINVAL);
}

/* A program built when the structure was smaller must not be written beyond it. */
VERBS_TEST(a_smaller_device_attr_is_honoured)
{
	struct verbs_context *verbs = verbs_get_ctx(v.context);
	struct ibv_device_attr_ex ex;

	assert_non_null(verbs);
	memset(&ex, 0xee, sizeof(ex));
	assert_int_equal(verbs->query_device_ex(v.context, NULL, &ex, sizeof(ex.orig_attr) + 4), 0);
	assert_int_equal(((uint8_t *)&ex)[sizeof(ex.orig_attr) + 4], 0xee);
	assert_int_equal(verbs->query_device_ex(v.context, NULL, &ex, 8), EINVAL);
}

VERBS_TEST(the_port_is_active_ethernet)
{
	struct ibv_port_attr attr;

	assert_int_equal(ibv_query_port(v.context, 1, &attr), 0);
	assert_int_equal(attr.state, IBV_PORT_ACTIVE);
	assert_int_equal(attr.link_layer, IBV_LINK_LAYER_ETHERNET);
	assert_true(attr.gid_tbl_len > 0);
	assert_int_equal(attr.pkey_tbl_len, 1);
	assert_int_equal(attr.lid, 0);
	assert_true(attr.active_mtu >= IBV_MTU_256 && attr.active_mtu <= attr.max_mtu);
	assert_int_equal(ibv_query_port(v.context, 0, &attr), EINVAL);
	assert_int_equal(ibv_query_port(v.context, 2, &attr), EINVAL);
}

/* The symbol itself, not the inline function of the same name: old binaries call it. */
#undef ibv_query_port
VERBS_TEST(the_old_port_query_writes_the_old_structure)
{
	struct ibv_port_attr attr;

	memset(&attr, 0xee, sizeof(attr));
	assert_int_equal(ibv_query_port(v.context, 1, (struct _compat_ibv_port_attr *)&attr), 0);
	assert_int_equal(attr.state, IBV_PORT_ACTIVE);
	assert_int_equal(attr.link_layer, IBV_LINK_LAYER_ETHERNET);
	assert_int_equal(attr.port_cap_flags2, 0xeeee);
}

VERBS_TEST(the_one_pkey_is_the_default)
{
	__be16 pkey = 0;

	assert_int_equal(ibv_query_pkey(v.context, 1, 0, &pkey), 0);
	assert_int_equal(ntohs(pkey), 0xffff);
	assert_int_equal(ibv_query_pkey(v.context, 1, 1, &pkey), -1);
	assert_int_equal(ibv_query_pkey(v.context, 1, -1, &pkey), -1);
	assert_int_equal(ibv_query_pkey(v.context, 2, 0, &pkey), -1);
	assert_int_equal(errno, EINVAL);
	assert_int_equal(ibv_get_pkey_index(v.context, 1, htons(0xffff)), 0);
	assert_int_equal(ibv_get_pkey_index(v.context, 1, htons(0x7fff)), -1);
}

/* clients.md: every index below gid_tbl_len answers, an all-zero GID counts as empty. */
VERBS_TEST(every_gid_answers)
{
	static const union ibv_gid none;
	struct ibv_port_attr attr;
	struct ibv_gid_entry entry;
	union ibv_gid gid;
	int type;

	assert_int_equal(verbs_get_ctx(v.context)->query_port(v.context, 1, &attr, sizeof(attr)),
			 0);
	for (int i = 0; i < attr.gid_tbl_len; i++) {
		bool empty;

		assert_int_equal(ibv_query_gid(v.context, 1, i, &gid), 0);
		assert_int_equal(ibv_query_gid_type(v.context, 1, i, &type), 0);
		empty = memcmp(&gid, &none, sizeof(none)) == 0;
		assert_int_equal(type, empty ? 0 : 1);
		assert_int_equal(ibv_query_gid_ex(v.context, 1, i, &entry, 0), empty ? ENODATA : 0);
		if (empty)
			continue;
		assert_memory_equal(&entry.gid, &gid, sizeof(gid));
		assert_int_equal(entry.gid_index, i);
		assert_int_equal(entry.port_num, 1);
		assert_int_equal(entry.gid_type, IBV_GID_TYPE_ROCE_V2);
		assert_true(entry.ndev_ifindex != 0);
	}
	assert_int_equal(ibv_query_gid(v.context, 1, attr.gid_tbl_len, &gid), -1);
	assert_int_equal(errno, EINVAL);
	assert_int_equal(ibv_query_gid(v.context, 2, 0, &gid), -1);
	assert_int_equal(ibv_query_gid_ex(v.context, 1, attr.gid_tbl_len, &entry, 0), EINVAL);
	assert_int_equal(ibv_query_gid_ex(v.context, 1, 0, &entry, 1), EOPNOTSUPP);
}

VERBS_TEST(gid_0_is_not_empty)
{
	static const union ibv_gid none;
	union ibv_gid gid;

	assert_int_equal(ibv_query_gid(v.context, 1, 0, &gid), 0);
	assert_memory_not_equal(&gid, &none, sizeof(none));
}

VERBS_TEST(the_gid_table_has_the_valid_ones)
{
	struct ibv_gid_entry entries[256];
	ssize_t count = ibv_query_gid_table(v.context, entries, 256, 0);

	assert_true(count > 0);
	assert_int_equal(ibv_query_gid_table(v.context, entries, count, 0), count);
	/* ibv_query_gid_table(3): too few entries for all: failure. */
	assert_int_equal(ibv_query_gid_table(v.context, entries, count - 1, 0), -EINVAL);
	assert_int_equal(ibv_query_gid_table(v.context, entries, 256, 1), -EOPNOTSUPP);
}

/* Not done is said, not pretended. */
VERBS_TEST(what_is_missing_says_so)
{
	struct ibv_cq_init_attr_ex cq = { .cqe = 1, .comp_mask = 1u << 31 };

	errno = 0;
	assert_null(ibv_create_cq_ex(v.context, &cq));
	assert_int_equal(errno, EOPNOTSUPP);
}

VERBS_TEST(the_mac_of_loopback_is_zero)
{
	struct ibv_ah_attr attr = { .is_global = 1, .port_num = 1 };
	uint8_t mac[ETHERNET_LL_SIZE] = { 1 }, none[ETHERNET_LL_SIZE] = { 0 };
	uint16_t vid = 0;

	memcpy(&attr.grh.dgid.raw[10], (uint8_t[]){ 0xff, 0xff, 127, 0, 0, 1 }, 6);
	assert_int_equal(ibv_resolve_eth_l2_from_gid(v.context, &attr, mac, &vid), 0);
	assert_memory_equal(mac, none, sizeof(mac));
	assert_int_equal(vid, 0xffff);
	attr.is_global = 0;
	assert_int_equal(ibv_resolve_eth_l2_from_gid(v.context, &attr, mac, &vid), -1);
}
