/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_HUB_LINKS_H
#define VB_HUB_LINKS_H

/* By which link a process reaches another, and why, in words for the log and for status. */

#include <stddef.h>
#include <stdint.h>

#include "hub/proto.h"

enum { VB_HUB_LINK_WORDS_BYTES = 192 };

/*
 * "shared memory", or "UDP, because ...". here, there: where the sender and the other process are,
 * such as "in pid 12". Returns text, with room for VB_HUB_LINK_WORDS_BYTES.
 */
const char *vb_hub_link_words(char *text, const struct vb_hub_link *link, const char *here,
			      const char *there);

#endif
