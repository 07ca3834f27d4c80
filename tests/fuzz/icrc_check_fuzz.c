/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Any octets as a path and a frame: 2 octets of identification, 2 of source port, 40 of GRH, the
 * frame. Whatever is accepted is right by another way of computing it, and what is right is
 * accepted, whichever identification the sender had.
 */
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "fuzz.h"
#include "wire/grh.h"
#include "wire/icrc.h"
#include "wire/packet.h"

#define GRH_AT 4
#define FRAME_AT (GRH_AT + VB_GRH_BYTES)

static void path_read(struct vb_path *path, const uint8_t *data)
{
	struct vb_grh grh;

	memset(path, 0, sizeof(*path));
	path->sport = (uint16_t)(data[2] << 8 | data[3]);
	if (vb_grh_parse(&grh, data + GRH_AT)) {
		memcpy(path->src, grh.sgid, VB_GID_BYTES);
		memcpy(path->dst, grh.dgid, VB_GID_BYTES);
	} else {
		memcpy(path->src, data + GRH_AT + 8, VB_GID_BYTES);
		memcpy(path->dst, data + GRH_AT + 24, VB_GID_BYTES);
	}
}

static uint32_t icrc_stepwise(const struct vb_path *path, const uint8_t *frame, size_t bytes,
			      uint16_t id)
{
	uint32_t crc = vb_icrc_start(path, bytes, id);

	crc = vb_icrc_bth(crc, frame, VB_BTH_BYTES);
	for (size_t i = VB_BTH_BYTES; i < bytes - VB_ICRC_BYTES; i++)
		crc = vb_icrc_add(crc, frame + i, 1);
	return vb_icrc_finish(crc);
}

static void check_mended(const struct vb_path *path, const uint8_t *frame, size_t bytes,
			 uint16_t id_sent)
{
	uint8_t *copy = malloc(bytes);
	uint16_t id;

	vb_check(copy);
	memcpy(copy, frame, bytes);
	vb_icrc_put(copy + bytes - VB_ICRC_BYTES, vb_icrc_frame(path, frame, bytes, id_sent));
	vb_check(vb_icrc_check(path, copy, bytes, 0, &id));
	vb_check(id == (vb_gid_is_ipv4(path->dst) ? id_sent : 0));
	free(copy);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	struct vb_path path;
	const uint8_t *frame;
	size_t frame_bytes;
	uint16_t id, id_hint;

	if (bytes < FRAME_AT)
		return 0;
	path_read(&path, data);
	id_hint = (uint16_t)(data[0] << 8 | data[1]);
	frame = data + FRAME_AT;
	frame_bytes = bytes - FRAME_AT;
	if (vb_icrc_check(&path, frame, frame_bytes, id_hint, &id))
		vb_check(icrc_stepwise(&path, frame, frame_bytes, id) ==
			 vb_icrc_get(frame + frame_bytes - VB_ICRC_BYTES));
	if (frame_bytes >= VB_FRAME_BYTES_MIN && frame_bytes <= VB_FRAME_BYTES_MAX &&
	    frame_bytes % 4 == 0)
		check_mended(&path, frame, frame_bytes, id_hint);
	return 0;
}
