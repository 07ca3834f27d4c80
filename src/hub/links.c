/* SPDX-License-Identifier: BSD-2-Clause */
#include "hub/links.h"

#include <stdio.h>
#include <string.h>

#include "base/check.h"

/* %s: here or there. */
static const char *const reasons[VB_HUB_LINK_WHYS] = {
	[VB_HUB_LINK_SET] = "VERBATIM_LINK=udp is set %s",
	[VB_HUB_LINK_PCAP] = "VERBATIM_PCAP is set %s",
	[VB_HUB_LINK_FAULT] = "VERBATIM_FAULT is set %s",
	[VB_HUB_LINK_NET] = "VERBATIM_NET is set %s",
	[VB_HUB_LINK_FSIZE] = "RLIMIT_FSIZE is too low for shared memory %s",
	[VB_HUB_LINK_NOBODY] = "no process of this user holds that slot here",
	[VB_HUB_LINK_AFAR] = "the address is not in this network namespace",
	[VB_HUB_LINK_FAILED] = "shared memory cannot be set up",
};

const char *vb_hub_link_words(char *text, const struct vb_hub_link *link, const char *here,
			      const char *there)
{
	char why[VB_HUB_LINK_WORDS_BYTES / 2];

	if (link->why == VB_HUB_LINK_SHM) {
		snprintf(text, VB_HUB_LINK_WORDS_BYTES, "shared memory");
		return text;
	}
	snprintf(why, sizeof(why), reasons[link->why], link->there ? there : here);
	snprintf(text, VB_HUB_LINK_WORDS_BYTES, "%s, because %s%s%s",
		 link->none ? "none (VERBATIM_LINK=shm)" : "UDP", why, link->error ? ": " : "",
		 link->error ? strerror((int)link->error) : "");
	return text;
}
