/* SPDX-License-Identifier: BSD-2-Clause */
#include "hub/ask/samples.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/failure.h"
#include "hub/ask/query.h"
#include "hub/channel.h"
#include "hub/program.h"

static const uint64_t deadline_for_hub_ns = 3000000000;

/* One attempt: *asked processes will answer at the other end of a socket that the hub got. */
static int samples_ask(const struct vb_hub_msg *question, int answer_fd, unsigned *asked,
		       uint64_t deadline_ns)
{
	struct vb_hub_msg msg = *question;
	int fd, rc = vb_hub_connect(&fd);

	if (rc)
		return rc;
	rc = vb_hub_send(fd, question, &answer_fd, VB_HUB_SAMPLE_FDS);
	if (!rc)
		rc = vb_hub_ask_expect(fd, &msg, VB_HUB_SAMPLES, deadline_ns);
	close(fd);
	*asked = msg.sample.asked.asked;
	return rc;
}

/* Reads answers until all are there, nobody is left who could send one, or it is too late. */
static void samples_read(int fd, struct vb_hub_said *said, unsigned *count, unsigned asked,
			 uint64_t deadline_ns)
{
	uint64_t pid_ns = vb_hub_pid_ns();

	while (*count < asked) {
		int fds[VB_HUB_FDS_MAX], rc;
		struct vb_hub_msg msg;
		unsigned n = 0;

		rc = vb_hub_recv_by(fd, &msg, fds, &n, deadline_ns);
		if (rc)
			return;
		if (msg.type != VB_HUB_SAMPLED) {
			while (n)
				close(fds[--n]);
			continue;
		}
		said[*count] = (struct vb_hub_said){.program = msg.sample.taken.program,
						    .fd = fds[0]};
		if (pid_ns && said[*count].program.pid_ns == pid_ns)
			said[*count].pid = said[*count].program.pid;
		(*count)++;
	}
}

int vb_hub_sample(uint32_t measure_s, uint64_t wait_ns, struct vb_hub_said **said, unsigned *count,
		  unsigned *silent)
{
	uint64_t deadline_ns = vb_hub_now_ns() + deadline_for_hub_ns;
	struct vb_hub_msg msg = vb_hub_msg_make(VB_HUB_SAMPLE);
	unsigned asked = 0;
	int pair[2], rc;

	msg.sample.ask.measure_s = measure_s;
	*count = 0;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair))
		return vb_failed(errno, "socketpair");
	do {
		rc = samples_ask(&msg, pair[1], &asked, deadline_ns);
	} while (vb_hub_ask_again(rc, deadline_ns));
	close(pair[1]);
	*said = rc ? NULL : calloc(asked + 1, sizeof(**said));
	if (!rc && !*said)
		rc = ENOMEM;
	if (!rc)
		samples_read(pair[0], *said, count, asked, vb_hub_now_ns() + wait_ns);
	close(pair[0]);
	*silent = asked - *count;
	return rc;
}

void vb_hub_said_free(struct vb_hub_said *said, unsigned count)
{
	while (count)
		close(said[--count].fd);
	free(said);
}
