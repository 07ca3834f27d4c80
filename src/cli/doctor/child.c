/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/doctor/child.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/check.h"
#include "base/fd.h"

#define PAUSE_NS 2000000

enum { SAID_BYTES = 16384 };

void *vb_doctor_shared(size_t bytes)
{
	void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	return memory == MAP_FAILED ? NULL : memory;
}

uint64_t vb_doctor_now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

int vb_doctor_child_start(struct vb_doctor_child *child, void (*work)(void *arg), void *arg)
{
	pid_t parent = getpid();
	int pipe_fd[2], null_fd;

	*child = (struct vb_doctor_child){ 0, VB_FD_NONE };
	if (pipe2(pipe_fd, O_NONBLOCK | O_CLOEXEC))
		return errno;
	/* What waits in stdout would be written twice. */
	fflush(stdout);
	child->pid = fork();
	if (child->pid) {
		close(pipe_fd[1]);
		child->said_fd = pipe_fd[0];
		if (child->pid > 0)
			return 0;
		child->pid = 0;
		vb_fd_close(&child->said_fd);
		return errno;
	}
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	if (getppid() != parent || dup2(pipe_fd[1], STDERR_FILENO) < 0)
		_exit(1);
	if (null_fd >= 0)
		dup2(null_fd, STDOUT_FILENO);
	work(arg);
	_exit(0);
}

/* "verbatim[123]: words", of which the last counts. */
static void line_pick(char *text, char *said, size_t bytes)
{
	static const char prefix[] = "verbatim";

	for (char *rest, *line = strtok_r(text, "\n", &rest); line;
	     line = strtok_r(NULL, "\n", &rest)) {
		char *words = strstr(line, ": ");

		if (!strncmp(line, prefix, strlen(prefix)) && words)
			snprintf(said, bytes, "%s", words + 2);
	}
}

bool vb_doctor_child_end(struct vb_doctor_child *child, uint64_t deadline_ns, char *said,
			 size_t bytes)
{
	static char text[SAID_BYTES];
	const struct timespec pause = { 0, PAUSE_NS };
	int status = 0;
	ssize_t n;

	*said = 0;
	if (!child->pid)
		return false;
	while (!waitpid(child->pid, &status, WNOHANG)) {
		if (vb_doctor_now_ns() < deadline_ns) {
			nanosleep(&pause, NULL);
			continue;
		}
		kill(child->pid, SIGKILL);
		waitpid(child->pid, &status, 0);
		break;
	}
	n = read(child->said_fd, text, sizeof(text) - 1);
	text[n < 0 ? 0 : n] = 0;
	line_pick(text, said, bytes);
	vb_fd_close(&child->said_fd);
	child->pid = 0;
	return WIFEXITED(status) && !WEXITSTATUS(status);
}
