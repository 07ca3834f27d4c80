/* SPDX-License-Identifier: BSD-2-Clause */
/* Fills the buffer of a SEND anew before its completion was taken. */
#include "../corpus.h"

int main(int argc, char **argv)
{
	struct pair p = {0};
	bool ok = argc > 1;

	pair_open(&p);
	recv_post(&p.b, 1, 0, 4096);
	strcpy(p.a.memory, "first message");
	send_post(&p.a, 2, 0, 1024, IBV_SEND_SIGNALED); /* FLAW: send-buffer-changed */
	if (ok)
		taken(p.a.cq);
	strcpy(p.a.memory, "second message");
	if (!ok)
		taken(p.a.cq);
	taken(p.b.cq);
	pair_close(&p);
	return argv == NULL;
}
