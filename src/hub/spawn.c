/* SPDX-License-Identifier: BSD-2-Clause */
#include "hub/spawn.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/check.h"
#include "base/failure.h"
#include "base/fd.h"
#include "hub/ordinary.h"
#include "hub/proto.h"
#include "hub/words.h"

enum {
	STACK_BYTES = 64 << 10, /* for each of the two short-lived children */
	ENV_MAX = 32,		/* variables passed on */
	FDS_CLOSED_MAX = 1 << 20,
};

#define ENV_PREFIX "VERBATIM_"

struct vb_hub_spawn {
	char path[PATH_MAX];
	char log[PATH_MAX];
	char protocol[16]; /* our version: verbatimd may have been replaced by another */
	char *env[ENV_MAX + 1];
	uint8_t *stacks;
	bool found;  /* path is verbatimd; otherwise where it was looked for */
	bool forced; /* by VERBATIM_HUB */
	int clone_flags;
	int words_fd, words_in_fd; /* a pipe: the hub's standard output */
	bool ran, ended;
	/* Written by the children, which share our memory: */
	volatile int error;
	const char *volatile failed; /* the call that failed */
};

/* Where verbatimd is, relative to the file that contains this code: the library or `verbatim`. */
static const char *const places[] = {
	"verbatimd",		     /* beside it: the command; an installed library */
	"../verbatimd",		     /* build/lib/libibverbs.so.1 */
	"../lib/verbatim/verbatimd", /* PREFIX/bin/verbatim */
	"../libexec/verbatim/verbatimd",
};

/* If it is not found, spawn->path says where it was looked for. */
static int find(struct vb_hub_spawn *spawn)
{
	const char *forced = secure_getenv("VERBATIM_HUB");
	char self[PATH_MAX], *path = spawn->path;
	Dl_info info;
	char *end;

	spawn->forced = forced != NULL;
	if (forced) {
		if (realpath(forced, path) && !access(path, X_OK))
			return 0;
		snprintf(path, PATH_MAX, "%s", forced);
		return ENOENT;
	}
	snprintf(path, PATH_MAX, "(not known)");
	if (!dladdr((void *)find, &info) || !realpath(info.dli_fname, self)) {
		ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);

		if (n < 0)
			return ENOENT;
		self[n] = 0;
	}
	end = strrchr(self, '/');
	if (!end)
		return ENOENT;
	end[1] = 0;
	for (unsigned i = 0; i < VB_ARRAY_LEN(places); i++) {
		int used = snprintf(path, PATH_MAX, "%s%s", self, places[i]);

		if (used < PATH_MAX && !access(path, X_OK))
			return 0;
	}
	snprintf(path, PATH_MAX, "%s", self);
	return ENOENT;
}

/*
 * Passes on our own settings only: not LD_PRELOAD, and not an application's secrets. A setuid
 * program has none (run/process/env.h).
 */
static void env_pick(struct vb_hub_spawn *spawn)
{
	char **env = getauxval(AT_SECURE) ? NULL : environ;
	unsigned n = 0;

	for (; env && *env && n < ENV_MAX; env++) {
		if (strncmp(*env, ENV_PREFIX, strlen(ENV_PREFIX)))
			continue;
		spawn->env[n] = strdup(*env);
		n += spawn->env[n] != NULL;
	}
}

/*
 * VERBATIM_LOG is "stderr" or a file (run/process/log.h). The hub outlives terminals, so it gets
 * only a file, by its absolute name, since its directory differs.
 */
static void log_pick(struct vb_hub_spawn *spawn)
{
	const char *log = secure_getenv("VERBATIM_LOG");
	char here[PATH_MAX] = "";
	bool none = !log || !*log || !strcmp(log, "stderr");
	int used = 0;

	if (!none && *log != '/')
		none = !getcwd(here, sizeof(here));
	if (!none)
		used = snprintf(spawn->log, PATH_MAX, "%s%s%s", here, *here ? "/" : "", log);
	if (none || used < 0 || used >= PATH_MAX)
		snprintf(spawn->log, PATH_MAX, "/dev/null");
}

/* Closes what the kernel lists, without allocating: this is a child of a process with threads. */
static bool listed_close(void)
{
	_Alignas(struct dirent64) char buf[4096];
	int dir = open("/proc/self/fd", O_RDONLY | O_DIRECTORY);
	long n;

	if (dir < 0)
		return false;
	while ((n = syscall(SYS_getdents64, dir, buf, sizeof(buf))) > 0) {
		for (long at = 0; at < n;) {
			const struct dirent64 *entry = (const void *)(buf + at);
			int fd = atoi(entry->d_name);

			if (fd > STDERR_FILENO && fd != dir)
				close(fd);
			at += entry->d_reclen;
		}
	}
	close(dir);
	return n == 0;
}

static void files_close(void)
{
	long max;

	/* Older kernels lack close_range(), and trying each number may mean a million calls. */
	if (!syscall(SYS_close_range, STDERR_FILENO + 1, ~0u, 0) || listed_close())
		return;
	max = sysconf(_SC_OPEN_MAX);
	if (max < 0 || max > FDS_CLOSED_MAX)
		max = FDS_CLOSED_MAX;
	for (int fd = STDERR_FILENO + 1; fd < max; fd++)
		close(fd);
}

static void files_open(const struct vb_hub_spawn *spawn)
{
	bool words = dup2(spawn->words_in_fd, STDOUT_FILENO) >= 0;
	int null, log;

	/* dup2() onto itself leaves close-on-exec set. */
	fcntl(STDOUT_FILENO, F_SETFD, 0);
	/* First of all, since the application may have left no free descriptor. */
	files_close();
	null = open("/dev/null", O_RDWR);
	/* The application may have closed any of the standard three: keep our files above them. */
	while (null >= 0 && null <= STDERR_FILENO)
		null = dup(null);
	log = open(spawn->log, O_WRONLY | O_CREAT | O_APPEND, 0644);
	while (log >= 0 && log <= STDERR_FILENO)
		log = dup(log);
	dup2(null, STDIN_FILENO);
	if (!words)
		dup2(null, STDOUT_FILENO);
	dup2(log < 0 ? null : log, STDERR_FILENO);
	files_close();
}

static void child_failed(struct vb_hub_spawn *spawn, const char *call)
{
	spawn->failed = call;
	spawn->error = errno;
}

/*
 * The future hub. Until exec it shares our memory, but not files or signal handlers. Returning ends
 * it without running the application's exit handlers.
 */
static int leaf(void *arg)
{
	struct vb_hub_spawn *spawn = arg;
	char *argv[] = {"verbatimd", spawn->protocol, NULL};
	struct sigaction standard = {.sa_handler = SIG_DFL};
	sigset_t none;

	/* exec resets handlers, but ignored signals would stay ignored. */
	for (int sig = 1; sig < NSIG; sig++)
		sigaction(sig, &standard, NULL);
	files_open(spawn);
	/*
	 * Before exec: after a parent with a real-time policy, the program might never get to run.
	 */
	vb_hub_ordinary();
	if (chdir("/"))
		child_failed(spawn, "chdir");
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	execve(spawn->path, argv, spawn->env);
	child_failed(spawn, "execve");
	return 127;
}

/*
 * The child in between: it leads a new session, and its death gives the hub to init. A tool such as
 * valgrind sees it as a copy of the application: if it exited normally, the tool would search it
 * for leaks for seconds while the application waits. SIGKILL goes unnoticed by such tools, sent by
 * sigqueue() since they watch kill().
 */
static int middle(void *arg)
{
	const union sigval nothing = {0};
	struct vb_hub_spawn *spawn = arg;

	setsid();
	if (clone(leaf, spawn->stacks + 2 * STACK_BYTES, spawn->clone_flags, spawn) < 0)
		child_failed(spawn, "clone");
	sigqueue(getpid(), SIGKILL, nothing);
	return 0;
}

/*
 * Children cloned without an exit signal are invisible to the application: they cause no SIGCHLD,
 * and its wait() does not find them (clone(2), __WCLONE in waitpid(2)).
 */
static void children_run(struct vb_hub_spawn *spawn)
{
	sigset_t all, before;
	int state;
	pid_t pid;

	/* The children share our memory: no handler of the application may run in them. */
	sigfillset(&all);
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	pid = clone(middle, spawn->stacks + STACK_BYTES, spawn->clone_flags, spawn);
	if (pid < 0)
		child_failed(spawn, "clone");
	else
		while (waitpid(pid, NULL, __WCLONE) < 0 && errno == EINTR)
			continue;
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_setcancelstate(state, NULL);
}

/*
 * Sharing memory saves a large application from copying its page tables. ThreadSanitizer, which may
 * be in the application only, would attribute the children's accesses to the parent. With it they
 * get a copy, and an error of theirs shows as a hub that does not answer.
 */
static int clone_flags(void)
{
	return CLONE_VFORK | (dlsym(RTLD_DEFAULT, "__tsan_init") ? 0 : CLONE_VM);
}

int vb_hub_spawn_create(struct vb_hub_spawn **result)
{
	struct vb_hub_spawn *spawn = calloc(1, sizeof(*spawn));

	if (!spawn)
		return vb_failed(ENOMEM, "calloc");
	spawn->words_fd = spawn->words_in_fd = VB_FD_NONE;
	spawn->stacks = mmap(NULL, 2 * STACK_BYTES, PROT_READ | PROT_WRITE,
			     MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
	if (spawn->stacks == MAP_FAILED) {
		free(spawn);
		return vb_failed(ENOMEM, "mmap");
	}
	spawn->found = !find(spawn);
	snprintf(spawn->protocol, sizeof(spawn->protocol), "%d", VB_HUB_PROTOCOL);
	spawn->clone_flags = clone_flags();
	env_pick(spawn);
	log_pick(spawn);
	*result = spawn;
	return 0;
}

int vb_hub_spawn_run(struct vb_hub_spawn *spawn)
{
	int fds[2] = {VB_FD_NONE, VB_FD_NONE};
	char why[VB_FAILURE_BYTES / 2];

	if (!spawn->found)
		return vb_failed_words(ENOENT, "there is no verbatimd to start%s: %s",
				       spawn->forced ? "; VERBATIM_HUB is not a program"
						     : " in this folder, nor in the one above it",
				       spawn->path);
	vb_fd_close(&spawn->words_fd);
	/* Without the pipe we only learn less about failures. */
	if (pipe2(fds, O_CLOEXEC | O_NONBLOCK))
		fds[0] = fds[1] = VB_FD_NONE;
	spawn->words_fd = fds[0];
	spawn->words_in_fd = fds[1];
	spawn->error = 0;
	spawn->ran = true;
	spawn->ended = false;
	children_run(spawn);
	vb_fd_close(&spawn->words_in_fd);
	if (!spawn->error)
		return 0;
	vb_failed(spawn->error, spawn->failed);
	return vb_failed_words(spawn->error, "%s (to start %s)",
			       vb_failure_words(why, sizeof(why), spawn->error), spawn->path);
}

int vb_hub_spawn_result(struct vb_hub_spawn *spawn)
{
	char line[VB_FAILURE_BYTES], *why;
	ssize_t n;
	long error;

	if (spawn->words_fd == VB_FD_NONE)
		return 0;
	n = read(spawn->words_fd, line, sizeof(line) - 1);
	if (n < 0)
		return 0;
	spawn->ended = true;
	vb_fd_close(&spawn->words_fd);
	line[n] = 0;
	line[strcspn(line, "\n")] = 0;
	error = strtol(line, &why, 10);
	if (error <= 0 || error > INT_MAX || *why != ' ')
		return 0;
	return vb_failed_words((int)error, "the hub: %s", why + 1);
}

bool vb_hub_spawn_ended(const struct vb_hub_spawn *spawn)
{
	return spawn->ended;
}

int vb_hub_spawn_silent(struct vb_hub_spawn *spawn)
{
	if (!spawn->ran)
		return vb_failed_words(ETIMEDOUT, "the hub: it does not answer");
	return vb_failed_words(ETIMEDOUT, "the hub: it does not answer; what was started%s is %s",
			       spawn->ended ? ", and ended without a word," : "", spawn->path);
}

void vb_hub_spawn_settle(struct vb_hub_spawn *spawn)
{
	vb_fd_close(&spawn->words_fd);
}

void vb_hub_spawn_destroy(struct vb_hub_spawn *spawn)
{
	if (!spawn)
		return;
	for (unsigned i = 0; i < ENV_MAX; i++)
		free(spawn->env[i]);
	vb_fd_close(&spawn->words_fd);
	munmap(spawn->stacks, 2 * STACK_BYTES);
	free(spawn);
}
