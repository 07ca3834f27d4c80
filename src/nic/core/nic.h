/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_NIC_NIC_H
#define VB_NIC_NIC_H

/*
 * The NIC: objects, queues and memory of one process, deterministic. Frames come in by
 * vb_nic_rx(), leave by host->tx(), time is what host->now_ns() says. There are locks here, but
 * no system calls: what needs the kernel (waking, descriptors, leases) is the host's.
 *
 * Every object begins with the libibverbs structure of the same name, so the pointer that the
 * application holds is the object; `abi` fills in function tables, mutexes and condition
 * variables, everything else in that structure is set here.
 *
 * Functions return 0 or a positive errno, unless they say otherwise; on failure nothing has
 * changed. Any thread may call any function on any object that is not being destroyed.
 *
 * Lock order: rx right -> qp -> srq -> rq -> cq (poll, push) -> channel, ctx, timer, key table.
 */

#include <infiniband/verbs.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/uio.h>

#include "base/frame.h"
#include "base/lent.h"
#include "base/lock.h"
#include "base/path.h"
#include "nic/core/limits.h"
#include "nic/core/persona.h"
#include "nic/core/stats.h"

struct vb_nic;
struct vb_peer;
struct vb_qp;
struct vb_foreign;
struct vb_xrc_store;
struct vb_segment_table;

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

/* What a NIC needs from its surroundings. */
struct vb_nic_host {
	void *arg;

	/* Zeros for a struct vb_export, which outlives the NIC; NULL: the NIC makes its own. */
	void *export_memory;

	/* Monotonic time in ns. */
	uint64_t (*now_ns)(void *arg);

	/*
	 * What completions are stamped with, in ns: a clock that nobody sets or steers, and the
	 * time of day. Both, or none: then no CQ stamps.
	 */
	uint64_t (*raw_ns)(void *arg);
	uint64_t (*wall_ns)(void *arg);

	/* Send frames that come from the QP slot src_slot; as vb_link_ops.tx. */
	int (*tx)(void *arg, uint16_t src_slot, const struct vb_burst *burst);
	unsigned (*burst_frames_max)(void *arg);

	/* As vb_link_ops.claim and unclaim, of the link that src_slot has. Both, or none. */
	void *(*claim)(void *arg, uint16_t src_slot, const struct vb_path *path,
		       uint16_t *first_id);
	void (*unclaim)(void *arg, uint16_t src_slot, void *claim);

	/* As vb_link_ops.frame_bytes_max. */
	uint32_t (*frame_bytes_max)(void *arg, const struct vb_path *path);

	/* As vb_link_ops.sport, of the link that src_slot has. NULL: always 4791. */
	uint16_t (*sport)(void *arg, uint16_t src_slot, const struct vb_path *path, uint16_t slot,
			  enum vb_whom whom);

	/* As vb_link_ops.sport_choose, of that link. NULL: EOPNOTSUPP. */
	int (*sport_choose)(void *arg, uint16_t src_slot, const struct vb_path *path, uint16_t slot,
			    uint16_t port);

	/* The NIC's deadline moved forward: whoever sleeps until it must look again. */
	void (*kick)(void *arg);

	/* Add 1 to (or take 1 from) the count of events that make an event fd readable. */
	void (*signal)(void *arg, int fd);
	void (*unsignal)(void *arg, int fd);

	/*
	 * As vb_link_ops.join and leave; both or none: there is no multicast. leave: with the rx
	 * right held.
	 */
	int (*join)(void *arg, const uint8_t gid[VB_GID_BYTES], uint32_t ifindex);
	void (*leave)(void *arg, const uint8_t gid[VB_GID_BYTES]);

	/*
	 * Shared memory; reach, ring_bell and release or none. reach: set up the rings towards a
	 * slot of this host (vb_peer_tx_set), unless they are; 0 or a positive errno, at once;
	 * EINPROGRESS: it is asked for, and vb_peer_answered() follows. A peer whose process is
	 * dead makes room for the slot's next owner (vb_peer_unlist). await: wait for that answer,
	 * but not for long; without any lock of the NIC. NULL: nobody waits. ring_bell: wake the
	 * process of a peer. release: nobody uses what was mapped for this peer any more, but its
	 * lanes may be looked at still: let there be zeros.
	 */
	int (*reach)(void *arg, uint16_t own_slot, uint16_t slot);
	void (*await)(void *arg, uint16_t own_slot, uint16_t slot);
	/* Something is connected or addressed that is not on this host; NULL: who cares. */
	void (*afar)(void *arg, const uint8_t gid[VB_GID_BYTES]);
	void (*ring_bell)(void *arg, struct vb_peer *peer);
	void (*release)(void *arg, struct vb_peer *peer);
	/*
	 * One-sided operations on the memory of a peer's process (direct.h); all four or none.
	 * `paged`: what its pages forbid the owner is forbidden (on-demand paging); otherwise
	 * nobody has to mind, as where pages are pinned.
	 * vm_write, vm_read: move the octets of these pieces to or from an address there, in
	 * ascending order and the last octets last; true if all were moved. map: a part of a file
	 * that the peer's process has open, to read and write; NULL if that is not to be had.
	 */
	bool (*vm_write)(void *arg, struct vb_peer *peer, uint64_t address,
			 const struct iovec *iov, unsigned count, bool paged);
	bool (*vm_read)(void *arg, struct vb_peer *peer, uint64_t address, const struct iovec *iov,
			unsigned count, bool paged);
	void *(*map)(void *arg, struct vb_peer *peer, int file, uint64_t offset, uint64_t bytes);
	void (*unmap)(void *arg, void *memory, uint64_t bytes);

	/*
	 * The other side of it. may_reach: might the peer be let into this process by itself? NULL:
	 * all are. tarry: we have waited that long for one to come out again; pause a little, and
	 * false if it is dead. NULL: nobody dies.
	 */
	bool (*may_reach)(void *arg, struct vb_peer *peer);
	bool (*tarry)(void *arg, struct vb_peer *peer, uint64_t waited_ns);

	/*
	 * XRC: memory that all NICs of the hub share (xrc_store.h), the same at each call, NULL:
	 * not to be had; and its lock, which survives its holder's death. All three or none.
	 */
	struct vb_xrc_store *(*xrc_store)(void *arg);
	void (*xrc_lock)(void *arg);
	void (*xrc_unlock)(void *arg);
	/* Something was noted in its log: have all call vb_xrc_look(). NULL: nobody else asks. */
	void (*xrc_tell)(void *arg);

	/*
	 * The Ethernet segment (segment.h): the table that all NICs of the hub share; NULL, or the
	 * function returns NULL: there is no segment here, and so no RAW_PACKET QP.
	 * uplink_open: the interface that the user named, if he did; from then on its frames come
	 * by vb_nic_uplink_rx(). uplink_tx: send frames there, how many were sent. Both or none.
	 */
	struct vb_segment_table *(*segment)(void *arg);
	bool (*uplink_open)(void *arg);
	unsigned (*uplink_tx)(void *arg, const struct iovec *frames, unsigned count);

	bool no_wire; /* nothing is connected or addressed that is not reached that way */

	/* Lease a further slot: 0 or a positive errno. */
	int (*lease)(void *arg, uint16_t *slot, uint32_t *next_index);

	/*
	 * Make memory that is being registered such that others can map it, or find that it is;
	 * NULL, or false: they cannot. If true, `item` is set; the file may be found later, and
	 * vb_mr_found() told, till then it is -1. And the end of it; true: others should unmap it.
	 */
	bool (*share)(void *arg, void *addr, size_t bytes, struct vb_shared *shared);
	bool (*unshare)(void *arg, const struct vb_shared *shared);

	/* Are these octets mapped (and writable)? 0, or EFAULT. */
	int (*probe_memory)(void *arg, const void *addr, size_t bytes, bool write);

	/*
	 * Bring octets of the application's into memory, for reading or writing, or only look
	 * whether they are mapped. 0, EFAULT, or ENOMEM. NULL: nobody can.
	 */
	int (*fetch)(void *arg, void *addr, size_t bytes, enum vb_fetch how);

	/*
	 * Where pages may be missing and nobody may be sent a signal (on-demand paging): memcpy in
	 * ascending order and the last octets last, and whether an octet can be written (its page
	 * is there then). False: a part of it is not mapped, or forbidden. NULL, both of them:
	 * guards do (base/guard.h).
	 */
	bool (*copy_paged)(void *arg, void *to, const void *from, size_t bytes);
	bool (*touch_paged)(void *arg, void *at);

	/*
	 * The device's memory: so many zeros, aligned to a page, the same at each call; `share`
	 * knows them. NULL, both of them: there is none.
	 */
	void *(*device_memory)(void *arg, size_t bytes);

	/*
	 * Map a part of a file of the application's: 0; EBADF, EINVAL: no such descriptor, or no
	 * such part, or iova lies in its page where offset does not; EOPNOTSUPP: it cannot be
	 * mapped so; ENOMEM. `unmap` ends it. NULL: nothing can.
	 */
	int (*map_file)(void *arg, int fd, uint64_t offset, uint64_t bytes, uint64_t iova,
			bool write, void **memory);

	/*
	 * Memory of another process, whose file's octets from this address there on can be mapped
	 * here, to read and write: where they are, or NULL. `unmap` ends it. leave: nobody uses
	 * the foreign any more, free it. NULL where nothing is imported (import.h).
	 */
	void *(*foreign_map)(void *arg, struct vb_foreign *foreign, uint64_t address,
			     uint64_t bytes);
	void (*foreign_leave)(void *arg, struct vb_foreign *foreign);
};

/* One entry of the GID table. All zero: an empty entry. */
struct vb_gid_entry {
	uint8_t gid[VB_GID_BYTES];
	uint32_t ifindex;
	uint32_t mtu_bytes; /* of the interface */
	bool loopback;
	bool no_carrier; /* the interface is up, but nothing leaves it */
};

/* seed: whoever does not know it can guess no key; a given one makes everything repeatable. */
int vb_nic_create(struct vb_nic **nic, const struct vb_nic_host *host, uint64_t seed);

/*
 * The process ends, perhaps without destroying its QPs: let nothing be owed, and let peers know
 * that it leaves by itself. Never waits for a lock.
 */
void vb_nic_farewell(struct vb_nic *nic);

/* Only with all contexts closed. */
void vb_nic_destroy(struct vb_nic *nic);

/*
 * Replace the GID table (count at most VB_GIDS_MAX). Indices in use must keep their meaning. The
 * port is up as long as there is an entry with a carrier. Contexts are told of what has changed:
 * GID_CHANGE, PORT_ACTIVE, PORT_ERR.
 */
void vb_nic_gids_set(struct vb_nic *nic, const struct vb_gid_entry *entries, unsigned count);

/* A copy of one entry; EINVAL if index >= VB_GIDS_MAX. An empty entry is returned as zeros. */
int vb_nic_gid_get(struct vb_nic *nic, unsigned index, struct vb_gid_entry *entry);

/* node_guid and sys_image_guid are the host's business: big-endian, derived from a MAC. */
void vb_nic_guid_set(struct vb_nic *nic, uint64_t guid_be);

/* Before anybody asks what the device is; unless told, it is neutral. */
void vb_nic_persona_set(struct vb_nic *nic, const struct vb_persona *persona);
const struct vb_persona *vb_nic_persona(const struct vb_nic *nic);

/*
 * The size of the link's receive buffer, which a peer's is taken to resemble: what may be on its
 * way to a peer goes by it. Unless told, VB_RX_BUFFER_BYTES.
 */
void vb_nic_rx_buffer_set(struct vb_nic *nic, uint32_t bytes);

/*
 * ibv_query_device(3), ibv_query_device_ex(3), ibv_query_port(3): truthful. What is said of the
 * device never changes, and no lock is taken for it.
 */
void vb_nic_query_device(struct vb_nic *nic, struct ibv_device_attr *attr);
void vb_nic_query_device_ex(struct vb_nic *nic, struct ibv_device_attr_ex *attr);
int vb_nic_query_port(struct vb_nic *nic, unsigned port, struct ibv_port_attr *attr);

/* The device's own clock, by which completions are stamped; EOPNOTSUPP: it has none. */
int vb_nic_query_clock(struct vb_nic *nic, uint64_t *raw_ns);

/* The same, and the time of day at that moment, since 1970. */
VB_LENT int vb_nic_query_times(struct vb_nic *nic, uint64_t *raw_ns, uint64_t *wall_ns);

/*
 * Take in frames that were addressed to slots of this NIC. One thread at a time (the rx right).
 * Answers them as well: acknowledgements, read responses, further requests. Returns what time it
 * was when it began.
 */
uint64_t vb_nic_rx(struct vb_nic *nic, const struct vb_frame *frames, unsigned count);

/*
 * The same by an application's thread that polls, and is likely to answer at once: an ACK may wait
 * for that until the NIC's deadline (vb_nic_deadline_ns), which moves forward for it.
 */
uint64_t vb_nic_rx_polled(struct vb_nic *nic, const struct vb_frame *frames, unsigned count);

/* The rx right: take it before vb_nic_rx(); destroying a QP takes it for a moment too. */
bool vb_nic_rx_try(struct vb_nic *nic);
void vb_nic_rx_drop(struct vb_nic *nic);

/* Do what time demands (retransmit, resend after RNR ...). Any thread. */
void vb_nic_turn(struct vb_nic *nic);

/* When vb_nic_turn() should be called next: ns as now_ns(), UINT64_MAX: never. No lock. */
uint64_t vb_nic_deadline_ns(const struct vb_nic *nic);

struct vb_stats *vb_nic_stats(struct vb_nic *nic);

/*
 * The device breaks down, for good: every QP goes to the error state, so that what is outstanding
 * completes, and contexts are told (IBV_EVENT_DEVICE_FATAL). What completes can be polled, objects
 * can be destroyed; who asks for anything else asks has_failed first, and gets EIO. Any thread.
 */
void vb_nic_fail(struct vb_nic *nic);
VB_LENT bool vb_nic_has_failed(const struct vb_nic *nic);

#endif
