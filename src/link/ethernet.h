/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_LINK_ETHERNET_H
#define VB_LINK_ETHERNET_H

/*
 * An interface of the host for whole Ethernet frames: a TAP device, whose other end is the host's
 * network stack; or an existing interface through a packet socket (packet(7)), which receives what
 * arrives there, but not what the host itself sends there.
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/uio.h>

struct vb_ethernet;

enum { VB_ETHERNET_FRAMES_MAX = 32 }; /* per call of rx */

/* A received frame. Its checksums are complete, unless it has to be segmented (mss). */
struct vb_ethernet_frame {
	uint8_t *octets;
	uint32_t bytes;
	uint32_t mss; /* segment size if this is merged or uncut TCP (GRO, TSO), else 0 */
};

/*
 * setting: "tap:NAME", which is made and brought up unless it exists, or the name of an interface.
 * Returns 0; EINVAL: neither; EPERM, EACCES: not allowed (allowed are TAP devices made for this
 * user, and everything in a user and network namespace of one's own); ENODEV, ENOENT: no such
 * interface, no TAP devices here; EBUSY; or another errno of open(2), socket(2), ioctl(2). *why
 * says what is missing and what to do if that is known, as a static string, else it is NULL.
 */
int vb_ethernet_open(struct vb_ethernet **eth, const char *setting, const char **why);

/* Readable when frames have come. */
int vb_ethernet_fd(const struct vb_ethernet *eth);

/* Sends frames. Returns how many were sent; the others are lost. Any thread, several at once. */
unsigned vb_ethernet_tx(struct vb_ethernet *eth, const struct iovec *frames, unsigned count);

/*
 * Receives up to VB_ETHERNET_FRAMES_MAX frames, which stay valid until the next call. One thread at
 * a time.
 */
unsigned vb_ethernet_rx(struct vb_ethernet *eth, struct vb_ethernet_frame *frames);

/* In a forked child: closes the descriptor and nothing more. */
void vb_ethernet_forget(struct vb_ethernet *eth);

void vb_ethernet_close(struct vb_ethernet *eth);

/* --- for tests: finishing a frame that the kernel left unfinished --- */

/*
 * Computes the checksum of the octets from `start` on and stores it at start + offset, where the
 * kernel left a partial sum.
 */
void vb_ethernet_checksum(uint8_t *octets, uint32_t bytes, uint32_t start, uint32_t offset);

#endif
