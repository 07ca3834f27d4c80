/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_RUN_TOPOLOGY_H
#define VB_RUN_TOPOLOGY_H

/*
 * What the settings say of this process's devices: VERBATIM_DEVICES and VERBATIM_PERSONA, which may
 * name files. Any thread.
 */

#include "run/process/env.h"
#include "topology/persona.h"
#include "topology/table.h"

/* A file's path before what it says. */
enum { VB_TOPOLOGY_FILE_WHY_BYTES = VB_TOPOLOGY_WHY_BYTES + 64 };

/*
 * Reads the table. Returns 0, EINVAL, or the errno of the file; then *topology is untouched, and
 * `why` says on one line what is wrong, with the setting's name.
 */
int vb_topology_read(struct vb_topology *topology, const struct vb_env *env,
		     char why[VB_TOPOLOGY_FILE_WHY_BYTES]);

/*
 * The persona of a device of the table, with all that is said of its limits: the persona's own,
 * above them VERBATIM_LIMITS, above these the device's. Returns as above.
 */
int vb_persona_read(struct vb_persona *persona, const struct vb_topology_device *device,
		    const struct vb_env *env, char why[VB_TOPOLOGY_FILE_WHY_BYTES]);

/*
 * The table as the settings had it when somebody first asked, for the life of the process. NULL:
 * they are wrong, and the log says how.
 */
const struct vb_topology *vb_topology_here(void);

/* What the device of this row is called, once there is a device; beyond the table: rdma_cm. */
const char *vb_topology_name(unsigned row);

/*
 * All that the settings say for the device of this row; a row beyond the table has what is said of
 * none. Returns 0 or an errno, with words.
 */
int vb_settings_read(unsigned row, struct vb_env *env, struct vb_persona *persona,
		     char why[VB_ENV_WHY_BYTES]);

#endif
