/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Any text as a fault setting: what is accepted is in range, and means the same written anew; of
 * what is refused, one line says why.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/check.h"
#include "fuzz.h"
#include "link/around/fault.h"
#include "link/around/fault_parse.h"

enum { TEXT_BYTES_MAX = 256 };

static void percent_write(char *text, const char *name, uint32_t parts)
{
	uint32_t unit = VB_FAULT_PER_UNIT / 100;

	snprintf(text + strlen(text), TEXT_BYTES_MAX - strlen(text), "%s=%u.%07u%%,", name,
		 parts / unit, parts % unit);
}

static void fault_write(char text[TEXT_BYTES_MAX], const struct vb_fault *fault)
{
	text[0] = 0;
	percent_write(text, "loss", fault->loss);
	percent_write(text, "dup", fault->dup);
	percent_write(text, "reorder", fault->reorder);
	percent_write(text, "corrupt", fault->corrupt);
	snprintf(text + strlen(text), TEXT_BYTES_MAX - strlen(text), "delay=%" PRIu64 "ns",
		 fault->delay_ns);
	if (fault->seeded)
		snprintf(text + strlen(text), TEXT_BYTES_MAX - strlen(text), ",seed=%" PRIu64,
			 fault->seed);
}

static void why_check(const char why[VB_FAULT_WHY_BYTES])
{
	size_t chars = strnlen(why, VB_FAULT_WHY_BYTES);

	/* Shorter than the room that there is: nothing was left out. */
	vb_check(chars && chars < VB_FAULT_WHY_BYTES - 1);
	for (size_t i = 0; i < chars; i++)
		vb_check((uint8_t)why[i] >= ' ' && why[i] != 0x7f);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	struct vb_fault fault, again;
	char text[TEXT_BYTES_MAX], why[VB_FAULT_WHY_BYTES];

	if (bytes >= sizeof(text))
		return 0;
	memcpy(text, data, bytes);
	text[bytes] = 0;
	memset(&fault, 0xee, sizeof(fault));
	again = fault;
	memset(why, 'x', sizeof(why));
	if (vb_fault_parse(&fault, text, why)) {
		why_check(why);
		vb_check(memcmp(&fault, &again, sizeof(fault)) == 0);
		return 0;
	}
	vb_check(!why[0]);
	vb_check(fault.loss <= VB_FAULT_PER_UNIT && fault.dup <= VB_FAULT_PER_UNIT);
	vb_check(fault.reorder <= VB_FAULT_PER_UNIT && fault.corrupt <= VB_FAULT_PER_UNIT);
	fault_write(text, &fault);
	vb_check(vb_fault_parse(&again, text, why) == 0);
	vb_check(again.loss == fault.loss && again.dup == fault.dup);
	vb_check(again.reorder == fault.reorder && again.corrupt == fault.corrupt);
	vb_check(again.delay_ns == fault.delay_ns && again.seeded == fault.seeded);
	vb_check(again.seed == fault.seed);
	return 0;
}
