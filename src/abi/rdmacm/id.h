/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_ABI_RDMACM_ID_H
#define VB_ABI_RDMACM_ID_H

/*
 * Ids and channels as the library has them. What is behind the public part is guarded by the lock
 * of the device's connection manager (vb_cma_lock()), if nothing else is said; nobody waits with
 * it. Only the acknowledging of events has a lock of its own, since one waits for that.
 */

#include <pthread.h>
#include <rdma/rdma_cma.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "cm/id.h"
#include "hub/proto.h"

/* What has been done with an id (rdma_cm(7)). */
enum vb_cma_state {
	VB_CMA_IDLE,
	VB_CMA_BOUND,	       /* it has a port; a device too, if its address is one's */
	VB_CMA_ADDR_RESOLVED,
	VB_CMA_ROUTE_RESOLVED,
	VB_CMA_CONNECTING,     /* has asked, or is asked */
	VB_CMA_CONNECTED,
	VB_CMA_LISTENING,
	VB_CMA_DISCONNECTING,
	VB_CMA_OVER,
};

struct vb_cma_event {
	struct rdma_cm_event pub;
	TAILQ_ENTRY(vb_cma_event) link; /* in its channel; once fetched, in its id's unacked */
	uint64_t fetched_ns;
	pid_t fetched_by; /* the thread, under `verbatim check` */
	struct vb_cma_id *id;	    /* who is told: the listener, of a request */
	struct vb_cma_group *group; /* MULTICAST_JOIN: which was joined; NULL: it has been left */
	uint8_t private_data[256];
};

TAILQ_HEAD(vb_cma_events, vb_cma_event);

struct vb_cma_channel {
	struct rdma_event_channel pub;
	struct vb_cma_events events;
	pid_t pid; /* whose it is: the child of a fork has the same descriptor */
};

/* What an option sets (rdma_set_option(3)). */
struct vb_cma_options {
	bool reuse, afonly;
	uint8_t tos, ack_timeout; /* of the latter 0: as the path has it */
};

/* What two sides agree on. */
struct vb_cma_agreed {
	uint8_t responder_resources, initiator_depth;
	uint8_t retry_count, rnr_retry_count;
	uint32_t psn, peer_psn; /* with which the peer begins, and this side */
	uint32_t qpn, peer_qpn;
	bool srq;
	uint8_t path_mtu; /* enum ibv_mtu */
	uint8_t ack_timeout;
	uint32_t qkey; /* of UD */
};

/* What rdma_create_ep() was given for later. */
struct vb_cma_ep {
	void *connect; /* what rdma_connect() says first */
	size_t connect_bytes;
	struct ibv_qp_init_attr *init_attr; /* of a listener: its children's */
};

/* Membership of a multicast group. */
struct vb_cma_group {
	struct vb_cma_group *next;
	struct sockaddr_storage addr;
	union ibv_gid mgid;
	bool send_only, attached;
};

struct vb_cma_id {
	struct rdma_cm_id pub;
	enum vb_cma_state state;
	bool sync; /* it has a channel of its own, and calls wait for their events */
	bool passive, accepted; /* it came with a request; that has been accepted */
	struct vb_cm_id *cm;	    /* NULL: nothing was said or heard yet */
	struct vb_hub_bind bind;    /* port 0: none */
	uint32_t scope;		    /* the interface of a link-local address */
	struct vb_path path;	    /* once the address is resolved */
	uint8_t sgid_index;
	bool connected_once;
	bool told_over; /* DISCONNECTED was told: TIMEWAIT_EXIT follows */
	uint8_t peer_rnr_retry; /* what the REP asks of the peer */
	struct vb_cma_options options;
	struct vb_cma_agreed agreed;
	struct ibv_ece local_ece, remote_ece;
	struct vb_cma_group *groups;
	struct ibv_sa_path_rec path_rec;
	struct vb_cma_lookup *lookup; /* under way; NULL: none */
	struct rdma_addrinfo *found;  /* by the last one; NULL: nothing */
	struct vb_cma_ep ep;
	LIST_ENTRY(vb_cma_id) link;   /* of those that the application has */
	const void *site; /* under `verbatim check`: where in the application it was made */
	struct vb_cma_events unacked; /* fetched. Guarded by the lock of acknowledgements */
};

LIST_HEAD(vb_cma_ids, vb_cma_id);

static inline struct vb_cma_id *vb_cma_of(struct rdma_cm_id *id)
{
	return (struct vb_cma_id *)id;
}

/* NULL with errno. channel NULL: one of its own. The application has it once it is listed. */
struct vb_cma_id *vb_cma_id_make(struct rdma_event_channel *channel, void *context,
				 enum rdma_port_space ps, enum ibv_qp_type type);

/* The application has it from now on, and no more. Locked. */
void vb_cma_id_list(struct vb_cma_id *id);
void vb_cma_id_unlist(struct vb_cma_id *id);

/* The device has failed: each that is at it is told. Locked. */
void vb_cma_ids_fail(void);

/* All ids of a channel get another one, with what is queued for them. Locked. */
void vb_cma_ids_move(struct vb_cma_channel *from, struct vb_cma_channel *to);

/* It listens no more; whoever asked and was not fetched is refused. Not locked. */
void vb_cma_id_deafen(struct vb_cma_id *id);

/* Frees an id of which nobody was told; its cm part has been let go of. */
void vb_cma_id_free(struct vb_cma_id *id);

#endif
