/* SPDX-License-Identifier: BSD-2-Clause */
#include "topology/values.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

#include "base/check.h"

enum { HEXADECIMAL = 16 };

static unsigned digit_of(char c)
{
	if (c >= '0' && c <= '9')
		return (unsigned)(c - '0');
	if (c >= 'a' && c <= 'f')
		return (unsigned)(c - 'a') + 10;
	return c >= 'A' && c <= 'F' ? (unsigned)(c - 'A') + 10 : HEXADECIMAL;
}

bool vb_value_number(struct vb_span piece, uint64_t *number)
{
	bool hexadecimal = piece.bytes > 2 && memcmp(piece.text, "0x", 2) == 0;
	uint64_t sum = 0;

	for (size_t i = hexadecimal ? 2 : 0; i < piece.bytes; i++) {
		unsigned digit = digit_of(piece.text[i]), base = hexadecimal ? HEXADECIMAL : 10;

		if (digit >= base || __builtin_mul_overflow(sum, base, &sum) ||
		    __builtin_add_overflow(sum, digit, &sum))
			return false;
	}
	*number = sum;
	return piece.bytes > 0;
}

bool vb_value_switch(struct vb_span piece, bool *on)
{
	*on = vb_span_is(piece, "yes");
	return *on || vb_span_is(piece, "no");
}

bool vb_value_text(struct vb_span piece, char *text, size_t bytes)
{
	if (!piece.bytes || piece.bytes >= bytes)
		return false;
	for (size_t i = 0; i < piece.bytes; i++) {
		if ((unsigned char)piece.text[i] < ' ' || piece.text[i] == 0x7f)
			return false;
	}
	memcpy(text, piece.text, piece.bytes);
	text[piece.bytes] = 0;
	return true;
}

static bool is_name_char(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       c == '_' || c == '-' || c == '.';
}

bool vb_value_name(struct vb_span piece, char *text, size_t bytes)
{
	for (size_t i = 0; i < piece.bytes; i++) {
		if (!is_name_char(piece.text[i]))
			return false;
	}
	return piece.bytes && piece.text[0] != '.' && vb_value_text(piece, text, bytes);
}

/* Width 1: 1X, 2: 4X, 16: 2X; as Linux says them. The first is that of any other rate. */
static const struct vb_rate rates[] = {
	{ 100000, 2, 32 }, { 1000, 1, 1 },    { 10000, 1, 4 },   { 25000, 1, 32 },
	{ 40000, 2, 8 },   { 50000, 1, 64 },  { 200000, 2, 64 }, { 400000, 2, 128 },
};

const struct vb_rate *vb_rate_of(uint32_t mbps)
{
	for (unsigned i = 0; i < VB_ARRAY_LEN(rates); i++) {
		if (rates[i].mbps == mbps)
			return &rates[i];
	}
	return &rates[0];
}

const char vb_value_rates[] =
	"one of 1Gbit, 10Gbit, 25Gbit, 40Gbit, 50Gbit, 100Gbit, 200Gbit and 400Gbit";

bool vb_value_rate(struct vb_span piece, uint32_t *mbps)
{
	static const char unit[] = "Gbit";
	size_t tail = sizeof(unit) - 1;
	uint64_t gbit;

	if (piece.bytes <= tail || memcmp(piece.text + piece.bytes - tail, unit, tail) != 0)
		return false;
	piece.bytes -= tail;
	if (!vb_value_number(piece, &gbit))
		return false;
	for (unsigned i = 0; i < VB_ARRAY_LEN(rates); i++) {
		if (rates[i].mbps / 1000 == gbit) {
			*mbps = rates[i].mbps;
			return true;
		}
	}
	return false;
}

bool vb_value_address(struct vb_span piece, uint8_t gid[VB_GID_BYTES])
{
	static const uint8_t ipv4[12] = { [10] = 0xff, [11] = 0xff };
	char text[VB_ADDRESS_BYTES];

	if (!vb_value_text(piece, text, sizeof(text)))
		return false;
	if (inet_pton(AF_INET6, text, gid) == 1)
		return true;
	memcpy(gid, ipv4, sizeof(ipv4));
	return inet_pton(AF_INET, text, gid + sizeof(ipv4)) == 1;
}

/* So many hexadecimal digits, and the sign behind them, are taken from the piece. */
static bool part_take(struct vb_span *piece, unsigned digits, char sign, unsigned *part)
{
	size_t bytes = digits + (sign ? 1 : 0);

	*part = 0;
	if (piece->bytes < bytes || (sign && piece->text[digits] != sign))
		return false;
	for (unsigned i = 0; i < digits; i++) {
		unsigned digit = digit_of(piece->text[i]);

		if (digit == HEXADECIMAL)
			return false;
		*part = *part * HEXADECIMAL + digit;
	}
	piece->text += bytes;
	piece->bytes -= bytes;
	return true;
}

bool vb_value_pci(struct vb_span piece, char pci[VB_TOPOLOGY_PCI_BYTES])
{
	static const char without_domain[] = "17:00.0";
	unsigned domain = 0, bus, slot, function;

	pci[0] = 0;
	if (vb_span_is(piece, "virtual"))
		return true;
	if (piece.bytes != sizeof(without_domain) - 1 && !part_take(&piece, 4, ':', &domain))
		return false;
	if (!part_take(&piece, 2, ':', &bus) || !part_take(&piece, 2, '.', &slot) ||
	    !part_take(&piece, 1, 0, &function) || piece.bytes || slot > 31 || function > 7)
		return false;
	snprintf(pci, VB_TOPOLOGY_PCI_BYTES, "%04x:%02x:%02x.%x", domain & 0xffff, bus & 0xff, slot,
		 function);
	return true;
}
