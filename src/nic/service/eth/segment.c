/* SPDX-License-Identifier: BSD-2-Clause */
#include "nic/service/eth/segment.h"

#include <errno.h>
#include <stdlib.h>

#include "eth/tso.h"
#include "nic/data/qp.h"
#include "nic/service/eth/raw.h"
#include "nic/service/eth/raw_rx.h"
#include "nic/service/eth/steer.h"
#include "nic/way/peer.h"
#include "nic/way/watch/watch.h"
#include "nic/way/way.h"
#include "wire/bytes.h"

/* Size of the buffer for frames that wait for the uplink. */
#define OUT_BYTES (256u << 10)

/* --- joining --- */

static struct vb_segment_port *port_of(const struct vb_nic *nic)
{
	return atomic_load_explicit(&nic->special.segment, memory_order_acquire);
}

static int port_make(struct vb_nic *nic, struct vb_segment_port **out)
{
	struct vb_segment_port *port = calloc(1, sizeof(*port));
	int err;

	if (!port)
		return ENOMEM;
	err = vb_nic_slot_any(nic, &port->slot);
	if (err) {
		free(port);
		return err;
	}
	port->table = nic->host.segment->table(nic->host.arg);
	if (!port->table) {
		free(port);
		return EOPNOTSUPP;
	}
	/* The slot's last owner may have left an entry. */
	vb_segment_clear(port->table, port->slot);
	vb_lock_init(&port->lock, VB_RANK_SEGMENT);
	vb_lock_init(&port->out_lock, VB_RANK_SEGMENT_OUT);
	*out = port;
	return 0;
}

static int join(struct vb_nic *nic, struct vb_segment_port **out)
{
	struct vb_segment_port *port = NULL;
	int err = 0;

	if (!nic->host.segment || !nic->host.peers)
		return EOPNOTSUPP;
	vb_lock_take(&nic->special.xrc_lock);
	if (!port_of(nic)) {
		err = port_make(nic, &port);
		if (!err)
			atomic_store_explicit(&nic->special.segment, port, memory_order_release);
	}
	vb_lock_drop(&nic->special.xrc_lock);
	*out = port_of(nic);
	return err;
}

void vb_segment_fini(struct vb_nic *nic)
{
	struct vb_segment_port *port = port_of(nic);

	if (!port)
		return;
	vb_segment_clear(port->table, port->slot);
	vb_lock_fini(&port->out_lock);
	vb_lock_fini(&port->lock);
	free(port->out_octets);
	free(port);
}

/* --- the uplink --- */

bool vb_segment_has_uplink(const struct vb_nic *nic)
{
	struct vb_segment_port *port = port_of(nic);

	return port && atomic_load(&port->has_uplink);
}

/* Frames from outside cannot wait for a ring, so all members are reached beforehand. */
static void members_seek(struct vb_nic *nic, const struct vb_segment_port *port)
{
	struct vb_peer *peer;

	for (uint32_t slot = 1; slot < VB_SLOTS; slot++) {
		if (slot != port->slot && vb_segment_has(port->table, (uint16_t)slot))
			vb_way_seek(nic, (uint32_t)port->slot << VB_INDEX_BITS,
				    slot << VB_INDEX_BITS, &peer);
	}
}

/*
 * Another process has the uplink: reaches it, in order to learn of its death (vb_segment_look).
 * Returns false if it is dead, or has given the uplink back.
 */
static bool owner_known(struct vb_nic *nic, struct vb_segment_port *port)
{
	uint32_t owner = atomic_load(&port->table->uplink);

	if (!owner || owner == port->slot)
		return owner;
	/* Any process may have written this. */
	if (owner < VB_SLOTS &&
	    nic->host.peers->reach(nic->host.arg, port->slot, (uint16_t)owner) != ENOENT)
		return true;
	atomic_compare_exchange_strong(&port->table->uplink, &owner, 0);
	return false;
}

/* Takes the uplink if it is free and this process can open it. port->lock held. */
static void uplink_take(struct vb_nic *nic, struct vb_segment_port *port)
{
	uint32_t nobody = 0;

	if (port->has_uplink || owner_known(nic, port) ||
	    !atomic_compare_exchange_strong(&port->table->uplink, &nobody, port->slot))
		return;
	if (!port->out_octets)
		port->out_octets = malloc(OUT_BYTES);
	if (!port->out_octets || !nic->host.segment->uplink_open(nic->host.arg)) {
		atomic_store(&port->table->uplink, 0);
		return;
	}
	atomic_store(&port->has_uplink, true);
	members_seek(nic, port);
}

int vb_segment_qp_add(struct vb_nic *nic, struct vb_segment_port **out)
{
	struct vb_segment_port *port;
	int err = join(nic, &port);

	if (err)
		return err;
	vb_lock_take(&port->lock);
	port->qps++;
	uplink_take(nic, port);
	vb_lock_drop(&port->lock);
	*out = port;
	return 0;
}

void vb_segment_qp_remove(struct vb_nic *nic)
{
	struct vb_segment_port *port = port_of(nic);

	vb_lock_take(&port->lock);
	port->qps--;
	vb_lock_drop(&port->lock);
}

void vb_segment_look(struct vb_nic *nic, uint16_t dead_slot)
{
	struct vb_segment_port *port = port_of(nic);
	uint32_t dead = dead_slot;

	if (!port)
		return;
	vb_lock_take(&port->lock);
	if (dead != port->slot)
		atomic_compare_exchange_strong(&port->table->uplink, &dead, 0);
	if (port->qps)
		uplink_take(nic, port);
	vb_lock_drop(&port->lock);
}

/* out_lock held. */
static void flush_locked(struct vb_nic *nic, struct vb_segment_port *port)
{
	unsigned sent;

	if (!port->out_frames)
		return;
	sent = nic->host.segment->uplink_tx(nic->host.arg, port->out, port->out_frames);
	vb_stat_add(&nic->stats, VB_STAT_UPLINK_SENT, sent);
	vb_stat_add(&nic->stats, VB_STAT_UPLINK_LOST, port->out_frames - sent);
	port->out_frames = port->out_bytes = 0;
}

void vb_segment_flush(struct vb_nic *nic)
{
	struct vb_segment_port *port = port_of(nic);

	if (!port) /* the sender did not know that we have no port */
		return;
	vb_lock_take(&port->out_lock);
	flush_locked(nic, port);
	vb_lock_drop(&port->out_lock);
}

void vb_segment_out(struct vb_nic *nic, const uint8_t *octets, uint32_t bytes)
{
	struct vb_segment_port *port = port_of(nic);
	uint8_t *to;

	if (!port || !atomic_load(&port->has_uplink))
		return;
	if (vb_nic_is_watched(nic))
		vb_watch_ethernet(nic, octets, bytes, true);
	vb_lock_take(&port->out_lock);
	if (port->out_bytes + bytes > OUT_BYTES || port->out_frames == VB_SEGMENT_OUT_FRAMES)
		flush_locked(nic, port);
	to = port->out_octets + port->out_bytes;
	memcpy(to, octets, bytes);
	port->out[port->out_frames++] = (struct iovec){ to, bytes };
	port->out_bytes += bytes;
	vb_lock_drop(&port->out_lock);
}

/* --- destinations --- */

void vb_segment_tell(struct vb_nic *nic)
{
	struct vb_segment_filter filter = { 0 };
	struct vb_segment_port *port = port_of(nic);

	if (!port)
		return;
	/* With the lock held, so that the later of two changes is written last. */
	vb_lock_take(&port->lock);
	vb_steer_filter(nic, &filter);
	vb_segment_write(port->table, port->slot, &filter);
	vb_lock_drop(&port->lock);
}

unsigned vb_segment_plan(struct vb_segment_port *port, const uint8_t *octets, bool from_uplink,
			 uint16_t targets[VB_SEGMENT_TARGETS_MAX])
{
	uint64_t mac = vb_segment_mac(octets);
	uint32_t uplink = from_uplink ? 0 : atomic_load(&port->table->uplink);
	bool out = uplink != 0 && uplink < VB_SLOTS;
	unsigned count = 0, i;

	for (unsigned w = 0; w < VB_SEGMENT_WORDS; w++) {
		uint64_t word = atomic_load_explicit(&port->table->members[w],
						     memory_order_acquire);

		/* Slot 0 is not a process. */
		if (w == 0)
			word &= ~1ull;
		for (; word; word &= word - 1) {
			uint16_t slot = (uint16_t)(w * 64 + (unsigned)__builtin_ctzll(word));
			enum vb_segment_want want = vb_segment_wants(port->table, slot, mac);

			if (want == VB_SEGMENT_NOT)
				continue;
			targets[count++] = slot | VB_SEGMENT_IN << VB_SEGMENT_TARGET_SHIFT;
			/* The destination is known, as in a switch: no other member gets it. */
			if (want == VB_SEGMENT_ADDRESSED && !vb_segment_is_group(mac))
				out = false;
		}
	}
	if (!out)
		return count;
	for (i = 0; i < count && (targets[i] & (VB_SLOTS - 1)) != uplink; i++)
		;
	if (i == count)
		targets[count++] = (uint16_t)uplink;
	targets[i] |= VB_SEGMENT_OUT << VB_SEGMENT_TARGET_SHIFT;
	return count;
}

/* --- frames in rings --- */

bool vb_segment_put(struct vb_lane *lane, const uint8_t *octets, uint32_t bytes, unsigned what,
		    uint64_t context)
{
	uint8_t *to = vb_ring_reserve(&lane->tx, VB_SEGMENT_HEAD_BYTES, bytes);
	uint8_t *head = lane->tx.octets;

	if (!to)
		return false;
	head[0] = VB_SEGMENT_OPCODE;
	head[1] = (uint8_t)what;
	head[2] = head[3] = 0;
	memcpy(head + 4, &context, sizeof(context)); /* only this NIC reads it */
	memcpy(to, octets, bytes);
	vb_ring_publish(&lane->tx, VB_SEGMENT_HEAD_BYTES, bytes);
	if (vb_peer_marks(lane->peer) & VB_PEER_WATCHED)
		vb_watch_ethernet(lane->peer->nic, octets, bytes, true);
	return true;
}

static bool slot_is_ours(struct vb_nic *nic, uint16_t slot)
{
	for (unsigned i = 0; i < VB_SLOTS_PER_NIC_MAX; i++) {
		struct vb_slot *own =
			atomic_load_explicit(&nic->leased.slot[i], memory_order_acquire);

		if (own && own->slot == slot)
			return true;
	}
	return false;
}

bool vb_segment_came(struct vb_lane *lane, const struct vb_ring_frame *from)
{
	struct vb_nic *nic = lane->peer->nic;
	/* A copy, since the sender could change the original meanwhile. */
	uint8_t octets[VB_ETH_FRAME_BYTES_MAX];
	uint32_t bytes = from->payload_bytes;
	unsigned what = from->octets[1];
	uint64_t context = 0;

	if (from->head_bytes != VB_SEGMENT_HEAD_BYTES || bytes < VB_ETH_HEADER_BYTES ||
	    bytes > sizeof(octets)) {
		vb_stat_add(&nic->stats, VB_STAT_DROP_MALFORMED, 1);
		return false;
	}
	memcpy(octets, from->payload, bytes);
	if (slot_is_ours(nic, lane->peer->slot))
		memcpy(&context, from->octets + 4, sizeof(context));
	if (what & VB_SEGMENT_OUT)
		vb_segment_out(nic, octets, bytes);
	if (what & VB_SEGMENT_IN)
		vb_raw_rx(nic, octets, bytes, context);
	return what & VB_SEGMENT_OUT;
}

/* Forwards a frame from outside to a process; without room it is lost. */
static void forward(struct vb_nic *nic, struct vb_segment_port *port, uint16_t slot,
		    const uint8_t *octets, uint32_t bytes)
{
	uint32_t own = (uint32_t)port->slot << VB_INDEX_BITS;
	struct vb_lane *lane;
	struct vb_peer *peer;
	bool put;

	if (vb_way_seek(nic, own, (uint32_t)slot << VB_INDEX_BITS, &peer) != VB_WAY_RING ||
	    vb_peer_is_lost(peer)) {
		vb_stat_add(&nic->stats, VB_STAT_TX_LOST, 1);
		return;
	}
	lane = &peer->lane[0];
	vb_lock_take(&lane->tx_lock);
	put = vb_segment_put(lane, octets, bytes, VB_SEGMENT_IN, 0);
	vb_lock_drop(&lane->tx_lock);
	if (put)
		vb_peer_published(peer);
	else
		vb_stat_add(&nic->stats, VB_STAT_TX_LOST, 1);
}

static void came(struct vb_nic *nic, struct vb_segment_port *port, const uint8_t *octets,
		 uint32_t bytes)
{
	uint16_t targets[VB_SEGMENT_TARGETS_MAX];
	unsigned count;

	vb_stat_add(&nic->stats, VB_STAT_UPLINK_CAME, 1);
	if (vb_nic_is_watched(nic))
		vb_watch_ethernet(nic, octets, bytes, false);
	if (bytes < VB_ETH_HEADER_BYTES || bytes > VB_ETH_FRAME_BYTES_MAX) {
		vb_stat_add(&nic->stats, VB_STAT_DROP_LENGTH, 1);
		return;
	}
	count = vb_segment_plan(port, octets, true, targets);
	for (unsigned i = 0; i < count; i++) {
		uint16_t slot = targets[i] & (VB_SLOTS - 1);

		if (slot == port->slot)
			vb_raw_rx(nic, octets, bytes, 0);
		else
			forward(nic, port, slot, octets, bytes);
	}
}

/* Segments merged TCP as it would have been on a wire. */
static void came_merged(struct vb_nic *nic, struct vb_segment_port *port, const uint8_t *octets,
			uint32_t bytes, uint32_t mss)
{
	uint8_t whole[VB_ETH_FRAME_BYTES_MAX];
	struct vb_eth_frame frame;
	struct vb_tso_cut cut;
	struct vb_tso tso;
	uint32_t header;

	if (!vb_eth_parse(&frame, octets, bytes))
		return;
	header = frame.has_inner ? frame.inner.payload_at : frame.outer.payload_at;
	if (header + mss > sizeof(whole) ||
	    !vb_tso_begin(&tso, octets, header, bytes - header, mss)) {
		vb_stat_add(&nic->stats, VB_STAT_DROP_LENGTH, 1);
		return;
	}
	while (vb_tso_next(&tso, &cut)) {
		memcpy(whole + header, octets + header + cut.offset, cut.bytes);
		vb_tso_frame(&tso, &cut, whole);
		came(nic, port, whole, header + cut.bytes);
	}
}

void vb_nic_uplink_rx(struct vb_nic *nic, const uint8_t *octets, uint32_t bytes, uint32_t mss)
{
	struct vb_segment_port *port = port_of(nic);

	if (!port)
		return;
	if (mss)
		came_merged(nic, port, octets, bytes, mss);
	else
		came(nic, port, octets, bytes);
}
