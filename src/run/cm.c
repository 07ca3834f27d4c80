/* SPDX-License-Identifier: BSD-2-Clause */
#include "run/cm.h"

#include <endian.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/check.h"
#include "base/fd.h"
#include "cm/hear.h"
#include "hub/client_ports.h"
#include "link/robust.h"
#include "nic/control/nic.h"
#include "nic/core/order.h"
#include "run/device.h"
#include "run/address/guid.h"
#include "run/process/log.h"
#include "wire/icrc.h"
#include "wire/mad_frame.h"

/* --- what the connection manager asks of its host --- */

/*
 * Within a host the hub passes it on, as peers there share memory (peers.c): it loses nothing,
 * where a socket would if many connect at once.
 */
static bool goes_by_hub(void *arg, const struct vb_path *path)
{
	const struct vb_env *env = &((struct vb_device *)arg)->env;

	if (env->link != VB_ENV_LINK_ANY)
		return env->link == VB_ENV_LINK_SHM;
	return path->local && !env->delays && !env->pcap;
}

static void send_by_hub(struct vb_device *dev, const struct vb_path *path, const uint8_t *frame)
{
	struct vb_hub_mad mad = {
		.slot = dev->first_slot.slot,
		.flow_label = path->flow_label,
		.ifindex = path->ifindex,
		.sport = path->sport,
		.tclass = path->tclass,
		.hop_limit = path->hop_limit,
	};

	memcpy(mad.src, path->src, VB_GID_BYTES);
	memcpy(mad.dst, path->dst, VB_GID_BYTES);
	memcpy(mad.frame, frame, VB_HUB_MAD_BYTES);
	vb_hub_client_mad(dev->hub, &mad);
}

static void send_by_wire(struct vb_device *dev, const struct vb_path *path, uint8_t *frame)
{
	const struct iovec iov = { frame, VB_MAD_FRAME_BYTES };
	struct vb_burst burst = {
		.path = *path,
		.frames = 1,
		.frame_bytes = VB_MAD_FRAME_BYTES,
		.last_bytes = VB_MAD_FRAME_BYTES,
		.iovcnt = 1,
		.iov = &iov,
	};

	vb_link_tx(dev->ports[0].link, &burst);
	/* It may be delayed, and somebody has to be awake when it is due. */
	if (dev->env.delays)
		vb_progress_kick(dev);
}

/* For a capture, if there is one. */
static void see(struct vb_device *dev, const struct vb_path *path, uint8_t *frame)
{
	const struct vb_record record = {
		.link = VB_RECORD_UDP,
		.sent = true,
		.qpn = VB_QPN_GSI,
		.path = *path,
		.piece = {{frame, VB_MAD_FRAME_BYTES}},
	};

	if (atomic_load(&dev->capture.on))
		vb_capture_see(&dev->capture, &record);
}

static void host_send(void *arg, const struct vb_path *to, const uint8_t mad[VB_MAD_BYTES])
{
	struct vb_device *dev = arg;
	uint8_t frame[VB_MAD_FRAME_BYTES];
	struct vb_path path = *to;

	/* What a forked child lets go of is its parent's. */
	if (vb_device_is_gone(dev))
		return;
	/* The slot's own socket: a datagram is not worth one of its own. */
	path.sport = VB_ROCE_PORT;
	vb_mad_frame_emit(frame, &path, mad, (uint32_t)vb_cm_draw(&dev->cm.cm) & 0xffffff);
	see(dev, &path, frame);
	if (goes_by_hub(dev, &path))
		send_by_hub(dev, &path, frame);
	else
		send_by_wire(dev, &path, frame);
}

void vb_cm_mad_send(void *arg, const struct vb_path *path, const uint8_t mad[VB_MAD_BYTES])
{
	struct vb_device *dev = arg;

	vb_lock_take(&dev->cm.lock);
	if (atomic_load(&dev->cm.begun))
		host_send(dev, path, mad);
	vb_lock_drop(&dev->cm.lock);
}

static void host_event(void *arg, struct vb_cm_id *id, const struct vb_cm_event *event)
{
	((struct vb_device *)arg)->cm.user->event(id, event);
}

static unsigned host_fit(void *arg, const struct vb_cm_id *listener, const struct vb_path *path,
			 const struct vb_cm_msg *msg)
{
	return ((struct vb_device *)arg)->cm.user->fit(listener, path, msg);
}

static void *host_alloc(void *arg, size_t bytes)
{
	return calloc(1, bytes);
}

static void host_release(void *arg, void *memory)
{
	free(memory);
}

static struct vb_cm_record *host_lend(void *arg)
{
	return vb_cm_lender_lend(&((struct vb_device *)arg)->cm.lender);
}

static void host_take_back(void *arg, struct vb_cm_record *record)
{
	vb_cm_lender_take_back(&((struct vb_device *)arg)->cm.lender, record);
}

/* --- life --- */

/* Where there is no such memory, peers learn of our death by themselves. */
static void records_make(struct vb_device *dev)
{
	struct vb_cm_lender *lender = &dev->cm.lender;

	if (vb_robust_memory_make("verbatim-cm", sizeof(*lender->records), &dev->cm.records_fd))
		dev->cm.records_fd = -1;
	else
		lender->records = vb_robust_memory_map(dev->cm.records_fd,
						       sizeof(*lender->records));
	if (lender->records)
		vb_hub_client_records(dev->hub, dev->cm.records_fd);
}

static void records_drop(struct vb_device *dev)
{
	if (dev->cm.lender.records)
		vb_robust_memory_unmap(dev->cm.lender.records, sizeof(*dev->cm.lender.records));
	vb_fd_close(&dev->cm.records_fd);
}

void vb_cm_device_open(struct vb_device *dev)
{
	vb_lock_init(&dev->cm.lock, VB_RANK_CM);
	atomic_store(&dev->cm.deadline_ns, VB_CM_NEVER);
	dev->cm.records_fd = VB_FD_NONE;
}

void vb_cm_begin(struct vb_device *dev, const struct vb_cm_user *user)
{
	struct vb_cm_settings settings = {
		.guid = be64toh(vb_guid_get()),
		.slot = dev->first_slot.slot,
	};
	const struct vb_cm_host host = {
		.arg = dev,
		.send = host_send,
		.event = host_event,
		.fit = host_fit,
		.is_sure = goes_by_hub,
		.alloc = host_alloc,
		.release = host_release,
		.lend = host_lend,
		.take_back = host_take_back,
	};

	/* Early at boot there is none: then the stack and the clock have to do. */
	if (getrandom(settings.secret, sizeof(settings.secret), GRND_NONBLOCK) < 0) {
		settings.secret[0] = vb_now_ns();
		settings.secret[1] = (uintptr_t)&settings ^ (uintptr_t)dev;
	}
	vb_lock_take(&dev->cm.lock);
	if (!atomic_load(&dev->cm.begun)) {
		dev->cm.user = user;
		records_make(dev);
		vb_cm_init(&dev->cm.cm, &settings, &host);
		atomic_store(&dev->cm.begun, true);
	}
	vb_lock_drop(&dev->cm.lock);
}

void vb_cm_device_close(struct vb_device *dev)
{
	if (atomic_load(&dev->cm.begun))
		vb_cm_fini(&dev->cm.cm);
	records_drop(dev);
	vb_lock_fini(&dev->cm.lock);
}

void vb_cm_device_forget(struct vb_device *dev)
{
	vb_lock_init(&dev->cm.lock, VB_RANK_CM);
	vb_fd_close(&dev->cm.records_fd);
}

/* --- its lock, its clock --- */

/*
 * A clock that is put off rings once in vain. Otherwise each request would have to wake the
 * progress thread, for a clock that the answer stops.
 */
static void deadline_update(struct vb_device *dev)
{
	uint64_t next_ns = vb_cm_deadline_ns(&dev->cm.cm);
	uint64_t set_ns = atomic_load(&dev->cm.deadline_ns);

	if (next_ns < set_ns || set_ns <= dev->cm.cm.now_ns)
		atomic_store(&dev->cm.deadline_ns, next_ns);
}

struct vb_cm *vb_cm_lock(struct vb_device *dev)
{
	vb_lock_take(&dev->cm.lock);
	return &dev->cm.cm;
}

void vb_cm_unlock(struct vb_device *dev)
{
	deadline_update(dev);
	vb_lock_drop(&dev->cm.lock);
	if (!vb_device_is_gone(dev))
		vb_progress_kick(dev);
}

void vb_cm_device_turn(struct vb_device *dev)
{
	vb_lock_take(&dev->cm.lock);
	vb_cm_turn(&dev->cm.cm, vb_now_ns());
	deadline_update(dev);
	vb_lock_drop(&dev->cm.lock);
}

void vb_cm_device_fail(struct vb_device *dev)
{
	vb_lock_take(&dev->cm.lock);
	if (atomic_load(&dev->cm.begun))
		dev->cm.user->fail();
	vb_lock_drop(&dev->cm.lock);
}

void vb_cm_device_log(const struct vb_device *dev)
{
	const struct vb_cm_stats *stats = &dev->cm.cm.stats;
	const struct {
		const char *name;
		uint64_t count;
	} counters[] = {
		{"cm_received", stats->heard},	      {"cm_sent", stats->sent},
		{"cm_repeated", stats->repeated},     {"cm_malformed", stats->malformed},
		{"cm_for_nobody", stats->unmatched},  {"cm_duplicate", stats->duplicate},
		{"cm_unexpected", stats->unexpected}, {"cm_no_listener", stats->no_listener},
		{"cm_backlog_full", stats->full},     {"cm_stale", stats->stale},
	};

	for (unsigned i = 0; i < VB_ARRAY_LEN(counters); i++) {
		if (counters[i].count > 0)
			vb_log("%s %" PRIu64, counters[i].name, counters[i].count);
	}
}

uint8_t vb_cm_rnr_timer(const struct vb_device *dev)
{
	return dev->env.cm_rnr_timer;
}

void vb_cm_unacked_add(struct vb_device *dev, int change)
{
	/* A forked child's are not for its parent's status. */
	if (dev->cm.lender.records && !vb_device_is_gone(dev))
		atomic_fetch_add(&dev->cm.lender.records->unacked, (uint32_t)change);
}

void vb_cm_event_signal(struct vb_device *dev, int fd)
{
	dev->nic->host.process.signal(dev, fd);
}

unsigned vb_cm_event_choose(struct vb_device *dev, unsigned count)
{
	uint64_t draws;

	if (!dev->env.disorder || count < 2)
		return 0;
	draws = vb_order_begin(dev->nic, VB_ORDER_OF_CM_EVENTS);
	return vb_order_below(&draws, count);
}

uint64_t vb_cm_now_ns(void)
{
	return vb_now_ns();
}

/* --- ports --- */

int vb_cm_bind(struct vb_device *dev, struct vb_hub_bind *bind)
{
	if (vb_device_is_gone(dev))
		return EIO;
	bind->slot = dev->first_slot.slot;
	return vb_hub_client_bind(dev->hub, bind);
}

void vb_cm_unbind(struct vb_device *dev, const struct vb_hub_bind *bind)
{
	if (!vb_device_is_gone(dev))
		vb_hub_client_unbind(dev->hub, bind);
}

/* --- addresses --- */

unsigned vb_cm_gid_index(struct vb_device *dev, const uint8_t gid[VB_GID_BYTES])
{
	if (vb_device_is_gone(dev))
		return VB_GIDS_MAX;
	vb_device_gids_refresh(dev);
	return vb_nic_gid_find(dev->nic, gid);
}

/* --- what comes --- */

/* By the link, as if it had come there: so a capture shows it. */
void vb_cm_mad_came(void *arg, const struct vb_hub_mad *mad)
{
	struct vb_device *dev = arg;
	struct vb_link *link = dev->ports[0].link;
	struct vb_frame frame = {
		.path = {
			.flow_label = mad->flow_label,
			.ifindex = mad->ifindex,
			.sport = mad->sport,
			.tclass = mad->tclass,
			.hop_limit = mad->hop_limit,
		},
		.data = mad->frame,
		.bytes = VB_HUB_MAD_BYTES,
	};

	memcpy(frame.path.src, mad->src, VB_GID_BYTES);
	memcpy(frame.path.dst, mad->dst, VB_GID_BYTES);
	if (atomic_load(&dev->port_count) && link->ops->deliver(link, &frame))
		vb_progress_kick(dev);
}

static void gsi_came(void *arg, const struct vb_path *path, const uint8_t *frame, uint32_t bytes)
{
	struct vb_device *dev = arg;
	const uint8_t *mad = vb_mad_frame_parse(frame, bytes);
	struct vb_path from = *path;

	if (!mad || !atomic_load(&dev->cm.begun))
		return;
	atomic_fetch_add_explicit(&dev->cm.heard, 1, memory_order_relaxed);
	from.local = vb_nic_gid_find(dev->nic, from.src) < VB_GIDS_MAX;
	vb_lock_take(&dev->cm.lock);
	vb_cm_hear(&dev->cm.cm, vb_now_ns(), &from, mad);
	deadline_update(dev);
	vb_lock_drop(&dev->cm.lock);
	vb_progress_kick(dev);
}

const struct vb_host_gsi vb_cm_gsi_host = { .came = gsi_came };
