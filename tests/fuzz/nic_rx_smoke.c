/* SPDX-License-Identifier: BSD-2-Clause */
/* Inputs (smoke_main.h) for nic_rx: made at random, but after the way that real ones go. */
#include <string.h>

#include "base/check.h"
#include "base/prng.h"
#include "nic_rx_fuzz.h"
#include "smoke_main.h"
#include "wire/bytes.h"
#include "wire/packet.h"

static uint32_t below(uint64_t *rng, uint32_t n)
{
	return (uint32_t)(vb_prng_next(rng) % n);
}

static void add_step(struct smoke_input *input, unsigned what, unsigned which, uint32_t bytes)
{
	uint8_t *at = input->octets + input->bytes;

	at[0] = (uint8_t)what;
	at[1] = (uint8_t)which;
	at[2] = (uint8_t)bytes;
	at[3] = (uint8_t)(bytes >> 8);
	input->bytes += 4;
}

static uint8_t choose_opcode(uint64_t *rng, unsigned which)
{
	static const uint8_t base[NIC_RX_QPS] = { 0x00, 0x00, 0x00, 0x20,
						   0x60, 0x60, 0x00, 0x00 };

	if (below(rng, 20) == 0)
		return (uint8_t)vb_prng_next(rng);
	if (base[which] == 0x60)
		return (uint8_t)(0x64 + below(rng, 2));
	return (uint8_t)(base[which] + below(rng, base[which] ? 12 : 30));
}

static uint32_t choose_payload(uint64_t *rng)
{
	static const uint32_t usual[] = { 0, 1, 4, 8, 511, 512, 513, 512, 512, 600 };

	return below(rng, 4) ? usual[below(rng, VB_ARRAY_LEN(usual))] : below(rng, 1200);
}

/* One that a QP takes: most of its kin break the QP, and then nothing gets deep any more. */
static uint32_t make_sensible(uint8_t *at, uint64_t *rng, unsigned which, uint32_t payload)
{
	static const uint8_t rc[] = { 0x04, 0x05, 0x0a, 0x0b, 0x0c, 0x0c, 0x13, 0x14, 0x11, 0x11,
				      0x00, 0x01, 0x02, 0x06, 0x07, 0x08, 0x0d, 0x10, 0x12,
				      0x17, 0x1d, 0x1d };
	static const uint8_t uc[] = { 0x24, 0x25, 0x2a, 0x2b, 0x20, 0x21, 0x22, 0x26, 0x27, 0x28 };
	const struct vb_op_info *info;

	if (which == 3)
		at[0] = uc[below(rng, VB_ARRAY_LEN(uc))];
	else if (which == 4 || which == 5)
		at[0] = (uint8_t)(0x64 + below(rng, 2));
	else
		at[0] = rc[below(rng, VB_ARRAY_LEN(rc))];
	info = vb_op_info(at[0]);
	if (!(info->pos & VB_P_LAST))
		payload = 512;
	else if (payload > 512 || !info->payload)
		payload = info->payload ? 100 : 0;
	if (info->kind == VB_K_ATOMIC_WRITE)
		payload = 8;
	at[11] = 0;
	if (info->headers & (VB_H_RETH | VB_H_ATOMIC)) {
		vb_be64_put(at + VB_BTH_BYTES, below(rng, 200) * 8);
		vb_be32_put(at + 20, 0);
	}
	if (info->headers & VB_H_RETH)
		vb_be32_put(at + 24, info->kind == VB_K_READ_REQ ? below(rng, 3000)
				     : info->pos & VB_P_LAST ? payload : 512 + below(rng, 1200));
	return payload;
}

/* The last frame again, behind what it was. */
static void add_copy(struct smoke_input *input, size_t last, uint64_t *rng)
{
	uint32_t bytes = vb_be16_get(input->octets + last + 2);
	uint8_t *at = input->octets + input->bytes;

	bytes = 4 + (bytes >> 8 | (bytes & 0xff) << 8);
	memcpy(at, input->octets + last, bytes);
	if (bytes > 4 + VB_BTH_BYTES)
		at[4 + 11] = (uint8_t)(-4 * (int)below(rng, 4));
	input->bytes += bytes;
}

/* What a SEND to an SRQ with tags begins with: a header, and what to read. */
static void make_tagged(uint8_t *at, uint64_t *rng)
{
	at[0] = (uint8_t)below(rng, 6);
	vb_be64_put(at + 8, below(rng, 4));
	vb_be32_put(at + 28, below(rng, 4000));
}

static void add_frame(struct smoke_input *input, uint64_t *rng)
{
	unsigned what = STEP_FRAME | MEND_ICRC | MEND_HEADER | MEND_PSN | MEND_ADDRESS;
	unsigned which = below(rng, 3) ? below(rng, 2) : below(rng, NIC_RX_QPS);
	bool tagged = below(rng, 4) == 0;
	uint8_t opcode = choose_opcode(rng, which);
	const struct vb_op_info *info = vb_op_info(opcode);
	uint32_t payload = info && !info->payload ? 0 : choose_payload(rng), bytes;
	uint8_t *at = input->octets + input->bytes + 4;

	if (tagged)
		which = NIC_RX_TAGGED;
	if (below(rng, 8) == 0)
		what &= vb_prng_next(rng) | STEP_FRAME;
	for (uint32_t i = 0; i < 64; i++)
		at[i] = (uint8_t)vb_prng_next(rng);
	if (below(rng, 8)) {
		payload = make_sensible(at, rng, which, payload);
		opcode = at[0];
		info = vb_op_info(opcode);
	}
	if (tagged && below(rng, 2)) { /* as long as the request of a rendezvous may be, or so */
		opcode = VB_OP_RC_SEND_ONLY;
		info = vb_op_info(opcode);
		payload = 16 + below(rng, 52);
		at[11] = 0;
	}
	bytes = (info ? info->header_bytes : VB_BTH_BYTES) + ((payload + 3) & ~3u) + 4;
	if (below(rng, 50) == 0) {
		bytes = below(rng, 60);
	} else if (below(rng, 40) == 0) { /* a question or answer about pacing */
		opcode = (uint8_t)(0xc0 + below(rng, 2));
		payload = 0;
		bytes = 32;
	}
	for (uint32_t i = 64; i < bytes; i++)
		at[i] = (uint8_t)i;
	if (tagged && below(rng, 8))
		make_tagged(at + VB_BTH_BYTES, rng);
	at[0] = opcode;
	at[1] = (uint8_t)((at[1] & 0xcf) | vb_pkt_pad(payload) << 4);
	if (below(rng, 4) == 0)
		which |= NIC_RX_TO_GROUP;
	add_step(input, what & ~7u, which, bytes);
	input->bytes += bytes;
}

static void make(struct smoke_input *input, uint64_t *rng)
{
	unsigned steps = 1 + below(rng, 60);
	size_t last = 0;

	input->bytes = 0;
	for (unsigned i = 0; i < 4; i++) {
		add_step(input, STEP_RECV, below(rng, NIC_RX_QPS), below(rng, 3000));
		add_step(input, STEP_RECV, NIC_RX_TAGGED | below(rng, 8) << 5,
			 0x8000 | below(rng, 0x2000));
	}
	for (unsigned i = 0; i < steps && input->bytes + 2000 < SMOKE_BYTES_MAX; i++) {
		if (last && below(rng, 8) == 0) {
			add_copy(input, last, rng);
		} else if (below(rng, 5) < 3) {
			last = input->bytes;
			add_frame(input, rng);
		} else {
			add_step(input, 1 + below(rng, below(rng, 20) ? 4 : 7),
				 below(rng, below(rng, 3) ? 3 : NIC_RX_QPS),
				 (uint32_t)vb_prng_next(rng) & 0xffff);
		}
	}
}

struct smoke smoke = { .name = "nic_rx", .seeds = 200, .rounds = 20000, .make_any = make };
