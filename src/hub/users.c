/* SPDX-License-Identifier: BSD-2-Clause */
#include "hub/users.h"

#include <inttypes.h>

enum { OVERFLOW_UID = 65534, LINE_BYTES = 128 };

uint32_t vb_users_nobody_read(FILE *uid_map, FILE *overflowuid)
{
	uint32_t nobody = OVERFLOW_UID, inside, count;
	char line[LINE_BYTES];

	if (overflowuid && fgets(line, sizeof(line), overflowuid))
		sscanf(line, "%" SCNu32, &nobody);
	while (uid_map && fgets(line, sizeof(line), uid_map)) {
		if (sscanf(line, "%" SCNu32 " %*u %" SCNu32, &inside, &count) == 2 &&
		    nobody >= inside && nobody - inside < count)
			return 0;
	}
	return nobody;
}

uint32_t vb_users_nobody(void)
{
	FILE *uid_map = fopen("/proc/self/uid_map", "re");
	FILE *overflowuid = fopen("/proc/sys/kernel/overflowuid", "re");
	uint32_t nobody = vb_users_nobody_read(uid_map, overflowuid);

	if (uid_map)
		fclose(uid_map);
	if (overflowuid)
		fclose(overflowuid);
	return nobody;
}

const char *vb_users_words(char *text, size_t bytes, uint32_t uid, uint32_t nobody)
{
	if (nobody && uid == nobody)
		snprintf(text, bytes,
			 "a user of another user namespace, without a number in this one");
	else
		snprintf(text, bytes, "uid %" PRIu32, uid);
	return text;
}
