/* SPDX-License-Identifier: BSD-2-Clause */
#include "view/lease.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/check.h"
#include "base/failure.h"
#include "base/fd.h"
#include "hub/channel.h"
#include "hub/ordinary.h"
#include "view/files.h"

enum { LISTEN_FD = VB_VIEW_LISTEN_FD, WAITING_MAX = 128, TRIES = 100, PATIENCE_S = 20 };

/* Settings that say what devices there are: who has others needs another tree. */
static const char *const settings[] = { "VERBATIM_PERSONA", "VERBATIM_DEVICES", "VERBATIM_NET" };

static uint32_t hash_add(uint32_t hash, const void *of, size_t bytes)
{
	const uint8_t *octet = of;

	for (size_t i = 0; i < bytes; i++)
		hash = (hash ^ octet[i]) * 16777619u;
	return hash;
}

/* Of a file that a setting names, also what changes when it is written. */
static uint32_t settings_hash(void)
{
	uint32_t hash = 2166136261u; /* FNV-1a */

	for (unsigned i = 0; i < VB_ARRAY_LEN(settings); i++) {
		const char *value = getenv(settings[i]);
		struct stat file;

		if (value)
			hash = hash_add(hash, value, strlen(value));
		if (value && !stat(value, &file)) {
			hash = hash_add(hash, &file.st_ino, sizeof(file.st_ino));
			hash = hash_add(hash, &file.st_size, sizeof(file.st_size));
			hash = hash_add(hash, &file.st_mtim, sizeof(file.st_mtim));
		}
		hash = hash_add(hash, &i, sizeof(i));
	}
	return hash;
}

static int address_make(struct sockaddr_un *address, socklen_t *bytes)
{
	char base[PATH_MAX];
	struct stat at;
	int chars, rc = vb_view_base(base);

	if (rc)
		return vb_failed_because(rc, "there is no folder to write the files to; a tmpfs at "
					     "/dev/shm, $XDG_RUNTIME_DIR, $TMPDIR or /tmp is one");
	if (stat(base, &at))
		return vb_failed(errno, base);
	*address = (struct sockaddr_un){ .sun_family = AF_UNIX };
	chars = snprintf(address->sun_path + 1, sizeof(address->sun_path) - 1,
			 "verbatim-view-%u-%llx-%llx-%08x", geteuid(),
			 (unsigned long long)at.st_dev, (unsigned long long)at.st_ino,
			 settings_hash());
	*bytes = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)chars);
	return 0;
}

/* --- starting one --- */

static void files_set(int listen_fd)
{
	int null = open("/dev/null", O_RDWR);

	for (int fd = 0; fd < LISTEN_FD; fd++)
		dup2(null, fd);
	if (listen_fd == LISTEN_FD)
		fcntl(LISTEN_FD, F_SETFD, 0);
	else
		dup2(listen_fd, LISTEN_FD);
	if (syscall(SYS_close_range, LISTEN_FD + 1, ~0u, 0)) {
		for (int fd = LISTEN_FD + 1; fd < 1024; fd++)
			close(fd);
	}
}

/* Files that the settings name are to be found from "/", too. */
static void settings_anchor(void)
{
	for (unsigned i = 0; i < VB_ARRAY_LEN(settings); i++) {
		const char *value = getenv(settings[i]);
		char path[PATH_MAX];

		if (value && *value != '/' && realpath(value, path))
			setenv(settings[i], path, 1);
	}
}

/* It is nobody's child, and keeps nothing of who happened to start it. */
static void child_run(int listen_fd)
{
	char name[] = "verbatim", command[] = "keeper";
	char *argv[] = { name, command, NULL };
	struct sigaction standard = { .sa_handler = SIG_DFL };
	sigset_t none;

	setsid();
	if (fork())
		_exit(0);
	for (int sig = 1; sig < NSIG; sig++)
		sigaction(sig, &standard, NULL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	files_set(listen_fd);
	vb_hub_ordinary();
	unsetenv("LD_PRELOAD");
	settings_anchor();
	if (!chdir("/"))
		execv("/proc/self/exe", argv);
	_exit(127);
}

/* EADDRINUSE: another one was faster. */
static int keeper_start(const struct sockaddr_un *address, socklen_t bytes)
{
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	pid_t pid;

	if (fd < 0)
		return errno;
	if (bind(fd, (const struct sockaddr *)address, bytes) || listen(fd, WAITING_MAX)) {
		int rc = errno;

		close(fd);
		return rc;
	}
	pid = fork();
	if (!pid)
		child_run(fd);
	close(fd);
	if (pid < 0)
		return errno;
	while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		continue;
	return 0;
}

/* --- asking --- */

static int connection_make(int *fd)
{
	struct timeval patience = { .tv_sec = PATIENCE_S };
	struct sockaddr_un address;
	socklen_t bytes = 0;
	int rc = address_make(&address, &bytes);

	if (rc)
		return rc;
	*fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (*fd < 0)
		return vb_failed(errno, "socket");
	setsockopt(*fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	for (unsigned i = 0; i < TRIES; i++) {
		if (!connect(*fd, (struct sockaddr *)&address, bytes))
			return vb_hub_peer_check(*fd, &(pid_t){ 0 });
		if (errno != ECONNREFUSED)
			return vb_failed(errno, "connect");
		rc = keeper_start(&address, bytes);
		if (rc && rc != EADDRINUSE)
			return vb_failed(rc, "to start the keeper of the view");
	}
	return vb_failed(ETIMEDOUT, "to start the keeper of the view");
}

static int ask(struct vb_view_lease *lease, bool wants_user_ns)
{
	struct vb_view_asked asked = { wants_user_ns };
	struct vb_view_answered answered;
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(sizeof(int))];
	} control;
	struct iovec iov = { &answered, sizeof(answered) };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = &control,
			      .msg_controllen = sizeof(control) };
	struct cmsghdr *with;
	ssize_t n;

	if (send(lease->fd, &asked, sizeof(asked), MSG_NOSIGNAL) != sizeof(asked))
		return errno;
	n = recvmsg(lease->fd, &msg, MSG_CMSG_CLOEXEC);
	if (n != sizeof(answered))
		return n < 0 ? errno : ECONNRESET;
	with = CMSG_FIRSTHDR(&msg);
	if (with && with->cmsg_type == SCM_RIGHTS && with->cmsg_len == CMSG_LEN(sizeof(int)))
		memcpy(&lease->user_ns_fd, CMSG_DATA(with), sizeof(int));
	lease->user_ns_error = answered.user_ns_error;
	memcpy(lease->root, answered.root, sizeof(lease->root));
	lease->root[sizeof(lease->root) - 1] = 0;
	return *lease->root ? 0 : EIO;
}

int vb_view_lease_take(struct vb_view_lease *lease, bool wants_user_ns)
{
	int rc;

	*lease = (struct vb_view_lease){ .fd = VB_FD_NONE, .user_ns_fd = VB_FD_NONE };
	rc = connection_make(&lease->fd);
	if (!rc) {
		rc = ask(lease, wants_user_ns);
		/* One that leaves at this moment answers nobody. */
		if (rc == ECONNRESET || rc == EPIPE) {
			vb_fd_close(&lease->fd);
			rc = connection_make(&lease->fd);
			rc = rc ? rc : ask(lease, wants_user_ns);
		}
		if (rc)
			vb_failed(rc, "the keeper of the view");
	}
	if (rc)
		vb_fd_close(&lease->fd);
	return rc;
}

uint64_t vb_view_mount_ns(pid_t pid)
{
	char path[64];
	struct stat ns;

	snprintf(path, sizeof(path), "/proc/%d/ns/mnt", pid);
	return stat(path, &ns) ? 0 : ns.st_ino;
}

void vb_view_lease_settle(struct vb_view_lease *lease)
{
	struct vb_view_settled settled = { vb_view_mount_ns(getpid()) };

	send(lease->fd, &settled, sizeof(settled), MSG_NOSIGNAL);
	vb_fd_close(&lease->fd);
	vb_fd_close(&lease->user_ns_fd);
}
