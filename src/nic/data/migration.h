/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_NIC_MIGRATION_H
#define VB_NIC_MIGRATION_H

/* The paths, beside the current one, of a QP with an alternate path (migrate.h). */

#include <stdbool.h>

#include "base/path.h"

struct vb_migration {
	struct vb_path alt;
	struct vb_path old;  /* the primary path before the last migration */
	/* `old` is still valid: the peer may not know of the migration, or packets may be late */
	bool has_old;
	bool refused; /* a migration of the peer's that we did not follow was reported */
};

/* The effect of a packet on a QP with an alternate path. */
enum vb_migration_step {
	VB_MIGRATION_STAY,
	VB_MIGRATION_ARM,     /* the peer waits as well */
	VB_MIGRATION_MIGRATE, /* the peer has migrated */
	VB_MIGRATION_REFUSE,  /* the peer has migrated to a path that we do not follow */
};

#endif
