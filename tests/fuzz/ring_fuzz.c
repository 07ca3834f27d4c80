/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A ring at work while somebody scribbles over the memory that both ends share.
 *
 * An input is a list of steps of four octets: what (modulo STEPS), and three to say more. Until
 * the first scribble every frame must come out as it went in; after it, anything may come out, but
 * nothing is touched outside the ring, positions only go on, and an end that has declared the ring
 * broken stays with that.
 */
#include <string.h>
#include <sys/mman.h>

#include "base/check.h"
#include "base/ring.h"
#include "fuzz.h"

enum { STEP_PRODUCE, STEP_BURST, STEP_CONSUME, STEP_DRAIN, STEP_TELL, STEP_MARK, STEP_TAIL,
       STEP_SLOT, STEP_DATA, STEPS };

enum { PAGE = 4096, LONG = 512 };

struct harness {
	struct vb_ring_shared *shared;
	struct vb_ring_tx tx;
	struct vb_ring_rx rx;
	uint32_t published, taken;
	bool honest; /* nobody has scribbled yet */
	bool tx_broken, rx_broken;
};

/* Pages that nobody may touch lie around it. */
static struct vb_ring_shared *shared_make(void)
{
	static uint8_t *at;
	size_t bytes = sizeof(struct vb_ring_shared);

	if (!at) {
		at = mmap(NULL, bytes + 2 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		vb_check(at != MAP_FAILED);
		vb_check(!mprotect(at + PAGE, bytes, PROT_READ | PROT_WRITE));
	}
	memset(at + PAGE, 0, offsetof(struct vb_ring_shared, data));
	return (struct vb_ring_shared *)(at + PAGE);
}

static uint8_t octet_of(uint32_t frame, uint32_t at)
{
	return (uint8_t)(frame * 31 + at * 7 + 1);
}

static bool in_data(const struct harness *h, const uint8_t *at, uint32_t bytes)
{
	const uint8_t *data = h->shared->data;

	return at >= data && (size_t)(at - data) + bytes <= VB_RING_DATA_BYTES;
}

static void produce(struct harness *h, uint32_t head, uint32_t payload)
{
	struct vb_ring_tx *tx = &h->tx;
	uint8_t *to = vb_ring_reserve(tx, head, payload);

	if (!to) {
		/* An honest consumer has room for whatever comes, once it has taken everything. */
		vb_check(!h->honest || h->published != h->taken);
		return;
	}
	if (head + payload > VB_RING_HEAD_BYTES_MAX)
		vb_check(in_data(h, to, payload));
	memset(tx->octets, octet_of(h->published, 0), head);
	memset(to, octet_of(h->published, 1), payload);
	vb_ring_publish(tx, head, payload);
	vb_check(tx->head - tx->tail <= VB_RING_SLOTS);
	vb_check(tx->data_head - tx->data_tail <= VB_RING_DATA_BYTES);
	h->published++;
}

/* Each octet of it is read: memory tools see where that happens. */
static bool all_are(const uint8_t *octets, uint32_t bytes, uint8_t value)
{
	uint32_t differ = 0;

	for (uint32_t i = 0; i < bytes; i++)
		differ |= octets[i] ^ value;
	return !differ;
}

static bool consume(struct harness *h)
{
	uint32_t next = atomic_load(&h->rx.next);
	struct vb_ring_frame frame;
	bool right;

	if (!vb_ring_take(&h->rx, &frame)) {
		vb_check(atomic_load(&h->rx.next) == next);
		vb_check(!h->honest || h->published == h->taken);
		return false;
	}
	vb_check(!h->rx_broken);
	vb_check(frame.head_bytes <= VB_RING_HEAD_BYTES_MAX);
	vb_check(frame.payload_bytes <= VB_RING_PAYLOAD_BYTES_MAX);
	if (frame.head_bytes + frame.payload_bytes > VB_RING_HEAD_BYTES_MAX)
		vb_check(in_data(h, frame.payload, frame.payload_bytes));
	right = all_are(frame.octets, frame.head_bytes, octet_of(h->taken, 0));
	right &= all_are(frame.payload, frame.payload_bytes, octet_of(h->taken, 1));
	vb_check(!h->honest || right);
	vb_ring_release(&h->rx);
	vb_check(atomic_load(&h->rx.next) == next + 1);
	h->taken++;
	return true;
}

static void scribble(struct harness *h, uint8_t what, const uint8_t *more)
{
	struct vb_ring_slot *slot = h->shared->slot;
	uint32_t next = atomic_load(&h->rx.next);

	h->honest = false;
	switch (what) {
	case STEP_MARK: /* the next one, as a frame of any lengths */
		atomic_store(&slot[vb_ring_slot_index(next)].mark,
			     (uint64_t)more[0] << 56 | (uint64_t)more[1] << 44 |
				     (uint64_t)more[2] << 36 | (next + 1));
		break;
	case STEP_TAIL: /* near where it should be, or anywhere */
		atomic_store(&h->shared->tail,
			     more[0] & 1 ? h->tx.head + (uint32_t)(int8_t)more[1]
					 : (uint32_t)more[1] << 24 | more[2]);
		break;
	case STEP_SLOT:
		memset(&slot[more[0]], more[1], 1 + more[2] % sizeof(*slot));
		break;
	case STEP_DATA:
		memset(h->shared->data + (more[0] << 8 | more[1]) * 8u % VB_RING_DATA_BYTES,
		       more[2], 8);
		break;
	}
}

static void do_step(struct harness *h, uint8_t what, const uint8_t *more)
{
	uint32_t head = more[0] % (VB_RING_HEAD_BYTES_MAX + 1u);

	switch (what) {
	case STEP_PRODUCE: /* of any length, the longest included */
		produce(h, head, (more[1] << 8 | more[2]) + (more[0] & 1u));
		break;
	case STEP_BURST:
		for (unsigned i = 0; i < more[1]; i++)
			produce(h, head, more[2] % 60u + (more[0] > 250 ? LONG : 0));
		break;
	case STEP_CONSUME:
		for (unsigned i = 0; i < 1u + more[0] % 8u && consume(h); i++)
			;
		break;
	case STEP_DRAIN:
		for (unsigned i = 0; i < VB_RING_SLOTS && consume(h); i++)
			;
		break;
	case STEP_TELL:
		vb_ring_tell(&h->rx);
		vb_check(!vb_ring_untold(&h->rx));
		break;
	default:
		scribble(h, what, more);
	}
	vb_check(!h->tx_broken || h->tx.broken);
	vb_check(!h->rx_broken || vb_ring_rx_is_broken(&h->rx));
	h->tx_broken = h->tx.broken;
	h->rx_broken = vb_ring_rx_is_broken(&h->rx);
	vb_check(!h->honest || (!h->tx_broken && !h->rx_broken));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	struct harness h = { .shared = shared_make(), .honest = true };

	vb_ring_tx_init(&h.tx, h.shared);
	vb_ring_rx_init(&h.rx, h.shared);
	for (size_t at = 0; at + 4 <= bytes && at < 4 * LONG; at += 4)
		do_step(&h, data[at] % STEPS, data + at + 1);
	return 0;
}
