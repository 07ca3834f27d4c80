/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/capture.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/check.h"
#include "base/failure.h"
#include "capture/feed.h"
#include "cli/cli.h"
#include "cli/hub.h"
#include "hub/channel.h"
#include "hub/words.h"

enum {
	ANSWER_MS = 5000, /* how long a process may take to begin or to end */
	LOOK_MS_MIN = 1, LOOK_MS_MAX = 16, /* between two looks at an empty feed */
	PIECE_BYTES = 256 << 10, /* so that the process sees that we read, however slow the disk */
};

struct request {
	const char *process, *file;
	bool never_waits;
};

struct reading {
	struct vb_feed feed;
	int fd, out; /* the socket to the process; where the capture goes */
	bool parted; /* we have told the process that we leave */
	bool alone;  /* the process has left */
};

static volatile sig_atomic_t asked_to_stop;

static void on_signal(int signal)
{
	asked_to_stop++;
}

static void signals_set(void)
{
	const struct sigaction stop = {.sa_handler = on_signal};
	const struct sigaction ignore = {.sa_handler = SIG_IGN};

	sigaction(SIGINT, &stop, NULL);
	sigaction(SIGTERM, &stop, NULL);
	sigaction(SIGPIPE, &ignore, NULL);
}

/* --- asking --- */

/* Has the hub hand one end of a socket to the process. */
static int hand_over(const struct vb_hub_program *program, int fd)
{
	struct vb_hub_msg msg = vb_hub_msg_make(VB_HUB_CAPTURE);
	int fds[VB_HUB_FDS_MAX], hub_fd, rc = vb_hub_connect(&hub_fd);
	unsigned n = 0;

	if (rc)
		return rc;
	msg.fail.pid = program->pid;
	msg.fail.pid_ns = program->pid_ns;
	rc = vb_hub_send(hub_fd, &msg, &fd, VB_HUB_CAPTURE_FDS);
	if (!rc)
		rc = vb_hub_recv_by(hub_fd, &msg, fds, &n,
				    vb_hub_now_ns() + ANSWER_MS * 1000000ull);
	close(hub_fd);
	if (!rc)
		rc = msg.type == VB_HUB_FAILED ? (int)msg.failed.error : EPROTO;
	return rc;
}

static int answer_take(int fd, int *feed_fd)
{
	struct vb_feed_answer answer;
	union {
		struct cmsghdr header;
		char room[CMSG_SPACE(sizeof(int))];
	} control;
	struct iovec iov = {&answer, sizeof(answer)};
	struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1, .msg_control = &control,
			     .msg_controllen = sizeof(control)};
	struct pollfd wait = {.fd = fd, .events = POLLIN};

	if (poll(&wait, 1, ANSWER_MS) <= 0)
		return asked_to_stop ? EINTR : ETIMEDOUT;
	if (recvmsg(fd, &msg, MSG_CMSG_CLOEXEC) != sizeof(answer) ||
	    answer.magic != VB_FEED_MAGIC)
		return EPROTO;
	if (answer.error)
		return (int)answer.error;
	if (!CMSG_FIRSTHDR(&msg) || CMSG_FIRSTHDR(&msg)->cmsg_type != SCM_RIGHTS)
		return EPROTO;
	memcpy(feed_fd, CMSG_DATA(CMSG_FIRSTHDR(&msg)), sizeof(*feed_fd));
	return 0;
}

static int attach(struct reading *reading, const struct request *request,
		  const struct vb_hub_program *program)
{
	const struct vb_feed_ask ask = {VB_FEED_MAGIC, request->never_waits};
	int ends[2], feed_fd, rc;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends))
		return errno;
	reading->fd = ends[0];
	rc = send(ends[0], &ask, sizeof(ask), 0) == sizeof(ask) ? 0 : errno;
	if (!rc)
		rc = hand_over(program, ends[1]);
	close(ends[1]);
	if (!rc)
		rc = answer_take(ends[0], &feed_fd);
	if (!rc) {
		rc = vb_feed_open(&reading->feed, feed_fd);
		close(feed_fd);
	}
	if (rc)
		close(ends[0]);
	return rc;
}

static int attach_failed(const struct request *request, int rc)
{
	char why[VB_FAILURE_BYTES];

	if (rc == EBUSY)
		vb_cli_error("process %s is being captured already", request->process);
	else if (rc == ETIMEDOUT)
		vb_cli_error("process %s does not answer: is it stopped?", request->process);
	else if (rc == ESRCH || rc == ECONNREFUSED)
		vb_cli_error("process %s does not have the device open, or is not this user's "
			     "(uid %u)", request->process, geteuid());
	else
		vb_cli_error("%s", vb_failure_words(why, sizeof(why), rc));
	return VB_CLI_FAILED;
}

/* --- reading --- */

/* Tells the process that we leave; it puts what it has seen until then, and says so. */
static void part(struct reading *reading)
{
	if (!reading->parted)
		shutdown(reading->fd, SHUT_WR);
	reading->parted = true;
}

static bool octets_write(int out, const uint8_t *octets, size_t bytes)
{
	while (bytes) {
		ssize_t done = write(out, octets, bytes);

		if (done < 0 && (errno != EINTR || asked_to_stop > 1))
			return false;
		if (done > 0) {
			octets += done;
			bytes -= (size_t)done;
		}
	}
	return true;
}

/* The feed is empty: waits a little, or notices that nothing more will come. */
static void rest(struct reading *reading, int ms)
{
	struct pollfd wait = {.fd = reading->fd, .events = POLLRDHUP};

	if (poll(&wait, 1, ms) > 0)
		reading->alone = true;
}

/* Copies until either side ends it. Returns false if it could not be written. */
static bool copy(struct reading *reading)
{
	int ms = LOOK_MS_MIN, left_ms = ANSWER_MS;

	for (;;) {
		bool over = atomic_load(&reading->feed.shared->over) || reading->alone;
		const uint8_t *octets;
		size_t bytes = vb_feed_look(&reading->feed, &octets);

		if (asked_to_stop)
			part(reading);
		if (bytes) {
			bytes = vb_min_u64(bytes, PIECE_BYTES);
			if (!octets_write(reading->out, octets, bytes))
				return false;
			vb_feed_take(&reading->feed, bytes);
			ms = LOOK_MS_MIN;
			continue;
		}
		/* A process that is stopped does not let us go. */
		if (over || asked_to_stop > 1 || (reading->parted && left_ms <= 0))
			return true;
		rest(reading, ms);
		left_ms -= reading->parted ? ms : 0;
		ms = ms < LOOK_MS_MAX ? 2 * ms : ms;
	}
}

static bool end_write(struct reading *reading, uint64_t *taken, uint64_t *lost)
{
	static uint8_t block[VB_PCAPNG_BYTES_MAX];
	struct vb_pcapng_counts counts[VB_RECORD_LINKS];
	struct timespec now;

	*taken = *lost = 0;
	for (unsigned i = 0; i < VB_RECORD_LINKS; i++) {
		counts[i].taken = atomic_load(&reading->feed.shared->taken[i]);
		counts[i].lost = atomic_load(&reading->feed.shared->lost[i]);
		*taken += counts[i].taken;
		*lost += counts[i].lost;
	}
	clock_gettime(CLOCK_REALTIME, &now);
	return octets_write(reading->out, block,
			    vb_pcapng_end(block, counts, (uint64_t)now.tv_sec * 1000000000u +
								 (uint64_t)now.tv_nsec));
}

static int capture(struct reading *reading, const struct request *request)
{
	uint64_t taken, lost;
	bool done;

	fprintf(stderr, "capturing process %s; Ctrl-C ends it\n", request->process);
	done = copy(reading) && end_write(reading, &taken, &lost);
	if (!done && errno != EPIPE && !asked_to_stop) {
		vb_cli_error("cannot write: %s", strerror(errno));
		return VB_CLI_FAILED;
	}
	if (done)
		fprintf(stderr, "%" PRIu64 " packets, %" PRIu64 " lost\n", taken, lost);
	return VB_CLI_OK;
}

/* --- the command line --- */

static bool options_read(struct request *request, int argc, char **argv)
{
	for (int i = 1; i < argc; i++) {
		if (!strcmp(argv[i], "-i") && i + 1 < argc)
			request->process = argv[++i];
		else if (!strcmp(argv[i], "-w") && i + 1 < argc)
			request->file = strcmp(argv[++i], "-") ? argv[i] : NULL;
		else if (!strcmp(argv[i], "--no-wait"))
			request->never_waits = true;
		else
			return false;
	}
	return request->process;
}

static int out_open(const char *file)
{
	if (file)
		return open(file, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	return STDOUT_FILENO;
}

/* What was in the file before, as far as it is one. */
static int out_clear(int out)
{
	struct stat stat;

	if (fstat(out, &stat) || !S_ISREG(stat.st_mode) || !stat.st_size || out == STDOUT_FILENO)
		return 0;
	return ftruncate(out, 0) ? errno : 0;
}

int vb_cli_capture(int argc, char **argv)
{
	struct request request = {.process = NULL};
	struct reading reading = {.fd = -1};
	struct vb_hub_program program;
	int rc;

	if (!options_read(&request, argc, argv) ||
	    !vb_cli_process_parse(request.process, &program)) {
		fputs("usage: verbatim capture -i PID [-w FILE] [--no-wait]\n", stderr);
		return VB_CLI_USAGE;
	}
	if (!request.file && isatty(STDOUT_FILENO)) {
		vb_cli_error("a capture is not for a terminal: -w FILE, or | tshark -i -");
		return VB_CLI_USAGE;
	}
	signals_set();
	/*
	 * The process waits for us once we are attached, so a slow file system comes before. What
	 * is in the file stays if there is no capture: it may be that of another reader.
	 */
	reading.out = out_open(request.file);
	if (reading.out < 0) {
		vb_cli_error("%s: %s", request.file, strerror(errno));
		return VB_CLI_FAILED;
	}
	rc = vb_cli_process_find(request.process, &program);
	if (!rc)
		rc = attach(&reading, &request, &program);
	if (rc)
		return attach_failed(&request, rc);
	rc = out_clear(reading.out);
	if (rc) {
		vb_cli_error("%s: %s", request.file, strerror(rc));
		return VB_CLI_FAILED;
	}
	return capture(&reading, &request);
}
