/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_RUN_ENV_H
#define VB_RUN_ENV_H

/*
 * The VERBATIM_* settings of the environment, described in docs/settings.md, in one table. The
 * library reads them when a device is opened for the first time, the hub (src/daemon) when it
 * starts, and `verbatim run` before it starts a program.
 *
 * A few are read elsewhere, too: VERBATIM_LOG and VERBATIM_HINTS (log.h), because they say where
 * errors in the others are reported; VERBATIM_HUB and VERBATIM_LOG (hub/spawn.c), for the hub that
 * is to be started.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/words.h"
#include "topology/limits.h"

enum {
	VB_ENV_WHY_BYTES = 768,
	VB_ENV_HUB_IDLE_MS = 10000,
	VB_ENV_HUB_IDLE_MS_MAX = 24 * 3600 * 1000,
	VB_ENV_RNR_TIMER_MAX = 31,
	VB_ENV_LINE_KBPS = 100000000,
	VB_ENV_RECORD_MB = 1024,
	VB_ENV_RECORD_MB_MAX = 1 << 20,
};

enum vb_env_link {
	VB_ENV_LINK_ANY, /* shared memory within a host, unless faults or a capture are asked for */
	VB_ENV_LINK_UDP,
	VB_ENV_LINK_SHM, /* shared memory only */
};

/* What devices there are. */
struct vb_env_device {
	const char *table;   /* VERBATIM_DEVICES, NULL: one that has all interfaces */
	const char *persona; /* VERBATIM_PERSONA: a name or a path, NULL: the neutral one */
	struct vb_limits limits; /* VERBATIM_LIMITS */
};

struct vb_env {
	enum vb_env_link link; /* VERBATIM_LINK */
	const char *fault; /* VERBATIM_FAULT, NULL: none */
	const char *net;   /* VERBATIM_NET, NULL: none */
	const char *faults; /* VERBATIM_FAULTS: a script's file, NULL: none */
	const char *pcap;  /* VERBATIM_PCAP, NULL: none */
	const char *pcapng; /* the same, if the name ends so */
	const char *log;   /* VERBATIM_LOG, NULL: none */
	const char *trace; /* VERBATIM_TRACE, NULL: none */
	const char *record; /* VERBATIM_RECORD: a folder, NULL: none */
	uint64_t record_bytes; /* VERBATIM_RECORD_MB */
	const char *ethernet; /* VERBATIM_ETH, NULL: none */
	uint64_t order_seed;  /* VERBATIM_ORDER ... */
	bool disorder, order_iba; /* ... if it is set, and says "iba" */
	uint64_t seed;	   /* VERBATIM_SEED, for keys and initial PSNs */
	uint64_t hub_idle_ms; /* VERBATIM_HUB_IDLE_MS */
	uint8_t cm_rnr_timer; /* VERBATIM_CM_RNR_TIMER: as min_rnr_timer */
	struct vb_env_device device;
	uint32_t line_kbps; /* of VERBATIM_NET; else what the device says that it has */
	bool no_dcqcn;	   /* VERBATIM_DCQCN=0 */
	bool checks;	   /* VERBATIM_CHECK is set */
	bool delays;	   /* faults or a network may delay what is sent */
	bool shared_mr;	   /* VERBATIM_SHARED_MR: registered memory may be moved into a memfd */
	bool seeded;	   /* VERBATIM_SEED is set; otherwise take an unpredictable seed */
};

/* The names of all settings. */
extern const struct vb_words vb_env_names;

/*
 * This process's environment. In a setuid program it is empty: the caller must not be able to make
 * that program write files or lose packets.
 */
char *const *vb_env_here(void);

/*
 * Reads the settings of an environment (environ(7)); *env points into it. Returns 0; or EINVAL with
 * *env untouched if a value is invalid, or a variable VERBATIM_* that is not empty is unknown. Then
 * `why` names it on one line, with what is valid.
 */
int vb_env_read(struct vb_env *env, char *const *environment, char why[VB_ENV_WHY_BYTES]);

/* The seed for keys and initial PSNs: the user's, or one that nobody can guess. */
uint64_t vb_env_seed(const struct vb_env *env);

#endif
