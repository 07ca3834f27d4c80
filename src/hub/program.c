/* SPDX-License-Identifier: BSD-2-Clause */
#include "hub/program.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

uint64_t vb_hub_pid_ns(void)
{
	struct stat found;

	return stat("/proc/self/ns/pid", &found) ? 0 : found.st_ino;
}

void vb_hub_program_self(struct vb_hub_program *program)
{
	struct utsname system;

	memset(program, 0, sizeof(*program));
	program->pid = (uint32_t)getpid();
	program->pid_ns = vb_hub_pid_ns();
	/*
	 * Not the thread's name: the thread that greets a later hub is our own. Not the process's
	 * name: under valgrind that is valgrind.
	 */
	vb_hub_text_copy(program->comm, sizeof(program->comm), program_invocation_short_name);
	if (!uname(&system))
		vb_hub_text_copy(program->host, sizeof(program->host), system.nodename);
}

const char *vb_hub_program_number(char *text, uint32_t pid, const struct vb_hub_program *program)
{
	if (pid)
		snprintf(text, VB_HUB_NUMBER_BYTES, "%" PRIu32, pid);
	else
		snprintf(text, VB_HUB_NUMBER_BYTES, "%" PRIu32 "@%" PRIu64, program->pid,
			 program->pid_ns);
	return text;
}
