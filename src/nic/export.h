/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_NIC_EXPORT_H
#define VB_NIC_EXPORT_H

/*
 * What a NIC tells its peers: whether it sleeps, its QPs, its keys. The owner writes; peers map it
 * read-only, and read an entry by its sequence number (odd: being changed; changed meanwhile: try
 * again). It is large and mostly untouched: only what is used costs memory.
 */

#include <stdatomic.h>
#include <stdint.h>

#include "nic/limits.h"

struct vb_export_key {
	_Atomic uint32_t seq;
	_Atomic uint32_t key;	 /* 0: no region here */
	_Atomic uint64_t pd;	 /* a PD's number: never 0, never used again */
	_Atomic uint64_t iova;	 /* the address that SGEs and RETHs use for the first octet */
	_Atomic uint64_t bytes;
	_Atomic uint64_t base;	 /* where that octet is */
	_Atomic uint32_t access; /* IBV_ACCESS_* */
	_Atomic int32_t shared;	 /* the fd through which the memory can be mapped, -1: none */
	_Atomic uint64_t shared_offset;
	uint64_t reserved;
};

struct vb_export_qp {
	_Atomic uint32_t seq;
	_Atomic uint32_t qpn; /* 0: no QP here that others may write and read through */
	_Atomic uint64_t pd;
	_Atomic uint32_t dqpn;	 /* the only one it listens to */
	_Atomic uint32_t access; /* IBV_ACCESS_REMOTE_* that it grants */
	uint32_t reserved[10];
};

struct vb_export {
	uint32_t magic, version;
	uint32_t pid;
	_Alignas(64) _Atomic uint32_t sleep_epoch; /* odd: ring the bell */
	_Alignas(64) uint64_t nonce; /* whoever reads it here by process_vm_readv() may do so */
	_Alignas(4096) struct vb_export_qp qp[VB_SLOTS_PER_NIC_MAX][VB_INDICES];
	_Alignas(4096) struct vb_export_key key[VB_MRS_MAX];
};

#define VB_EXPORT_MAGIC 0x76627870u
#define VB_EXPORT_VERSION 1u

_Static_assert(sizeof(struct vb_export_key) == 64, "an entry is a cache line");
_Static_assert(sizeof(struct vb_export_qp) == 64, "an entry is a cache line");

#endif
