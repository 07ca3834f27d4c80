/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_CLI_DOMAINS_H
#define VB_CLI_DOMAINS_H

/* Parts of `verbatim hub`: XRC objects. Both return the exit status. */

struct vb_hub_row;

/* Shows the objects, given the leased slots; and their log. */
int vb_cli_domains(const struct vb_hub_row *rows, unsigned count);
int vb_cli_log(void);

#endif
