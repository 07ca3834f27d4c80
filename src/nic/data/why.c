/* SPDX-License-Identifier: BSD-2-Clause */
#include "nic/data/why.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/check.h"
#include "nic/core/internal.h"
#include "nic/core/names.h"

static const struct {
	const char *words, *look;
} rows[] = {
#define ROW(code, name, words, look) [code] = { words, look },
	VB_WHYS(ROW)
#undef ROW
};

const char *vb_why_words(enum vb_why why)
{
	return why < VB_ARRAY_LEN(rows) && rows[why].words ? rows[why].words : "";
}

const char *vb_why_look(enum vb_why why)
{
	return why < VB_ARRAY_LEN(rows) && rows[why].look ? rows[why].look : "";
}

/* An entry that others change is read again, but not for ever: this is only for people. */
static bool entry_read(const struct vb_access *a, struct vb_export_region *region)
{
	const struct vb_export_key *entry = &a->export->key[vb_key_place(a->key)];

	for (int i = 0; i < 100; i++)
		if (vb_export_key_read(entry, region))
			return true;
	return false;
}

static void say_bounds(const struct vb_access *a, const struct vb_export_region *region,
		       char words[VB_WHY_BYTES])
{
	uint64_t end = a->va + a->bytes, region_end = region->iova + region->bytes;

	if (a->va < region->iova || a->va >= region_end)
		snprintf(words, VB_WHY_BYTES,
			 "0x%" PRIx64 " is outside of the region of %s 0x%x, which has %" PRIu64
			 " octets from 0x%" PRIx64 " on",
			 a->va, a->what, a->key, region->bytes, region->iova);
	else
		snprintf(words, VB_WHY_BYTES,
			 "%" PRIu64 " octets at 0x%" PRIx64 " pass the end of the region of %s "
			 "0x%x by %" PRIu64 ": it has %" PRIu64 " octets from 0x%" PRIx64 " on",
			 a->bytes, a->va, a->what, a->key, end - region_end, region->bytes,
			 region->iova);
}

enum vb_why vb_why_key(const struct vb_access *a, char words[VB_WHY_BYTES])
{
	struct vb_export_region region;
	char has[160], wants[160];

	if (!entry_read(a, &region) || !region.key || region.key != a->key) {
		snprintf(words, VB_WHY_BYTES,
			 "no region has %s 0x%x: it was deregistered, or is not a key of this "
			 "device", a->what, a->key);
		return VB_WHY_RKEY_UNKNOWN;
	}
	if (region.pd == VB_EXPORT_PD_INDIRECT) {
		snprintf(words, VB_WHY_BYTES, "the indirect key %s 0x%x does not allow it", a->what,
			 a->key);
		return VB_WHY_RKEY_INDIRECT;
	}
	if (region.pd && region.pd != a->pd) {
		snprintf(words, VB_WHY_BYTES, "%s 0x%x belongs to another PD than the QP", a->what,
			 a->key);
		return VB_WHY_RKEY_PD;
	}
	if ((region.access & a->rights) != a->rights) {
		snprintf(words, VB_WHY_BYTES,
			 "the region of %s 0x%x was registered with %s, so without %s", a->what,
			 a->key, vb_access_names(has, sizeof(has),
					 region.access & ~VB_ACCESS_DISORDER),
			 vb_access_names(wants, sizeof(wants), a->rights & ~region.access));
		return VB_WHY_RKEY_RIGHT;
	}
	if (a->va < region.iova || a->bytes > region.bytes ||
	    a->va - region.iova > region.bytes - a->bytes) {
		say_bounds(a, &region, words);
		return VB_WHY_RKEY_BOUNDS;
	}
	snprintf(words, VB_WHY_BYTES,
		 "%" PRIu64 " octets at 0x%" PRIx64 " (%s 0x%x) are not mapped", a->bytes, a->va,
		 a->what, a->key);
	return VB_WHY_RKEY_MEMORY;
}

enum vb_why vb_why_sge(const struct vb_access *access, char words[VB_WHY_BYTES])
{
	return (enum vb_why)(vb_why_key(access, words) - VB_WHY_RKEY_UNKNOWN + VB_WHY_LKEY_UNKNOWN);
}

enum vb_why vb_why_verdict(enum vb_verdict verdict)
{
	static const enum vb_why whys[VB_VERDICTS] = {
		[VB_NO_RECV] = VB_WHY_NOT_READY,
		[VB_BAD_SEQUENCE] = VB_WHY_SEQUENCE,
		[VB_BAD_OPCODE] = VB_WHY_OPCODE,
		[VB_BAD_LENGTH] = VB_WHY_LENGTH,
		[VB_TOO_LONG] = VB_WHY_TOO_LONG,
		[VB_BAD_ACCESS] = VB_WHY_RKEY_UNKNOWN,
		[VB_BAD_INVALIDATE] = VB_WHY_KEY_INVALIDATE,
		[VB_MISALIGNED] = VB_WHY_MISALIGNED,
		[VB_BAD_RESOURCES] = VB_WHY_TOO_MANY,
		[VB_BAD_RECV_SGE] = VB_WHY_LKEY_UNKNOWN,
		[VB_BAD_MEMORY] = VB_WHY_RKEY_MEMORY,
	};

	return whys[verdict];
}

uint32_t vb_why_vendor(const struct vb_nic *nic, enum ibv_wc_status status, enum vb_why why)
{
	static const uint8_t efa[] = {
		[IBV_WC_WR_FLUSH_ERR] = 1,
		[IBV_WC_LOC_QP_OP_ERR] = 2,
		[IBV_WC_LOC_PROT_ERR] = 5,
		[IBV_WC_LOC_LEN_ERR] = 6,
		[IBV_WC_REM_ACCESS_ERR] = 7,
		[IBV_WC_REM_ABORT_ERR] = 8,
		[IBV_WC_REM_INV_RD_REQ_ERR] = 9,
		[IBV_WC_RNR_RETRY_EXC_ERR] = 10,
		[IBV_WC_REM_INV_REQ_ERR] = 11,
		[IBV_WC_BAD_RESP_ERR] = 12,
		[IBV_WC_RESP_TIMEOUT_ERR] = 13,
	};

	if (!vb_nic_offers_srd(nic))
		return why;
	return (unsigned)status < VB_ARRAY_LEN(efa) ? efa[status] : 0;
}
