/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_NIC_SAMPLE_H
#define VB_NIC_SAMPLE_H

/*
 * What a NIC says of itself at one moment, for whoever watches (run/process/sample.h). Nothing is
 * counted for it on the path of a message: a sample reads where the queues have got to, and what
 * the requests that are still in them were. So the process that takes a sample pays, and only then.
 */

#include <stddef.h>
#include <stdint.h>

#include "base/path.h"
#include "nic/core/stats.h"

struct vb_nic;

enum vb_sample_way { VB_SAMPLE_NOWHERE, VB_SAMPLE_WIRE, VB_SAMPLE_RING };

enum { VB_SAMPLE_MAGIC = 0x76625371, VB_SAMPLE_SERVICE_BYTES = 12, VB_SAMPLE_DEVICE_BYTES = 64 };

/*
 * From post to when the application had the completion, of requests that have one: all that were
 * measured, and what was so between the last two looks (0: nobody looks).
 */
struct vb_sample_latency {
	uint64_t count, sum_ns;
	uint64_t p50_ns, p99_ns, max_ns;
};

/*
 * A QP. Sums begin with the QP, and never become smaller; a QP that was reset goes on with its own.
 */
struct vb_sample_qp {
	uint32_t qpn, dqpn; /* dqpn 0: not connected */
	uint32_t peer_pid;  /* of the process at the other end of a ring, as it sees itself; 0 */
	uint8_t state;	    /* enum ibv_qp_state */
	uint8_t way;	    /* enum vb_sample_way */
	uint8_t rnr_waits;  /* 1: it waits because the peer had no receive request */
	uint8_t credits_known;
	char service[VB_SAMPLE_SERVICE_BYTES]; /* "RC" */
	uint8_t dst[VB_GID_BYTES];
	/*
	 * Work requests that were carried out; their octets. If newer requests took the places of
	 * some since the last sample, the octets are an estimate: as many on average as of all that
	 * are in the send queue.
	 */
	uint64_t done, octets;
	uint64_t served;      /* the peer's messages; UD: receive requests used */
	uint32_t outstanding; /* posted, and not carried out */
	uint32_t unsent;      /* ... of these: not sent at all */
	uint32_t receives;    /* receive requests that wait; 0 with an SRQ */
	uint32_t credits;     /* messages that the peer takes yet, if known */
	uint32_t resent;      /* packets */
	uint32_t timeouts;
	uint32_t rnr_seen, rnr_sent, naks_seen, naks_sent;
	uint64_t rtt_ns; /* of the path; 0: not known, as by rings */
	struct vb_sample_latency latency;
};

struct vb_sample {
	uint32_t magic, bytes; /* of a QP's entry, so that another build's is not misread */
	uint32_t stats;	       /* of the counters */
	uint32_t pds, cqs, srqs, regions;
	uint32_t qps;
	char device[VB_SAMPLE_DEVICE_BYTES]; /* its name, which whoever sends the sample fills in */
	uint64_t origin;   /* of this NIC, which no other has */
	uint64_t taken_ns; /* CLOCK_MONOTONIC */
	uint64_t stat[VB_STATS];
	struct vb_sample_qp qp[]; /* by QPN */
};

/*
 * Takes one, for the caller to free(). NULL: no memory. Takes the rx right and QPs' locks.
 * measure_s: the next is taken that soon at the latest, and has the latencies of the time between
 * (data/latency.h); 0: that is not known, and nothing is measured for it.
 */
struct vb_sample *vb_nic_sample(struct vb_nic *nic, uint32_t measure_s, size_t *bytes);

/* Only the counters, and whose they are: without QPs. Never waits for another thread for long. */
void vb_nic_sample_sums(struct vb_nic *nic, struct vb_sample *sums);

#endif
