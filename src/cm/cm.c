/* SPDX-License-Identifier: BSD-2-Clause */
#include "cm/cm.h"

#include <stddef.h>

#include "base/check.h"
#include "base/prf.h"
#include "cm/id.h"
#include "cm/repeat.h"

void vb_cm_init(struct vb_cm *cm, const struct vb_cm_settings *settings,
		const struct vb_cm_host *host)
{
	*cm = (struct vb_cm){.settings = *settings, .host = *host};
	vb_cm_table_init(&cm->by_local, cm->settings.secret);
	vb_cm_table_init(&cm->by_remote, cm->settings.secret);
	vb_cm_table_init(&cm->by_qpn, cm->settings.secret);
	vb_cm_table_init(&cm->by_service, cm->settings.secret);
	TAILQ_INIT(&cm->ids);
	TAILQ_INIT(&cm->lingering);
}

void vb_cm_fini(struct vb_cm *cm)
{
	while (!TAILQ_EMPTY(&cm->ids))
		vb_cm_id_forget(TAILQ_FIRST(&cm->ids));
	while (!TAILQ_EMPTY(&cm->lingering))
		vb_cm_id_forget(TAILQ_FIRST(&cm->lingering));
	vb_cm_table_fini(&cm->by_local, &cm->host);
	vb_cm_table_fini(&cm->by_remote, &cm->host);
	vb_cm_table_fini(&cm->by_qpn, &cm->host);
	vb_cm_table_fini(&cm->by_service, &cm->host);
	vb_cm_clocks_fini(&cm->clocks, &cm->host);
}

uint64_t vb_cm_deadline_ns(const struct vb_cm *cm)
{
	const struct vb_cm_clock *first = vb_cm_clocks_first(&cm->clocks);

	return first ? first->at_ns : VB_CM_NEVER;
}

void vb_cm_turn(struct vb_cm *cm, uint64_t now_ns)
{
	cm->now_ns = now_ns;
	while (vb_cm_deadline_ns(cm) <= now_ns) {
		struct vb_cm_clock *first = vb_cm_clocks_first(&cm->clocks);

		vb_cm_repeat_ring(vb_container_of(first, struct vb_cm_id, clock));
	}
}

uint64_t vb_cm_draw(struct vb_cm *cm)
{
	return vb_prf(cm->settings.secret, cm->drawn++);
}
