/* SPDX-License-Identifier: BSD-2-Clause */
/* No receive at all, and rnr_retry 0. ALSO: recv-late at corpus.h, where the QP is made. */
#include "../corpus.h"

int main(int argc, char **argv)
{
	struct pair p = {.rnr_at_once = true};
	bool ok = argc > 1;

	pair_open(&p);
	if (ok)
		recv_post(&p.b, 1, 0, 64);
	send_post(&p.a, 1, 0, 8, IBV_SEND_SIGNALED); /* FLAW: request-failed */
	taken(p.a.cq);
	if (ok)
		taken(p.b.cq);
	pair_close(&p);
	return argv == NULL;
}
