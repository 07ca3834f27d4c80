/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/ids.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/failure.h"
#include "base/path.h"
#include "cli/cli.h"
#include "cm/rules.h"
#include "hub/program.h"
#include "hub/ask/query.h"
#include "hub/words.h"
#include "wire/cm_ip.h"

static void listener_print(const struct vb_hub_bind *bind)
{
	char address[VB_ADDRESS_BYTES];

	printf("listens at %s port %u of %s, backlog %u\n",
	       vb_gid_text(address, bind->gid), bind->port,
	       vb_cm_port_space_name(bind->space), bind->backlog);
}

static void row_print(const struct vb_hub_cm_row *row)
{
	char number[VB_HUB_NUMBER_BYTES], address[VB_ADDRESS_BYTES];
	const char *plural = row->count == 1 ? "" : "s";

	printf("  pid %s (%s): ", vb_hub_program_number(number, row->pid, &row->program),
	       row->program.comm);
	switch (row->what) {
	case VB_HUB_CM_LISTENS:
		listener_print(&row->bind);
		break;
	case VB_HUB_CM_IDS:
		printf("%u id%s with %s: %s\n", row->count, plural,
		       vb_gid_text(address, row->bind.gid),
		       row->state < VB_CM_STATES ? vb_cm_state_name((enum vb_cm_state)row->state)
						 : "?");
		break;
	case VB_HUB_CM_OTHERS:
		printf("and %u more id%s\n", row->count, plural);
		break;
	default:
		printf("%u event%s not acknowledged\n", row->count,
		       row->count == 1 ? " is" : "s are");
		break;
	}
}

int vb_cli_ids(void)
{
	char why[VB_FAILURE_BYTES];
	struct vb_hub_cm_row *rows;
	unsigned count, left;
	int rc = vb_hub_cm_read(&rows, &count, &left);

	/* The hub left just now, as it does when no program needs it. */
	if (rc == ECONNREFUSED)
		return VB_CLI_OK;
	if (rc) {
		vb_cli_error("the hub does not tell of rdma_cm: %s",
			     vb_failure_words(why, sizeof(why), rc));
		return VB_CLI_FAILED;
	}
	if (count)
		puts("\nrdma_cm");
	for (unsigned i = 0; i < count; i++)
		row_print(&rows[i]);
	if (left)
		printf("  and %u more that listen\n", left);
	free(rows);
	return VB_CLI_OK;
}
