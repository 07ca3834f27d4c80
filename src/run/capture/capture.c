/* SPDX-License-Identifier: BSD-2-Clause */
#include "run/capture/capture.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/loose.h"
#include "hub/channel.h"
#include "hub/program.h"
#include "nic/way/watch/watch.h"
#include "run/process/cancel.h"
#include "run/process/log.h"
#include "run/process/trail.h"
#include "base/failure.h"
#include "hub/words.h"

enum { FILE_NAME_BYTES_MAX = 4096 };

/* A reader that takes nothing for this long is not waited for until it takes something. */
#define PATIENCE_NS 1000000000ull

static uint64_t clock_ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (uint64_t)now.tv_sec * 1000000000ull + (uint64_t)now.tv_nsec;
}

/* --- life --- */

void vb_capture_open(struct vb_capture *capture)
{
	struct vb_hub_program program;

	vb_hub_program_self(&program);
	snprintf(capture->program, sizeof(capture->program), "%s (pid %u)", program.comm,
		 program.pid);
	atomic_store(&capture->asked, VB_FD_NONE);
	capture->fd = capture->file_fd = VB_FD_NONE;
	vb_lock_init(&capture->lock, VB_RANK_PCAP);
}

/* The NIC is watched as long as somebody wants to see; for a trail, its rings alone. */
static void watch(struct vb_capture *capture)
{
	enum vb_watch_what other = vb_trail_is_open() ? VB_WATCH_RINGS : VB_WATCH_NOTHING;

	vb_nic_watch(capture->nic, atomic_load(&capture->on) ? VB_WATCH_ALL : other);
}

static void on_set(struct vb_capture *capture)
{
	atomic_store(&capture->on, capture->fd >= 0 || capture->file_fd >= 0);
}

/* A full disk costs packets, never traffic. */
static bool file_write(const struct vb_capture *capture, size_t bytes)
{
	int cancel = vb_cancel_defer();
	ssize_t done = write(capture->file_fd, capture->block, bytes);

	vb_cancel_restore(cancel);
	return done == (ssize_t)bytes;
}

int vb_capture_name(char *name, size_t size, const char *setting, unsigned port)
{
	const char *mark = strstr(setting, "%p");
	int rc, used;

	if (mark)
		used = snprintf(name, size, "%.*s%d%s", (int)(mark - setting), setting,
				(int)getpid(), mark + 2);
	else
		used = snprintf(name, size, "%s", setting);
	if (used < 0 || (size_t)used >= size)
		return ENAMETOOLONG;
	rc = port == 0 ? 0 : snprintf(name + used, size - used, ".%u", port);
	return rc < 0 || (size_t)rc >= size - used ? ENAMETOOLONG : 0;
}

int vb_capture_file(struct vb_capture *capture, const char *name)
{
	/* It contains the application's data. */
	capture->file_fd = open(name, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0600);
	if (capture->file_fd < 0)
		return errno;
	if (file_write(capture, vb_pcapng_begin(capture->block, capture->program)))
		return 0;
	vb_fd_close(&capture->file_fd);
	return EIO;
}

void vb_capture_begin(struct vb_capture *capture, struct vb_nic *nic)
{
	capture->nic = nic;
	on_set(capture);
	if (atomic_load(&capture->on) || vb_trail_is_open())
		watch(capture);
}

/* The reader has what was put. Lock held. */
static void reader_drop(struct vb_capture *capture)
{
	atomic_store(&capture->feed.shared->over, 1);
	vb_fd_close(&capture->fd);
	vb_feed_close(&capture->feed);
	on_set(capture);
}

static void file_end(struct vb_capture *capture)
{
	size_t bytes;

	bytes = vb_pcapng_end(capture->block, capture->counts, clock_ns(CLOCK_REALTIME));
	file_write(capture, bytes);
	vb_fd_close(&capture->file_fd);
}

void vb_capture_close(struct vb_capture *capture)
{
	int asked = atomic_exchange(&capture->asked, VB_FD_NONE);
	bool watched = atomic_load(&capture->on);

	if (asked >= 0)
		close(asked);
	vb_lock_take(&capture->lock);
	if (capture->file_fd >= 0)
		file_end(capture);
	if (capture->fd >= 0)
		reader_drop(capture);
	on_set(capture);
	vb_lock_drop(&capture->lock);
	if (watched)
		watch(capture);
	vb_lock_fini(&capture->lock);
}

void vb_capture_farewell(struct vb_capture *capture)
{
	if (!vb_lock_try(&capture->lock))
		return;
	if (capture->file_fd >= 0)
		file_end(capture);
	vb_lock_drop(&capture->lock);
}

void vb_capture_forget(struct vb_capture *capture)
{
	int asked = atomic_exchange(&capture->asked, VB_FD_NONE);

	if (asked >= 0)
		close(asked);
	vb_fd_close(&capture->fd);
	vb_fd_close(&capture->file_fd);
	vb_feed_forget(&capture->feed);
	atomic_store(&capture->on, false);
}

/* --- readers --- */

void vb_capture_ask(struct vb_capture *capture, int fd)
{
	int before = atomic_exchange(&capture->asked, fd);

	if (before >= 0)
		close(before);
}

/* Reads what was asked. Returns false if it is nothing that a reader of this user says. */
static bool ask_take(int fd, struct vb_feed_ask *ask)
{
	pid_t pid;

	return !vb_hub_peer_check(fd, &pid) &&
	       recv(fd, ask, sizeof(*ask), MSG_DONTWAIT) == sizeof(*ask) &&
	       ask->magic == VB_FEED_MAGIC;
}

static void answer(int fd, int error, int feed_fd)
{
	struct vb_feed_answer words = {VB_FEED_MAGIC, (uint32_t)error};
	union {
		struct cmsghdr header;
		char room[CMSG_SPACE(sizeof(int))];
	} control = {.header = {
		.cmsg_len = CMSG_LEN(sizeof(int)),
		.cmsg_level = SOL_SOCKET,
		.cmsg_type = SCM_RIGHTS,
	}};
	struct iovec iov = {&words, sizeof(words)};
	struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};

	if (!error) {
		memcpy(CMSG_DATA(&control.header), &feed_fd, sizeof(feed_fd));
		msg.msg_control = &control;
		msg.msg_controllen = sizeof(control);
	}
	/* A reader that has gone already is noticed by its socket. */
	if (sendmsg(fd, &msg, MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
		return;
}

static void reader_add(struct vb_capture *capture, int fd)
{
	struct vb_feed feed = {.shared = NULL};
	struct vb_feed_ask ask;
	int feed_fd, rc;

	if (!ask_take(fd, &ask)) {
		close(fd);
		return;
	}
	rc = capture->fd >= 0 ? EBUSY : vb_feed_make(&feed, &feed_fd);
	if (rc) {
		answer(fd, rc, VB_FD_NONE);
		close(fd);
		return;
	}
	/*
	 * The reader has to read before there is anything: who waits for room in its feed may hold
	 * a lock that watch() needs.
	 */
	answer(fd, 0, feed_fd);
	close(feed_fd);
	vb_lock_take(&capture->lock);
	capture->feed = feed;
	capture->never_waits = ask.never_waits;
	capture->stuck = capture->leaves = false;
	vb_feed_put(&capture->feed, capture->block,
		    vb_pcapng_begin(capture->block, capture->program));
	capture->fd = fd;
	on_set(capture);
	vb_lock_drop(&capture->lock);
	watch(capture);
	vb_log("a capture has begun");
}

/* Has the reader closed its end, or said that it leaves? It says nothing else. */
static bool reader_left(int fd)
{
	char octet;

	return recv(fd, &octet, sizeof(octet), MSG_DONTWAIT) >= 0 ||
	       (errno != EAGAIN && errno != EINTR);
}

void vb_capture_turn(struct vb_capture *capture)
{
	int cancel = vb_cancel_defer(), asked;
	bool left;

	vb_loose_begin();
	asked = atomic_exchange(&capture->asked, VB_FD_NONE);
	vb_lock_take(&capture->lock);
	left = capture->fd >= 0 && reader_left(capture->fd);
	if (left)
		reader_drop(capture);
	vb_lock_drop(&capture->lock);
	if (left) {
		watch(capture);
		vb_log("the capture is over");
	}
	if (asked >= 0)
		reader_add(capture, asked);
	vb_loose_end();
	vb_cancel_restore(cancel);
}

/* --- packets --- */

/*
 * Waits until the reader has taken something, which brings room sooner or later. False: it has not
 * for too long, or it leaves.
 */
static bool wait_for_reader(struct vb_capture *capture)
{
	uint64_t end_ns = clock_ns(CLOCK_MONOTONIC) + PATIENCE_NS;
	uint64_t tail = vb_feed_tail(&capture->feed);
	struct pollfd gone = {.fd = capture->fd, .events = POLLRDHUP};
	int cancel = vb_cancel_defer();

	while (vb_feed_tail(&capture->feed) == tail && clock_ns(CLOCK_MONOTONIC) < end_ns &&
	       !capture->leaves)
		capture->leaves = poll(&gone, 1, 1) > 0;
	vb_cancel_restore(cancel);
	return vb_feed_tail(&capture->feed) != tail && !capture->leaves;
}

static bool feed_put(struct vb_capture *capture, size_t bytes)
{
	while (!vb_feed_put(&capture->feed, capture->block, bytes)) {
		if (!capture->stuck && !capture->never_waits)
			capture->stuck = !wait_for_reader(capture);
		else
			return false;
	}
	capture->stuck = false;
	return true;
}

/* A capture ends with the first packet for which a reader that leaves has no room: none is lost. */
static void feed_see(struct vb_capture *capture, enum vb_record_link link, size_t bytes)
{
	struct vb_feed_shared *shared = capture->feed.shared;

	if (bytes && feed_put(capture, bytes))
		atomic_fetch_add(&shared->taken[link], 1);
	else if (!capture->leaves)
		atomic_fetch_add(&shared->lost[link], 1);
}

void vb_capture_see(struct vb_capture *capture, const struct vb_record *record)
{
	char comment[VB_PCAPNG_COMMENT_BYTES];
	size_t bytes;
	bool done;

	if (!atomic_load(&capture->on))
		return;
	vb_pcapng_comment(comment, record, capture->program);
	vb_lock_take(&capture->lock);
	if (atomic_load(&capture->on)) {
		bytes = vb_pcapng_packet(capture->block, record, clock_ns(CLOCK_REALTIME), comment);
		if (capture->fd >= 0 && !capture->leaves)
			feed_see(capture, record->link, bytes);
		if (capture->file_fd >= 0) {
			done = bytes && file_write(capture, bytes);
			capture->counts[record->link].taken += done;
			capture->counts[record->link].lost += !done;
		}
	}
	vb_lock_drop(&capture->lock);
}

int vb_capture_setting(struct vb_capture *capture, const char *setting, unsigned port)
{
	char name[FILE_NAME_BYTES_MAX];
	int rc;

	if (!setting)
		return 0;
	rc = vb_capture_name(name, sizeof(name), setting, port);
	if (rc == 0)
		rc = vb_capture_file(capture, name);
	if (rc != 0)
		vb_failed_words(rc, "VERBATIM_PCAP: %s: %s", setting, strerror(rc));
	return rc;
}
