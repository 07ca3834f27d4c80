/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_HUB_PROTO_H
#define VB_HUB_PROTO_H

/*
 * The messages between a process and its hub: structs of fixed size, one per SOCK_SEQPACKET
 * message, in host order (both ends are on one machine), some with file descriptors. docs/hub.md
 * describes the exchanges. Pure: no system calls.
 */

#include <stddef.h>
#include <stdint.h>

enum {
	VB_HUB_PROTOCOL = 11, /* part of the socket's name: other versions never meet */
	VB_HUB_MAGIC = 0x48756221,
	VB_HUB_SLOTS_MAX = 1024, /* slot 0 is the hub's own */
	VB_HUB_INDICES = 1 << 14,
	VB_HUB_COMM_BYTES = 16,
	VB_HUB_HOST_BYTES = 64,
	VB_HUB_FDS_MAX = 4,	 /* file descriptors of one message */
	VB_HUB_KEEPER_FDS = 3,	 /* both ends of a socket pair, and ... */
	VB_HUB_KEEPER_STORE = 2, /* ... the memory of the XRC domains */
	VB_HUB_GRANT_FDS = 2,	 /* UDP socket, name */
	VB_HUB_MARK_FDS = 1,	 /* name, the first time on a connection */
	VB_HUB_OFFER_FDS = 2,	 /* token, export */
	VB_HUB_REACH_FDS = 3,	 /* ring, its line, and the name of the asker's slot */
	VB_HUB_RING_FDS = 4,	 /* ring, its line; token and export of the sender */
	VB_HUB_WHY_BYTES = 192,
	VB_HUB_ROWS_MAX = 32,
	VB_HUB_LINKS_MAX = 64, /* per client */
	VB_HUB_GID_BYTES = 16,
	VB_HUB_RECORDS_FDS = 1,
	VB_HUB_BIND_FDS = 1, /* the name of the asker's slot */
	VB_HUB_CAPTURE_FDS = 1,
	VB_HUB_MAD_BYTES = 280, /* of the frame that carries a MAD */
	VB_HUB_CM_ROWS_MAX = 16,
	VB_HUB_SAMPLE_FDS = 1,
	VB_HUB_MEASURE_S_MAX = 3600,
};

enum vb_hub_type {
	VB_HUB_HELLO = 1, /* client: first message; with the keeper, if it has it */
	VB_HUB_WELCOME,	  /* hub: the keeper, or an error */
	VB_HUB_MARK,	  /* client: I hold this slot, and this is its next index */
	VB_HUB_LEASE,	  /* asks for a slot */
	VB_HUB_GRANT,	  /* the slot, its UDP socket and its name, or an error */
	VB_HUB_STATUS,	  /* asks for the hub's state */
	VB_HUB_SUMMARY,	  /* the first part of that */
	VB_HUB_ROWS,	  /* leased slots, in as many messages as needed */
	VB_HUB_STOP,	  /* asks the hub to leave */
	VB_HUB_STOPPED,	  /* it leaves, or an error */
	VB_HUB_OFFER,	  /* client: my token and my export, for others to reach me */
	VB_HUB_REACH,	  /* asks to send to another's slot through this ring */
	VB_HUB_REACHED,	  /* the other's token and export, or an error */
	VB_HUB_RING,	  /* hub: another sends to your slot through this ring */
	VB_HUB_FAIL,	  /* asks to let a process's device fail */
	VB_HUB_FAILED,	  /* it has been told, or an error */
	VB_HUB_FATAL,	  /* hub: let your device fail */
	VB_HUB_DOMAINS,	  /* asks for the memory of the XRC domains */
	VB_HUB_MEMORY,	  /* that memory, or an error */
	VB_HUB_NOTED,	  /* the log of XRC domains has news; hub: look at it */
	VB_HUB_LINK,	  /* client: by this link I reach another */
	VB_HUB_LINKS,	  /* answer to STATUS: those of one client */
	VB_HUB_WHO,	  /* asks who holds a slot */
	VB_HUB_WHOSE,	  /* his token, of which the kernel knows whose it is, or an error */
	VB_HUB_BIND,	  /* asks for a port of rdma_cm's; of a client: I have this one */
	VB_HUB_BOUND,	  /* which port it is, or an error */
	VB_HUB_UNBIND,	  /* client: I have it no more */
	VB_HUB_MAD,	  /* a MAD for QP 1, to its process; of a client: to one of this host */
	VB_HUB_RECORDS,	  /* client: the records of what I have connected by rdma_cm */
	VB_HUB_CM,	  /* asks what processes have of rdma_cm */
	VB_HUB_CM_ROWS,	  /* that, in as many messages as needed */
	VB_HUB_CAPTURE,	  /* asks a process for a capture, by this socket; answer: FAILED */
	VB_HUB_SAMPLE,	  /* asks all clients how they are, and where to say so; hub: the same */
	VB_HUB_SAMPLES,	  /* so many were asked */
	VB_HUB_SAMPLED,	  /* client, to whoever asked: its sample, in a file in memory */
	VB_HUB_TYPES
};

/* A process, as it sees itself (hub/program.h). */
struct vb_hub_program {
	uint64_t pid_ns; /* inode number of its PID namespace; 0: unknown */
	uint32_t pid, reserved;
	char comm[VB_HUB_COMM_BYTES]; /* name of the program; this and the next NUL-terminated */
	char host[VB_HUB_HOST_BYTES]; /* its host name: a container has its own */
};

struct vb_hub_hello {
	struct vb_hub_program program;
	uint32_t ports, reserved; /* so many BIND and UNBIND follow, of what it had before */
};

struct vb_hub_lease {
	struct vb_hub_program program;
};

struct vb_hub_welcome {
	uint32_t error;
	char why[VB_HUB_WHY_BYTES]; /* the error in words, NUL-terminated; may be empty */
};

struct vb_hub_mark {
	uint32_t slot, next_index;
};

struct vb_hub_grant {
	uint32_t error, slot, next_index;
	char why[VB_HUB_WHY_BYTES];
};

struct vb_hub_summary {
	uint64_t age_ms, leases, strays; /* since its start; datagrams to no slot in use */
	uint64_t rings;			 /* handed out since then */
	uint32_t pid;			 /* the hub's, in the asker's namespace; 0 in the message */
	uint32_t sockets, clients, rows, links;
	struct vb_hub_program program; /* the hub */
};

struct vb_hub_row {
	uint64_t age_ms; /* of the lease, or of the hub if the lease is older */
	uint32_t slot, next_index;
	uint32_t pid; /* the holder's, in the asker's namespace; 0 in the message */
	uint32_t shm; /* 1: the holder can be reached through shared memory */
	struct vb_hub_program program; /* the holder; its pid 0: not known yet */
};

struct vb_hub_rows {
	uint32_t count, reserved;
	struct vb_hub_row row[VB_HUB_ROWS_MAX];
};

struct vb_hub_stop {
	uint32_t force; /* 1: even if clients are connected */
};

struct vb_hub_stopped {
	uint32_t error, clients;
};

/* Why a process is not reached through shared memory (docs/shm.md). */
enum vb_hub_link_why {
	VB_HUB_LINK_SHM, /* it is */
	VB_HUB_LINK_SET, /* VERBATIM_LINK=udp */
	VB_HUB_LINK_PCAP,
	VB_HUB_LINK_FAULT,
	VB_HUB_LINK_NET,
	VB_HUB_LINK_FSIZE,  /* RLIMIT_FSIZE */
	VB_HUB_LINK_NOBODY, /* no process has the slot */
	VB_HUB_LINK_AFAR,   /* not under this hub */
	VB_HUB_LINK_FAILED, /* see error */
	VB_HUB_LINK_WHYS
};

struct vb_hub_offered {
	uint32_t shm; /* 0: not through shared memory */
	uint32_t why; /* ... for this reason */
};

struct vb_hub_link {
	uint32_t from, to;   /* slots; to 0: an address elsewhere, in gid */
	uint32_t why, there; /* there 1: the reason lies with the other process */
	uint32_t none;	     /* 1: not reached at all (VERBATIM_LINK=shm) */
	uint32_t error;
	uint8_t gid[VB_HUB_GID_BYTES]; /* zero unless to is 0 */
};

struct vb_hub_links {
	uint32_t count, reserved;
	struct vb_hub_link link[VB_HUB_LINKS_MAX];
};

struct vb_hub_reach {
	uint32_t from, to; /* slots: the asker's, another client's */
};

struct vb_hub_reached {
	uint32_t error;
	uint32_t proven;	       /* 1: the maker of the token made the offer, too */
	uint32_t why, there;	       /* with EOPNOTSUPP, as in vb_hub_link */
	struct vb_hub_program program; /* the other process; its pid 0: none */
};

struct vb_hub_ring {
	uint32_t from, to; /* slots: another client's, the receiver's */
	uint32_t proven;   /* as above, of the other client */
};

struct vb_hub_fail {
	uint64_t pid_ns; /* as the process sees itself, and as in VB_HUB_ROWS */
	uint32_t pid, reserved;
};

struct vb_hub_failed {
	uint32_t error;
};

struct vb_hub_memory {
	uint32_t error;
};

struct vb_hub_who {
	uint32_t slot;
};

struct vb_hub_whose {
	uint32_t error;
};

enum vb_hub_bind_flags {
	VB_HUB_BIND_REUSE = 1 << 0,   /* beside others that say so, too */
	VB_HUB_BIND_AFONLY = 1 << 1,  /* an IPv6 address is not for IPv4 */
	VB_HUB_BIND_LISTENS = 1 << 2, /* takes requests: that needs the port alone */
	VB_HUB_BIND_FLAGS = (1 << 3) - 1,
};

/* A port that a process has for an id (rdma_bind_addr(3)). */
struct vb_hub_bind {
	uint32_t slot, id; /* of the process, which numbers what it binds as it likes */
	uint32_t space;	   /* enum rdma_port_space */
	uint32_t port;	   /* host order; 0: any that nobody has */
	uint32_t flags;	   /* enum vb_hub_bind_flags */
	uint32_t scope;	   /* the interface of a link-local address, else 0 */
	uint32_t backlog;  /* of who listens, for status */
	uint8_t gid[VB_HUB_GID_BYTES]; /* the address; ::ffff:0.0.0.0 and :: for all */
};

/* EADDRINUSE, EADDRNOTAVAIL: as rdma_bind_addr(3); ENOSPC: too many. */
struct vb_hub_bound {
	uint32_t error, port;
};

struct vb_hub_unbind {
	uint32_t slot, id, space, port; /* as it was bound */
};

/* MADs that wait for one who does not read, the hub or a client; later ones are lost. */
enum { VB_HUB_MADS_MAX = 16384 };

/* A frame with a MAD, and the path that it came by or is to go. */
struct vb_hub_mad {
	uint32_t slot; /* of whom it is for; of a client: its own */
	uint32_t flow_label, ifindex;
	uint16_t sport;
	uint8_t tclass, hop_limit;
	uint8_t src[VB_HUB_GID_BYTES], dst[VB_HUB_GID_BYTES];
	uint8_t frame[VB_HUB_MAD_BYTES];
};

/* Space 0: all. Else who listens there at the port that is nearest to this. */
struct vb_hub_cm {
	uint32_t space, port;
};

enum vb_hub_cm_what {
	VB_HUB_CM_LISTENS, /* bind */
	VB_HUB_CM_IDS,	   /* so many ids in that state (enum vb_cm_state), with that bind.gid */
	VB_HUB_CM_OTHERS,  /* so many more ids */
	VB_HUB_CM_UNACKED, /* so many events are not acknowledged */
	VB_HUB_CM_WHATS
};

struct vb_hub_cm_row {
	uint32_t what, slot; /* one of the holder's */
	uint32_t state, count;
	uint32_t pid, reserved;	       /* as in vb_hub_row */
	struct vb_hub_bind bind;
	struct vb_hub_program program; /* the holder */
};

struct vb_hub_cm_rows {
	uint32_t count; /* fewer than there is room for: these are the last ones */
	uint32_t left;	/* so many listeners are left out */
	struct vb_hub_cm_row row[VB_HUB_CM_ROWS_MAX];
};

/* How a client is at this moment: the file's contents are the asker's and the client's matter. */
struct vb_hub_sample {
	uint32_t measure_s; /* when the asker asks again, at the latest; 0: that is not known */
};

struct vb_hub_samples {
	uint32_t asked;
};

struct vb_hub_sampled {
	struct vb_hub_program program; /* who answers */
};

struct vb_hub_msg {
	uint32_t magic;
	uint16_t version, type;
	union {
		struct vb_hub_hello hello;
		struct vb_hub_welcome welcome;
		struct vb_hub_mark mark;
		struct vb_hub_lease lease;
		struct vb_hub_grant grant;
		struct vb_hub_summary summary;
		struct vb_hub_rows rows;
		struct vb_hub_stop stop;
		struct vb_hub_stopped stopped;
		struct vb_hub_offered offer;
		struct vb_hub_reach reach;
		struct vb_hub_reached reached;
		struct vb_hub_ring ring;
		struct vb_hub_fail fail;
		struct vb_hub_failed failed;
		struct vb_hub_memory memory;
		struct vb_hub_link link;
		struct vb_hub_links links;
		struct vb_hub_who who;
		struct vb_hub_whose whose;
		union { /* of samples */
			struct vb_hub_sample ask;
			struct vb_hub_samples asked;
			struct vb_hub_sampled taken;
		} sample;
		union { /* of rdma_cm */
			struct vb_hub_bind bind;
			struct vb_hub_bound bound;
			struct vb_hub_unbind unbind;
			struct vb_hub_mad mad;
			struct vb_hub_cm ask;
			struct vb_hub_cm_rows rows;
		} cm;
	};
};

/* Returns an all-zero message of that type, with its header filled in. */
struct vb_hub_msg vb_hub_msg_make(enum vb_hub_type type);

/* Size of a message of that type; 0 if there is no such type. */
size_t vb_hub_msg_bytes(unsigned type);

/*
 * Checks a received message with its number of descriptors, and copies it to msg. Returns 0, or
 * EPROTO with msg untouched if size, magic, version, type, descriptors or a value is invalid. After
 * 0, every slot is in 1 to 1023, every index below VB_HUB_INDICES, every text printable and
 * NUL-terminated.
 */
int vb_hub_msg_parse(struct vb_hub_msg *msg, const void *data, size_t bytes, unsigned fds);

/*
 * Copies a text into a message such that it passes the check: printable, NUL-terminated,
 * zero-filled.
 */
void vb_hub_text_copy(char *to, size_t bytes, const char *text);

/* The same for a program's name. */
void vb_hub_comm_copy(char comm[VB_HUB_COMM_BYTES], const char *name);

#endif
