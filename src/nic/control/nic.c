/* SPDX-License-Identifier: BSD-2-Clause */
#include "nic/control/nic.h"

#include <errno.h>
#include <stdlib.h>

#include "base/check.h"
#include "base/refusal.h"
#include "nic/control/efa.h"
#include "nic/data/acks.h"
#include "nic/mem/mem_kinds.h"
#include "nic/service/eth/raw_rx.h"
#include "nic/way/framer.h"
#include "nic/core/internal.h"
#include "nic/core/lowered.h"
#include "nic/way/mcast.h"
#include "nic/mem/mem.h"
#include "nic/way/pair.h"
#include "nic/way/peer.h"
#include "nic/data/qp.h"
#include "nic/service/eth/raw.h"
#include "nic/service/eth/segment.h"
#include "nic/service/eth/steer.h"
#include "nic/service/tm/tm.h"
#include "nic/service/eth/wq.h"
#include "nic/way/way.h"
#include "nic/service/xrc/xrc.h"
#include "topology/values.h"

/* Beside the payload: BTH, RETH, ImmDt, ICRC, and room for extension headers. */
#define FRAME_OVERHEAD_BYTES 44

/* IPv6 and UDP headers: what an interface's MTU must hold beside a frame. */
#define IP_UDP_BYTES 48

/* Allocates zeros without touching them, aligned for struct vb_export. */
static bool export_init(struct vb_nic *nic)
{
	const size_t align = _Alignof(struct vb_export);

	nic->export = nic->host.export_memory;
	if (!nic->export) {
		nic->own_export = calloc(1, sizeof(*nic->export) + align);
		nic->export = (void *)(((uintptr_t)nic->own_export + align - 1) & ~(align - 1));
	}
	return nic->host.export_memory || nic->own_export;
}

static struct vb_timer *timer_of(struct vb_qp *qp)
{
	return &qp->later.timer;
}

int vb_nic_create(struct vb_nic **out, const struct vb_nic_host *host, uint64_t seed)
{
	struct vb_persona neutral;
	struct vb_nic *nic;

	vb_nic_host_check(host);
	nic = calloc(1, sizeof(*nic));
	if (!nic)
		return ENOMEM;
	nic->host = *host;
	nic->later.timer_of = timer_of;
	if (!export_init(nic)) {
		free(nic);
		return ENOMEM;
	}
	if (vb_framers_init(nic) || vb_pairs_init(nic, seed) || vb_steer_init(nic) ||
	    vb_groups_init(nic)) {
		vb_framers_fini(nic);
		vb_pairs_fini(nic);
		vb_steer_fini(nic);
		free(nic->own_export);
		free(nic);
		return ENOMEM;
	}
	vb_persona_make(&neutral, vb_words_at(&vb_persona_names, 0));
	vb_lowered_set(nic, &neutral);
	nic->wire.rx_buffer_bytes = VB_RX_BUFFER_BYTES;
	vb_lock_init(&nic->lock, VB_RANK_NIC);
	vb_lock_init(&nic->leased.lock, VB_RANK_LEASE);
	vb_lock_init(&nic->rx, VB_RANK_RX);
	vb_lock_init(&nic->later.held_lock, VB_RANK_HELD);
	vb_lock_init(&nic->special.xrc_lock, VB_RANK_MAKE);
	vb_rwqs_init(&nic->special.rwqs);
	vb_ahns_init(&nic->special.ahns);
	vb_keys_init(&nic->keys, seed);
	vb_handles_init(&nic->handles.pds);
	vb_handles_init(&nic->handles.mrs);
	vb_handles_init(&nic->handles.dms);
	vb_lock_init(&nic->dms.lock, VB_RANK_DM);
	vb_peers_init(nic);
	vb_timers_init(&nic->later.timers);
	nic->later.held = nic->later.acks = VB_LATER_EMPTY;
	atomic_store(&nic->later.acks_due_ns, UINT64_MAX);
	*out = nic;
	return 0;
}

void vb_nic_destroy(struct vb_nic *nic)
{
	vb_xrc_fini(nic);
	vb_segment_fini(nic);
	for (unsigned i = 0; i < VB_SLOTS_PER_NIC_MAX; i++)
		free(atomic_load(&nic->leased.slot[i]));
	vb_peers_fini(nic);
	vb_timers_fini(&nic->later.timers);
	vb_pairs_fini(nic);
	vb_groups_fini(nic);
	vb_steer_fini(nic);
	vb_lock_fini(&nic->dms.lock);
	vb_handles_fini(&nic->handles.dms);
	vb_handles_fini(&nic->handles.mrs);
	vb_handles_fini(&nic->handles.pds);
	vb_keys_fini(&nic->keys);
	vb_lock_fini(&nic->special.xrc_lock);
	vb_lock_fini(&nic->later.held_lock);
	vb_rwqs_fini(&nic->special.rwqs);
	vb_ahns_fini(&nic->special.ahns);
	vb_framers_fini(nic);
	vb_lock_fini(&nic->rx);
	vb_lock_fini(&nic->leased.lock);
	vb_lock_fini(&nic->lock);
	free(nic->own_export);
	free(nic);
}

void vb_nic_farewell(struct vb_nic *nic)
{
	vb_ways_finish(nic);
	vb_acks_flush(nic);
	atomic_store(&nic->export->left, 1);
}

struct vb_stats *vb_nic_stats(struct vb_nic *nic)
{
	vb_peers_count(nic);
	return &nic->stats;
}

bool vb_nic_rx_try(struct vb_nic *nic)
{
	return vb_lock_try(&nic->rx);
}

void vb_nic_rx_take(struct vb_nic *nic)
{
	vb_lock_take(&nic->rx);
}

void vb_nic_rx_drop(struct vb_nic *nic)
{
	vb_lock_drop(&nic->rx);
}

/* --- addresses --- */

static bool port_is_up(const struct vb_nic *nic)
{
	for (unsigned i = 0; i < VB_GIDS_MAX; i++) {
		if (nic->identity.gids[i].mtu_bytes && !nic->identity.gids[i].no_carrier)
			return true;
	}
	return false;
}

static bool gids_differ(const struct vb_nic *nic, const struct vb_gid_entry *entries,
			unsigned count)
{
	static const struct vb_gid_entry none;

	for (unsigned i = 0; i < VB_GIDS_MAX; i++) {
		const struct vb_gid_entry *entry = i < count ? &entries[i] : &none;

		if (nic->identity.gids[i].ifindex != entry->ifindex ||
		    nic->identity.gids[i].v1 != entry->v1 ||
		    memcmp(nic->identity.gids[i].gid, entry->gid, VB_GID_BYTES) != 0)
			return true;
	}
	return false;
}

void vb_nic_gids_set(struct vb_nic *nic, const struct vb_gid_entry *entries, unsigned count)
{
	bool was_up, is_up, differ;

	vb_check(count <= VB_GIDS_MAX);
	if (vb_nic_is_efa(nic) && count > 1)
		count = 1; /* its table has one */
	vb_lock_take(&nic->lock);
	was_up = port_is_up(nic);
	differ = gids_differ(nic, entries, count);
	memset(nic->identity.gids, 0, sizeof(nic->identity.gids));
	memcpy(nic->identity.gids, entries, count * sizeof(*entries));
	is_up = port_is_up(nic);
	vb_lock_drop(&nic->lock);
	if (was_up != is_up)
		vb_nic_event(nic, is_up ? IBV_EVENT_PORT_ACTIVE : IBV_EVENT_PORT_ERR);
	if (differ)
		vb_groups_rejoin(nic);
	if (differ)
		vb_nic_event(nic, IBV_EVENT_GID_CHANGE);
}

void vb_nic_neighbours_set(struct vb_nic *nic, const struct vb_neighbour *neighbours,
			   unsigned count)
{
	vb_check(count <= VB_GIDS_MAX);
	vb_lock_take(&nic->lock);
	if (count)
		memcpy(nic->identity.neighbours, neighbours, count * sizeof(*neighbours));
	nic->identity.neighbour_count = count;
	vb_lock_drop(&nic->lock);
}

int vb_nic_gid_get(struct vb_nic *nic, unsigned index, struct vb_gid_entry *entry)
{
	if (index >= VB_GIDS_MAX)
		return EINVAL;
	vb_lock_take(&nic->lock);
	*entry = nic->identity.gids[index];
	vb_lock_drop(&nic->lock);
	return 0;
}

unsigned vb_nic_gid_find(struct vb_nic *nic, const uint8_t gid[VB_GID_BYTES])
{
	unsigned index = 0;

	vb_lock_take(&nic->lock);
	while (index < VB_GIDS_MAX && (nic->identity.gids[index].v1 ||
				       memcmp(nic->identity.gids[index].gid, gid, VB_GID_BYTES)))
		index++;
	vb_lock_drop(&nic->lock);
	return index;
}

void vb_nic_rx_buffer_set(struct vb_nic *nic, uint32_t bytes)
{
	atomic_store(&nic->wire.rx_buffer_bytes, bytes);
}

void vb_nic_guid_set(struct vb_nic *nic, uint64_t guid_be, uint64_t system_guid_be)
{
	nic->identity.guid_be = guid_be;
	nic->identity.system_guid_be = system_guid_be;
}

void vb_nic_persona_set(struct vb_nic *nic, const struct vb_persona *persona)
{
	vb_lowered_set(nic, persona);
}

const struct vb_persona *vb_nic_persona(const struct vb_nic *nic)
{
	return &nic->identity.persona;
}

/* --- queries --- */

void vb_nic_query_device(struct vb_nic *nic, struct ibv_device_attr *attr)
{
	const uint64_t *most = nic->identity.most;

	*attr = (struct ibv_device_attr){
		.node_guid = nic->identity.guid_be,
		.sys_image_guid = nic->identity.system_guid_be,
		.max_mr_size = most[VB_LIMIT_MR_SIZE],
		.page_size_cap = 0xfffff000,
		.vendor_id = nic->identity.persona.vendor_id,
		.vendor_part_id = nic->identity.persona.part_id,
		.hw_ver = nic->identity.persona.hw_ver,
		.max_qp = (int)most[VB_LIMIT_QP],
		.max_qp_wr = (int)most[VB_LIMIT_QP_WR],
		.device_cap_flags = IBV_DEVICE_AUTO_PATH_MIG | IBV_DEVICE_CURR_QP_STATE_MOD |
				    IBV_DEVICE_SYS_IMAGE_GUID | IBV_DEVICE_PORT_ACTIVE_EVENT |
				    IBV_DEVICE_RC_RNR_NAK_GEN | IBV_DEVICE_SRQ_RESIZE |
				    IBV_DEVICE_MEM_WINDOW | IBV_DEVICE_MEM_WINDOW_TYPE_2B |
				    IBV_DEVICE_MEM_MGT_EXTENSIONS,
		.max_sge = (int)most[VB_LIMIT_SGE],
		.max_sge_rd = (int)most[VB_LIMIT_SGE_RD],
		.max_cq = (int)most[VB_LIMIT_CQ],
		.max_cqe = (int)most[VB_LIMIT_CQE],
		.max_mr = (int)most[VB_LIMIT_MR],
		.max_mw = (int)most[VB_LIMIT_MW],
		.max_pd = (int)most[VB_LIMIT_PD],
		.max_qp_rd_atom = (int)most[VB_LIMIT_RD_ATOM],
		.max_res_rd_atom = (int)(most[VB_LIMIT_RD_ATOM] * most[VB_LIMIT_QP]),
		.max_qp_init_rd_atom = (int)most[VB_LIMIT_INIT_RD_ATOM],
		/*
		 * The CPU executes atomics, so they are atomic with everything: IBV_ATOMIC_GLOB.
		 * But adapters report this weaker value, and some programs accept no other: UCX.
		 */
		.atomic_cap = IBV_ATOMIC_HCA,
		.max_mcast_grp = (int)most[VB_LIMIT_MCAST_GRP],
		.max_mcast_qp_attach = (int)most[VB_LIMIT_MCAST_QP_ATTACH],
		.max_total_mcast_qp_attach =
			(int)(most[VB_LIMIT_MCAST_GRP] * most[VB_LIMIT_MCAST_QP_ATTACH]),
		.max_ah = (int)most[VB_LIMIT_AH],
		.max_srq = (int)most[VB_LIMIT_SRQ],
		.max_srq_wr = (int)most[VB_LIMIT_SRQ_WR],
		.max_srq_sge = (int)most[VB_LIMIT_SRQ_SGE],
		.max_pkeys = VB_PKEYS,
		.local_ca_ack_delay = VB_ACK_DELAY_CODE,
		.phys_port_cnt = VB_PORTS,
	};
	memcpy(attr->fw_ver, nic->identity.persona.fw_ver, strlen(nic->identity.persona.fw_ver));
	if (nic->host.xrc)
		attr->device_cap_flags |= IBV_DEVICE_XRC;
	if (nic->host.segment)
		attr->device_cap_flags |= IBV_DEVICE_RAW_IP_CSUM | IBV_DEVICE_MANAGED_FLOW_STEERING;
	vb_efa_device(nic, attr);
}

void vb_nic_query_device_ex(struct vb_nic *nic, struct ibv_device_attr_ex *attr)
{
	/* What is not named is zero, as for a device without that feature. */
	*attr = (struct ibv_device_attr_ex){
		.completion_timestamp_mask = nic->host.stamps ? UINT64_MAX : 0,
		.hca_core_clock = nic->host.stamps ? VB_CLOCK_KHZ : 0,
		.cq_mod_caps = { .max_cq_count = VB_CQ_COUNT_MAX,
				 .max_cq_period = VB_CQ_PERIOD_US_MAX },
		.packet_pacing_caps = { .qp_rate_limit_min = VB_RATE_KBPS_MIN,
					.qp_rate_limit_max = VB_RATE_KBPS_MAX,
					.supported_qpts = 1u << IBV_QPT_RC | 1u << IBV_QPT_UC |
							  1u << IBV_QPT_UD },
	};
	vb_tm_query(&attr->tm_caps);
	vb_nic_query_device(nic, &attr->orig_attr);
	vb_mem_query(nic, attr);
	attr->device_cap_flags_ex = attr->orig_attr.device_cap_flags |
				    IBV_DEVICE_PCI_WRITE_END_PADDING | /* no PCI to pad on */
				    VB_DEVICE_ATOMIC_WRITE | VB_DEVICE_FLUSH_GLOBAL;
	attr->phys_port_cnt_ex = attr->orig_attr.phys_port_cnt;
	if (nic->host.segment)
		vb_raw_query(attr);
	vb_efa_device_ex(nic, attr);
}

int vb_nic_query_clock(struct vb_nic *nic, uint64_t *raw_ns)
{
	if (!nic->host.stamps)
		return EOPNOTSUPP;
	*raw_ns = nic->host.stamps->raw_ns(nic->host.arg);
	return 0;
}

int vb_nic_query_times(struct vb_nic *nic, uint64_t *raw_ns, uint64_t *wall_ns)
{
	if (!nic->host.stamps)
		return EOPNOTSUPP;
	*raw_ns = nic->host.stamps->raw_ns(nic->host.arg);
	*wall_ns = nic->host.stamps->wall_ns(nic->host.arg);
	return 0;
}

static enum ibv_mtu mtu_code(uint32_t interface_bytes)
{
	enum ibv_mtu code = IBV_MTU_4096;

	while (code > IBV_MTU_256 &&
	       (128u << code) + FRAME_OVERHEAD_BYTES + IP_UDP_BYTES > interface_bytes)
		code--;
	return code;
}

/* The smallest MTU of all interfaces; loopback counts only if there is no other. */
static uint32_t narrowest_bytes(struct vb_nic *nic, bool *up)
{
	uint32_t out = UINT32_MAX, loop = UINT32_MAX;

	vb_lock_take(&nic->lock);
	*up = port_is_up(nic);
	for (unsigned i = 0; i < VB_GIDS_MAX; i++) {
		const struct vb_gid_entry *e = &nic->identity.gids[i];
		uint32_t *least = e->loopback ? &loop : &out;

		if (!e->mtu_bytes)
			continue;
		if (e->mtu_bytes < *least)
			*least = e->mtu_bytes;
	}
	vb_lock_drop(&nic->lock);
	return out != UINT32_MAX ? out : loop;
}

static void speed_fill(uint32_t mbps, struct ibv_port_attr *attr)
{
	const struct vb_rate *rate = vb_rate_of(mbps);

	attr->active_width = rate->width;
	attr->active_speed = rate->speed;
}

int vb_nic_query_port(struct vb_nic *nic, unsigned port, struct ibv_port_attr *attr)
{
	bool up;
	uint32_t bytes;

	if (port != 1)
		return vb_refuse(EINVAL, "port_num is %u; the only port is 1", port);
	bytes = narrowest_bytes(nic, &up);
	*attr = (struct ibv_port_attr){
		.state = up ? IBV_PORT_ACTIVE : IBV_PORT_DOWN,
		.max_mtu = IBV_MTU_4096,
		.active_mtu = mtu_code(bytes),
		.gid_tbl_len = VB_GIDS_MAX,
		.port_cap_flags = IBV_PORT_CM_SUP | IBV_PORT_IP_BASED_GIDS,
		.max_msg_sz = VB_MESSAGE_BYTES_MAX,
		.pkey_tbl_len = VB_PKEYS,
		.max_vl_num = 1,
		.phys_state = up ? 5 : 3, /* LinkUp : Disabled */
		.link_layer = nic->identity.persona.link_layer,
		.flags = IBV_QPF_GRH_REQUIRED,
	};
	speed_fill(nic->identity.persona.rate_mbps, attr);
	vb_efa_port(nic, attr);
	return 0;
}
