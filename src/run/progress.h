/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_RUN_PROGRESS_H
#define VB_RUN_PROGRESS_H

/*
 * Who turns the NIC's crank.
 *
 * An application that polls does it inline, in its own thread. For all others - those that
 * compute, block, or spin on memory that a peer writes - there is the progress thread, which
 * sleeps until a frame, a deadline or the hub wakes it. The two must not fight over frames: a
 * thread that wakes for every frame only to find that the application has it already costs more
 * than the frame. So when the thread wakes and the application has polled meanwhile, it looks for
 * a moment whether it does so right now, and if so naps, longer and longer, as long as that lasts.
 */

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct pollfd;
struct vb_device;
struct vb_frame;

struct vb_progress {
	pthread_t thread;
	int kick_fd;
	struct vb_frame *frames; /* of whoever holds the rx right */
	_Atomic bool stop;
	_Atomic bool napping;
	_Atomic uint64_t polls;		 /* by the application, and sends; roughly */
	_Atomic bool polling;		 /* it is in one, or was: several threads share this */
	_Atomic uint32_t wire_quiet;	 /* polls since something came or went by the wire */
	_Atomic int poll_cpu;		 /* where the last one was that looked at the wire */
	_Atomic uint64_t poll_ns;	 /* ... and when */
	_Atomic bool expects;		 /* ... and found nothing, or has sent something since */
	_Atomic uint64_t sleep_until_ns; /* of the thread; 0: it is awake, or was just kicked */

	/* An application's thread that waits for frames itself (await.h). */
	_Atomic bool driver;	   /* there is one */
	_Atomic bool drives;	   /* so the application waited last */
	_Atomic bool followed;	   /* others wait meanwhile */
	_Atomic bool watches;	   /* the thread sleeps, and watches for frames */
	_Atomic bool takeover_set; /* it will look again when takeover_fd is readable */
	int takeover_fd;
	int luck;	 /* the driver's own: how often it paid lately to look before a sleep */
	unsigned sleeps; /* ... and how often it did not look */

	/* the thread's own */
	uint64_t polls_seen, polls_seen_ns; /* how many polls, and when it last saw more */
	uint64_t nap_ns;
};

/* Starts the thread. 0, or EAGAIN, ENOMEM, EMFILE. */
int vb_progress_start(struct vb_device *dev);

/* Ends and joins it. */
void vb_progress_stop(struct vb_device *dev);

/* Inline progress: take what has arrived, do what is due. Any thread; never waits. */
void vb_progress_poll(struct vb_device *dev);

/* Take what the wire has brought, do what is due. As poll, without shared memory. */
void vb_progress_take(struct vb_device *dev);

/* Something is about to leave by the wire, or has left: nobody waits for the second. Any thread. */
void vb_progress_sends(struct vb_device *dev);
void vb_progress_sent(struct vb_device *dev);

/* The NIC's or a link's deadline moved forward. Any thread, under any lock of the NIC's. */
void vb_progress_kick(struct vb_device *dev);

/* What becomes readable when frames come (poll(2)): at most so many; their number. Any thread. */
#define VB_PROGRESS_PORT_FDS_MAX (VB_SLOTS_PER_NIC_MAX * VB_LINK_RX_FDS_MAX + 1)
unsigned vb_progress_ports_fill(struct vb_device *dev, struct pollfd *fds);

/* The thread is to look at its descriptors again (a port was added). Any thread. */
void vb_progress_wake(struct vb_device *dev);

/*
 * The application is about to wait for an event: a napping thread must not go on believing that it
 * polls. Any thread.
 */
void vb_progress_app_waits(struct vb_device *dev);

/* In a forked child: close what the thread that does not exist here would have used. */
void vb_progress_forget(struct vb_device *dev);

#endif
