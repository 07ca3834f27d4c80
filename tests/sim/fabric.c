/* SPDX-License-Identifier: BSD-2-Clause */
#include "fabric.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/check.h"
#include "base/prng.h"
#include "base/psn.h"
#include "nic/control/nic.h"
#include "nic/core/nic.h"
#include "nic/way/disorder.h"
#include "nic/way/receive.h"
#include "wire/bytes.h"
#include "wire/icrc.h"
#include "wire/packet.h"

enum { BATCH_MAX = 64 };

struct fabric_flight {
	uint64_t at_ns, order;
	unsigned to;
	struct vb_path path;
	uint16_t hint;
	uint32_t bytes;
	uint8_t data[];
};

static bool happens(struct fabric *f, uint32_t ppm)
{
	return ppm && vb_prng_next(&f->rng) % 1000000 < ppm;
}

void fabric_init(struct fabric *f, uint64_t seed, const struct fabric_faults *faults)
{
	f->rng = seed;
	f->faults = *faults;
	f->delay_ns = 1000 + vb_prng_next(&f->rng) % 50000;
	f->frames_max = vb_prng_next(&f->rng) % 4 ? VB_LINK_BURST_FRAMES_MAX
						  : 1 + vb_prng_next(&f->rng) % 8;
	f->now_ns = 1;
}

void fabric_fini(struct fabric *f)
{
	for (unsigned i = 0; i < f->count; i++)
		free(f->heap[i]);
	free(f->heap);
	f->heap = NULL;
	f->count = 0;
}

void fabric_calm(struct fabric *f)
{
	f->faults = (struct fabric_faults){ .queue_max = UINT32_MAX };
}

/* --- frames on their way, by time of arrival --- */

static bool before(const struct fabric_flight *a, const struct fabric_flight *b)
{
	return a->at_ns != b->at_ns ? a->at_ns < b->at_ns : a->order < b->order;
}

static void heap_add(struct fabric *f, struct fabric_flight *flight)
{
	unsigned i = f->count++;

	if (f->count > f->size) {
		f->size = f->size ? 2 * f->size : 256;
		f->heap = realloc(f->heap, f->size * sizeof(struct fabric_flight *));
		vb_check(f->heap);
	}
	for (; i && before(flight, f->heap[(i - 1) / 2]); i = (i - 1) / 2)
		f->heap[i] = f->heap[(i - 1) / 2];
	f->heap[i] = flight;
}

static struct fabric_flight *heap_take(struct fabric *f)
{
	struct fabric_flight *first = f->heap[0], *last = f->heap[--f->count];
	unsigned i = 0, child;

	while ((child = 2 * i + 1) < f->count) {
		if (child + 1 < f->count && before(f->heap[child + 1], f->heap[child]))
			child++;
		if (!before(f->heap[child], last))
			break;
		f->heap[i] = f->heap[child];
		i = child;
	}
	f->heap[i] = last;
	return first;
}

/* --- sending --- */

static void show(const struct fabric *f, const char *what, unsigned nic, const uint8_t *data,
		 uint32_t bytes)
{
	struct vb_pkt pkt;

	if (!f->trace)
		return;
	if (vb_pkt_parse(&pkt, data, bytes) != VB_PARSE_OK) {
		printf("%12llu %s nic %u: damaged\n", (unsigned long long)f->now_ns, what, nic);
		return;
	}
	printf("%12llu %s nic %u: %s dqpn %06x psn %06x%s bytes %u", (unsigned long long)f->now_ns,
	       what, nic, vb_op_info(pkt.opcode)->name, pkt.dqpn, pkt.psn,
	       pkt.ackreq ? " ackreq" : "", pkt.payload_bytes);
	if (vb_op_info(pkt.opcode)->headers & VB_H_RETH)
		printf(" va %llx dma %u", (unsigned long long)pkt.reth.va, pkt.reth.bytes);
	if (vb_op_info(pkt.opcode)->headers & VB_H_AETH)
		printf(" syndrome %02x msn %u", pkt.aeth.syndrome, pkt.aeth.msn);
	printf("\n");
}

static int find_nic(const struct fabric *f, const uint8_t gid[VB_GID_BYTES])
{
	for (unsigned i = 0; i < f->nics; i++)
		for (unsigned j = 0; j < FABRIC_GIDS; j++)
			if (!memcmp(f->gid[i][j], gid, VB_GID_BYTES))
				return (int)i;
	return -1;
}

/*
 * Flip up to three bits, which CRC-32 always notices. Over IPv4 the identification is not seen,
 * and 2^-16 of damaged frames pass for one with another identification (wire/icrc.h): those are
 * lost here instead. False: lost.
 */
static bool damage(struct fabric *f, struct fabric_flight *flight)
{
	f->damaged++;
	for (unsigned n = 1 + vb_prng_next(&f->rng) % 3; n; n--) {
		uint64_t at = vb_prng_next(&f->rng) % (8ull * flight->bytes);

		flight->data[at / 8] ^= (uint8_t)(1 << at % 8);
	}
	if (vb_gid_is_ipv4(flight->path.src) &&
	    vb_icrc_check(&flight->path, flight->data, flight->bytes, flight->hint, NULL)) {
		f->undetectable++;
		return false;
	}
	return true;
}

static bool is_cut(const struct fabric *f, const struct vb_path *path, const uint8_t *data)
{
	uint32_t qpn = vb_be32_get(data + 4) & VB_PSN_MASK;

	if (!f->cut.on || (qpn != f->cut.qpn[0] && qpn != f->cut.qpn[1]))
		return false;
	for (unsigned i = 0; i < 2; i++)
		if (!memcmp(path->src, f->cut.gid[i], VB_GID_BYTES) &&
		    !memcmp(path->dst, f->cut.gid[1 - i], VB_GID_BYTES))
			return true;
	return false;
}

static void launch(struct fabric *f, unsigned to, uint64_t at_ns, const struct vb_path *path,
		   uint16_t hint, const uint8_t *data, uint32_t bytes)
{
	struct fabric_flight *flight;

	if (f->dead[to] || is_cut(f, path, data) || f->queued[to] >= f->faults.queue_max ||
	    happens(f, f->faults.loss) ||
	    (f->dead_qpn && f->dead_qpn == (vb_be32_get(data + 4) & VB_PSN_MASK))) {
		f->lost++;
		show(f, "lost ", to, data, bytes);
		return;
	}
	flight = malloc(sizeof(*flight) + bytes);
	vb_check(flight);
	*flight = (struct fabric_flight){
		.at_ns = at_ns, .order = f->order++, .to = to,
		.path = *path, .hint = hint, .bytes = bytes,
	};
	memcpy(flight->data, data, bytes);
	if (happens(f, f->faults.reorder))
		flight->at_ns += 1 + vb_prng_next(&f->rng) % f->faults.late_ns;
	if (happens(f, f->faults.hint))
		flight->hint = (uint16_t)vb_prng_next(&f->rng);
	if (happens(f, f->faults.corrupt) && !damage(f, flight)) {
		free(flight);
		return;
	}
	f->queued[to]++;
	heap_add(f, flight);
}

static uint32_t take_bytes(uint8_t *out, uint32_t bytes, const struct iovec **iov, size_t *used)
{
	uint32_t at = 0;

	while (at < bytes) {
		size_t n = vb_min_u64((*iov)->iov_len - *used, bytes - at);

		memcpy(out + at, (const uint8_t *)(*iov)->iov_base + *used, n);
		at += (uint32_t)n;
		*used += n;
		if (*used == (*iov)->iov_len) {
			++*iov;
			*used = 0;
		}
	}
	return bytes;
}

int fabric_tx(struct fabric *f, unsigned from, const struct vb_burst *burst)
{
	static uint8_t frame[VB_LINK_BURST_BYTES_MAX];
	const struct iovec *iov = burst->iov;
	size_t used = 0;
	int first = find_nic(f, burst->path.dst), to = first;
	uint64_t at_ns;

	vb_check(burst->frames && burst->frames <= VB_LINK_BURST_FRAMES_MAX);
	vb_check(burst->iovcnt <= VB_LINK_BURST_IOV_MAX);
	vb_check(burst->last_bytes && burst->last_bytes <= burst->frame_bytes);
	if (happens(f, f->faults.full))
		return EAGAIN;
	if (to < 0)
		return 0;
	at_ns = vb_max_u64(f->now_ns + f->delay_ns, f->busy_ns[first]);
	for (uint16_t i = 0; i < burst->frames; i++) {
		bool last = i + 1 == burst->frames;
		uint32_t bytes = last ? burst->last_bytes : burst->frame_bytes;

		take_bytes(frame, bytes, &iov, &used);
		f->sent++;
		show(f, "sent ", from, frame, bytes);
		if (f->steer)
			to = f->steer(f, (unsigned)first, frame);
		if (to < 0)
			continue;
		launch(f, (unsigned)to, at_ns, &burst->path, i, frame, bytes);
		if (happens(f, f->faults.dup))
			launch(f, (unsigned)to, at_ns, &burst->path, i, frame, bytes);
	}
	vb_check(iov == burst->iov + burst->iovcnt);
	f->busy_ns[first] = at_ns + burst->frames * 100ull;
	return 0;
}

/* --- time --- */

uint64_t fabric_next_ns(const struct fabric *f)
{
	return f->count ? f->heap[0]->at_ns : UINT64_MAX;
}

static void arrive(struct fabric *f, unsigned to, const struct vb_frame *frames, unsigned n)
{
	f->arrived[to] = true;
	vb_check(vb_nic_rx_try(f->nic[to]));
	/* Some applications poll, some do not. */
	if (f->disorder)
		vb_disorder_rx(f->nic[to], frames, n);
	else if (to % 2)
		vb_nic_rx_polled(f->nic[to], frames, n);
	else
		vb_nic_rx(f->nic[to], frames, n);
	vb_nic_rx_drop(f->nic[to]);
}

/* All that is due for the same NIC arrives together. */
static void deliver(struct fabric *f)
{
	struct fabric_flight *flights[BATCH_MAX];
	struct vb_frame frames[BATCH_MAX];
	unsigned n = 0, to = f->heap[0]->to;

	while (n < BATCH_MAX && f->count && f->heap[0]->at_ns <= f->now_ns &&
	       f->heap[0]->to == to) {
		struct fabric_flight *flight = flights[n] = heap_take(f);

		frames[n++] = (struct vb_frame){
			.path = flight->path, .data = flight->data,
			.bytes = flight->bytes, .id_hint = flight->hint,
		};
		show(f, "comes", to, flight->data, flight->bytes);
	}
	f->queued[to] -= n;
	if (!f->dead[to])
		arrive(f, to, frames, n);
	while (n)
		free(flights[--n]);
}

void fabric_step(struct fabric *f)
{
	while (f->count && f->heap[0]->at_ns <= f->now_ns)
		deliver(f);
}
