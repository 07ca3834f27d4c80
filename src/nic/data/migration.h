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

#endif
