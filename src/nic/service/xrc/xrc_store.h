/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_NIC_XRC_STORE_H
#define VB_NIC_XRC_STORE_H

/*
 * What XRC domains are and what belongs to them, in memory that all processes of a hub share and
 * that none of them owns: so a domain and its receive QPs outlive whoever made them (docs/xrc.md).
 *
 * Pure: no lock is taken here and nothing is allocated. Whoever calls has the store's lock, unless
 * a function says otherwise. Processes are known by a slot that they hold; slot 0 is nobody.
 *
 * Any of these processes may write anything there, at any time. So what is read is read once, and
 * taken for what it is only after it was looked at: no number leads beyond the memory, and nothing
 * is waited for. What no process of ours would have written, a receive QP in error stands for.
 * Flags are octets, since not every octet is a bool.
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
	VB_XRC_INDEX_FIRST = 2, /* QPNs 0 and 1 mean others */
};

/* What a receive QP is set to. */
struct vb_xrc_attr {
	struct ibv_qp_attr attr; /* qp_state among it */
	struct vb_path path;	 /* to the sender, whose source port is each owner's to choose */
	bool has_alt;		 /* an alternate path was loaded, else the rest is of no use */
	struct vb_migration migration;
};

/* A receive QP. Its number is slot 0's, with its place for index. */
struct vb_xrc_rcv {
	_Atomic uint64_t word; /* how far it has come: vb_xrc_at */
	_Atomic uint32_t seq;  /* of attr: odd while it is being written */
	_Atomic uint32_t life; /* counts how often it was made or reset */
	_Atomic uint64_t domain; /* its number; 0: there is no such QP */
	struct vb_xrc_attr at;
	uint16_t open[VB_SLOTS]; /* how often a process has it open */
	uint8_t registered[VB_SLOTS]; /* 1: that process said so by ibv_reg_xrc_rcv_qp() */
	uint8_t kept;		 /* 1: nobody but its domain has it (ibv_alloc_xrc_rcv_qp()) */
};

struct vb_xrc_domain {
	_Atomic uint64_t id; /* its number, never used again; 0: a free place */
	uint8_t has_file;
	uint64_t dev, ino; /* of that file */
	uint16_t refs[VB_SLOTS];
};

struct vb_xrc_store {
	uint32_t magic, version;
	uint64_t last_id;
	uint32_t next_rcv;
	uint32_t domains_top, rcvs_top; /* no place beyond was ever used: most never are */
	_Alignas(64) _Atomic uint32_t held; /* of the lock: the host's */
	struct vb_xrc_domain domain[VB_XRC_DOMAINS_MAX];
	struct vb_xrc_rcv rcv[VB_XRC_RCVS_MAX];
	struct vb_xrc_srqs srqs;
	struct vb_xrc_log log;
};

/* How far a receive QP has come, as one word. */
struct vb_xrc_at {
	uint32_t epsn, msn;
	uint16_t slot; /* whose NIC took the last packet; 0: none has come */
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

/* Of memory that is all zeros. */
void vb_xrc_store_init(struct vb_xrc_store *store);

static inline bool vb_xrc_store_is_ours(const struct vb_xrc_store *store)
{
	return store->magic == VB_XRC_MAGIC && store->version == VB_XRC_VERSION;
}

/* The lock's last holder died with it: what it had half written is made whole, in error. */
void vb_xrc_store_repair(struct vb_xrc_store *store);

/*
 * ibv_open_xrcd(3). file: {dev, ino}, or NULL for a domain of one's own. flags: O_CREAT, O_EXCL.
 * ENOENT: there is none and O_CREAT is not given; EEXIST: there is, and O_EXCL is; EINVAL: no file
 * and no O_CREAT; ENOMEM: too many.
 */
int vb_xrc_domain_open(struct vb_xrc_store *store, const uint64_t file[2], int flags,
		       uint16_t slot, uint64_t *id);

/* One reference less; with the last one the domain goes, and its receive QPs with it. */
void vb_xrc_domain_close(struct vb_xrc_store *store, uint64_t id, uint16_t slot);

/* A receive QP in RESET, open for that process. ENOMEM: too many. */
int vb_xrc_rcv_make(struct vb_xrc_store *store, uint64_t domain, uint16_t slot, uint32_t *qpn);

/* ibv_open_qp(3): EINVAL if that domain has no such QP. */
int vb_xrc_rcv_open(struct vb_xrc_store *store, uint64_t domain, uint32_t qpn, uint16_t slot);

/* Nobody needs it any more, and the last one who did says so: then it goes. */
void vb_xrc_rcv_close(struct vb_xrc_store *store, uint32_t qpn, uint16_t slot);

/*
 * Processes that need a receive QP without having it open (OFED's calls). EINVAL: that domain has
 * no such QP; unregister: nor is the process registered. Registering twice is registering once.
 */
int vb_xrc_rcv_register(struct vb_xrc_store *store, uint64_t domain, uint32_t qpn, uint16_t slot);
int vb_xrc_rcv_unregister(struct vb_xrc_store *store, uint64_t domain, uint32_t qpn,
			  uint16_t slot);

/* Set what it is set to; begin: with RTR it begins at attr->rq_psn. */
void vb_xrc_rcv_write(struct vb_xrc_rcv *rcv, const struct vb_xrc_attr *at, bool begin);

/* The state alone. */
void vb_xrc_rcv_state_set(struct vb_xrc_rcv *rcv, enum ibv_qp_state state);

/* What it is set to. */
void vb_xrc_rcv_get(const struct vb_xrc_rcv *rcv, struct vb_xrc_attr *at);

/* Without the lock: false if it is being written. */
bool vb_xrc_rcv_read(const struct vb_xrc_rcv *rcv, struct vb_xrc_attr *at, uint32_t *seq);

/* The QP of that number, which may be none by now; NULL: there can be none. Without the lock. */
static inline struct vb_xrc_rcv *vb_xrc_rcv_of(struct vb_xrc_store *store, uint32_t qpn)
{
	if (qpn < VB_XRC_INDEX_FIRST || qpn >= VB_XRC_RCVS_MAX)
		return NULL;
	return &store->rcv[qpn];
}

/* How many places are worth a look. Without the lock. */
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

/* That process is dead: its references are taken back. True if it had any. */
bool vb_xrc_collect(struct vb_xrc_store *store, uint16_t slot);

/* Which processes have references? False: none. Without the lock: as of this moment or so. */
bool vb_xrc_holders(const struct vb_xrc_store *store, bool holders[VB_SLOTS]);

#endif
