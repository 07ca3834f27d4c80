/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_NIC_NIC_HOST_H
#define VB_NIC_NIC_HOST_H

/*
 * What a NIC needs from its surroundings, in groups. What every NIC needs stands in struct
 * vb_nic_host by value. What a host may have or not is a pointer: NULL, or a group that lives as
 * long as the NIC. No group has gaps: vb_nic_host_check() sees to that, so to have the group is to
 * have all of it.
 *
 * The first argument of every function is vb_nic_host.arg. Any thread calls, with locks of the NIC
 * held unless it says otherwise. int: 0 or a positive errno.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include "base/frame.h"
#include "base/path.h"

struct vb_foreign;
struct vb_peer;
struct vb_segment_table;
struct vb_xrc_store;

/* ibv_advise_mr(3) */
enum vb_fetch { VB_FETCH_LOOK, VB_FETCH_READ, VB_FETCH_WRITE };

/* How others can map a region: the octets from skip to the last cut ones. file -1: they cannot. */
struct vb_shared {
	int32_t file;	 /* a descriptor of this process */
	uint32_t id;	 /* no other region has it */
	uint64_t offset; /* where in the file the region's first octet is, or would be */
	uint16_t skip, cut;
	/* Belongs to the host. item NULL: it knows nothing of the region. */
	void *item;
	struct vb_shared *next, **link;
};

/* --- what every NIC needs --- */

struct vb_host_clock {
	/* Monotonic time in ns. */
	uint64_t (*now_ns)(void *arg);
	/* The NIC's deadline moved forward: whoever sleeps until it must look again. */
	void (*kick)(void *arg);
	/* A thread without any lock has waited for so long: let it pause a little. */
	void (*pause)(void *arg, uint64_t waited_ns);
};

/* Slots, and the link that each has; src_slot says whose link is meant. */
struct vb_host_wire {
	/* Lease a further slot. next_index: where the indices of its last owner ended. */
	int (*lease)(void *arg, uint16_t *slot, uint32_t *next_index);

	/* As in struct vb_link_ops, but that claim may always be called. */
	int (*tx)(void *arg, uint16_t src_slot, const struct vb_burst *burst);
	void *(*claim)(void *arg, uint16_t src_slot, const struct vb_path *path,
		       uint16_t *first_id);
	void (*unclaim)(void *arg, uint16_t src_slot, void *claim);
	unsigned (*burst_frames_max)(void *arg);
	uint32_t (*frame_bytes_max)(void *arg, const struct vb_path *path);
	uint16_t (*sport)(void *arg, uint16_t src_slot, const struct vb_path *path, uint16_t slot,
			  enum vb_whom whom);
	int (*sport_choose)(void *arg, uint16_t src_slot, const struct vb_path *path, uint16_t slot,
			    uint16_t port); /* EOPNOTSUPP: no port can be chosen */

	/* Something is connected or addressed that is not on this host. */
	void (*afar)(void *arg, const uint8_t gid[VB_GID_BYTES]);
};

/* The process around the NIC. */
struct vb_host_process {
	/* Add 1 to (or take 1 from) the count of events that make an event fd readable. */
	void (*signal)(void *arg, int fd);
	void (*unsignal)(void *arg, int fd);
	/* Are these octets mapped (and writable)? 0, or EFAULT. */
	int (*probe)(void *arg, const void *addr, size_t bytes, bool write);
};

/* --- what a host may have --- */

/* What completions are stamped with, in ns. Without it no CQ stamps. */
struct vb_host_stamps {
	uint64_t (*raw_ns)(void *arg);	/* a clock that nobody sets or steers */
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
	 * Set up the rings towards a slot of this host (vb_peer_tx_set), unless they are. Returns
	 * at once; EINPROGRESS: it is asked for, and vb_peer_answered() follows. A peer whose
	 * process is dead makes room for the slot's next owner (vb_peer_unlist).
	 */
	int (*reach)(void *arg, uint16_t own_slot, uint16_t slot);
	/* Wait for that answer, but not for long. Called without any lock of the NIC. */
	void (*await)(void *arg, uint16_t own_slot, uint16_t slot);
	/* Wake the process of a peer. */
	void (*bell)(void *arg, struct vb_peer *peer);
	/* Nobody uses what was mapped for this peer any more, but its lanes may be looked at still:
	 * they must read as zeros. */
	void (*release)(void *arg, struct vb_peer *peer);
};

/* One-sided operations between processes of this host (direct.h). */
struct vb_host_direct {
	/*
	 * Move the octets of these pieces to or from an address of the peer's process, in ascending
	 * order and the last octets last; true if all were moved. `paged`: what the pages forbid
	 * their owner is forbidden (on-demand paging); otherwise their protection may be ignored,
	 * since they are pinned.
	 */
	bool (*write)(void *arg, struct vb_peer *peer, uint64_t address, const struct iovec *iov,
		      unsigned count, bool paged);
	bool (*read)(void *arg, struct vb_peer *peer, uint64_t address, const struct iovec *iov,
		     unsigned count, bool paged);
	/* A part of a file that the peer's process has open, to read and write; NULL: refused. */
	void *(*map)(void *arg, struct vb_peer *peer, int file, uint64_t offset, uint64_t bytes);
	void (*unmap)(void *arg, void *memory, uint64_t bytes);
	/* The owner's side: might the system let the peer reach into this process? */
	bool (*may_reach)(void *arg, struct vb_peer *peer);
	/* We have waited that long for the peer to leave our memory: pause. False: it is dead. */
	bool (*tarry)(void *arg, struct vb_peer *peer, uint64_t waited_ns);
};

/* Regions that peers can map. */
struct vb_host_sharing {
	/*
	 * Make memory that is being registered such that others can map it, or find that it is;
	 * false: they cannot. If true, `item` is set; the file may be found later, and
	 * vb_mr_found() told, till then it is -1.
	 */
	bool (*share)(void *arg, void *addr, size_t bytes, struct vb_shared *shared);
	/* The end of it. True: others should unmap it. */
	bool (*unshare)(void *arg, const struct vb_shared *shared);
};

/* Memory that the application has not mapped itself. */
struct vb_host_memory {
	/*
	 * The device's memory: so many zeros, aligned to a page, the same at each call, which
	 * `share` knows. NULL: not to be had.
	 */
	void *(*device)(void *arg, size_t bytes);
	/*
	 * Map a part of a file of the application's: EBADF, EINVAL: no such descriptor, or no such
	 * part, or iova lies in its page where offset does not; EOPNOTSUPP: it cannot be mapped so;
	 * ENOMEM.
	 */
	int (*map_file)(void *arg, int fd, uint64_t offset, uint64_t bytes, uint64_t iova,
			bool write, void **memory);
	void (*unmap)(void *arg, void *memory, uint64_t bytes);
};

/* On-demand paging, where pages may be missing. Without it guards do (base/guard.h). */
struct vb_host_paging {
	/*
	 * Bring octets of the application's into memory, for reading or writing, or only look
	 * whether they are mapped. EFAULT, ENOMEM.
	 */
	int (*fetch)(void *arg, void *addr, size_t bytes, enum vb_fetch how);
	/*
	 * memcpy in ascending order and the last octets last; and whether an octet can be written
	 * (its page is there then). Nobody is sent a signal. False: a part is not mapped, or
	 * forbidden.
	 */
	bool (*copy)(void *arg, void *to, const void *from, size_t bytes);
	bool (*touch)(void *arg, void *at);
};

/* What is imported from another process (import.h). */
struct vb_host_foreign {
	/* Its octets from this address there on, to read and write; NULL: they cannot be mapped. */
	void *(*map)(void *arg, struct vb_foreign *foreign, uint64_t address, uint64_t bytes);
	void (*unmap)(void *arg, void *memory, uint64_t bytes);
	/* Nobody uses the foreign any more: free it. */
	void (*leave)(void *arg, struct vb_foreign *foreign);
};

/* XRC: memory that all NICs of the hub share (xrc_store.h). */
struct vb_host_xrc {
	struct vb_xrc_store *(*store)(void *arg); /* the same at each call; NULL: not to be had */
	/*
	 * The store's lock, which survives its holder's death. Who locks waits for other processes,
	 * so not with a QP locked or a right held; try_lock returns false instead.
	 */
	void (*lock)(void *arg);
	bool (*try_lock)(void *arg);
	void (*unlock)(void *arg);
	/* Something was noted in its log: have all NICs call vb_xrc_look(). */
	void (*tell)(void *arg);
};

/* The Ethernet segment (segment.h). It needs peers too. */
struct vb_host_segment {
	/* The table that all NICs of the hub share; NULL: not to be had, so no RAW_PACKET QP. */
	struct vb_segment_table *(*table)(void *arg);
	/* The interface that the user named, if there is one: from then on its frames come by
	 * vb_nic_uplink_rx(). */
	bool (*uplink_open)(void *arg);
	/* Send frames there. Returns how many were sent. */
	unsigned (*uplink_tx)(void *arg, const struct iovec *frames, unsigned count);
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
	void *export_memory; /* zeros for a struct vb_export; NULL: the NIC makes its own */
	bool no_wire; /* nothing is connected or addressed that is not reached by peers */
};

/* Each group must be whole, or absent if it may be: vb_check(). */
void vb_nic_host_check(const struct vb_nic_host *host);

#endif
