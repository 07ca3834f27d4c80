/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_LINK_LINK_H
#define VB_LINK_LINK_H

/*
 * A link moves frames between NICs. A frame is what RoCEv2 puts behind the UDP header: BTH to
 * ICRC. A link knows addresses and octets, and nothing of the protocol in them.
 *
 * Links stack: fault injection and capture are links around another link.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/frame.h"
#include "base/path.h"

struct vb_link;

enum { VB_LINK_RX_FDS_MAX = 3 };

struct vb_link_ops {
	/*
	 * Send a burst. Any thread, several at once; no cancellation point (pthreads(7)), and
	 * neither is rx. Returns 0, or a positive errno:
	 * EAGAIN   the link is full for now: nothing was sent, try again when tx_ready
	 * EFAULT   a piece could not be read
	 * other    the frames are lost (no route, too big, a source port that sport() did not
	 *          tell ...): treat as loss on the wire
	 */
	int (*tx)(struct vb_link *, const struct vb_burst *);

	/*
	 * Claim the IPv4 identification that a burst on this path (with its sport) will have, which
	 * whoever builds its ICRCs has to know: it may leave by a faster way then. NULL: there is
	 * none, or somebody else is on it, and the identification is 0. A claim ends with the tx of
	 * a burst that has it, whatever that returns, or is given back, by the thread that made it;
	 * meanwhile no other thread waits for it. NULL in place of both: there are no claims.
	 */
	void *(*claim)(struct vb_link *, const struct vb_path *, uint16_t *first_id);
	void (*unclaim)(struct vb_link *, void *claim);

	/*
	 * Receive up to max frames without waiting; one thread at a time. Returns their number.
	 * Fewer than max do not mean that there are no more. Nor does 0, for once: but then the
	 * descriptors below say so.
	 */
	unsigned (*rx)(struct vb_link *, struct vb_frame *, unsigned max);

	/* Largest number of frames a burst may have at present (1: no segmentation offload). */
	unsigned (*burst_frames_max)(struct vb_link *);

	/*
	 * The i-th of the descriptors of which one becomes readable (POLLIN) when rx has work, -1
	 * if there are no more; they change in rx only. And the time in ns (CLOCK_MONOTONIC) at
	 * which rx should be called at the latest, UINT64_MAX for none (a wrapper that delays
	 * frames needs that). Any thread.
	 */
	int (*rx_fd)(struct vb_link *, unsigned i);
	uint64_t (*deadline_ns)(struct vb_link *);

	/*
	 * Largest frame that the path carries unfragmented to dst (from src), in octets,
	 * 0 if there is no route. Slow (asks the kernel): for modify_qp, not for packets.
	 */
	uint32_t (*frame_bytes_max)(struct vb_link *, const struct vb_path *);

	/*
	 * The UDP source port for frames on that path (without its sport) to that slot, which
	 * whoever builds them puts into path.sport: the ICRC covers it. Never fails. A load, but
	 * the first time that somebody asks for a slot it may make a socket. What is for strangers
	 * is single frames, and never makes one of a slot's. Any thread.
	 */
	uint16_t (*sport)(struct vb_link *, const struct vb_path *, uint16_t slot,
			  enum vb_whom whom);

	/*
	 * Frames on that path to that slot shall come from this port (udp_senders.h says which may)
	 * wherever path.sport says so from now on. 0, also where that is so already; EADDRINUSE:
	 * the port is somebody else's, or for another slot; ENOSPC: there are as many as there can
	 * be. Any thread.
	 */
	int (*sport_choose)(struct vb_link *, const struct vb_path *, uint16_t slot, uint16_t port);

	/*
	 * Take in what is sent to a group (vb_gid_is_group()) and comes by that interface. Any
	 * thread. 0, also where that is so already, or a positive errno, EMFILE, ENODEV or another
	 * of IP_ADD_MEMBERSHIP's (ip(7)).
	 */
	int (*join)(struct vb_link *, const uint8_t gid[VB_GID_BYTES], uint32_t ifindex);

	/* Take in nothing more of that group. Any thread, while nobody is in rx. */
	void (*leave)(struct vb_link *, const uint8_t gid[VB_GID_BYTES]);

	/*
	 * In a forked child: close what descriptors there are, and nothing more. No call may
	 * follow, and locks may be held by threads that are not there.
	 */
	void (*forget)(struct vb_link *);

	void (*destroy)(struct vb_link *);
};

struct vb_link {
	const struct vb_link_ops *ops;
};

static inline int vb_link_tx(struct vb_link *link, const struct vb_burst *burst)
{
	return link->ops->tx(link, burst);
}

static inline void *vb_link_claim(struct vb_link *link, const struct vb_path *path,
				  uint16_t *first_id)
{
	return link->ops->claim ? link->ops->claim(link, path, first_id) : NULL;
}

static inline unsigned vb_link_rx(struct vb_link *link, struct vb_frame *frames, unsigned max)
{
	return link->ops->rx(link, frames, max);
}

/*
 * The create functions return 0 or a positive errno (ENOMEM and as told). The new link owns what it
 * was given, fd or inner link, once 0 is returned, and not before.
 */

/*
 * Which IPv4 identification has a frame that came, going by its ICRC; no socket says that. False:
 * that is wrong. As vb_icrc_check(): links know nothing of what is in a frame. Any thread.
 */
typedef bool vb_identify(const struct vb_path *path, const uint8_t *frame, size_t bytes,
			 uint16_t id_hint, uint16_t *id);

/*
 * The UDP link over a slot's socket, made as udp.h tells and bound to 4791. It asks identify before
 * it makes anything of what somebody sends.
 */
int vb_link_udp_create(struct vb_link **link, int fd, vb_identify *identify);

/*
 * Wrap a link in faults: "loss=1%,dup=1%,reorder=5%,corrupt=0.1%,delay=1ms,seed=7", each part
 * optional (fault.h). EINVAL for a text that does not parse.
 */
int vb_link_fault_create(struct vb_link **link, struct vb_link *inner, const char *text);

/*
 * Record what passes, both ways, as a pcap file with IP and UDP headers put back. Creates or
 * empties the file; or an errno of open(2).
 */
int vb_link_pcap_create(struct vb_link **link, struct vb_link *inner, const char *file,
			vb_identify *identify);

#endif
