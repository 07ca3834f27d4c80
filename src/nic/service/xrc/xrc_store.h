/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_NIC_XRC_STORE_H
#define VB_NIC_XRC_STORE_H

/*
 * XRC domains and what belongs to them, in memory that all processes of a hub share and none owns:
 * so a domain and its receive QPs outlive their makers (docs/xrc.md).
 *
 * Pure: takes no lock and allocates nothing. Callers hold the store's lock unless stated otherwise.
 * A process is identified by a slot that it holds; slot 0 is none.
 *
 * Any of these processes may write anything there at any time. So values are read once, and checked
 * before they are used: no index leads outside the memory, and nothing waits for a value. Invalid
 * attributes are read as a receive QP in error. Flags are octets, since not every octet is a valid
 * bool.
 */

#include <infiniband/verbs.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/path.h"
#include "nic/core/limits.h"
#include "nic/data/migration.h"
#include "nic/service/xrc/xrc_notes.h"

#define VB_XRC_MAGIC 0x58524321u
#define VB_XRC_VERSION 4u

enum {
	VB_XRC_DOMAINS_MAX = 1024,
	VB_XRC_RCVS_MAX = 4096,
	VB_XRC_INDEX_FIRST = 2, /* QPNs 0 and 1 are special */
};

/* The attributes of a receive QP. */
struct vb_xrc_attr {
	struct ibv_qp_attr attr; /* including qp_state */
	struct vb_path path;	 /* to the sender; each process chooses its own source port */
	/* an alternate path was loaded; otherwise `migration` is not used */
	bool has_alt;
	struct vb_migration migration;
};

/* A receive QP. Its number is slot 0's, with its index. */
struct vb_xrc_rcv {
	_Atomic uint64_t word; /* its progress: vb_xrc_at */
	_Atomic uint32_t seq;  /* of at: odd while it is being written */
	_Atomic uint32_t life; /* counts how often it was made or reset */
	_Atomic uint64_t domain; /* id of its domain; 0: there is no such QP */
	struct vb_xrc_attr at;
	uint16_t open[VB_SLOTS]; /* how often a process has it open */
	uint8_t registered[VB_SLOTS]; /* 1: by ibv_reg_xrc_rcv_qp() of that process */
	uint8_t kept;		 /* 1: only its domain keeps it (ibv_alloc_xrc_rcv_qp()) */
};

struct vb_xrc_domain {
	_Atomic uint64_t id; /* never reused; 0: a free place */
	uint8_t has_file;
	uint64_t dev, ino; /* of its file */
	uint16_t refs[VB_SLOTS];
};

struct vb_xrc_store {
	uint32_t magic, version;
	uint64_t last_id;
	uint32_t next_rcv;
	uint32_t domains_top, rcvs_top; /* places from here on were never used, as most */
	_Alignas(64) _Atomic uint32_t held; /* for the host's lock */
	struct vb_xrc_domain domain[VB_XRC_DOMAINS_MAX];
	struct vb_xrc_rcv rcv[VB_XRC_RCVS_MAX];
	struct vb_xrc_srqs srqs;
	struct vb_xrc_log log;
};

/* The progress of a receive QP, as one word. */
struct vb_xrc_at {
	uint32_t epsn, msn;
	uint16_t slot; /* of the NIC that took the last packet; 0: none has come */
};

static inline uint64_t vb_xrc_word(struct vb_xrc_at at)
{
	return (uint64_t)at.slot << 48 | (uint64_t)(at.msn & 0xffffff) << 24 |
	       (at.epsn & 0xffffff);
}

static inline struct vb_xrc_at vb_xrc_at(uint64_t word)
{
	return (struct vb_xrc_at){
		.epsn = word & 0xffffff,
		.msn = word >> 24 & 0xffffff,
		.slot = (uint16_t)(word >> 48),
	};
}

/* Initializes memory that is all zero. */
void vb_xrc_store_init(struct vb_xrc_store *store);

static inline bool vb_xrc_store_is_ours(const struct vb_xrc_store *store)
{
	return store->magic == VB_XRC_MAGIC && store->version == VB_XRC_VERSION;
}

/* The lock's last holder died with it: completes what it had half written, in error. */
void vb_xrc_store_repair(struct vb_xrc_store *store);

/*
 * ibv_open_xrcd(3). file: {dev, ino}, or NULL for a private domain. flags: O_CREAT, O_EXCL. ENOENT:
 * it does not exist, and O_CREAT is not given; EEXIST: it exists, and O_EXCL is given; EINVAL: no
 * file and no O_CREAT; ENOMEM: too many.
 */
int vb_xrc_domain_open(struct vb_xrc_store *store, const uint64_t file[2], int flags,
		       uint16_t slot, uint64_t *id);

/* Drops a reference; with the last one the domain ends, and its receive QPs with it. */
void vb_xrc_domain_close(struct vb_xrc_store *store, uint64_t id, uint16_t slot);

/* Makes a receive QP in RESET, open for that process. ENOMEM: too many. */
int vb_xrc_rcv_make(struct vb_xrc_store *store, uint64_t domain, uint16_t slot, uint32_t *qpn);

/* ibv_open_qp(3): EINVAL if that domain has no such QP. */
int vb_xrc_rcv_open(struct vb_xrc_store *store, uint64_t domain, uint32_t qpn, uint16_t slot);

/* Closes a QP; it ends when no process needs it. */
void vb_xrc_rcv_close(struct vb_xrc_store *store, uint32_t qpn, uint16_t slot);

/*
 * For processes that need a receive QP without opening it (OFED's calls). EINVAL: that domain has
 * no such QP; unregister: or the process is not registered. Registering twice counts once.
 */
int vb_xrc_rcv_register(struct vb_xrc_store *store, uint64_t domain, uint32_t qpn, uint16_t slot);
int vb_xrc_rcv_unregister(struct vb_xrc_store *store, uint64_t domain, uint32_t qpn,
			  uint16_t slot);

/* Sets the attributes; begin: going to RTR starts at attr->rq_psn. */
void vb_xrc_rcv_write(struct vb_xrc_rcv *rcv, const struct vb_xrc_attr *at, bool begin);

/* Sets the state only. */
void vb_xrc_rcv_state_set(struct vb_xrc_rcv *rcv, enum ibv_qp_state state);

/* Reads the attributes. */
void vb_xrc_rcv_get(const struct vb_xrc_rcv *rcv, struct vb_xrc_attr *at);

/* The same without the lock; false if they are being written. */
bool vb_xrc_rcv_read(const struct vb_xrc_rcv *rcv, struct vb_xrc_attr *at, uint32_t *seq);

/* The entry of that number, which may be unused; NULL: invalid number. Without the lock. */
static inline struct vb_xrc_rcv *vb_xrc_rcv_of(struct vb_xrc_store *store, uint32_t qpn)
{
	if (qpn < VB_XRC_INDEX_FIRST || qpn >= VB_XRC_RCVS_MAX)
		return NULL;
	return &store->rcv[qpn];
}

/* How many entries to look at. Without the lock. */
static inline uint32_t vb_xrc_rcvs(const struct vb_xrc_store *store)
{
	uint32_t top = *(const volatile uint32_t *)&store->rcvs_top;

	return top < VB_XRC_RCVS_MAX ? top : VB_XRC_RCVS_MAX;
}

static inline uint32_t vb_xrc_domains(const struct vb_xrc_store *store)
{
	uint32_t top = *(const volatile uint32_t *)&store->domains_top;

	return top < VB_XRC_DOMAINS_MAX ? top : VB_XRC_DOMAINS_MAX;
}

/* Removes all references of a dead process. Returns true if it had any. */
bool vb_xrc_collect(struct vb_xrc_store *store, uint16_t slot);

/* Which processes have references? Returns false if none. Without the lock, so approximate. */
bool vb_xrc_holders(const struct vb_xrc_store *store, bool holders[VB_SLOTS]);

#endif
