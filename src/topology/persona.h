/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_TOPOLOGY_PERSONA_H
#define VB_TOPOLOGY_PERSONA_H

/*
 * What a device says that it is: programs choose code by it. A persona is a text file; those of
 * src/topology/personas are built in, others are the user's. Pure: any thread.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "topology/keys.h"
#include "topology/limits.h"

enum {
	VB_PERSONA_NAME_BYTES = 64,
	VB_PERSONA_FW_BYTES = 64, /* as in struct ibv_device_attr */
	VB_PERSONA_WHY_BYTES = 512,
	VB_PERSONA_TEXT_BYTES_MAX = 1 << 16, /* of a file */
};

/* Services that a device offers; bits. */
enum vb_offered {
	VB_OFFERS_RC = 1,
	VB_OFFERS_UC = 2,
	VB_OFFERS_UD = 4,
	VB_OFFERS_XRC = 8,
	VB_OFFERS_DC = 16,
	VB_OFFERS_RAW = 32,
	VB_OFFERS_SRD = 64,
};

/* No pointers: a tape keeps it as it is. */
struct vb_persona {
	char name[VB_PERSONA_NAME_BYTES]; /* "neutral"; of a file, without its folder */
	char fw_ver[VB_PERSONA_FW_BYTES];
	uint32_t vendor_id, part_id, hw_ver;
	uint32_t rate_mbps; /* 0: not said */
	bool has_parcels; /* small data travels inside completions by default (nic/data/parcel.h) */
	/* As IBV_NODE_..., IBV_TRANSPORT_... and IBV_LINK_LAYER_... count them. */
	int8_t node_type, transport_type;
	uint8_t link_layer;
	uint8_t gids;	 /* bits of enum vb_gid_variety */
	uint8_t services; /* bits of enum vb_offered */
	struct vb_limits limits;
};

/* The names of the personas that are built in; the first is the neutral one. */
extern const struct vb_words vb_persona_names;

/* Makes the persona of this name that is built in. False: there is none, *persona is untouched. */
bool vb_persona_make(struct vb_persona *persona, const char *name);

/*
 * Reads the text of a file, whose path is `name`. Returns 0; or EINVAL with *persona untouched, and
 * `why` says on one line where and what is wrong, and what is valid.
 */
int vb_persona_parse(struct vb_persona *persona, const char *name, const char *text, size_t bytes,
		     char why[VB_PERSONA_WHY_BYTES]);

/* Are these octets, which may come from anywhere, a persona that a NIC can have? */
bool vb_persona_is_sound(const struct vb_persona *persona);

#endif
