/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_NIC_NIC_HOST_H
#define VB_NIC_NIC_HOST_H

/*
 * What a NIC needs from its surroundings, in groups. Groups that every NIC needs are in struct
 * vb_nic_host by value. Optional ones are pointers: NULL, or a group that lives as long as the NIC.
 * vb_nic_host_check() makes sure that every group present is complete.
 *
 * The first argument of every function is vb_nic_host.arg. Called from any thread, with locks of
 * the NIC held unless stated otherwise. int: 0 or a positive errno.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include "base/frame.h"
#include "base/path.h"

struct vb_foreign;
struct vb_peer;
struct vb_record;
struct vb_segment_table;
struct vb_xrc_store;

/* ibv_advise_mr(3) */
enum vb_fetch { VB_FETCH_LOOK, VB_FETCH_READ, VB_FETCH_WRITE };

/*
 * How others can map a region: its octets without the first `skip` and the last `cut`. file -1:
 * they cannot.
 */
struct vb_shared {
	int32_t file;	 /* a descriptor of this process */
	uint32_t id;	 /* unique to this region */
	uint64_t offset; /* where in the file the region's first octet is, or would be */
	uint16_t skip, cut;
	/* Owned by the host. item NULL: it does not know the region. */
	void *item;
	struct vb_shared *next, **link;
};

/* --- what every NIC needs --- */

struct vb_host_clock {
	/* Monotonic time in ns. */
	uint64_t (*now_ns)(void *arg);
	/* The NIC's deadline moved forward: threads that sleep until it must look again. */
	void (*kick)(void *arg);
	/* A thread without locks has waited this long: pauses it a little. */
	void (*pause)(void *arg, uint64_t waited_ns);
};

/* Slots, and the link of each; src_slot selects the link. */
struct vb_host_wire {
	/* Leases a further slot. next_index: where its last owner's indices ended. */
	int (*lease)(void *arg, uint16_t *slot, uint32_t *next_index);

	/* As in struct vb_link_ops, but claim may always be called. */
	int (*tx)(void *arg, uint16_t src_slot, const struct vb_burst *burst);
	void *(*claim)(void *arg, uint16_t src_slot, const struct vb_path *path,
		       uint16_t *first_id);
	void (*unclaim)(void *arg, uint16_t src_slot, void *claim);
	unsigned (*burst_frames_max)(void *arg);
	uint32_t (*frame_bytes_max)(void *arg, const struct vb_path *path);
	uint16_t (*sport)(void *arg, uint16_t src_slot, const struct vb_path *path, uint16_t slot,
			  enum vb_whom whom);
	int (*sport_choose)(void *arg, uint16_t src_slot, const struct vb_path *path, uint16_t slot,
			    uint16_t port); /* EOPNOTSUPP: ports cannot be chosen */

	/* A QP is connected to, or addresses, another host. */
	void (*afar)(void *arg, const uint8_t gid[VB_GID_BYTES]);
};

/* The process around the NIC. */
struct vb_host_process {
	/* Adds 1 to (takes 1 from) the count of events that makes an event fd readable. */
	void (*signal)(void *arg, int fd);
	void (*unsignal)(void *arg, int fd);
	/* Are these octets mapped (and writable)? 0, or EFAULT. */
	int (*probe)(void *arg, const void *addr, size_t bytes, bool write);
};

/* --- optional groups --- */

/* Clocks of completion timestamps, in ns. Without them no CQ has timestamps. */
struct vb_host_stamps {
	uint64_t (*raw_ns)(void *arg);	/* a clock that is neither set nor adjusted */
	uint64_t (*wall_ns)(void *arg); /* since 1970 */
};

/* Multicast, as vb_link_ops.join and leave. */
struct vb_host_groups {
	int (*join)(void *arg, const uint8_t gid[VB_GID_BYTES], uint32_t ifindex);
	void (*leave)(void *arg, const uint8_t gid[VB_GID_BYTES]); /* with the rx right held */
};

/* Peers: NICs of this host that are reached by rings in shared memory (peer.h). */
struct vb_host_peers {
	/*
	 * Sets up the rings to a slot of this host (vb_peer_tx_set), unless they exist. Returns at
	 * once; EINPROGRESS: asked for, and vb_peer_answered() follows. A peer whose process is
	 * dead makes room for the slot's next owner (vb_peer_unlist).
	 */
	int (*reach)(void *arg, uint16_t own_slot, uint16_t slot);
	/* Waits for that answer, but not for long. Called without any lock of the NIC. */
	void (*await)(void *arg, uint16_t own_slot, uint16_t slot);
	/* Wakes a peer's process. */
	void (*bell)(void *arg, struct vb_peer *peer);
	/*
	 * The mappings for this peer are no longer used, but its lanes may still be read: they must
	 * read as zeros.
	 */
	void (*release)(void *arg, struct vb_peer *peer);
};

/* One-sided operations between processes of this host (direct.h). */
struct vb_host_direct {
	/*
	 * Moves octets to or from an address of the peer's process, in ascending order with the
	 * last octets last. Returns true if all were moved. `paged`: respects the owner's page
	 * protection (on-demand paging); otherwise it may be ignored, as for pinned pages.
	 */
	bool (*write)(void *arg, struct vb_peer *peer, uint64_t address, const struct iovec *iov,
		      unsigned count, bool paged);
	bool (*read)(void *arg, struct vb_peer *peer, uint64_t address, const struct iovec *iov,
		     unsigned count, bool paged);
	/*
	 * Maps part of a file that the peer's process has open, to read and write; NULL: refused.
	 */
	void *(*map)(void *arg, struct vb_peer *peer, int file, uint64_t offset, uint64_t bytes);
	void (*unmap)(void *arg, void *memory, uint64_t bytes);
	/* The owner's side: might the system let the peer access this process? */
	bool (*may_reach)(void *arg, struct vb_peer *peer);
	/* We have waited that long for the peer to leave our memory: pauses. False: it is dead. */
	bool (*tarry)(void *arg, struct vb_peer *peer, uint64_t waited_ns);
};

/* Regions that peers can map. */
struct vb_host_sharing {
	/*
	 * Makes memory being registered mappable by others, or finds that it is. Returns false if
	 * it cannot. If true, `item` is set; the file may be found later and reported by
	 * vb_mr_found(), until then it is -1.
	 */
	bool (*share)(void *arg, void *addr, size_t bytes, struct vb_shared *shared);
	/* Ends that. Returns true if others should unmap it. */
	bool (*unshare)(void *arg, const struct vb_shared *shared);
};

/* Memory that the application has not mapped itself. */
struct vb_host_memory {
	/*
	 * The device's memory: zeros, aligned to a page, the same at each call, and known to
	 * `share`. NULL: not available.
	 */
	void *(*device)(void *arg, size_t bytes);
	/*
	 * Maps part of a file of the application. EBADF, EINVAL: no such descriptor or part, or the
	 * offsets of iova and offset in their pages differ; EOPNOTSUPP: it cannot be mapped so;
	 * ENOMEM.
	 */
	int (*map_file)(void *arg, int fd, uint64_t offset, uint64_t bytes, uint64_t iova,
			bool write, void **memory);
	void (*unmap)(void *arg, void *memory, uint64_t bytes);
};

/*
 * On-demand paging, where pages may be missing. Without this group, guards are used (base/guard.h).
 */
struct vb_host_paging {
	/*
	 * Brings octets of the application into memory, for reading or writing, or only checks that
	 * they are mapped. EFAULT, ENOMEM.
	 */
	int (*fetch)(void *arg, void *addr, size_t bytes, enum vb_fetch how);
	/*
	 * memcpy in ascending order with the last octets last; and whether an octet can be written
	 * (its page is present then). Neither raises a signal. False: a part is not mapped, or
	 * access is denied.
	 */
	bool (*copy)(void *arg, void *to, const void *from, size_t bytes);
	bool (*touch)(void *arg, void *at);
};

/* Objects imported from another process (import.h). */
struct vb_host_foreign {
	/* Maps its memory from this address on, to read and write; NULL: it cannot be mapped. */
	void *(*map)(void *arg, struct vb_foreign *foreign, uint64_t address, uint64_t bytes);
	void (*unmap)(void *arg, void *memory, uint64_t bytes);
	/* The foreign is no longer used: frees it. */
	void (*leave)(void *arg, struct vb_foreign *foreign);
};

/* XRC: memory that all NICs of the hub share (xrc_store.h). */
struct vb_host_xrc {
	struct vb_xrc_store *(*store)(void *arg); /* the same at each call; NULL: not available */
	/*
	 * The store's lock, which survives its holder's death. lock waits for other processes, so
	 * it is not called with a QP locked or a right held; try_lock returns false instead.
	 */
	void (*lock)(void *arg);
	bool (*try_lock)(void *arg);
	void (*unlock)(void *arg);
	/* Its log has a new entry: makes all NICs call vb_xrc_look(). */
	void (*tell)(void *arg);
};

/* The Ethernet segment (segment.h). Requires peers. */
struct vb_host_segment {
	/*
	 * The table that all NICs of the hub share; NULL: not available, and so no RAW_PACKET QPs.
	 */
	struct vb_segment_table *(*table)(void *arg);
	/*
	 * Opens the interface that the user named, if any: from then on its frames come by
	 * vb_nic_uplink_rx().
	 */
	bool (*uplink_open)(void *arg);
	/* Sends frames there. Returns how many were sent. */
	unsigned (*uplink_tx)(void *arg, const struct iovec *frames, unsigned count);
};

/* Management datagrams: what comes to QP 1, which is no QP of the NIC's. */
struct vb_host_gsi {
	/* The rx right is held. path: src is the sender. */
	void (*came)(void *arg, const struct vb_path *path, const uint8_t *frame, uint32_t bytes);
};

/* Something that went wrong, in words. Texts are "" if there is nothing to say. */
struct vb_finding {
	struct vb_finding *next; /* for its owner */
	char what[256];
	char why[320];
	const char *look; /* what to look at */
	const void *site; /* where in the application it was posted; NULL: not known */
	uint32_t pid;	  /* of the peer's process on this host; 0: not known */
};

/* Somebody who wants to know why something failed. */
struct vb_host_insight {
	/* Takes the finding over (free()). Called with the QP locked: keeps it, and tells later. */
	void (*found)(void *arg, struct vb_finding *finding);
};

/* Somebody who wants to see each packet, once vb_nic_watch() was called (way/watch/watch.h). */
struct vb_host_capture {
	/* Valid during the call, which may wait a little. */
	void (*see)(void *arg, const struct vb_record *record);
};

/* Another order than the usual one, as far as the standard leaves it open (order.h). */
struct vb_host_order {
	uint64_t seed;
	bool iba; /* of octets, too, where adapters have an order that the specification has not */
	/* Lets so much time pass. Any lock may be held. */
	void (*dawdle)(void *arg, uint64_t ns);
};

struct vb_nic_host {
	void *arg;
	struct vb_host_clock clock;
	struct vb_host_wire wire;
	struct vb_host_process process;
	const struct vb_host_stamps *stamps;
	const struct vb_host_groups *groups;
	const struct vb_host_peers *peers;
	const struct vb_host_direct *direct;
	const struct vb_host_sharing *sharing;
	const struct vb_host_memory *memory;
	const struct vb_host_paging *paging;
	const struct vb_host_foreign *foreign;
	const struct vb_host_xrc *xrc;
	const struct vb_host_segment *segment;
	const struct vb_host_gsi *gsi;
	const struct vb_host_insight *insight;
	const struct vb_host_capture *capture;
	const struct vb_host_order *order;
	void *export_memory; /* zeros for a struct vb_export; NULL: the NIC makes its own */
	uint32_t line_kbps; /* how fast the wire is; 0: no congestion control */
	bool no_dcqcn; /* CNPs are sent and counted, and not heeded */
	bool no_wire; /* QPs can only reach peers */
};

/* Checks that each group is complete, or absent if it is optional: vb_check(). */
void vb_nic_host_check(const struct vb_nic_host *host);

#endif
