/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_RUN_ENV_H
#define VB_RUN_ENV_H

/*
 * The VERBATIM_* settings of the environment, described in docs/settings.md. They are read when a
 * device is opened for the first time. A setuid program gets the defaults: its caller must not
 * make it write files or lose packets.
 */

#include <stdbool.h>
#include <stdint.h>

enum vb_env_link {
	VB_ENV_LINK_ANY, /* shared memory within a host, unless faults or a capture are asked for */
	VB_ENV_LINK_UDP,
	VB_ENV_LINK_SHM, /* and nothing else */
};

struct vb_env {
	enum vb_env_link link; /* VERBATIM_LINK */
	const char *fault; /* VERBATIM_FAULT, NULL: none */
	const char *pcap;  /* VERBATIM_PCAP, NULL: none */
	const char *ethernet; /* VERBATIM_ETH, NULL: none */
	uint64_t seed;	   /* VERBATIM_SEED, of keys and first numbers */
	bool shared_mr;	   /* VERBATIM_SHARED_MR: registered memory may be moved into a memfd */
	const char *persona; /* VERBATIM_PERSONA, NULL: the neutral one */
	bool seeded;	   /* false: seed is not set, take an unpredictable one */
};

/*
 * Reads the settings through get (getenv's contract). 0, or EINVAL for a value that is not one of
 * those documented; then *bad is the setting's name and *env is untouched.
 */
int vb_env_read(struct vb_env *env, char *(*get)(const char *name), const char **bad);

#endif
