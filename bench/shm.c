/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * What shared memory can do between two processes, each on a core of its own: the limit of a link
 * made of it. Prints one figure, the median of many short measurements (for line, the lowest
 * tenth).
 *
 *   shm line A B             a cache line back and forth: half a round trip, ns. Virtual machines
 *                            move their cores near to each other or apart, and all figures change
 *                            with that; so this one is printed beside each.
 *   shm ring A B OCTETS      a message back and forth by two rings whose slots hold a sequence
 *                            number: half a round trip, ns
 *   shm rate A B OCTETS      messages through one ring: millions per second
 *   shm pipe A B OCTETS      messages of OCTETS copied into a ring and out of it, one core copying
 *                            each: GB/s
 *   shm both A B OCTETS      the same in both directions at once: GB/s, sum of both
 *   shm copy A A OCTETS      one process copies: GB/s
 */
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <sys/wait.h>

#include "bench.h"

#define SAMPLES 41
#define ROUNDS 500 /* per sample */

#define SLOTS 256
#define SLOT_BYTES 128

#define PIPE_BYTES (256u << 10) /* in flight: the caches of both cores hold this much */
#define CHUNK_BYTES (32u << 10)
#define PIPE_SLOTS_MAX 64
#define SAMPLE_NS 10000000u

struct slot {
	_Atomic uint64_t seq;
	uint8_t octets[SLOT_BYTES - 8];
} __attribute__((aligned(64)));

/*
 * One direction. `taken` is the reader's position, which a writer that only answers does not need.
 */
struct ring {
	_Atomic uint64_t taken __attribute__((aligned(LINE_BYTES)));
	struct slot slots[SLOTS] __attribute__((aligned(LINE_BYTES)));
};

struct pipe {
	_Atomic uint64_t head __attribute__((aligned(LINE_BYTES)));
	_Atomic uint64_t tail __attribute__((aligned(LINE_BYTES)));
	uint8_t data[PIPE_BYTES] __attribute__((aligned(4096)));
};

/* What the two processes share. */
struct field {
	_Atomic uint32_t ball __attribute__((aligned(LINE_BYTES)));
	_Atomic uint32_t stop __attribute__((aligned(LINE_BYTES)));
	struct ring ring[2];
	struct pipe pipe[2];
};

static struct field *field;
static size_t octets;
static uint8_t *here, *there; /* private buffers of a process */

static inline uint64_t load(const _Atomic uint64_t *at)
{
	return atomic_load_explicit(at, memory_order_acquire);
}

static inline void store(_Atomic uint64_t *at, uint64_t value)
{
	atomic_store_explicit(at, value, memory_order_release);
}

/* Returns each odd number as the next even one. */
static void line_return(void)
{
	for (uint32_t i = 1; i < 2u * ROUNDS * SAMPLES; i += 2) {
		while (atomic_load_explicit(&field->ball, memory_order_acquire) != i)
			;
		atomic_store_explicit(&field->ball, i + 1, memory_order_release);
	}
}

static double line_send(unsigned sample)
{
	uint32_t next = 2 * sample * ROUNDS + 1;
	uint64_t start = now_ns();

	for (unsigned i = 0; i < ROUNDS; i++, next += 2) {
		atomic_store_explicit(&field->ball, next, memory_order_release);
		while (atomic_load_explicit(&field->ball, memory_order_acquire) != next + 1)
			;
	}
	return (double)(now_ns() - start) / ROUNDS / 2;
}

/*
 * The distance of slots is a power of two of lines: two lines hold more than 56 octets, one less.
 */
static inline struct slot *slot_at(struct ring *ring, uint64_t seq)
{
	size_t bytes = octets > 56 ? SLOT_BYTES : 64;

	return (struct slot *)((uint8_t *)ring->slots + seq % SLOTS * bytes);
}

static inline void ring_put(struct ring *ring, uint64_t seq)
{
	struct slot *slot = slot_at(ring, seq);

	memcpy(slot->octets, here, octets);
	store(&slot->seq, seq);
}

static inline void ring_take(struct ring *ring, uint64_t seq)
{
	struct slot *slot = slot_at(ring, seq);

	while (load(&slot->seq) != seq)
		;
	memcpy(there, slot->octets, octets);
}

static void ring_return(void)
{
	for (uint64_t seq = 1; seq <= (uint64_t)ROUNDS * SAMPLES; seq++) {
		ring_take(&field->ring[0], seq);
		ring_put(&field->ring[1], seq);
	}
}

static double ring_send(unsigned sample)
{
	uint64_t seq = (uint64_t)sample * ROUNDS + 1, start = now_ns();

	for (unsigned i = 0; i < ROUNDS; i++, seq++) {
		ring_put(&field->ring[0], seq);
		ring_take(&field->ring[1], seq);
	}
	return (double)(now_ns() - start) / ROUNDS / 2;
}

enum { RATE_COUNT = 100000 }; /* messages per sample */

static void rate_return(void)
{
	struct ring *ring = &field->ring[0];

	for (uint64_t seq = 1; seq <= (uint64_t)RATE_COUNT * SAMPLES; seq++) {
		ring_take(ring, seq);
		if (seq % (SLOTS / 4) == 0)
			store(&ring->taken, seq);
	}
	store(&ring->taken, (uint64_t)RATE_COUNT * SAMPLES);
}

static double rate_send(unsigned sample)
{
	struct ring *ring = &field->ring[0];
	uint64_t seq = (uint64_t)sample * RATE_COUNT + 1, taken = load(&ring->taken);
	uint64_t start = now_ns();

	for (unsigned i = 0; i < RATE_COUNT; i++, seq++) {
		while (seq - taken > SLOTS)
			taken = load(&ring->taken);
		ring_put(ring, seq);
	}
	return RATE_COUNT * 1e3 / (double)(now_ns() - start);
}

static size_t chunk_bytes(void)
{
	return octets < CHUNK_BYTES ? octets : CHUNK_BYTES;
}

static uint64_t pipe_slots(void)
{
	uint64_t slots = PIPE_BYTES / chunk_bytes();

	return slots < PIPE_SLOTS_MAX ? slots : PIPE_SLOTS_MAX;
}

/* The offset in a message of the chunk with that number. */
static size_t chunk_offset(uint64_t number, size_t bytes)
{
	return number * bytes % (octets / bytes * bytes);
}

/* Copies a chunk in, if there is room. */
static bool pipe_put(struct pipe *pipe)
{
	uint64_t head = atomic_load_explicit(&pipe->head, memory_order_relaxed);
	size_t bytes = chunk_bytes();

	if (head - load(&pipe->tail) >= pipe_slots())
		return false;
	memcpy(pipe->data + head % pipe_slots() * bytes, here + chunk_offset(head, bytes), bytes);
	store(&pipe->head, head + 1);
	return true;
}

/* Copies a chunk out, if there is one. */
static bool pipe_take(struct pipe *pipe)
{
	uint64_t tail = atomic_load_explicit(&pipe->tail, memory_order_relaxed);
	size_t bytes = chunk_bytes();

	if (load(&pipe->head) == tail)
		return false;
	memcpy(there + chunk_offset(tail, bytes), pipe->data + tail % pipe_slots() * bytes, bytes);
	store(&pipe->tail, tail + 1);
	return true;
}

static bool stopped(void)
{
	return atomic_load_explicit(&field->stop, memory_order_relaxed);
}

static void pipe_return(void)
{
	while (!stopped())
		pipe_take(&field->pipe[0]);
}

static void both_return(void)
{
	while (!stopped()) {
		pipe_take(&field->pipe[0]);
		pipe_put(&field->pipe[1]);
	}
}

static uint64_t chunks_taken(void)
{
	return load(&field->pipe[0].tail) + load(&field->pipe[1].tail);
}

static double stream(bool both)
{
	uint64_t before = chunks_taken(), start = now_ns(), ns;

	do {
		pipe_put(&field->pipe[0]);
		if (both)
			pipe_take(&field->pipe[1]);
		ns = now_ns() - start;
	} while (ns < SAMPLE_NS);
	return (double)((chunks_taken() - before) * chunk_bytes()) / (double)ns;
}

static double pipe_send(unsigned sample)
{
	return stream(false);
}

static double both_send(unsigned sample)
{
	return stream(true);
}

static double copy_send(unsigned sample)
{
	uint64_t start = now_ns(), ns, bytes = 0;

	do {
		memcpy(there, here, octets);
		__asm__ volatile("" ::: "memory");
		bytes += octets;
		ns = now_ns() - start;
	} while (ns < SAMPLE_NS / 4);
	return (double)bytes / (double)ns;
}

static const struct way {
	const char *name;
	double (*send)(unsigned sample);
	void (*answer)(void);
	size_t octets_max;
} ways[] = {
	{"line", line_send, line_return, 1},
	{"ring", ring_send, ring_return, SLOT_BYTES - 8},
	{"rate", rate_send, rate_return, SLOT_BYTES - 8},
	{"pipe", pipe_send, pipe_return, 1 << 30},
	{"both", both_send, both_return, 1 << 30},
	{"copy", copy_send, NULL, 1 << 30},
};

static const struct way *way_find(int argc, char **argv)
{
	octets = argc > 4 ? strtoul(argv[4], NULL, 0) : 1;
	for (size_t i = 0; argc > 3 && i < sizeof(ways) / sizeof(*ways); i++) {
		if (!strcmp(ways[i].name, argv[1]) && octets && octets <= ways[i].octets_max)
			return &ways[i];
	}
	return NULL;
}

static void *buffer_new(void)
{
	size_t bytes = (octets + 8191) & ~(size_t)4095;
	void *p = aligned_alloc(4096, bytes);

	if (!p)
		die("aligned_alloc");
	memset(p, 1, bytes);
	return p;
}

int main(int argc, char **argv)
{
	const struct way *way = way_find(argc, argv);
	double figures[SAMPLES];
	pid_t pid = 0;

	if (!way) {
		fputs("usage: shm line|ring|rate|pipe|both|copy CORE CORE [OCTETS]\n", stderr);
		return 2;
	}
	field = shared_new(sizeof(*field));
	if (way->answer)
		pid = fork_child();
	pin(atoi(argv[way->answer && !pid ? 3 : 2]));
	here = buffer_new();
	there = buffer_new();
	if (way->answer && !pid) {
		way->answer();
		_exit(0);
	}
	for (unsigned s = 0; s < SAMPLES; s++)
		figures[s] = way->send(s);
	atomic_store(&field->stop, 1);
	if (pid)
		waitpid(pid, NULL, 0);
	/*
	 * The distance of the cores does not depend on other programs: take the undisturbed figure.
	 */
	qsort(figures, SAMPLES, sizeof(*figures), double_compare);
	printf("%.3f\n", figures[way->send == line_send ? SAMPLES / 10 : SAMPLES / 2]);
	return 0;
}
