/* SPDX-License-Identifier: BSD-2-Clause */
#include "run/device.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/check.h"
#include "base/failure.h"
#include "base/loose.h"
#include "hub/client_ports.h"
#include "hub/client_reach.h"
#include "hub/words.h"
#include "link/around/net.h"
#include "link/shm.h"
#include "link/udp_socket.h"
#include "nic/control/nic.h"
#include "nic/core/order.h"
#include "nic/core/slots.h"
#include "nic/data/qp_error.h"
#include "nic/way/congestion.h"
#include "run/address/guid.h"
#include "run/faults/link.h"
#include "run/faults/spells.h"
#include "run/process/cancel.h"
#include "run/process/eventfd.h"
#include "run/foreign.h"
#include "run/process/log.h"
#include "run/process/record.h"
#include "run/process/report.h"
#include "run/process/sample.h"
#include "run/process/topology.h"
#include "run/process/trace.h"
#include "run/process/trail.h"
#include "run/memory/memfile.h"
#include "run/memory/memprobe.h"
#include "run/memory/memtouch.h"
#include "run/memory/sigguard.h"
#include "run/xrc.h"
#include "tape/calls.h"
#include "tape/tape.h"
#include "wire/icrc.h"

/* VERBATIM_ORDER: one event in so many is late. */
#define EVENT_LATE_ONE_IN 4u

/* The devices by their rows; the lock guards the pointers. */
static vb_lock current_lock = VB_LOCK_INIT(VB_RANK_DEVICE);
static struct vb_device *current[VB_DEVICES];

/* Devices inherited from parents, kept reachable so that leak checkers do not report them. */
static struct vb_device *inherited;

static uint64_t clock_ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return now.tv_sec * 1000000000ull + now.tv_nsec;
}

uint64_t vb_now_ns(void)
{
	return clock_ns(CLOCK_MONOTONIC);
}

/* --- why something failed --- */

static void log_failure(const char *what, int rc)
{
	char why[VB_FAILURE_BYTES];

	vb_log("%s: %s", what, vb_failure_words(why, sizeof(why), rc));
}

int vb_device_failed(int rc)
{
	if (rc != 0)
		log_failure("the device does not open", rc);
	return rc;
}

/* The number of a device's first port among all that the process may have. */
#define PORT_BASE(dev) ((dev)->said.row * VB_SLOTS_PER_NIC_MAX)

/* --- ports --- */

static struct vb_port *port_of(struct vb_device *dev, uint16_t slot)
{
	unsigned count = atomic_load_explicit(&dev->port_count, memory_order_acquire);

	for (unsigned i = 0; i < count; i++) {
		if (dev->ports[i].slot == slot)
			return &dev->ports[i];
	}
	return NULL;
}

static void marked(void *arg, const struct vb_frame *frame)
{
	struct vb_device *dev = arg;

	vb_taped_congestion_tell(dev->nic, frame);
}

/* The port of a slot that was leased. */
static int port_add(struct vb_device *dev, const struct vb_hub_slot *slot)
{
	const struct vb_port_maker by = { &dev->env, dev->faults, marked, dev };
	unsigned index = atomic_load(&dev->port_count);
	int rc = vb_port_open(&dev->ports[index], &by, slot, PORT_BASE(dev) + index);

	if (rc == 0)
		atomic_store_explicit(&dev->port_count, index + 1, memory_order_release);
	return rc;
}

static int port_lease(struct vb_device *dev, struct vb_hub_slot *slot)
{
	int rc;

	if (atomic_load(&dev->port_count) == VB_SLOTS_PER_NIC_MAX)
		return vb_failed_words(ENOSPC, "a device has %d slots at most",
				       VB_SLOTS_PER_NIC_MAX);
	vb_loose_begin();
	rc = vb_hub_client_lease(dev->hub, slot);
	vb_loose_end();
	if (rc == 0)
		rc = port_add(dev, slot);
	return rc;
}

/* --- what the NIC asks of its host --- */

static uint64_t host_now_ns(void *arg)
{
	return vb_now_ns();
}

static uint64_t host_raw_ns(void *arg)
{
	return clock_ns(CLOCK_MONOTONIC_RAW);
}

static uint64_t host_wall_ns(void *arg)
{
	return clock_ns(CLOCK_REALTIME);
}

static int host_tx(void *arg, uint16_t src_slot, const struct vb_burst *burst)
{
	struct vb_device *dev = arg;
	struct vb_port *port = port_of(dev, src_slot);
	int rc;

	if (!port)
		return ENODEV;
	/* Only datagrams come here then, since no QP gets connected without shared memory. */
	if (dev->env.link == VB_ENV_LINK_SHM)
		return ENETUNREACH;
	vb_progress_sends(dev);
	rc = vb_link_tx(port->link, burst);
	vb_progress_sent(dev);
	/* What was sent may be delayed: a thread has to be awake when it is due. */
	if (dev->env.delays)
		vb_progress_kick(dev);
	return rc;
}

static void *host_claim(void *arg, uint16_t src_slot, const struct vb_path *path,
			uint16_t *first_id)
{
	struct vb_port *port = port_of(arg, src_slot);

	return port ? vb_link_claim(port->link, path, first_id) : NULL;
}

static void host_unclaim(void *arg, uint16_t src_slot, void *claim)
{
	struct vb_link *link = port_of(arg, src_slot)->link;

	link->ops->unclaim(link, claim);
}

static unsigned host_burst_frames_max(void *arg)
{
	struct vb_device *dev = arg;

	return dev->ports[0].link->ops->burst_frames_max(dev->ports[0].link);
}

static uint32_t host_frame_bytes_max(void *arg, const struct vb_path *path)
{
	struct vb_device *dev = arg;
	int cancel = vb_cancel_defer();
	uint32_t bytes = dev->ports[0].link->ops->frame_bytes_max(dev->ports[0].link, path);

	vb_cancel_restore(cancel);
	return bytes;
}

static int host_sport_choose(void *arg, uint16_t src_slot, const struct vb_path *path,
			     uint16_t slot, uint16_t sport)
{
	struct vb_port *port = port_of(arg, src_slot);
	int cancel, rc;

	if (!port)
		return EOPNOTSUPP;
	cancel = vb_cancel_defer();
	rc = port->link->ops->sport_choose(port->link, path, slot, sport);
	vb_cancel_restore(cancel);
	return rc;
}

static uint16_t host_sport(void *arg, uint16_t src_slot, const struct vb_path *path, uint16_t slot,
			   enum vb_whom whom)
{
	struct vb_port *port = port_of(arg, src_slot);
	uint16_t sport;
	int cancel;

	if (!port)
		return VB_UDP_PORT;
	cancel = vb_cancel_defer();
	sport = port->link->ops->sport(port->link, path, slot, whom);
	vb_cancel_restore(cancel);
	return sport;
}

/* One socket joins for the whole process, whichever slots its QPs have: each packet comes once. */
static int host_join(void *arg, const uint8_t gid[VB_GID_BYTES], uint32_t ifindex)
{
	struct vb_device *dev = arg;
	struct vb_link *link = dev->ports[0].link;
	int cancel = vb_cancel_defer();
	int rc = link->ops->join(link, gid, ifindex);

	/* The link may have opened a descriptor: wake sleepers so that they include it. */
	if (rc == 0) {
		vb_progress_wake(dev);
		vb_peers_wake_self(dev);
	}
	vb_cancel_restore(cancel);
	return rc;
}

static void host_leave(void *arg, const uint8_t gid[VB_GID_BYTES])
{
	struct vb_device *dev = arg;
	struct vb_link *link = dev->ports[0].link;
	int cancel = vb_cancel_defer();

	link->ops->leave(link, gid);
	vb_cancel_restore(cancel);
}

static void host_kick(void *arg)
{
	vb_progress_kick(arg);
}

static void host_found(void *arg, struct vb_finding *finding)
{
	vb_report_keep(finding);
	vb_progress_wake(arg); /* its thread logs it, unless the application polls before */
}

static void host_see(void *arg, const struct vb_record *record)
{
	vb_trace_see(record);
	vb_capture_see(&((struct vb_device *)arg)->capture, record);
}

static void host_signal(void *arg, int fd)
{
	vb_eventfd_signal(fd);
}

/* Events are late. */
static void host_signal_late(void *arg, int fd)
{
	struct vb_device *dev = arg;
	uint64_t draws = vb_order_begin(dev->nic, VB_ORDER_OF_EVENTS);

	vb_order_dawdle(dev->nic, &draws, EVENT_LATE_ONE_IN);
	vb_eventfd_signal(fd);
}

static void host_dawdle(void *arg, uint64_t ns)
{
	struct timespec pause = { .tv_nsec = (long)ns };
	int cancel = vb_cancel_defer();

	nanosleep(&pause, NULL);
	vb_cancel_restore(cancel);
}

static void host_unsignal(void *arg, int fd)
{
	vb_eventfd_unsignal(fd);
}

static int host_lease(void *arg, uint16_t *slot, uint32_t *next_index)
{
	struct vb_device *dev = arg;
	int cancel = vb_cancel_defer(), rc = 0;
	struct vb_hub_slot leased;

	vb_lock_take(&dev->lease_lock);
	if (dev->first_is_taken) {
		rc = port_lease(dev, &leased);
		if (rc != 0)
			log_failure("there is no further slot", rc);
		/* Wake sleepers so that they include this port. */
		if (rc == 0) {
			vb_progress_wake(dev);
			vb_peers_wake_self(dev);
		}
	} else {
		leased = dev->first_slot;
		dev->first_is_taken = true;
	}
	vb_lock_drop(&dev->lease_lock);
	vb_cancel_restore(cancel);
	if (rc != 0)
		return rc;
	*slot = leased.slot;
	*next_index = leased.next_index;
	return 0;
}

static int host_probe_memory(void *arg, const void *addr, size_t bytes, bool write)
{
	return vb_memprobe(addr, bytes, write);
}

static bool host_copy_paged(void *arg, void *to, const void *from, size_t bytes)
{
	return vb_memtouch_copy(to, from, bytes);
}

static bool host_touch_paged(void *arg, void *at)
{
	return vb_memtouch(at, true);
}

static int host_fetch(void *arg, void *addr, size_t bytes, enum vb_fetch how)
{
	return vb_memfetch(addr, bytes, how);
}

/* --- GIDs --- */

/* As a script's faults leave them. */
static void gids_show_locked(struct vb_device *dev)
{
	struct vb_gid_entry entry[VB_GIDS_MAX];
	unsigned count;

	vb_gids_shown(&dev->gids, entry, &count);
	vb_faults_gids(dev->faults, entry, &count);
	vb_nic_neighbours_set(dev->nic, dev->gids.neighbour, dev->gids.neighbour_count);
	vb_taped_nic_gids_set(dev->nic, entry, count);
}

static void gids_show(void *arg)
{
	struct vb_device *dev = arg;

	vb_lock_take(&dev->gids_lock);
	gids_show_locked(dev);
	vb_lock_drop(&dev->gids_lock);
}

void vb_device_gids_refresh(struct vb_device *dev)
{
	int cancel = vb_cancel_defer();

	vb_lock_take(&dev->gids_lock);
	if (vb_gids_refresh(&dev->gids, vb_now_ns()))
		gids_show_locked(dev);
	vb_lock_drop(&dev->gids_lock);
	vb_cancel_restore(cancel);
}

/* --- failing on request --- */

static void device_fails(void *arg)
{
	struct vb_device *dev = arg;

	vb_report_found();
	vb_log("the device was told to fail");
	vb_taped_nic_fail(dev->nic);
	vb_cm_device_fail(dev);
}

/* --- captures on request --- */

static void capture_asked(void *arg, int fd)
{
	struct vb_device *dev = arg;

	vb_capture_ask(&dev->capture, fd);
	vb_progress_wake(dev);
}

static void device_samples(void *arg, int answer_fd, uint32_t measure_s)
{
	struct vb_device *dev = arg;

	vb_sample_send(dev->nic, dev->said.row, answer_fd, measure_s);
}

/* --- fault scripts --- */

static void host_wake(void *arg)
{
	vb_progress_wake(arg);
}

static int faults_open(struct vb_device *dev)
{
	const struct vb_faults_host host = {
		.arg = dev,
		.wake = host_wake,
		.kick = host_kick,
		.mad_send = vb_cm_mad_send,
		.gids_show = gids_show,
		.device_fail = device_fails,
	};

	return dev->env.faults ? vb_faults_open(&dev->faults, dev->env.faults, &host) : 0;
}

/* --- life and death --- */

static void host_afar(void *arg, const uint8_t gid[VB_GID_BYTES])
{
	struct vb_device *dev = arg;

	vb_links_afar(&dev->links, gid);
}

static const struct vb_host_wire wire = {
	.lease = host_lease,
	.tx = host_tx,
	.claim = host_claim,
	.unclaim = host_unclaim,
	.burst_frames_max = host_burst_frames_max,
	.frame_bytes_max = host_frame_bytes_max,
	.sport = host_sport,
	.sport_choose = host_sport_choose,
	.afar = host_afar,
};

static const struct vb_host_stamps stamps = { .raw_ns = host_raw_ns, .wall_ns = host_wall_ns };

static const struct vb_host_groups groups = { .join = host_join, .leave = host_leave };

static const struct vb_host_paging paging = {
	.fetch = host_fetch, .copy = host_copy_paged, .touch = host_touch_paged,
};

static const struct vb_host_memory memory = {
	.device = vb_share_device_memory, .map_file = vb_memfile_map, .unmap = vb_direct_unmap,
};

static const struct vb_host_insight insight = { .found = host_found };

static const struct vb_host_capture capture = { .see = host_see };

/* Devices of a process that names its seed draw different keys, and always the same. */
static uint64_t seed_of(const struct vb_device *dev)
{
	return vb_env_seed(&dev->env) + dev->said.row;
}

static int nic_start(struct vb_device *dev)
{
	const struct vb_nic_host host = {
		.arg = dev,
		.clock = { .now_ns = host_now_ns, .kick = host_kick,
			   .pause = vb_direct_pause },
		.wire = wire,
		.process = { .signal = dev->env.disorder ? host_signal_late : host_signal,
			     .unsignal = host_unsignal,
			     .probe = host_probe_memory },
		.stamps = &stamps,
		.groups = &groups,
		.peers = &vb_peers_host,
		.direct = &vb_direct_host,
		.sharing = dev->peers.allowed ? &vb_share_host : NULL,
		.memory = &memory,
		.paging = &paging,
		.foreign = &vb_foreign_host,
		.xrc = &vb_xrc_host,
		.segment = dev->peers.allowed ? &vb_uplink_host : NULL,
		.gsi = &vb_cm_gsi_host,
		.insight = &insight,
		.capture = &capture,
		.line_kbps = dev->env.line_kbps,
		.no_dcqcn = dev->env.no_dcqcn,
		.order = dev->env.disorder ? &dev->order : NULL,
		.export_memory = dev->peers.export,
		.no_wire = dev->env.link == VB_ENV_LINK_SHM,
	};
	int rc;

	dev->order = (struct vb_host_order){ .seed = dev->env.order_seed,
					     .iba = dev->env.order_iba,
					     .dawdle = host_dawdle };
	rc = vb_record_start(&dev->env);
	if (rc != 0)
		return rc;
	rc = vb_taped_nic_create(&dev->nic, &host, seed_of(dev));
	if (rc != 0)
		return vb_failed(rc, "the NIC's memory");
	vb_taped_nic_guid_set(dev->nic, vb_guid_of_device(vb_topology_here(), dev->said.row),
			      vb_guid_get());
	vb_taped_nic_persona_set(dev->nic, &dev->said.persona);
	if (atomic_load(&dev->port_count))
		vb_taped_nic_rx_buffer_set(dev->nic, vb_port_rx_buffer(&dev->ports[0]));
	gids_show(dev);
	vb_capture_begin(&dev->capture, dev->nic);
	vb_faults_begin(dev->faults, dev->nic);
	rc = vb_progress_start(dev);
	if (rc != 0) {
		vb_capture_close(&dev->capture);
		vb_nic_destroy(dev->nic);
		vb_tape_close();
	}
	return rc;
}

static void ports_destroy(struct vb_device *dev)
{
	for (unsigned i = 0; i < atomic_load(&dev->port_count); i++)
		dev->ports[i].link->ops->destroy(dev->ports[i].link);
}

/* What the table says of the device; NULL: it has all addresses. */
static const struct vb_topology_device *said_of(const struct vb_device *dev)
{
	return dev->said.row == VB_DEVICE_WHOLE ? NULL : &vb_topology_here()->device[dev->said.row];
}

static int parts_start(struct vb_device *dev)
{
	static const struct vb_hub_receivers receivers = {
		.fatal = device_fails, .noted = vb_xrc_host_noted, .mad = vb_cm_mad_came,
		.capture = capture_asked, .sample = device_samples,
	};
	const struct vb_topology *topology = vb_topology_here();
	const struct vb_gids_of of = {
		.topology = topology,
		.device = topology->count > 1 || topology->device[0].place_count ? said_of(dev)
										 : NULL,
		.variety = dev->said.persona.gids,
	};
	struct vb_hub_offer offer;
	int rc;

	rc = vb_capture_setting(&dev->capture, dev->env.pcapng, PORT_BASE(dev));
	if (rc == 0)
		rc = faults_open(dev);
	if (rc == 0)
		rc = vb_gids_open(&dev->gids, &of);
	if (rc != 0)
		goto close_faults;
	rc = vb_peers_open(dev);
	if (rc != 0)
		goto close_gids;
	vb_share_open(&dev->share, dev->env.shared_mr, vb_mr_found);
	offer = vb_peers_offer(dev);
	rc = vb_hub_client_open(&dev->hub, &offer, vb_peers_ring_came, dev);
	if (rc != 0)
		goto close_peers;
	vb_hub_client_on_answers(dev->hub, &vb_peers_answers);
	vb_hub_client_receivers(dev->hub, &receivers);
	rc = port_lease(dev, &dev->first_slot);
	if (rc != 0)
		goto close_hub;
	rc = nic_start(dev);
	if (rc == 0)
		return 0;
	ports_destroy(dev);
close_hub:
	vb_hub_client_close(dev->hub);
close_peers:
	vb_share_close(&dev->share);
	vb_peers_close(dev);
close_gids:
	vb_gids_close(&dev->gids);
close_faults:
	vb_faults_close(dev->faults);
	return rc;
}

static int device_start(struct vb_device *dev)
{
	char why[VB_ENV_WHY_BYTES];
	int rc;

	vb_log_open();
	rc = vb_settings_read(dev->said.row, &dev->env, &dev->said.persona, why);
	if (rc != 0) {
		vb_log("%s", why);
		return rc;
	}
	rc = dev->env.trace ? vb_trail_open(dev->env.trace) : 0;
	if (rc != 0)
		vb_failed_words(rc, "VERBATIM_TRACE: %s: %s", dev->env.trace, strerror(rc));
	else
		rc = parts_start(dev);
	return vb_device_failed(rc);
}

static void log_counters(struct vb_device *dev)
{
	vb_sample_log(dev->nic, dev->said.row);
	vb_sample_leave(dev->nic, dev->said.row);
	vb_cm_device_log(dev);
	vb_faults_log(dev->faults);
}

static void say_farewell(struct vb_device *dev)
{
	vb_taped_nic_farewell(dev->nic);
	vb_faults_flush(dev->faults, false);
	vb_report_found();
	log_counters(dev);
	vb_capture_farewell(&dev->capture);
	vb_tape_farewell();
}

/* Programs that give up exit without closing, and then the counters matter most. */
static void __attribute__((destructor)) say_farewell_at_exit(void)
{
	if (!vb_lock_try(&current_lock))
		return;
	for (unsigned i = 0; i < VB_DEVICES; i++) {
		if (current[i])
			say_farewell(current[i]);
	}
	vb_lock_drop(&current_lock);
}

/*
 * Tells the hub which QPNs our slots used, so that the slots' next owners do not get packets meant
 * for our QPs.
 */
static void mark_slots(struct vb_device *dev)
{
	uint16_t slot[VB_SLOTS_PER_NIC_MAX];
	uint32_t next_index[VB_SLOTS_PER_NIC_MAX];
	unsigned count = vb_nic_slots(dev->nic, slot, next_index);

	for (unsigned i = 0; i < count; i++)
		vb_hub_client_mark(dev->hub, slot[i], next_index[i]);
}

static void device_stop(struct vb_device *dev)
{
	vb_progress_stop(dev);
	vb_cm_device_close(dev);
	vb_taped_nic_farewell(dev->nic);
	vb_faults_flush(dev->faults, false);
	vb_capture_close(&dev->capture);
	vb_report_found();
	log_counters(dev);
	mark_slots(dev);
	vb_nic_destroy(dev->nic);
	vb_tape_close();
	vb_uplink_close(dev);
	vb_xrc_host_close(dev);
	ports_destroy(dev);
	vb_hub_client_close(dev->hub);
	vb_share_close(&dev->share);
	vb_peers_close(dev);
	vb_gids_close(&dev->gids);
	vb_faults_close(dev->faults);
	vb_lock_fini(&dev->lease_lock);
	vb_lock_fini(&dev->gids_lock);
	vb_links_close(&dev->links);
	free(dev);
}

static void forget(struct vb_device *dev)
{
	dev->gone = true;
	dev->next = inherited;
	inherited = dev;
	vb_hub_client_forget(dev->hub);
	vb_progress_forget(dev);
	vb_peers_forget(dev);
	vb_share_forget(&dev->share);
	vb_uplink_forget(dev);
	vb_xrc_forget(dev);
	vb_cm_device_forget(dev);
	vb_capture_forget(&dev->capture);
	vb_gids_close(&dev->gids);
	for (unsigned i = 0; i < atomic_load(&dev->port_count); i++)
		dev->ports[i].link->ops->forget(dev->ports[i].link);
}

/* Runs in the child, whose only thread is the one that forked; see device.h. */
static void forget_in_child(void)
{
	/* Another thread of the parent may have held the lock. */
	vb_lock_init(&current_lock, VB_RANK_DEVICE);
	vb_loose_forget();
	vb_report_forget();
	vb_trail_forget();
	vb_tape_forget();
	for (unsigned i = 0; i < VB_DEVICES; i++) {
		if (current[i])
			forget(current[i]);
		current[i] = NULL;
	}
}

static void prepare_process(void)
{
	vb_sigguard_install();
	pthread_atfork(vb_loose_await, vb_loose_resume, forget_in_child);
}

static int device_create(unsigned row, struct vb_device **out)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	struct vb_device *dev;
	int rc;

	pthread_once(&once, prepare_process);
	dev = calloc(1, sizeof(*dev));
	if (!dev)
		return ENOMEM;
	dev->said.row = row;
	vb_lock_init(&dev->lease_lock, VB_RANK_DEVICE_LEASE);
	vb_lock_init(&dev->gids_lock, VB_RANK_GIDS);
	vb_links_open(&dev->links, &dev->env, &dev->hub, &dev->ports[0].slot);
	vb_cm_device_open(dev);
	vb_capture_open(&dev->capture);
	rc = device_start(dev);
	if (rc != 0) {
		free(dev);
		return rc;
	}
	*out = dev;
	return 0;
}

int vb_device_open(unsigned row, struct vb_device **dev)
{
	int cancel = vb_cancel_defer(), rc = 0;

	vb_loose_begin();
	vb_lock_take(&current_lock);
	if (!current[row])
		rc = device_create(row, &current[row]);
	if (rc == 0) {
		current[row]->opens++;
		*dev = current[row];
	}
	vb_lock_drop(&current_lock);
	vb_loose_end();
	vb_cancel_restore(cancel);
	return rc;
}

void vb_device_close(struct vb_device *dev)
{
	int cancel;

	if (vb_device_is_gone(dev))
		return;
	cancel = vb_cancel_defer();
	vb_loose_begin();
	vb_lock_take(&current_lock);
	if (--dev->opens == 0) {
		vb_check(dev == current[dev->said.row]);
		current[dev->said.row] = NULL;
		device_stop(dev);
	}
	vb_lock_drop(&current_lock);
	vb_loose_end();
	vb_cancel_restore(cancel);
}
