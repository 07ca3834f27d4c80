/* SPDX-License-Identifier: BSD-2-Clause */
/* Port 2 of a device with one. */
#include "../corpus.h"

int main(int argc, char **argv)
{
	struct pair p = {0};
	bool ok = argc > 1;
	struct ibv_port_attr attr;

	device_open(&p);
	if (ibv_query_port(p.verbs, ok ? 1 : 2, &attr)) /* FLAW: call-refused */
		fputs("no such port\n", stderr);
	none(ibv_dealloc_pd(p.pd));
	none(ibv_close_device(p.verbs));
	return argv == NULL;
}
