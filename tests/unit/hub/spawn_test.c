/* SPDX-License-Identifier: BSD-2-Clause */
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/time.h>

#include "hub_lib.h"

/*
 * The hub is started in the midst of a program that has children, handlers, threads and limits of
 * its own. Run a second time as a program built with -fsanitize=thread, on code that is not.
 */

enum { NOBODY = 65534, TIMES = 20, TICK_US = 200 };

/* Once more, with no hub there. */
static void hub_start(void)
{
	struct vb_hub_client *client;

	hub_stop();
	client = client_open();
	assert_true(hub_pid() > 0);
	vb_hub_client_close(client);
}

static void assert_childless(void)
{
	assert_int_equal(waitpid(-1, NULL, __WALL | WNOHANG), -1);
	assert_int_equal(errno, ECHILD);
}

HUB_TEST(a_program_that_ignores_its_children_may_start_it)
{
	signal(SIGCHLD, SIG_IGN);
	hub_start();
	signal(SIGCHLD, SIG_DFL);
	assert_childless();
}

static atomic_uint reaped;

static void reap_all(int signal)
{
	int before = errno;

	while (waitpid(-1, NULL, WNOHANG) > 0)
		atomic_fetch_add(&reaped, 1);
	errno = before;
}

HUB_TEST(a_handler_that_reaps_gets_its_own_children_only)
{
	atomic_store(&reaped, 0);
	signal(SIGCHLD, reap_all);
	hub_start();
	assert_int_equal(atomic_load(&reaped), 0);
	if (fork() == 0)
		_exit(0);
	while (!atomic_load(&reaped))
		usleep(1000);
	signal(SIGCHLD, SIG_DFL);
	assert_int_equal(atomic_load(&reaped), 1);
	assert_childless();
}

static void *wait_for_any(void *child)
{
	*(pid_t *)child = waitpid(-1, NULL, 0);
	return NULL;
}

HUB_TEST(a_thread_that_waits_gets_its_own_child)
{
	pid_t child, waited = 0;
	pthread_t waiter;
	int go[2];
	char octet;

	assert_int_equal(pipe2(go, O_CLOEXEC), 0);
	child = fork();
	if (child == 0) {
		close(go[1]);
		_exit(read(go[0], &octet, 1) != 0);
	}
	close(go[0]);
	assert_int_equal(pthread_create(&waiter, NULL, wait_for_any, &waited), 0);
	hub_start();
	close(go[1]);
	pthread_join(waiter, NULL);
	assert_int_equal(waited, child);
	assert_childless();
}

static atomic_bool over;

/* Such as a process that is everybody's parent in its container. */
static void *reap_always(void *arg)
{
	while (!atomic_load(&over))
		waitpid(-1, NULL, __WALL | WNOHANG);
	return NULL;
}

HUB_TEST(whoever_reaps_ours_does_no_harm)
{
	pthread_t reaper;

	atomic_store(&over, false);
	assert_int_equal(pthread_create(&reaper, NULL, reap_always, NULL), 0);
	for (unsigned i = 0; i < TIMES; i++)
		hub_start();
	atomic_store(&over, true);
	pthread_join(reaper, NULL);
	assert_childless();
}

static atomic_uint ticks, strangers;
static pid_t self;

/* glibc's getpid() asks the kernel, like this. */
static void on_tick(int signal)
{
	atomic_fetch_add(&ticks, 1);
	if (syscall(SYS_getpid) != self)
		atomic_fetch_add(&strangers, 1);
}

/* And they are all still there: what the hub's start resets, it resets in the hub. */
HUB_TEST(handlers_run_in_the_program_only)
{
	struct itimerval timer = {{0, TICK_US}, {0, TICK_US}};

	self = getpid();
	signal(SIGALRM, on_tick);
	assert_int_equal(setitimer(ITIMER_REAL, &timer, NULL), 0);
	for (unsigned i = 0; i < TIMES; i++)
		hub_start();
	atomic_store(&ticks, 0);
	while (!atomic_load(&ticks))
		usleep(1000);
	setitimer(ITIMER_REAL, &(struct itimerval){0}, NULL);
	signal(SIGALRM, SIG_DFL);
	assert_int_equal(atomic_load(&strangers), 0);
}

static unsigned forks;

static void on_fork(void)
{
	forks++;
}

HUB_TEST(handlers_of_forks_do_not_run)
{
	pthread_atfork(on_fork, on_fork, on_fork);
	forks = 0;
	hub_start();
	assert_int_equal(forks, 0);
}

/* A line of /proc/PID/status that is a number in hexadecimal. */
static uint64_t status_read(pid_t pid, const char *name)
{
	char path[64], line[256], *after;
	uint64_t value = ~0ull;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	file = fopen(path, "re");
	assert_non_null(file);
	while (fgets(line, sizeof(line), file)) {
		after = strchr(line, ':');
		if (after && (size_t)(after - line) == strlen(name) &&
		    !strncmp(line, name, strlen(name)))
			value = strtoull(after + 1, NULL, 16);
	}
	fclose(file);
	return value;
}

HUB_TEST(what_the_program_blocks_or_ignores_the_hub_does_not)
{
	const uint64_t hubs_own = 1ull << (SIGHUP - 1) | 1ull << (SIGPIPE - 1) |
				  1ull << (SIGXFSZ - 1);
	sigset_t all, before, after;

	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, &before);
	signal(SIGTERM, SIG_IGN);
	hub_start();
	sigprocmask(SIG_SETMASK, NULL, &after);
	for (int sig = 1; sig < SIGSYS; sig++)
		assert_int_equal(sigismember(&after, sig), sig != SIGKILL && sig != SIGSTOP);
	sigprocmask(SIG_SETMASK, &before, NULL);
	assert_true(signal(SIGTERM, SIG_DFL) == SIG_IGN);
	assert_int_equal(status_read(hub_pid(), "SigBlk"), 0);
	/* Two are the C library's own, and stay what they are: it lets nobody set them. */
	assert_int_equal(status_read(hub_pid(), "SigIgn") & ~(3ull << 31), hubs_own);
}

/* Any of the three may be closed, and others are opened in their place. */
static void start_without_stdio(void *arg)
{
	char path[64], target[64] = "";

	for (unsigned open = 0; open < 8; open++) {
		struct vb_hub_client *client;
		pid_t pid;

		for (int fd = 0; fd < 3; fd++) {
			if (open & 1u << fd)
				dup2(*(int *)arg, fd);
			else
				close(fd);
		}
		hub_stop();
		if (vb_hub_client_open(&client, NULL, NULL, NULL))
			_exit(2);
		pid = hub_pid();
		for (int fd = 0; fd < 3; fd++) {
			snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)pid, fd);
			if (readlink(path, target, sizeof(target) - 1) < 0 ||
			    strcmp(target, "/dev/null"))
				_exit(3);
		}
		vb_hub_client_close(client);
	}
}

HUB_TEST(a_program_without_stdio_may_start_it)
{
	int zero;

	zero = open("/dev/zero", O_RDWR | O_CLOEXEC);
	assert_child_ok(child_start(start_without_stdio, &zero));
	close(zero);
}

/* The limit is not root's: it takes somebody else, who may start what he can get at. */
static void start_with_no_process_left(void *arg)
{
	struct rlimit before, none;
	struct vb_hub_client *client;

	child_check(!setgid(NOBODY) && !setuid(NOBODY));
	if (access(getenv("VERBATIM_HUB"), X_OK))
		_exit(77);
	getrlimit(RLIMIT_NPROC, &before);
	none = (struct rlimit){1, before.rlim_max};
	child_check(!setrlimit(RLIMIT_NPROC, &none));
	child_check(vb_hub_client_open(&client, NULL, NULL, NULL) == EAGAIN);
	child_check(!setrlimit(RLIMIT_NPROC, &before));
	child_check(!vb_hub_client_open(&client, NULL, NULL, NULL));
	vb_hub_client_close(client);
}

HUB_TEST(where_no_process_can_be_made_it_is_eagain)
{
	int status;
	pid_t pid;

	if (getuid())
		SKIP("only root can become an ordinary user");
	pid = child_start(start_with_no_process_left, NULL);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	if (WEXITSTATUS(status) == 77)
		SKIP("an ordinary user cannot reach this build");
	assert_int_equal(WEXITSTATUS(status), 0);
}

/* The hub gets them with its program's other limits, and tells what they keep it from. */
static void start_on_little(void *arg)
{
	const struct {
		int resource, error;
		rlim_t cur, max;
	} limits[] = {
		{RLIMIT_FSIZE, 0, 65536, RLIM_INFINITY},
		{RLIMIT_FSIZE, EFBIG, 65536, 65536},
		{RLIMIT_NOFILE, EMFILE, 24, 24},
	};
	struct vb_hub_client *client;

	for (unsigned i = 0; i < VB_ARRAY_LEN(limits); i++) {
		struct rlimit limit = {limits[i].cur, limits[i].max};
		pid_t pid = fork();
		int status, rc;

		if (pid == 0) {
			child_check(!setrlimit(limits[i].resource, &limit));
			rc = vb_hub_client_open(&client, NULL, NULL, NULL);
			if (!rc)
				vb_hub_client_close(client);
			_exit(rc);
		}
		child_check(waitpid(pid, &status, 0) == pid);
		child_check(WIFEXITED(status) && WEXITSTATUS(status) == limits[i].error);
		hub_stop();
	}
}

HUB_TEST(what_limits_forbid_is_told)
{
	assert_child_ok(child_start(start_on_little, NULL));
}
