/* SPDX-License-Identifier: BSD-2-Clause */
/* Receives of a UD QP as long as the message, without the 40 octets of the GRH. */
#include "../corpus.h"

int main(int argc, char **argv)
{
	struct pair p = {.type = IBV_QPT_UD};
	bool ok = argc > 1;

	pair_open(&p);
	recv_post(&p.b, 1, 0, ok ? 32 + 40 : 32); /* FLAW: ud-no-room-for-grh */
	pair_close(&p);
	return argv == NULL;
}
