/* SPDX-License-Identifier: BSD-2-Clause */
/* Probes of the device, its port, its asynchronous events, and of functions without an object. */
#include "probe.h"

#include <fcntl.h>

static int device_list(uint64_t unused)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	int rc = probe_made(list);

	if (!rc && !list[0])
		rc = ENODEV;
	ibv_free_device_list(list);
	return rc;
}

static int device_name(uint64_t unused)
{
	return probe_made(ibv_get_device_name(vt.ctx->device));
}

static int device_guid(uint64_t unused)
{
	return ibv_get_device_guid(vt.ctx->device) ? 0 : ENODATA;
}

/* -1 is an answer: the kernel has no such device. */
static int device_index(uint64_t unused)
{
	return ibv_get_device_index(vt.ctx->device) == -1 ? 0 : EPROTO;
}

static int open_close(uint64_t unused)
{
	struct ibv_context *context = ibv_open_device(vt.ctx->device);

	return context ? ibv_close_device(context) : errno;
}

static int import_device(uint64_t unused)
{
	struct ibv_context *context = ibv_import_device(fcntl(vt.ctx->cmd_fd, F_DUPFD_CLOEXEC, 3));

	return context ? ibv_close_device(context) : errno;
}

static int query_device(uint64_t unused)
{
	struct ibv_device_attr attr;

	return ibv_query_device(vt.ctx, &attr);
}

static int query_device_ex(uint64_t unused)
{
	struct ibv_device_attr_ex attr;

	return ibv_query_device_ex(vt.ctx, NULL, &attr);
}

static int query_port(uint64_t unused)
{
	struct ibv_port_attr attr;

	return ibv_query_port(vt.ctx, 1, &attr);
}

static int query_gid(uint64_t unused)
{
	union ibv_gid gid;

	return probe_counted(ibv_query_gid(vt.ctx, 1, vt.gid_index, &gid));
}

static int query_gid_ex(uint64_t unused)
{
	struct ibv_gid_entry entry;

	return ibv_query_gid_ex(vt.ctx, 1, (uint32_t)vt.gid_index, &entry, 0);
}

static int query_gid_table(uint64_t unused)
{
	struct ibv_gid_entry entries[256];

	return probe_counted(ibv_query_gid_table(vt.ctx, entries, 256, 0));
}

static int query_pkey(uint64_t unused)
{
	__be16 pkey;

	return probe_counted(ibv_query_pkey(vt.ctx, 1, 0, &pkey));
}

static int pkey_index(uint64_t unused)
{
	return probe_counted(ibv_get_pkey_index(vt.ctx, 1, 0xffff));
}

/* comp_mask comes back with the bits that were answered. */
static int rt_values(uint64_t mask)
{
	struct ibv_values_ex values = { .comp_mask = mask ? (uint32_t)mask
							  : IBV_VALUES_MASK_RAW_CLOCK };
	int rc = ibv_query_rt_values_ex(vt.ctx, &values);

	return rc ? rc : values.comp_mask == 0 ? EOPNOTSUPP : 0;
}

/* --- asynchronous events --- */

static int async_event(uint64_t unused)
{
	struct ibv_async_event event;
	int flags = fcntl(vt.ctx->async_fd, F_GETFL), rc;

	fcntl(vt.ctx->async_fd, F_SETFL, flags | O_NONBLOCK);
	rc = ibv_get_async_event(vt.ctx, &event);
	fcntl(vt.ctx->async_fd, F_SETFL, flags);
	/* None waits, which it says. */
	return rc == -1 && errno == EAGAIN ? 0 : EPROTO;
}

static int ack_async_event(uint64_t unused)
{
	struct ibv_async_event event = { .event_type = IBV_EVENT_PORT_ACTIVE };

	ibv_ack_async_event(&event);
	return 0;
}

/* --- words and numbers --- */

static int texts(uint64_t unused)
{
	return ibv_wc_status_str(IBV_WC_SUCCESS) && ibv_node_type_str(IBV_NODE_CA) &&
			       ibv_port_state_str(IBV_PORT_ACTIVE) &&
			       ibv_event_type_str(IBV_EVENT_CQ_ERR)
		       ? 0
		       : EPROTO;
}

static int rates(uint64_t rate)
{
	int mult = ibv_rate_to_mult((enum ibv_rate)rate);
	int mbps = ibv_rate_to_mbps((enum ibv_rate)rate);

	/* 14, 28 and their like have no multiple of 2.5. */
	return mbps_to_ibv_rate(mbps) == (enum ibv_rate)rate && mult_to_ibv_rate(mult) >= 0
		       ? 0
		       : EPROTO;
}

static int helpers(uint64_t unused)
{
	return ibv_inc_rkey(0x12ff) == 0x1200 && ibv_is_qpt_supported(4, IBV_QPT_RC) &&
			       ibv_flow_label_to_udp_sport(1) == 0xc001 && verbs_get_ctx(vt.ctx)
		       ? 0
		       : EPROTO;
}

static int resolve_mac(uint64_t unused)
{
	struct ibv_ah_attr attr = { .grh = { .dgid = vt.gid }, .is_global = 1, .port_num = 1 };
	uint8_t mac[ETHERNET_LL_SIZE];
	uint16_t vid;

	return probe_counted(ibv_resolve_eth_l2_from_gid(vt.ctx, &attr, mac, &vid));
}

static int fork_init(uint64_t unused)
{
	return ibv_fork_init();
}

static int fork_status(uint64_t status)
{
	return ibv_is_fork_initialized() == (enum ibv_fork_status)status ? 0 : ENODATA;
}

static int fork_known(uint64_t unused)
{
	ibv_is_fork_initialized();
	return 0;
}

/* --- what the device says that it is and can --- */

/* ENODATA: it does not say so. */
static int has(bool it_has)
{
	return it_has ? 0 : ENODATA;
}

static struct ibv_device_attr_ex device_attr(void)
{
	struct ibv_device_attr_ex attr = vt_device_ex();

	return attr;
}

static struct ibv_port_attr port_attr(void)
{
	struct ibv_port_attr attr;

	assert_int_equal(ibv_query_port(vt.ctx, 1, &attr), 0);
	return attr;
}

static int has_cap(uint64_t cap)
{
	struct ibv_device_attr_ex attr = device_attr();

	return has((attr.device_cap_flags_ex | attr.orig_attr.device_cap_flags) & cap);
}

static int has_atomics(uint64_t cap)
{
	return has(device_attr().orig_attr.atomic_cap == (enum ibv_atomic_cap)cap);
}

static int has_odp(uint64_t cap)
{
	return has(device_attr().odp_caps.general_caps & cap);
}

static int has_rc_odp(uint64_t cap)
{
	return has(device_attr().odp_caps.per_transport_caps.rc_odp_caps & cap);
}

static int has_tag_matching(uint64_t cap)
{
	return has(device_attr().tm_caps.flags & cap);
}

static int has_raw_packet(uint64_t cap)
{
	return has(device_attr().raw_packet_caps & cap);
}

static int has_hash(uint64_t cap)
{
	return has(device_attr().rss_caps.rx_hash_function & cap);
}

static int has_hash_field(uint64_t cap)
{
	return has(device_attr().rss_caps.rx_hash_fields_mask & cap);
}

static int has_pci_atomics(uint64_t cap)
{
	struct ibv_pci_atomic_caps caps = device_attr().pci_atomic_caps;

	return has((caps.fetch_add | caps.swap | caps.compare_swap) & cap);
}

static int has_port_cap(uint64_t cap)
{
	return has(port_attr().port_cap_flags & cap);
}

static int has_port_cap2(uint64_t cap)
{
	return has(port_attr().port_cap_flags2 & cap);
}

static int has_port_flag(uint64_t flag)
{
	return has(port_attr().flags & flag);
}

static int is_link_layer(uint64_t layer)
{
	return has(port_attr().link_layer == layer);
}

static int is_node(uint64_t type)
{
	return has(vt.ctx->device->node_type == (enum ibv_node_type)type);
}

static int is_transport(uint64_t type)
{
	return has(vt.ctx->device->transport_type == (enum ibv_transport_type)type);
}

static int is_gid_type(uint64_t type)
{
	struct ibv_gid_entry entry;

	assert_int_equal(ibv_query_gid_ex(vt.ctx, 1, (uint32_t)vt.gid_index, &entry, 0), 0);
	return has(entry.gid_type == type);
}

/* clang-format off */
const struct probe probe_device[] = {
	PROBE(ibv_get_device_list, device_list),
	PROBE(ibv_free_device_list, device_list),
	PROBE(ibv_get_device_name, device_name),
	PROBE(ibv_get_device_guid, device_guid),
	PROBE(ibv_get_device_index, device_index),
	PROBE(ibv_open_device, open_close),
	PROBE(ibv_close_device, open_close),
	PROBE(ibv_import_device, import_device),
	PROBE(ibv_query_device, query_device),
	PROBE(ibv_query_device_ex, query_device_ex),
	PROBE(ibv_query_port, query_port),
	PROBE(ibv_query_gid, query_gid),
	PROBE(ibv_query_gid_ex, query_gid_ex),
	PROBE(ibv_query_gid_table, query_gid_table),
	PROBE(ibv_query_pkey, query_pkey),
	PROBE(ibv_get_pkey_index, pkey_index),
	PROBE(ibv_query_rt_values_ex, rt_values),
	PROBE_FLAG(IBV_VALUES_MASK_RAW_CLOCK, rt_values),
	PROBE(ibv_get_async_event, async_event),
	PROBE(ibv_ack_async_event, ack_async_event),
	PROBE(ibv_wc_status_str, texts),
	PROBE(ibv_node_type_str, texts),
	PROBE(ibv_port_state_str, texts),
	PROBE(ibv_event_type_str, texts),
	PROBE_OF(ibv_rate_to_mult, rates, IBV_RATE_10_GBPS),
	PROBE_OF(ibv_rate_to_mbps, rates, IBV_RATE_10_GBPS),
	PROBE_OF(mult_to_ibv_rate, rates, IBV_RATE_10_GBPS),
	PROBE_OF(mbps_to_ibv_rate, rates, IBV_RATE_10_GBPS),
	PROBE(ibv_inc_rkey, helpers),
	PROBE(ibv_is_qpt_supported, helpers),
	PROBE(ibv_flow_label_to_udp_sport, helpers),
	PROBE(verbs_get_ctx, helpers),
	PROBE(ibv_resolve_eth_l2_from_gid, resolve_mac),
	PROBE(ibv_fork_init, fork_init),
	PROBE(ibv_is_fork_initialized, fork_known),
	PROBE_FLAG(IBV_FORK_DISABLED, fork_status),
	PROBE_FLAG(IBV_FORK_ENABLED, fork_status),
	PROBE_FLAG(IBV_FORK_UNNEEDED, fork_status),

	PROBE_FLAG(IBV_NODE_UNKNOWN, is_node),
	PROBE_FLAG(IBV_NODE_CA, is_node),
	PROBE_FLAG(IBV_NODE_SWITCH, is_node),
	PROBE_FLAG(IBV_NODE_ROUTER, is_node),
	PROBE_FLAG(IBV_NODE_RNIC, is_node),
	PROBE_FLAG(IBV_NODE_USNIC, is_node),
	PROBE_FLAG(IBV_NODE_USNIC_UDP, is_node),
	PROBE_FLAG(IBV_NODE_UNSPECIFIED, is_node),
	PROBE_FLAG(IBV_TRANSPORT_UNKNOWN, is_transport),
	PROBE_FLAG(IBV_TRANSPORT_IB, is_transport),
	PROBE_FLAG(IBV_TRANSPORT_IWARP, is_transport),
	PROBE_FLAG(IBV_TRANSPORT_USNIC, is_transport),
	PROBE_FLAG(IBV_TRANSPORT_USNIC_UDP, is_transport),
	PROBE_FLAG(IBV_TRANSPORT_UNSPECIFIED, is_transport),
	PROBE_FLAG(IBV_GID_TYPE_IB, is_gid_type),
	PROBE_FLAG(IBV_GID_TYPE_ROCE_V1, is_gid_type),
	PROBE_FLAG(IBV_GID_TYPE_ROCE_V2, is_gid_type),
	PROBE_FLAG(IBV_LINK_LAYER_UNSPECIFIED, is_link_layer),
	PROBE_FLAG(IBV_LINK_LAYER_INFINIBAND, is_link_layer),
	PROBE_FLAG(IBV_LINK_LAYER_ETHERNET, is_link_layer),
	PROBE_FLAG(IBV_QPF_GRH_REQUIRED, has_port_flag),

	PROBE_FLAG(IBV_DEVICE_RESIZE_MAX_WR, has_cap),
	PROBE_FLAG(IBV_DEVICE_BAD_PKEY_CNTR, has_cap),
	PROBE_FLAG(IBV_DEVICE_BAD_QKEY_CNTR, has_cap),
	PROBE_FLAG(IBV_DEVICE_RAW_MULTI, has_cap),
	PROBE_FLAG(IBV_DEVICE_AUTO_PATH_MIG, has_cap),
	PROBE_FLAG(IBV_DEVICE_CHANGE_PHY_PORT, has_cap),
	PROBE_FLAG(IBV_DEVICE_UD_AV_PORT_ENFORCE, has_cap),
	PROBE_FLAG(IBV_DEVICE_CURR_QP_STATE_MOD, has_cap),
	PROBE_FLAG(IBV_DEVICE_SHUTDOWN_PORT, has_cap),
	PROBE_FLAG(IBV_DEVICE_INIT_TYPE, has_cap),
	PROBE_FLAG(IBV_DEVICE_PORT_ACTIVE_EVENT, has_cap),
	PROBE_FLAG(IBV_DEVICE_SYS_IMAGE_GUID, has_cap),
	PROBE_FLAG(IBV_DEVICE_RC_RNR_NAK_GEN, has_cap),
	PROBE_FLAG(IBV_DEVICE_SRQ_RESIZE, has_cap),
	PROBE_FLAG(IBV_DEVICE_N_NOTIFY_CQ, has_cap),
	PROBE_FLAG(IBV_DEVICE_MEM_WINDOW, has_cap),
	PROBE_FLAG(IBV_DEVICE_UD_IP_CSUM, has_cap),
	PROBE_FLAG(IBV_DEVICE_XRC, has_cap),
	PROBE_FLAG(IBV_DEVICE_MEM_MGT_EXTENSIONS, has_cap),
	PROBE_FLAG(IBV_DEVICE_MEM_WINDOW_TYPE_2A, has_cap),
	PROBE_FLAG(IBV_DEVICE_MEM_WINDOW_TYPE_2B, has_cap),
	PROBE_FLAG(IBV_DEVICE_RC_IP_CSUM, has_cap),
	PROBE_FLAG(IBV_DEVICE_RAW_IP_CSUM, has_cap),
	PROBE_FLAG(IBV_DEVICE_MANAGED_FLOW_STEERING, has_cap),
	PROBE_FLAG(IBV_DEVICE_RAW_SCATTER_FCS, has_cap),
	PROBE_FLAG(IBV_DEVICE_PCI_WRITE_END_PADDING, has_cap),
	PROBE_FLAG(IBV_ATOMIC_NONE, has_atomics),
	PROBE_FLAG(IBV_ATOMIC_HCA, has_atomics),
	PROBE_FLAG(IBV_ATOMIC_GLOB, has_atomics),
	PROBE_FLAG(IBV_ODP_SUPPORT, has_odp),
	PROBE_FLAG(IBV_ODP_SUPPORT_IMPLICIT, has_odp),
	PROBE_FLAG(IBV_ODP_SUPPORT_SEND, has_rc_odp),
	PROBE_FLAG(IBV_ODP_SUPPORT_RECV, has_rc_odp),
	PROBE_FLAG(IBV_ODP_SUPPORT_WRITE, has_rc_odp),
	PROBE_FLAG(IBV_ODP_SUPPORT_READ, has_rc_odp),
	PROBE_FLAG(IBV_ODP_SUPPORT_ATOMIC, has_rc_odp),
	PROBE_FLAG(IBV_ODP_SUPPORT_SRQ_RECV, has_rc_odp),
	PROBE_FLAG(IBV_TM_CAP_RC, has_tag_matching),
	PROBE_FLAG(IBV_RAW_PACKET_CAP_CVLAN_STRIPPING, has_raw_packet),
	PROBE_FLAG(IBV_RAW_PACKET_CAP_SCATTER_FCS, has_raw_packet),
	PROBE_FLAG(IBV_RAW_PACKET_CAP_IP_CSUM, has_raw_packet),
	PROBE_FLAG(IBV_RAW_PACKET_CAP_DELAY_DROP, has_raw_packet),
	PROBE_FLAG(IBV_RX_HASH_FUNC_TOEPLITZ, has_hash),
	PROBE_FLAG(IBV_RX_HASH_SRC_IPV4, has_hash_field),
	PROBE_FLAG(IBV_RX_HASH_DST_IPV4, has_hash_field),
	PROBE_FLAG(IBV_RX_HASH_SRC_IPV6, has_hash_field),
	PROBE_FLAG(IBV_RX_HASH_DST_IPV6, has_hash_field),
	PROBE_FLAG(IBV_RX_HASH_SRC_PORT_TCP, has_hash_field),
	PROBE_FLAG(IBV_RX_HASH_DST_PORT_TCP, has_hash_field),
	PROBE_FLAG(IBV_RX_HASH_SRC_PORT_UDP, has_hash_field),
	PROBE_FLAG(IBV_RX_HASH_DST_PORT_UDP, has_hash_field),
	PROBE_FLAG(IBV_RX_HASH_IPSEC_SPI, has_hash_field),
	PROBE_FLAG(IBV_RX_HASH_INNER, has_hash_field),
	PROBE_FLAG(IBV_PCI_ATOMIC_OPERATION_4_BYTE_SIZE_SUP, has_pci_atomics),
	PROBE_FLAG(IBV_PCI_ATOMIC_OPERATION_8_BYTE_SIZE_SUP, has_pci_atomics),
	PROBE_FLAG(IBV_PCI_ATOMIC_OPERATION_16_BYTE_SIZE_SUP, has_pci_atomics),

	PROBE_FLAG(IBV_PORT_SM, has_port_cap),
	PROBE_FLAG(IBV_PORT_NOTICE_SUP, has_port_cap),
	PROBE_FLAG(IBV_PORT_TRAP_SUP, has_port_cap),
	PROBE_FLAG(IBV_PORT_OPT_IPD_SUP, has_port_cap),
	PROBE_FLAG(IBV_PORT_AUTO_MIGR_SUP, has_port_cap),
	PROBE_FLAG(IBV_PORT_SL_MAP_SUP, has_port_cap),
	PROBE_FLAG(IBV_PORT_MKEY_NVRAM, has_port_cap),
	PROBE_FLAG(IBV_PORT_PKEY_NVRAM, has_port_cap),
	PROBE_FLAG(IBV_PORT_LED_INFO_SUP, has_port_cap),
	PROBE_FLAG(IBV_PORT_SYS_IMAGE_GUID_SUP, has_port_cap),
	PROBE_FLAG(IBV_PORT_PKEY_SW_EXT_PORT_TRAP_SUP, has_port_cap),
	PROBE_FLAG(IBV_PORT_EXTENDED_SPEEDS_SUP, has_port_cap),
	PROBE_FLAG(IBV_PORT_CAP_MASK2_SUP, has_port_cap),
	PROBE_FLAG(IBV_PORT_CM_SUP, has_port_cap),
	PROBE_FLAG(IBV_PORT_SNMP_TUNNEL_SUP, has_port_cap),
	PROBE_FLAG(IBV_PORT_REINIT_SUP, has_port_cap),
	PROBE_FLAG(IBV_PORT_DEVICE_MGMT_SUP, has_port_cap),
	PROBE_FLAG(IBV_PORT_VENDOR_CLASS_SUP, has_port_cap),
	PROBE_FLAG(IBV_PORT_DR_NOTICE_SUP, has_port_cap),
	PROBE_FLAG(IBV_PORT_CAP_MASK_NOTICE_SUP, has_port_cap),
	PROBE_FLAG(IBV_PORT_BOOT_MGMT_SUP, has_port_cap),
	PROBE_FLAG(IBV_PORT_LINK_LATENCY_SUP, has_port_cap),
	PROBE_FLAG(IBV_PORT_CLIENT_REG_SUP, has_port_cap),
	PROBE_FLAG(IBV_PORT_IP_BASED_GIDS, has_port_cap),
	PROBE_FLAG(IBV_PORT_SET_NODE_DESC_SUP, has_port_cap2),
	PROBE_FLAG(IBV_PORT_INFO_EXT_SUP, has_port_cap2),
	PROBE_FLAG(IBV_PORT_VIRT_SUP, has_port_cap2),
	PROBE_FLAG(IBV_PORT_SWITCH_PORT_STATE_TABLE_SUP, has_port_cap2),
	PROBE_FLAG(IBV_PORT_LINK_WIDTH_2X_SUP, has_port_cap2),
	PROBE_FLAG(IBV_PORT_LINK_SPEED_HDR_SUP, has_port_cap2),
	PROBE_FLAG(IBV_PORT_LINK_SPEED_NDR_SUP, has_port_cap2),
	{ NULL },
};
