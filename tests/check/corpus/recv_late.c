/* SPDX-License-Identifier: BSD-2-Clause */
/* Posts the receive after the message was sent. */
#include "../corpus.h"

int main(int argc, char **argv)
{
	struct pair p = {0};
	bool ok = argc > 1;

	pair_open(&p);
	if (ok)
		recv_post(&p.b, 1, 0, 1024);
	send_post(&p.a, 2, 0, 64, IBV_SEND_SIGNALED);
	/* The peer's NIC has refused it once by then. */
	for (unsigned i = 0; !ok && i < 1000; i++)
		ibv_poll_cq(p.b.cq, 0, NULL);
	usleep(20000);
	if (!ok)
		recv_post(&p.b, 1, 0, 1024); /* FLAW: recv-late */
	taken(p.a.cq);
	taken(p.b.cq);
	pair_close(&p);
	return argv == NULL;
}
