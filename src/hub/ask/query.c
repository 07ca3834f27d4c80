/* SPDX-License-Identifier: BSD-2-Clause */
#include "hub/ask/query.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/lock.h"
#include "hub/channel.h"
#include "hub/holders.h"
#include "hub/program.h"
#include "hub/words.h"

static const uint64_t query_deadline_ns = 3000000000;
static const uint64_t nearest_deadline_ns = 500000000; /* a program waits for it */

/*
 * Is it worth asking again? If so pauses. A new hub waits for its clients to bring what the last
 * one had, a second at most. A hub that dies before or while it is asked may have a successor.
 */
bool vb_hub_ask_again(int rc, uint64_t deadline_ns)
{
	const struct timespec a_while = {.tv_nsec = 3000000};

	/* A process with the device open starts the next hub, unless it is stopped. */
	if (rc != EAGAIN && rc != ECONNRESET && rc != EPIPE &&
	    !(rc == ECONNREFUSED && vb_holders_any_slot()))
		return false;
	if (vb_hub_now_ns() >= deadline_ns)
		return false;
	vb_lock_order_wait("the hub");
	nanosleep(&a_while, NULL);
	return true;
}

/* Receives the next message, which must be of that type, without descriptors. */
int vb_hub_ask_expect(int fd, struct vb_hub_msg *msg, enum vb_hub_type type, uint64_t deadline_ns)
{
	int fds[VB_HUB_FDS_MAX], rc;
	unsigned n;

	rc = vb_hub_recv_by(fd, msg, fds, &n, deadline_ns);
	if (rc)
		return rc;
	while (n)
		close(fds[--n]);
	return msg->type == type ? 0 : EPROTO;
}

static int ask_once(int *fd, struct vb_hub_msg *msg, int fds[VB_HUB_FDS_MAX], unsigned *n,
		    uint64_t deadline_ns)
{
	int rc = vb_hub_connect(fd);

	if (rc)
		return rc;
	rc = vb_hub_send(*fd, msg, NULL, 0);
	if (!rc)
		rc = vb_hub_recv_by(*fd, msg, fds, n, deadline_ns);
	if (rc)
		close(*fd);
	return rc;
}

/*
 * Connects, asks, and receives the first message of the answer with its descriptors. The connection
 * stays open only after 0.
 */
static int ask_for(int *fd, struct vb_hub_msg *msg, int fds[VB_HUB_FDS_MAX], unsigned *n,
		   uint64_t deadline_ns)
{
	int rc;

	/* Only complete answers are stored in msg: until then it is still the question. */
	do {
		rc = ask_once(fd, msg, fds, n, deadline_ns);
	} while (vb_hub_ask_again(rc, deadline_ns));
	return rc;
}

static void fds_close(const int *fds, unsigned n)
{
	while (n)
		close(fds[--n]);
}

/* The same, for an answer of that type without descriptors. */
static int ask(int *fd, struct vb_hub_msg *msg, enum vb_hub_type type, uint64_t deadline_ns)
{
	int fds[VB_HUB_FDS_MAX], rc;
	unsigned n = 0;

	rc = ask_for(fd, msg, fds, &n, deadline_ns);
	if (rc)
		return rc;
	fds_close(fds, n);
	if (msg->type == type)
		return 0;
	close(*fd);
	return EPROTO;
}

static int rows_read(int fd, struct vb_hub_row *rows, unsigned n, uint64_t deadline_ns)
{
	struct vb_hub_msg msg;

	while (n) {
		int rc = vb_hub_ask_expect(fd, &msg, VB_HUB_ROWS, deadline_ns);

		if (rc)
			return rc;
		if (msg.rows.count > n)
			return EPROTO;
		memcpy(rows, msg.rows.row, msg.rows.count * sizeof(*rows));
		rows += msg.rows.count;
		n -= msg.rows.count;
	}
	return 0;
}

static int links_read(int fd, struct vb_hub_link *links, unsigned n, uint64_t deadline_ns)
{
	struct vb_hub_msg msg;

	while (n) {
		int rc = vb_hub_ask_expect(fd, &msg, VB_HUB_LINKS, deadline_ns);

		if (rc)
			return rc;
		if (msg.links.count > n)
			return EPROTO;
		memcpy(links, msg.links.link, msg.links.count * sizeof(*links));
		links += msg.links.count;
		n -= msg.links.count;
	}
	return 0;
}

static int status_ask(struct vb_hub_summary *summary, struct vb_hub_row **rows,
		      struct vb_hub_link **links, uint64_t deadline_ns)
{
	struct vb_hub_msg msg = vb_hub_msg_make(VB_HUB_STATUS);
	int fd, rc = ask(&fd, &msg, VB_HUB_SUMMARY, deadline_ns);
	pid_t pid;

	if (rc)
		return rc;
	*summary = msg.summary;
	summary->pid = vb_hub_peer_check(fd, &pid) ? 0 : (uint32_t)pid;
	*rows = calloc(summary->rows + 1, sizeof(**rows));
	*links = calloc(summary->links + 1, sizeof(**links));
	rc = *rows && *links ? rows_read(fd, *rows, summary->rows, deadline_ns) : ENOMEM;
	if (!rc)
		rc = links_read(fd, *links, summary->links, deadline_ns);
	/* A hub with no socket, not even for its own slot, has not received its sockets yet. */
	if (!rc && !summary->sockets)
		rc = EAGAIN;
	if (rc) {
		free(*rows);
		free(*links);
	}
	close(fd);
	return rc;
}

/* The PID here of a slot's holder, as the kernel reports it; 0 if it has none. */
static uint32_t pid_ask(uint32_t slot, uint64_t deadline_ns)
{
	struct vb_hub_msg msg = vb_hub_msg_make(VB_HUB_WHO);
	int fds[VB_HUB_FDS_MAX], fd;
	unsigned n = 0;
	pid_t pid = 0;

	msg.who.slot = slot;
	if (ask_for(&fd, &msg, fds, &n, deadline_ns))
		return 0;
	close(fd);
	if (n && vb_hub_peer_check(fds[0], &pid))
		pid = 0;
	fds_close(fds, n);
	return (uint32_t)pid;
}

/* A process's own PID is valid here only if it is in our PID namespace. */
static void pids_find(struct vb_hub_row *rows, unsigned n, uint64_t deadline_ns)
{
	uint64_t pid_ns = vb_hub_pid_ns();

	for (unsigned i = 0; i < n; i++) {
		const struct vb_hub_program *program = &rows[i].program;

		if (!program->pid)
			continue;
		rows[i].pid = pid_ns && program->pid_ns == pid_ns
				      ? program->pid
				      : pid_ask(rows[i].slot, deadline_ns);
	}
}

int vb_hub_links_read(struct vb_hub_summary *summary, struct vb_hub_row **rows,
		      struct vb_hub_link **links)
{
	uint64_t deadline_ns = vb_hub_now_ns() + query_deadline_ns;
	int rc;

	do {
		rc = status_ask(summary, rows, links, deadline_ns);
	} while (vb_hub_ask_again(rc, deadline_ns));
	if (!rc)
		pids_find(*rows, summary->rows, deadline_ns);
	return rc;
}

int vb_hub_status_read(struct vb_hub_summary *summary, struct vb_hub_row **rows)
{
	struct vb_hub_link *links;
	int rc = vb_hub_links_read(summary, rows, &links);

	if (!rc)
		free(links);
	return rc;
}

/* --- of rdma_cm --- */

/* Adds the rows of a message. False: no memory. */
static bool cm_rows_add(struct vb_hub_cm_row **rows, unsigned *count,
			const struct vb_hub_cm_rows *came)
{
	struct vb_hub_cm_row *more = realloc(*rows, (*count + came->count + 1) * sizeof(**rows));

	if (!more)
		return false;
	memcpy(more + *count, came->row, came->count * sizeof(*more));
	*rows = more;
	*count += came->count;
	return true;
}

static int cm_ask(const struct vb_hub_cm *question, struct vb_hub_cm_row **rows, unsigned *count,
		  unsigned *left, uint64_t deadline_ns)
{
	struct vb_hub_msg msg = vb_hub_msg_make(VB_HUB_CM);
	int fd, rc;

	*rows = NULL;
	*count = 0;
	msg.cm.ask = *question;
	rc = ask(&fd, &msg, VB_HUB_CM_ROWS, deadline_ns);
	if (rc)
		return rc;
	do {
		*left = msg.cm.rows.left;
		if (!cm_rows_add(rows, count, &msg.cm.rows))
			rc = ENOMEM;
		else if (msg.cm.rows.count == VB_HUB_CM_ROWS_MAX)
			rc = vb_hub_ask_expect(fd, &msg, VB_HUB_CM_ROWS, deadline_ns);
		else
			break;
	} while (!rc);
	close(fd);
	if (rc)
		free(*rows);
	return rc;
}

static void cm_pids_find(struct vb_hub_cm_row *rows, unsigned n, uint64_t deadline_ns)
{
	uint64_t pid_ns = vb_hub_pid_ns();

	for (unsigned i = 0; i < n; i++) {
		const struct vb_hub_program *program = &rows[i].program;

		if (program->pid)
			rows[i].pid = pid_ns && program->pid_ns == pid_ns
					      ? program->pid
					      : pid_ask(rows[i].slot, deadline_ns);
	}
}

int vb_hub_cm_read(struct vb_hub_cm_row **rows, unsigned *count, unsigned *left)
{
	const struct vb_hub_cm all = {.space = 0};
	uint64_t deadline_ns = vb_hub_now_ns() + query_deadline_ns;
	int rc = cm_ask(&all, rows, count, left, deadline_ns);

	if (!rc)
		cm_pids_find(*rows, *count, deadline_ns);
	return rc;
}

int vb_hub_listener_nearest(uint32_t space, uint16_t port, struct vb_hub_cm_row *row)
{
	const struct vb_hub_cm near = {space, port};
	uint64_t deadline_ns = vb_hub_now_ns() + nearest_deadline_ns;
	struct vb_hub_cm_row *rows;
	unsigned count, left;
	int rc = cm_ask(&near, &rows, &count, &left, deadline_ns);

	if (rc)
		return rc;
	if (count) {
		cm_pids_find(rows, 1, deadline_ns);
		*row = rows[0];
	}
	free(rows);
	return count ? 0 : ENOENT;
}

int vb_hub_stop(bool force, unsigned *clients, pid_t *pid)
{
	uint64_t deadline_ns = vb_hub_now_ns() + query_deadline_ns;
	struct vb_hub_msg msg = vb_hub_msg_make(VB_HUB_STOP);
	int fd, rc;

	msg.stop.force = force;
	rc = ask(&fd, &msg, VB_HUB_STOPPED, deadline_ns);
	if (rc)
		return rc;
	if (vb_hub_peer_check(fd, pid))
		*pid = 0;
	close(fd);
	*clients = msg.stopped.clients;
	if (msg.stopped.error == EPERM)
		return vb_failed_words(EPERM, "the hub is in another PID namespace than this "
					      "program, and stops only for programs of its own");
	return (int)msg.stopped.error;
}

static int domains_ask(int *memory, uint64_t deadline_ns)
{
	struct vb_hub_msg msg = vb_hub_msg_make(VB_HUB_DOMAINS);
	int fds[VB_HUB_FDS_MAX], fd, rc;
	unsigned n = 0;

	rc = ask_for(&fd, &msg, fds, &n, deadline_ns);
	if (rc)
		return rc;
	close(fd);
	if (msg.type == VB_HUB_MEMORY && !msg.memory.error && n) {
		*memory = fds[0];
		return 0;
	}
	fds_close(fds, n);
	return msg.type == VB_HUB_MEMORY && msg.memory.error ? (int)msg.memory.error : EPROTO;
}

int vb_hub_domains_read(int *memory)
{
	uint64_t deadline_ns = vb_hub_now_ns() + query_deadline_ns;
	int rc;

	do {
		rc = domains_ask(memory, deadline_ns);
	} while (vb_hub_ask_again(rc, deadline_ns));
	return rc;
}

void vb_hub_note(void)
{
	struct vb_hub_msg msg = vb_hub_msg_make(VB_HUB_NOTED);
	int fd;

	/* Without a hub, clients look by themselves when the next one comes. */
	if (vb_hub_connect(&fd))
		return;
	vb_hub_send(fd, &msg, NULL, 0);
	close(fd);
}

int vb_hub_fail(uint32_t pid, uint64_t pid_ns)
{
	uint64_t deadline_ns = vb_hub_now_ns() + query_deadline_ns;
	struct vb_hub_msg msg = vb_hub_msg_make(VB_HUB_FAIL);
	int fd, rc;

	msg.fail.pid = pid;
	msg.fail.pid_ns = pid_ns;
	rc = ask(&fd, &msg, VB_HUB_FAILED, deadline_ns);
	if (rc)
		return rc;
	close(fd);
	return (int)msg.failed.error;
}
