/* SPDX-License-Identifier: BSD-2-Clause */
#include "view/keeper.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/check.h"
#include "base/fd.h"
#include "hub/channel.h"
#include "run/process/env.h"
#include "run/process/topology.h"
#include "view/counters.h"
#include "view/facts.h"
#include "view/files.h"
#include "view/lease.h"
#include "view/mount.h"
#include "view/sight.h"

#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434
#endif

enum { NS_PER_MS = 1000000, TABLE_FDS = 4, LOOK_EVERY_MS = 1000 };

/* A program that was shown the tree, or, after its end, another one that still sees it. */
struct user {
	pid_t pid;
	int pidfd;
	int fd; /* its connection, until it has settled */
	uint64_t mount_ns; /* 0: it only has the variable */
};

struct keeper {
	struct vb_view_root root;
	struct vb_view_facts facts;
	struct vb_view_counters counters;
	struct user *user;
	unsigned users, room;
	int listen_fd, signal_fd;
	int user_ns_fd, user_ns_error;
	bool user_ns_tried;
	uint64_t own_mount_ns, idle_ns, lonely_ns;
};

/* --- who uses it --- */

static bool is_user(const struct keeper *keeper, pid_t pid, uint64_t mount_ns)
{
	if (pid == getpid() || vb_view_sight_is_hub(pid))
		return false;
	return (mount_ns && vb_view_mount_ns(pid) == mount_ns) ||
	       vb_view_sight_has(pid, keeper->root.path);
}

static bool is_known(const struct keeper *keeper, pid_t pid)
{
	for (unsigned i = 0; i < keeper->users; i++) {
		if (keeper->user[i].pid == pid)
			return true;
	}
	return false;
}

/* Another process that sees the tree as this user did; false: none. */
static bool heir_find(const struct keeper *keeper, struct user *user)
{
	DIR *dir = opendir("/proc");
	struct dirent *entry;
	bool found = false;

	while (!found && dir && (entry = readdir(dir))) {
		pid_t pid = atoi(entry->d_name);

		if (!isdigit((unsigned char)*entry->d_name) || is_known(keeper, pid) ||
		    !is_user(keeper, pid, user->mount_ns))
			continue;
		user->pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
		user->pid = pid;
		found = user->pidfd >= 0;
	}
	if (dir)
		closedir(dir);
	return found;
}

static void user_end(struct keeper *keeper, unsigned i)
{
	struct user *user = &keeper->user[i];

	vb_fd_close(&user->pidfd);
	vb_fd_close(&user->fd);
	if (heir_find(keeper, user))
		return;
	*user = keeper->user[--keeper->users];
	keeper->lonely_ns = vb_hub_now_ns();
}

static void user_settle(struct user *user, uint64_t own_mount_ns)
{
	struct vb_view_settled settled;

	if (recv(user->fd, &settled, sizeof(settled), MSG_DONTWAIT) == sizeof(settled) &&
	    settled.mount_ns != own_mount_ns)
		user->mount_ns = settled.mount_ns;
	vb_fd_close(&user->fd);
}

/* --- asking for it --- */

static int user_ns(struct keeper *keeper)
{
	if (!keeper->user_ns_tried)
		keeper->user_ns_error = vb_view_user_ns_make(&keeper->user_ns_fd);
	keeper->user_ns_tried = true;
	return keeper->user_ns_fd;
}

static bool answer(struct keeper *keeper, int fd, int with_fd)
{
	struct vb_view_answered answered = { keeper->user_ns_error };
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(sizeof(int))];
	} control;
	struct iovec iov = { &answered, sizeof(answered) };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };

	memcpy(answered.root, keeper->root.path, sizeof(answered.root));
	if (with_fd >= 0) {
		msg.msg_control = &control;
		msg.msg_controllen = sizeof(control.room);
		control.head = (struct cmsghdr){ .cmsg_level = SOL_SOCKET,
						 .cmsg_type = SCM_RIGHTS,
						 .cmsg_len = CMSG_LEN(sizeof(int)) };
		memcpy(CMSG_DATA(&control.head), &with_fd, sizeof(int));
	}
	return sendmsg(fd, &msg, MSG_NOSIGNAL | MSG_DONTWAIT) == sizeof(answered);
}

static struct user *user_add(struct keeper *keeper)
{
	if (keeper->users == keeper->room) {
		unsigned room = keeper->room * 2 + 16;
		struct user *more = realloc(keeper->user, room * sizeof(*more));

		if (!more)
			return NULL;
		keeper->user = more;
		keeper->room = room;
	}
	return &keeper->user[keeper->users++];
}

/* Who asks waits for the answer, so its process is there until it has one. */
static void asked(struct keeper *keeper)
{
	struct timeval patience = { .tv_sec = 1 };
	int fd = accept4(keeper->listen_fd, NULL, NULL, SOCK_CLOEXEC);
	struct vb_view_asked words;
	struct user *user;
	pid_t pid = 0;
	int pidfd;

	if (fd < 0)
		return;
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	if (vb_hub_peer_check(fd, &pid) || recv(fd, &words, sizeof(words), 0) != sizeof(words)) {
		close(fd);
		return;
	}
	pidfd = pid ? (int)syscall(SYS_pidfd_open, pid, 0) : -1;
	user = pidfd < 0 ? NULL : user_add(keeper);
	if (user)
		*user = (struct user){ pid, pidfd, fd };
	answer(keeper, fd, words.wants_user_ns ? user_ns(keeper) : -1);
	if (!user)
		close(fd);
}

/* --- the loop --- */

static void step(struct keeper *keeper, const struct pollfd *fds)
{
	unsigned users = keeper->users;

	/* From the end, since the last one takes the place of one that has gone. */
	for (unsigned i = users; i-- > 0;) {
		const struct pollfd *of = &fds[TABLE_FDS + 2 * i];

		if (of[0].revents)
			user_end(keeper, i);
		else if (of[1].revents)
			user_settle(&keeper->user[i], keeper->own_mount_ns);
	}
	/* Who asks gets what is true now. */
	if (vb_view_facts_refresh(&keeper->facts, vb_hub_now_ns()))
		vb_view_files_write(&keeper->root, keeper->facts.device,
				    keeper->facts.topology->count);
	vb_view_counters_refresh(&keeper->counters, vb_hub_now_ns());
	if (fds[0].revents)
		asked(keeper);
}

/* How long to sleep, unless something happens; 0: nobody has used it for long. */
static int patience_ms(const struct keeper *keeper)
{
	uint64_t lonely = vb_hub_now_ns() - keeper->lonely_ns;

	if (keeper->users)
		return LOOK_EVERY_MS;
	return lonely >= keeper->idle_ns ? 0 : (int)((keeper->idle_ns - lonely) / NS_PER_MS) + 1;
}

static int serve(struct keeper *keeper)
{
	for (;;) {
		unsigned count = TABLE_FDS + 2 * keeper->users;
		struct pollfd *fds = calloc(count, sizeof(*fds));
		int ms = patience_ms(keeper);

		if (!fds || !ms) {
			free(fds);
			return 0;
		}
		fds[0].fd = keeper->listen_fd;
		fds[1].fd = keeper->signal_fd;
		fds[2].fd = keeper->facts.gids[0].watch_fd;
		fds[3].fd = keeper->counters.watch_fd;
		for (unsigned i = 0; i < keeper->users; i++) {
			fds[TABLE_FDS + 2 * i].fd = keeper->user[i].pidfd;
			fds[TABLE_FDS + 2 * i + 1].fd = keeper->user[i].fd;
		}
		for (unsigned i = 0; i < count; i++)
			fds[i].events = POLLIN;
		poll(fds, count, ms);
		if (fds[1].revents) {
			free(fds);
			return 0;
		}
		step(keeper, fds);
		free(fds);
	}
}

static int signals_take(void)
{
	sigset_t ends;

	sigemptyset(&ends);
	sigaddset(&ends, SIGTERM);
	sigaddset(&ends, SIGINT);
	sigaddset(&ends, SIGHUP);
	sigprocmask(SIG_BLOCK, &ends, NULL);
	return signalfd(-1, &ends, SFD_CLOEXEC);
}

static int personas_read(struct vb_persona personas[VB_TOPOLOGY_DEVICES_MAX],
			 const struct vb_topology *topology, const struct vb_env *env)
{
	char why[VB_TOPOLOGY_FILE_WHY_BYTES];

	for (unsigned i = 0; i < topology->count; i++) {
		int rc = vb_persona_read(&personas[i], &topology->device[i], env, why);

		if (rc)
			return rc;
	}
	return 0;
}

static int tree_make(struct keeper *keeper)
{
	unsigned count = keeper->facts.topology->count;
	int rc = vb_view_files_write(&keeper->root, keeper->facts.device, count);

	return rc ? rc : vb_view_counters_open(&keeper->counters, &keeper->root,
					       keeper->facts.device, count);
}

int vb_view_keep(int listen_fd)
{
	const struct vb_topology *topology = vb_topology_here();
	struct vb_persona personas[VB_TOPOLOGY_DEVICES_MAX];
	struct keeper keeper = { .listen_fd = listen_fd, .user_ns_fd = VB_FD_NONE };
	char why[VB_ENV_WHY_BYTES];
	struct vb_env env;

	fcntl(listen_fd, F_SETFD, FD_CLOEXEC);
	/* It was executed as /proc/self/exe, and would be called "exe". */
	prctl(PR_SET_NAME, "verbatim");
	if (vb_env_read(&env, vb_env_here(), why))
		return 1;
	keeper.idle_ns = env.hub_idle_ms * NS_PER_MS;
	keeper.own_mount_ns = vb_view_mount_ns(getpid());
	keeper.signal_fd = signals_take();
	keeper.lonely_ns = vb_hub_now_ns();
	if (!topology || personas_read(personas, topology, &env) ||
	    vb_view_facts_open(&keeper.facts, topology, personas))
		return 1;
	if (!vb_view_root_make(&keeper.root)) {
		if (!tree_make(&keeper)) {
			serve(&keeper);
			vb_view_counters_close(&keeper.counters);
		}
		/* Nobody gets this tree any more; who asks starts another keeper. */
		close(listen_fd);
		vb_view_root_remove(&keeper.root);
	}
	vb_view_facts_close(&keeper.facts);
	free(keeper.user);
	return 0;
}
