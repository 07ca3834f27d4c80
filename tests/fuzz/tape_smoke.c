/* SPDX-License-Identifier: BSD-2-Clause */
/* Tapes (smoke_main.h), written as a recorded process writes them. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/check.h"
#include "base/prng.h"
#include "smoke_main.h"
#include "tape/lists.h"
#include "tape/tape.h"

enum { SEEDS = 4 };

static struct smoke_input tapes[SEEDS];

/* One list of each kind, of `size` entries. */
static void lists_put(unsigned size)
{
	struct ibv_sge sges[3] = { { 0 } };
	struct ibv_send_wr send[4] = { { 0 } };
	struct ibv_recv_wr recv[4] = { { 0 } };
	struct vb_post posts[4] = { { .wr = { 0 } } };
	struct vb_frame frames[4] = { { .bytes = 0 } };
	static uint8_t octets[64];

	for (unsigned i = 0; i < size; i++) {
		sges[i % 3] = (struct ibv_sge){ (uintptr_t)octets, 8 * i, 1 };
		send[i] = (struct ibv_send_wr){ .wr_id = i, .sg_list = sges, .num_sge = (int)i,
						.next = i + 1 < size ? &send[i + 1] : NULL,
						.send_flags = i & 1 ? IBV_SEND_INLINE : 0 };
		recv[i] = (struct ibv_recv_wr){ .wr_id = i, .sg_list = sges, .num_sge = (int)i,
						.next = i + 1 < size ? &recv[i + 1] : NULL };
		posts[i].wr = send[i];
		frames[i] = (struct vb_frame){ .data = octets, .bytes = 12 * (i + 1) };
	}
	vb_tape_enter(VB_TAPE_QP_POST_SEND);
	vb_tape_put_sends(size ? send : NULL);
	vb_tape_leave(0, NULL, octets, size);
	vb_tape_enter(VB_TAPE_QP_POST_RECV);
	vb_tape_put_recvs(size ? recv : NULL);
	vb_tape_leave(0, NULL, octets, size);
	vb_tape_enter(VB_TAPE_QP_POST_BATCH);
	vb_tape_put_posts(posts, size);
	vb_tape_leave(0, NULL, NULL, 0);
	vb_tape_enter(VB_TAPE_RX);
	vb_tape_put_frames(frames, size);
	vb_tape_asked(VB_TAPE_NOW);
	vb_tape_leave(0, octets, NULL, 0);
}

static int tape_make(struct smoke_input *to, unsigned size, const char *folder)
{
	char name[256];
	ssize_t got;
	int fd;

	snprintf(name, sizeof(name), "%s/%s-%d.tape", folder, program_invocation_short_name,
		 (int)getpid());
	if (vb_tape_open(folder, 1 << 20, NULL))
		return -1;
	lists_put(size);
	vb_tape_close();
	fd = open(name, O_RDONLY | O_CLOEXEC);
	unlink(name);
	to->octets[0] = 0;
	got = fd < 0 ? -1 : read(fd, to->octets + 1, sizeof(to->octets) - 1);
	if (fd >= 0)
		close(fd);
	to->bytes = got < 0 ? 0 : (size_t)got + 1;
	return got > 0 ? 0 : -1;
}

static int load(void)
{
	char folder[] = "/tmp/verbatim-tapes.XXXXXX";
	int rc = mkdtemp(folder) ? 0 : -1;

	for (unsigned i = 0; rc == 0 && i < SEEDS; i++)
		rc = tape_make(&tapes[i], i, folder);
	rmdir(folder);
	return rc;
}

static void make(struct smoke_input *input, unsigned i)
{
	*input = tapes[i];
}

static void mutate(struct smoke_input *input, uint64_t *rng)
{
	unsigned changes = 1 + (unsigned)(vb_prng_next(rng) % 8);

	/* Mostly behind the head of the tape, with checksums that are right. */
	input->octets[0] = vb_prng_next(rng) % 8 != 0;
	while (changes--) {
		uint64_t draw = vb_prng_next(rng);
		size_t from = draw % 16 ? sizeof(struct vb_tape_head) + 1 : 1;

		if (input->bytes > from)
			input->octets[from + (draw >> 8) % (input->bytes - from)] =
				(uint8_t)(draw >> 56);
	}
	if (vb_prng_next(rng) % 8 == 0)
		input->bytes = 1 + vb_prng_next(rng) % input->bytes;
}

struct smoke smoke = {
	.name = "tape", .seeds = SEEDS, .rounds = 20000, .load = load, .make = make,
	.mutate = mutate,
};
