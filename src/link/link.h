/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_LINK_LINK_H
#define VB_LINK_LINK_H

/*
 * A link moves frames between NICs. A frame is what RoCEv2 has behind the UDP header: BTH to ICRC.
 * A link knows addresses and octets, and does not interpret frames.
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
	 * Sends a burst. Any thread, several at once. Neither tx nor rx is a cancellation point
	 * (pthreads(7)). Returns 0, or a positive errno:
	 * EAGAIN   the link is full: nothing was sent, try again when tx_ready
	 * EFAULT   a piece could not be read
	 * other    the frames are lost (no route, too big, a source port that sport() did not
	 *          return ...): treat as loss on the wire
	 */
	int (*tx)(struct vb_link *, const struct vb_burst *);

	/*
	 * Claims the IPv4 identification of the next burst on this path (with its sport): its ICRCs
	 * cover it, and the burst may leave by a faster socket. Returns NULL if there is none or
	 * another thread has the claim; then the identification is 0. The claim ends with tx of
	 * that burst, whatever it returns, or with unclaim, in the same thread. Other threads do
	 * not wait for it. Both are NULL if the link has no claims.
	 */
	void *(*claim)(struct vb_link *, const struct vb_path *, uint16_t *first_id);
	void (*unclaim)(struct vb_link *, void *claim);

	/*
	 * Receives up to max frames without waiting. Returns their number. One thread at a time.
	 * There may be more even if it returns fewer than max, once even 0; then the descriptors
	 * below are readable.
	 */
	unsigned (*rx)(struct vb_link *, struct vb_frame *, unsigned max);

	/* Largest number of frames per burst at present (1: no segmentation offload). */
	unsigned (*burst_frames_max)(struct vb_link *);

	/*
	 * rx_fd: the i-th of the descriptors that become readable (POLLIN) when rx has work, -1
	 * behind the last; they change in rx only. deadline_ns: the time in ns (CLOCK_MONOTONIC) by
	 * which rx should be called, UINT64_MAX for none (used by wrappers that delay frames). Any
	 * thread.
	 */
	int (*rx_fd)(struct vb_link *, unsigned i);
	uint64_t (*deadline_ns)(struct vb_link *);

	/*
	 * Largest frame, in octets, that the path carries unfragmented from src to dst; 0: no
	 * route. Slow (asks the kernel): for modify_qp, not for packets.
	 */
	uint32_t (*frame_bytes_max)(struct vb_link *, const struct vb_path *);

	/*
	 * The UDP source port for frames on that path (without its sport) to that slot. The sender
	 * puts it into path.sport, since the ICRC covers it. Never fails. A load; the first call
	 * for a slot may make a socket, but not for strangers, who get single frames only. Any
	 * thread.
	 */
	uint16_t (*sport)(struct vb_link *, const struct vb_path *, uint16_t slot,
			  enum vb_whom whom);

	/*
	 * Makes frames on that path to that slot come from this port wherever path.sport says so
	 * (udp_senders.h: which ports are allowed). Returns 0, also if that is so already;
	 * EADDRINUSE: the port is taken, by another program or for another slot; ENOSPC: no further
	 * sockets. Any thread.
	 */
	int (*sport_choose)(struct vb_link *, const struct vb_path *, uint16_t slot, uint16_t port);

	/*
	 * Receives what is sent to a group (vb_gid_is_group()) and arrives at that interface.
	 * Returns 0, also if that is so already, or a positive errno: EMFILE, ENODEV or another of
	 * IP_ADD_MEMBERSHIP (ip(7)). Any thread.
	 */
	int (*join)(struct vb_link *, const uint8_t gid[VB_GID_BYTES], uint32_t ifindex);

	/* Stops receiving from that group. Any thread, while no thread is in rx. */
	void (*leave)(struct vb_link *, const uint8_t gid[VB_GID_BYTES]);

	/*
	 * Has rx return a frame that came by another way, as if it had come by this link. Returns
	 * false if there is no room for it: it is lost. Any thread.
	 */
	bool (*deliver)(struct vb_link *, const struct vb_frame *);

	/*
	 * In a forked child: closes the descriptors and nothing more. No call may follow; locks may
	 * be held by threads that do not exist here.
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
 * The create functions (udp.h, fault.h, pcap.h) return 0 or a positive errno (ENOMEM, and as
 * stated). After 0 the new link owns what it was given, fd or inner link; otherwise the caller
 * still does.
 */

/*
 * Finds the IPv4 identification of a received frame by its ICRC, since no socket tells it. Returns
 * false if the ICRC is wrong. As vb_icrc_check(), which links cannot call. Any thread.
 */
typedef bool vb_identify(const struct vb_path *path, const uint8_t *frame, size_t bytes,
			 uint16_t id_hint, uint16_t *id);

#endif
