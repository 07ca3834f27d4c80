/* SPDX-License-Identifier: BSD-2-Clause */
/* Any octets as what rsockets exchange: what is read, written and read again, is the same. */
#include <string.h>

#include "base/check.h"
#include "fuzz.h"
#include "wire/rs.h"

static void try_hello(const uint8_t in[VB_RS_HELLO_BYTES])
{
	uint8_t out[VB_RS_HELLO_BYTES];
	struct vb_rs_hello hello, again;

	if (!vb_rs_hello_parse(&hello, in))
		return;
	hello.swapped = false;
	hello.has_maps = true;
	hello.maps = vb_rs_maps_round(hello.maps);
	vb_rs_hello_emit(&hello, out);
	vb_check(vb_rs_hello_parse(&again, out));
	vb_check(again.credits == hello.credits && again.has_maps && !again.swapped &&
		 !memcmp(&again.targets, &hello.targets, sizeof(hello.targets)) &&
		 !memcmp(&again.buffer, &hello.buffer, sizeof(hello.buffer)));
}

static void try_from(const uint8_t *in, unsigned bytes)
{
	uint8_t out[VB_RS_FROM_BYTES_MAX];
	struct vb_rs_from from, again;
	unsigned took = vb_rs_from_parse(&from, in, bytes);

	vb_check(took <= bytes);
	if (!took)
		return;
	vb_check(vb_rs_from_emit(&from, out) == took);
	vb_check(vb_rs_from_parse(&again, out, took) == took && again.port == from.port);
}

static void try_first(const uint8_t *in, unsigned bytes)
{
	uint8_t out[VB_RS_FIRST_BYTES_MAX];
	struct vb_rs_first first, again;
	unsigned took = vb_rs_first_parse(&first, in, bytes);

	vb_check(took <= bytes);
	if (!took)
		return;
	vb_check(vb_rs_first_emit(&first, out) == took);
	vb_check(vb_rs_first_parse(&again, out, took) == took && again.qpn == first.qpn);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	if (bytes >= VB_RS_HELLO_BYTES)
		try_hello(data);
	try_from(data, (unsigned)bytes);
	try_first(data, (unsigned)bytes);
	return 0;
}
