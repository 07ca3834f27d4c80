/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_RUN_CAPTURE_H
#define VB_RUN_CAPTURE_H

/*
 * A capture of what this process sends and takes in (docs/capture.md): into a file from the start,
 * or for a reader that comes and goes, or both. While there is none the NIC is not watched, and
 * nothing here runs.
 *
 * A reader is another process of this user. It asks by a socket, which the hub hands to us; we
 * answer with a feed (capture/feed.h) and put packets there. When either end of the socket is
 * closed, the capture is over.
 */

#include <stdatomic.h>
#include <stdbool.h>

#include "base/lock.h"
#include "base/record.h"
#include "capture/feed.h"
#include "capture/pcapng.h"

struct vb_nic;

struct vb_capture {
	struct vb_nic *nic;
	_Atomic int asked; /* a reader's socket that waits for a turn; VB_FD_NONE: none */
	vb_lock lock;	   /* guards the following */
	_Atomic bool on;   /* read without the lock, too: is there anybody to see a packet? */
	int fd;		   /* the reader's socket; VB_FD_NONE: there is none */
	int file_fd;	   /* VB_FD_NONE: there is none */
	bool never_waits;  /* as the reader wants it */
	bool stuck;	   /* the reader has not read for so long that nobody waits for it */
	bool leaves;	   /* the reader has said so; it gets nothing more */
	struct vb_feed feed;
	struct vb_pcapng_counts counts[VB_RECORD_LINKS]; /* of the file */
	char program[64];
	uint8_t block[VB_PCAPNG_BYTES_MAX];
};

void vb_capture_open(struct vb_capture *capture);

/* Ends all. The NIC is still there. */
void vb_capture_close(struct vb_capture *capture);

/* The process ends without closing: completes the file. Never waits for a lock. */
void vb_capture_farewell(struct vb_capture *capture);

/* In a forked child, whose parent goes on. */
void vb_capture_forget(struct vb_capture *capture);

/*
 * The file name of a capture: "%p" becomes the PID, and further ports of a process get a suffix,
 * since processes and ports must not overwrite each other's files. 0 or ENAMETOOLONG.
 */
int vb_capture_name(char *name, size_t size, const char *setting, unsigned port);

/* Begins a file; only its owner may read it. 0 or an errno of open(2). Then the NIC is made. */
int vb_capture_file(struct vb_capture *capture, const char *name);

/* The NIC is there: from now on readers may come, and the file is written. */
void vb_capture_begin(struct vb_capture *capture, struct vb_nic *nic);

/* A reader asks by this socket, which is the callee's. A turn is due. Any thread. */
void vb_capture_ask(struct vb_capture *capture, int fd);

static inline bool vb_capture_is_asked(const struct vb_capture *capture)
{
	return atomic_load_explicit(&capture->asked, memory_order_relaxed) >= 0;
}

/* Takes in a reader that asks, and lets one go that leaves: its socket is readable. One thread. */
void vb_capture_turn(struct vb_capture *capture);

/* A packet, under any lock of the NIC's. Waits for a reader that reads slowly. */
void vb_capture_see(struct vb_capture *capture, const struct vb_record *record);

/*
 * Begins the capture that VERBATIM_PCAP asks for if its name ends in .pcapng; setting NULL: none.
 * Returns 0 or an errno, in words.
 */
int vb_capture_setting(struct vb_capture *capture, const char *setting, unsigned port);

#endif
