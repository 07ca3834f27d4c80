/* SPDX-License-Identifier: BSD-2-Clause */
/* Sends a buffer on before the message in it has come. CHECKED WITH: --poison */
#include "../corpus.h"

int main(int argc, char **argv)
{
	struct pair p = {0};
	bool ok = argc > 1;

	pair_open(&p);
	recv_post(&p.b, 1, 0, 1024);
	recv_post(&p.a, 1, 1024, 1024);
	send_post(&p.a, 2, 0, 64, IBV_SEND_SIGNALED);
	taken(p.a.cq);
	taken(p.b.cq);
	if (!ok)
		recv_post(&p.b, 2, 0, 1024);
	memcpy(p.b.memory + 4096, p.b.memory, 64);
	send_post(&p.b, 3, 4096, 64, IBV_SEND_SIGNALED); /* FLAW: recv-buffer-read */
	taken(p.b.cq);
	taken(p.a.cq);
	pair_close(&p);
	return argv == NULL;
}
