/* SPDX-License-Identifier: BSD-2-Clause */
/* Opens the device to ask what it can do, and leaves it open. */
#include "../corpus.h"

int main(int argc, char **argv)
{
	struct pair p = {0};
	bool ok = argc > 1;
	struct ibv_device_attr attr;
	struct ibv_device **list;

	must(list = ibv_get_device_list(NULL));
	must(p.verbs = ibv_open_device(list[0])); /* FLAW: object-leaked */
	none(ibv_query_device(p.verbs, &attr));
	ibv_free_device_list(list);
	if (ok)
		none(ibv_close_device(p.verbs));
	return argv == NULL;
}
