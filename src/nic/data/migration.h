/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_NIC_MIGRATION_H
#define VB_NIC_MIGRATION_H

/* The paths of a QP that has an alternate one, beside that which it takes (migrate.h). */

#include <stdbool.h>

#include "base/path.h"

struct vb_migration {
	struct vb_path alt;
	struct vb_path old;  /* the primary path before the last migration */
	bool has_old; /* the peer may not have heard of it yet, or a packet is late: it is good */
	bool refused; /* that the peer wanted to migrate and could not was told */
};

/* What a packet makes of a QP that has an alternate path. */
enum vb_migration_step {
	VB_MIGRATION_STAY,
	VB_MIGRATION_ARM,     /* the peer waits as well */
	VB_MIGRATION_MIGRATE, /* the peer has */
	VB_MIGRATION_REFUSE,  /* the peer has, to where we would not follow it */
};

#endif
