/* SPDX-License-Identifier: BSD-2-Clause */
#include "run/process/record.h"

#include <string.h>

#include "hub/words.h"
#include "run/process/log.h"
#include "tape/tape.h"

static void is_full(const char *words)
{
	vb_log("VERBATIM_RECORD: %s", words);
}

int vb_record_start(const struct vb_env *env)
{
	int rc = env->record ? vb_tape_open(env->record, env->record_bytes, is_full) : 0;

	if (rc != 0)
		vb_failed_words(rc, "VERBATIM_RECORD: %s: %s", env->record, strerror(rc));
	return rc;
}
