/* SPDX-License-Identifier: BSD-2-Clause */
#include "wire/icrc.h"

#include <isa-l/crc.h>
#include <stdatomic.h>
#include <string.h>

#include "base/check.h"
#include "base/psn.h"
#include "wire/bytes.h"
#include "wire/packet.h"

#define IPV4_BYTES 20
#define IPV6_BYTES 40
#define UDP_BYTES 8
#define PROTOCOL_UDP 17
#define IPV4_DF 0x4000

#define ONES_BYTES 8 /* stands for the local route header, which RoCEv2 lacks */
#define PSEUDO_IPV4_BYTES (ONES_BYTES + IPV4_BYTES + UDP_BYTES)
#define PSEUDO_IPV6_BYTES (ONES_BYTES + IPV6_BYTES + UDP_BYTES)
#define PSEUDO_BYTES_MAX PSEUDO_IPV6_BYTES

#define BTH_RESV8A 4 /* FECN, BECN and six reserved bits: may change on the way */

/*
 * crc32_gzip_refl() takes about as long for 16 octets as for 200. So short pieces are collected and
 * passed to it in one call.
 */
#define GATHER_BYTES 192

_Static_assert(PSEUDO_BYTES_MAX + VB_PKT_HEADER_BYTES_MAX <= GATHER_BYTES, "headers fit");

/* --- the masked headers --- */

static void udp_put(uint8_t *out, const struct vb_path *path, size_t udp_payload_bytes)
{
	vb_be16_put(out, path->sport);
	vb_be16_put(out + 2, VB_ROCE_PORT);
	vb_be16_put(out + 4, (uint16_t)(udp_payload_bytes + UDP_BYTES));
	vb_be16_put(out + 6, 0xffff);
}

static void ipv4_put(uint8_t *out, const struct vb_path *path, size_t udp_payload_bytes,
		     uint16_t ip_id)
{
	vb_be16_put(out, 0x45ff); /* version 4, 5 words; TOS */
	vb_be16_put(out + 2, (uint16_t)(udp_payload_bytes + IPV4_BYTES + UDP_BYTES));
	vb_be16_put(out + 4, ip_id);
	vb_be16_put(out + 6, IPV4_DF);
	vb_be16_put(out + 8, 0xff00 | PROTOCOL_UDP); /* TTL; protocol */
	vb_be16_put(out + 10, 0xffff);
	memcpy(out + 12, path->src + 12, 4);
	memcpy(out + 16, path->dst + 12, 4);
}

static void ipv6_put(uint8_t *out, const struct vb_path *path, size_t udp_payload_bytes)
{
	vb_be32_put(out, 0x6fffffff); /* version 6; traffic class and flow label */
	vb_be16_put(out + 4, (uint16_t)(udp_payload_bytes + UDP_BYTES));
	vb_be16_put(out + 6, PROTOCOL_UDP << 8 | 0xff); /* next header; hop limit */
	memcpy(out + 8, path->src, 16);
	memcpy(out + 24, path->dst, 16);
}

/* Writes what the ICRC covers before the BTH; returns its length. */
static size_t pseudo_put(uint8_t out[PSEUDO_BYTES_MAX], const struct vb_path *path,
			 size_t udp_payload_bytes, uint16_t ip_id)
{
	memset(out, 0xff, ONES_BYTES);
	if (vb_gid_is_ipv4(path->dst)) {
		ipv4_put(out + ONES_BYTES, path, udp_payload_bytes, ip_id);
		udp_put(out + ONES_BYTES + IPV4_BYTES, path, udp_payload_bytes);
		return PSEUDO_IPV4_BYTES;
	}
	ipv6_put(out + ONES_BYTES, path, udp_payload_bytes);
	udp_put(out + ONES_BYTES + IPV6_BYTES, path, udp_payload_bytes);
	return PSEUDO_IPV6_BYTES;
}

/* --- computing --- */

uint32_t vb_icrc_add(uint32_t crc, const void *data, size_t bytes)
{
	/* ISA-L inverts before and after: calls chain, and each result is a finished CRC. */
	return bytes ? crc32_gzip_refl(crc, data, bytes) : crc;
}

uint32_t vb_icrc_start(const struct vb_path *path, size_t udp_payload_bytes, uint16_t ip_id)
{
	uint8_t pseudo[PSEUDO_BYTES_MAX];

	return vb_icrc_add(0, pseudo, pseudo_put(pseudo, path, udp_payload_bytes, ip_id));
}

uint32_t vb_icrc_bth(uint32_t crc, const uint8_t *header, size_t bytes)
{
	uint8_t bth[VB_BTH_BYTES];

	vb_check(bytes >= VB_BTH_BYTES);
	memcpy(bth, header, VB_BTH_BYTES);
	bth[BTH_RESV8A] = 0xff;
	crc = vb_icrc_add(crc, bth, VB_BTH_BYTES);
	return vb_icrc_add(crc, header + VB_BTH_BYTES, bytes - VB_BTH_BYTES);
}

uint32_t vb_icrc_header(const struct vb_path *path, size_t udp_payload_bytes, uint16_t ip_id,
			const uint8_t *header, size_t header_bytes)
{
	uint8_t gather[GATHER_BYTES];
	size_t at = pseudo_put(gather, path, udp_payload_bytes, ip_id);
	size_t taken = header_bytes;

	vb_check(header_bytes >= VB_BTH_BYTES);
	if (taken > GATHER_BYTES - at)
		taken = VB_BTH_BYTES;
	memcpy(gather + at, header, taken);
	gather[at + BTH_RESV8A] = 0xff;
	return vb_icrc_add(vb_icrc_add(0, gather, at + taken), header + taken,
			   header_bytes - taken);
}

uint32_t vb_icrc_frame(const struct vb_path *path, const uint8_t *frame, size_t bytes,
		       uint16_t ip_id)
{
	vb_check(bytes >= VB_FRAME_BYTES_MIN);
	return vb_icrc_header(path, bytes, ip_id, frame, bytes - VB_ICRC_BYTES);
}

/* --- a sum as a polynomial ---
 *
 * A CRC register is a polynomial over GF(2) modulo Ethernet's, with the coefficient of x^0 in bit
 * 31. If two messages of the same length differ in some octets, their CRCs differ by these octets,
 * as the register's low bits, times x^8 for each of them and each octet behind them.
 */

#define POLY 0xedb88320u
#define ONE 0x80000000u

static uint32_t times_x(uint32_t a)
{
	return a >> 1 ^ (a & 1 ? POLY : 0);
}

static uint32_t over_x(uint32_t a)
{
	return a & ONE ? (a ^ POLY) << 1 | 1 : a << 1;
}

static uint32_t times_x4(uint32_t a)
{
	static const uint32_t carry[16] = {
		0x00000000, 0x1db71064, 0x3b6e20c8, 0x26d930ac, 0x76dc4190, 0x6b6b51f4,
		0x4db26158, 0x5005713c, 0xedb88320, 0xf00f9344, 0xd6d6a3e8, 0xcb61b38c,
		0x9b64c2b0, 0x86d3d2d4, 0xa00ae278, 0xbdbdf21c,
	};

	return a >> 4 ^ carry[a & 15];
}

static uint32_t times(uint32_t a, uint32_t b)
{
	uint32_t multiple[16] = { [8] = a };
	uint32_t product = 0;

	for (unsigned i = 4; i; i /= 2)
		multiple[i] = times_x(multiple[2 * i]);
	for (unsigned i = 3; i < 16; i++)
		multiple[i] = multiple[i & (i - 1)] ^ multiple[i & -i];
	for (unsigned i = 0; i < 32; i += 4)
		product = times_x4(product) ^ multiple[b >> i & 15];
	return product;
}

/* x^8, and 1 / x^8 */
static uint32_t byte_forth(void)
{
	return ONE >> 8;
}

static uint32_t byte_back(void)
{
	uint32_t base = ONE;

	for (unsigned i = 0; i < 8; i++)
		base = over_x(base);
	return base;
}

static uint32_t power(uint32_t base, size_t n)
{
	uint32_t result = ONE;

	for (; n; n /= 2) {
		if (n & 1)
			result = times(result, base);
		base = times(base, base);
	}
	return result;
}

/* --- a path that is known ---
 *
 * Most frames go the way of the one before. What their ICRC begins with is a constant of the path,
 * changed by length and identification: so neither is written to memory only to be summed, which
 * takes longer than a frame's data, since what was written in small pieces cannot be read in large
 * ones before it has left the processor's store buffer, behind all that was written earlier.
 */

#define REFERENCE_BYTES VB_FRAME_BYTES_MIN /* the frame that a memo's sum is for */

/* What the length of a frame changes, computed when it is first met. */
static struct {
	_Atomic uint32_t ipv4, ipv6; /* in the sum of what precedes the BTH */
	_Atomic uint32_t resv8a;     /* if BTH_RESV8A is ones instead of 0; never 0: known */
} lengths[VB_FRAME_BYTES_MAX / 4 + 1];

/* What each digit of an identification changes, likewise; the lowest one first. */
static const uint32_t id_changes[4][16] = {
	{
		0x00000000, 0x9b73ead4, 0xed96d3e9, 0x76e5393d, 0x005ca193, 0x9b2f4b47,
		0xedca727a, 0x76b998ae, 0x00b94326, 0x9bcaa9f2, 0xed2f90cf, 0x765c7a1b,
		0x00e5e2b5, 0x9b960861, 0xed73315c, 0x7600db88,
	},
	{
		0x00000000, 0x0172864c, 0x02e50c98, 0x03978ad4, 0x05ca1930, 0x04b89f7c,
		0x072f15a8, 0x065d93e4, 0x0b943260, 0x0ae6b42c, 0x09713ef8, 0x0803b8b4,
		0x0e5e2b50, 0x0f2cad1c, 0x0cbb27c8, 0x0dc9a184,
	},
	{
		0x00000000, 0x81256527, 0xd93bcc0f, 0x581ea928, 0x69069e5f, 0xe823fb78,
		0xb03d5250, 0x31183777, 0xd20d3cbe, 0x53285999, 0x0b36f0b1, 0x8a139596,
		0xbb0ba2e1, 0x3a2ec7c6, 0x62306eee, 0xe3150bc9,
	},
	{
		0x00000000, 0x7f6b7f3d, 0xfed6fe7a, 0x81bd8147, 0x26dcfab5, 0x59b78588,
		0xd80a04cf, 0xa7617bf2, 0x4db9f56a, 0x32d28a57, 0xb36f0b10, 0xcc04742d,
		0x6b650fdf, 0x140e70e2, 0x95b3f1a5, 0xead88e98,
	},
};

/* The change if BTH_RESV8A, with `behind` octets behind it, differs by this. */
static uint32_t resv8a_change(uint8_t difference, size_t behind)
{
	return times(power(byte_forth(), behind + 1), difference);
}

static __attribute__((cold, noinline)) void length_learn(size_t frame_bytes)
{
	static const struct vb_path ipv4 = { .dst = { [10] = 0xff, [11] = 0xff } }, ipv6;
	size_t i = frame_bytes / 4;

	atomic_store_explicit(&lengths[i].ipv4,
			      vb_icrc_start(&ipv4, frame_bytes, 0) ^
				      vb_icrc_start(&ipv4, REFERENCE_BYTES, 0),
			      memory_order_relaxed);
	atomic_store_explicit(&lengths[i].ipv6,
			      vb_icrc_start(&ipv6, frame_bytes, 0) ^
				      vb_icrc_start(&ipv6, REFERENCE_BYTES, 0),
			      memory_order_relaxed);
	atomic_store_explicit(&lengths[i].resv8a,
			      resv8a_change(0xff, frame_bytes - VB_ICRC_BYTES - BTH_RESV8A - 1),
			      memory_order_release);
}

static inline uint32_t length_known(size_t frame_bytes)
{
	_Atomic uint32_t *resv8a = &lengths[frame_bytes / 4].resv8a;

	if (!atomic_load_explicit(resv8a, memory_order_acquire))
		length_learn(frame_bytes);
	return atomic_load_explicit(resv8a, memory_order_relaxed);
}

static __attribute__((cold, noinline)) void path_learn(struct vb_icrc_memo *memo,
						       const struct vb_path *path)
{
	memcpy(memo->src, path->src, VB_GID_BYTES);
	memcpy(memo->dst, path->dst, VB_GID_BYTES);
	memo->sport = path->sport;
	memo->ipv4 = vb_gid_is_ipv4(path->dst);
	memo->crc = vb_icrc_start(path, REFERENCE_BYTES, 0);
	memo->known = true;
}

static inline bool is_known(const struct vb_icrc_memo *memo, const struct vb_path *path)
{
	return memo->known && memo->sport == path->sport &&
	       memcmp(memo->src, path->src, VB_GID_BYTES) == 0 &&
	       memcmp(memo->dst, path->dst, VB_GID_BYTES) == 0;
}

static inline uint32_t known_start(struct vb_icrc_memo *memo, const struct vb_path *path,
				   size_t frame_bytes, uint16_t id)
{
	uint32_t crc;

	if (!is_known(memo, path))
		path_learn(memo, path);
	length_known(frame_bytes);
	crc = memo->crc;
	if (!memo->ipv4)
		return crc ^ atomic_load_explicit(&lengths[frame_bytes / 4].ipv6,
						  memory_order_relaxed);
	crc ^= atomic_load_explicit(&lengths[frame_bytes / 4].ipv4, memory_order_relaxed);
	return crc ^ id_changes[0][id & 15] ^ id_changes[1][id >> 4 & 15] ^
	       id_changes[2][id >> 8 & 15] ^ id_changes[3][id >> 12];
}

uint32_t vb_icrc_known_header(struct vb_icrc_memo *memo, const struct vb_path *path,
			      size_t udp_payload_bytes, uint16_t ip_id, const uint8_t *header,
			      size_t header_bytes)
{
	size_t behind = header_bytes - BTH_RESV8A - 1;
	uint32_t crc;

	vb_check(header_bytes >= VB_BTH_BYTES);
	if (udp_payload_bytes > VB_FRAME_BYTES_MAX || udp_payload_bytes < VB_FRAME_BYTES_MIN ||
	    udp_payload_bytes % 4 || header_bytes > udp_payload_bytes || header_bytes % 4)
		return vb_icrc_header(path, udp_payload_bytes, ip_id, header, header_bytes);
	crc = vb_icrc_add(known_start(memo, path, udp_payload_bytes, ip_id), header, header_bytes);
	if (header[BTH_RESV8A])
		return crc ^ resv8a_change(header[BTH_RESV8A] ^ 0xff, behind);
	return crc ^ length_known(header_bytes + VB_ICRC_BYTES);
}

uint32_t vb_icrc_known_frame(struct vb_icrc_memo *memo, const struct vb_path *path,
			     const uint8_t *frame, size_t bytes, uint16_t ip_id)
{
	vb_check(bytes >= VB_FRAME_BYTES_MIN);
	return vb_icrc_known_header(memo, path, bytes, ip_id, frame, bytes - VB_ICRC_BYTES);
}

/* --- consecutive frames ---
 *
 * A CRC is linear: if octets change by some difference, the CRC changes by a value that depends
 * only on this difference and the number of octets behind it. Adding one changes a number in its
 * lowest bits, up to the first 0 bit: so there are only as many differences as the number has bits.
 */

/* For changes of bits 0 to i; the last entry is repeated for the wrap to 0. */

/* For the identification, with the rest of the IPv4 header, UDP header and BTH behind it. */
static const uint32_t next_id[] = {
	0xcf9e17c8, 0x8bd33e19, 0x03496dbb, 0xc90cccbe, 0x86f688f5, 0x19020063, 0xfd9a170e,
	0xefdb3f95, 0x7aabeb00, 0x8b3b446b, 0xb36b1cfc, 0xc3cbadd2, 0x228acf8e, 0x3b790d77,
	0x089e8885, 0x6f518361, 0x6f518361,
};

/* For the PSN, with nothing behind it. */
static const uint32_t next_psn[] = {
	0x77073096, 0x990951ba, 0x9e6495a3, 0x90bf1d91, 0x8d080df5, 0xb6662d3d, 0xc0ba6cad,
	0x2d02ef8d, 0x3419decc, 0x062fbc4e, 0x6243794a, 0xaa9af342, 0xe058e113, 0x75dcc5b1,
	0x85a58ab4, 0xbe2612ff, 0xbfe478c8, 0xbc60aca6, 0xbb69047a, 0xb57a55c2, 0xa95cf6b2,
	0x9111b052, 0xe18b3d92, 0x00be2612, 0x00be2612,
};

void vb_icrc_run_begin(struct vb_icrc_run *run, struct vb_icrc_memo *memo,
		       const struct vb_path *path, size_t udp_payload_bytes, uint16_t ip_id,
		       const uint8_t *bth)
{
	run->crc = vb_icrc_known_header(memo, path, udp_payload_bytes, ip_id, bth,
					VB_BTH_BYTES);
	run->psn = vb_be32_get(bth + 8) & VB_PSN_MASK;
	run->ip_id = ip_id;
	run->ipv4 = vb_gid_is_ipv4(path->dst);
}

void vb_icrc_run_next(struct vb_icrc_run *run)
{
	run->crc ^= next_psn[__builtin_ctz(~run->psn)];
	run->psn = (run->psn + 1) & VB_PSN_MASK;
	if (run->ipv4)
		run->crc ^= next_id[__builtin_ctz(~(uint32_t)run->ip_id)];
	run->ip_id++;
}

/* --- finding the identification ---
 *
 * Messages that differ in two octets only have CRCs that differ by these octets times a power of x.
 * The polynomial has a constant term, so x has an inverse and the product can be reversed. The
 * result is two octets and 16 zero bits; if not, the messages also differ elsewhere.
 */

/*
 * The divisor for a frame length. Lengths repeat, so each is computed once; concurrent threads
 * store the same value. No power is 0, so 0 means "not yet computed".
 */
static uint32_t divisor_cached(size_t frame_bytes)
{
	static _Atomic uint32_t cache[VB_FRAME_BYTES_MAX / 4 + 1];
	_Atomic uint32_t *slot = &cache[frame_bytes / 4];
	uint32_t divisor = atomic_load_explicit(slot, memory_order_relaxed);

	if (divisor)
		return divisor;
	/* From the identification, included, to the ICRC, excluded. */
	divisor = power(byte_back(),
			PSEUDO_IPV4_BYTES - ONES_BYTES - 4 + frame_bytes - VB_ICRC_BYTES);
	atomic_store_explicit(slot, divisor, memory_order_relaxed);
	return divisor;
}

static bool is_frame_length(size_t bytes)
{
	return bytes >= VB_FRAME_BYTES_MIN && bytes <= VB_FRAME_BYTES_MAX && bytes % 4 == 0;
}

/* icrc: what it would be with that identification. */
static inline bool fits(uint32_t icrc, const struct vb_path *path, const uint8_t *frame,
			size_t bytes, uint16_t id_hint, uint16_t *id)
{
	uint32_t difference = icrc ^ vb_icrc_get(frame + bytes - VB_ICRC_BYTES);
	uint16_t found = id_hint;

	if (difference) {
		if (!vb_gid_is_ipv4(path->dst))
			return false;
		difference = times(divisor_cached(bytes), difference);
		if (difference >> 16)
			return false;
		/*
		 * The first octet on the wire is the register's lowest, but the identification's
		 * higher one.
		 */
		found ^= (uint16_t)(difference << 8 | difference >> 8);
	}
	if (id)
		*id = found;
	return true;
}

bool vb_icrc_check(const struct vb_path *path, const uint8_t *frame, size_t bytes, uint16_t id_hint,
		   uint16_t *id)
{
	return is_frame_length(bytes) &&
	       fits(vb_icrc_frame(path, frame, bytes, id_hint), path, frame, bytes, id_hint, id);
}

bool vb_icrc_known_check(struct vb_icrc_memo *memo, const struct vb_path *path,
			 const uint8_t *frame, size_t bytes, uint16_t id_hint, uint16_t *id)
{
	return is_frame_length(bytes) &&
	       fits(vb_icrc_known_frame(memo, path, frame, bytes, id_hint), path, frame, bytes,
		    id_hint, id);
}
