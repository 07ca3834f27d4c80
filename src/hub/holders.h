/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_HUB_HOLDERS_H
#define VB_HUB_HOLDERS_H

/*
 * Who holds UDP port 4791 in this network namespace, as far as /proc shows: for users, after a hub
 * has found it taken. There are three steps, so that each can be tested with text: read the
 * kernel's tables, find the processes behind their entries, describe them.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#include "hub/proto.h"

enum {
	VB_HOLDERS_UIDS = 4,
	VB_HOLDERS_HUBS = 4,
	VB_HOLDERS_PROCESSES = 3,
	VB_HOLDERS_INODES = 64,
};

/* A listening hub, as its name says and as the kernel reports, in this namespace's numbers. */
struct vb_holders_hub {
	uint32_t name_uid;
	int protocol;
	pid_t pid;    /* 0: it has none here */
	uint32_t uid; /* of its process, as seen from here */
};

struct vb_holders_process {
	pid_t pid;
	char comm[VB_HUB_COMM_BYTES];
	bool stopped;
};

struct vb_holders {
	bool known;	  /* the kernel's tables were readable */
	bool rxe;	  /* Linux's rdma_rxe is loaded */
	uint32_t self;	  /* our effective uid */
	uint32_t nobody;  /* vb_users_nobody() */
	unsigned sockets; /* at the port */
	unsigned uids;
	uint32_t uid[VB_HOLDERS_UIDS]; /* their owners, as seen from here */
	unsigned hubs;
	struct vb_holders_hub hub[VB_HOLDERS_HUBS];
	unsigned slots;	 /* names of slots that are open */
	bool own_slots;	 /* ... some of our own uid and protocol */
	int old_slots;	 /* ... of our own uid, but of this other protocol; 0: none */
	/* of the port's sockets and the slots' names: who has one open holds the port */
	unsigned inodes;
	uint64_t inode[VB_HOLDERS_INODES];
	unsigned processes; /* that have one of these open; process[] has the first few */
	struct vb_holders_process process[VB_HOLDERS_PROCESSES];
};

/* Reads /proc/net/udp or udp6; /proc/net/unix. For hubs: name and protocol. */
void vb_holders_udp_read(struct vb_holders *holders, FILE *udp);
void vb_holders_unix_read(struct vb_holders *holders, FILE *names);

/* Does all steps but the last, from /proc and by asking the kernel who listens. */
void vb_holders_look(struct vb_holders *holders);

/* Does any process of this uid hold a slot, as far as /proc shows? */
bool vb_holders_any_slot(void);

/* "UDP port 4791 is taken here ...": by which programs, and what to do. Returns text. */
const char *vb_holders_words(const struct vb_holders *holders, char *text, size_t bytes);

/* vb_failed_because() with those words. Returns EADDRINUSE. */
int vb_holders_failed(void);

#endif
