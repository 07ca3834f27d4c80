/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_RUN_PROGRESS_H
#define VB_RUN_PROGRESS_H

/*
 * Who calls the NIC to take in frames and act on deadlines.
 *
 * An application that polls does so inline, in its own thread. For all others - those that compute,
 * block, or spin on memory that a peer writes - there is the progress thread, which sleeps until a
 * frame, a deadline or the hub wakes it. The two must not compete for frames: a thread that wakes
 * for every frame only to find that the application has taken it costs more than the frame. So a
 * thread that wakes and sees that the application polled meanwhile checks for a moment whether it
 * still polls. If so the thread naps, longer and longer, as long as that lasts.
 */

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/lent.h"

struct pollfd;
struct vb_device;
struct vb_nic;
struct vb_frame;

/*
 * vb_nic_rx() and its like; in place of these nic/way/disorder.h, or tape/calls.h if the process is
 * recorded.
 */
struct vb_progress_calls {
	bool (*rx_try)(struct vb_nic *nic);
	void (*rx_take)(struct vb_nic *nic);
	void (*rx_drop)(struct vb_nic *nic);
	void (*turn)(struct vb_nic *nic);
	uint64_t (*rx)(struct vb_nic *nic, const struct vb_frame *frames, unsigned count);
	uint64_t (*rx_polled)(struct vb_nic *nic, const struct vb_frame *frames, unsigned count);
};

struct vb_progress {
	pthread_t thread;
	int kick_fd;
	struct vb_frame *frames; /* used by the holder of the rx right */
	struct vb_progress_calls nic;
	_Atomic bool stop;
	_Atomic bool napping;
	_Atomic uint64_t polls;		 /* by the application, sends included; approximate */
	/* a poll is under way; approximate, as several threads share it */
	_Atomic bool polling;
	_Atomic uint32_t wire_quiet;	 /* polls since a frame came or left by the wire */
	_Atomic int poll_cpu;		 /* CPU of the last poll that looked at the wire */
	_Atomic uint64_t poll_ns;	 /* ... its time */
	_Atomic bool expects;		 /* ... it found nothing, or something was sent since */
	/* until when the progress thread sleeps; 0: it is awake, or was just kicked */
	_Atomic uint64_t sleep_until_ns;

	/* The driver: an application's thread that waits for frames itself (await.h). */
	_Atomic bool driver;	   /* there is a driver */
	_Atomic bool drives;	   /* the last wait of the application was a driver's */
	_Atomic bool followed;	   /* other threads wait while there is a driver */
	_Atomic bool watches;	   /* the progress thread sleeps and watches for frames */
	_Atomic bool takeover_set; /* takeover_fd is armed: the progress thread looks again then */
	int takeover_fd;
	int luck;	 /* the driver's own: how often spinning before a sleep paid lately */
	unsigned sleeps; /* ... and sleeps without spinning */

	/* Only the progress thread uses these. */
	uint64_t polls_seen, polls_seen_ns; /* polls, and when it last saw them change */
	uint64_t nap_ns;
};

/* Starts the thread. 0, or EAGAIN, ENOMEM, EMFILE. */
int vb_progress_start(struct vb_device *dev);

/* Ends and joins it. */
void vb_progress_stop(struct vb_device *dev);

/*
 * Takes in what has arrived and does what is due, for a thread that polls. Any thread; never waits.
 */
VB_LENT void vb_progress_poll(struct vb_device *dev);

/* The same for the wire alone, without rings. */
void vb_progress_take(struct vb_device *dev);

/*
 * Takes in what the wire has brought by now, for a caller after whom it would come too late. Waits
 * for another thread that is taking frames in: it may have looked before the last one came.
 */
void vb_progress_take_in(struct vb_device *dev);

/*
 * Called before something leaves by the wire, and after it left (that call delays no packet). Any
 * thread.
 */
void vb_progress_sends(struct vb_device *dev);
void vb_progress_sent(struct vb_device *dev);

/* The NIC's or a link's deadline moved forward. Any thread, under any lock of the NIC's. */
void vb_progress_kick(struct vb_device *dev);

/*
 * Fills in the descriptors that become readable when frames come (poll(2)), at most
 * VB_PROGRESS_PORT_FDS_MAX. Returns their number. Any thread.
 */
#define VB_PROGRESS_PORT_FDS_MAX (VB_SLOTS_PER_NIC_MAX * VB_LINK_RX_FDS_MAX + 1)
unsigned vb_progress_ports_fill(struct vb_device *dev, struct pollfd *fds);

/* Makes the thread look at its descriptors again (a port was added). Any thread. */
void vb_progress_wake(struct vb_device *dev);

/*
 * The application is about to wait for an event: a napping thread must not assume any longer that
 * the application polls. Any thread.
 */
void vb_progress_app_waits(struct vb_device *dev);

/* In a forked child: closes the descriptors of the thread, which does not exist here. */
void vb_progress_forget(struct vb_device *dev);

#endif
