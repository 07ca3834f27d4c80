/* SPDX-License-Identifier: BSD-2-Clause */

/* What of verbatim is replaced while programs run: the hub's program, its protocol, its memory. */
#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "base/failure.h"
#include "hub/proto.h"
#include "hub/words.h"
#include "hub_lib.h"

enum { OLD = VB_HUB_PROTOCOL - 1 };

/* --- beside a hub of another version --- */

static int name_bind(int type, bool listens, const char *format, uint32_t uid)
{
	struct sockaddr_un name = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, type | SOCK_CLOEXEC, 0);
	int n = snprintf(name.sun_path + 1, sizeof(name.sun_path) - 1, format, uid, OLD);

	vb_check(!bind(fd, (struct sockaddr *)&name,
		       (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1) + (socklen_t)n));
	vb_check(!listens || !listen(fd, 8));
	return fd;
}

/* A program of the old version, which holds a slot, or its hub. */
struct old {
	const char *comm;
	bool is_hub;
};

static void old_run(int told_fd, void *arg)
{
	const struct old *old = arg;
	struct sockaddr_in6 address = {.sin6_family = AF_INET6, .sin6_port = htons(PORT)};
	int fd = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0), on = 1;

	prctl(PR_SET_NAME, old->comm);
	vb_check(!setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &on, sizeof(on)));
	vb_check(!bind(fd, (struct sockaddr *)&address, sizeof(address)));
	if (!old->is_hub)
		name_bind(SOCK_SEQPACKET, false, "verbatim-slot-%u-%d-1", geteuid());
	else
		name_bind(SOCK_SEQPACKET, true, "verbatim-hub-%u-%d", geteuid());
	vb_check(write(told_fd, "", 1) == 1);
}

static pid_t old_start(const char *comm, bool is_hub)
{
	return child_tells(old_run, &(struct old){comm, is_hub}, &(char){0}, 1);
}

static void assert_says(const char *text, const char *format, int number)
{
	char words[128];

	snprintf(words, sizeof(words), format, number);
	if (!strstr(text, words))
		fail_msg("no \"%s\" in: %s", words, text);
}

TEST(an_old_hub_and_its_programs_are_named)
{
	struct vb_hub_client *client;
	char text[VB_FAILURE_BYTES];
	pid_t hub, program;

	program = old_start("oldprogram", false);
	hub = old_start("oldhub", true);
	assert_int_equal(vb_hub_client_open(&client, NULL, NULL, NULL), EADDRINUSE);
	vb_failure_words(text, sizeof(text), EADDRINUSE);
	assert_says(text, "by the hub (pid %d) of this user", hub);
	assert_says(text, "(protocol %d, this is ", OLD);
	assert_says(text, "this is %d)", VB_HUB_PROTOCOL);
	assert_says(text, ": pid %d (oldprogram); end them", program);
	/* Its hub dies, and the program goes on. */
	child_kill(hub);
	assert_int_equal(vb_hub_client_open(&client, NULL, NULL, NULL), EADDRINUSE);
	vb_failure_words(text, sizeof(text), EADDRINUSE);
	assert_says(text, "a hub that has died, of another version of verbatim (protocol %d", OLD);
	assert_says(text, ": pid %d (oldprogram); end them", program);
	/* What it says helps. */
	child_kill(program);
	client = client_open();
	vb_hub_client_close(client);
	hub_stop();
}

/* --- the program is replaced --- */

static void file_copy(const char *from, const char *to)
{
	int in = open(from, O_RDONLY | O_CLOEXEC), out;
	char octets[65536];
	ssize_t n;

	out = open(to, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0755);
	vb_check(in >= 0 && out >= 0);
	while ((n = read(in, octets, sizeof(octets))) > 0)
		vb_check(write(out, octets, (size_t)n) == n);
	close(in);
	close(out);
}

/* The file that a hub runs. */
static ino_t program_of(pid_t pid)
{
	char path[64];
	struct stat stat;

	snprintf(path, sizeof(path), "/proc/%d/exe", (int)pid);
	assert_int_equal(fstatat(AT_FDCWD, path, &stat, 0), 0);
	return stat.st_ino;
}

TEST(a_replaced_program_goes_on_with_what_was_there)
{
	char folder[] = "/tmp/verbatim-hub-XXXXXX", path[64], next[64], *was;
	struct vb_hub_client *client;
	struct vb_hub_slot slot[3];
	ino_t before;

	assert_non_null(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/verbatimd", folder);
	snprintf(next, sizeof(next), "%s/next", folder);
	was = strdup(getenv("VERBATIM_HUB"));
	file_copy(was, path);
	setenv("VERBATIM_HUB", path, 1);
	client = client_open();
	slot[0] = slot_lease(client);
	slot[1] = slot_lease(client);
	before = program_of(hub_pid());
	file_copy(was, next);
	assert_int_equal(rename(next, path), 0);
	hub_kill();
	slot[2] = slot_lease(client);
	assert_int_not_equal(program_of(hub_pid()), before);
	assert_steering(slot, 3);
	slots_close(slot, 3);
	vb_hub_client_close(client);
	hub_stop();
	setenv("VERBATIM_HUB", was, 1);
	free(was);
	unlink(path);
	rmdir(folder);
}

/* One that speaks another protocol than the library that started it says so, and leaves. */
TEST(a_program_of_another_version_says_so)
{
	const char *hub = getenv("VERBATIM_HUB");
	char other[16], line[VB_FAILURE_BYTES] = "";
	int fds[2], status;
	pid_t pid;

	snprintf(other, sizeof(other), "%d", OLD);
	assert_int_equal(pipe(fds), 0);
	pid = fork();
	if (!pid) {
		dup2(fds[1], STDOUT_FILENO);
		execl(hub, "verbatimd", other, NULL);
		_exit(127);
	}
	close(fds[1]);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(read(fds[0], line, sizeof(line) - 1) > 0);
	close(fds[0]);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 1);
	assert_int_equal(atoi(line), EPROTONOSUPPORT);
	assert_says(line, "the library's is %d", OLD);
}

GROUP(hub_setup, NULL)
