/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/path.h"

#include <arpa/inet.h>

const char *vb_gid_text(char text[VB_ADDRESS_BYTES], const uint8_t gid[VB_GID_BYTES])
{
	bool ipv4 = vb_gid_is_ipv4(gid);

	inet_ntop(ipv4 ? AF_INET : AF_INET6, gid + (ipv4 ? 12 : 0), text, VB_ADDRESS_BYTES);
	return text;
}
