/* SPDX-License-Identifier: BSD-2-Clause */
#include "run/progress.h"

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "base/check.h"
#include "base/failure.h"
#include "base/fd.h"
#include "base/lock.h"
#include "base/loose.h"
#include "link/shm.h"
#include "nic/control/nic.h"
#include "nic/core/timer.h"
#include "nic/data/qp_error.h"
#include "nic/way/disorder.h"
#include "nic/way/peer.h"
#include "nic/way/receive.h"
#include "run/process/cancel.h"
#include "run/device.h"
#include "run/process/report.h"
#include "run/process/signals.h"
#include "tape/calls.h"
#include "tape/tape.h"

/* How long to check whether the application polls: several times the duration of an empty poll. */
#define LOOK_NS 3000u
#define NAP_NS_MIN 20000u
#define SLICE_NS 100000u
#define NAP_NS_MAX 1000000u

/* An application that polled within this time is busy, not asleep. */
#define BUSY_NS 1000000u

/*
 * How long to look for more frames before a sleep: as long as a wake-up takes. Rings are looked at
 * LANE_LOOKS times for each look at the wire; both cost the same then.
 */
#define SPIN_NS 30000u
#define LANE_LOOKS 64u

/*
 * After this many polls without a frame by the wire, only one poll in WIRE_EVERY looks at the wire.
 */
#define WIRE_QUIET_POLLS 4096u
#define WIRE_EVERY 1024u

/* Reading the clock costs a tenth of a look at the wire, and no deadline needs it at each poll. */
#define CLOCK_EVERY 8u

enum {
	STACK_BYTES = 256 << 10,
	TAKE_IN_ROUNDS = 16, /* a peer that sends without end must not keep us */
	FD_KICK = 0,
	FD_HUB,
	FD_BELL,
	FD_HUPS,
	FD_TAKEOVER,
	FD_INTERFACES,
	FD_CAPTURE,
	FD_PORTS,
	FDS_MAX = FD_PORTS + VB_PROGRESS_PORT_FDS_MAX,
};

static __thread bool is_progress_thread __attribute__((tls_model("initial-exec")));

static void wire_is_used(struct vb_progress *progress)
{
	atomic_store_explicit(&progress->wire_quiet, 0, memory_order_relaxed);
}

/* If the link has opened a descriptor, wake those that sleep, so that they include it. */
static void tell_of_fds(struct vb_device *dev, struct vb_port *port)
{
	int fd = port->link->ops->rx_fd(port->link, 1), cancel;

	if (fd == port->rx_fd_seen)
		return;
	port->rx_fd_seen = fd;
	cancel = vb_cancel_defer();
	vb_progress_wake(dev);
	vb_peers_wake_self(dev);
	vb_cancel_restore(cancel);
}

/* With the rx right, which it drops. *now_ns, if not NULL and the wire had frames: the time. */
static unsigned take_frames_locked(struct vb_device *dev, bool polled, uint64_t *now_ns)
{
	unsigned ports = atomic_load_explicit(&dev->port_count, memory_order_acquire);
	struct vb_frame *frames = dev->progress.frames;
	uint64_t took_ns = 0;
	unsigned got = 0;

	for (unsigned i = 0; i < ports; i++) {
		struct vb_port *port = &dev->ports[i];
		unsigned n = vb_link_rx(port->link, frames, VB_LINK_RX_FRAMES_MAX);

		if (!n)
			continue;
		tell_of_fds(dev, port);
		if (polled)
			took_ns = dev->progress.nic.rx_polled(dev->nic, frames, n);
		else
			took_ns = dev->progress.nic.rx(dev->nic, frames, n);
		got += n;
	}
	got += vb_uplink_take(dev);
	dev->progress.nic.rx_drop(dev->nic);
	if (got)
		wire_is_used(&dev->progress);
	if (now_ns && took_ns)
		*now_ns = took_ns;
	return got;
}

/*
 * Takes in frames. Returns false if another thread holds the rx right. *got: number of frames.
 * *now_ns, if not NULL and the wire had frames: the time. polled: the application polls, and will
 * again soon.
 */
static bool take_frames(struct vb_device *dev, bool polled, unsigned *got, uint64_t *now_ns)
{
	*got = 0;
	if (!dev->progress.nic.rx_try(dev->nic))
		return false;
	*got = take_frames_locked(dev, polled, now_ns);
	return true;
}

/* Returns true if something was due. */
static bool turn_if_due(struct vb_device *dev)
{
	uint64_t nic_ns = vb_nic_deadline_ns(dev->nic);
	uint64_t cm_ns = vb_cm_device_deadline_ns(&dev->cm), now_ns;

	if (nic_ns == UINT64_MAX && cm_ns == UINT64_MAX)
		return false;
	now_ns = vb_now_ns();
	if (now_ns < nic_ns && now_ns < cm_ns)
		return false;
	if (now_ns >= nic_ns)
		dev->progress.nic.turn(dev->nic);
	if (now_ns >= cm_ns)
		vb_cm_device_turn(dev);
	return true;
}

/* Notes that a thread of the application looked at the wire or sent something. */
static void app_was_here(struct vb_progress *progress, uint64_t now_ns, bool expects)
{
	atomic_store_explicit(&progress->poll_cpu, sched_getcpu(), memory_order_relaxed);
	atomic_store_explicit(&progress->poll_ns, now_ns, memory_order_relaxed);
	atomic_store_explicit(&progress->expects, expects, memory_order_relaxed);
}

void vb_progress_take(struct vb_device *dev)
{
	unsigned got;

	/* The holder of the rx right may be waiting for this CPU. */
	if (!take_frames(dev, false, &got, NULL))
		sched_yield();
	turn_if_due(dev);
}

void vb_progress_take_in(struct vb_device *dev)
{
	unsigned got, rounds = 0;

	do {
		dev->progress.nic.rx_take(dev->nic);
		got = take_frames_locked(dev, false, NULL);
	} while (got >= VB_LINK_RX_FRAMES_MAX && ++rounds < TAKE_IN_ROUNDS);
}

/* polls: number of polls before this one. */
static void poll_wire(struct vb_device *dev, uint64_t polls)
{
	struct vb_progress *progress = &dev->progress;
	uint64_t now_ns = 0;
	unsigned got;

	if (!take_frames(dev, true, &got, &now_ns))
		sched_yield();
	if (!got && polls % CLOCK_EVERY != 0) {
		atomic_store_explicit(&progress->expects, true, memory_order_relaxed);
		return;
	}
	/* Frames taken in came with the time: the clock is read only without it. */
	if (!now_ns)
		now_ns = vb_now_ns();
	if (vb_nic_deadline_ns(dev->nic) <= now_ns)
		dev->progress.nic.turn(dev->nic);
	app_was_here(progress, now_ns, got == 0);
}

static void poll_all(struct vb_device *dev)
{
	struct vb_progress *progress = &dev->progress;
	uint32_t quiet = atomic_load_explicit(&progress->wire_quiet, memory_order_relaxed);
	uint64_t polls = atomic_load_explicit(&progress->polls, memory_order_relaxed);

	atomic_store_explicit(&progress->polls, polls + 1, memory_order_relaxed);
	vb_nic_lanes_poll(dev->nic);
	/* What is delayed is late by as much as nobody looks. */
	if (quiet < WIRE_QUIET_POLLS)
		atomic_store_explicit(&progress->wire_quiet, quiet + !dev->env.delays,
				      memory_order_relaxed);
	else if (polls % WIRE_EVERY != 0)
		return;
	poll_wire(dev, polls);
}

void vb_progress_poll(struct vb_device *dev)
{
	atomic_store_explicit(&dev->progress.polling, true, memory_order_relaxed);
	poll_all(dev);
	atomic_store_explicit(&dev->progress.polling, false, memory_order_relaxed);
}

void vb_progress_sends(struct vb_device *dev)
{
	struct vb_progress *progress = &dev->progress;
	uint64_t polls = atomic_load_explicit(&progress->polls, memory_order_relaxed);

	wire_is_used(progress);
	if (is_progress_thread)
		return;
	atomic_store_explicit(&progress->polls, polls + 1, memory_order_relaxed);
	atomic_store_explicit(&progress->poll_cpu, sched_getcpu(), memory_order_relaxed);
	atomic_store_explicit(&progress->expects, true, memory_order_relaxed);
}

void vb_progress_sent(struct vb_device *dev)
{
	if (!is_progress_thread)
		atomic_store_explicit(&dev->progress.poll_ns, vb_now_ns(), memory_order_relaxed);
}

/* --- waking the thread --- */

static uint64_t deadline_of(struct vb_device *dev)
{
	unsigned ports = atomic_load_explicit(&dev->port_count, memory_order_acquire);
	uint64_t deadline_ns = vb_min_u64(vb_nic_deadline_ns(dev->nic),
					  vb_cm_device_deadline_ns(&dev->cm));

	for (unsigned i = 0; i < ports; i++) {
		struct vb_link *link = dev->ports[i].link;

		deadline_ns = vb_min_u64(deadline_ns, link->ops->deadline_ns(link));
	}
	return deadline_ns;
}

static void kick_write(struct vb_progress *progress)
{
	int cancel = vb_cancel_defer();
	uint64_t one = 1;
	ssize_t done;

	/*
	 * The write fails only if the count is at its limit, and then the thread is about to wake.
	 */
	done = write(progress->kick_fd, &one, sizeof(one));
	(void)done;
	vb_cancel_restore(cancel);
}

void vb_progress_kick(struct vb_device *dev)
{
	struct vb_progress *progress = &dev->progress;
	uint64_t until_ns;

	/* It is awake, and looks again before it sleeps. */
	if (is_progress_thread)
		return;
	/*
	 * Sequentially consistent, as are the deadlines: either this thread sees until when the
	 * progress thread sleeps, or that one sees the new deadline in sleep_for_work().
	 */
	until_ns = atomic_load(&progress->sleep_until_ns);
	if (deadline_of(dev) >= until_ns)
		return;
	/* Only one of several kickers writes. */
	if (atomic_compare_exchange_strong(&progress->sleep_until_ns, &until_ns, 0))
		kick_write(progress);
}

void vb_progress_wake(struct vb_device *dev)
{
	kick_write(&dev->progress);
}

void vb_progress_app_waits(struct vb_device *dev)
{
	if (!atomic_load_explicit(&dev->progress.drives, memory_order_relaxed) &&
	    atomic_load_explicit(&dev->progress.napping, memory_order_relaxed) &&
	    atomic_exchange(&dev->progress.napping, false))
		kick_write(&dev->progress);
}

/* --- the thread --- */

/* Waits until one of fds is readable or the time has come; then handles kicks and the hub. */
static void wait_fds(struct vb_device *dev, struct pollfd *fds, unsigned count, uint64_t until_ns)
{
	uint64_t now_ns = vb_now_ns(), left_ns, kicks;
	struct timespec timeout;
	ssize_t done;

	left_ns = until_ns > now_ns ? until_ns - now_ns : 0;
	timeout.tv_sec = left_ns / 1000000000u;
	timeout.tv_nsec = left_ns % 1000000000u;
	if (ppoll(fds, count, until_ns == UINT64_MAX ? NULL : &timeout, NULL) <= 0)
		return;
	if (fds[FD_KICK].revents) {
		done = read(dev->progress.kick_fd, &kicks, sizeof(kicks));
		(void)done;
	}
	if (fds[FD_HUB].revents) {
		vb_loose_begin();
		vb_hub_client_turn(dev->hub);
		vb_loose_end();
	}
	if (fds[FD_BELL].revents) {
		vb_bell_hush(dev->peers.bell_fd);
		vb_nic_heard(dev->nic);
		vb_direct_sweep(dev->nic);
	}
	if (fds[FD_HUPS].revents)
		vb_peers_hup(dev);
	if (fds[FD_TAKEOVER].revents &&
	    read(dev->progress.takeover_fd, &kicks, sizeof(kicks)) == sizeof(kicks))
		atomic_store(&dev->progress.takeover_set, false);
	if (fds[FD_INTERFACES].revents)
		vb_device_gids_refresh(dev);
	if (fds[FD_CAPTURE].revents || vb_capture_is_asked(&dev->capture))
		vb_capture_turn(&dev->capture);
}

unsigned vb_progress_ports_fill(struct vb_device *dev, struct pollfd *fds)
{
	unsigned ports = atomic_load_explicit(&dev->port_count, memory_order_acquire), count = 0;

	for (unsigned i = 0; i < ports; i++) {
		struct vb_link *link = dev->ports[i].link;

		for (unsigned k = 0; k < VB_LINK_RX_FDS_MAX; k++)
			fds[count++] = (struct pollfd){ .fd = link->ops->rx_fd(link, k),
							.events = POLLIN };
	}
	fds[count++] = (struct pollfd){ .fd = vb_uplink_fd(dev), .events = POLLIN };
	return count;
}

static unsigned fds_fill(struct vb_device *dev, struct pollfd *fds)
{
	fds[FD_KICK] = (struct pollfd){ .fd = dev->progress.kick_fd, .events = POLLIN };
	fds[FD_HUB] = (struct pollfd){ .fd = vb_hub_client_fd(dev->hub), .events = POLLIN };
	fds[FD_BELL] = (struct pollfd){ .fd = dev->peers.bell_fd, .events = POLLIN };
	fds[FD_HUPS] = (struct pollfd){ .fd = dev->peers.hup_fd, .events = POLLIN };
	fds[FD_TAKEOVER] = (struct pollfd){ .fd = dev->progress.takeover_fd, .events = POLLIN };
	fds[FD_INTERFACES] = (struct pollfd){ .fd = dev->gids.watch_fd, .events = POLLIN };
	fds[FD_CAPTURE] = (struct pollfd){ .fd = dev->capture.fd, .events = POLLIN };
	return FD_PORTS + vb_progress_ports_fill(dev, fds + FD_PORTS);
}

static void sleep_for_work(struct vb_device *dev)
{
	struct vb_progress *progress = &dev->progress;
	uint64_t deadline_ns = deadline_of(dev);
	struct pollfd fds[FDS_MAX];
	unsigned count = fds_fill(dev, fds);

	vb_report_found();
	atomic_store(&progress->sleep_until_ns, deadline_ns);
	/* Look again: a deadline set meanwhile kicked nobody, since we were awake. */
	deadline_ns = vb_min_u64(deadline_ns, deadline_of(dev));
	atomic_store(&progress->watches, true);
	/* Look again: a driver that came meanwhile had nobody to tell. */
	if (vb_nic_asleep(dev->nic) && !atomic_load(&progress->driver))
		wait_fds(dev, fds, count, deadline_ns);
	vb_nic_awake(dev->nic);
	atomic_store(&progress->watches, false);
	atomic_store(&progress->sleep_until_ns, 0);
}

/* While a driver waits for frames, the thread handles only deadlines and the hub. */
static void stand_by(struct vb_device *dev)
{
	struct vb_progress *progress = &dev->progress;
	uint64_t deadline_ns = deadline_of(dev);
	struct pollfd fds[FDS_MAX];

	fds_fill(dev, fds);
	fds[FD_BELL].fd = -1;
	atomic_store(&progress->sleep_until_ns, deadline_ns);
	wait_fds(dev, fds, FD_PORTS, vb_min_u64(deadline_ns, deadline_of(dev)));
	atomic_store(&progress->sleep_until_ns, 0);
	if (deadline_ns != UINT64_MAX)
		vb_progress_take(dev);
}

static void nap(struct vb_device *dev)
{
	struct vb_progress *progress = &dev->progress;
	struct pollfd fds[FDS_MAX];
	unsigned count = fds_fill(dev, fds);
	uint64_t until_ns = vb_now_ns() + progress->nap_ns;

	vb_report_found();
	if (atomic_load_explicit(&progress->wire_quiet, memory_order_relaxed) < WIRE_QUIET_POLLS) {
		count = FD_PORTS;
	} else {
		/* The application does not look at the wire then, and seldom at the clock. */
		turn_if_due(dev);
		until_ns = vb_min_u64(until_ns, vb_nic_deadline_ns(dev->nic));
		atomic_store(&progress->sleep_until_ns, until_ns);
		until_ns = vb_min_u64(until_ns, vb_nic_deadline_ns(dev->nic));
	}
	atomic_store(&progress->napping, true);
	wait_fds(dev, fds, count, until_ns);
	atomic_store(&progress->napping, false);
	atomic_store(&progress->sleep_until_ns, 0);
	progress->nap_ns = vb_min_u64(2 * progress->nap_ns, NAP_NS_MAX);
}

/* Was the last poll on the CPU that this thread runs on? */
static bool polled_here(struct vb_progress *progress)
{
	return atomic_load_explicit(&progress->poll_cpu, memory_order_relaxed) == sched_getcpu();
}

static bool polled_within(struct vb_progress *progress, uint64_t ns)
{
	return vb_now_ns() < atomic_load_explicit(&progress->poll_ns, memory_order_relaxed) + ns;
}

static bool app_is_polling(struct vb_progress *progress)
{
	uint64_t before = progress->polls_seen, end_ns;

	progress->polls_seen = atomic_load_explicit(&progress->polls, memory_order_relaxed);
	/* A poll with much to do takes long; after BUSY_NS it counts as over. */
	if (progress->polls_seen == before)
		return atomic_load_explicit(&progress->polling, memory_order_relaxed) &&
		       vb_now_ns() < progress->polls_seen_ns + BUSY_NS;
	progress->polls_seen_ns = vb_now_ns();
	/* Polls of rings are cheap, so the application will poll again. The next nap will show. */
	if (atomic_load_explicit(&progress->wire_quiet, memory_order_relaxed) >= WIRE_QUIET_POLLS)
		return true;
	/* On this CPU it cannot run now. If its last poll found nothing, it will look again. */
	if (polled_here(progress))
		return atomic_load_explicit(&progress->expects, memory_order_relaxed) ||
		       polled_within(progress, LOOK_NS);
	end_ns = vb_now_ns() + LOOK_NS;
	do {
		if (atomic_load_explicit(&progress->polls, memory_order_relaxed) !=
		    progress->polls_seen)
			return true;
	} while (vb_now_ns() < end_ns);
	return false;
}

/*
 * An application that spins on memory we have to write to keeps us waiting until its time slice
 * ends, 3 ms and more. A thread with a short slice of its own goes first (Linux 6.12 and later).
 * Other kernels ignore this.
 */
static void slice_shorten(void)
{
	struct {
		uint32_t size, policy;
		uint64_t flags;
		int32_t nice;
		uint32_t priority;
		uint64_t runtime_ns, deadline_ns, period_ns;
	} attr = { .size = sizeof(attr), .runtime_ns = SLICE_NS };

	errno = 0;
	attr.nice = getpriority(PRIO_PROCESS, 0);
	if (errno == 0 && sched_getscheduler(0) == SCHED_OTHER)
		syscall(SYS_sched_setattr, 0, &attr, 0);
}

/*
 * Frames come in runs. Returns false if there is a run now, true if none came within SPIN_NS. wire:
 * frames of the last run came by the wire.
 */
static bool stays_quiet(struct vb_device *dev, bool wire)
{
	uint64_t end_ns = vb_now_ns() + SPIN_NS;
	unsigned got;

	do {
		for (unsigned i = 0; i < LANE_LOOKS; i++) {
			if (vb_nic_lanes_poll(dev->nic))
				return false;
		}
		if (wire && take_frames(dev, false, &got, NULL) && got)
			return false;
		if (atomic_load_explicit(&dev->progress.polls, memory_order_relaxed) !=
		    dev->progress.polls_seen)
			return false; /* the application polls */
	} while (vb_now_ns() < end_ns);
	return true;
}

/*
 * Takes in all frames of all rings. A new ring may hold more frames than a scan takes, and its bell
 * rang before, for a driver that did not see them and sleeps again. Later frames ring again.
 */
static void scan_all(struct vb_device *dev)
{
	for (unsigned i = 0; i < VB_RING_SLOTS; i++) {
		if (!vb_nic_lanes_scan(dev->nic))
			break;
	}
}

/* Would an application that was busy just now get this CPU if this thread slept? */
static bool is_in_the_way(struct vb_progress *progress)
{
	return polled_here(progress) && polled_within(progress, BUSY_NS);
}

static void *thread_main(void *arg)
{
	struct vb_device *dev = arg;
	struct vb_progress *progress = &dev->progress;
	bool spin = false, wire = false;
	unsigned got;

	is_progress_thread = true;
	pthread_setname_np(pthread_self(), "verbatim");
	slice_shorten();
	while (!atomic_load(&progress->stop)) {
		vb_faults_turn(dev->faults);
		/* Frames come before the next step, but a step comes before sleep. */
		if (vb_share_turn(dev))
			kick_write(progress);
		if (atomic_load(&progress->driver)) {
			scan_all(dev);
			stand_by(dev);
			continue;
		}
		/* Who polls does not turn a NIC of another order (core/order.h). */
		if ((app_is_polling(progress) && !dev->env.disorder) ||
		    !take_frames(dev, false, &got, NULL)) {
			nap(dev);
			continue;
		}
		progress->nap_ns = NAP_NS_MIN;
		wire |= got > 0;
		got += vb_nic_lanes_scan(dev->nic);
		/* A MAD is no run of frames: what follows is the application's, and needs a CPU. */
		if (turn_if_due(dev) || got > vb_cm_device_heard(&dev->cm))
			spin = true;
		else if (spin && !is_in_the_way(progress) && !stays_quiet(dev, wire))
			continue;
		else {
			spin = wire = false;
			sleep_for_work(dev);
		}
	}
	return NULL;
}

static int thread_create(struct vb_device *dev)
{
	pthread_attr_t attr;
	int rc;

	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, STACK_BYTES);
	rc = pthread_create(&dev->progress.thread, &attr, thread_main, dev);
	pthread_attr_destroy(&attr);
	/* Thread-local variables live on the stack, and some programs have many. */
	if (rc == EINVAL)
		rc = pthread_create(&dev->progress.thread, NULL, thread_main, dev);
	return rc;
}

static void calls_choose(struct vb_device *dev)
{
	static const struct vb_progress_calls usual = {
		vb_nic_rx_try, vb_nic_rx_take,	 vb_nic_rx_drop, vb_nic_turn,
		vb_nic_rx,     vb_nic_rx_polled,
	};
	static const struct vb_progress_calls taped = {
		vb_taped_rx_try, vb_taped_rx_take,   vb_taped_rx_drop, vb_taped_turn,
		vb_taped_rx,	 vb_taped_rx_polled,
	};
	struct vb_progress_calls *calls = &dev->progress.nic;

	*calls = vb_tape_is_on() ? taped : usual;
	if (dev->env.disorder)
		calls->rx = calls->rx_polled = vb_disorder_rx;
}

int vb_progress_start(struct vb_device *dev)
{
	struct vb_progress *progress = &dev->progress;
	sigset_t before;
	int rc;

	progress->nap_ns = NAP_NS_MIN;
	calls_choose(dev);
	progress->frames = calloc(VB_LINK_RX_FRAMES_MAX, sizeof(*progress->frames));
	if (!progress->frames)
		return vb_failed(ENOMEM, "calloc");
	progress->kick_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	if (progress->kick_fd < 0) {
		rc = vb_failed(errno, "eventfd");
		free(progress->frames);
		return rc;
	}
	progress->takeover_fd =
		timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
	if (progress->takeover_fd < 0) {
		rc = vb_failed(errno, "timerfd_create");
		vb_fd_close(&progress->kick_fd);
		free(progress->frames);
		return rc;
	}
	vb_signals_defer(&before);
	rc = thread_create(dev);
	vb_signals_restore(&before);
	if (rc != 0) {
		vb_failed(rc, "pthread_create");
		vb_fd_close(&progress->takeover_fd);
		vb_fd_close(&progress->kick_fd);
		free(progress->frames);
	}
	return rc;
}

void vb_progress_stop(struct vb_device *dev)
{
	struct vb_progress *progress = &dev->progress;

	atomic_store(&progress->stop, true);
	kick_write(progress);
	vb_lock_order_wait("the thread's end");
	pthread_join(progress->thread, NULL);
	vb_fd_close(&progress->takeover_fd);
	vb_fd_close(&progress->kick_fd);
	free(progress->frames);
}

void vb_progress_forget(struct vb_device *dev)
{
	vb_fd_close(&dev->progress.takeover_fd);
	vb_fd_close(&dev->progress.kick_fd);
}
