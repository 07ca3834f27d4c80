/* SPDX-License-Identifier: BSD-2-Clause */
/* One buffer for all messages: what is in flight is overwritten by the next, as in senders with a
 * ring of buffers that is shorter than their send queue. */
#include "../corpus.h"

int main(int argc, char **argv)
{
	struct pair p = {0};
	bool ok = argc > 1;

	pair_open(&p);
	for (unsigned i = 0; i < 4; i++)
		recv_post(&p.b, i, i * 1024, 1024);
	for (unsigned i = 0; i < 4; i++) {
		unsigned at = ok ? i * 1024 : i % 2 * 1024;

		memset(p.a.memory + at, (int)i + 1, 1024);
		send_post(&p.a, i, at, 1024, IBV_SEND_SIGNALED); /* FLAW: send-buffer-changed */
	}
	for (unsigned i = 0; i < 4; i++) {
		taken(p.a.cq);
		taken(p.b.cq);
	}
	pair_close(&p);
	return argv == NULL;
}
