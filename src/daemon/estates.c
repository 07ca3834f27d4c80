/* SPDX-License-Identifier: BSD-2-Clause */
#include "daemon/estates.h"

#include <stdlib.h>

#include "cm/records.h"
#include "link/robust.h"

/* So long one waits for the last descriptor of a dead process to be closed. */
static const uint64_t patience_ns = 1000000000u;

struct vb_estate {
	struct vb_estate *next;
	struct vb_cm_records *records;
	uint32_t slot;
	uint64_t since_ns;
};

struct vb_cm_records *vb_estate_map(int fd)
{
	return vb_robust_memory_map(fd, sizeof(struct vb_cm_records));
}

void vb_estate_unmap(struct vb_cm_records *records)
{
	if (records)
		vb_robust_memory_unmap(records, sizeof(*records));
}

void vb_estates_add(struct vb_estate **list, struct vb_cm_records *records, uint32_t slot,
		    uint64_t now_ns)
{
	struct vb_estate *estate = records ? malloc(sizeof(*estate)) : NULL;

	if (!estate) {
		vb_estate_unmap(records);
		return;
	}
	*estate = (struct vb_estate){*list, records, slot, now_ns};
	*list = estate;
}

static void close_all(const struct vb_estate *estate, const struct vb_estates_host *host)
{
	uint32_t top = vb_cm_records_top(estate->records);
	uint8_t mad[VB_MAD_BYTES];
	struct vb_path path;

	for (uint32_t i = 0; i < top; i++) {
		if (vb_cm_record_close(&estate->records->record[i], &path, mad))
			host->send(host->arg, &path, mad);
	}
}

bool vb_estates_settle(struct vb_estate **list, const struct vb_estates_host *host,
		       uint64_t now_ns)
{
	struct vb_estate **at = list;

	while (*at) {
		struct vb_estate *estate = *at;
		bool held = host->is_held(host->arg, estate->slot);

		if (held && now_ns - estate->since_ns < patience_ns) {
			at = &estate->next;
			continue;
		}
		if (!held)
			close_all(estate, host);
		*at = estate->next;
		vb_estate_unmap(estate->records);
		free(estate);
	}
	return *list;
}

void vb_estates_free(struct vb_estate **list)
{
	while (*list) {
		struct vb_estate *estate = *list;

		*list = estate->next;
		vb_estate_unmap(estate->records);
		free(estate);
	}
}
