/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_LINK_ETHERNET_H
#define VB_LINK_ETHERNET_H

/*
 * An interface of the host's, for whole Ethernet frames: a TAP device (its other end is the host's
 * stack), or an existing interface by a packet socket (packet(7)), which sees what comes in by it,
 * and not what the host itself sends there.
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/uio.h>

struct vb_ethernet;

enum { VB_ETHERNET_FRAMES_MAX = 32 }; /* in one call of rx */

/* A frame that came in. Its checksums are complete, unless it is still to be cut. */
struct vb_ethernet_frame {
	uint8_t *octets;
	uint32_t bytes;
	uint32_t mss; /* the host merged TCP segments of so many octets, or never cut them; or 0 */
};

/*
 * setting: "tap:NAME", made and brought up unless it is there already, or an interface's name.
 * 0; EINVAL: neither; EPERM, EACCES: not allowed (a TAP device that was made for this user is, and
 * so is everything in a user and network namespace of one's own); ENODEV, ENOENT: no such
 * interface, no TAP devices here; EBUSY; or another of open(2), socket(2), ioctl(2). Where it is
 * known what is missing then, and what to do, *why says so in words that need not be freed; else
 * it is NULL.
 */
int vb_ethernet_open(struct vb_ethernet **eth, const char *setting, const char **why);

/* Readable when frames have come. */
int vb_ethernet_fd(const struct vb_ethernet *eth);

/* How many were sent; the others are lost. Any thread, several at once. */
unsigned vb_ethernet_tx(struct vb_ethernet *eth, const struct iovec *frames, unsigned count);

/* Up to VB_ETHERNET_FRAMES_MAX frames, which stay until the next call; one thread at a time. */
unsigned vb_ethernet_rx(struct vb_ethernet *eth, struct vb_ethernet_frame *frames);

/* In a forked child: close the descriptor and nothing more. */
void vb_ethernet_forget(struct vb_ethernet *eth);

void vb_ethernet_close(struct vb_ethernet *eth);

/* --- for tests: what is done to a frame that the kernel left unfinished --- */

/* Write the checksum of the octets from `start` on, at start + offset, where part of it stands. */
void vb_ethernet_checksum(uint8_t *octets, uint32_t bytes, uint32_t start, uint32_t offset);

#endif
