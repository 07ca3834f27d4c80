/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * refuse CALL=ERRNO ... -- CMD ARGS ...: runs CMD with these system calls refused, as the filter of
 * a container or a sandbox does. Exit status 77: this kernel lets us make no filter.
 */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/check.h"

enum { NO_FILTER = 77, USAGE = 2, REFUSED_MAX = 32 };

struct name {
	const char *name;
	unsigned value;
};

#define CALL(name)                \
	{                         \
#name, SYS_##name \
	}

static const struct name calls[] = {
	CALL(accept4),	 CALL(bind),	      CALL(clone),	    CALL(clone3),
	CALL(connect),	 CALL(epoll_create1), CALL(epoll_ctl),	    CALL(eventfd2),
	CALL(ftruncate), CALL(getsockopt),    CALL(listen),	    CALL(memfd_create),
	CALL(pipe2),	 CALL(recvmsg),	      CALL(sendmsg),	    CALL(setsockopt),
	CALL(socket),	 CALL(socketpair),    CALL(timerfd_create), CALL(timerfd_settime),
};

static const struct name errors[] = {
	{"EPERM", EPERM},   {"ENOSYS", ENOSYS}, {"EACCES", EACCES},
	{"EMFILE", EMFILE}, {"EAGAIN", EAGAIN}, {"ENOMEM", ENOMEM},
};

static unsigned value_of(const struct name *names, unsigned n, const char *word, size_t chars)
{
	for (unsigned i = 0; i < n; i++) {
		if (strlen(names[i].name) == chars && !strncmp(names[i].name, word, chars))
			return names[i].value;
	}
	fprintf(stderr, "refuse: it knows no %.*s\n", (int)chars, word);
	exit(USAGE);
}

int main(int argc, char **argv)
{
	struct sock_filter code[2 * REFUSED_MAX + 2] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
	};
	unsigned short n = 1;
	int i = 1;

	for (; i < argc && i <= REFUSED_MAX && strcmp(argv[i], "--"); i++) {
		const char *mark = strchr(argv[i], '=');
		size_t chars = mark ? (size_t)(mark - argv[i]) : strlen(argv[i]);
		const char *error = mark ? mark + 1 : "";
		unsigned call = value_of(calls, VB_ARRAY_LEN(calls), argv[i], chars);
		unsigned number = value_of(errors, VB_ARRAY_LEN(errors), error, strlen(error));

		code[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call, 0, 1);
		code[n++] =
			(struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | number);
	}
	if (i + 1 >= argc) {
		fputs("usage: refuse CALL=ERRNO ... -- CMD ARGS ...\n", stderr);
		return USAGE;
	}
	code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &(struct sock_fprog){n, code})) {
		perror("refuse: prctl");
		return NO_FILTER;
	}
	execvp(argv[i + 1], argv + i + 1);
	perror(argv[i + 1]);
	return 127;
}
